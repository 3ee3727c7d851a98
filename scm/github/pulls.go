package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// PullRequests lists the open ones (all pages) and the newest page of all, in one
// round, newest first. Without a head it lists the open ones.
func (r *Repository) PullRequests(ctx context.Context, head, base string) ([]scm.PullRequest, error) {
	pulls, err := r.pulls(ctx, head, base)
	if err != nil {
		return nil, err
	}
	out := make([]scm.PullRequest, 0, len(pulls))
	for _, p := range pulls {
		out = append(out, pullOf(p))
	}
	return out, nil
}

// pulls asks for all and for the open ones at once. One that is closed between the
// two calls is in the first list at least, and as it was there.
func (r *Repository) pulls(ctx context.Context, head, base string) ([]*github.PullRequest, error) {
	if head == "" {
		open, err := r.listPulls(ctx, "open", "", base, true)
		if err != nil {
			return nil, r.fault("list open pull requests into "+base, err)
		}
		return newestFirst(open), nil
	}
	var newest, open []*github.PullRequest
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { newest, err = r.listPulls(gctx, "all", head, base, false); return err })
	g.Go(func() (err error) { open, err = r.listPulls(gctx, "open", head, base, true); return err })
	if err := g.Wait(); err != nil {
		return nil, r.fault("list pull requests of "+head, err)
	}
	return newestFirst(append(newest, open...)), nil
}

// newestFirst sorts, and keeps the first of several of one number.
func newestFirst(all []*github.PullRequest) []*github.PullRequest {
	slices.SortStableFunc(all, func(a, b *github.PullRequest) int { return b.GetNumber() - a.GetNumber() })
	return slices.CompactFunc(all, func(a, b *github.PullRequest) bool { return a.GetNumber() == b.GetNumber() })
}

// listPulls asks with head as OWNER:BRANCH (a bare name is ignored by GitHub) and
// drops a fork's branch of the same name. Head "" is every branch, forks' too.
func (r *Repository) listPulls(ctx context.Context, state, head, base string, all bool) ([]*github.PullRequest, error) {
	opts := &github.PullRequestListOptions{
		State: state, Base: base, Sort: "created", Direction: "desc",
		ListOptions: github.ListOptions{PerPage: pageSize},
	}
	if head != "" {
		opts.Head = r.owner + ":" + head
	}
	var out []*github.PullRequest
	for {
		page, resp, err := r.api().PullRequests.List(ctx, r.owner, r.name, opts)
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			if (head == "" || p.GetHead().GetRef() == head && sameRepository(p)) && p.GetBase().GetRef() == base {
				r.rememberNode(p.GetBase().GetRepo().GetNodeID())
				out = append(out, p)
			}
		}
		if !all || resp.NextPage == 0 {
			return out, nil
		}
		opts.Page = resp.NextPage
	}
}

func sameRepository(p *github.PullRequest) bool {
	head, base := p.GetHead().GetRepo().GetFullName(), p.GetBase().GetRepo().GetFullName()
	return head != "" && strings.EqualFold(head, base)
}

func pullOf(p *github.PullRequest) scm.PullRequest {
	out := scm.PullRequest{
		Number: p.GetNumber(), ID: p.GetNodeID(), URL: p.GetHTMLURL(),
		Head: p.GetHead().GetRef(), Base: p.GetBase().GetRef(), Fork: !sameRepository(p), HeadCommit: p.GetHead().GetSHA(),
		Title: p.GetTitle(), Body: p.GetBody(), Author: p.GetUser().GetLogin(),
		State: scm.State(p.GetState()), Draft: p.GetDraft(), AutoMerge: p.AutoMerge != nil, UpdatedAt: p.GetUpdatedAt().Time,
	}
	for _, l := range p.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	slices.Sort(out.Labels)
	if p.GetMerged() || !p.GetMergedAt().IsZero() {
		out.State, out.MergeCommit, out.MergedAt = scm.Merged, p.GetMergeCommitSHA(), p.GetMergedAt().Time
	}
	return out
}

// Propose opens or updates the pull request in one call, then decorates it in
// parallel: labels, assignees, reviewers, auto-merge, dismissals.
func (r *Repository) Propose(ctx context.Context, p scm.Proposal) (scm.PullRequest, error) {
	pr, fresh, err := r.openOrUpdate(ctx, p)
	if err != nil {
		return scm.PullRequest{}, err
	}
	out := pullOf(pr)
	out.Warnings = r.takeNotes()
	if p.HeadCommit == "" {
		p.HeadCommit = out.HeadCommit
	}
	warnings, on, err := r.decorate(ctx, pr, p, fresh)
	out.Warnings = append(out.Warnings, warnings...)
	out.AutoMerge = on
	return out, err
}

func (r *Repository) openOrUpdate(ctx context.Context, p scm.Proposal) (pr *github.PullRequest, fresh bool, err error) {
	if p.Number != 0 {
		pr, err := r.edit(ctx, p.Number, p)
		return pr, false, err
	}
	doing := fmt.Sprintf("open the pull request of %s into %s", p.Head, p.Base)
	pr, err = r.create(ctx, p)
	if err == nil {
		if pr.GetNumber() == 0 {
			return nil, false, r.broken(doing, errEmptyAnswer)
		}
		return pr, true, nil
	}
	a, _ := answerOf(err)
	if a.has(http.StatusUnprocessableEntity, "A pull request already exists") || ambiguous(err) {
		return r.adopt(ctx, doing, p, err)
	}
	return nil, false, r.notOpened(doing, p, err)
}

// create tries again what GitHub refuses while it does not see the branch yet that
// was just pushed.
func (r *Repository) create(ctx context.Context, p scm.Proposal) (*github.PullRequest, error) {
	for attempt := 0; ; attempt++ {
		pr, _, err := r.api().PullRequests.Create(ctx, r.owner, r.name, &github.NewPullRequest{
			Title: &p.Title, Head: &p.Head, Base: &p.Base, Body: &p.Body, Draft: draftFlag(p.Draft),
		})
		a, _ := answerOf(err)
		if !a.has(http.StatusUnprocessableEntity, "PullRequest head invalid") || attempt == lagAttempts {
			return pr, err
		}
		if err := r.sleep(ctx, lagPause<<attempt); err != nil {
			return nil, err
		}
	}
}

// draftFlag leaves the field away unless it is wanted: some plans refuse it.
func draftFlag(draft bool) *bool {
	if !draft {
		return nil
	}
	return &draft
}

// adopt finds the open pull request that the refusal speaks of, or that a lost
// answer made. The list may lag behind (create-pull-request#2823): it is asked
// again, a few times.
func (r *Repository) adopt(ctx context.Context, doing string, p scm.Proposal, cause error) (*github.PullRequest, bool, error) {
	for attempt := 0; ; attempt++ {
		open, err := r.listPulls(ctx, "open", p.Head, p.Base, true)
		if err == nil && len(open) > 0 {
			pr, err := r.edit(ctx, open[0].GetNumber(), p)
			return pr, false, err
		}
		if attempt == lagAttempts || ctx.Err() != nil {
			return nil, false, r.fault(doing, cause)
		}
		if err := r.sleep(ctx, lagPause<<attempt); err != nil {
			return nil, false, r.fault(doing, cause)
		}
	}
}

// GitHub's lists and its issue side may lag behind a write by a few seconds.
const (
	lagAttempts = 3
	lagPause    = 500 * time.Millisecond
)

func (r *Repository) edit(ctx context.Context, number int, p scm.Proposal) (*github.PullRequest, error) {
	doing := fmt.Sprintf("update pull request #%d", number)
	pr, _, err := r.api().PullRequests.Edit(ctx, r.owner, r.name, number, &github.PullRequest{Title: &p.Title, Body: &p.Body})
	if err != nil {
		return nil, r.fault(doing, err)
	}
	if pr.GetNumber() != number {
		return nil, r.broken(doing, errEmptyAnswer)
	}
	if pr.GetState() == "open" {
		return pr, nil
	}
	if p.Was != nil { // what was merged or closed says what people decided on
		if _, _, err := r.api().PullRequests.Edit(ctx, r.owner, r.name, number, &github.PullRequest{Title: &p.Was.Title, Body: &p.Was.Body}); err != nil {
			return nil, r.fault(fmt.Sprintf("give pull request #%d, which was closed meanwhile, its text back", number), err)
		}
	}
	return nil, fmt.Errorf("%s: %s: %w: it was closed or merged meanwhile", r.fullName(), doing, scm.ErrMoved)
}

// notOpened explains why GitHub opened none.
func (r *Repository) notOpened(doing string, p scm.Proposal, cause error) error {
	a, _ := answerOf(cause)
	compare := fmt.Sprintf("%s/compare/%s...%s?expand=1", r.web, escape(p.Base), escape(p.Head))
	hint := ""
	switch {
	case a.has(http.StatusForbidden, "not permitted to create or approve pull requests"):
		hint = "turn on \"Allow GitHub Actions to create and approve pull requests\" (Settings, Actions, General, of the repository or its organisation), or use an App's token; the branch is pushed, a person can open it: " + compare
	case a.has(http.StatusUnprocessableEntity, "No commits between"):
		hint = "the branch has nothing that its base has not: read both again"
	case p.Draft && a.has(http.StatusUnprocessableEntity, "draft"):
		hint = "this repository's plan has no draft pull requests: leave the draft option away"
	case a.status == http.StatusForbidden && !a.limited():
		hint = "the branch is pushed, a person can open it: " + compare
	}
	err := r.writeFault(doing, cause)
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}

// Close closes the pull request and saves its title and body in one call, then
// leaves why as a comment.
func (r *Repository) Close(ctx context.Context, pr scm.PullRequest, why string) error {
	doing := fmt.Sprintf("close pull request #%d", pr.Number)
	closed := "closed"
	if _, _, err := r.api().PullRequests.Edit(ctx, r.owner, r.name, pr.Number, &github.PullRequest{Title: &pr.Title, Body: &pr.Body, State: &closed}); err != nil {
		return r.fault(doing, err)
	}
	if why == "" {
		return nil
	}
	if _, _, err := r.api().Issues.CreateComment(ctx, r.owner, r.name, pr.Number, &github.IssueComment{Body: &why}); err != nil {
		return r.fault(doing+": it is closed, but the comment that says why could not be left", err)
	}
	return nil
}
