package promote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/aymanbagabas/go-udiff"

	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// publish proves the edit, moves the head branch to it and makes the pull request
// say so. Where the branch says it already, only what a run that died left undone
// is done.
func (r *run) publish(ctx context.Context, s *state, h *head, sets []overlay.Set, proposed []record.Edit, res *Result) error {
	edited, err := overlay.Edit(s.files, sets)
	if err != nil {
		return r.about(s, err)
	}
	res.Changes = edited.Changes
	res.Warnings = append(res.Warnings, edited.Warnings...)
	pr := s.open()
	draft := scm.Draft{Branch: r.id.Branch, From: s.base, Files: files(edited)}
	same := h.ours() && len(proposed) > 0 && covers(proposed, edited.Changes)
	if err := r.onHead(s, h, pr, edits(sets, edited), &draft); err != nil {
		return err
	}
	kept := same && !draft.Rebuild || same && pr == nil && !r.clashes(s, h, draft)
	renewed := pr != nil && (!same || !told(*pr, h.trailers))
	armed := pr == nil || !r.q.AutoMerge || pr.AutoMerge || !r.repo.About().TellsAutoMerge
	if kept && pr != nil && !renewed && armed {
		res.Outcome = Unchanged
		res.Reason = fmt.Sprintf("%s proposes it already", r.name(*pr))
		res.Warnings = append(res.Warnings, r.heldNow(s, res)...)
		return nil
	}
	stopped, err := r.gate(ctx, s, res)
	if err != nil || stopped && !r.q.DryRun {
		return err
	}
	if err := r.prove(ctx, s.files, edited, res); err != nil {
		return r.about(s, err)
	}
	done := recorded(sets, edited)
	if kept {
		done = h.trailers.Edits
	}
	text, err := r.text(s, edited.Changes, done, renewed, res)
	if err != nil {
		return err
	}
	res.Diff, res.Title, res.Body = Diff(edited), text.title, text.body
	if r.q.DryRun {
		r.planned(pr, res)
		return nil
	}
	headCommit := draft.Expect
	if pr != nil && !same {
		draft.Disarm = pr
	}
	if err := r.sourcesUnchanged(ctx); err != nil {
		return err
	}
	if !kept {
		r.progress("publishing " + draft.Branch)
		draft.Message = text.message
		commit, err := r.repo.Commit(ctx, draft)
		if err != nil {
			return err
		}
		res.Commit, headCommit = &commit, commit.SHA
	}
	return r.propose(ctx, s, pr, text, headCommit, renewed, res)
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
