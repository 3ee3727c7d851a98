package gitlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

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
