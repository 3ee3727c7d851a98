package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

var _ scm.Evidence = (*Repository)(nil)

// Statuses asks for commit statuses and check runs at once. A check run of an app
// is told from a status of the same context, and from another app's.
func (r *Repository) Statuses(ctx context.Context, commit string) ([]scm.Status, error) {
	ctx = needing(ctx, rightsToRead)
	var posted []*github.RepoStatus
	var runs []*github.CheckRun
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { posted, err = r.postedStatuses(gctx, commit); return err })
	g.Go(func() (err error) { runs, err = r.checkRuns(gctx, commit); return err })
	if err := g.Wait(); err != nil {
		return nil, r.evidenceFault("read the statuses of "+short(commit), err, "statuses:read and checks:read")
	}
	slices.SortFunc(posted, func(a, b *github.RepoStatus) int { return cmp.Compare(a.GetID(), b.GetID()) })
	slices.SortFunc(runs, func(a, b *github.CheckRun) int { return cmp.Compare(a.GetID(), b.GetID()) })
	var statuses, checks []scm.Status
	for _, s := range posted {
		statuses = append(statuses, statusOf(s))
	}
	for _, c := range runs {
		checks = append(checks, statusOfRun(c))
	}
	list := append(
		scm.Latest(statuses, func(s scm.Status) string { return s.Context }),
		scm.Latest(checks, func(s scm.Status) string { return s.Creator + "\x00" + s.Context })...)
	scm.SortStatuses(list)
	return list, nil
}

// postedStatuses are the commit statuses of all contexts, from all pages: the
// combined status does not tell who posted.
func (r *Repository) postedStatuses(ctx context.Context, commit string) (all []*github.RepoStatus, err error) {
	return pages(func(o github.ListOptions) ([]*github.RepoStatus, *github.Response, error) {
		return r.api().Repositories.ListStatuses(ctx, r.owner, r.name, commit, &o)
	})
}

func (r *Repository) checkRuns(ctx context.Context, commit string) ([]*github.CheckRun, error) {
	return pages(func(o github.ListOptions) ([]*github.CheckRun, *github.Response, error) {
		latest := "latest"
		page, resp, err := r.api().Checks.ListCheckRunsForRef(ctx, r.owner, r.name, commit, &github.ListCheckRunsOptions{Filter: &latest, ListOptions: o})
		if err != nil {
			return nil, nil, err
		}
		return page.CheckRuns, resp, nil
	})
}

// pages reads all pages of a list.
func pages[T any](page func(github.ListOptions) ([]T, *github.Response, error)) (all []T, err error) {
	opts := github.ListOptions{PerPage: pageSize}
	for {
		list, resp, err := page(opts)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if resp.NextPage == 0 {
			return all, nil
		}
		opts.Page = resp.NextPage
	}
}

func statusOf(s *github.RepoStatus) scm.Status {
	return scm.Status{
		Context: s.GetContext(), State: stateOf(s.GetState()), Word: s.GetState(), Description: s.GetDescription(),
		URL: s.GetTargetURL(), Creator: s.GetCreator().GetLogin(), Time: s.GetUpdatedAt().Time,
	}
}

// statusOfRun reads a check run: its conclusion where it is completed, else how
// far it is.
func statusOfRun(c *github.CheckRun) scm.Status {
	s := scm.Status{
		Context: c.GetName(), Word: c.GetStatus(), Description: c.GetOutput().GetTitle(),
		URL: cmp.Or(c.GetDetailsURL(), c.GetHTMLURL()), Creator: c.GetApp().GetSlug(), Time: c.GetStartedAt().Time,
	}
	if s.Word == "completed" {
		s.Word, s.Time = c.GetConclusion(), c.GetCompletedAt().Time
	}
	s.State = stateOf(s.Word)
	return s
}

// stateOf judges GitHub's words as gh does, but for skipped and neutral, which
// are no success here (docs.github.com/rest/checks/runs, "conclusion").
func stateOf(word string) scm.StatusState {
	switch word {
	case "success":
		return scm.StatusSuccess
	case "failure", "error", "cancelled", "timed_out", "action_required", "startup_failure":
		return scm.StatusFailure
	}
	return scm.StatusPending
}

// Merged asks for the pull requests that a commit is of. GitHub lists open ones
// too, and those of a repository that this one is a fork of.
func (r *Repository) Merged(ctx context.Context, commit string) (scm.PullRequest, error) {
	doing := "find what brought " + short(commit)
	list, err := pages(func(o github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
		return r.api().PullRequests.ListPullRequestsWithCommit(ctx, r.owner, r.name, commit, &o)
	})
	if err != nil {
		return scm.PullRequest{}, r.evidenceFault(doing, err, "contents:read and pull_requests:read")
	}
	var best scm.PullRequest
	for _, p := range list {
		if p.GetMergedAt().IsZero() || !strings.EqualFold(p.GetBase().GetRepo().GetFullName(), r.fullName()) {
			continue
		}
		made, before := p.GetMergeCommitSHA() == commit, best.MergeCommit == commit
		if best.Number == 0 || made && !before || made == before && p.GetMergedAt().After(best.MergedAt) {
			best = pullOf(p)
		}
	}
	if best.Number == 0 {
		return scm.PullRequest{}, fmt.Errorf("%s: %s: %w: no merged pull request has it", r.fullName(), doing, scm.ErrNotFound)
	}
	return best, nil
}

// Approvals reads the reviews. Only those that say yes or no count; a comment
// leaves an earlier yes as it is.
func (r *Repository) Approvals(ctx context.Context, pr scm.PullRequest) ([]scm.Approval, error) {
	reviews, err := r.reviews(ctx, pr.Number)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(reviews, func(a, b *github.PullRequestReview) int { return cmp.Compare(a.GetID(), b.GetID()) })
	var list []scm.Opinion
	for _, v := range reviews {
		o := scm.Opinion{Approval: scm.Approval{
			User: v.GetUser().GetLogin(), Commit: v.GetCommitID(), Time: v.GetSubmittedAt().Time, Stale: v.GetCommitID() != pr.HeadCommit,
		}}
		switch v.GetState() {
		case "APPROVED":
			o.Approves = true
		case "DISMISSED": // GitHub does not tell what it was; a dismissed no is as little
			o.Approves, o.Dismissed = true, true
		case "CHANGES_REQUESTED":
		default:
			continue
		}
		list = append(list, o)
	}
	return scm.Approvals(list, pr.Author), nil
}

// descriptionLimit is how many characters GitHub takes in a status's description.
const descriptionLimit = 140

// SetStatus posts a commit status.
func (r *Repository) SetStatus(ctx context.Context, commit string, s scm.Status) error {
	state, text := string(s.State), scm.CutText(s.Description, descriptionLimit)
	in := &github.RepoStatus{State: &state, Context: &s.Context, Description: &text}
	if s.URL != "" {
		in.TargetURL = &s.URL
	}
	ctx = needing(ctx, rightsToPost)
	if _, _, err := r.api().Repositories.CreateStatus(ctx, r.owner, r.name, commit, in); err != nil {
		doing := fmt.Sprintf("set status %s of %s", s.Context, short(commit))
		if a, ok := answerOf(err); ok && a.status == http.StatusNotFound {
			return r.writeFault(doing, err)
		}
		return r.evidenceFault(doing, err, "statuses:write")
	}
	return nil
}

// evidenceFault is fault that knows a commit that is not there, and names the
// right that the call needs where GitHub does not.
func (r *Repository) evidenceFault(doing string, err error, need string) error {
	a, ok := answerOf(err)
	switch {
	case !ok:
		return r.broken(doing, err)
	case a.has(http.StatusUnprocessableEntity, "No commit found for SHA"):
		return r.refusal(doing, a, scm.ErrNotFound)
	case a.status != http.StatusForbidden || a.limited():
		return r.fault(doing, err)
	}
	if a.header.Get(acceptedPermissions) == "" {
		a.header = a.header.Clone()
		a.header.Set(acceptedPermissions, need)
	}
	refused := r.refusal(doing, a, scm.ErrDenied)
	if r.hint(a) == "" {
		return fmt.Errorf("%w; this call needs %s", refused, need)
	}
	return refused
}
