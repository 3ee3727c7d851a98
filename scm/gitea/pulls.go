package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

const (
	// closedPages bounds how far back a closed pull request is looked for: that
	// many pages of the repository's closed ones (of the base branch's, on a
	// server that can filter).
	closedPages = 5
	// closedKept bounds the closed pull requests that are returned.
	closedKept = 20
)

// PullRequests implements scm.Repository. Gitea has no filter for the head. All
// open pull requests are listed, and the newest 250 closed ones at most; a closed
// one that is older is found only if it is the one that Gitea's look-up by base
// and head names, which is any one of them. One round as a rule, two where there
// are more than 50 open ones or the first 50 closed ones hold none of these, and
// one more where a closed one's branch is still there: Gitea then tells the
// branch's commit, and the pull request's own is read from its reference. Without
// a head it lists the open ones.
func (r *Repository) PullRequests(ctx context.Context, head, base string) ([]scm.PullRequest, error) {
	list, err := r.pulls(ctx, head, base)
	if errors.Is(err, scm.ErrNotFound) {
		err = fmt.Errorf("%w: the repository is not there, the token cannot see it, or pull requests are switched off in it", err)
	}
	return list, r.describe(err, "list the pull requests from %s into %s", cmp.Or(head, "any branch"), base)
}

func (r *Repository) pulls(ctx context.Context, head, base string) ([]scm.PullRequest, error) {
	find := r.findPulls
	if head == "" {
		find = r.openPulls
	}
	found, err := find(ctx, head, base)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b *sdk.PullRequest) int { return int(b.Index - a.Index) })
	found = slices.CompactFunc(found, func(a, b *sdk.PullRequest) bool { return a.Index == b.Index })
	var list []scm.PullRequest
	var recheck []int
	closed := 0
	for _, p := range found {
		if p.State != sdk.StateOpen {
			if closed++; closed > closedKept {
				continue
			}
			if p.Head.Ref == p.Head.Name {
				recheck = append(recheck, len(list))
			}
		}
		list = append(list, r.pullOf(p))
	}
	return list, r.ownHeads(ctx, list, recheck)
}

// findPulls gathers those of head into base, some perhaps twice.
func (r *Repository) findPulls(ctx context.Context, head, base string) ([]*sdk.PullRequest, error) {
	var named *sdk.PullRequest
	var open, closed pullPage
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		named, err = r.pullByBranches(gctx, head, base)
		return err
	})
	g.Go(func() (err error) {
		open, err = r.pullPage(gctx, "open", base, 1, byUpdate)
		return err
	})
	g.Go(func() (err error) {
		closed, err = r.pullPage(gctx, "closed", base, 1, byUpdate)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(open.list, closed.list)
	if named != nil {
		all = append(all, named)
	}
	last := 1
	if named != nil && !slices.ContainsFunc(closed.list, func(p *sdk.PullRequest) bool { return isOf(p, head, base) }) {
		last = closedPages
	}
	more, err := r.morePulls(ctx, base, map[string]int{"open": open.pages, "closed": min(last, closed.pages)}, byUpdate)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(all, more...), func(p *sdk.PullRequest) bool { return !isOf(p, head, base) }), nil
}

// openPulls gathers all open ones into base. They are asked for by age, which does
// not change between two pages, unlike the last update.
func (r *Repository) openPulls(ctx context.Context, _, base string) ([]*sdk.PullRequest, error) {
	first, err := r.pullPage(ctx, "open", base, 1, byAge)
	if err != nil {
		return nil, err
	}
	more, err := r.morePulls(ctx, base, map[string]int{"open": first.pages}, byAge)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(first.list, more...), func(p *sdk.PullRequest) bool {
		return p.Head == nil || p.Base == nil || p.Base.Ref != base
	}), nil
}

// isOf tells whether a pull request is from a branch of this repository into a
// branch of it. The reference of one whose branch is gone is refs/pull/N/head,
// while its label stays; a fork's has another repository.
func isOf(p *sdk.PullRequest, head, base string) bool {
	return p.Head != nil && p.Base != nil && p.Head.Name == head && p.Base.Ref == base && !fromFork(p)
}

func fromFork(p *sdk.PullRequest) bool {
	return p.Head == nil || p.Base == nil || p.Head.RepoID != p.Base.RepoID
}

// pullByBranches asks for a pull request by base and head: any one of them, also
// a closed one while another is open. nil: there has never been one.
func (r *Repository) pullByBranches(ctx context.Context, head, base string) (*sdk.PullRequest, error) {
	var p sdk.PullRequest
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/pulls/" + url.PathEscape(base) + "/" + escapePath(head), out: &p})
	if errors.Is(err, scm.ErrNotFound) {
		return nil, nil //nolint:nilnil // absence is an answer
	}
	return &p, err
}

type pullPage struct {
	list  []*sdk.PullRequest
	pages int // in all
}

// The orders of a list: the last updated first, and the newest first, which Gitea
// has no word for.
const (
	byUpdate = "recentupdate"
	byAge    = ""
)

func (r *Repository) pullPage(ctx context.Context, state, base string, page int, order string) (pullPage, error) {
	q := paged(url.Values{"state": {state}, "base_branch": {base}}, page)
	if order != byAge {
		q.Set("sort", order)
	}
	var p pullPage
	header, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/pulls", query: q, out: &p.list})
	if err != nil || len(p.list) == 0 {
		return p, err
	}
	total, err := strconv.Atoi(header.Get("X-Total-Count"))
	if err != nil {
		return p, fmt.Errorf("GET pulls: no X-Total-Count: a proxy may take it out: %w", err)
	}
	p.pages = (total + len(p.list) - 1) / len(p.list)
	return p, nil
}

// morePulls reads pages 2 to the one given, of each state.
func (r *Repository) morePulls(ctx context.Context, base string, last map[string]int, order string) ([]*sdk.PullRequest, error) {
	var pages []*pullPage
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for state, n := range last {
		for page := 2; page <= n; page++ {
			p := &pullPage{}
			pages = append(pages, p)
			g.Go(func() (err error) {
				*p, err = r.pullPage(gctx, state, base, page, order)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []*sdk.PullRequest
	for _, p := range pages {
		all = append(all, p.list...)
	}
	return all, nil
}

// ownHeads reads the head commits of closed pull requests from their own
// references, which stay where the pull request ended.
func (r *Repository) ownHeads(ctx context.Context, list []scm.PullRequest, which []int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, i := range which {
		g.Go(func() (err error) {
			sha, err := r.ref(gctx, "pull/"+strconv.Itoa(list[i].Number)+"/head")
			if err == nil {
				list[i].HeadCommit = sha
			}
			return err
		})
	}
	return g.Wait()
}

// ref reads where a reference points. Gitea answers with a list of all whose names
// begin so, and says that it may be one object.
func (r *Repository) ref(ctx context.Context, name string) (string, error) {
	var refs oneOrMany[sdk.Reference]
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/git/refs/" + escapePath(name), out: &refs})
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		if ref.Ref == "refs/"+name && ref.Object != nil {
			return ref.Object.SHA, nil
		}
	}
	return "", fmt.Errorf("reference %s: %w", name, scm.ErrNotFound)
}

// pullOf translates, and remembers the draft prefix for the next edit.
func (r *Repository) pullOf(p *sdk.PullRequest) scm.PullRequest {
	out := scm.PullRequest{
		Number: int(p.Index), URL: p.HTMLURL, Head: p.Head.Name, Base: p.Base.Ref, Fork: fromFork(p), HeadCommit: p.Head.Sha,
		Title: p.Title, Body: p.Body, State: scm.State(p.State), Draft: p.Draft,
	}
	prefix := ""
	if p.Draft {
		prefix, out.Title = splitDraft(p.Title)
	}
	r.mu.Lock()
	r.drafts[out.Number] = prefix
	r.mu.Unlock()
	for _, l := range p.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	slices.Sort(out.Labels)
	if p.Poster != nil {
		out.Author = p.Poster.UserName
	}
	if p.Updated != nil {
		out.UpdatedAt = *p.Updated
	}
	if p.HasMerged {
		out.State, out.MergedAt = scm.Merged, mergedAt(p)
		if p.MergedCommitID != nil {
			out.MergeCommit = *p.MergedCommitID
		}
	}
	return out
}

// draftPrefix makes a draft on Gitea and Forgejo by default (setting
// repository.pull-request WORK_IN_PROGRESS_PREFIXES: "WIP:" and "[WIP]").
const draftPrefix = "WIP: "

// splitDraft takes the prefix off a draft's title. A server's own prefix that is
// none of the default ones stays in the title.
func splitDraft(title string) (prefix, rest string) {
	for _, p := range []string{"WIP:", "[WIP]"} {
		if len(title) >= len(p) && strings.EqualFold(title[:len(p)], p) {
			rest = strings.TrimLeft(title[len(p):], " ")
			return title[:len(title)-len(rest)], rest
		}
	}
	return "", title
}
