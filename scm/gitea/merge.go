package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "code.gitea.io/sdk/gitea"

	"tagboat/scm"
)

var _ scm.Merger = (*Repository)(nil)

// Merge implements scm.Merger, in the repository's default style.
func (r *Repository) Merge(ctx context.Context, pr scm.PullRequest, headCommit string) (string, error) {
	commit, err := r.mergeNow(ctx, pr.Number, headCommit)
	return commit, r.describe(err, "merge #%d", pr.Number)
}

func (r *Repository) mergeNow(ctx context.Context, number int, head string) (string, error) {
	if head == "" {
		return "", errors.New("no head commit given to bind it to")
	}
	raw, err := r.pull(ctx, number)
	if err != nil {
		return "", err
	}
	if raw.HasMerged {
		return r.mergedWith(ctx, raw, head)
	}
	if raw.State != sdk.StateOpen {
		return "", fmt.Errorf("%w: it is closed", scm.ErrRefused)
	}
	refused := r.schedule(ctx, number, map[string]any{"Do": mergeStyle(raw), "head_commit_id": head})
	if says(refused, http.StatusConflict, "head out of date") {
		return "", fmt.Errorf("%w: %w", scm.ErrMoved, refused)
	}
	if refused != nil && !ambiguous(refused) && statusOf(refused) != http.StatusMethodNotAllowed {
		return "", refused
	}
	// Gitea's answer names no commit, and it may be lost; of one that another run has
	// merged meanwhile it says 405, up to 1.24 without a word.
	now, err := r.pull(ctx, number)
	switch {
	case err == nil && now.HasMerged:
		return r.mergedWith(ctx, now, head)
	case refused != nil:
		return "", refused
	case err != nil:
		return "", fmt.Errorf("it is merged, by which commit is not known: %w", err)
	}
	return "", fmt.Errorf("%w: the server says that it is merged, and shows it open", scm.ErrUnavailable)
}

// mergedWith is the commit of a merged pull request, if head was merged.
func (r *Repository) mergedWith(ctx context.Context, p *sdk.PullRequest, head string) (string, error) {
	list := []scm.PullRequest{r.pullOf(p)}
	if p.Head.Ref == p.Head.Name {
		if err := r.ownHeads(ctx, list, []int{0}); err != nil {
			return "", err
		}
	}
	if list[0].HeadCommit != head {
		return "", fmt.Errorf("%w: it was merged with %s", scm.ErrMoved, short(list[0].HeadCommit))
	}
	return list[0].MergeCommit, nil
}

func mergeStyle(p *sdk.PullRequest) sdk.MergeStyle {
	if p.Base.Repository != nil && p.Base.Repository.DefaultMergeStyle != "" {
		return p.Base.Repository.DefaultMergeStyle
	}
	return sdk.MergeStyleMerge
}
