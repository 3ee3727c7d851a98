package inventory

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

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

	ahead map[string][]trail // by the first parent of a merge, read in advance
	batch int                // how many merges are judged at once
	askAt int                // at which place the forge is asked next whether that is Enough
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
	w := &walker{Target: t, line: line, ahead: map[string][]trail{}, batch: 1}
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

// begin reads what runs at the tip, and begins the line and the logs meanwhile.
func (w *walker) begin(ctx context.Context) (now state, err error) {
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		now, err = w.state(ctx, w.line.tip) // files remember the context that they are read with
		return err
	})
	group.Go(func() error {
		_, _, err := w.line.at(gctx, 0)
		return err
	})
	group.Go(func() (err error) {
		w.trails, err = w.trailsFrom(gctx, w.line.tip)
		return err
	})
	return now, group.Wait()
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
	return w.merge(ctx, c, i)
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
func (w *walker) merge(ctx context.Context, c scm.Commit, i int) (changed bool, err error) {
	if len(w.paths) > fewPaths || w.Line != nil {
		if changed, err = w.touched(ctx, c, i); err != nil || !changed {
			return false, err // the logs go on at the first parent, for nothing differs
		}
		below, err := w.trailsFrom(ctx, c.Parents[0])
		w.trails = below
		return true, err
	}
	below, err := w.below(ctx, c, i)
	if err != nil {
		return false, err
	}
	for n := range below {
		changed = changed || first(w.trails[n]) != first(below[n])
	}
	w.trails = below
	return changed, nil
}

// below are the logs from the first parent of the merge at place i, which are read
// together with those of the merges after it.
func (w *walker) below(ctx context.Context, c scm.Commit, i int) ([]trail, error) {
	if trails, ok := w.ahead[c.Parents[0]]; ok {
		return trails, nil
	}
	merges := w.merges(i)
	read := make([][]trail, len(merges))
	group, gctx := errgroup.WithContext(ctx)
	for n, m := range merges {
		group.Go(func() (err error) {
			read[n], err = w.trailsFrom(gctx, m.Parents[0])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for n, m := range merges {
		w.ahead[m.Parents[0]] = read[n]
	}
	return w.ahead[c.Parents[0]], nil
}

// touched tells whether the merge at place i changed the target, and asks for the
// merges after it at the same time.
func (w *walker) touched(ctx context.Context, c scm.Commit, i int) (bool, error) {
	if !w.line.compared(c) {
		group, gctx := errgroup.WithContext(ctx)
		for _, m := range w.merges(i) {
			group.Go(func() error {
				_, err := w.line.touches(gctx, m, w.paths)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return false, err
		}
	}
	return w.line.touches(ctx, c, w.paths)
}

// merges are the merge at place i and those after it on what is known of the line:
// one at first, twice as many each time.
func (w *walker) merges(i int) []scm.Commit {
	list := w.line.merges(i, w.batch)
	w.batch = min(2*w.batch, sideBySide)
	return list
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
