package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

const (
	// branchLimit bounds the commits that a head has and its base has not.
	branchLimit = 1000
	// diffLimit bounds the diff of one commit that is read, in bytes. What is
	// larger is compared by its trees.
	diffLimit = 4 << 20
)

// Changes implements scm.Repository. A head that is one commit on the base takes
// one round: Gitea's diff of that commit is the whole change. (The list of files
// in Gitea's commits is not: it leaves out a file that became a symlink.) With
// more commits, or a merge, the trees of both ends are compared.
func (r *Repository) Changes(ctx context.Context, base, head string) (scm.Changes, error) {
	c, err := r.changes(ctx, base, head)
	return c, r.describe(err, "compare %s with %s", short(head), short(base))
}

func (r *Repository) changes(ctx context.Context, base, head string) (scm.Changes, error) {
	if base == head {
		return scm.Changes{MergeBase: base}, nil
	}
	var out scm.Changes
	var diff []string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		out.Commits, err = r.between(gctx, base, head)
		return err
	})
	g.Go(func() (err error) {
		diff, err = r.commitDiff(gctx, head)
		return err
	})
	if err := g.Wait(); err != nil {
		return scm.Changes{}, err
	}
	var err error
	if out.MergeBase, err = r.mergeBase(ctx, out.Commits, head); err != nil {
		return scm.Changes{}, err
	}
	switch {
	case len(out.Commits) == 0:
		return out, nil
	case len(out.Commits) == 1 && len(out.Commits[0].Parents) == 1 && diff != nil:
		out.Paths = diff
		return out, nil
	}
	out.Paths, err = r.diffTrees(ctx, out.MergeBase, head, diff)
	return out, err
}

// Compare lists both sides at once: one page each, whose header tells how many
// there are.
func (r *Repository) Compare(ctx context.Context, base, head string) (scm.Comparison, error) {
	var out scm.Comparison
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { out.Ahead, err = r.span(gctx, base, head); return err })
	g.Go(func() (err error) { out.Behind, err = r.span(gctx, head, base); return err })
	err := g.Wait()
	return out, r.describe(err, "compare %s with %s", short(base), short(head))
}

func (r *Repository) span(ctx context.Context, base, head string) (scm.Span, error) {
	page, err := r.commitPage(ctx, url.Values{"sha": {head}, "not": {base}}, 1)
	span := scm.Span{Commits: page.commits, Count: page.total}
	if span.Count < len(page.commits) || span.Count == len(page.commits) && page.more {
		span.Count, span.AtLeast = len(page.commits), page.more
	}
	return span, err
}

// between lists the commits on head and not on base, newest first.
func (r *Repository) between(ctx context.Context, base, head string) ([]scm.Commit, error) {
	var list []scm.Commit
	for c, err := range r.commits(ctx, url.Values{"sha": {head}, "not": {base}}) {
		if err != nil {
			return nil, err
		}
		if list = append(list, c); len(list) > branchLimit {
			return nil, fmt.Errorf("%w: more than %d commits are on the head and not on the base", scm.ErrUnsupported, branchLimit)
		}
	}
	return list, nil
}

// commitDiff reads which paths a commit changes against its first parent, sorted.
// nil without an error means that the diff is too large or not understood.
func (r *Repository) commitDiff(ctx context.Context, sha string) ([]string, error) {
	path := "/repos/" + url.PathEscape(r.owner) + "/" + url.PathEscape(r.name) + "/git/commits/" + url.PathEscape(sha) + ".diff"
	_, body, err := r.fetch(ctx, request{method: http.MethodGet, path: path}, diffLimit)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, nil
	case err != nil:
		return nil, err
	}
	paths, err := diffPaths(string(body))
	if err != nil {
		return nil, nil //nolint:nilerr // the trees tell
	}
	return paths, nil
}

// mergeBase finds the newest commit that base and head share, from the commits
// that only head has: it is a parent of theirs that is not among them. Where base
// was merged into head there are several; then one is taken that is no ancestor
// of another.
func (r *Repository) mergeBase(ctx context.Context, only []scm.Commit, head string) (string, error) {
	if len(only) == 0 {
		return head, nil
	}
	mine := map[string]bool{}
	for _, c := range only {
		mine[c.SHA] = true
	}
	var shared []string
	for _, c := range only {
		for _, p := range c.Parents {
			if !mine[p] && !slices.Contains(shared, p) {
				shared = append(shared, p)
			}
		}
	}
	if len(shared) == 0 {
		return "", fmt.Errorf("%w: the two have no commit in common", scm.ErrUnsupported)
	}
	return r.newest(ctx, shared)
}

// newest finds a commit that is no ancestor of another in the list. The first one
// usually is: the commits come newest first.
func (r *Repository) newest(ctx context.Context, list []string) (string, error) {
	best, rest := list[0], list[1:]
	for len(rest) > 0 {
		later := make([]bool, len(rest))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(8)
		for i, other := range rest {
			g.Go(func() (err error) {
				later[i], err = r.isAncestor(gctx, best, other)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return "", err
		}
		i := slices.Index(later, true)
		if i < 0 {
			break
		}
		best, rest = rest[i], rest[i+1:]
	}
	return best, nil
}

// isAncestor tells whether a is reachable from b: nothing of a is missing in b.
func (r *Repository) isAncestor(ctx context.Context, a, b string) (bool, error) {
	q := url.Values{"sha": {a}, "not": {b}}
	for _, err := range r.commits(ctx, q) {
		return false, err
	}
	return true, nil
}
