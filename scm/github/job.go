package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"tagboat/scm"
)

var _ scm.Job = (*Repository)(nil)

// Starter reads the run. GitHub has no call that tells which run a token is of:
// see scm.Job for what the answer proves. A run that was started again has the
// one who did that as its triggering actor, with the rights of the first.
func (r *Repository) Starter(ctx context.Context, j scm.JobRef) (scm.Starter, error) {
	doing := fmt.Sprintf("ask who started run %d", j.Run)
	run, err := r.workflowRun(needing(ctx, rightsToFollow), j.Run)
	if a, ok := answerOf(err); ok && a.status == http.StatusNotFound {
		return scm.Starter{}, r.refusal(doing, a, scm.ErrDenied)
	}
	if err != nil {
		return scm.Starter{}, r.evidenceFault(doing, err, "actions:read")
	}
	who := run.GetTriggeringActor()
	if who == nil {
		who = run.GetActor()
	}
	why := ""
	switch {
	case !strings.EqualFold(run.GetRepository().GetFullName(), r.fullName()):
		why = "it is a run of " + run.GetRepository().GetFullName()
	case run.GetStatus() != "in_progress":
		why = "the run is " + run.GetStatus() + ", not in progress"
	case who.GetLogin() == "":
		why = "GitHub does not tell who"
	}
	if why != "" {
		return scm.Starter{}, fmt.Errorf("%s: %s: %w: %s", r.fullName(), doing, scm.ErrDenied, why)
	}
	return scm.Starter{Login: who.GetLogin(), Kind: kindOf(who), Event: run.GetEvent(), URL: run.GetHTMLURL(), Since: run.GetCreatedAt().Time}, nil
}
