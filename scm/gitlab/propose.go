package gitlab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// Propose opens a merge request, adopts one that is already open (409, whatever
// its words: they are translated), or updates one. Labels and people are named in
// the same call; GitLab drops without a word those that may not be set, so the
// answer is compared with what was asked for.
//
// An update sets title and body, adds labels, and leaves draft, reviewers and
// assignees as people have set them.
func (r *Repository) Propose(ctx context.Context, p scm.Proposal) (scm.PullRequest, error) {
	if n := utf8.RuneCountInString(p.Body); n > bodyLimit {
		return scm.PullRequest{}, r.fail("propose "+p.Head, &refusal{kind: scm.ErrRefused,
			text: fmt.Sprintf("the body has %d characters, GitLab takes %d", n, bodyLimit)})
	}
	m, isNew, warnings, err := r.write(ctx, p)
	if err != nil {
		return scm.PullRequest{}, err
	}
	if p.Renewed && !isNew {
		warnings = append(warnings, r.renew(ctx, m)...)
	}
	if p.AutoMerge {
		var merged *gl.MergeRequest
		if merged, err = r.autoMerge(ctx, m, p.HeadCommit); merged != nil {
			m = merged
		}
	}
	pr := r.pullRequest(m)
	pr.Warnings = warnings
	return pr, err
}

// write opens, adopts or updates.
func (r *Repository) write(ctx context.Context, p scm.Proposal) (m *gl.MergeRequest, isNew bool, warnings []string, err error) {
	p.Labels, warnings = lawfulLabels(p.Labels)
	var reviewers, assignees people
	var known *gl.MergeRequest
	if p.Number == 0 {
		var unknown []string
		reviewers, assignees, unknown = r.people(ctx, p)
		warnings = append(warnings, unknown...)
		if m, known, err = r.openOrFind(ctx, p, reviewers, assignees); err != nil {
			return nil, false, nil, err
		}
	}
	isNew = m != nil
	if !isNew {
		reviewers, assignees = nil, nil
		if known != nil {
			p.Number = known.IID
		}
		if m, err = r.update(ctx, p, known); err != nil {
			return nil, false, nil, err
		}
	}
	return m, isNew, append(warnings, missing(m, p, reviewers, assignees)...), nil
}

// openOrFind opens a merge request, or finds the open one that is in its way or
// whose answer was lost.
func (r *Repository) openOrFind(ctx context.Context, p scm.Proposal, reviewers, assignees people) (opened, found *gl.MergeRequest, err error) {
	what := fmt.Sprintf("open a merge request from %s into %s", p.Head, p.Base)
	opened, e := r.open(ctx, p, reviewers, assignees)
	switch {
	case e == nil:
		return opened, nil, nil
	case e.status != 409 && !e.ambiguous():
		return nil, nil, r.fail(what, e)
	}
	all, err := r.list(ctx, p.Head, p.Base, "opened", 0)
	if err != nil || len(all) == 0 {
		return nil, nil, errors.Join(r.fail(what, e), err)
	}
	return nil, all[0], nil
}

func (r *Repository) open(ctx context.Context, p scm.Proposal, reviewers, assignees people) (*gl.MergeRequest, *refusal) {
	opt := &gl.CreateMergeRequestOptions{
		Title: ref(titled(p.Title, p.Draft)), Description: &p.Body,
		SourceBranch: &p.Head, TargetBranch: &p.Base,
		Labels: labelOptions(p.Labels), ReviewerIDs: reviewers.ids(), AssigneeIDs: assignees.ids(),
		RemoveSourceBranch: ref(true),
	}
	m, resp, err := r.api.MergeRequests.CreateMergeRequest(r.project, opt, gl.WithContext(ctx))
	return m, r.explain(resp, err)
}

// update keeps the draft mark as it is; known is the merge request if it was just
// read.
func (r *Repository) update(ctx context.Context, p scm.Proposal, known *gl.MergeRequest) (*gl.MergeRequest, error) {
	what := fmt.Sprintf("update merge request !%d", p.Number)
	if known == nil {
		var e *refusal
		if known, e = r.current(ctx, p.Number); e != nil {
			return nil, r.fail(what, e)
		}
	}
	if known.SourceBranch != p.Head || known.TargetBranch != p.Base || known.SourceProjectID != known.TargetProjectID {
		return nil, r.fail(what, &refusal{kind: scm.ErrMoved,
			text: fmt.Sprintf("it goes from %s into %s, not from %s into %s", known.SourceBranch, known.TargetBranch, p.Head, p.Base)})
	}
	if state(known) != scm.Open {
		return nil, r.fail(what, &refusal{kind: scm.ErrMoved, text: "it is " + known.State})
	}
	opt := &gl.UpdateMergeRequestOptions{
		Title: ref(titled(p.Title, isDraft(known))), Description: &p.Body, AddLabels: labelOptions(p.Labels),
	}
	m, resp, err := r.api.MergeRequests.UpdateMergeRequest(r.project, p.Number, opt, gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return nil, r.fail(what, e)
	}
	if state(m) == scm.Open {
		return m, nil
	}
	if p.Was != nil { // what was merged or closed says what people decided on
		back := &gl.UpdateMergeRequestOptions{Title: ref(titled(p.Was.Title, p.Was.Draft)), Description: &p.Was.Body}
		if _, resp, err := r.api.MergeRequests.UpdateMergeRequest(r.project, p.Number, back, gl.WithContext(ctx)); err != nil {
			return nil, r.fail(what+", which was closed meanwhile, back to its text", r.explain(resp, err))
		}
	}
	return nil, r.fail(what, &refusal{kind: scm.ErrMoved, text: "it is " + m.State})
}

// current is a merge request as PullRequests saw it, once, to save a round; else
// as it is now.
func (r *Repository) current(ctx context.Context, number int) (*gl.MergeRequest, *refusal) {
	if m, ok := r.listed.LoadAndDelete(number); ok {
		return m.(*gl.MergeRequest), nil
	}
	return r.get(ctx, number)
}

func (r *Repository) get(ctx context.Context, number int) (*gl.MergeRequest, *refusal) {
	m, resp, err := r.api.MergeRequests.GetMergeRequest(r.project, number, nil, gl.WithContext(ctx))
	return m, r.explain(resp, err)
}

// renew takes back what was said about another digest: auto-merge and approvals.
// What GitLab does not let us take back is a warning.
func (r *Repository) renew(ctx context.Context, m *gl.MergeRequest) []string {
	var warnings [2]string
	var g sync.WaitGroup
	if m.MergeWhenPipelineSucceeds {
		g.Go(func() {
			if err := r.disarm(ctx, m.IID); err != nil {
				warnings[0] = err.Error() + ": cancel it by hand"
				return
			}
			m.MergeWhenPipelineSucceeds = false
		})
	}
	g.Go(func() {
		resp, err := r.api.MergeRequestApprovals.ResetApprovalsOfMergeRequest(r.project, m.IID, gl.WithContext(ctx))
		if e := r.explain(resp, err); e != nil {
			warnings[1] = fmt.Sprintf("approvals of !%d could not be reset (HTTP %d: GitLab lets only the bot user of a project or group access token do it, from Premium on): "+
				"approvals given before were for another digest", m.IID, e.status)
		}
	})
	g.Wait()
	return slices.DeleteFunc(warnings[:], func(s string) bool { return s == "" })
}

// disarm cancels auto-merge that was set for what a merge request showed before.
func (r *Repository) disarm(ctx context.Context, iid int) error {
	_, resp, err := r.api.MergeRequests.CancelMergeWhenPipelineSucceeds(r.project, iid, gl.WithContext(ctx))
	// 406: a push has cancelled it already.
	if e := r.explain(resp, err); e != nil && e.status != 406 {
		return fmt.Errorf("auto-merge of !%d, set for what was proposed before, could not be cancelled: %w", iid, e)
	}
	return nil
}

// Close closes a merge request with its last title and body, and says why in a
// comment. The branch stays.
func (r *Repository) Close(ctx context.Context, pr scm.PullRequest, why string) error {
	what := fmt.Sprintf("close merge request !%d", pr.Number)
	opt := &gl.UpdateMergeRequestOptions{
		Title: ref(titled(pr.Title, pr.Draft)), Description: &pr.Body, StateEvent: ref("close"),
	}
	m, resp, err := r.api.MergeRequests.UpdateMergeRequest(r.project, pr.Number, opt, gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return r.fail(what, e)
	}
	if state(m) != scm.Closed {
		return r.fail(what, &refusal{kind: scm.ErrMoved, text: "it is " + m.State})
	}
	if why == "" {
		return nil
	}
	_, resp, err = r.api.Notes.CreateMergeRequestNote(r.project, pr.Number, &gl.CreateMergeRequestNoteOptions{Body: &why}, gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return r.fail(fmt.Sprintf("comment on merge request !%d, which is closed", pr.Number), e)
	}
	return nil
}

func labelOptions(labels []string) *gl.LabelOptions {
	if len(labels) == 0 {
		return nil
	}
	return ref(gl.LabelOptions(labels))
}

// lawfulLabels leaves out what GitLab, which splits at commas, would make two of.
func lawfulLabels(labels []string) (lawful, warnings []string) {
	for _, l := range labels {
		if strings.Contains(l, ",") {
			warnings = append(warnings, fmt.Sprintf("label %q was left out: GitLab takes no comma in a label", l))
		} else {
			lawful = append(lawful, l)
		}
	}
	return lawful, warnings
}
