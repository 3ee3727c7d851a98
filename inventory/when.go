package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tagboat/scm"
)

// recordsAsked is for how many commits a forge is asked for a time: those of one
// push have one record, at the newest of them.
const recordsAsked = 20

// when tells when the branch came to be at the commit at place i of its line, by
// the forge's clock, and the pull request that brought it. A commit that the forge
// has no record of came with a newer one, or before it: that one's time is taken.
func (w *walker) when(ctx context.Context, i int) (time.Time, *scm.PullRequest, error) {
	name := w.Repo.About().Name
	e, ok := w.Repo.(scm.Evidence)
	if !ok {
		return time.Time{}, nil, fmt.Errorf("%w: %s is plain git, which knows no time that its committers could not write", ErrUntold, name)
	}
	for k := i; k >= 0 && k > i-recordsAsked; k-- {
		c, _, err := w.line.at(ctx, k)
		if err != nil {
			return time.Time{}, nil, err
		}
		at, pr, err := w.recorded(ctx, e, c, k)
		if err == nil || !errors.Is(err, scm.ErrNotFound) {
			return at, pr, err
		}
	}
	c, _, err := w.line.at(ctx, i)
	if err != nil {
		return time.Time{}, nil, err
	}
	return time.Time{}, nil, fmt.Errorf("%w: %s has no record of when %s came to %s: promote by pull requests, or push one commit at a time", ErrUntold, name, short(c.SHA), w.Branch)
}

// recorded is the forge's record of a commit of the line: a pull request whose
// merge made it, or made a later state of the line, else a push. That a pull
// request has the commit is not enough: its merge may be another commit, of a time
// when the branch did not hold this one.
func (w *walker) recorded(ctx context.Context, e scm.Evidence, c scm.Commit, place int) (time.Time, *scm.PullRequest, error) {
	pr, err := e.Merged(ctx, c.SHA)
	switch {
	case err == nil && pr.Base == w.Branch && !pr.MergedAt.IsZero() && w.upTo(pr.MergeCommit, place):
		return pr.MergedAt, &pr, nil
	case err != nil && !errors.Is(err, scm.ErrNotFound):
		return time.Time{}, nil, err
	}
	p, ok := e.(pushes)
	if !ok {
		return time.Time{}, nil, scm.ErrNotFound
	}
	at, err := p.Pushed(ctx, w.Branch, c.SHA)
	if err == nil && at.IsZero() {
		err = scm.ErrNotFound
	}
	return at, nil, err
}

// pushes is a forge that keeps a record of pushes.
type pushes interface {
	Pushed(ctx context.Context, branch, commit string) (time.Time, error)
}

// upTo tells that a commit is on the line, not below a place.
func (w *walker) upTo(sha string, place int) bool {
	at := w.line.place(sha)
	return at >= 0 && at <= place
}
