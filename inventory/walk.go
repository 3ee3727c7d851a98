package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/scm"
)

// fewPaths is up to how many paths a merge is judged by the log of each; beyond
// that, one comparison of the merge with its first parent tells all.
const fewPaths = 2

// walker goes down a branch's line and finds the commits that changed a target.
//
// A forge's log of a path leaves out merges and follows the side that a merge was
// taken from (git-log, "History Simplification"), so that on its own it passes
// over what the branch was meanwhile. On a stretch without merges it is exact.
// So each merge is judged by itself, against its first parent.
type walker struct {
	Target
	line   *Line
	paths  []string
	trails []trail // by path, from the commit that is looked at
}

// trail is the log of a path from a commit of the line.
type trail struct {
	commits []scm.Commit
	more    bool // the log goes on
}

func (t Target) walker(tip string) (*walker, error) {
	line, err := t.line(tip)
	if err != nil {
		return nil, err
	}
	w := &walker{Target: t, line: line}
	for _, dir := range t.Dirs {
		file, _, ok := overlay.FileOf(dir)
		if !ok {
			file = dir
		}
		w.paths = append(w.paths, file)
	}
	slices.Sort(w.paths)
	w.paths = slices.Compact(w.paths)
	return w, nil
}

// changed tells whether the commit at place i may have changed the target against
// its first parent. It is asked for each place in turn, from 0 on. A first commit
// has changed all.
func (w *walker) changed(ctx context.Context, i int) (bool, error) {
	c, ok, err := w.line.at(ctx, i)
	if err != nil || !ok {
		return false, err
	}
	if w.trails == nil {
		if w.trails, err = w.trailsFrom(ctx, c.SHA); err != nil {
			return false, err
		}
	}
	switch len(c.Parents) {
	case 0:
		return true, nil
	case 1:
		return w.pass(ctx, c)
	}
	return w.merge(ctx, c)
}

// pass steps over a commit with one parent: it has changed what its log begins with.
func (w *walker) pass(ctx context.Context, c scm.Commit) (changed bool, err error) {
	for i, t := range w.trails {
		if len(t.commits) == 0 || t.commits[0].SHA != c.SHA {
			continue
		}
		changed = true
		if w.trails[i].commits = t.commits[1:]; len(t.commits) == 1 && t.more {
			if w.trails[i], err = w.trailFrom(ctx, c.Parents[0], w.paths[i]); err != nil {
				return false, err
			}
		}
	}
	return changed, nil
}

// merge steps over a merge to its first parent.
func (w *walker) merge(ctx context.Context, c scm.Commit) (changed bool, err error) {
	if len(w.paths) > fewPaths || w.Line != nil {
		if changed, err = w.line.touches(ctx, c, w.paths); err != nil || !changed {
			return false, err // the logs go on at the first parent, for nothing differs
		}
	}
	below, err := w.trailsFrom(ctx, c.Parents[0])
	if err != nil {
		return false, err
	}
	for i := range below {
		changed = changed || first(w.trails[i]) != first(below[i])
	}
	w.trails = below
	return changed, nil
}

// first is the commit that a path has been the same since, on one way down.
func first(t trail) string {
	if len(t.commits) == 0 {
		return ""
	}
	return t.commits[0].SHA
}

// trailsFrom begins the log of each path, side by side.
func (w *walker) trailsFrom(ctx context.Context, commit string) ([]trail, error) {
	trails := make([]trail, len(w.paths))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, p := range w.paths {
		group.Go(func() (err error) {
			trails[i], err = w.trailFrom(ctx, commit, p)
			return err
		})
	}
	return trails, group.Wait()
}

func (w *walker) trailFrom(ctx context.Context, commit, path string) (t trail, err error) {
	for c, err := range w.Repo.Log(ctx, commit, path) {
		if err != nil {
			return t, err
		}
		if t.commits = append(t.commits, c); len(t.commits) == chunk {
			t.more = true
			break
		}
	}
	return t, nil
}

// sideBySide is how many questions are put to a forge at once.
const sideBySide = 8

// touches tells whether a merge changed one of the paths, or something in it,
// against its first parent. What the forge cannot compare may have.
func (l *Line) touches(ctx context.Context, c scm.Commit, paths []string) (bool, error) {
	l.mu.Lock()
	known := l.changed[c.SHA]
	if known == nil {
		known = &changed{}
		l.changed[c.SHA] = known
	}
	l.mu.Unlock()
	known.mu.Lock()
	defer known.mu.Unlock()
	if !known.known {
		got, err := l.repo.Changes(ctx, c.Parents[0], c.SHA)
		if err != nil && !errors.Is(err, scm.ErrUnsupported) {
			return false, err
		}
		known.known, known.all, known.paths = true, err != nil, got.Paths
	}
	return known.all || slices.ContainsFunc(known.paths, func(changed string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return within(changed, p) })
	}), nil
}

// within tells whether a path is dir or below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// state is what ran at a commit, or why that cannot be said.
type state struct {
	images  []image.Reference
	problem error
}

// state reads what ran at a commit. That something is not there, not pinned or
// does not read is a state; that it could not be asked is an error.
func (w *walker) state(ctx context.Context, commit string) (state, error) {
	images, err := Running(w.Repo.Files(ctx, commit), w.Dirs, w.Images)
	switch {
	case err == nil:
		return state{images: images}, nil
	case errors.Is(err, ErrDisagree), errors.Is(err, fs.ErrNotExist), errors.Is(err, overlay.ErrNoEntry), errors.Is(err, overlay.ErrNoKustomization), errors.Is(err, overlay.ErrUnsafe):
		return state{problem: err}, nil
	}
	return state{}, fmt.Errorf("read what ran at %s: %w", short(commit), err)
}

// runs tells that a state runs the digests of images, whatever their tags.
func (s state) runs(images []image.Reference) bool {
	return s.problem == nil && slices.EqualFunc(s.images, images, func(a, b image.Reference) bool { return a.Digest == b.Digest })
}
