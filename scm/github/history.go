package github

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

const pageSize = 100

// comparedFiles is how many files a comparison shows at most, in all pages.
const comparedFiles = 300

// Log yields the commits that lead to commit, newest first, a hundred a call.
func (r *Repository) Log(ctx context.Context, commit, path string) iter.Seq2[scm.Commit, error] {
	return func(yield func(scm.Commit, error) bool) {
		query := url.Values{"sha": {commit}, "per_page": {strconv.Itoa(pageSize)}}
		if path != "" && path != "." {
			query.Set("path", path)
		}
		for page := 1; page != 0; {
			query.Set("page", strconv.Itoa(page))
			var commits []*github.RepositoryCommit
			resp, err := r.get(ctx, "commits", query, &commits)
			if err != nil {
				yield(scm.Commit{}, r.fault("read the log of "+short(commit), err))
				return
			}
			for _, c := range commits {
				r.rememberTree(c.GetSHA(), c.GetCommit().GetTree().GetSHA())
				if !yield(commitOf(c), nil) {
					return
				}
			}
			page = resp.NextPage
		}
	}
}

// Changes compares head with its merge base with base. Pages after the first are
// asked for at once. GitHub shows 300 files of a comparison at most: beyond, the
// two trees are compared directory by directory.
func (r *Repository) Changes(ctx context.Context, base, head string) (scm.Changes, error) {
	doing := fmt.Sprintf("compare %s with %s", short(base), short(head))
	first, err := r.compare(ctx, base, head, 1)
	if err != nil {
		return scm.Changes{}, r.fault(doing, err)
	}
	if first.GetMergeBaseCommit().GetSHA() == "" {
		return scm.Changes{}, r.broken(doing, errEmptyAnswer)
	}
	out := scm.Changes{MergeBase: first.GetMergeBaseCommit().GetSHA()}
	pages := make([]*github.CommitsComparison, (first.GetTotalCommits()+pageSize-1)/pageSize)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i := 1; i < len(pages); i++ {
		g.Go(func() (err error) { pages[i], err = r.compare(gctx, base, head, i+1); return err })
	}
	if err := g.Wait(); err != nil {
		return scm.Changes{}, r.fault(doing, err)
	}
	for i, p := range pages {
		if i == 0 {
			p = first
		}
		for _, c := range p.Commits {
			out.Commits = append(out.Commits, commitOf(c))
		}
	}
	if len(out.Commits) != first.GetTotalCommits() {
		return scm.Changes{}, r.broken(doing, fmt.Errorf("%d of %d commits came", len(out.Commits), first.GetTotalCommits()))
	}
	slices.Reverse(out.Commits)
	if len(first.Files) >= comparedFiles {
		out.Paths, err = r.differences(ctx, out.MergeBase, head)
		return out, err
	}
	for _, f := range first.Files {
		out.Paths = append(out.Paths, f.GetFilename())
		if old := f.GetPreviousFilename(); old != "" && old != f.GetFilename() && f.GetStatus() != "copied" {
			out.Paths = append(out.Paths, old)
		}
	}
	slices.Sort(out.Paths)
	out.Paths = slices.Compact(out.Paths)
	return out, nil
}

// Compare takes one call where head has at most a page of commits and all of base;
// the newest of more are on the last two pages. What base alone has is another
// comparison, asked for where there is any.
func (r *Repository) Compare(ctx context.Context, base, head string) (scm.Comparison, error) {
	ctx = needing(ctx, rightsToCompare)
	var out scm.Comparison
	first, err := r.compare(ctx, base, head, 1)
	if err == nil {
		g, gctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) { out.Ahead, err = r.newest(gctx, base, head, first); return err })
		if first.GetBehindBy() > 0 {
			g.Go(func() error {
				first, err := r.compare(gctx, head, base, 1)
				if err == nil {
					out.Behind, err = r.newest(gctx, head, base, first)
				}
				return err
			})
		}
		err = g.Wait()
	}
	if err != nil {
		return scm.Comparison{}, r.fault(fmt.Sprintf("compare %s with %s", short(base), short(head)), err)
	}
	return out, nil
}

// newest are the newest commits of a comparison, whose pages are oldest first.
func (r *Repository) newest(ctx context.Context, base, head string, first *github.CommitsComparison) (scm.Span, error) {
	last := (first.GetTotalCommits() + pageSize - 1) / pageSize
	pages := []*github.CommitsComparison{first}
	if last > 1 {
		pages = []*github.CommitsComparison{first, nil}
		g, gctx := errgroup.WithContext(ctx)
		for i := range pages {
			if page := last - 1 + i; page > 1 {
				g.Go(func() (err error) { pages[i], err = r.compare(gctx, base, head, page); return err })
			}
		}
		if err := g.Wait(); err != nil {
			return scm.Span{}, err
		}
	}
	span := scm.Span{Count: first.GetTotalCommits()}
	for _, p := range pages {
		for _, c := range p.Commits {
			span.Commits = append(span.Commits, commitOf(c))
		}
	}
	slices.Reverse(span.Commits)
	span.Commits = span.Commits[:min(len(span.Commits), scm.ComparedCommits)]
	return span, nil
}

func (r *Repository) compare(ctx context.Context, base, head string, page int) (*github.CommitsComparison, error) {
	var c github.CommitsComparison
	query := url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)}}
	_, err := r.get(ctx, "compare/"+url.PathEscape(base)+"..."+url.PathEscape(head), query, &c)
	return &c, err
}
