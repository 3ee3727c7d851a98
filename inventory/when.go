package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tagboat/scm"
)

// mergesAsked is of how many commits a forge is asked what merged them.
const mergesAsked = 20

// when tells when the branch came to be at the commit at place i of its line, by
// the forge's clock, and the pull request that brought it: by its merge, else by
// the forge's record of pushes. Where the forge knows neither, the next newer
// commit that a pull request brought tells: the branch had this one then.
//
// A branch that was forced away from a merged commit, and back, is not seen: the
// merge's time stands.
func (w *walker) when(ctx context.Context, i int) (time.Time, *scm.PullRequest, error) {
	name := w.Repo.About().Name
	e, ok := w.Repo.(scm.Evidence)
	if !ok {
		return time.Time{}, nil, fmt.Errorf("%w: %s is plain git, which knows no time that its committers could not write", ErrUntold, name)
	}
	c, _, err := w.line.at(ctx, i)
	if err != nil {
		return time.Time{}, nil, err
	}
	var unknown error
	for k := i; k >= 0 && k > i-mergesAsked; k-- {
		pr, err := w.merged(ctx, e, i, k)
		if err != nil {
			return time.Time{}, nil, err
		}
		switch {
		case pr != nil && k == i:
			return pr.MergedAt, pr, nil
		case pr != nil: // it tells the time, but nobody says that it brought this commit too
			return pr.MergedAt, nil, nil
		case k != i:
			continue
		}
		at, err := e.Pushed(ctx, w.Branch, c.SHA)
		if err == nil || !errors.Is(err, scm.ErrNotFound) {
			return at, nil, err
		}
		unknown = err
	}
	return time.Time{}, nil, fmt.Errorf("%w: when %s came to %s of %s: %w", ErrUntold, short(c.SHA), w.Branch, name, unknown)
}

// merged is the pull request that brought the commit at place k to the branch, not
// before the one at place i was there; nil where none did.
//
// That a pull request has the commit is not enough. Its merge may have made another
// one, at a time when the branch did not hold this: it must be on the line, and not
// below i.
func (w *walker) merged(ctx context.Context, e scm.Evidence, i, k int) (*scm.PullRequest, error) {
	c, _, err := w.line.at(ctx, k)
	if err != nil {
		return nil, err
	}
	pr, err := e.Merged(ctx, c.SHA)
	if errors.Is(err, scm.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	made := w.line.place(pr.MergeCommit)
	if pr.Base != w.Branch || pr.MergedAt.IsZero() || made < 0 || made > i {
		return nil, nil
	}
	return &pr, nil
}
