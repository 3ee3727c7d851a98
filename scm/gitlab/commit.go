package gitlab

import (
	"bytes"
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

// accept looks at what GitLab made: on which parent, and with which bytes.
func (r *Repository) accept(ctx context.Context, d scm.Draft, p plan, c scm.Commit) (scm.Commit, error) {
	what := fmt.Sprintf("commit %s to branch %s", short(c.SHA), d.Branch)
	if len(c.Parents) > 0 && c.Parents[0] != p.parent {
		return c, r.fail(what, &refusal{kind: scm.ErrMoved,
			text: fmt.Sprintf("it landed on %s, while %s was read: somebody pushed in between", short(c.Parents[0]), short(p.parent)),
			hint: "nothing is lost, read the branch again"})
	}
	return c, r.sameBytes(ctx, d, p, c)
}

// sameBytes checks files with CRLF line ends: Gitaly up to 17.x writes blobs with
// core.autocrlf=input (internal/git/command_factory.go), so that every line of
// such a file changes. A branch that is new with this commit is taken away again.
func (r *Repository) sameBytes(ctx context.Context, d scm.Draft, p plan, c scm.Commit) error {
	for _, f := range p.files {
		if !bytes.Contains(f.New, []byte("\r\n")) {
			continue
		}
		got, err := r.identity(ctx, c.SHA, f.Path)
		what := fmt.Sprintf("check %s in commit %s on branch %s", f.Path, short(c.SHA), d.Branch)
		if err != nil {
			return r.fail(what, &refusal{cause: err})
		}
		if got.id == blobID(f.New, got.id) {
			continue
		}
		e := &refusal{kind: scm.ErrUnsupported, text: "this GitLab turned the file's CRLF line ends into LF, which changes every line",
			hint: "store the file with LF on the base branch, or set core.autocrlf=false in Gitaly's configuration"}
		if d.Expect == "" && r.takeBack(ctx, d.Branch, c.SHA) == nil {
			e.hint += "; the branch was removed again"
		} else {
			e.hint += "; the commit is on the branch"
		}
		return r.fail(what, e)
	}
	return nil
}

// takeBack deletes the branch that this very call has made, if nobody moved it.
func (r *Repository) takeBack(ctx context.Context, branch, sha string) error {
	if err := r.expect(ctx, branch, sha); err != nil {
		return err
	}
	_, err := r.api.Branches.DeleteBranch(r.project, branch, gl.WithContext(ctx))
	return err
}

// settle finds out what became of a commit whose answer was lost.
func (r *Repository) settle(ctx context.Context, d scm.Draft, p plan, lost *refusal) (scm.Commit, error) {
	what := "commit to branch " + d.Branch
	if ctx.Err() != nil {
		lost.hint = "whether the commit was made is not known; run again, what is there is taken over"
		return scm.Commit{}, r.fail(what, lost)
	}
	b, e := r.branch(ctx, d.Branch)
	switch {
	case e != nil && (d.Expect != "" || e.status != 404):
		lost.hint = fmt.Sprintf("whether the commit was made is not known, for the branch could not be read either (%v); run again, what is there is taken over", e)
	case e != nil, b.Commit.ID == d.Expect:
		lost.hint = "the branch shows that the commit was not made; run again"
	case !r.isDraft(ctx, p, d.Message, b.Commit):
		lost.kind = scm.ErrMoved
		lost.hint = fmt.Sprintf("the branch is now at %s, which is not this commit; read it again", short(b.Commit.ID))
	default:
		return r.accept(ctx, d, p, commit(b.Commit))
	}
	return scm.Commit{}, r.fail(what, lost)
}

// isDraft: the commit is the draft's, by parent, message and every file.
func (r *Repository) isDraft(ctx context.Context, p plan, message string, c *gl.Commit) bool {
	if len(c.ParentIDs) != 1 || c.ParentIDs[0] != p.parent || strings.TrimSpace(c.Message) != strings.TrimSpace(message) {
		return false
	}
	for _, f := range p.files {
		got, err := r.identity(ctx, c.ID, f.Path)
		if f.New == nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		if f.New != nil && (err != nil || got.id != blobID(f.New, got.id)) {
			return false
		}
	}
	return true
}

// commitTexts are GitLab's refusals of a commit, all of them HTTP 400 with a text
// (app/services/commits/create_service.rb, app/services/files, Gitaly). They
// differ a little between versions, so a part of each is looked for.
func commitTexts() []commitText {
	return []commitText{
		{"not allowed to push into this branch", "the branch matches a protected branch pattern, or the token's role is below Developer", scm.ErrRefused},
		{"switch to that branch in order to make changes", "the branch was made meanwhile", scm.ErrMoved},
		{"you can only create or edit files when you are on a branch", "the branch is gone", scm.ErrMoved},
		{"since you started editing it", "somebody changed the file meanwhile", scm.ErrMoved},
		{"cannot find start_sha", "the base branch was rewritten, or the commit is of another project", scm.ErrMoved},
		{"please refresh and try again", "somebody pushed at the same moment", scm.ErrMoved},
		{"a file with this name already exists", "", scm.ErrMoved},
		{"a file with the name", "", scm.ErrMoved},
		{"a file with this name doesn't exist", "", scm.ErrMoved},
		{"does not exist", "", scm.ErrMoved},
		{"something went wrong when we tried to create", "the branch's name is refused", scm.ErrRefused},
		{"is not a member of team", "a push rule wants the committer's e-mail to be a member's: give the token's user such an address", scm.ErrRefused},
		{"does not follow the pattern", "a push rule restricts branch names or commit messages", scm.ErrRefused},
	}
}

type commitText struct {
	part, hint string
	kind       error
}

func (r *Repository) commitRefusal(ctx context.Context, d scm.Draft, e *refusal) *refusal {
	if e.status == 403 && !scopeLacks(e) {
		e.kind = scm.ErrRefused
		e.hint = "the branch matches a protected branch pattern, or the token's role is below Developer"
	}
	if e.status != 400 {
		return e
	}
	text := strings.ToLower(e.text)
	e.kind, e.hint = scm.ErrRefused, "a push rule or a server hook may say so"
	for _, t := range commitTexts() {
		if strings.Contains(text, t.part) {
			e.kind, e.hint = t.kind, t.hint
			break
		}
	}
	if d.Expect == "" && strings.Contains(text, "could not update refs/heads/") {
		if other := r.obstacle(ctx, d.Branch); other != "" {
			e.kind, e.hint = scm.ErrRefused, fmt.Sprintf("branch %s stands in its way: git cannot hold both a and a/b", other)
		}
	}
	return e
}

// obstacle names a branch beside which git cannot hold another one, "" if there
// is none or GitLab does not tell. GitLab's refusal reads like a lost race.
func (r *Repository) obstacle(ctx context.Context, branch string) string {
	parts := strings.Split(branch, "/")
	for i := 1; i < len(parts); i++ {
		name := strings.Join(parts[:i], "/")
		if _, e := r.branch(ctx, name); e == nil {
			return name
		}
	}
	below, _, err := r.api.Branches.ListBranches(r.project, &gl.ListBranchesOptions{Search: ref("^" + branch + "/")}, gl.WithContext(ctx))
	if err != nil || len(below) == 0 {
		return ""
	}
	return below[0].Name
}
