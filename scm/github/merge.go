package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

var _ scm.Merger = (*Repository)(nil)

// Merge asks which ways to merge the repository allows, then merges with the head
// commit as the condition.
func (r *Repository) Merge(ctx context.Context, pr scm.PullRequest, headCommit string) (string, error) {
	doing := fmt.Sprintf("merge #%d", pr.Number)
	if headCommit == "" {
		return "", fmt.Errorf("%s: %s: no head commit given to bind it to", r.fullName(), doing)
	}
	var repo github.Repository
	if _, err := r.get(ctx, "", nil, &repo); err != nil {
		return "", r.fault(doing, err)
	}
	done, _, err := r.api().PullRequests.Merge(ctx, r.owner, r.name, pr.Number, "", &github.PullRequestOptions{
		SHA: headCommit, MergeMethod: strings.ToLower(mergeMethod(&repo)),
	})
	if err == nil {
		return done.GetSHA(), nil
	}
	a, answered := answerOf(err)
	// An answer may be lost, and a pull request that is merged answers 405.
	if ambiguous(err) || a.status == http.StatusMethodNotAllowed {
		if now, readErr := r.pull(ctx, pr.Number); readErr == nil && now.State == scm.Merged && now.HeadCommit == headCommit {
			return now.MergeCommit, nil
		}
	}
	switch {
	case answered && a.status == http.StatusConflict:
		return "", r.refusal(doing, a, scm.ErrMoved)
	case answered && a.status == http.StatusMethodNotAllowed:
		return "", r.refusal(doing, a, scm.ErrRefused)
	}
	return "", r.fault(doing, err)
}

func (r *Repository) pull(ctx context.Context, number int) (scm.PullRequest, error) {
	p, _, err := r.api().PullRequests.Get(ctx, r.owner, r.name, number)
	if err != nil {
		return scm.PullRequest{}, err
	}
	return pullOf(p), nil
}
