package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

var _ scm.Dispatcher = (*Repository)(nil)

// pipeline is what GitLab tells of one (lib/api/entities/ci/pipeline.rb).
type pipeline struct {
	ID     int64
	Name   string
	Status string
	WebURL string `json:"web_url"`
}

// pipelineBody is what both calls that start a pipeline take. Inputs need GitLab
// 17.11.
type pipelineBody struct {
	Ref    string         `json:"ref"`
	Token  string         `json:"token,omitempty"`
	Inputs map[string]any `json:"inputs,omitempty"`
}

// Dispatch starts a pipeline: with Options.TriggerToken as that token's owner (or
// as the user of the job whose token it is), else with the token itself.
func (r *Repository) Dispatch(ctx context.Context, d scm.Dispatch) (scm.Run, error) {
	what := "start a pipeline"
	if _, err := scm.InputText(d.Inputs); err != nil {
		return scm.Run{}, fmt.Errorf("%s in GitLab project %s on %s: %w", what, r.project, r.about.Host, err)
	}
	if d.Branch == "" {
		var p struct {
			Branch string `json:"default_branch"`
		}
		// The API has no word for the default branch, and a trigger token cannot read.
		if _, e := r.send(ctx, http.MethodGet, "projects/"+gl.PathEscape(r.project), nil, &p); e != nil {
			return scm.Run{}, r.fail(what+" on the default branch (name the branch where the token cannot read it)", e)
		}
		d.Branch = p.Branch
	}
	what += " on " + d.Branch
	body := pipelineBody{Ref: d.Branch, Token: r.trigger, Inputs: d.Inputs}
	path := "projects/" + gl.PathEscape(r.project) + "/pipeline"
	if r.trigger != "" {
		path = "projects/" + gl.PathEscape(r.project) + "/trigger/pipeline"
	}
	var p pipeline
	if _, e := r.send(ctx, http.MethodPost, path, body, &p); e != nil {
		return scm.Run{}, r.dispatchFail(what, e)
	}
	if p.ID == 0 {
		return scm.Run{}, r.fail(what, &refusal{kind: scm.ErrUnavailable, text: "the answer names no pipeline"})
	}
	return runOf(p), nil
}

// dispatchFail tells apart what GitLab says with 400: lib/gitlab/ci/pipeline/chain.
func (r *Repository) dispatchFail(what string, e *refusal) error {
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(e.text, p) })
	}
	switch {
	case e.status == http.StatusNotFound && r.trigger != "":
		e.hint = "the project is not there, the trigger token is wrong or another project's, or the job's user cannot see the project"
	case e.status == http.StatusUnauthorized && r.trigger != "":
		e.hint = "the job token is not valid any more, or the project's job token allowlist does not have the job's project"
	case e.status != http.StatusBadRequest:
	case says("Reference not found"):
		e.kind = scm.ErrNotFound
	case says("Missing CI config file", "Missing .gitlab-ci.yml"):
		e.kind, e.hint = scm.ErrNotFound, "the branch has no .gitlab-ci.yml"
	case says("Insufficient permissions", "sufficient permission"):
		e.kind, e.hint = scm.ErrDenied, "it needs the role Developer, and on a protected branch the right to merge or push there"
	case says("input", "`spec`"):
		e.kind, e.hint = scm.ErrRefused, "compare with spec:inputs of the branch's .gitlab-ci.yml (GitLab 17.11 or later)"
	default: // no jobs by its rules, pipelines are off, an invalid file
		e.kind = scm.ErrRefused
	}
	return r.fail(what, e)
}

// Run reads a pipeline.
func (r *Repository) Run(ctx context.Context, id int64) (scm.Run, error) {
	var p pipeline
	_, e := r.send(ctx, http.MethodGet, fmt.Sprintf("projects/%s/pipelines/%d", gl.PathEscape(r.project), id), nil, &p)
	if e == nil && p.ID != id {
		e = &refusal{kind: scm.ErrUnavailable, text: "the answer names another pipeline"}
	}
	if e != nil {
		return scm.Run{}, r.fail(fmt.Sprintf("look at pipeline %d", id), e)
	}
	return runOf(p), nil
}

// runOf judges the words of app/models/concerns/ci/has_status.rb.
func runOf(p pipeline) scm.Run {
	run := scm.Run{ID: p.ID, State: scm.RunQueued, Word: p.Status, URL: p.WebURL, Title: p.Name}
	switch p.Status {
	case "running", "canceling":
		run.State = scm.RunRunning
	case "success":
		run.State = scm.RunSuccess
	case "failed", "canceled", "skipped":
		run.State = scm.RunFailure
	}
	return run
}

// Output reads the jobs' traces.
func (r *Repository) Output(ctx context.Context, id int64) (string, error) {
	what := fmt.Sprintf("read the log of pipeline %d", id)
	project := "projects/" + gl.PathEscape(r.project)
	type job struct {
		ID        int64
		StartedAt *time.Time `json:"started_at"`
	}
	jobs, e := pages(func(o gl.ListOptions) (list []job, resp *gl.Response, err error) {
		req, err := r.api.NewRequest(http.MethodGet, fmt.Sprintf("%s/pipelines/%d/jobs", project, id), o, []gl.RequestOptionFunc{gl.WithContext(ctx)})
		if err != nil {
			return nil, nil, err
		}
		resp, err = r.api.Do(req, &list)
		return list, resp, err
	}, r.explain)
	if e != nil {
		return "", r.fail(what, e)
	}
	jobs = slices.DeleteFunc(jobs, func(j job) bool { return j.StartedAt == nil })
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Or(a.StartedAt.Compare(*b.StartedAt), cmp.Compare(a.ID, b.ID)) })
	var log strings.Builder
	for _, j := range jobs {
		in, out := io.Pipe()
		text, read := make(chan string, 1), make(chan error, 1)
		go func() {
			t, err := scm.Tail(in)
			text <- t
			read <- err
		}()
		_, e := r.send(ctx, http.MethodGet, fmt.Sprintf("%s/jobs/%d/trace", project, j.ID), nil, out)
		_ = out.Close()
		log.WriteString(<-text)
		if err := <-read; e == nil && err != nil {
			e = r.unanswered(err)
		}
		if e != nil {
			return "", r.fail(what, e)
		}
	}
	return log.String(), nil
}
