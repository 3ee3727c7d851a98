package gitea

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tagboat/scm"
)

var _ scm.Dispatcher = (*Repository)(nil)

// run is Gitea's (modules/structs/repo_actions.go).
type run struct {
	ID         int64
	HTMLURL    string `json:"html_url"`
	Title      string `json:"display_title"`
	Event      string
	Status     string
	Conclusion string
	Started    time.Time `json:"started_at"`
	Repository struct {
		FullName string `json:"full_name"`
	}
	Actor        *actor
	TriggerActor *actor `json:"trigger_actor"`
}

type actor struct {
	ID    int64
	Login string
}

// Dispatch checks trigger and inputs itself, for Gitea runs a workflow without the
// trigger and drops inputs that are not declared (services/actions/workflow.go of
// 1.26). It needs Gitea 1.25, in which a job can be told who asked for it, and 1.26 to be
// told which run it became.
func (r *Repository) Dispatch(ctx context.Context, d scm.Dispatch) (scm.Run, error) {
	out, err := r.dispatch(ctx, d)
	return out, r.describe(err, "ask for workflow %s", d.Workflow)
}

func (r *Repository) dispatch(ctx context.Context, d scm.Dispatch) (scm.Run, error) {
	inputs, err := scm.InputText(d.Inputs)
	if err != nil {
		return scm.Run{}, err
	}
	if !segment(d.Workflow) {
		return scm.Run{}, fmt.Errorf("%q is no file name", d.Workflow)
	}
	tip, err := r.Tip(ctx, d.Branch)
	if err != nil {
		return scm.Run{}, err
	}
	if f, err := r.features(ctx); err != nil || !f.runs {
		return scm.Run{}, cmp.Or(err, fmt.Errorf("%w: it needs Gitea 1.25 or later: this server says %q, and tells no job who started it", scm.ErrUnsupported, r.knownVersion()))
	}
	d.Branch = tip.Branch
	if err := r.checkWorkflow(ctx, tip, d.Workflow, inputs); err != nil {
		return scm.Run{}, err
	}
	var details struct {
		ID int64 `json:"workflow_run_id"`
	}
	_, err = r.repoCall(ctx, request{
		method: http.MethodPost, path: "/actions/workflows/" + url.PathEscape(d.Workflow) + "/dispatches",
		query: url.Values{"return_run_details": {"true"}}, in: map[string]any{"ref": d.Branch, "inputs": inputs}, out: &details,
	})
	switch {
	case err == nil && details.ID != 0:
		return r.readRun(ctx, details.ID)
	case err != nil && !ambiguous(err):
		return scm.Run{}, r.dispatchFault(err)
	}
	if found, ok := r.marked(ctx, d); ok {
		return found, nil
	}
	if err != nil { // it is not known whether it was accepted
		return scm.Run{}, err
	}
	return scm.Run{State: scm.RunQueued, URL: r.About().URL + "/actions?workflow=" + url.QueryEscape(d.Workflow)}, nil
}

// dispatchFault says what else a 404 means here.
func (r *Repository) dispatchFault(err error) error {
	switch {
	case statusOf(err) == http.StatusNotFound && !says(err, http.StatusNotFound, "doesn't exist"):
		return fmt.Errorf("%w; it needs Gitea 1.25 or later with Actions turned on for the repository", err)
	case says(err, http.StatusForbidden, "disabled"):
		return fmt.Errorf("%w; enable it on the repository's Actions page", err)
	}
	return err
}

// marked finds the newest run whose name has the mark, where the server lists runs
// (Gitea 1.25).
func (r *Repository) marked(ctx context.Context, d scm.Dispatch) (scm.Run, bool) {
	if d.Mark == "" {
		return scm.Run{}, false
	}
	var out struct {
		Runs []run `json:"workflow_runs"`
	}
	query := paged(url.Values{"event": {"workflow_dispatch"}, "branch": {d.Branch}}, 1)
	if _, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/actions/runs", query: query, out: &out}); err != nil {
		return scm.Run{}, false // it was accepted, which is what matters
	}
	for _, x := range out.Runs {
		if strings.Contains(x.Title, d.Mark) {
			return runOf(x), true
		}
	}
	return scm.Run{}, false
}

// Run reads a run. Gitea knows that call since 1.25.
func (r *Repository) Run(ctx context.Context, id int64) (scm.Run, error) {
	out, err := r.readRun(ctx, id)
	return out, r.describe(err, "look at run %d", id)
}

func (r *Repository) readRun(ctx context.Context, id int64) (scm.Run, error) {
	x, err := r.rawRun(ctx, id)
	return runOf(x), err
}

func (r *Repository) rawRun(ctx context.Context, id int64) (run, error) {
	var x run
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/actions/runs/" + strconv.FormatInt(id, 10), out: &x})
	if err == nil && x.ID != id {
		err = fmt.Errorf("%w: the answer names run %d", scm.ErrUnavailable, x.ID)
	}
	return x, err
}

func runOf(x run) scm.Run {
	out := scm.Run{ID: x.ID, State: scm.RunQueued, Word: x.Status, URL: x.HTMLURL, Title: x.Title}
	switch x.Status {
	case "in_progress":
		out.State = scm.RunRunning
	case "completed":
		out.Word, out.State = x.Conclusion, scm.RunFailure
		if x.Conclusion == "success" {
			out.State = scm.RunSuccess
		}
	}
	return out
}

// Output reads the logs of the run's jobs.
func (r *Repository) Output(ctx context.Context, id int64) (string, error) {
	text, err := r.output(ctx, id)
	return text, r.describe(err, "read the log of run %d", id)
}

// runJob is a job of a run.
type runJob struct {
	ID      int64
	Started time.Time `json:"started_at"`
	Attempt int       `json:"run_attempt"` // from 1
}

func (r *Repository) jobs(ctx context.Context, run int64) ([]runJob, error) {
	var out struct{ Jobs []runJob }
	at := "/actions/runs/" + strconv.FormatInt(run, 10) + "/jobs"
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: at, query: paged(url.Values{}, 1), out: &out})
	return out.Jobs, err
}

func (r *Repository) output(ctx context.Context, id int64) (string, error) {
	jobs, err := r.jobs(ctx, id)
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(jobs, func(a, b runJob) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	var log strings.Builder
	for _, j := range jobs {
		path := "/repos/" + url.PathEscape(r.owner) + "/" + url.PathEscape(r.name) + "/actions/jobs/" + strconv.FormatInt(j.ID, 10) + "/logs"
		_, body, err := r.fetch(ctx, request{method: http.MethodGet, path: path}, answerLimit)
		if errors.Is(err, scm.ErrNotFound) && len(jobs) > 1 { // one that was skipped has none
			continue
		}
		if err != nil {
			return "", err
		}
		text, err := scm.Tail(bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		log.WriteString(text)
	}
	return log.String(), nil
}
