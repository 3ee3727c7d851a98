package overlay

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"tagboat/image"
)

// Pick gives the entries of one overlay that are meant: those of w.Name where it
// is given, else all whose newName is w.Repository, else all whose name is and
// that have no newName. w.Name is compared literally, as kustomize does;
// repositories are, then in any spelling (nginx, docker.io/library/nginx).
// A newName that carries a tag is found as well, for Edit to say what is wrong with it.
//
// Where none is, w.Add gives one entry with Line 0, for Edit to add; else the
// error is ErrNoEntry and lists what is there.
func Pick(entries []Entry, w Want) ([]Entry, error) {
	if w.Repository == "" && w.Name == "" {
		return nil, fmt.Errorf("pick entry: neither a repository nor a name is given")
	}
	if found := meant(entries, w); len(found) > 0 {
		return found, nil
	}
	if !w.Add {
		return nil, noEntry(entries, w)
	}
	added := Entry{Dir: w.Dir, Name: w.Name}
	added.File, _, _ = FileOf(w.Dir)
	if len(entries) > 0 {
		added.Dir, added.File = entries[0].Dir, entries[0].File
	}
	if w.Name == "" {
		added.Name = w.Repository
	} else if w.Name != w.Repository {
		added.NewName = w.Repository
	}
	return []Entry{added}, nil
}

func meant(entries []Entry, w Want) []Entry {
	if w.Name != "" {
		return keep(entries, func(e Entry) bool { return e.Name == w.Name })
	}
	for _, is := range []func(Entry) bool{
		func(e Entry) bool { return e.NewName == w.Repository },
		func(e Entry) bool { return e.NewName != "" && image.SameRepository(e.Runs().Repository, w.Repository) },
		func(e Entry) bool { return e.NewName == "" && e.Name == w.Repository },
		func(e Entry) bool { return e.NewName == "" && image.SameRepository(e.Name, w.Repository) },
	} {
		if found := keep(entries, is); len(found) > 0 {
			return found
		}
	}
	return nil
}

func keep(entries []Entry, is func(Entry) bool) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !is(e) })
}

// noEntry lists what is there and suggests the nearest.
func noEntry(entries []Entry, w Want) error {
	asked := w.Name
	if asked == "" {
		asked = w.Repository
	}
	if len(entries) == 0 {
		return fmt.Errorf("%w for %s: there are no images entries; ask for one to be added, or give the overlay that sets the image", ErrNoEntry, asked)
	}
	lines := make([]string, len(entries))
	nearest, best := "", len(asked)/2+1
	for i, e := range entries {
		lines[i] = fmt.Sprintf("  line %d: %s", e.Line, describe(e))
		for _, name := range []string{e.Name, e.NewName} {
			if d := distance(asked, name); name != "" && d < best {
				nearest, best = fmt.Sprintf("did you mean %s (line %d)? ", name, e.Line), d
			}
		}
	}
	return fmt.Errorf("%w for %s in %s; %sname an entry or ask for one to be added. There are:\n%s",
		ErrNoEntry, asked, entries[0].File, nearest, strings.Join(lines, "\n"))
}

// distance counts the edits from one name to another; few where only the
// registry, its spelling or the path before the last element differs.
func distance(asked, name string) int {
	switch {
	case image.SameRepository(asked, name):
		return 0
	case path.Base(asked) == path.Base(name):
		return 1
	}
	return levenshtein.ComputeDistance(asked, name)
}

func describe(e Entry) string {
	if e.NewName == "" {
		return e.Name
	}
	return fmt.Sprintf("%s (newName %s)", e.Name, e.NewName)
}
