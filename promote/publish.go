package promote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// publish proves the edit, moves the head branch to it and makes the pull request
// say so. Where the branch says it already, only what a run that died left undone
// is done.
func (r *run) publish(ctx context.Context, s *state, h *head, sets []overlay.Set, proposed []record.Edit, res *Result) error {
	p := &publication{run: r, state: s, head: h, sets: sets, pr: s.open(), res: res}
	var err error
	if p.edited, err = overlay.Edit(s.files, sets); err != nil {
		return r.about(s, err)
	}
	res.Changes = p.edited.Changes
	res.Warnings = append(res.Warnings, p.edited.Warnings...)
	if err := p.compare(proposed); err != nil {
		return err
	}
	if p.nothingNew() {
		res.Outcome = Unchanged
		res.Reason = fmt.Sprintf("%s proposes it already", r.name(*p.pr))
		res.Warnings = append(res.Warnings, r.heldNow(s, res)...)
		return nil
	}
	s.owned = r.owners(s.files)
	stopped, err := r.gate(ctx, s, res)
	if err != nil || stopped && !r.q.DryRun {
		return err
	}
	p.commits = r.commitsOf(ctx, p.edited.Changes, res.Images)
	if err := r.prove(ctx, s.files, p.edited, res); err != nil {
		return r.about(s, err)
	}
	p.done = recorded(sets, p.edited)
	if p.kept {
		p.done = h.trailers.Edits
	}
	if r.q.DryRun {
		err := p.write()
		r.planned(p.pr, res)
		return err
	}
	return p.publish(ctx)
}

// publication is one edit on its way to the head branch and its pull request.
type publication struct {
	*run
	state   *state
	head    *head
	sets    []overlay.Set
	edited  overlay.Edited
	done    []record.Edit    // what the head branch's commit is made of
	pr      *scm.PullRequest // the open one, or nil
	draft   scm.Draft
	commits func() []Commits
	text    text
	res     *Result

	same    bool // the head branch proposes it already
	kept    bool // and stays as it is
	renewed bool // the pull request's text is of something else
}

// compare says what the head branch and its pull request have already.
func (p *publication) compare(proposed []record.Edit) error {
	h, pr := p.head, p.pr
	p.draft = scm.Draft{Branch: p.id.Branch, From: p.state.base, Files: files(p.edited)}
	p.same = h.ours() && len(proposed) > 0 && covers(proposed, p.edited.Changes)
	if err := p.onHead(p.state, h, pr, edits(p.sets, p.edited), &p.draft); err != nil {
		return err
	}
	p.kept = p.same && !p.draft.Rebuild || p.same && pr == nil && !p.clashes(p.state, h, p.draft)
	p.renewed = pr != nil && (!p.same || !told(*pr, h.trailers))
	if pr != nil && !p.same {
		p.draft.Disarm = pr
	}
	return nil
}

// nothingNew says whether the open pull request is all that is wanted: what it says,
// its auto-merge, and the labels as far as the forge tells them.
func (p *publication) nothingNew() bool {
	pr := p.pr
	if !p.kept || pr == nil || p.renewed {
		return false
	}
	armed := !p.q.AutoMerge || pr.AutoMerge || !p.repo.About().TellsAutoMerge
	labelled := !slices.ContainsFunc(p.q.Labels, func(l string) bool {
		return !slices.ContainsFunc(pr.Labels, func(have string) bool { return strings.EqualFold(have, l) })
	})
	return armed && labelled
}

// write makes the texts. The body waits for the owners of the files and the commits
// of the source, which were asked for beside the rest.
func (p *publication) write() (err error) {
	p.res.Commits = p.commits()
	if p.text, err = p.run.text(p.state, p.edited.Changes, p.done, p.renewed, p.pr, p.res); err != nil {
		return err
	}
	p.res.Diff, p.res.Title, p.res.Body = Diff(p.edited), p.text.title, p.text.body
	return nil
}

// publish writes: first images that are missing where they shall run, then the
// branch, then the pull request.
func (p *publication) publish(ctx context.Context) error {
	if err := p.ready(ctx); err != nil {
		return err
	}
	if err := p.copyImages(ctx, p.res); err != nil {
		return err
	}
	headCommit := p.draft.Expect
	if !p.kept {
		p.progress("publishing " + p.draft.Branch)
		p.draft.Message = p.message(p.state, p.commitTitle(p.edited.Changes), p.edited.Changes, p.done, p.res)
		commit, err := p.repo.Commit(ctx, p.draft)
		if err != nil {
			return err
		}
		p.res.Commit, headCommit = &commit, commit.SHA
	}
	if err := p.write(); err != nil {
		return err
	}
	return p.propose(ctx, p.state, p.pr, p.text, headCommit, p.renewed, p.res)
}

// planned ends a dry run: what would be done, or what stops it.
func (r *run) planned(pr *scm.PullRequest, res *Result) {
	res.Planned = true
	if res.Outcome == Blocked {
		return
	}
	res.Outcome, res.Reason = Planned, "would open a "+r.repo.About().PullRequestWord
	switch {
	case r.q.direct:
		res.Reason = "would commit to " + res.BaseBranch
	case pr != nil:
		res.Reason = "would update " + r.name(*pr)
	}
}

// ready waits for the run's turn to write, and then reads again what the images
// were read from.
func (r *run) ready(ctx context.Context) error {
	if err := r.inTurn(ctx); err != nil {
		return err
	}
	return r.sourcesUnchanged(ctx)
}

// sourcesUnchanged reads again what the images were read from.
func (r *run) sourcesUnchanged(ctx context.Context) error {
	if r.q.rules == nil {
		return nil
	}
	for _, source := range r.q.rules.sources {
		if err := source.unchanged(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) propose(ctx context.Context, s *state, pr *scm.PullRequest, text text, headCommit string, renewed bool, res *Result) error {
	p := scm.Proposal{
		Head: r.id.Branch, Base: s.base.Branch, HeadCommit: headCommit, Title: text.title, Body: text.body,
		Labels: r.q.Labels, Reviewers: r.q.Reviewers, TeamReviewers: r.q.TeamReviewers, Assignees: r.q.Assignees,
		Draft: r.q.Draft, AutoMerge: r.q.AutoMerge, Renewed: renewed,
	}
	outcome := Opened
	if pr != nil {
		p.Number, p.Was, outcome = pr.Number, pr, Updated
	}
	made, err := r.repo.Propose(ctx, p)
	if made.Head != "" {
		res.PullRequest = &made
		res.Warnings = append(res.Warnings, made.Warnings...)
	}
	if errors.Is(err, scm.ErrMoved) {
		return err
	}
	if err != nil {
		return fmt.Errorf("branch %s is published, but its %s is not as wanted (the next run goes on from here): %w", r.id.Branch, r.repo.About().PullRequestWord, err)
	}
	res.Outcome = outcome
	return nil
}

// onHead fills in what the draft needs where the head branch exists: the commit
// that was read, the same edit on top of it, and whether it must be rebuilt on the
// base: because nobody looks at it any more, because it would conflict, or because
// someone's commits are given up.
func (r *run) onHead(s *state, h *head, pr *scm.PullRequest, edits []record.Edit, draft *scm.Draft) error {
	if !h.exists {
		return nil
	}
	draft.Expect = s.head.Commit.SHA
	draft.Unwatched = pr == nil
	if pr == nil || !h.ours() {
		draft.Rebuild = true
	}
	if !h.ours() {
		return nil
	}
	entries, err := entriesOf(h.files, r.id.Paths)
	sets := setsFor(entries, r.id.Paths, edits)
	var edited overlay.Edited
	if err == nil && len(sets) == len(edits) {
		edited, err = overlay.Edit(h.files, sets)
	}
	if err != nil || len(sets) != len(edits) {
		draft.Rebuild = true // the base has what the head has not
		return nil
	}
	draft.OnHead = files(edited)
	draft.Rebuild = draft.Rebuild || r.clashes(s, h, *draft)
	return nil
}

// clashes says whether merging the head, with the draft's edit on it, into the
// base would conflict. What cannot be read counts as a conflict: the branch is
// then rebuilt, which is always right.
func (r *run) clashes(s *state, h *head, draft scm.Draft) bool {
	if s.changes.MergeBase == s.base.Commit.SHA {
		return false
	}
	after := map[string][]byte{}
	for _, f := range draft.OnHead {
		after[f.Path] = f.New
	}
	for _, f := range draft.Files {
		theirs, edited := after[f.Path]
		var err error
		if !edited {
			theirs, err = fs.ReadFile(h.files, f.Path)
		}
		fork, forkErr := fs.ReadFile(h.fork, f.Path)
		if err != nil || forkErr != nil || clash(fork, f.Old, theirs) {
			return true
		}
	}
	return false
}

// clash says whether git would call the merge of two changes of one file a
// conflict: some of their lines are the same or neighbours, and they differ.
func clash(fork, ours, theirs []byte) bool {
	a := udiff.Lines(string(fork), string(ours))
	b := udiff.Lines(string(fork), string(theirs))
	for _, x := range a {
		for _, y := range b {
			if x != y && x.Start <= y.End && y.Start <= x.End {
				return true
			}
		}
	}
	return false
}

// covers says whether a branch proposes all the changes already. Another tag text
// for the same digest is no other change.
func covers(proposed []record.Edit, changes []overlay.Change) bool {
	for _, c := range changes {
		if !slices.ContainsFunc(proposed, func(e record.Edit) bool {
			return e.File == c.File && e.Entry == c.Entry && e.Image.Digest == c.To.Digest &&
				e.Image.Repository == c.To.Repository
		}) {
			return false
		}
	}
	return true
}

// told says whether a pull request's text is of the edits on its branch: a run
// may have died between moving the branch and updating the text. A text without a
// marker is a person's, and is left alone.
func told(pr scm.PullRequest, t record.Trailers) bool {
	marker, found := record.ParseMarker(pr.Body)
	return !found || !marker.Superseded && marker.Content == record.Content(t.Edits)
}

// Diff is the edit as a unified diff, as git would print it.
func Diff(edited overlay.Edited) string {
	var b bytes.Buffer
	for _, f := range edited.Files {
		b.WriteString(udiff.Unified("a/"+f.Path, "b/"+f.Path, string(f.Before), string(f.After)))
	}
	return b.String()
}

// files turns an edit into what scm publishes.
func files(edited overlay.Edited) []scm.File {
	var out []scm.File
	for _, f := range edited.Files {
		out = append(out, scm.File{Path: f.Path, Old: f.Before, New: f.After})
	}
	return out
}

// edits turns sets into what the trailers record. The file of an entry that is
// added is known only after the edit.
func edits(sets []overlay.Set, edited overlay.Edited) []record.Edit {
	var out []record.Edit
	for _, set := range sets {
		e := record.Edit{
			File: set.Entry.File, Entry: set.Entry.Name, Image: set.To,
			Rename: set.Rename, Add: set.Entry.Line == 0, DigestOnly: set.Pin == overlay.PinDigest || set.To.Tag == "",
		}
		if e.DigestOnly {
			e.Image.Tag = ""
		}
		for _, c := range edited.Changes {
			if e.File == "" && c.Entry == e.Entry && c.Dir == set.Entry.Dir {
				e.File = c.File
			}
		}
		out = append(out, e)
	}
	return out
}

// recorded lists the edits that changed something: what the commit is made of.
func recorded(sets []overlay.Set, edited overlay.Edited) []record.Edit {
	return slices.DeleteFunc(edits(sets, edited), func(e record.Edit) bool {
		return !slices.ContainsFunc(edited.Changes, func(c overlay.Change) bool { return c.Entry == e.Entry && c.File == e.File })
	})
}
