package config

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Names are what placeholders of paths and texts stand for.
type Names struct{ App, Environment, Ring, Tag, Digest string }

// Fill puts names into the title of a pull request or a commit message.
func Fill(template string, n Names) string { return fill(template, n) }

func fill(template string, n Names) string {
	return strings.NewReplacer("{app}", n.App, "{environment}", n.Environment, "{ring}", n.Ring,
		"{tag}", n.Tag, "{digest}", n.Digest).Replace(template)
}

// Targets lists, sorted, the paths in fsys (the files of the environment's
// repository and branch) where an app's image is set in an environment. With a
// ring it lists that ring's alone; without one, those of all rings. A path belongs
// to the first ring that matches.
//
// A pattern without '*', '?' and '[' is given as it is, whether it is there or not:
// whoever reads it will say. A pattern with them gives directories, and files only
// where it ends in .yaml, .yml or .json. Where there is nothing the error is ErrNoTarget.
func (c *Config) Targets(fsys fs.FS, app, environment, ring string) ([]string, error) {
	a, err := c.App(app)
	if err != nil {
		return nil, err
	}
	e, err := c.Environment(environment)
	if err != nil {
		return nil, err
	}
	if !a.In(environment) {
		return nil, fmt.Errorf("%w: the app %s is not in %s, but in %s", ErrNoTarget, app, environment, strings.Join(a.Environments, ", "))
	}
	if ring != "" || e.Rings == nil {
		return e.targets(fsys, app, a.Dir, ring)
	}
	var all []string
	for _, r := range e.Rings {
		paths, err := e.targets(fsys, app, a.Dir, r.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, paths...)
	}
	slices.Sort(all)
	return all, nil
}

// targets lists the paths of one ring.
func (e Environment) targets(fsys fs.FS, app, dir, ring string) ([]string, error) {
	if _, err := e.ringIndex(ring); err != nil {
		return nil, err
	}
	patterns := e.filled(app, dir, ring)
	var paths []string
	for _, pattern := range patterns {
		matches, err := expand(fsys, pattern)
		if err != nil {
			return nil, err
		}
		paths = append(paths, matches...)
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return e.ringOf(app, dir, p) != ring })
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w: app %s has nothing in %s at %s", ErrNoTarget, app, Place{e.Name, ring}, strings.Join(patterns, ", "))
	}
	return paths, nil
}

// RingOf names the ring that a path of an app belongs to: the first that matches.
// It is "" for a path of no ring.
func (c *Config) RingOf(app, environment, target string) (string, error) {
	a, err := c.App(app)
	if err != nil {
		return "", err
	}
	e, err := c.Environment(environment)
	if err != nil {
		return "", err
	}
	return e.ringOf(app, a.Dir, target), nil
}

func (e Environment) ringOf(app, dir, target string) string {
	for _, r := range e.Rings {
		for _, pattern := range e.filled(app, dir, r.Name) {
			if ok, err := path.Match(pattern, target); err == nil && ok {
				return r.Name
			}
		}
	}
	return ""
}

// ringPatterns is where the files of a ring are, before names are filled in.
func (e Environment) ringPatterns(ring string) []string {
	for _, r := range e.Rings {
		if r.Name == ring && r.Paths != nil {
			return r.Paths
		}
	}
	return e.patterns()
}

// filled is where the files of an app in a ring are.
func (e Environment) filled(app, dir, ring string) []string {
	var patterns []string
	for _, p := range e.ringPatterns(ring) {
		patterns = append(patterns, path.Join(dir, fill(p, Names{App: app, Environment: e.Name, Ring: ring})))
	}
	return patterns
}

// ProveWith lists, sorted, the overlays that prove what an app's target is built
// into; none where the policy names none.
func (c *Config) ProveWith(fsys fs.FS, app string, at Place) ([]string, error) {
	policy, err := c.Policy(app, at.Environment)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range policy.ProveWith {
		pattern := path.Join(c.Apps[app].Dir, fill(p, Names{App: app, Environment: at.Environment, Ring: at.Ring}))
		matches, err := expand(fsys, pattern)
		if err != nil {
			return nil, err
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("%w: prove-with %s matches no directory", ErrNoTarget, pattern)
		}
		paths = append(paths, matches...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// expand lists what a pattern matches.
func expand(fsys fs.FS, pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, `*?[`) {
		return []string{pattern}, nil
	}
	file, object, wantFile := fileOf(pattern)
	if !wantFile {
		file = pattern
	}
	matches, err := fs.Glob(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", file, err)
	}
	var kept []string
	for _, m := range matches {
		info, err := fs.Stat(fsys, m)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", m, err)
		}
		if info.IsDir() != wantFile {
			kept = append(kept, m+object)
		}
	}
	return kept, nil
}

// objectFile matches a path that names a file: an object of Flux or Argo CD, of
// several in one file the one of a name. It is overlay.FileOf once more, since
// neither package may import the other; a test of cmd/tagboat holds them together.
var objectFile = regexp.MustCompile(`^(.*\.(?:yaml|yml|json))(#[^/#]+)?$`)

// fileOf parts a path that names a file into the file and #NAME, where it has one.
func fileOf(p string) (file, object string, ok bool) {
	m := objectFile.FindStringSubmatch(p)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
