package gitlab

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	gl "github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Commit publishes one commit by one call, POST repository/commits, which is
// atomic. GitLab has no expected old head, so:
//
//   - A new branch is made with start_sha = From.Commit and no force: its only
//     parent is From.Commit, and a branch that somebody made meanwhile is ErrMoved.
//   - A branch that exists is read right before, must be at Expect, and gets the
//     commit appended without force; GitLab refuses it if a file changed since
//     Expect (last_commit_id). Should another commit on other files slip in
//     between, ours lands on top of it: nothing is lost, but what the branch now
//     holds was not read. Then Commit returns the commit together with ErrMoved.
//     This is the one error after which the branch is not as it was; reading it
//     again, as ErrMoved asks for, is right.
//   - Rebuild overwrites the branch by force with From.Commit and the new commit,
//     right after it was seen at Expect. What is pushed within that one round trip
//     is overwritten: GitLab offers nothing better. Ask for it only where the
//     branch is ours.
//
// An answer that leaves open whether the commit was made (5xx, a broken
// connection) is never sent again: the branch is read, and the commit is taken if
// it is there.
func (r *Repository) Commit(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	what := "commit to branch " + d.Branch
	p, err := planFor(d)
	if err != nil {
		return scm.Commit{}, r.fail(what, &refusal{text: err.Error()})
	}
	actions, err := r.prepare(ctx, d, p)
	if err != nil {
		return scm.Commit{}, fmt.Errorf("%s in GitLab project %s on %s: %w", what, r.project, r.about.Host, err)
	}
	opt := &gl.CreateCommitOptions{Branch: &d.Branch, CommitMessage: &d.Message, Actions: actions, Stats: ref(false)}
	if !p.appends {
		opt.StartSHA = &p.parent
	}
	if p.force {
		opt.Force = ref(true)
	}
	made, resp, err := r.api.Commits.CreateCommit(r.project, opt, gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		if e.ambiguous() {
			return r.settle(ctx, d, p, e)
		}
		return scm.Commit{}, r.fail(what, r.commitRefusal(ctx, d, e))
	}
	return r.accept(ctx, d, p, commit(made))
}

// plan is how a draft is published.
type plan struct {
	parent  string // the new commit's parent
	files   []scm.File
	appends bool // to the branch as it is
	force   bool
}

func planFor(d scm.Draft) (plan, error) {
	if err := branchName(d.Branch); err != nil {
		return plan{}, err
	}
	p := plan{parent: d.From.Commit.SHA, files: d.Files}
	switch {
	case d.Expect == "":
	case d.Rebuild:
		p.force = true
	case d.OnHead == nil && d.Expect == d.From.Commit.SHA:
		p.appends = true
	default:
		p = plan{parent: d.Expect, files: d.OnHead, appends: true}
	}
	if p.parent == "" || len(p.files) == 0 {
		return plan{}, errors.New("the draft names no commit to start from or no changed file")
	}
	return p, nil
}

// prepare makes the actions and looks at the branch, in one round.
func (r *Repository) prepare(ctx context.Context, d scm.Draft, p plan) ([]*gl.CommitActionOptions, error) {
	actions := make([]*gl.CommitActionOptions, len(p.files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	if d.Expect != "" {
		g.Go(func() error { return r.expect(gctx, d.Branch, d.Expect) })
	}
	if d.Disarm != nil && d.Disarm.AutoMerge {
		g.Go(func() error { return r.disarm(gctx, d.Disarm.Number) })
	}
	for i, f := range p.files {
		g.Go(func() (err error) {
			actions[i], err = r.action(gctx, p, f)
			return err
		})
	}
	return actions, g.Wait()
}

func (r *Repository) expect(ctx context.Context, branch, sha string) error {
	b, e := r.branch(ctx, branch)
	switch {
	case e != nil && e.status == 404 && strings.Contains(strings.ToLower(e.text), "branch not found"):
		return fmt.Errorf("the branch is gone, it was at %s: %w", short(sha), scm.ErrMoved)
	case e != nil:
		return e
	case b.Commit.ID != sha:
		return fmt.Errorf("the branch is at %s (%s), it was read at %s: %w", short(b.Commit.ID), b.Commit.AuthorName, short(sha), scm.ErrMoved)
	}
	return nil
}

// action says what happens to one file. With start_sha GitLab compares
// last_commit_id with the default branch and not with start_sha
// (app/services/files/base_service.rb, file_has_changed?), which refuses good
// commits on other branches; start_sha pins the content by itself, so it is sent
// only with an append. An update keeps the file's mode.
func (r *Repository) action(ctx context.Context, p plan, f scm.File) (*gl.CommitActionOptions, error) {
	a := &gl.CommitActionOptions{FilePath: &f.Path}
	if f.New != nil {
		a.Content, a.Encoding = ref(base64.StdEncoding.EncodeToString(f.New)), ref("base64")
	}
	if f.Old == nil {
		a.Action = ref(gl.FileCreate)
		return a, nil
	}
	was, err := r.identity(ctx, p.parent, f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not at %s any more: %w", f.Path, short(p.parent), scm.ErrMoved)
	}
	if err != nil {
		return nil, err
	}
	if was.id != blobID(f.Old, was.id) {
		return nil, fmt.Errorf("%s at %s is not what was read: %w", f.Path, short(p.parent), scm.ErrMoved)
	}
	a.Action = ref(gl.FileUpdate)
	if f.New == nil {
		a.Action = ref(gl.FileDelete)
	}
	if p.appends && was.lastCommit != "" {
		a.LastCommitID = ref(was.lastCommit)
	}
	return a, nil
}
