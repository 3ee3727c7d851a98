package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/image"
	"tagboat/record"
	"tagboat/registry"
	"tagboat/scm"
)

// PolicyContext is the commit status that Verify posts. Made required on the base
// branch, it holds the rules of tagboat.yaml at the merge; without that they are
// advice.
const PolicyContext = "tagboat/policy"

// Verify says which pull requests are verified.
type Verify struct {
	Number int    // 0: all open ones into the branches of tagboat.yaml
	Commit string // the status is posted there, too: the commit of a merge queue
}

// Verified is what was found of one pull request.
type Verified struct {
	PullRequest            scm.PullRequest
	App, Environment, Ring string // "" where it is no promotion
	State                  scm.StatusState
	Summary                string // one sentence
	Gates                  []Gate
	Posted                 bool // false: the status said it already, or it was a dry run
}

// Verify checks open pull requests against the policy of the default branch, and
// posts PolicyContext on their head commits where it says something new. Results
// and errors stand side by side; one failure does not stop the others.
func (p *Promoter) Verify(ctx context.Context, q Request, v Verify) ([]Verified, []error, error) {
	o, err := p.order(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	holds, err := p.Holds(ctx, o.repo)
	if err != nil {
		return nil, nil, err
	}
	bases, err := o.bases(ctx, v.Number != 0)
	if err != nil {
		return nil, nil, err
	}
	var found []Verified
	var errs []error
	for _, b := range bases {
		prs, err := b.repo.PullRequests(ctx, "", b.tip.Branch)
		if err != nil {
			return found, errs, err
		}
		for _, pr := range prs {
			if v.Number != 0 && pr.Number != v.Number {
				continue
			}
			one := &verifying{order: o, base: b, pr: pr, holds: holds}
			res, err := one.verify(ctx)
			if err == nil || !passing(err) {
				err = errors.Join(err, one.post(ctx, &res, v.Commit))
			}
			found, errs = append(found, res), append(errs, err)
		}
	}
	return found, errs, nil
}

// passing says whether an error is likely to be over at the next run: then the
// status that is there stays. Any other must not leave an earlier success standing.
func passing(err error) bool {
	return errors.Is(err, scm.ErrUnavailable) || errors.Is(err, scm.ErrRateLimited) || errors.Is(err, scm.ErrMoved) ||
		errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrRateLimited) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// base is a branch that promotions go to.
type base struct {
	repo scm.Repository
	tip  scm.Tip
}

// bases lists the branches that tagboat.yaml governs; of its own repository alone
// where one pull request is meant by its number.
func (o *order) bases(ctx context.Context, own bool) ([]base, error) {
	var all []base
	for _, e := range append([]config.Environment{{}}, o.config.Environments...) {
		repo, err := o.repository(ctx, e)
		if err != nil {
			return nil, err
		}
		if own && repo != o.repo {
			continue
		}
		tip, err := o.tip(ctx, repo, e.Branch)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(b base) bool { return b.repo == repo && b.tip.Branch == tip.Branch }) {
			all = append(all, base{repo, tip})
		}
	}
	return all, nil
}

// verifying is one pull request on its way through the rules.
type verifying struct {
	*order
	base    base
	pr      scm.PullRequest
	holds   Holds
	changes scm.Changes
	backers []string // the author, and who has approved the head commit
	stale   []string // whose approvals were for something else
}

func (v *verifying) verify(ctx context.Context) (Verified, error) {
	res := Verified{PullRequest: v.pr}
	fail := func(err error) (Verified, error) {
		res.State, res.Summary = scm.StatusFailure, "not verified: "+err.Error()
		about := v.base.repo.About()
		return res, fmt.Errorf("verify %s %s%d of %s: %w", about.PullRequestWord, about.PullRequestMark, v.pr.Number, about.Name, err)
	}
	var err error
	if v.changes, err = v.base.repo.Changes(ctx, v.base.tip.Commit.SHA, v.pr.HeadCommit); err != nil {
		return fail(err)
	}
	t, promotion := newestTrailers(v.changes.Commits)
	// a branch of somebody's that holds promotions, say one environment's on its way
	// to another, is no promotion
	if promotion = promotion && strings.HasPrefix(v.pr.Head, ownBranches) && !v.pr.Fork; !promotion {
		t = record.Trailers{}
	}
	if err := v.askPeople(ctx, t); err != nil {
		return fail(err)
	}
	if promotion {
		res.App, res.Environment, res.Ring = t.App, t.Environment, t.Ring
		res.Gates, err = v.promotion(ctx, t)
	} else {
		res.Gates, err = v.byHand(ctx)
	}
	if err != nil {
		return fail(err)
	}
	res.State, res.Summary = verdict(res.Gates)
	return res, nil
}

func newestTrailers(commits []scm.Commit) (record.Trailers, bool) {
	for _, c := range commits {
		if t, ok := record.ParseTrailers(c.Message); ok {
			return t, true
		}
	}
	return record.Trailers{}, false
}

// verdict is what the gates come to: the worst of them.
func verdict(gates []Gate) (scm.StatusState, string) {
	why := shut(gates)
	switch {
	case why == "" && len(gates) == 0:
		return scm.StatusSuccess, "no promotion"
	case why == "":
		var names []string
		for _, g := range gates {
			names = append(names, g.Name)
			if g.Status == GateOverridden {
				names[len(names)-1] += " (overridden)"
			}
		}
		return scm.StatusSuccess, strings.Join(names, ", ")
	case slices.ContainsFunc(gates, func(g Gate) bool { return g.Status == GateFailed }):
		return scm.StatusFailure, why
	}
	return scm.StatusPending, why
}

// promotion checks one that Tagboat has proposed.
func (v *verifying) promotion(ctx context.Context, t record.Trailers) ([]Gate, error) {
	job, err := v.jobOf(ctx, t)
	if err != nil {
		return []Gate{{Name: "trailers", Status: GateFailed, Evidence: err.Error()}}, nil
	}
	rules, err := v.rulesOf(ctx, job, t)
	if errors.Is(err, ErrSource) {
		return []Gate{{Name: "order", Status: GateFailed, Evidence: err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	diff, images, err := v.diff(ctx, t, rules)
	if err != nil || !diff.opens() {
		return []Gate{diff}, err
	}
	if t.Undoes != "" {
		if rules.back, err = v.rolledBack(ctx, rules, images); err != nil {
			return nil, err
		}
		if rules.back == nil {
			return []Gate{diff, {Name: "history", Status: GateFailed, Evidence: fmt.Sprintf("it says that it is a rollback, but %s never ran this", job.at)}}, nil
		}
	}
	gates, err := rules.check(ctx, images, v.holds)
	if err != nil {
		return nil, err
	}
	if gates, err = v.platforms(ctx, rules, images, gates); err != nil {
		return nil, err
	}
	if gates, err = v.overridden(ctx, t, rules, gates); err != nil {
		return nil, err
	}
	return append(append([]Gate{diff}, gates...), v.renewed()...), nil
}

// rulesOf are the rules of a promotion with its sources; a rollback has none.
func (v *verifying) rulesOf(ctx context.Context, j job, t record.Trailers) (r *rules, err error) {
	if t.Undoes != "" {
		r = &rules{order: v.order, at: j.at, apps: j.apps}
		r.policy, err = v.config.Policy(j.apps[0], j.at.Environment)
	} else {
		r, err = v.rules(ctx, j)
	}
	if err == nil {
		r.asking, r.told = v.backers, []string{t.Requester}
	}
	return r, err
}

// overridden opens what is shut where the trailers give a reason and the author, or
// who has approved the head commit, is an overrider.
func (v *verifying) overridden(ctx context.Context, t record.Trailers, rules *rules, gates []Gate) ([]Gate, error) {
	if t.Override == "" || shut(gates) == "" {
		return gates, nil
	}
	by, refused, err := rules.override(ctx, gates)
	if err != nil {
		return nil, err
	}
	if refused != "" {
		return append(gates, Gate{Name: "override", Status: GateFailed, Evidence: refused + "; an approval by one of them counts"}), nil
	}
	return append(gates, Gate{Name: "override", Status: GatePassed, Evidence: by + ": " + t.Override}), nil
}

// jobOf is the promotion that trailers name, where tagboat.yaml has it and it goes
// to the branch that it is proposed for.
func (v *verifying) jobOf(ctx context.Context, t record.Trailers) (job, error) {
	j := job{name: t.App, apps: v.members(t.App), at: config.Place{Environment: t.Environment, Ring: t.Ring}}
	environment, err := v.config.Environment(t.Environment)
	if err != nil {
		return j, err
	}
	if len(j.apps) == 0 {
		_, err := v.config.App(t.App)
		return j, err
	}
	if _, err := v.config.Sources(j.apps[0], t.Environment, t.Ring); err != nil {
		return j, err
	}
	branch, err := record.Branch(t.Environment, t.Ring, t.App)
	if err != nil {
		return j, err
	}
	if v.pr.Head != branch {
		return j, fmt.Errorf("the branch %s promotes %s, which belongs on %s", v.pr.Head, t.Target(), branch)
	}
	if repo, err := v.repository(ctx, environment); err != nil || repo != v.base.repo {
		return j, fmt.Errorf("%s is not promoted to in this repository", t.Environment)
	}
	tip, err := v.tip(ctx, v.base.repo, environment.Branch)
	if err == nil && tip.Branch != v.pr.Base {
		err = fmt.Errorf("%s is promoted to on branch %s, not on %s", t.Environment, tip.Branch, v.pr.Base)
	}
	return j, err
}

// platforms asks the registry again: what the pull request says is no evidence.
func (v *verifying) platforms(ctx context.Context, rules *rules, images []image.Reference, gates []Gate) ([]Gate, error) {
	want := rules.policy.Gates.Platforms
	if len(want) == 0 {
		return gates, nil
	}
	gates = slices.DeleteFunc(gates, func(g Gate) bool { return g.Name == "platforms" })
	g, err := v.havePlatforms(ctx, want, images)
	return append(gates, g), err
}
