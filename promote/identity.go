package promote

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/record"
)

// identity is what makes a promotion the same one the next time.
type identity struct {
	App, Environment string
	Ring             string
	Paths            []string // target directories; several where a ring has many clusters
	Branch           string
}

// identify checks a request and names its promotion, before anything is asked of
// anybody.
func identify(q Request) (identity, error) {
	id := identity{App: q.App, Environment: q.Environment}
	misused := func(format string, args ...any) (identity, error) {
		return identity{}, fmt.Errorf("%w: %s", ErrMisused, fmt.Sprintf(format, args...))
	}
	switch {
	case q.Repository == "":
		return misused("no config repository: name it with --repo OWNER/NAME")
	case q.Path == "":
		return misused("no overlay: name its directory in the config repository with --path")
	case len(q.Images) == 0:
		return misused("no image: give REPOSITORY:TAG as the argument")
	}
	target, err := cleanPath(q.Path)
	if err != nil {
		return misused("%v", err)
	}
	id.Paths = []string{target}
	if err := checkImages(q); err != nil {
		return misused("%v", err)
	}
	if id.Environment == "" {
		named := target
		if file, _, ok := overlay.FileOf(target); ok {
			named = path.Dir(file) // a file is named after the app; its directory is the environment's
		}
		id.Environment = path.Base(named)
		if named == "." {
			return misused("no environment: --path names the top of the repository, so name the environment with --to")
		}
		if err := record.CheckName("environment", id.Environment); err != nil {
			return misused("%v: the last element of --path is the environment's name unless --to gives another", err)
		}
	}
	if id.App == "" {
		id.App = path.Base(q.Images[0].Repository)
		if len(q.Images) > 1 {
			return misused("%d images without a name for them: name the group with --app", len(q.Images))
		}
	}
	if id.Branch, err = record.Branch(id.Environment, "", id.App); err != nil {
		return misused("%v", err)
	}
	return id, nil
}

// cleanPath makes a repository path of what people write: "./a/", "a//b" and "a"
// are paths; what leaves the repository is an error.
func cleanPath(p string) (string, error) {
	if strings.Contains(p, `\`) {
		return "", fmt.Errorf("path %q has a backslash: write it with '/'", p)
	}
	if strings.HasPrefix(p, "/") {
		return "", fmt.Errorf("path %q is absolute: write it from the top of the repository", p)
	}
	for element := range strings.SplitSeq(p, "/") {
		if element == ".." {
			return "", fmt.Errorf("path %q has '..': write it from the top of the repository", p)
		}
	}
	clean := path.Clean(p)
	if !fs.ValidPath(clean) {
		return "", fmt.Errorf("path %q is no path in a repository", p)
	}
	return clean, nil
}

func checkImages(q Request) error {
	for i, ref := range q.Images {
		if ref.Tag == "" && ref.Digest == "" {
			return fmt.Errorf("image %s has neither tag nor digest: write %s:TAG, the tag that the build pushed", ref, ref)
		}
		same := func(o image.Reference) bool { return image.SameRepository(o.Repository, ref.Repository) }
		if slices.ContainsFunc(q.Images[:i], same) {
			return fmt.Errorf("image repository %s is given twice", ref.Repository)
		}
	}
	if q.Entry != "" && len(q.Images) > 1 {
		return fmt.Errorf("--entry %s names one entry, but %d images are given", q.Entry, len(q.Images))
	}
	return nil
}

// place is environment, or environment.ring.
func (id identity) place() string {
	if id.Ring == "" {
		return id.Environment
	}
	return id.Environment + "." + id.Ring
}
