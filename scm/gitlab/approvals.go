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
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// approvedBy is an entry of approved_by. approved_at is told by newer GitLabs
// only, and go-gitlab does not know it.
type approvedBy struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ApprovedAt *time.Time `json:"approved_at"`
}

// Approvals asks in one round who approves, when that was said, and which heads
// the merge request has had. An approval that was taken back or reset is not
// there any more. GitLab does not tell what head was approved: it is the one that
// the merge request had at that time. Where it does not tell the time either, and
// the head has moved, the approval is stale.
func (r *Repository) Approvals(ctx context.Context, pr scm.PullRequest) ([]scm.Approval, error) {
	var who []approvedBy
	var heads []*gl.MergeRequestDiffVersion
	var said map[string]time.Time
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return orNil(r.approvedBy(gctx, pr.Number, &who)) })
	g.Go(func() error { return orNil(r.versions(gctx, pr.Number, &heads)) })
	g.Go(func() error { return orNil(r.approvalNotes(gctx, pr.Number, &said)) })
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("read the approvals of !%d in GitLab project %s on %s: %w", pr.Number, r.project, r.about.Host, err)
	}
	slices.SortFunc(heads, func(a, b *gl.MergeRequestDiffVersion) int { return cmp.Compare(a.ID, b.ID) })
	var list []scm.Opinion
	for _, a := range who {
		at := said[strings.ToLower(a.User.Username)]
		if a.ApprovedAt != nil {
			at = *a.ApprovedAt
		}
		commit := headAt(heads, at)
		list = append(list, scm.Opinion{Approves: true, Approval: scm.Approval{
			User: a.User.Username, Commit: commit, Time: at, Stale: commit != pr.HeadCommit,
		}})
	}
	slices.SortStableFunc(list, func(a, b scm.Opinion) int { return a.Time.Compare(b.Time) })
	return scm.Approvals(list, pr.Author), nil
}

// orNil keeps a nil *refusal from becoming an error.
func orNil(e *refusal) error {
	if e == nil {
		return nil
	}
	return e
}

// headAt is the head that a merge request had at a time; "" where that cannot be
// told. heads are oldest first.
func headAt(heads []*gl.MergeRequestDiffVersion, at time.Time) string {
	if len(heads) == 1 {
		return heads[0].HeadCommitSHA
	}
	if at.IsZero() {
		return ""
	}
	for _, h := range slices.Backward(heads) {
		if h.CreatedAt != nil && !h.CreatedAt.After(at) {
			return h.HeadCommitSHA
		}
	}
	return ""
}

func (r *Repository) approvedBy(ctx context.Context, number int, into *[]approvedBy) *refusal {
	var out struct {
		ApprovedBy []approvedBy `json:"approved_by"`
	}
	path := fmt.Sprintf("projects/%s/merge_requests/%d/approvals", gl.PathEscape(r.project), number)
	req, err := r.api.NewRequest(http.MethodGet, path, nil, []gl.RequestOptionFunc{gl.WithContext(ctx)})
	if err != nil {
		return r.unanswered(err)
	}
	e := r.explain(r.api.Do(req, &out))
	*into = out.ApprovedBy
	return e
}

func (r *Repository) versions(ctx context.Context, number int, into *[]*gl.MergeRequestDiffVersion) (e *refusal) {
	*into, e = pages(func(o gl.ListOptions) ([]*gl.MergeRequestDiffVersion, *gl.Response, error) {
		return r.api.MergeRequests.GetMergeRequestDiffVersions(r.project, number, (*gl.GetMergeRequestDiffVersionsOptions)(&o), gl.WithContext(ctx))
	}, r.explain)
	return e
}

// approvalNotes are the times of the newest note by which GitLab says that
// somebody has approved (app/services/system_notes/merge_requests_service.rb),
// by login in lower case. Notes that people write are no system notes.
func (r *Repository) approvalNotes(ctx context.Context, number int, into *map[string]time.Time) *refusal {
	notes, e := pages(func(o gl.ListOptions) ([]*gl.Note, *gl.Response, error) {
		opt := &gl.ListMergeRequestNotesOptions{ListOptions: o, OrderBy: ref("created_at"), Sort: ref("desc")}
		return r.api.Notes.ListMergeRequestNotes(r.project, number, opt, gl.WithContext(ctx))
	}, r.explain)
	*into = map[string]time.Time{}
	for _, n := range notes {
		login := strings.ToLower(n.Author.Username)
		if n.System && n.Body == "approved this merge request" && n.CreatedAt != nil && n.CreatedAt.After((*into)[login]) {
			(*into)[login] = *n.CreatedAt
		}
	}
	return e
}
