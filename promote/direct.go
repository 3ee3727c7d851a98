package promote

import (
	"context"
	"fmt"

	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// commit puts the edit onto the base branch itself, by compare and swap: merge
// policy direct. Where the branch moves meanwhile, the run starts again.
func (r *run) commit(ctx context.Context, s *state, sets []overlay.Set, res *Result) error {
	edited, err := overlay.Edit(s.files, sets)
	if err != nil {
		return r.about(s, err)
	}
	res.Changes, res.PullRequest = edited.Changes, nil
	res.Warnings = append(res.Warnings, edited.Warnings...)
	back, err := r.takenBack(ctx, s, edited, sets)
	if err != nil {
		return err
	}
	if back != "" && !r.q.Again {
		res.Outcome, res.Reason = Declined, back
		return nil
	}
	stopped, err := r.gate(ctx, s, res)
	if err != nil || stopped && !r.q.DryRun {
		return err
	}
	commits := r.commitsOf(ctx, edited.Changes, res.Images)
	if err := r.prove(ctx, s.files, edited, res); err != nil {
		return r.about(s, err)
	}
	title := r.commitTitle(edited.Changes)
	message := r.message(s, title, edited.Changes, recorded(sets, edited), res)
	res.Diff, res.Title = Diff(edited), title
	if r.q.DryRun {
		res.Commits = commits()
		r.planned(nil, res)
		return nil
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	if err := r.copyImages(ctx, res); err != nil {
		return err
	}
	if err := r.heldMeanwhile(ctx, s); err != nil {
		return err
	}
	r.progress("committing to " + s.base.Branch)
	commit, err := r.repo.Commit(ctx, scm.Draft{Branch: s.base.Branch, Expect: s.base.Commit.SHA, From: s.base, Message: message, Files: files(edited)})
	if err != nil {
		return err
	}
	res.Commit, res.Outcome, res.HeadBranch = &commit, Committed, s.base.Branch
	res.Commits = commits()
	res.Reason = fmt.Sprintf("%s is at %s", s.base.Branch, short(commit.SHA))
	if pr := s.open(); pr != nil {
		res.Warnings = append(res.Warnings, r.name(*pr)+" is open from before and is left alone: the next run closes it where it has nothing left to say")
	}
	return nil
}

// heldMeanwhile asks whether the holds are those that were read: proving takes its
// time, other promotions theirs, and nothing else stops a direct commit.
func (r *run) heldMeanwhile(ctx context.Context, s *state) error {
	tip, err := r.holdsAt().Tip(ctx, record.HoldBranch)
	if err != nil && !notThere(err) {
		return err
	}
	if is := s.holds.tip != nil; is != (err == nil) || is && tip.Commit.SHA != s.holds.tip.Commit.SHA {
		return fmt.Errorf("%w: branch %s", scm.ErrMoved, record.HoldBranch)
	}
	return nil
}

// takenBack says who took back the digests that an earlier direct commit of this
// promotion had set: the newest such commit set them, and the base has them no
// more. A person's no is final for a digest here too.
func (r *run) takenBack(ctx context.Context, s *state, edited overlay.Edited, sets []overlay.Set) (string, error) {
	var after []scm.Commit
	for commit, err := range r.repo.Log(ctx, s.base.Commit.SHA, edited.Files[0].Path) {
		if notThere(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		t, is := record.ParseTrailers(commit.Message)
		if !is || t.App != r.id.App || t.Environment != r.id.Environment || t.Ring != r.id.Ring {
			if after = append(after, commit); len(after) > walked {
				return "", nil
			}
			continue
		}
		for _, set := range sets {
			have := presentFor(t.Edits, set)
			if have == nil || have.Image.Digest != set.To.Digest || len(after) == 0 {
				return "", nil
			}
		}
		by := after[len(after)-1]
		return fmt.Sprintf("commit %s set this digest and %s by %s took it back: commit it again with --again", short(commit.SHA), short(by.SHA), oneLine(by.Author)), nil
	}
	return "", nil
}
