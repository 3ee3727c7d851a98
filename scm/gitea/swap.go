package gitea

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// temporary is where a commit lives between its making and its publication. A run
// that dies in between leaves such a branch behind; nothing reads it.
const temporary = "tagboat-tmp/"

// errNoSwap is returned by swap when the server has no such call.
var errNoSwap = fmt.Errorf("%w: the server cannot move a branch by compare and swap", scm.ErrUnsupported)

// publishSwap makes the commit on a temporary branch off the base branch, then
// moves the branch to it. The temporary branch is deleted at the same time: the
// commit stays until git's next collection of garbage, two weeks by default.
func (r *Repository) publishSwap(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	tmp := temporary + randomName()
	var disarmed error
	var wait sync.WaitGroup
	wait.Go(func() { disarmed = r.disarm(ctx, d.Disarm) })
	c, err := r.change(ctx, change{base: d.From.Branch, target: tmp, onBase: d.Branch == d.From.Branch, parent: d.From.Commit.SHA, message: d.Message, files: d.Files})
	wait.Wait()
	if err != nil || disarmed != nil {
		if err == nil || ambiguous(err) || errors.Is(err, errOtherParent) { // a refusal made no branch
			r.dropTemporary(ctx, tmp)
		}
		return scm.Commit{}, errors.Join(err, disarmed)
	}
	var g errgroup.Group
	g.Go(func() error {
		r.dropTemporary(ctx, tmp)
		return nil
	})
	g.Go(func() error { return r.swap(ctx, d.Branch, d.Expect, c.SHA, d.Expect != d.From.Commit.SHA) })
	if err := g.Wait(); err != nil {
		return scm.Commit{}, err
	}
	return c, nil
}

func randomName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}

// dropTemporary deletes a temporary branch. One that stays is harmless, so that a
// failure is not worth failing for.
func (r *Repository) dropTemporary(ctx context.Context, branch string) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	_ = r.drop(ctx, branch)
}

// swap moves a branch from one commit to another. Gitea compares old_commit_id
// with its database and then pushes with --force-with-lease and without --force,
// so that git compares once more when it writes: it is atomic.
func (r *Repository) swap(ctx context.Context, branch, from, to string, force bool) error {
	_, err := r.repoCall(ctx, request{
		method: http.MethodPut, path: "/branches/" + escapePath(branch),
		in: map[string]any{"old_commit_id": from, "new_commit_id": to, "force": force},
	})
	switch {
	case err == nil:
		return nil
	case says(err, http.StatusUnprocessableEntity, "does not match"):
		return fmt.Errorf("%w: somebody has pushed to the branch: %w", scm.ErrMoved, err)
	case statusOf(err) == http.StatusMethodNotAllowed, noRoute(err):
		return fmt.Errorf("%w: %w", errNoSwap, err)
	case ctx.Err() == nil && (ambiguous(err) || statusOf(err) == http.StatusForbidden || statusOf(err) == http.StatusNotFound):
		return r.settleSwap(ctx, branch, from, to, err)
	}
	return err
}

// noRoute tells the router's 404 from one about an object, which is JSON.
func noRoute(err error) bool {
	e := refused(err)
	return e != nil && e.Status == http.StatusNotFound && strings.Contains(strings.Join(e.Messages, " "), "404 page not found")
}

// settleSwap looks where the branch is after a swap that was refused without a
// reason (a lease that came too late is "push is rejected", a branch that has gone is
// "not found" from 1.27 on) or not answered.
func (r *Repository) settleSwap(ctx context.Context, branch, from, to string, cause error) error {
	tip, err := r.branchTip(ctx, branch)
	switch {
	case errors.Is(err, scm.ErrNotFound):
		return fmt.Errorf("%w: the branch was deleted: %w", scm.ErrMoved, cause)
	case err != nil:
		return fmt.Errorf("%w; where branch %s is now is unknown: %w", cause, branch, err)
	case tip.Commit.SHA == to:
		return nil
	case tip.Commit.SHA != from:
		return fmt.Errorf("%w: %w", movedTo(tip.Commit.SHA, from), cause)
	}
	return cause
}
