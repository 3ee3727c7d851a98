package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Propose implements scm.Repository. A draft is a title with "WIP: " before it;
// the prefix of an existing one is kept and never part of PullRequest.Title.
// PullRequest.AutoMerge is known only here: Gitea's API does not tell it.
func (r *Repository) Propose(ctx context.Context, p scm.Proposal) (scm.PullRequest, error) {
	raw, warnings, err := r.save(ctx, p)
	if err != nil {
		return scm.PullRequest{}, r.describe(err, "propose %s into %s", p.Head, p.Base)
	}
	warnings = append(warnings, r.decorate(ctx, p, raw)...)
	pr := r.pullOf(raw)
	if p.AutoMerge {
		var merged *sdk.PullRequest
		merged, err = r.autoMerge(ctx, p, raw)
		if merged != nil {
			pr = r.pullOf(merged)
		}
		pr.AutoMerge = err == nil && pr.State == scm.Open
		err = r.describe(err, "set auto-merge of pull request #%d", pr.Number)
	}
	pr.Warnings = warnings
	return pr, err
}

// save opens the pull request, or edits the open one.
func (r *Repository) save(ctx context.Context, p scm.Proposal) (*sdk.PullRequest, []string, error) {
	if p.Number != 0 {
		return r.edit(ctx, p)
	}
	title := p.Title
	if p.Draft {
		title = draftPrefix + title
	}
	var raw sdk.PullRequest
	in := sdk.CreatePullRequestOption{Head: p.Head, Base: p.Base, Title: title, Body: p.Body}
	_, err := r.repoCall(ctx, request{method: http.MethodPost, path: "/pulls", in: in, out: &raw})
	if err == nil {
		return &raw, draftWarning(p, &raw), checkPull(&raw)
	}
	if statusOf(err) == http.StatusConflict || ambiguous(err) && ctx.Err() == nil {
		return r.adopt(ctx, p, err)
	}
	if errors.Is(err, scm.ErrNotFound) {
		err = fmt.Errorf("a branch is not there, or pull requests are switched off: %w", err)
	}
	return nil, nil, err
}

func draftWarning(p scm.Proposal, raw *sdk.PullRequest) []string {
	if !p.Draft || raw.Draft {
		return nil
	}
	return []string{"the pull request is no draft: this server's WORK_IN_PROGRESS_PREFIXES have no " + strings.TrimSpace(draftPrefix)}
}

func checkPull(p *sdk.PullRequest) error {
	if p.Index == 0 || p.Head == nil || p.Base == nil {
		return errors.New("the answer is no pull request")
	}
	return nil
}

// adopt edits the open pull request that somebody else (or an unanswered call of
// ours) has opened.
func (r *Repository) adopt(ctx context.Context, p scm.Proposal, cause error) (*sdk.PullRequest, []string, error) {
	list, err := r.pulls(ctx, p.Head, p.Base)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; whether one is open is unknown: %w", cause, err)
	}
	for _, pr := range list {
		if pr.State == scm.Open {
			p.Number = pr.Number
			return r.edit(ctx, p)
		}
	}
	return nil, nil, cause
}

// edit saves title and body. What approves another digest is taken back at the
// same time.
func (r *Repository) edit(ctx context.Context, p scm.Proposal) (*sdk.PullRequest, []string, error) {
	var raw sdk.PullRequest
	var cancelled, dismissed []string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		title, err := r.keepDraft(gctx, p.Number, p.Title)
		if err != nil {
			return err
		}
		in := map[string]any{"title": title, "body": p.Body}
		_, err = r.repoCall(gctx, request{method: http.MethodPatch, path: pullPath(p.Number), in: in, out: &raw})
		return err
	})
	if p.Renewed { // also where the edit fails: the branch is another digest already
		g.Go(func() error {
			if err := r.disarm(ctx, &scm.PullRequest{Number: p.Number}); err != nil {
				cancelled = []string{err.Error()}
			}
			return nil
		})
		g.Go(func() error {
			dismissed = r.dismissApprovals(ctx, p.Number)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	if raw.State != sdk.StateOpen {
		return nil, nil, r.giveBack(ctx, p)
	}
	return &raw, append(cancelled, dismissed...), checkPull(&raw)
}

// giveBack gives a pull request that was closed or merged meanwhile the text back
// that people decided on, and answers ErrMoved.
func (r *Repository) giveBack(ctx context.Context, p scm.Proposal) error {
	moved := fmt.Errorf("%w: pull request %d was closed or merged meanwhile", scm.ErrMoved, p.Number)
	if p.Was == nil {
		return moved
	}
	in := map[string]any{"title": p.Was.Title, "body": p.Was.Body}
	if _, err := r.repoCall(ctx, request{method: http.MethodPatch, path: pullPath(p.Number), in: in}); err != nil {
		return fmt.Errorf("%w, and its text could not be given back: %w", moved, err)
	}
	return moved
}

func pullPath(number int) string { return "/pulls/" + strconv.Itoa(number) }

// keepDraft puts the draft prefix that a pull request has before a title. One
// that was not seen yet is looked at first.
func (r *Repository) keepDraft(ctx context.Context, number int, title string) (string, error) {
	r.mu.Lock()
	prefix, seen := r.drafts[number]
	r.mu.Unlock()
	if seen {
		return prefix + title, nil
	}
	raw, err := r.pull(ctx, number)
	if err != nil {
		return "", err
	}
	if raw.Draft {
		prefix, _ = splitDraft(raw.Title)
	}
	return prefix + title, nil
}

func (r *Repository) pull(ctx context.Context, number int) (*sdk.PullRequest, error) {
	var raw sdk.PullRequest
	if _, err := r.repoCall(ctx, request{method: http.MethodGet, path: pullPath(number), out: &raw}); err != nil {
		return nil, err
	}
	return &raw, checkPull(&raw)
}

// Close implements scm.Repository.
func (r *Repository) Close(ctx context.Context, pr scm.PullRequest, why string) error {
	err := r.close(ctx, pr, why)
	return r.describe(err, "close pull request #%d", pr.Number)
}

func (r *Repository) close(ctx context.Context, pr scm.PullRequest, why string) error {
	title, err := r.keepDraft(ctx, pr.Number, pr.Title)
	if err != nil {
		return err
	}
	in := map[string]any{"title": title, "body": pr.Body, "state": "closed"}
	if _, err := r.repoCall(ctx, request{method: http.MethodPatch, path: pullPath(pr.Number), in: in}); err != nil {
		return err
	}
	if why == "" {
		return nil
	}
	_, err = r.repoCall(ctx, request{
		method: http.MethodPost, path: "/issues/" + strconv.Itoa(pr.Number) + "/comments", in: map[string]any{"body": why},
	})
	if err != nil {
		return fmt.Errorf("it is closed, but the reason could not be left as a comment: %w", err)
	}
	return nil
}
