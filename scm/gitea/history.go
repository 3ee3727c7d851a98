package gitea

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"tagboat/scm"
)

// Log implements scm.Repository, in pages of 50.
func (r *Repository) Log(ctx context.Context, commit, path string) iter.Seq2[scm.Commit, error] {
	return func(yield func(scm.Commit, error) bool) {
		q := url.Values{"sha": {commit}}
		if path != "" && path != "." {
			q.Set("path", path)
		}
		for c, err := range r.commits(ctx, q) {
			if err != nil {
				yield(scm.Commit{}, r.describe(err, "read the history of %s at %s", pathOrAll(path), short(commit)))
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func pathOrAll(path string) string {
	if path == "" {
		return "the repository"
	}
	return path
}

// commits pages through GET commits with a query. It ends with the first error.
func (r *Repository) commits(ctx context.Context, q url.Values) iter.Seq2[scm.Commit, error] {
	return func(yield func(scm.Commit, error) bool) {
		for page := 1; ; page++ {
			p, err := r.commitPage(ctx, q, page)
			if err != nil {
				yield(scm.Commit{}, err)
				return
			}
			for _, c := range p.commits {
				if !yield(c, nil) {
					return
				}
			}
			if !p.more || len(p.commits) == 0 {
				return
			}
		}
	}
}

// commitPage is a page of GET commits. total counts all pages; 0 where the server
// does not tell.
type commitPage struct {
	commits []scm.Commit
	more    bool
	total   int
}

// commitPage reads one page.
func (r *Repository) commitPage(ctx context.Context, q url.Values, page int) (out commitPage, err error) {
	all := lean()
	for k, v := range q {
		all[k] = v
	}
	var answer []*sdk.Commit
	header, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/commits", query: paged(all, page), out: &answer})
	switch {
	case q.Has("path") && statusOf(err) == http.StatusNotFound:
		return out, r.neverChanged(ctx, q, err)
	case statusOf(err) == http.StatusInternalServerError:
		return out, r.explainCommits(ctx, q, err)
	case err != nil:
		return out, err
	}
	for _, a := range answer {
		c, err := commitOf(a)
		if err != nil {
			return out, err
		}
		out.commits = append(out.commits, c)
	}
	out.more = header.Get("X-HasMore") == "true"
	out.total, _ = strconv.Atoi(header.Get("X-Total-Count"))
	return out, nil
}

// neverChanged is nil where no commit has ever changed the path, which Gitea answers
// with 404. Up to 1.26 it says so; from 1.27 on it says what it says of a repository
// that is not there, too.
func (r *Repository) neverChanged(ctx context.Context, q url.Values, cause error) error {
	if says(cause, http.StatusNotFound, "FileCommitsCount") {
		return nil
	}
	if _, err := r.readCommit(ctx, q.Get("sha")); err != nil {
		return fmt.Errorf("commit %s: %w", short(q.Get("sha")), err)
	}
	return nil
}

// explainCommits tells an unknown commit, which Gitea answers with 500 where a
// path or a commit to leave out is given.
func (r *Repository) explainCommits(ctx context.Context, q url.Values, cause error) error {
	for _, key := range []string{"sha", "not"} {
		if !q.Has(key) {
			continue
		}
		if _, err := r.readCommit(ctx, q.Get(key)); errors.Is(err, scm.ErrNotFound) {
			return fmt.Errorf("commit %s: %w", short(q.Get(key)), err)
		}
	}
	return cause
}
