package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
)

// History yields the stays on t.Branch that lead to tip (a commit SHA), newest
// first: each is the commit of the first-parent line at which the directories
// began to run other digests than before, or to have another problem. What was not
// pinned, or not there, is a stay too, with its Problem. It is read only as it is
// consumed.
//
// A time that the forge does not know is left zero. A history that goes on after
// Limit commits ends in ErrTooLong.
func History(ctx context.Context, t Target, tip string) iter.Seq2[Arrival, error] {
	return func(yield func(Arrival, error) bool) {
		fail := func(err error) { yield(Arrival{}, fmt.Errorf("read the history of %s: %w", t.Branch, err)) }
		w, err := t.walker(tip)
		if err != nil {
			fail(err)
			return
		}
		now, err := w.begin(ctx)
		if err != nil {
			fail(err)
			return
		}
		for i := 0; ; i++ {
			if i == w.line.limit {
				fail(fmt.Errorf("%w: %d commits", ErrTooLong, w.line.limit))
				return
			}
			before, more, a, err := w.stay(ctx, i, now)
			if err != nil {
				fail(err)
				return
			}
			if a != nil && !yield(*a, nil) || !more {
				return
			}
			now = before
		}
	}
}

// stay looks whether one began at place i, where s ran, and tells what ran before.
func (w *walker) stay(ctx context.Context, i int, s state) (before state, more bool, a *Arrival, err error) {
	changed, err := w.changed(ctx, i)
	if err != nil || !changed {
		return s, true, nil, err
	}
	before, isFirst, err := w.before(ctx, i)
	if err != nil {
		return s, false, nil, err
	}
	if isFirst && s.absent() || !isFirst && s.same(before) {
		return before, !isFirst, nil, nil
	}
	arrival, err := w.arrival(ctx, i, s, false)
	if err != nil && !errors.Is(err, ErrUntold) {
		return s, false, nil, err
	}
	return before, !isFirst, &arrival, nil
}

// absent tells that a directory was not there.
func (s state) absent() bool { return errors.Is(s.problem, fs.ErrNotExist) }

// same tells that two states are one stay: the same digests, or a problem that
// differs in nothing but its place in the file.
func (s state) same(o state) bool {
	if s.problem == nil || o.problem == nil {
		return s.runs(o.images)
	}
	if s.absent() || o.absent() {
		return s.absent() && o.absent()
	}
	return s.problem.Error() == o.problem.Error()
}
