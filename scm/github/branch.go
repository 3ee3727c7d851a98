package github

import (
	"context"
	"fmt"
	"net/url"

	"github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Tip reads the newest commit of a branch in one call; the default branch ("")
// takes three calls at once. Protected of the default branch is read from the
// first hundred protected branches.
func (r *Repository) Tip(ctx context.Context, branch string) (scm.Tip, error) {
	if branch == "" {
		return r.defaultTip(ctx)
	}
	if err := checkBranch(branch); err != nil {
		return scm.Tip{}, err
	}
	doing := "read branch " + branch
	var b github.Branch
	if _, err := r.get(ctx, "branches/"+escape(branch), nil, &b); err != nil {
		return scm.Tip{}, r.fault(doing, err)
	}
	if b.GetName() != "" && b.GetName() != branch {
		return scm.Tip{}, fmt.Errorf("%s: %s: %w: it was renamed to %q; use that name", r.fullName(), doing, scm.ErrNotFound, b.GetName())
	}
	commit := b.Commit
	if commit.GetSHA() != "" && commit.Commit == nil {
		// GitHub tells the whole commit here; an emulator may tell its id only.
		commit = &github.RepositoryCommit{}
		if _, err := r.get(ctx, "commits/"+b.Commit.GetSHA(), nil, commit); err != nil {
			return scm.Tip{}, r.fault(doing, err)
		}
	}
	return r.tip(doing, branch, commit, b.GetProtected())
}

func (r *Repository) defaultTip(ctx context.Context) (scm.Tip, error) {
	const doing = "read the default branch"
	var repo github.Repository
	var commit github.RepositoryCommit
	var protected []github.Branch
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { _, err := r.get(gctx, "", nil, &repo); return err })
	g.Go(func() error {
		_, err := r.get(gctx, "commits/HEAD", url.Values{"per_page": {"1"}}, &commit)
		return err
	})
	g.Go(func() error {
		_, err := r.get(gctx, "branches", url.Values{"protected": {"true"}, "per_page": {"100"}}, &protected)
		return err
	})
	if err := g.Wait(); err != nil {
		return scm.Tip{}, r.fault(doing, err)
	}
	r.rememberNode(repo.GetNodeID())
	name := repo.GetDefaultBranch()
	if name == "" {
		return scm.Tip{}, r.broken(doing, errEmptyAnswer)
	}
	is := false
	for _, b := range protected {
		is = is || (b.GetName() == name && b.GetProtected())
	}
	return r.tip(doing, name, &commit, is)
}

func (r *Repository) tip(doing, branch string, c *github.RepositoryCommit, protected bool) (scm.Tip, error) {
	if c.GetSHA() == "" {
		return scm.Tip{}, r.broken(doing, errEmptyAnswer)
	}
	r.rememberTree(c.GetSHA(), c.GetCommit().GetTree().GetSHA())
	return scm.Tip{Branch: branch, Commit: commitOf(c), Protected: protected}, nil
}

func commitOf(c *github.RepositoryCommit) scm.Commit {
	out := scm.Commit{
		SHA: c.GetSHA(), Message: c.GetCommit().GetMessage(), URL: c.GetHTMLURL(),
		Author: c.GetAuthor().GetLogin(), Time: c.GetCommit().GetCommitter().GetDate().Time,
	}
	if out.Author == "" {
		out.Author = c.GetCommit().GetAuthor().GetName()
	}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.GetSHA())
	}
	return out
}

// refSHA is where a branch points now; ErrNotFound if it is not there.
func (r *Repository) refSHA(ctx context.Context, branch string) (string, error) {
	var ref github.Reference
	if _, err := r.get(ctx, "git/ref/heads/"+escape(branch), nil, &ref); err != nil {
		return "", r.fault("read branch "+branch, err)
	}
	if ref.GetObject().GetSHA() == "" {
		return "", r.broken("read branch "+branch, errEmptyAnswer)
	}
	return ref.GetObject().GetSHA(), nil
}

func (r *Repository) rememberTree(commit, tree string) {
	if commit == "" || tree == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trees) >= keptListings {
		clear(r.trees)
	}
	r.trees[commit] = tree
}

// treeOf is the SHA of a commit's root tree, from memory if a Tip told it.
func (r *Repository) treeOf(ctx context.Context, commit string) (string, error) {
	r.mu.Lock()
	tree := r.trees[commit]
	r.mu.Unlock()
	if tree != "" {
		return tree, nil
	}
	var c github.Commit
	if _, err := r.get(ctx, "git/commits/"+url.PathEscape(commit), nil, &c); err != nil {
		return "", r.fault("read commit "+commit, err)
	}
	if c.GetTree().GetSHA() == "" {
		return "", r.broken("read commit "+commit, errEmptyAnswer)
	}
	r.rememberTree(commit, c.GetTree().GetSHA())
	return c.GetTree().GetSHA(), nil
}

func (r *Repository) rememberNode(id string) {
	if id == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = id
}

func (r *Repository) knownNode() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.node
}

// nodeID is the repository's id for GraphQL, from memory if a call told it.
func (r *Repository) nodeID(ctx context.Context) (string, error) {
	if id := r.knownNode(); id != "" {
		return id, nil
	}
	var repo github.Repository
	if _, err := r.get(ctx, "", nil, &repo); err != nil {
		return "", r.fault("read the repository", err)
	}
	if repo.GetNodeID() == "" {
		return "", r.broken("read the repository", errEmptyAnswer)
	}
	r.rememberNode(repo.GetNodeID())
	return repo.GetNodeID(), nil
}
