package inventory

import (
	"context"
	"errors"
	"fmt"
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
	now, err := w.begin(ctx)
	if err == nil {
		err = now.problem
	}
	if err != nil {
		return Arrival{}, err
	}
	for i := 0; ; i++ {
		if i+1 == w.line.limit {
			return w.arrival(ctx, i, now, true)
		}
		if a, err := w.enough(ctx, i, now); err != nil || a != nil {
			return deref(a), err
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

// enough is the stay up to the commit at place i, where that is as far back as is
// asked for. That a committer says so is a reason to ask the forge, no more: the
// next time it is asked as far behind.
func (w *walker) enough(ctx context.Context, i int, s state) (*Arrival, error) {
	c, ok, err := w.line.at(ctx, i)
	if err != nil || !ok || w.Enough.IsZero() || c.Time.After(w.Enough) || i < w.askAt {
		return nil, err
	}
	w.askAt = 2*i + 1
	a, err := w.arrival(ctx, i, s, true)
	if errors.Is(err, ErrUntold) || err == nil && a.At.After(w.Enough) {
		return nil, nil
	}
	return &a, err
}

func deref(a *Arrival) Arrival {
	if a == nil {
		return Arrival{}
	}
	return *a
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
	a.At, a.PullRequest, err = w.when(ctx, i)
	if err == nil && earlier {
		a.PullRequest = nil // it brought something else
	}
	if earlier || err != nil && !errors.Is(err, ErrUntold) {
		return a, err
	}
	var unread error
	if a.Trailers, unread = w.trailers(ctx, a); unread != nil {
		return a, unread
	}
	return a, err
}
