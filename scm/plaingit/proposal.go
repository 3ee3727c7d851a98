package plaingit

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"tagboat/scm"
	"tagboat/scm/internal/gitobj"
)

// PullRequests implements scm.Repository: the branch head as an open pull request
// of Number 0, if it is there and holds something that branch base does not have.
// Closed ones cannot be known. Without a head it is scm.ErrUnsupported: nothing
// tells a proposal from any other branch.
func (r *Repository) PullRequests(ctx context.Context, head, base string) ([]scm.PullRequest, error) {
	if head == "" {
		return nil, r.wrap("list the open pull requests into "+base, fmt.Errorf("%w: plain git has none, a proposal is a pushed branch and known by its name", scm.ErrUnsupported))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.pushed(ctx, head, base)
	if err != nil {
		return nil, r.wrap(fmt.Sprintf("read branches %s and %s", head, base), err)
	}
	if p == nil {
		return nil, nil
	}
	return []scm.PullRequest{*p}, nil
}

func (r *Repository) pushed(ctx context.Context, head, base string) (*scm.PullRequest, error) {
	got, err := r.remote.read(ctx, r.o.Depth, func(all refs) []plumbing.Hash {
		if all.heads[head].IsZero() {
			return nil
		}
		return present(all.heads[head], all.heads[base])
	})
	if err != nil || got.heads[head].IsZero() {
		return nil, err
	}
	if got.heads[base].IsZero() {
		return nil, fmt.Errorf("%w: branch %q", scm.ErrNotFound, base)
	}
	in, err := r.isIn(ctx, got.heads[base], got.heads[head])
	if err != nil || in {
		return nil, err
	}
	c, err := object.GetCommit(r.objects, got.heads[head])
	if err != nil {
		return nil, err
	}
	p := &scm.PullRequest{
		URL: r.location.CloneURL, Head: head, Base: base, HeadCommit: c.Hash.String(),
		Author: c.Author.Name, State: scm.Open, UpdatedAt: c.Committer.When.UTC(),
	}
	p.Title, p.Body = firstLine(c.Message)
	return p, nil
}

// isIn tells whether the base has all that the head changes: merged, squashed or
// rebased.
func (r *Repository) isIn(ctx context.Context, base, head plumbing.Hash) (bool, error) {
	changes, err := r.changes(ctx, base.String(), head.String())
	if err != nil || len(changes.Commits) == 0 {
		return err == nil, err
	}
	x, err := object.GetCommit(r.objects, base)
	if err != nil {
		return false, err
	}
	y, err := object.GetCommit(r.objects, head)
	if err != nil {
		return false, err
	}
	for _, path := range changes.Paths {
		a, missing := gitobj.Entry(r.objects, x.TreeHash, path)
		b, gone := gitobj.Entry(r.objects, y.TreeHash, path)
		if (missing == nil) != (gone == nil) || missing == nil && (a.Hash != b.Hash || a.Mode != b.Mode) {
			return false, nil
		}
	}
	return true, nil
}

// Propose implements scm.Repository: the branch is pushed already, so it tells it
// with the wanted title and body, and warns of what a remote has not.
func (r *Repository) Propose(ctx context.Context, p scm.Proposal) (scm.PullRequest, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got, err := r.remote.read(ctx, r.o.Depth, func(refs) []plumbing.Hash { return nil })
	if err != nil {
		return scm.PullRequest{}, r.wrap("propose branch "+p.Head, err)
	}
	at, ok := got.heads[p.Head]
	if !ok {
		return scm.PullRequest{}, r.wrap("propose", fmt.Errorf("%w: branch %q", scm.ErrNotFound, p.Head))
	}
	if p.HeadCommit != "" && at.String() != p.HeadCommit {
		return scm.PullRequest{}, r.wrap("propose", fmt.Errorf("%w: branch %s is at %s, not at %s", scm.ErrMoved, p.Head, at, p.HeadCommit))
	}
	out := scm.PullRequest{
		URL: r.location.CloneURL, Head: p.Head, Base: p.Base, HeadCommit: at.String(), Title: p.Title, Body: p.Body,
		Author: r.o.Author, State: scm.Open, Warnings: lacking(p),
	}
	if p.AutoMerge {
		err = r.wrap("propose branch "+p.Head, fmt.Errorf("%w: plain git has no auto-merge", scm.ErrUnsupported))
	}
	return out, err
}

func lacking(p scm.Proposal) (warnings []string) {
	for _, x := range []struct {
		asked bool
		what  string
	}{
		{len(p.Labels) > 0, "labels"},
		{len(p.Reviewers)+len(p.TeamReviewers) > 0, "reviewers"},
		{len(p.Assignees) > 0, "assignees"},
		{p.Draft, "drafts"},
	} {
		if x.asked {
			warnings = append(warnings, "plain git has no "+x.what+": the proposal is the pushed branch "+p.Head)
		}
	}
	return warnings
}

// Close implements scm.Repository: it deletes the branch if it still is at
// pr.HeadCommit, else scm.ErrMoved. A branch that is gone is closed. There is
// nowhere to keep title, body and why.
func (r *Repository) Close(ctx context.Context, pr scm.PullRequest, _ string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !plumbing.IsHash(pr.HeadCommit) || pr.Head == "" || pr.Head == pr.Base {
		return r.wrap("close", fmt.Errorf("%w: the proposal of branch %q has no head commit", scm.ErrRefused, pr.Head))
	}
	got, err := r.remote.read(ctx, r.o.Depth, func(refs) []plumbing.Hash { return nil })
	if err != nil {
		return r.wrap("close the proposal of branch "+pr.Head, err)
	}
	if _, ok := got.heads[pr.Head]; !ok {
		return nil
	}
	if pr.Head == got.main {
		return r.wrap("close", fmt.Errorf("%w: %s is the default branch", scm.ErrRefused, pr.Head))
	}
	err = r.remote.move(ctx, pr.Head, plumbing.NewHash(pr.HeadCommit), plumbing.ZeroHash, nil)
	return r.wrap("delete branch "+pr.Head, err)
}
