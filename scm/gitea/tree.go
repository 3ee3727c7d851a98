package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

const (
	// treePage is Gitea's page of a tree by default (DEFAULT_GIT_TREES_PER_PAGE).
	treePage = 1000
	// treeLimit bounds the directories that one comparison lists.
	treeLimit = 2000
)

// tree lists a directory by a tree's or commit's SHA, or by "SHA:path", which
// Gitea hands to git rev-parse. The latter is documented nowhere, so that a
// refusal of it is no proof that the path is not there.
func (r *Repository) tree(ctx context.Context, treeish string) (sha string, entries []sdk.GitEntry, err error) {
	for page := 1; ; page++ {
		var t sdk.GitTreeResponse
		q := url.Values{"page": {strconv.Itoa(page)}, "per_page": {strconv.Itoa(treePage)}}
		_, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/git/trees/" + url.PathEscape(treeish), query: q, out: &t})
		if err != nil {
			return "", nil, err
		}
		entries = append(entries, t.Entries...)
		if len(t.Entries) == 0 || len(entries) >= t.TotalCount {
			return t.SHA, entries, nil
		}
	}
}

// comparison is one walk over two trees.
type comparison struct {
	r *Repository

	mu     sync.Mutex
	listed map[string][]sdk.GitEntry // by the tree's SHA
	count  int
	paths  []string
}

// pair is a directory at both ends; "" is a tree that is not there.
type pair struct{ dir, a, b string }

// diffTrees lists every path that differs between two commits, sorted. hints are
// paths that probably do: their directories are listed in the first round.
func (r *Repository) diffTrees(ctx context.Context, a, b string, hints []string) ([]string, error) {
	c := &comparison{r: r, listed: map[string][]sdk.GitEntry{}}
	roots, err := c.prefetch(ctx, a, b, hints)
	if err != nil {
		return nil, err
	}
	level := []pair{{a: roots[0], b: roots[1]}}
	for len(level) > 0 {
		if level, err = c.compare(ctx, level); err != nil {
			return nil, err
		}
	}
	slices.Sort(c.paths)
	return slices.Compact(c.paths), nil
}

// prefetch lists the roots of both commits and, beside them, the directories
// above the hints, as long as those are few. It answers the roots' SHAs.
func (c *comparison) prefetch(ctx context.Context, a, b string, hints []string) (roots [2]string, err error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, commit := range []string{a, b} {
		g.Go(func() (err error) {
			roots[i], err = c.list(gctx, commit)
			return err
		})
		for _, dir := range dirsAbove(hints, 32) {
			g.Go(func() error {
				_, err := c.list(gctx, commit+":"+dir)
				if errors.Is(err, scm.ErrUnavailable) || ctx.Err() != nil {
					return err
				}
				return nil // not there at this end, or no such notation: the walk tells
			})
		}
	}
	return roots, g.Wait()
}

func dirsAbove(paths []string, limit int) []string {
	var dirs []string
	for _, p := range paths {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
		if len(dirs) > limit {
			return nil
		}
	}
	return dirs
}

func (c *comparison) list(ctx context.Context, treeish string) (sha string, err error) {
	c.mu.Lock()
	_, have := c.listed[treeish]
	c.count++
	count := c.count
	c.mu.Unlock()
	if have {
		return treeish, nil
	}
	if count > treeLimit {
		return "", fmt.Errorf("%w: more than %d directories differ", scm.ErrUnsupported, treeLimit)
	}
	sha, entries, err := c.r.tree(ctx, treeish)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed[sha] = entries
	return sha, nil
}

// compare does one level and answers the directories of the next.
func (c *comparison) compare(ctx context.Context, level []pair) (next []pair, err error) {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, p := range level {
		for _, sha := range []string{p.a, p.b} {
			if sha != "" {
				g.Go(func() error {
					_, err := c.list(gctx, sha)
					return err
				})
			}
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, p := range level {
		next = append(next, c.entries(p)...)
	}
	return next, nil
}

// entries compares the entries of one directory at both ends.
func (c *comparison) entries(p pair) (next []pair) {
	ends := map[string]*[2]sdk.GitEntry{}
	for i, sha := range []string{p.a, p.b} {
		for _, e := range c.listed[sha] {
			if ends[e.Path] == nil {
				ends[e.Path] = &[2]sdk.GitEntry{}
			}
			ends[e.Path][i] = e
		}
	}
	for name, e := range ends {
		if e[0].SHA == e[1].SHA && e[0].Mode == e[1].Mode {
			continue
		}
		full := strings.TrimPrefix(p.dir+"/"+name, "/")
		down := pair{dir: full}
		for i, side := range []*string{&down.a, &down.b} {
			if e[i].Type == "tree" {
				*side = e[i].SHA
			} else if e[i].SHA != "" {
				c.paths = append(c.paths, full)
			}
		}
		if down.a != "" || down.b != "" {
			next = append(next, down)
		}
	}
	return next
}
