package github

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

// Commit makes one commit on d.From and moves the branch to it: a new branch by
// POST git/refs, an existing one by GraphQL's updateRefs with the commit that was
// read. Only that last call publishes; what fails before leaves nothing behind.
//
// Old is compared with the blob at d.From.Commit, which cannot change; that the
// base branch has moved on meanwhile is no error, the pull request then shows it.
// OnHead and Rebuild are not used: the branch is always rebuilt.
func (r *Repository) Commit(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	if err := checkDraft(d); err != nil {
		return scm.Commit{}, fmt.Errorf("%s: %w", r.fullName(), err)
	}
	node := r.prefetchNode(ctx, d.Expect != "")
	var tree string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		tree, err = r.writeTree(gctx, d)
		return err
	})
	g.Go(func() error { return r.disarm(gctx, d.Disarm) })
	if err := g.Wait(); err != nil {
		return scm.Commit{}, err
	}
	// Neither author nor committer: GitHub then signs the commits of Apps and of
	// GITHUB_TOKEN.
	c, _, err := r.api().Git.CreateCommit(ctx, r.owner, r.name, &github.Commit{
		Message: &d.Message, Tree: &github.Tree{SHA: &tree}, Parents: []*github.Commit{{SHA: &d.From.Commit.SHA}},
	}, nil)
	if err != nil {
		return scm.Commit{}, r.writeFault("write the commit for "+d.Branch, err)
	}
	if c.GetSHA() == "" {
		return scm.Commit{}, r.broken("write the commit for "+d.Branch, errEmptyAnswer)
	}
	if err := r.publish(ctx, d, c.GetSHA(), node); err != nil {
		return scm.Commit{}, err
	}
	r.rememberTree(c.GetSHA(), tree)
	r.noteUnsigned(c)
	return writtenCommit(c), nil
}

func (r *Repository) publish(ctx context.Context, d scm.Draft, sha string, node func() (string, error)) error {
	if d.Expect == "" {
		return r.createBranch(ctx, d.Branch, sha)
	}
	id, err := node()
	if err != nil {
		return err
	}
	return r.moveBranch(ctx, move{branch: d.Branch, old: d.Expect, sha: sha, rewrites: d.Expect != d.From.Commit.SHA}, id)
}

func checkDraft(d scm.Draft) error {
	if err := checkBranch(d.Branch); err != nil {
		return err
	}
	if d.From.Commit.SHA == "" {
		return fmt.Errorf("commit on %s: no base commit given", d.Branch)
	}
	if len(d.Files) == 0 {
		return fmt.Errorf("commit on %s: no file given", d.Branch)
	}
	seen := map[string]bool{}
	for _, f := range d.Files {
		if !fs.ValidPath(f.Path) || f.Path == "." || seen[f.Path] {
			return fmt.Errorf("commit on %s: file %q: the path is not lawful or is given twice", d.Branch, f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

// prefetchNode asks for the repository's id while the objects are written, so
// that it costs no round.
func (r *Repository) prefetchNode(ctx context.Context, needed bool) func() (string, error) {
	if !needed || r.knownNode() != "" {
		return func() (string, error) { return r.nodeID(ctx) }
	}
	type result struct {
		id  string
		err error
	}
	got := make(chan result, 1)
	go func() {
		id, err := r.nodeID(ctx)
		got <- result{id, err}
	}()
	return func() (string, error) {
		res := <-got
		return res.id, res.err
	}
}

// writeTree writes From's tree with the files applied, each with its mode kept.
func (r *Repository) writeTree(ctx context.Context, d scm.Draft) (string, error) {
	base, entries, err := r.treeEntries(ctx, d)
	if err != nil {
		return "", err
	}
	t, _, err := r.api().Git.CreateTree(ctx, r.owner, r.name, base, entries)
	if err != nil {
		return "", r.writeFault("write the files for "+d.Branch, err)
	}
	switch t.GetSHA() {
	case "":
		return "", r.broken("write the files for "+d.Branch, errEmptyAnswer)
	case base:
		return "", fmt.Errorf("%s: commit on %s: the files are as they are at %s already", r.fullName(), d.Branch, short(d.From.Commit.SHA))
	}
	return t.GetSHA(), nil
}

func (r *Repository) treeEntries(ctx context.Context, d scm.Draft) (string, []*github.TreeEntry, error) {
	var base string
	entries := make([]*github.TreeEntry, len(d.Files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	g.Go(func() (err error) { base, err = r.treeOf(gctx, d.From.Commit.SHA); return err })
	for i, f := range d.Files {
		g.Go(func() (err error) { entries[i], err = r.treeEntry(gctx, d.From.Commit.SHA, f); return err })
	}
	if err := g.Wait(); err != nil {
		return "", nil, err
	}
	return base, entries, nil
}

// treeEntry checks that the file is what was read, and gives its new entry.
func (r *Repository) treeEntry(ctx context.Context, commit string, f scm.File) (*github.TreeEntry, error) {
	old, err := r.lookup(ctx, commit, f.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	moved := func(why string) error {
		return fmt.Errorf("%s: file %s at %s: %w: %s", r.fullName(), f.Path, short(commit), scm.ErrMoved, why)
	}
	switch {
	case missing && f.Old != nil:
		return nil, moved("it is not there any more")
	case !missing && f.Old == nil:
		return nil, moved("it is there already")
	case !missing && !old.regular():
		return nil, moved("it is no regular file")
	case !missing && old.sha != blobID(f.Old):
		return nil, moved("it is not what was read")
	}
	mode, kind := "100644", "blob"
	if !missing {
		mode = old.mode
	}
	e := &github.TreeEntry{Path: &f.Path, Mode: &mode, Type: &kind}
	if f.New == nil {
		return e, nil
	}
	return e, r.fill(ctx, e, f.New)
}

// fill gives e its content: inline where JSON can carry it byte for byte, else
// as a blob of its own.
func (r *Repository) fill(ctx context.Context, e *github.TreeEntry, content []byte) error {
	if utf8.Valid(content) && !strings.ContainsRune(string(content), 0) {
		text := string(content)
		e.Content = &text
		return nil
	}
	text, encoding := base64.StdEncoding.EncodeToString(content), "base64"
	b, _, err := r.api().Git.CreateBlob(ctx, r.owner, r.name, &github.Blob{Content: &text, Encoding: &encoding})
	if err != nil {
		return r.writeFault("write file "+e.GetPath(), err)
	}
	if b.GetSHA() != blobID(content) {
		return r.broken("write file "+e.GetPath(), errEmptyAnswer)
	}
	e.SHA = b.SHA
	return nil
}

func (r *Repository) createBranch(ctx context.Context, branch, sha string) error {
	doing := "create branch " + branch
	name := "refs/heads/" + branch
	_, _, err := r.api().Git.CreateRef(ctx, r.owner, r.name, &github.Reference{Ref: &name, Object: &github.GitObject{SHA: &sha}})
	if err == nil {
		return nil
	}
	a, _ := answerOf(err)
	exists := a.has(http.StatusUnprocessableEntity, "Reference already exists")
	if !exists && !ambiguous(err) {
		return r.refusedRef(ctx, doing, branch, err)
	}
	// It may be there because this very call made it before the answer was lost.
	now, readErr := r.refSHA(ctx, branch)
	switch {
	case readErr == nil && now == sha:
		return nil
	case exists:
		return r.refusal(doing, a, scm.ErrMoved)
	}
	return r.fault(doing, err)
}

// move is a branch's way from one commit to another. It rewrites unless the new
// commit is on top of the old one, as a direct commit is: force is never asked for
// then, and a REST server without updateRefs compares all the same.
type move struct {
	branch, old, sha string
	rewrites         bool
}

// moveBranch moves a branch, by compare and swap where served.
func (r *Repository) moveBranch(ctx context.Context, m move, node string) error {
	branch, old, sha := m.branch, m.old, m.sha
	doing := "move branch " + branch
	err := r.mutate(ctx, updateRefs, map[string]any{
		"repositoryId": node,
		"refUpdates":   []map[string]any{{"name": "refs/heads/" + branch, "beforeOid": old, "afterOid": sha, "force": m.rewrites}},
	})
	var refused *graphError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoGraphQL), errors.As(err, &refused) && refused.undefined():
		return r.moveWithoutSwap(ctx, m)
	}
	// What GraphQL says of a stale ref is not documented, and an answer may be
	// lost: where the branch stands now decides.
	now, readErr := r.refSHA(ctx, branch)
	switch {
	case readErr == nil && now == sha:
		return nil
	case readErr == nil && now != old:
		return fmt.Errorf("%s: %s: %w: it is at %s and no longer at %s", r.fullName(), doing, scm.ErrMoved, short(now), short(old))
	case errors.Is(readErr, scm.ErrNotFound):
		return fmt.Errorf("%s: %s: %w: the branch is gone", r.fullName(), doing, scm.ErrMoved)
	case refused != nil && refused.has("does not match", "STALE", "but expected", "beforeOid"):
		return fmt.Errorf("%s: %s: %w: %w", r.fullName(), doing, scm.ErrMoved, refused)
	case refused != nil:
		return fmt.Errorf("%s: %s: %w: %w", r.fullName(), doing, refused.kind(), refused)
	}
	return r.fault(doing, err)
}

// moveWithoutSwap is for servers without updateRefs: REST cannot compare, so a
// branch that is rewritten is read again right before. What lands between is lost,
// so it is said.
func (r *Repository) moveWithoutSwap(ctx context.Context, m move) error {
	branch, old, sha := m.branch, m.old, m.sha
	doing := "move branch " + branch
	if m.rewrites {
		r.lackSwap()
	}
	now, err := r.refSHA(ctx, branch)
	if err != nil && !errors.Is(err, scm.ErrNotFound) {
		return err
	}
	if now != old {
		return fmt.Errorf("%s: %s: %w: it is no longer at %s", r.fullName(), doing, scm.ErrMoved, short(old))
	}
	name := "refs/heads/" + branch
	_, _, err = r.api().Git.UpdateRef(ctx, r.owner, r.name, &github.Reference{Ref: &name, Object: &github.GitObject{SHA: &sha}}, m.rewrites)
	if err == nil {
		return nil
	}
	a, _ := answerOf(err)
	if a.has(http.StatusUnprocessableEntity, "Reference does not exist", "not a fast forward", "not a fast-forward") {
		return r.refusal(doing, a, scm.ErrMoved)
	}
	if !ambiguous(err) {
		return r.refusedRef(ctx, doing, branch, err)
	}
	if now, readErr := r.refSHA(ctx, branch); readErr == nil && now == sha {
		return nil
	}
	return r.fault(doing, err)
}

func (r *Repository) lackSwap() {
	r.mu.Lock()
	r.noSwap = true
	r.mu.Unlock()
	r.note(noSwapWarning)
}

const noSwapWarning = "this server has no GraphQL updateRefs: an existing branch is moved by REST right after it was read again, so a commit that lands in between is lost"

// refusedRef explains a refusal of git/refs. "Reference update failed" says
// nothing, and is also the answer when a branch stands where a folder is needed.
func (r *Repository) refusedRef(ctx context.Context, doing, branch string, err error) error {
	a, _ := answerOf(err)
	if a.status != http.StatusUnprocessableEntity {
		return r.writeFault(doing, err)
	}
	if other := r.blockingBranch(ctx, branch); other != "" {
		return fmt.Errorf("%s: %s: %w: branch %s is in its way (git cannot hold both); delete or rename it: %d %s",
			r.fullName(), doing, scm.ErrRefused, other, a.status, a.text)
	}
	return fmt.Errorf("%s: %s: %w: %d %s; a rule set, branch protection or name pattern says no (Settings, Rules)",
		r.fullName(), doing, scm.ErrRefused, a.status, a.text)
}

// blockingBranch finds a branch that is a folder of this one's name, or the other
// way round; "" if none can be seen.
func (r *Repository) blockingBranch(ctx context.Context, branch string) string {
	for dir := path.Dir(branch); dir != "."; dir = path.Dir(dir) {
		if _, err := r.refSHA(ctx, dir); err == nil {
			return dir
		}
	}
	var below []github.Reference
	if _, err := r.get(ctx, "git/matching-refs/heads/"+escape(branch)+"/", nil, &below); err != nil || len(below) == 0 {
		return ""
	}
	return strings.TrimPrefix(below[0].GetRef(), "refs/heads/")
}

func (r *Repository) noteUnsigned(c *github.Commit) {
	bot := r.app != nil || r.token == installationToken
	if v := c.GetVerification(); bot && v != nil && v.Verified != nil && !v.GetVerified() {
		r.note(fmt.Sprintf("commit %s is not signed by GitHub (%s); a rule that demands signed commits will refuse it", short(c.GetSHA()), v.GetReason()))
	}
}

func writtenCommit(c *github.Commit) scm.Commit {
	out := scm.Commit{
		SHA: c.GetSHA(), Message: c.GetMessage(), Author: c.GetAuthor().GetName(),
		URL: c.GetHTMLURL(), Time: c.GetCommitter().GetDate().Time,
	}
	for _, p := range c.Parents {
		out.Parents = append(out.Parents, p.GetSHA())
	}
	return out
}

func short(sha string) string {
	if len(sha) > 12 {
		return sha[:12]
	}
	return sha
}
