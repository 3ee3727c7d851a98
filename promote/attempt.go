package promote

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// attempt is one pass from reading to proposing. scm.ErrMoved asks for another.
func (r *run) attempt(ctx context.Context, res *Result) error {
	r.progress(fmt.Sprintf("reading %s of %s", listed(r.id.Paths), r.repo.About().Name))
	s, err := r.read(ctx)
	if err != nil {
		return err
	}
	res.BaseBranch = s.base.Branch
	if s.base.Branch == r.id.Branch {
		return fmt.Errorf("%w: the base branch %s is the promotion's own head branch: name another with --base", ErrMisused, s.base.Branch)
	}
	if res.Images, err = r.images(digests(s.entries)); err != nil {
		return err
	}
	for _, img := range res.Images {
		res.Warnings = append(res.Warnings, img.Warnings...)
	}
	res.Warnings = append(res.Warnings, r.builtElsewhere(res.Images)...)
	r.copies = nil
	sets, err := r.wanted(ctx, s.entries, res.Images)
	if err != nil {
		return r.about(s, err)
	}
	edited, err := overlay.Edit(s.files, sets)
	if err != nil {
		return r.about(s, err)
	}
	res.Changes = edited.Changes
	h, err := r.examine(ctx, s)
	if err != nil {
		return err
	}
	if len(edited.Files) == 0 {
		return r.settled(ctx, s, h, sets, res)
	}
	return r.decide(ctx, s, h, sets, res)
}

// builtElsewhere warns where a tag alone was given and the image says that it was
// built from another commit than this job's: two jobs may push one tag.
func (r *run) builtElsewhere(resolved []Resolved) []string {
	var out []string
	for i, img := range resolved {
		built, job := img.Facts.Revision, r.q.Job.Revision
		if r.q.Images[i].Digest == "" && built != "" && job != "" && built != job {
			out = append(out, fmt.Sprintf("%s says that it was built from commit %s, but this job runs for %s: give the digest that the build printed", img.Reference, short(oneLine(built)), short(job)))
		}
	}
	return out
}

// settled ends a run whose images the base already pins. An open pull request that
// has nothing left to say is closed as superseded.
func (r *run) settled(ctx context.Context, s *state, h *head, sets []overlay.Set, res *Result) error {
	res.Outcome = UpToDate
	res.Reason = fmt.Sprintf("%s already runs this on %s", r.id.Environment, s.base.Branch)
	pr := s.open()
	if pr == nil || !h.exists {
		return nil
	}
	res.PullRequest = pr
	if !h.ours() {
		res.Warnings = append(res.Warnings, fmt.Sprintf("%s has commits of %s and was left alone", r.name(*pr), h.foreign))
		return nil
	}
	why, err := r.superseded(ctx, s, h, sets, res)
	if err != nil || why == "" {
		return err
	}
	res.Reason += "; " + r.name(*pr) + " is superseded: " + why
	if r.q.DryRun {
		return nil
	}
	if err := r.inTurn(ctx); err != nil {
		return err
	}
	closed := *pr
	closed.Body = record.ReplaceMarker(pr.Body, record.Marker{App: r.id.App, Environment: r.id.Environment, Ring: r.id.Ring, Content: record.Content(h.trailers.Edits), Superseded: true})
	if err := r.repo.Close(ctx, closed, "Superseded: "+why); err != nil {
		return err
	}
	closed.State = scm.Closed
	res.PullRequest = &closed
	return nil
}

// superseded says why an open pull request has nothing left to do; "" where it has.
func (r *run) superseded(ctx context.Context, s *state, h *head, sets []overlay.Set, res *Result) (string, error) {
	edited, err := overlay.Edit(s.files, setsFor(s.entries, r.id.Paths, h.trailers.Edits))
	if err != nil {
		return "", r.about(s, err)
	}
	if len(edited.Files) == 0 {
		return fmt.Sprintf("branch %s already has all of it", s.base.Branch), nil
	}
	var rest []record.Edit
	for _, c := range edited.Changes {
		if !slices.ContainsFunc(sets, func(set overlay.Set) bool {
			return sameEntry(set.Entry, overlay.Entry{Dir: c.Dir, File: c.File, Name: c.Entry})
		}) {
			return "", nil // it moves other entries too
		}
		rest = append(rest, record.Edit{File: c.File, Entry: c.Entry, Image: c.To})
	}
	for _, set := range sets {
		have := presentFor(rest, set)
		if have == nil {
			continue
		}
		old, err := r.factsAt(ctx, have.Image)
		if err != nil {
			return "", nil
		}
		if which, _ := r.compare(ctx, set.To, factsOf(res.Images, set.To.Digest), old); which != newer {
			return "", nil
		}
	}
	return fmt.Sprintf("branch %s runs something newer", s.base.Branch), nil
}

// decide goes down the table of docs/outcomes.md for a base that has not what is
// wanted.
func (r *run) decide(ctx context.Context, s *state, h *head, sets []overlay.Set, res *Result) error {
	pr := s.open()
	res.PullRequest = pr
	if reason := r.outdated(ctx, sets, res.Images, pinned(s.entries), "pinned on "+s.base.Branch); reason != "" {
		res.Outcome, res.Reason = Outdated, reason
		return nil
	}
	if r.q.direct {
		return r.commit(ctx, s, sets, res)
	}
	if !h.ours() && !r.q.Force {
		return r.foreign(s, h, pr)
	}
	proposed := r.live(s, h, pr)
	// what an environment runs now is what is promoted from it: a newer proposal is of
	// what it ran before, or forged
	sourced := r.q.rules != nil && len(r.q.rules.sources) > 0
	if reason := r.outdated(ctx, sets, res.Images, proposed, "proposed on "+r.id.Branch); reason != "" && !sourced {
		res.Outcome, res.Reason = Outdated, reason
		return nil
	}
	sets, said, reason := r.declined(s, sets, proposed)
	if len(sets) == 0 {
		res.Outcome, res.Reason, res.PullRequest = Declined, reason, said
		return nil
	}
	if reason != "" {
		res.Warnings = append(res.Warnings, "left out: "+reason)
	}
	proposed = r.current(ctx, s, h, sets, proposed, res)
	return r.publish(ctx, s, h, union(s, r.id.Paths, sets, proposed), proposed, res)
}

// current leaves out of what the head proposes for other entries what the base has
// moved past meanwhile: a union must not undo it.
func (r *run) current(ctx context.Context, s *state, h *head, sets []overlay.Set, proposed []record.Edit, res *Result) []record.Edit {
	fork, err := entriesOf(h.forkOr(s.files), r.id.Paths)
	if err != nil {
		return proposed // what cannot be read has not moved; publishing will say
	}
	return slices.DeleteFunc(slices.Clone(proposed), func(e record.Edit) bool {
		entry := overlay.Entry{Dir: path.Dir(e.File), File: e.File, Name: e.Entry}
		is := func(other overlay.Entry) bool { return sameEntry(other, entry) }
		if slices.ContainsFunc(sets, func(set overlay.Set) bool { return is(set.Entry) }) {
			return false
		}
		was, now := slices.IndexFunc(fork, is), slices.IndexFunc(s.entries, is)
		if was < 0 || now < 0 || fork[was].Runs() == s.entries[now].Runs() || s.entries[now].Digest == e.Image.Digest {
			return false
		}
		proposedFacts, err := r.factsAt(ctx, e.Image)
		baseFacts, baseErr := r.factsAt(ctx, s.entries[now].Runs())
		if err == nil && baseErr == nil {
			if which, _ := r.compare(ctx, e.Image, proposedFacts, baseFacts); which == newer {
				return false
			}
		}
		res.Warnings = append(res.Warnings, fmt.Sprintf("entry %s is no longer proposed at %s: %s has moved to %s meanwhile", e.Entry, e.Image, s.base.Branch, s.entries[now].Runs()))
		return true
	})
}

// live is what the head branch proposes: its edits count where a pull request for
// them is open, or where a run died before it opened one. A branch left behind by
// a closed or merged pull request proposes nothing. Where someone's commits are
// given up, the edits are those of Tagboat's own commit below them.
func (r *run) live(s *state, h *head, pr *scm.PullRequest) []record.Edit {
	if !h.exists {
		return nil
	}
	left := func(p scm.PullRequest) bool { return p.HeadCommit == s.head.Commit.SHA }
	if pr == nil && slices.ContainsFunc(s.prs, left) {
		return nil
	}
	return h.trailers.Edits
}

func (r *run) foreign(s *state, h *head, pr *scm.PullRequest) error {
	what := "branch " + s.head.Branch
	if pr != nil {
		what += ", " + r.name(*pr)
	}
	return fmt.Errorf("%w: %s, has commits of %s: merge it, or delete the branch, or give them up with --force", ErrForeign, what, h.foreign)
}

// declined takes out of what is wanted what a person has said no to: a pull request
// for the same digest that was closed unmerged, or one that was merged and whose
// change the base no longer has. What is proposed already has had its answer. It
// gives what is left, and the pull request and reason of the newest no.
func (r *run) declined(s *state, sets []overlay.Set, proposed []record.Edit) (left []overlay.Set, said *scm.PullRequest, reason string) {
	for _, set := range sets {
		pr := r.saidNoTo(s, set)
		have := presentFor(proposed, set)
		if r.q.Again || pr == nil || have != nil && have.Image.Digest == set.To.Digest {
			left = append(left, set)
			continue
		}
		said, reason = pr, fmt.Sprintf("%s for this digest was closed without merging: propose it again with --again", r.name(*pr))
		if pr.State == scm.Merged {
			reason = fmt.Sprintf("%s was merged and its change was taken back on %s: propose it again with --again", r.name(*pr), s.base.Branch)
		}
	}
	return left, said, reason
}

// saidNoTo finds the newest closed pull request that was about a set's digest.
func (r *run) saidNoTo(s *state, set overlay.Set) *scm.PullRequest {
	for i, pr := range s.prs {
		have := presentFor(s.said[pr.Number].Edits, set)
		if pr.State != scm.Open && have != nil && have.Image.Digest == set.To.Digest {
			return &s.prs[i]
		}
	}
	return nil
}

// union adds to this run's sets the edits that the head branch already proposes
// for other entries.
func union(s *state, dirs []string, sets []overlay.Set, proposed []record.Edit) []overlay.Set {
	all := slices.Clone(sets)
	for _, set := range setsFor(s.entries, dirs, proposed) {
		if !slices.ContainsFunc(sets, func(own overlay.Set) bool { return sameEntry(own.Entry, set.Entry) }) {
			all = append(all, set)
		}
	}
	return all
}

// name is a pull request in its forge's words: "pull request #12".
func (r *run) name(pr scm.PullRequest) string {
	about := r.repo.About()
	if pr.Number == 0 {
		return "branch " + pr.Head
	}
	return fmt.Sprintf("%s %s%d", about.PullRequestWord, about.PullRequestMark, pr.Number)
}

// listed names at most three of many.
func listed(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
