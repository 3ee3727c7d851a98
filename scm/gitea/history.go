package gitea

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"

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
			list, more, err := r.commitPage(ctx, q, page)
			if err != nil {
				yield(scm.Commit{}, err)
				return
			}
			for _, c := range list {
				if !yield(c, nil) {
					return
				}
			}
			if !more || len(list) == 0 {
				return
			}
		}
	}
}

func (r *Repository) commitPage(ctx context.Context, q url.Values, page int) (list []scm.Commit, more bool, err error) {
	all := lean()
	for k, v := range q {
		all[k] = v
	}
	var answer []*sdk.Commit
	header, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/commits", query: paged(all, page), out: &answer})
	switch {
	case q.Has("path") && says(err, http.StatusNotFound, "FileCommitsCount"):
		return nil, false, nil // no commit has ever changed the path
	case statusOf(err) == http.StatusInternalServerError:
		return nil, false, r.explainCommits(ctx, q, err)
	case err != nil:
		return nil, false, err
	}
	for _, a := range answer {
		c, err := commitOf(a)
		if err != nil {
			return nil, false, err
		}
		list = append(list, c)
	}
	return list, header.Get("X-HasMore") == "true", nil
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
