package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"tagboat/scm"
)

// autoMerge asks Gitea to merge when all checks have passed, in the repository's
// default style. Gitea itself does not tie that to a commit (head_commit_id
// counts only where it merges at once): the head is compared afterwards, and
// auto-merge is taken back if it is another one.
func (r *Repository) autoMerge(ctx context.Context, p scm.Proposal, raw *sdk.PullRequest) (*sdk.PullRequest, error) {
	number := int(raw.Index)
	in := map[string]any{"Do": mergeStyle(raw), "merge_when_checks_succeed": true, "head_commit_id": p.HeadCommit}
	if err := r.schedule(ctx, number, in); err != nil {
		return nil, err
	}
	now, err := r.pull(ctx, number)
	if err != nil {
		return nil, err
	}
	if p.HeadCommit != "" && now.Head.Sha != p.HeadCommit {
		err = fmt.Errorf("%w: the head is %s, %s was proposed: auto-merge is taken back", scm.ErrMoved, short(now.Head.Sha), short(p.HeadCommit))
		if left := r.disarm(ctx, &scm.PullRequest{Number: number}); left != nil {
			err = fmt.Errorf("%w; %w", err, left)
		}
	}
	return now, err
}

// schedule waits for Gitea to have found out whether a new head can be merged: it
// answers 405 until then.
func (r *Repository) schedule(ctx context.Context, number int, in any) error {
	for try := 1; ; try++ {
		_, err := r.repoCall(ctx, request{method: http.MethodPost, path: pullPath(number) + "/merge", in: in})
		switch {
		case err == nil, says(err, http.StatusConflict, "already scheduled"):
			return nil
		case !says(err, http.StatusMethodNotAllowed, "try again later"):
			return err
		case try == 6:
			return fmt.Errorf("it cannot be merged as it is, or Gitea is still checking it: %w", err)
		}
		if err := r.sleep(ctx, time.Duration(try*try)*250*time.Millisecond); err != nil {
			return err
		}
	}
}

// disarm takes back auto-merge that somebody may have set for what a pull request
// showed before: Gitea's lists do not tell.
func (r *Repository) disarm(ctx context.Context, pr *scm.PullRequest) error {
	if pr == nil {
		return nil
	}
	_, err := r.repoCall(scm.AsRead(ctx), request{method: http.MethodDelete, path: pullPath(pr.Number) + "/merge"})
	if err == nil || errors.Is(err, scm.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("auto-merge that somebody may have set for the earlier digest could not be taken back: %w", err)
}

// dismissApprovals dismisses what approved another digest and answers warnings.
func (r *Repository) dismissApprovals(ctx context.Context, number int) []string {
	const warning = "approvals of the earlier digest may still count: "
	reviews, err := r.reviews(ctx, number)
	if err != nil {
		return []string{warning + err.Error()}
	}
	for _, v := range reviews {
		if v.State != sdk.ReviewStateApproved || v.Dismissed {
			continue
		}
		if err := r.dismiss(ctx, number, v.ID); err != nil {
			return []string{warning + err.Error() + " (Gitea lets only administrators of the repository dismiss)"}
		}
	}
	return nil
}

func (r *Repository) dismiss(ctx context.Context, number int, review int64) error {
	in := map[string]any{"message": "This pull request proposes another digest now."}
	path := pullPath(number) + "/reviews/" + strconv.FormatInt(review, 10) + "/dismissals"
	_, err := r.repoCall(ctx, request{method: http.MethodPost, path: path, in: in})
	return err
}
