package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Tip implements scm.Repository. Gitea's branch tells neither parents nor the
// committer's time, so that the commit is asked for at the same time; where that
// fails, or the branch moves between the two, the commit has no parents and its
// time is the author's. The first Tip asks for the server's version, too. A default branch that is called neither main nor
// master takes a second round the first time.
func (r *Repository) Tip(ctx context.Context, branch string) (scm.Tip, error) {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		_, err := r.features(ctx) // others wait for it too: a branch that is not there must not stop it
		return err
	})
	var tip scm.Tip
	g.Go(func() (err error) {
		if branch == "" {
			tip, err = r.defaultTip(gctx)
			return r.describe(err, "read the default branch")
		}
		tip, err = r.fullTip(gctx, branch)
		return r.describe(err, "read branch %s", branch)
	})
	if err := g.Wait(); err != nil {
		return scm.Tip{}, err
	}
	return tip, nil
}

// fullTip reads a branch and, beside it, its commit.
func (r *Repository) fullTip(ctx context.Context, branch string) (scm.Tip, error) {
	whole := make(chan scm.Commit, 1)
	go func() {
		c, err := r.readCommit(ctx, "refs/heads/"+branch)
		if err != nil {
			c = scm.Commit{} // the branch is the answer, this only adds to it
		}
		whole <- c
	}()
	tip, err := r.branchTip(ctx, branch)
	if c := <-whole; err == nil && c.SHA == tip.Commit.SHA {
		tip.Commit = c
	}
	return tip, err
}

func (r *Repository) branchTip(ctx context.Context, branch string) (scm.Tip, error) {
	var b sdk.Branch
	if _, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/branches/" + escapePath(branch), out: &b}); err != nil {
		return scm.Tip{}, err
	}
	if b.Name != branch || b.Commit == nil || b.Commit.ID == "" {
		return scm.Tip{}, fmt.Errorf("the answer is about branch %q", b.Name)
	}
	c := scm.Commit{SHA: b.Commit.ID, Message: b.Commit.Message, URL: b.Commit.URL, Time: b.Commit.Timestamp}
	if b.Commit.Author != nil {
		c.Author = b.Commit.Author.Name
	}
	return scm.Tip{Branch: b.Name, Commit: c, Protected: b.Protected}, nil
}

// defaultTip asks for the repository and, at the same time, for the branches that
// it probably names.
func (r *Repository) defaultTip(ctx context.Context) (scm.Tip, error) {
	if name := r.knownDefault(); name != "" {
		return r.fullTip(ctx, name)
	}
	guesses := []string{"main", "master"}
	tips := make([]scm.Tip, len(guesses))
	var name string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		name, err = r.askDefault(gctx)
		return err
	})
	for i, guess := range guesses {
		g.Go(func() error {
			tip, err := r.fullTip(gctx, guess)
			if err == nil {
				tips[i] = tip
			}
			if errors.Is(err, scm.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return scm.Tip{}, err
	}
	for _, tip := range tips {
		if tip.Branch == name {
			return tip, nil
		}
	}
	return r.fullTip(ctx, name)
}

func (r *Repository) knownDefault() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fallback
}

func (r *Repository) askDefault(ctx context.Context) (string, error) {
	var repo sdk.Repository
	if _, err := r.repoCall(ctx, request{method: http.MethodGet, out: &repo}); err != nil {
		return "", err
	}
	if repo.Empty || repo.DefaultBranch == "" {
		return "", fmt.Errorf("%w: the repository is empty: push a first commit", scm.ErrNotFound)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fallback = repo.DefaultBranch
	return repo.DefaultBranch, nil
}

// readCommit reads one commit with its parents.
func (r *Repository) readCommit(ctx context.Context, sha string) (scm.Commit, error) {
	var c sdk.Commit
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/git/commits/" + url.PathEscape(sha), query: lean(), out: &c})
	if err != nil {
		return scm.Commit{}, err
	}
	return commitOf(&c)
}

// lean asks for commits without what costs the server a git process each.
func lean() url.Values {
	return url.Values{"stat": {"false"}, "verification": {"false"}, "files": {"false"}}
}

func commitOf(c *sdk.Commit) (scm.Commit, error) {
	if c.CommitMeta == nil || c.SHA == "" || c.RepoCommit == nil {
		return scm.Commit{}, fmt.Errorf("the answer holds a commit without a SHA")
	}
	out := scm.Commit{SHA: c.SHA, Message: c.RepoCommit.Message, URL: c.HTMLURL}
	if a := c.RepoCommit.Author; a != nil {
		out.Author = a.Name
	}
	if w := c.RepoCommit.Committer; w != nil {
		t, err := time.Parse(time.RFC3339, w.Date)
		if err != nil {
			return out, fmt.Errorf("commit %s has the date %q: %w", c.SHA, w.Date, err)
		}
		out.Time = t
	}
	out.Parents = make([]string, 0, len(c.Parents))
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.SHA)
	}
	return out, nil
}

// pageSize is Gitea's largest page by default (MAX_RESPONSE_ITEMS); a server with
// a smaller one cuts it.
const pageSize = 50

func paged(q url.Values, page int) url.Values {
	q.Set("page", strconv.Itoa(page))
	q.Set("limit", strconv.Itoa(pageSize))
	return q
}
