package gitea

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tagboat/scm"
)

var _ scm.Job = (*Repository)(nil)

// Starter reads the run (Gitea 1.25). Gitea has no call that tells which run a
// token is of: see scm.Job for what the answer proves. A run that was started again
// keeps who started it first, though anybody who may write can do that: then the
// answer is ErrDenied. Only its jobs tell (services/convert of 1.25 and 1.26).
func (r *Repository) Starter(ctx context.Context, j scm.JobRef) (scm.Starter, error) {
	who, err := r.starter(ctx, j.Run)
	return who, r.describe(err, "ask who started run %d", j.Run)
}

func (r *Repository) starter(ctx context.Context, id int64) (scm.Starter, error) {
	x, err := r.rawRun(ctx, id)
	if noRoute(err) {
		return scm.Starter{}, fmt.Errorf("%w: Gitea before 1.25 does not tell: %w", scm.ErrDenied, err)
	}
	if errors.Is(err, scm.ErrNotFound) {
		return scm.Starter{}, fmt.Errorf("%w: %w", scm.ErrDenied, err)
	}
	if err != nil {
		return scm.Starter{}, err
	}
	who := x.TriggerActor
	if who == nil {
		who = x.Actor
	}
	switch {
	case !strings.EqualFold(x.Repository.FullName, r.owner+"/"+r.name):
		return scm.Starter{}, fmt.Errorf("%w: it is a run of %s", scm.ErrDenied, x.Repository.FullName)
	case x.Status != "in_progress":
		return scm.Starter{}, fmt.Errorf("%w: the run is %s, not in progress", scm.ErrDenied, x.Status)
	case who == nil || who.Login == "" || who.ID == -1:
		return scm.Starter{}, fmt.Errorf("%w: Gitea does not tell who", scm.ErrDenied)
	}
	jobs, err := r.jobs(ctx, id)
	if err != nil {
		return scm.Starter{}, err
	}
	if slices.ContainsFunc(jobs, func(j runJob) bool { return j.Attempt > 1 }) {
		return scm.Starter{}, fmt.Errorf("%w: it was started again, and Gitea does not tell by whom: ask anew", scm.ErrDenied)
	}
	out := scm.Starter{Login: who.Login, Event: x.Event, URL: x.HTMLURL, Since: x.Started}
	if who.ID < 0 {
		out.Kind = scm.AuthorBot
	}
	return out, nil
}
