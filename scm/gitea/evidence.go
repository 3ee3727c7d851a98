package gitea

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

var _ scm.Evidence = (*Repository)(nil)

// Statuses implements scm.Evidence. Gitea has commit statuses only; its actions
// post them too.
func (r *Repository) Statuses(ctx context.Context, commit string) ([]scm.Status, error) {
	list, err := r.latestStatuses(ctx, commit)
	return list, r.describe(err, "read the statuses of %s", short(commit))
}

// latestStatuses reads the combined status, which has the latest of each context.
// What it says of its total is wrong (CountLatestCommitStatus of 1.26 counts one
// group), so pages are read until one is empty, the first two at once.
func (r *Repository) latestStatuses(ctx context.Context, commit string) ([]scm.Status, error) {
	var first [2][]*sdk.Status
	g, gctx := errgroup.WithContext(ctx)
	for i := range first {
		g.Go(func() (err error) { first[i], err = r.statusPage(gctx, commit, i+1); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all, last := slices.Concat(first[0], first[1]), first[1]
	if len(all) == 0 {
		return nil, r.mustBe(ctx, commit)
	}
	for page := 3; len(last) > 0; page++ {
		var err error
		if last, err = r.statusPage(ctx, commit, page); err != nil {
			return nil, err
		}
		all = append(all, last...)
	}
	slices.SortFunc(all, func(a, b *sdk.Status) int { return cmp.Compare(a.ID, b.ID) })
	var list []scm.Status
	for _, s := range all {
		list = append(list, statusOfCommit(s))
	}
	return scm.Latest(list, func(s scm.Status) string { return s.Context }), nil
}

// mustBe is ErrNotFound where a server without strict statuses has no such commit.
func (r *Repository) mustBe(ctx context.Context, commit string) error {
	f, err := r.features(ctx)
	if err == nil && !f.strict {
		_, err = r.readCommit(ctx, commit)
	}
	return err
}

func (r *Repository) statusPage(ctx context.Context, commit string, page int) ([]*sdk.Status, error) {
	var out struct {
		Statuses []*sdk.Status `json:"statuses"`
	}
	path := "/commits/" + url.PathEscape(commit) + "/status"
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: path, query: paged(url.Values{}, page), out: &out})
	return out.Statuses, err
}

func statusOfCommit(s *sdk.Status) scm.Status {
	out := scm.Status{
		Context: s.Context, State: stateOf(string(s.State)), Word: string(s.State),
		Description: s.Description, URL: s.TargetURL, Time: s.Updated,
	}
	if s.Creator != nil {
		out.Creator = s.Creator.UserName
	}
	return out
}

// stateOf judges as Gitea does where it combines statuses
// (modules/commitstatus/commit_status.go), but for skipped, which is no success
// here.
func stateOf(word string) scm.StatusState {
	switch word {
	case "success":
		return scm.StatusSuccess
	case "failure", "error", "warning":
		return scm.StatusFailure
	}
	return scm.StatusPending
}

// Merged implements scm.Evidence.
func (r *Repository) Merged(ctx context.Context, commit string) (scm.PullRequest, error) {
	p, err := r.merged(ctx, commit)
	return p, r.describe(err, "find what brought %s", short(commit))
}

func (r *Repository) merged(ctx context.Context, commit string) (scm.PullRequest, error) {
	var raw sdk.PullRequest
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/commits/" + url.PathEscape(commit) + "/pull", out: &raw})
	if err == nil {
		err = checkPull(&raw)
	}
	if err != nil {
		return scm.PullRequest{}, err
	}
	list := []scm.PullRequest{r.pullOf(&raw)}
	if raw.Head.Ref == raw.Head.Name { // the branch is there, and may have moved on
		err = r.ownHeads(ctx, list, []int{0})
	}
	return list[0], err
}

// Approvals implements scm.Evidence.
func (r *Repository) Approvals(ctx context.Context, pr scm.PullRequest) ([]scm.Approval, error) {
	reviews, err := r.reviews(ctx, pr.Number)
	if err != nil {
		return nil, r.describe(err, "read the reviews of #%d", pr.Number)
	}
	slices.SortFunc(reviews, func(a, b *sdk.PullReview) int { return cmp.Compare(a.ID, b.ID) })
	var list []scm.Opinion
	for _, v := range reviews {
		if v.Reviewer == nil || v.State != sdk.ReviewStateApproved && v.State != sdk.ReviewStateRequestChanges {
			continue
		}
		list = append(list, scm.Opinion{Approves: v.State == sdk.ReviewStateApproved, Approval: scm.Approval{
			User: v.Reviewer.UserName, Commit: v.CommitID, Time: v.Submitted,
			Dismissed: v.Dismissed, Stale: v.Stale || v.CommitID != pr.HeadCommit,
		}})
	}
	return scm.Approvals(list, pr.Author), nil
}

// reviews reads all pages.
func (r *Repository) reviews(ctx context.Context, number int) ([]*sdk.PullReview, error) {
	var all []*sdk.PullReview
	for page := 1; ; page++ {
		var list []*sdk.PullReview
		header, err := r.repoCall(ctx, request{method: http.MethodGet, path: pullPath(number) + "/reviews", query: paged(url.Values{}, page), out: &list})
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if total, _ := strconv.Atoi(header.Get("X-Total-Count")); len(list) == 0 || len(all) >= total {
			return all, nil
		}
	}
}

// descriptionLimit is ours: Gitea stores 64 KB and shows one line.
const descriptionLimit = 1000

// SetStatus implements scm.Evidence.
func (r *Repository) SetStatus(ctx context.Context, commit string, s scm.Status) error {
	in := map[string]any{
		"context": s.Context, "state": string(s.State), "target_url": s.URL, "description": scm.CutText(s.Description, descriptionLimit),
	}
	_, err := r.repoCall(ctx, request{method: http.MethodPost, path: "/statuses/" + url.PathEscape(commit), in: in})
	if statusOf(err) == http.StatusInternalServerError { // so is a commit that is not there
		if _, missing := r.readCommit(ctx, commit); errors.Is(missing, scm.ErrNotFound) {
			err = missing
		}
	}
	return r.describe(err, "set status %s of %s", s.Context, short(commit))
}

// mergedAt is the forge's time of a merge.
func mergedAt(p *sdk.PullRequest) time.Time {
	if p.Merged == nil {
		return time.Time{}
	}
	return *p.Merged
}
