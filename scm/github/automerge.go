package github

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

// settleAutoMerge sets auto-merge that is asked for, bound to the head commit, and
// clears one that was for another digest. A person's own is left alone otherwise.
func (r *Repository) settleAutoMerge(ctx context.Context, pr *github.PullRequest, p scm.Proposal, warn func(string)) (on bool, err error) {
	set := pr.AutoMerge != nil
	switch {
	case p.AutoMerge && set && !p.Renewed:
		return true, nil
	case p.AutoMerge:
		if err := r.enableAutoMerge(ctx, pr, p.HeadCommit); err != nil {
			return set, err
		}
		return true, nil
	case set && p.Renewed:
		err := r.mutate(ctx, disableAutoMerge, map[string]any{"pullRequestId": pr.GetNodeID()})
		if err != nil {
			warn(fmt.Sprintf("clear auto-merge, which was set for another digest: %v; clear it by hand: %s", err, pr.GetHTMLURL()))
			return true, nil
		}
		return false, nil
	}
	return set, nil
}

// disarm clears auto-merge that was set for what a pull request showed before. It
// goes beside the writing of objects, so that it costs no round.
func (r *Repository) disarm(ctx context.Context, pr *scm.PullRequest) error {
	if pr == nil || !pr.AutoMerge || pr.ID == "" {
		return nil
	}
	err := r.mutate(ctx, disableAutoMerge, map[string]any{"pullRequestId": pr.ID})
	return r.notAutoMerged(fmt.Sprintf("clear auto-merge on #%d, which was set for another digest", pr.Number), err)
}

// enableAutoMerge tries again what GitHub refuses while it does not know the pull
// request, or the commit that was just pushed to it, yet.
func (r *Repository) enableAutoMerge(ctx context.Context, pr *github.PullRequest, head string) error {
	input := map[string]any{
		"pullRequestId": pr.GetNodeID(), "expectedHeadOid": head, "mergeMethod": mergeMethod(pr.GetBase().GetRepo()),
	}
	for attempt := 0; ; attempt++ {
		err := r.mutate(ctx, enableAutoMerge, input)
		var refused *graphError
		lag := errors.As(err, &refused) && refused.has("head sha", "expected head", "Could not resolve to a node")
		if !lag || attempt == lagAttempts {
			return r.notAutoMerged(fmt.Sprintf("set auto-merge on #%d", pr.GetNumber()), err)
		}
		if err := r.sleep(ctx, lagPause<<attempt); err != nil {
			return err
		}
	}
}

func (r *Repository) notAutoMerged(doing string, err error) error {
	var refused *graphError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoGraphQL):
		return fmt.Errorf("%s: %s: %w; GitHub sets auto-merge by GraphQL only: merge by hand", r.fullName(), doing, err)
	case errors.As(err, &refused):
		text := fmt.Errorf("%s: %s: %w: %w", r.fullName(), doing, refused.kind(), refused)
		if hint := autoMergeHint(refused); hint != "" {
			return fmt.Errorf("%w; %s", text, hint)
		}
		return text
	}
	return r.fault(doing, err)
}

func autoMergeHint(e *graphError) string {
	switch {
	case e.has("clean status"):
		return "there is nothing to wait for, so GitHub sets none: merge it, or require a check or a review on the base branch"
	case e.has("unstable status"):
		return "a check that is not required has failed or is pending: require it, or merge by hand"
	case e.has("not allowed for this repository", "auto merge is not allowed"):
		return "turn on \"Allow auto-merge\" (Settings, General)"
	case e.has("merge method", "not allowed on this repository"):
		return "this merge method is off in the repository's settings"
	case e.has("head", "expected"):
		return "the branch has moved on since it was read"
	case e.has("draft"):
		return "mark the pull request as ready first"
	}
	return ""
}

// mergeMethod is the first that the repository allows; an answer that does not
// tell allows merge commits.
func mergeMethod(repo *github.Repository) string {
	switch {
	case repo.AllowMergeCommit == nil || repo.GetAllowMergeCommit():
		return "MERGE"
	case repo.GetAllowSquashMerge():
		return "SQUASH"
	}
	return "REBASE"
}

var _ scm.Repository = (*Repository)(nil)
