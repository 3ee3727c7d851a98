package overlay

import (
	"fmt"
	"regexp"
	"strings"

	"tagboat/image"
)

// wanted lists the changes that a difference may come from, and says whether it is
// what runs: a reference or digest, not a mere copy of the tag.
//
// A wanted difference is a scalar that becomes the change's reference, or its tag
// or digest where replacements copied those; and before it was the same
// repository's. A name that matches another repository as a regular expression
// makes an unwanted difference.
func wanted(d difference, changes []Change) (by []int, runs bool) {
	if d.what != "" || d.secret {
		return nil, false
	}
	for i, c := range changes {
		is, itRuns := wantedBy(d, c)
		if is {
			by, runs = append(by, i), runs || itRuns
		}
	}
	return by, runs
}

func wantedBy(d difference, c Change) (is, runs bool) {
	switch {
	case d.new == c.To.String() || d.new == pinned(c.To):
		old := repositoryOf(d.old)
		return old == c.To.Repository || old == c.From.Repository || old == c.Entry, true
	case c.To.Digest != "" && d.new == c.To.Digest:
		return d.old == c.From.Digest || c.From.Digest == "", image.CheckDigest(d.old) == nil
	case c.To.Tag != "" && d.new == c.To.Tag:
		return d.old == c.From.Tag && c.From.Tag != "", false
	}
	return renamedLater(d, c), true
}

// renamedLater says whether a difference is the change under a repository that a
// later transformer (a registry mirror, say) writes in.
func renamedLater(d difference, c Change) bool {
	repository := repositoryOf(d.new)
	same := repository == repositoryOf(d.old) && d.new == (image.Reference{Repository: repository, Tag: c.To.Tag, Digest: c.To.Digest}).String()
	return same && repository != c.To.Repository && !notRepository.MatchString(repository) && !matches(c.Entry, d.old)
}

// notRepository matches what no repository is: nothing, or text around one.
var notRepository = regexp.MustCompile(`^$|[^A-Za-z0-9._:/-]`)

// pinned is a reference by digest alone.
func pinned(r image.Reference) string {
	return image.Reference{Repository: r.Repository, Digest: r.Digest}.String()
}

// repositoryOf is what stands before tag and digest; a colon before a slash is a
// registry's port.
func repositoryOf(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndex(reference, ":"); colon > strings.LastIndex(reference, "/") {
		return reference[:colon]
	}
	return reference
}

// matches says whether kustomize's images transformer takes a value for an
// entry's name.
func matches(name, value string) bool {
	pattern := namePattern(name)
	return pattern != nil && pattern.MatchString(value)
}

// namePattern is what kustomize makes of an entry's name, which it reads as a
// regular expression (api v0.21.2, internal/image/image.go); nil matches nothing.
func namePattern(name string) *regexp.Regexp {
	pattern, err := regexp.Compile("^" + name + `(:[a-zA-Z0-9_.{}-]*)?(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{}-]*)?$`)
	if err != nil {
		return nil
	}
	return pattern
}

// unwantedBecause adds to a difference what made it, where that can be told.
func unwantedBecause(d difference, changes []Change) string {
	for _, c := range changes {
		if d.what == "" && !d.secret && repositoryOf(d.old) != c.Entry && matches(c.Entry, d.old) {
			return fmt.Sprintf("%s; kustomize reads the entry's name %q as a regular expression, and it matches %s too: name the entry by the whole repository, with \\ before each dot", d, c.Entry, repositoryOf(d.old))
		}
	}
	return d.String()
}
