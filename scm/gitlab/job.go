package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

var _ scm.Job = (*Repository)(nil)

// jobAnswer is what GitLab tells of the job that a job token is of
// (lib/api/entities/ci/job_basic.rb).
type jobAnswer struct {
	Status string
	WebURL string `json:"web_url"`
	User   struct {
		Username string
		Bot      bool
	}
	Pipeline struct {
		ProjectID int `json:"project_id"`
		Source    string
		CreatedAt time.Time `json:"created_at"`
	}
}

// Starter asks GET /job with the job's own token, which proves which job it is:
// GITLAB_USER_LOGIN and its like can be overridden by whoever starts a pipeline
// (docs.gitlab.com/ci/variables, "Predefined variables"). The job must be one of
// this project: one of another project may run what somebody else wrote.
func (r *Repository) Starter(ctx context.Context, j scm.JobRef) (scm.Starter, error) {
	const what = "ask who started this job"
	if j.Token == "" {
		return scm.Starter{}, r.fail(what, &refusal{kind: scm.ErrDenied, text: "there is no CI_JOB_TOKEN"})
	}
	job, e := r.currentJob(ctx, j.Token)
	if e != nil {
		return scm.Starter{}, r.fail(what, e)
	}
	id, e := r.projectID(ctx)
	switch {
	case e != nil:
		return scm.Starter{}, r.fail(what, e)
	case job.Pipeline.ProjectID != id:
		e = &refusal{kind: scm.ErrDenied, text: "the job is one of another project: " + job.WebURL}
	case job.Status != "running":
		e = &refusal{kind: scm.ErrDenied, text: "the job is " + job.Status + ", not running"}
	case job.User.Username == "":
		e = &refusal{kind: scm.ErrDenied, text: "GitLab does not tell who"}
	}
	if e != nil {
		return scm.Starter{}, r.fail(what, e)
	}
	who := scm.Starter{Login: job.User.Username, Kind: scm.AuthorPerson, Event: job.Pipeline.Source, URL: job.WebURL, Since: job.Pipeline.CreatedAt}
	if job.User.Bot {
		who.Kind = scm.AuthorBot
	}
	return who, nil
}

// currentJob asks with the job's token in place of the project's.
func (r *Repository) currentJob(ctx context.Context, token string) (jobAnswer, *refusal) {
	var job jobAnswer
	ctx = context.WithValue(ctx, jobToken{}, token)
	_, e := r.send(ctx, http.MethodGet, "job", nil, &job)
	if e != nil && (e.status == http.StatusNotFound || e.status == http.StatusUnauthorized) {
		e.kind, e.hint = scm.ErrDenied, "CI_JOB_TOKEN is not that of a running job"
	}
	return job, e
}

// jobToken is a context's token that is sent in place of the project's.
type jobToken struct{}

// withJobToken sends a context's job token.
func withJobToken(next func(*http.Request) error) func(*http.Request) error {
	return func(req *http.Request) error {
		if err := next(req); err != nil {
			return err
		}
		if token, ok := req.Context().Value(jobToken{}).(string); ok {
			req.Header.Del("PRIVATE-TOKEN")
			req.Header.Del("Authorization")
			req.Header.Set("JOB-TOKEN", token)
		}
		return nil
	}
}

// projectID is the number of the project.
func (r *Repository) projectID(ctx context.Context) (int, *refusal) {
	var p struct{ ID int }
	_, e := r.send(ctx, http.MethodGet, "projects/"+gl.PathEscape(r.project), nil, &p)
	if e == nil && p.ID == 0 {
		e = r.unanswered(fmt.Errorf("%w: %w", scm.ErrUnavailable, errors.New("the answer names no project")))
	}
	return p.ID, e
}
