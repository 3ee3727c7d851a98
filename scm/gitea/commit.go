package gitea

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's object ids
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Commit implements scm.Repository.
//
// A new branch is one call: Gitea commits on the tip of the base branch and makes
// the branch of it. If that tip was not the commit that was read, the branch is
// deleted again and the answer is ErrMoved.
//
// A branch that exists is moved by compare and swap on Gitea 1.26 and newer (see
// swap). Elsewhere OnHead is appended to it: the branch is looked at first, the
// blob ids guard the files, and a commit of somebody else's that comes between
// the two is kept below ours and reported as ErrMoved. That is the one case in
// which an error leaves a commit behind; nothing of anybody's is lost by it.
// There a Rebuild is ErrUnsupported, unless the branch is Unwatched: it is deleted
// and made again.
func (r *Repository) Commit(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	c, err := r.publish(ctx, d)
	return c, r.describe(err, "commit to branch %s", d.Branch)
}

func (r *Repository) publish(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	switch {
	case d.Branch == "" || d.From.Branch == "" || d.From.Commit.SHA == "":
		return scm.Commit{}, errors.New("a draft needs its branch, its base branch and the base's commit")
	case len(d.Files) == 0:
		return scm.Commit{}, errors.New("a draft without files")
	case d.Expect == "":
		return r.publishNew(ctx, d)
	}
	f, err := r.features(ctx)
	if err != nil {
		return scm.Commit{}, err
	}
	if f.swap {
		c, err := r.publishSwap(ctx, d)
		if !f.unknown || !errors.Is(err, errNoSwap) {
			return c, err
		}
	}
	return r.publishAppend(ctx, d)
}

func (r *Repository) publishNew(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	c, err := r.change(ctx, change{base: d.From.Branch, target: d.Branch, parent: d.From.Commit.SHA, message: d.Message, files: d.Files})
	if err == nil || !errors.Is(err, errOtherParent) {
		return c, err
	}
	if left := r.undo(ctx, d.Branch, c.SHA); left != nil {
		return scm.Commit{}, fmt.Errorf("%w; branch %s with that commit is still there: %w", err, d.Branch, left)
	}
	return scm.Commit{}, err
}

// undo deletes a branch that was just made, if it still is at that commit.
func (r *Repository) undo(ctx context.Context, branch, sha string) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	tip, err := r.branchTip(ctx, branch)
	switch {
	case errors.Is(err, scm.ErrNotFound):
		return nil
	case err != nil:
		return err
	case tip.Commit.SHA != sha:
		return movedTo(tip.Commit.SHA, sha)
	}
	return r.drop(ctx, branch)
}

// drop deletes a branch. It is sent as a read: it may be repeated, and it goes
// beside a write instead of after it.
func (r *Repository) drop(ctx context.Context, branch string) error {
	_, err := r.repoCall(scm.AsRead(ctx), request{method: http.MethodDelete, path: "/branches/" + escapePath(branch)})
	if statusOf(err) == http.StatusInternalServerError { // so is a branch that has gone, up to 1.24
		if _, gone := r.branchTip(ctx, branch); errors.Is(gone, scm.ErrNotFound) {
			err = gone
		}
	}
	if errors.Is(err, scm.ErrNotFound) {
		return nil
	}
	return err
}

// afterwards is a context for what must be done though the caller has given up.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// publishAppend adds one commit to a branch on a server without compare and swap.
func (r *Repository) publishAppend(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	if d.Rebuild && d.Unwatched {
		return r.publishAgain(ctx, d)
	}
	if d.Rebuild {
		return scm.Commit{}, fmt.Errorf("%w: rebuilding a branch needs Gitea 1.26 or newer (this server says %q): "+
			"take back on it what somebody has committed, or merge the base branch into it, or close its pull request and delete it", scm.ErrUnsupported, r.knownVersion())
	}
	files := d.OnHead
	if files == nil && d.Expect == d.From.Commit.SHA {
		files = d.Files
	}
	if len(files) == 0 {
		return scm.Commit{}, errors.New("a draft without files against the branch's own commit")
	}
	var tip scm.Tip
	var g errgroup.Group
	g.Go(func() (err error) {
		tip, err = r.branchTip(ctx, d.Branch)
		return err
	})
	g.Go(func() error { return r.disarm(ctx, d.Disarm) })
	err := g.Wait()
	if errors.Is(err, scm.ErrNotFound) {
		return scm.Commit{}, fmt.Errorf("%w: the branch was deleted", scm.ErrMoved)
	}
	if err != nil {
		return scm.Commit{}, err
	}
	if tip.Commit.SHA != d.Expect {
		return scm.Commit{}, movedTo(tip.Commit.SHA, d.Expect)
	}
	c, err := r.change(ctx, change{base: d.Branch, before: d.Expect, parent: d.Expect, message: d.Message, files: files})
	if errors.Is(err, errOtherParent) {
		return scm.Commit{}, fmt.Errorf("%w; the new commit %s is on top of it, nothing was overwritten", err, short(c.SHA))
	}
	return c, err
}

// publishAgain deletes a branch that nobody looks at and makes it anew. Gitea
// cannot delete by compare and swap: the branch is looked at right before.
func (r *Repository) publishAgain(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	if err := r.undo(ctx, d.Branch, d.Expect); err != nil {
		return scm.Commit{}, err
	}
	return r.publishNew(ctx, d)
}

func (r *Repository) knownVersion() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

func movedTo(now, read string) error {
	return fmt.Errorf("%w: the branch is at %s, %s was read", scm.ErrMoved, short(now), short(read))
}

func short(sha string) string { return sha[:min(len(sha), 12)] }

// change is one call that makes a commit.
type change struct {
	base    string // the branch whose tip becomes the parent
	target  string // the branch to make; "": base itself
	onBase  bool   // the commit is for base itself in the end: base gone is base moved
	before  string // where the branch that moves is; "": nowhere
	parent  string // the commit that must become the parent
	message string
	files   []scm.File
}

func (c *change) moves() string {
	if c.target == "" {
		return c.base
	}
	return c.target
}

// errOtherParent comes with the commit that was made on another parent.
var errOtherParent = fmt.Errorf("%w: the commit landed on another commit than the one that was read", scm.ErrMoved)

// fileChange and changeBody are ChangeFilesOptions of Gitea's API.
type fileChange struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Content   string `json:"content,omitempty"`
	SHA       string `json:"sha,omitempty"`
}

type changeBody struct {
	Branch    string       `json:"branch"`
	NewBranch string       `json:"new_branch,omitempty"`
	Message   string       `json:"message"`
	Files     []fileChange `json:"files"`
}

// change commits. With errOtherParent the commit is returned too.
func (r *Repository) change(ctx context.Context, c change) (scm.Commit, error) {
	body := changeBody{Branch: c.base, NewBranch: c.target, Message: c.message}
	for _, f := range c.files {
		body.Files = append(body.Files, fileChangeOf(f, c.parent))
	}
	var out struct {
		Commit *sdk.FileCommitResponse `json:"commit"`
	}
	_, err := r.repoCall(ctx, request{method: http.MethodPost, path: "/contents", in: body, out: &out})
	if err != nil {
		return r.settle(ctx, c, err)
	}
	if out.Commit == nil || out.Commit.SHA == "" {
		return scm.Commit{}, errors.New("POST contents: the answer names no commit")
	}
	made := commitOfChange(out.Commit)
	if !slices.Equal(made.Parents, []string{c.parent}) {
		return made, fmt.Errorf("%w: %s is at %s, %s was read", errOtherParent, c.base, short(strings.Join(made.Parents, "+")), short(c.parent))
	}
	return made, nil
}

func commitOfChange(c *sdk.FileCommitResponse) scm.Commit {
	made := scm.Commit{SHA: c.SHA, Message: c.Message, URL: c.HTMLURL}
	if c.Author != nil {
		made.Author = c.Author.Name
	}
	if c.Committer != nil {
		made.Time, _ = time.Parse(time.RFC3339, c.Committer.Date) // for people; zero if Gitea writes another form
	}
	for _, p := range c.Parents {
		made.Parents = append(made.Parents, p.SHA)
	}
	return made
}

func fileChangeOf(f scm.File, commit string) fileChange {
	c := fileChange{Operation: "update", Path: f.Path, Content: base64.StdEncoding.EncodeToString(f.New)}
	switch {
	case f.Old == nil:
		c.Operation = "create"
		return c
	case f.New == nil:
		c.Operation = "delete"
	}
	c.SHA = blobID(f.Old, len(commit))
	return c
}

// blobID is git's id of a file's content, in the object format that commit ids of
// that length have.
func blobID(content []byte, length int) string {
	h := sha1.New() //nolint:gosec // git's object ids
	if length == hex.EncodedLen(sha256.Size) {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// settle makes sense of a commit that was refused or not answered.
func (r *Repository) settle(ctx context.Context, c change, err error) (scm.Commit, error) {
	switch {
	case says(err, http.StatusUnprocessableEntity, "sha does not match"),
		says(err, http.StatusUnprocessableEntity, "file already exists"),
		says(err, http.StatusNotFound, "object does not exist"):
		return scm.Commit{}, fmt.Errorf("%w: a file on branch %s is no longer what was read: %w", scm.ErrMoved, c.base, err)
	case says(err, http.StatusUnprocessableEntity, "branch already exists"):
		return scm.Commit{}, fmt.Errorf("%w: somebody else has made the branch: %w", scm.ErrMoved, err)
	case says(err, http.StatusNotFound, "branch does not exist") && (c.target == "" || c.onBase):
		return scm.Commit{}, fmt.Errorf("%w: the branch was deleted: %w", scm.ErrMoved, err)
	case says(err, http.StatusForbidden, "cannot lock ref"):
		return scm.Commit{}, fmt.Errorf("another branch has a name above or below this one: %w", err)
	case !ambiguous(err) || ctx.Err() != nil:
		return scm.Commit{}, err
	}
	return r.lookFor(ctx, c, err)
}

// lookFor finds a commit whose making was not answered, or tells what is there
// instead. Gitea answers 500 also to what a hook refuses (before 1.26), to a file
// that has gone (before 1.25) and to a push that came too late.
func (r *Repository) lookFor(ctx context.Context, c change, cause error) (scm.Commit, error) {
	tip, err := r.branchTip(ctx, c.moves())
	absent := errors.Is(err, scm.ErrNotFound)
	switch {
	case err != nil && !absent:
		return scm.Commit{}, fmt.Errorf("%w; whether branch %s has the commit is unknown: %w", cause, c.moves(), err)
	case absent || tip.Commit.SHA == c.before:
		return scm.Commit{}, r.notMade(ctx, c, cause)
	}
	made, err := r.readCommit(ctx, tip.Commit.SHA)
	if err == nil && slices.Equal(made.Parents, []string{c.parent}) && strings.TrimSpace(made.Message) == strings.TrimSpace(c.message) {
		return made, nil
	}
	return scm.Commit{}, fmt.Errorf("%w: branch %s is at %s now: %w", scm.ErrMoved, c.moves(), short(tip.Commit.SHA), cause)
}

// notMade is the error of a commit that is not there. If the base has moved,
// reading it again is the way on.
func (r *Repository) notMade(ctx context.Context, c change, cause error) error {
	if c.target != "" {
		if tip, err := r.branchTip(ctx, c.base); err == nil && tip.Commit.SHA != c.parent {
			return fmt.Errorf("%w: branch %s is at %s, %s was read: %w", scm.ErrMoved, c.base, short(tip.Commit.SHA), short(c.parent), cause)
		}
	}
	f, err := r.features(ctx)
	if statusOf(cause) == http.StatusInternalServerError && err == nil && (!f.swap || f.unknown) {
		return fmt.Errorf("%w: nothing was committed; Gitea before 1.26 says 500 when a hook or a branch rule refuses, and its log has the reason: %w", scm.ErrRefused, cause)
	}
	return fmt.Errorf("%w (no such commit was seen yet: run again)", cause)
}
