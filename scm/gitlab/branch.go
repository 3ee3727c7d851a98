package gitlab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Tip reads a branch in one round. The default branch takes one round where it is
// called main or master, else two: GitLab's branches API does not know HEAD, and
// the project does not tell its default branch's protection.
func (r *Repository) Tip(ctx context.Context, branch string) (scm.Tip, error) {
	if branch == "" {
		return r.defaultTip(ctx)
	}
	b, e := r.branch(ctx, branch)
	if e != nil {
		return scm.Tip{}, r.fail("read branch "+branch, e)
	}
	return tip(b), nil
}

func (r *Repository) branch(ctx context.Context, name string) (*gl.Branch, *refusal) {
	b, resp, err := r.api.Branches.GetBranch(r.project, name, gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return nil, e
	}
	if b.Commit == nil || b.Commit.ID == "" {
		return nil, &refusal{text: "the answer names no commit", kind: scm.ErrUnavailable}
	}
	return b, nil
}

func (r *Repository) defaultTip(ctx context.Context) (scm.Tip, error) {
	var project *gl.Project
	usual := []string{"main", "master"}
	found := make([]*gl.Branch, len(usual))

	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		p, resp, err := r.api.Projects.GetProject(r.project, nil, gl.WithContext(gctx))
		if e := r.explain(resp, err); e != nil {
			return r.fail("read the default branch", e)
		}
		project = p
		return nil
	})
	for i, name := range usual {
		g.Go(func() error {
			b, e := r.branch(gctx, name)
			if e != nil && !errors.Is(e, scm.ErrNotFound) {
				return r.fail("read branch "+name, e)
			}
			found[i] = b
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return scm.Tip{}, err
	}
	if project.DefaultBranch == "" {
		return scm.Tip{}, r.fail("read the default branch", &refusal{kind: scm.ErrNotFound,
			text: "the repository has no default branch", hint: "is it empty, or may the token not read its code (scope api or read_api, role Reporter)?"})
	}
	for i, name := range usual {
		if name == project.DefaultBranch && found[i] != nil {
			return tip(found[i]), nil
		}
	}
	return r.Tip(ctx, project.DefaultBranch)
}

func tip(b *gl.Branch) scm.Tip {
	return scm.Tip{Branch: b.Name, Commit: commit(b.Commit), Protected: b.Protected}
}

func commit(c *gl.Commit) scm.Commit {
	var at time.Time
	if c.CommittedDate != nil {
		at = *c.CommittedDate
	}
	return scm.Commit{SHA: c.ID, Message: c.Message, Author: c.AuthorName, URL: c.WebURL, Parents: c.ParentIDs, Time: at}
}

func short(sha string) string { return sha[:min(len(sha), 8)] }

// branchName tells why a name is none that git takes, "" if it is. GitLab answers
// such a name with 404, which says nothing.
func branchName(name string) error {
	bad := name == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") ||
		strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") || strings.Contains(name, "..") ||
		strings.Contains(name, "//") || strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\\x7f") ||
		strings.ContainsFunc(name, func(c rune) bool { return c < ' ' })
	if bad {
		return fmt.Errorf("%q is no name for a branch (git-check-ref-format)", name)
	}
	return nil
}
