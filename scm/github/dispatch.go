package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

var _ scm.Dispatcher = (*Repository)(nil)

const runNeeds = "actions:write"

// dispatchBody is what POST dispatches takes. GitHub Enterprise Server up to 3.19
// does not know the last field.
type dispatchBody struct {
	Ref     string            `json:"ref"`
	Inputs  map[string]string `json:"inputs,omitempty"`
	Details bool              `json:"return_run_details,omitempty"`
}

// Dispatch asks for the run's id in the same call. Where the server does not tell
// it, or the answer was lost, the newest runs are looked at for the mark.
func (r *Repository) Dispatch(ctx context.Context, d scm.Dispatch) (scm.Run, error) {
	ctx = needing(ctx, rightsToRun)
	doing := "ask for workflow " + d.Workflow
	inputs, err := scm.InputText(d.Inputs)
	if err == nil && !slug.MatchString(d.Workflow) {
		err = fmt.Errorf("%q is no file name", d.Workflow)
	}
	if err != nil {
		return scm.Run{}, fmt.Errorf("%s: %s: %w", r.fullName(), doing, err)
	}
	if d.Branch == "" {
		if d.Branch, err = r.defaultBranch(ctx); err != nil {
			return scm.Run{}, r.fault(doing, err)
		}
	}
	id, err := r.dispatch(ctx, d.Workflow, dispatchBody{Ref: d.Branch, Inputs: inputs, Details: true})
	switch {
	case err == nil && id != 0:
		return r.Run(ctx, id)
	case err != nil && !ambiguous(err):
		return scm.Run{}, r.dispatchFault(doing, d, err)
	}
	run, found, unread := r.marked(ctx, d)
	switch {
	case found:
		return run, nil
	case err != nil: // it is not known whether it was accepted
		return scm.Run{}, r.dispatchFault(doing, d, err)
	case unread != nil: // it was accepted, which is what matters
		r.note("the run of " + d.Workflow + " was asked for, but cannot be looked up: " + unread.Error())
	}
	return scm.Run{State: scm.RunQueued, URL: r.web + "/actions/workflows/" + d.Workflow}, nil
}

func (r *Repository) defaultBranch(ctx context.Context) (string, error) {
	var out github.Repository
	_, err := r.get(ctx, "", nil, &out)
	if err == nil && out.GetDefaultBranch() == "" {
		err = errEmptyAnswer
	}
	return out.GetDefaultBranch(), err
}

// dispatch gives the id of the run, or 0 where the server does not tell it.
func (r *Repository) dispatch(ctx context.Context, workflow string, body dispatchBody) (int64, error) {
	var out struct {
		ID int64 `json:"workflow_run_id"`
	}
	at := "actions/workflows/" + url.PathEscape(workflow) + "/dispatches"
	err := r.send(ctx, http.MethodPost, at, body, &out)
	a, _ := answerOf(err)
	if body.Details && (a.has(http.StatusUnprocessableEntity, "return_run_details") || a.has(http.StatusBadRequest, "return_run_details")) {
		body.Details = false
		return r.dispatch(ctx, workflow, body)
	}
	return out.ID, err
}

// marked finds the newest run whose name has the mark. A run may be listed some
// seconds after it was accepted.
func (r *Repository) marked(ctx context.Context, d scm.Dispatch) (scm.Run, bool, error) {
	if d.Mark == "" {
		return scm.Run{}, false, nil
	}
	query := url.Values{"event": {"workflow_dispatch"}, "branch": {d.Branch}, "per_page": {"100"}}
	for attempt := 0; ; attempt++ {
		var list github.WorkflowRuns
		_, err := r.get(ctx, "actions/workflows/"+url.PathEscape(d.Workflow)+"/runs", query, &list)
		if err != nil {
			return scm.Run{}, false, err
		}
		for _, run := range list.WorkflowRuns {
			if strings.Contains(run.GetDisplayTitle(), d.Mark) {
				return runOf(run), true, nil
			}
		}
		if attempt == lagAttempts {
			return scm.Run{}, false, nil
		}
		if err := r.sleep(ctx, 2*lagPause<<attempt); err != nil {
			return scm.Run{}, false, err
		}
	}
}

// dispatchFault tells apart what GitHub says with 404 and 422.
func (r *Repository) dispatchFault(doing string, d scm.Dispatch, err error) error {
	a, _ := answerOf(err)
	const bad = http.StatusUnprocessableEntity
	switch {
	case a.has(bad, "No ref found"):
		return r.refusal(doing, a, scm.ErrNotFound)
	case a.has(bad, "does not have 'workflow_dispatch' trigger"):
		return fmt.Errorf("%w; add workflow_dispatch to its on:, on the default branch and on %s", r.refusal(doing, a, scm.ErrRefused), d.Branch)
	case a.has(bad, "Unexpected inputs", "Required input"):
		return fmt.Errorf("%w; compare with workflow_dispatch.inputs of .github/workflows/%s on %s", r.refusal(doing, a, scm.ErrRefused), d.Workflow, d.Branch)
	case a.has(bad, "disabled workflow"):
		return fmt.Errorf("%w; enable it on the repository's Actions page (GitHub disables one with a schedule after 60 quiet days)", r.refusal(doing, a, scm.ErrRefused))
	case a.status == http.StatusNotFound:
		return fmt.Errorf("%s: %s: %w; there is no .github/workflows/%s on the default branch, or the token cannot see the repository (GitHub says 404 to both)",
			r.fullName(), doing, r.statusError(a, scm.ErrNotFound), d.Workflow)
	}
	return r.evidenceFault(doing, err, runNeeds)
}

// Run reads a run.
func (r *Repository) Run(ctx context.Context, id int64) (scm.Run, error) {
	run, err := r.workflowRun(needing(ctx, rightsToRun), id)
	if err != nil {
		return scm.Run{}, r.evidenceFault(fmt.Sprintf("look at run %d", id), err, "actions:read")
	}
	return runOf(run), nil
}

func (r *Repository) workflowRun(ctx context.Context, id int64) (*github.WorkflowRun, error) {
	run, _, err := r.api().Actions.GetWorkflowRunByID(ctx, r.owner, r.name, id)
	if err == nil && run.GetID() != id {
		err = errEmptyAnswer
	}
	return run, err
}

func runOf(run *github.WorkflowRun) scm.Run {
	out := scm.Run{ID: run.GetID(), State: scm.RunQueued, Word: run.GetStatus(), URL: run.GetHTMLURL(), Title: run.GetDisplayTitle()}
	switch out.Word {
	case "in_progress":
		out.State = scm.RunRunning
	case "completed":
		out.Word, out.State = run.GetConclusion(), scm.RunFailure
		if out.Word == "success" {
			out.State = scm.RunSuccess
		}
	}
	return out
}

// Output reads the logs of the last attempt's jobs. They lie on another host, which
// gets no credential.
func (r *Repository) Output(ctx context.Context, id int64) (string, error) {
	ctx = needing(ctx, rightsToRun)
	doing := fmt.Sprintf("read the log of run %d", id)
	jobs, err := pages(func(o github.ListOptions) ([]*github.WorkflowJob, *github.Response, error) {
		page, resp, err := r.api().Actions.ListWorkflowJobs(ctx, r.owner, r.name, id, &github.ListWorkflowJobsOptions{Filter: "latest", ListOptions: o})
		if err != nil {
			return nil, nil, err
		}
		return page.Jobs, resp, nil
	})
	if err != nil {
		return "", r.evidenceFault(doing, err, "actions:read")
	}
	slices.SortStableFunc(jobs, func(a, b *github.WorkflowJob) int {
		return cmp.Or(a.GetStartedAt().Compare(b.GetStartedAt().Time), cmp.Compare(a.GetID(), b.GetID()))
	})
	var log strings.Builder
	for _, j := range jobs {
		text, err := r.jobLog(ctx, j.GetID())
		if err != nil {
			return "", r.evidenceFault(fmt.Sprintf("%s: job %s", doing, j.GetName()), err, "actions:read")
		}
		log.WriteString(text)
	}
	return log.String(), nil
}

// jobLog asks again for a log that is not there yet: it comes some seconds after
// the job has ended.
func (r *Repository) jobLog(ctx context.Context, job int64) (string, error) {
	for attempt := 0; ; attempt++ {
		text, err := r.fetchLog(ctx, job)
		var refused *github.ErrorResponse
		if err == nil || !errors.As(err, &refused) || refused.Response.StatusCode != http.StatusNotFound || attempt == lagAttempts {
			return text, err
		}
		if err := r.sleep(ctx, 2*lagPause<<attempt); err != nil {
			return "", err
		}
	}
}

func (r *Repository) fetchLog(ctx context.Context, job int64) (string, error) {
	req, err := r.api().NewRequest(http.MethodGet, fmt.Sprintf("repos/%s/%s/actions/jobs/%d/logs", r.owner, r.name, job), nil)
	if err != nil {
		return "", err
	}
	resp, err := r.http.Do(req.WithContext(ctx))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := github.CheckResponse(resp); err != nil {
		return "", err
	}
	return scm.Tail(resp.Body)
}
