package inventory

import (
	"context"
	"fmt"

	"tagboat/record"
	"tagboat/scm"
)

// Arrived tells since when the digests that run at tip (a commit SHA of t.Branch)
// have run there without a break. A digest that left and came back counts from
// its return; an edit of other lines, or of the tag's text, does not begin anew.
// A directory that is new or was renamed does, for there they did not run before.
//
// What does not run one pinned digest at tip is the error of Running. Where the
// forge has no record of the time the error is ErrUntold, with the arrival beside
// it. After Limit commits the
// looking ends: then the time is that of the oldest one, and Earlier is set.
//
// It costs the files at the tip and at each commit that changed them, the log of
// each directory, a page of the branch's log for every fifty commits, one call
// for each merge, and the question when.
func Arrived(ctx context.Context, t Target, tip string) (Arrival, error) {
	a, err := t.arrived(ctx, tip)
	if err != nil {
		err = fmt.Errorf("tell since when %s runs what it runs: %w", t.Branch, err)
	}
	return a, err
}

func (t Target) arrived(ctx context.Context, tip string) (Arrival, error) {
	w, err := t.walker(tip)
	if err != nil {
		return Arrival{}, err
	}
	now, err := w.state(ctx, tip)
	if err == nil {
		err = now.problem
	}
	if err != nil {
		return Arrival{}, err
	}
	for i := 0; ; i++ {
		if i+1 == Limit {
			return w.arrival(ctx, i, now, true)
		}
		changed, err := w.changed(ctx, i)
		if err != nil {
			return Arrival{}, err
		}
		if !changed {
			continue
		}
		before, isFirst, err := w.before(ctx, i)
		if err != nil {
			return Arrival{}, err
		}
		if isFirst || !before.runs(now.images) {
			return w.arrival(ctx, i, now, false)
		}
	}
}

// before is what ran before the commit at place i; isFirst where nothing was.
func (w *walker) before(ctx context.Context, i int) (s state, isFirst bool, err error) {
	c, ok, err := w.line.at(ctx, i+1)
	if err != nil || !ok {
		return s, true, err
	}
	s, err = w.state(ctx, c.SHA)
	return s, false, err
}

// arrival tells all of the stay that began at place i.
func (w *walker) arrival(ctx context.Context, i int, s state, earlier bool) (Arrival, error) {
	c, _, err := w.line.at(ctx, i)
	if err != nil {
		return Arrival{}, err
	}
	a := Arrival{Commit: c, Images: s.images, Problem: s.problem, Earlier: earlier}
	if !earlier {
		a.Trailers = w.trailers(c, s)
	}
	a.At, a.PullRequest, err = w.when(ctx, i)
	return a, err
}

// trailers are those of the commit, or of the one that it merged, that speak of a
// digest that arrived.
func (w *walker) trailers(c scm.Commit, s state) record.Trailers {
	messages := []string{c.Message}
	for _, p := range c.Parents[min(1, len(c.Parents)):] {
		if side, ok := w.line.seen(p); ok {
			messages = append(messages, side.Message)
		}
	}
	for _, m := range messages {
		if t, ok := record.ParseTrailers(m); ok && speaksOf(t, s) {
			return t
		}
	}
	return record.Trailers{}
}

func speaksOf(t record.Trailers, s state) bool {
	for _, e := range t.Edits {
		for _, ref := range s.images {
			if e.Image.Digest == ref.Digest {
				return true
			}
		}
	}
	return false
}
