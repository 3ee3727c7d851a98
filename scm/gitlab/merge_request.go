package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	gl "github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// PullRequests lists merge requests in one round: all open ones, and the newest
// page of all. Where the two lists disagree, the merge request was closed or
// merged in between. Without a head it lists the open ones.
func (r *Repository) PullRequests(ctx context.Context, head, base string) ([]scm.PullRequest, error) {
	if head == "" {
		open, err := r.list(ctx, "", base, "opened", 0)
		return r.pullRequests(open), err
	}
	var open, newest []*gl.MergeRequest
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		open, err = r.list(gctx, head, base, "opened", 0)
		return err
	})
	g.Go(func() (err error) {
		newest, err = r.list(gctx, head, base, "all", 1)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	byNumber := map[int]*gl.MergeRequest{}
	for _, m := range slices.Concat(open, newest) {
		if seen := byNumber[m.IID]; seen == nil || state(seen) == scm.Open {
			byNumber[m.IID] = m
		}
	}
	for _, m := range byNumber {
		r.listed.Store(m.IID, m)
	}
	return r.pullRequests(slices.Collect(maps.Values(byNumber))), nil
}

// pullRequests translates, newest first.
func (r *Repository) pullRequests(list []*gl.MergeRequest) []scm.PullRequest {
	var all []scm.PullRequest
	for _, m := range list {
		all = append(all, r.pullRequest(m))
	}
	slices.SortFunc(all, func(a, b scm.PullRequest) int { return cmp.Compare(b.Number, a.Number) })
	return slices.CompactFunc(all, func(a, b scm.PullRequest) bool { return a.Number == b.Number })
}

// list gives the merge requests of a state, newest first, without those of forks;
// pages 0 is all, and head "" every branch, those of forks too.
func (r *Repository) list(ctx context.Context, head, base, state string, pages int) ([]*gl.MergeRequest, error) {
	opt := &gl.ListProjectMergeRequestsOptions{
		ListOptions:  gl.ListOptions{PerPage: perPage, Page: 1},
		TargetBranch: &base, State: &state,
		OrderBy: ref("created_at"), Sort: ref("desc"),
	}
	from := "any branch"
	if head != "" {
		opt.SourceBranch, from = &head, head
	}
	var all []*gl.MergeRequest
	for n := 1; ; n++ {
		page, resp, err := r.api.MergeRequests.ListProjectMergeRequests(r.project, opt, gl.WithContext(ctx))
		if e := r.explain(resp, err); e != nil {
			return nil, r.fail(fmt.Sprintf("list merge requests from %s into %s", from, base), e)
		}
		for _, m := range page {
			if (head == "" || m.SourceBranch == head && !fromFork(m)) && m.TargetBranch == base {
				all = append(all, m)
			}
		}
		if resp.NextPage == 0 || n == pages {
			return all, nil
		}
		opt.Page = resp.NextPage
	}
}

// pullRequest translates, without the title's draft prefix.
func (r *Repository) pullRequest(m *gl.MergeRequest) scm.PullRequest {
	p := scm.PullRequest{
		Number: m.IID, URL: m.WebURL, Head: m.SourceBranch, Base: m.TargetBranch, Fork: fromFork(m), HeadCommit: m.SHA,
		Title: plainTitle(m), Body: m.Description, State: state(m), Draft: isDraft(m),
		AutoMerge: m.MergeWhenPipelineSucceeds, MergeCommit: mergeCommit(m), UpdatedAt: deref(m.UpdatedAt), MergedAt: deref(m.MergedAt),
	}
	p.Labels = slices.Sorted(slices.Values(m.Labels))
	if m.Author != nil {
		p.Author = m.Author.Username
	}
	return p
}

func fromFork(m *gl.MergeRequest) bool { return m.SourceProjectID != m.TargetProjectID }

func state(m *gl.MergeRequest) scm.State {
	switch m.State {
	case "merged":
		return scm.Merged
	case "closed":
		return scm.Closed
	}
	return scm.Open // opened, and locked while it is being merged
}

// mergeCommit: a fast-forward merge has neither a merge nor a squash commit, its
// head is what the base got.
func mergeCommit(m *gl.MergeRequest) string {
	if m.State != "merged" {
		return ""
	}
	return cmp.Or(m.MergeCommitSHA, m.SquashCommitSHA, m.SHA)
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// draftPrefix matches what GitLab takes for the mark of a draft at a title's start
// (app/models/concerns/issuable.rb and MergeRequest::DRAFT_REGEX; WIP before 14.8).
var draftPrefix = regexp.MustCompile(`(?i)^(\s*(\[draft\]|\(draft\)|draft:|draft\s-\s|\[wip\]|wip:|wip\s))+\s*`)

func isDraft(m *gl.MergeRequest) bool { return m.Draft || m.WorkInProgress }

func plainTitle(m *gl.MergeRequest) string {
	if !isDraft(m) {
		return m.Title
	}
	return draftPrefix.ReplaceAllString(m.Title, "")
}

// titleLimit is the number of characters that a title may have
// (app/models/concerns/issuable.rb, TITLE_LENGTH_MAX).
const titleLimit = 255

// titled is a title as GitLab wants it: marked if draft, and not too long.
func titled(title string, draft bool) string {
	if draft {
		title = "Draft: " + title
	}
	if r := []rune(title); len(r) > titleLimit {
		title = string(r[:titleLimit-1]) + "…"
	}
	return title
}
