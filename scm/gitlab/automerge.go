package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// looks is how often a merge request is looked at until GitLab has prepared it: at
// once, and after 1, 4, 9, 16 and 25 quarters of a second (14 s in all).
const looks = 6

// autoMerge asks GitLab to merge once everything is met, bound to the head commit.
//
// Right after a push GitLab has neither judged the merge request nor made its
// pipeline, and answers 405; asked to auto-merge without a pipeline it may also
// merge at once. So it waits for both. A project that makes no pipeline and wants
// none has nothing to wait for: then it is merged now. The refusals' statuses
// differ between versions (405, 406, 422), so the reason given is always
// detailed_merge_status as read afterwards.
func (r *Repository) autoMerge(ctx context.Context, m *gl.MergeRequest, head string) (*gl.MergeRequest, error) {
	what := fmt.Sprintf("set auto-merge of merge request !%d", m.IID)
	var last *refusal
	for n := range looks {
		if err := r.wait(ctx, n); err != nil {
			return m, r.fail(what, r.unanswered(err))
		}
		seen, e := r.get(ctx, m.IID)
		if e != nil {
			return m, r.fail(what, e)
		}
		m = seen
		final := n == looks-1
		if state(m) == scm.Merged && m.SHA == head {
			return m, nil
		}
		if state(m) != scm.Open {
			return m, r.fail(what, &refusal{kind: scm.ErrMoved, text: "it is " + m.State})
		}
		if m.MergeWhenPipelineSucceeds && m.SHA == head {
			return m, nil // set for this head: a push would have cancelled it
		}
		if !final && !prepared(m, head) {
			continue
		}
		done, e := r.accepts(ctx, m, head)
		if e == nil {
			return done, nil
		}
		last = e
		if !retriable(e) {
			break
		}
	}
	return m, r.fail(what, r.whyNot(ctx, m.IID, last))
}

func (r *Repository) wait(ctx context.Context, n int) error {
	if n == 0 {
		return ctx.Err()
	}
	return r.sleep(ctx, time.Duration(n*n)*time.Second/4)
}

// prepared: GitLab has seen the push, judged the merge request, and made the
// pipeline.
func prepared(m *gl.MergeRequest, head string) bool {
	if judging(m) || m.DetailedMergeStatus == "" && !mergeable(m) {
		return false
	}
	return m.SHA == head && (m.Pipeline != nil || m.HeadPipeline != nil)
}

// mergeable is GitLab's own judgement; before 15.6 it left the pipeline out, which
// the merge itself does not.
func mergeable(m *gl.MergeRequest) bool {
	return m.DetailedMergeStatus == "mergeable" || m.DetailedMergeStatus == "" && m.MergeStatus == "can_be_merged" //nolint:staticcheck // all that it had
}

// mergeOptions has auto_merge, which go-gitlab lacks, beside its deprecated name.
// GitLab ignores the one that it does not know and takes either
// (lib/api/merge_requests.rb), so its version need not be asked.
type mergeOptions struct {
	AutoMerge                 bool   `json:"auto_merge,omitempty"`
	MergeWhenPipelineSucceeds bool   `json:"merge_when_pipeline_succeeds,omitempty"`
	SHA                       string `json:"sha"`
}

func (r *Repository) accepts(ctx context.Context, m *gl.MergeRequest, head string) (*gl.MergeRequest, *refusal) {
	later := m.Pipeline != nil || m.HeadPipeline != nil || !mergeable(m)
	return r.put(ctx, m, mergeOptions{AutoMerge: later, MergeWhenPipelineSucceeds: later, SHA: head})
}

func (r *Repository) put(ctx context.Context, m *gl.MergeRequest, opt mergeOptions) (*gl.MergeRequest, *refusal) {
	path := fmt.Sprintf("projects/%s/merge_requests/%d/merge", gl.PathEscape(r.project), m.IID)
	req, err := r.api.NewRequest(http.MethodPut, path, opt, []gl.RequestOptionFunc{gl.WithContext(ctx)})
	if err != nil {
		return nil, r.unanswered(err)
	}
	done := new(gl.MergeRequest)
	resp, err := r.api.Do(req, done)
	return done, r.explain(resp, err)
}

func retriable(e *refusal) bool {
	return e.status == http.StatusMethodNotAllowed || e.status == http.StatusNotAcceptable || e.status == http.StatusUnprocessableEntity
}

// whyNot says in words what stands in the way.
func (r *Repository) whyNot(ctx context.Context, number int, e *refusal) *refusal {
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.kind, e.hint = scm.ErrDenied, "the token's user may not merge into the base branch: see the branch's protection, allowed to merge"
		return e
	case http.StatusConflict:
		e.kind, e.hint = scm.ErrMoved, "the head branch moved meanwhile"
		return e
	}
	if !retriable(e) {
		return e
	}
	e.kind = scm.ErrRefused
	m, failed := r.get(ctx, number)
	if failed != nil {
		e.hint = "why is not known"
		return e
	}
	e.text = "detailed_merge_status is " + m.DetailedMergeStatus
	if m.DetailedMergeStatus == "" {
		e.text = "merge_status is " + m.MergeStatus //nolint:staticcheck // all that it had
	}
	if m.MergeError != "" {
		e.text += " (" + r.transport.Redact(m.MergeError) + ")"
	}
	e.hint = mergeStatus(m.DetailedMergeStatus)
	if m.Pipeline == nil && m.HeadPipeline == nil {
		e.hint += "; no pipeline appeared for the merge request: does the project's CI make one?"
	}
	return e
}

// mergeStatus explains detailed_merge_status
// (docs.gitlab.com/api/merge_requests, "Merge status").
func mergeStatus(status string) string {
	switch status {
	case "broken_status", "conflict":
		return "it conflicts with the base branch"
	case "ci_must_pass":
		return "a pipeline must succeed first, and it failed or was not made"
	case "ci_still_running":
		return "the pipeline is still running"
	case "discussions_not_resolved":
		return "discussions must be resolved first"
	case "draft_status":
		return "it is a draft"
	case "external_status_checks", "status_checks_must_pass":
		return "external status checks must pass first"
	case "need_rebase":
		return "it must be rebased first"
	case "not_approved":
		return "it needs approval first, and this GitLab cannot wait for it (from 17.x on it can)"
	case "requested_changes":
		return "a reviewer asked for changes"
	case "policies_denied", "security_policy_violations":
		return "a security policy denies it"
	case "commits_status":
		return "its source branch must exist and hold commits"
	case "mergeable":
		return "GitLab refused although it calls it mergeable"
	}
	return "see the merge request"
}
