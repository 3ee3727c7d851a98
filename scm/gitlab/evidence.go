package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

var _ scm.Evidence = (*Repository)(nil)

// Statuses are GitLab's commit statuses, which its own jobs are too.
func (r *Repository) Statuses(ctx context.Context, commit string) ([]scm.Status, error) {
	what := "read the statuses of " + short(commit)
	all, e := pages(func(o gl.ListOptions) ([]*gl.CommitStatus, *gl.Response, error) {
		return r.api.Commits.GetCommitStatuses(r.project, commit, &gl.GetCommitStatusesOptions{ListOptions: o}, gl.WithContext(ctx))
	}, r.explain)
	if e != nil {
		return nil, r.fail(what, e)
	}
	slices.SortFunc(all, func(a, b *gl.CommitStatus) int { return cmp.Compare(a.ID, b.ID) })
	var list []scm.Status
	for _, s := range all {
		list = append(list, statusOf(s))
	}
	return scm.Latest(list, func(s scm.Status) string { return s.Context }), nil
}

// pages reads all pages of a list.
func pages[T any](page func(gl.ListOptions) ([]T, *gl.Response, error), explain func(*gl.Response, error) *refusal) ([]T, *refusal) {
	var all []T
	for o := (gl.ListOptions{Page: 1, PerPage: perPage}); o.Page != 0; {
		list, resp, err := page(o)
		if e := explain(resp, err); e != nil {
			return nil, e
		}
		all = append(all, list...)
		o.Page = resp.NextPage
	}
	return all, nil
}

func statusOf(s *gl.CommitStatus) scm.Status {
	at := s.FinishedAt
	for _, t := range []*time.Time{s.StartedAt, s.CreatedAt} {
		if at == nil {
			at = t
		}
	}
	return scm.Status{
		Context: s.Name, State: stateOf(s.Status), Word: s.Status, Description: s.Description,
		URL: s.TargetURL, Creator: s.Author.Username, Time: deref(at),
	}
}

// stateOf judges the words of app/models/concerns/ci/has_status.rb. A job that was
// skipped or waits for a person to start it has not said yes.
func stateOf(word string) scm.StatusState {
	switch word {
	case "success":
		return scm.StatusSuccess
	case "failed", "canceled", "canceling":
		return scm.StatusFailure
	}
	return scm.StatusPending
}

// Merged asks for the merge requests that a commit is of: GitLab lists those that
// are open too, and finds a commit by its merge, its squash and by their diffs.
func (r *Repository) Merged(ctx context.Context, commit string) (scm.PullRequest, error) {
	what := "find what brought " + short(commit)
	list, e := r.mergeRequestsOf(ctx, commit)
	if e != nil {
		return scm.PullRequest{}, r.fail(what, e)
	}
	var best scm.PullRequest
	for _, m := range list {
		if m.State != "merged" || m.MergedAt == nil {
			continue
		}
		p := r.pullRequest(m)
		made, before := madeBy(m, commit), best.MergeCommit == commit
		if made {
			p.MergeCommit = commit
		}
		if best.Number == 0 || made && !before || made == before && p.MergedAt.After(best.MergedAt) {
			best = p
		}
	}
	if best.Number == 0 {
		return scm.PullRequest{}, r.fail(what, &refusal{kind: scm.ErrNotFound, text: "no merged merge request has it"})
	}
	return best, nil
}

// mergeRequestsOf reads all pages, which go-gitlab's own call does not.
func (r *Repository) mergeRequestsOf(ctx context.Context, commit string) ([]*gl.MergeRequest, *refusal) {
	path := fmt.Sprintf("projects/%s/repository/commits/%s/merge_requests", gl.PathEscape(r.project), gl.PathEscape(commit))
	return pages(func(o gl.ListOptions) (list []*gl.MergeRequest, resp *gl.Response, err error) {
		req, err := r.api.NewRequest(http.MethodGet, path, o, []gl.RequestOptionFunc{gl.WithContext(ctx)})
		if err != nil {
			return nil, nil, err
		}
		resp, err = r.api.Do(req, &list)
		return list, resp, err
	}, r.explain)
}

// madeBy tells whether merging m made the commit: a merge, a squash (which a merge
// commit may lie on top of), or the head itself where it was fast-forwarded.
func madeBy(m *gl.MergeRequest, commit string) bool {
	return commit == m.MergeCommitSHA || commit == m.SquashCommitSHA || m.MergeCommitSHA == "" && m.SquashCommitSHA == "" && commit == m.SHA
}

// statusDescription is the number of characters that the description of a status
// may have (app/models/generic_commit_status.rb and the column of ci_builds).
const statusDescription = 255

// statusBody is what POST statuses takes.
type statusBody struct {
	State       string `json:"state"`
	Name        string `json:"name"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description,omitempty"`
}

// SetStatus posts a status. GitLab makes an external pipeline of it, unless the
// commit has one. A status that is pending cannot be made pending again: that
// refusal is no error.
func (r *Repository) SetStatus(ctx context.Context, commit string, s scm.Status) error {
	what := fmt.Sprintf("set status %s of %s", s.Context, short(commit))
	body := statusBody{State: string(s.State), Name: s.Context, TargetURL: s.URL, Description: scm.CutText(s.Description, statusDescription)}
	if s.State == scm.StatusFailure {
		body.State = "failed"
	}
	path := fmt.Sprintf("projects/%s/statuses/%s", gl.PathEscape(r.project), gl.PathEscape(commit))
	req, err := r.api.NewRequest(http.MethodPost, path, body, []gl.RequestOptionFunc{gl.WithContext(ctx)})
	if err != nil {
		return r.fail(what, r.unanswered(err))
	}
	e := r.explain(r.api.Do(req, nil))
	switch {
	case e == nil, e.status == http.StatusBadRequest && s.State == scm.StatusPending && strings.Contains(e.text, "Cannot transition status via :enqueue from :pending"):
		return nil
	case e.status == http.StatusBadRequest:
		e.kind = scm.ErrRefused
	}
	return r.fail(what, e)
}
