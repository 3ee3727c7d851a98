package promote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/record"
	"tagboat/scm"
)

// ErrNoPast is returned where the history of a place does not tell what to go
// back to.
var ErrNoPast = errors.New("nothing to go back to")

// Rollback asks to bring back what an app ran in an environment before.
type Rollback struct {
	Environment, App string
	Ring             string // "": every ring
	To               string // a digest, a tag or a commit of the history; "": what ran right before
	Reason           string
	NoHold           bool // the next build may promote over it
}

// back is a rollback on its way: what the pull request tells of it.
type back struct {
	app    string
	was    inventory.Arrival // what is undone
	to     inventory.Arrival // what comes back
	reason string
	done   string // why there is nothing to do; "" where there is
	holds  bool   // a hold keeps it
	unheld bool   // the hold that lets it through is placed before it is proposed
}

// back is the rollback that a request is, or nil.
func (q Request) back() *back {
	if q.rules == nil {
		return nil
	}
	return q.rules.back
}

// RollBack proposes what ran before in an environment, for each of its rings: one
// result and one error each. The digests are read from the history of the target's
// own lines, so that nothing comes back that did not run there. What runs by a
// rollback already is not taken back by another that names nothing: it would bring
// the fault again.
//
// All of it is tried without writing first. Where there is something to propose, the
// app is held in the environment with the old digest allowed, so that no build
// undoes it, and then it is proposed.
//
// Gates, freezes and holds stop what is new; they do not stop a rollback. The hold
// of an earlier rollback is one, and gives way to the later one's.
func (p *Promoter) RollBack(ctx context.Context, q Request, b Rollback) ([]Result, []error, error) {
	q.AllowOlder, q.Again = true, true
	o, err := p.order(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	places, err := o.rollbackPlaces(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMisused, err)
	}
	plans, errs := make([]*back, len(places)), make([]error, len(places))
	results := make([]Result, len(places))
	for i, at := range places {
		results[i] = Result{App: b.App, Environment: at.Environment, Ring: at.Ring, Outcome: Failed}
		if plans[i], errs[i] = o.past(ctx, b, at); errs[i] != nil {
			errs[i] = fmt.Errorf("roll back %s in %s: %w", b.App, at, errs[i])
		}
	}
	var todo []int
	for i, at := range places {
		if errs[i] != nil {
			continue
		}
		plans[i].unheld = !b.NoHold
		results[i], errs[i] = o.rollBack(ctx, at, plans[i], true)
		plans[i].unheld, results[i].Planned = false, results[i].Planned && q.DryRun
		if errs[i] == nil && (results[i].Outcome == Planned || results[i].Outcome == Unchanged) {
			todo = append(todo, i)
		}
	}
	hold, err := o.holdFor(ctx, b, plans, todo)
	for _, i := range todo {
		if err != nil {
			results[i].Outcome, errs[i] = Failed, err
			continue
		}
		if !q.DryRun {
			results[i], errs[i] = o.rollBack(ctx, places[i], plans[i], false)
		}
		results[i].Warnings = both(results[i].Warnings, words(hold))
	}
	return results, errs, nil
}

func (o *order) rollbackPlaces(b Rollback) ([]config.Place, error) {
	app, err := o.config.App(b.App)
	if err != nil {
		return nil, err
	}
	environment, err := o.config.Environment(b.Environment)
	if err != nil {
		return nil, err
	}
	switch {
	case !app.In(b.Environment):
		return nil, fmt.Errorf("the app %s is not in %s", b.App, b.Environment)
	case b.Ring == "":
		return environment.Places(), nil
	}
	_, err = o.config.Sources(b.App, b.Environment, b.Ring) // an unknown ring is its error
	return []config.Place{{Environment: b.Environment, Ring: b.Ring}}, err
}

// past finds in the history of a place what runs and what to go back to.
func (o *order) past(ctx context.Context, b Rollback, at config.Place) (*back, error) {
	t, tip, err := o.line(ctx, b.App, at)
	if err != nil {
		return nil, err
	}
	wanted, err := o.wantedOf(ctx, b, t)
	if err != nil {
		return nil, err
	}
	found := back{app: b.App, holds: !b.NoHold}
	var ran []string
	first := true
	for a, err := range inventory.History(ctx, t, tip) {
		if err != nil {
			return nil, err
		}
		if first {
			found.was, first = a, false
			if found.done = rolledBackTo(a); found.done != "" && b.To == "" {
				return &found, nil
			}
			found.done = ""
		}
		if a.Problem != nil || len(a.Images) == 0 {
			continue
		}
		if wanted(a, found.was) {
			found.to, found.reason = a, oneLine(b.Reason)
			return &found, nil
		}
		ran = append(ran, fmt.Sprintf("%s (commit %s)", references(a.Images), short(a.Commit.SHA)))
	}
	switch {
	case b.To == "" && len(ran) > 0:
		return nil, fmt.Errorf("%w: its history has nothing pinned before %s: revert that commit in git, or promote an older image: docs/rollback.md", ErrNoPast, listed(ran))
	case b.To == "":
		return nil, fmt.Errorf("%w: its history has nothing pinned", ErrNoPast)
	}
	return nil, fmt.Errorf("%w: its history has no %s; it ran %s", ErrNoPast, b.To, cmp.Or(listed(ran), "nothing that is pinned"))
}

// rolledBackTo says that a stay began with a rollback; "" where it did not.
func rolledBackTo(a inventory.Arrival) string {
	if a.Trailers.Undoes == "" {
		return ""
	}
	return fmt.Sprintf("it runs %s by a rollback already (commit %s): name with --to what else to go back to", references(a.Images), short(a.Commit.SHA))
}

// hexWord is a commit, or the beginning of one.
var hexWord = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// wantedOf says which stay of a history is meant.
func (o *order) wantedOf(ctx context.Context, b Rollback, t inventory.Target) (func(a, now inventory.Arrival) bool, error) {
	if b.To == "" {
		return func(a, now inventory.Arrival) bool { return now.Problem != nil || !sameDigests(a.Images, now.Images) }, nil
	}
	var at []image.Reference // what ran at a commit in the middle of a stay
	if commitID.MatchString(b.To) {
		images, err := inventory.Running(t.Repo.Files(ctx, b.To), t.Dirs, t.Images)
		if err != nil && !notThere(err) {
			return nil, fmt.Errorf("at commit %s: %w", short(b.To), err)
		}
		at = images
	}
	return func(a, _ inventory.Arrival) bool {
		return hexWord.MatchString(b.To) && strings.HasPrefix(a.Commit.SHA, b.To) || at != nil && sameDigests(a.Images, at) ||
			slices.ContainsFunc(a.Images, func(ref image.Reference) bool { return ref.Digest == b.To || ref.Tag == b.To })
	}, nil
}

// line is the history of a place, and the tip that it is read from.
func (o *order) line(ctx context.Context, app string, at config.Place) (inventory.Target, string, error) {
	environment, err := o.config.Environment(at.Environment)
	if err != nil {
		return inventory.Target{}, "", err
	}
	repo, err := o.repository(ctx, environment)
	if err != nil {
		return inventory.Target{}, "", err
	}
	tip, err := o.tip(ctx, repo, environment.Branch)
	if err != nil {
		return inventory.Target{}, "", err
	}
	dirs, err := o.config.Targets(repo.Files(ctx, tip.Commit.SHA), app, at.Environment, at.Ring)
	return inventory.Target{Repo: repo, Branch: tip.Branch, Dirs: dirs, Images: o.config.Apps[app].Images, Line: o.historyOf(repo, tip.Commit.SHA)}, tip.Commit.SHA, err
}

// holdFor holds the app in the environment, with what comes back allowed, so that
// the next build does not undo the rollback. Where somebody holds it already, that
// is enough; an earlier rollback's hold is replaced. It tells in one sentence what it
// did.
func (o *order) holdFor(ctx context.Context, b Rollback, plans []*back, todo []int) (string, error) {
	if b.NoHold || len(todo) == 0 {
		return "", nil
	}
	holds, err := o.Holds(ctx, o.repo)
	if err != nil {
		return "", err
	}
	h := record.Hold{Environment: b.Environment, App: b.App, Reason: "rolled back"}
	if b.Reason != "" {
		h.Reason = cut("rolled back: "+oneLine(b.Reason), record.ReasonLimit)
	}
	for _, i := range todo {
		h.Allow = both(h.Allow, digestsOf(plans[i].to.Images))
	}
	now, _ := o.now()
	options := HoldOptions{Actor: o.q.Actor, Job: o.q.Job}
	for _, on := range holds.On(b.Environment, b.App, now, nil) {
		if len(on.Allow) == 0 || !on.Stops(b.Environment, b.App, now, h.Allow) {
			return gateOf(on).Evidence, nil
		}
		if options.Replace = true; b.Ring != "" { // other rings may have gone back to something else
			h.Allow = both(h.Allow, on.Allow)
		}
	}
	if o.q.DryRun {
		return fmt.Sprintf("would hold %s in %s", b.App, b.Environment), nil
	}
	held, err := o.Hold(ctx, o.repo, h, options)
	if err != nil {
		return "", fmt.Errorf("hold %s in %s before it is rolled back (or leave that with --no-hold): %w", b.App, b.Environment, err)
	}
	return gateOf(held.Hold).Evidence + ": release it with " + releaseOf(o.repo.About(), b.Environment, b.App), nil
}

func releaseOf(repo scm.About, environment, app string) string {
	return fmt.Sprintf("tagboat release %s %s --app %s", repoWords(repo), environment, app)
}

// rollBack proposes one place's past, or says in a dry run how that would end.
func (o *order) rollBack(ctx context.Context, at config.Place, plan *back, dryRun bool) (Result, error) {
	app := plan.app
	res := Result{App: app, Environment: at.Environment, Ring: at.Ring, Outcome: Failed}
	if plan.done != "" {
		res.Outcome, res.Reason = UpToDate, plan.done
		return res, nil
	}
	j := job{name: app, apps: []string{app}, at: at, images: plan.to.Images}
	rules := &rules{order: o, at: at, apps: j.apps, back: plan}
	var err error
	if rules.policy, err = o.config.Policy(app, at.Environment); err != nil {
		return res, err
	}
	q, id, repo, err := o.request(ctx, j, rules)
	if err != nil {
		return res, fmt.Errorf("roll back %s in %s: %w", app, at, err)
	}
	p := o.Promoter
	if q.DryRun = dryRun; dryRun && !o.q.DryRun { // what comes of it is told when it is done
		silent := *p
		silent.Progress, p = nil, &silent
	}
	if res, err = p.promote(ctx, q, id, repo); err != nil {
		return res, fmt.Errorf("roll back %s in %s: %w", app, at, err)
	}
	return res, nil
}

func references(images []image.Reference) string {
	var names []string
	for _, ref := range images {
		names = append(names, tagOf(ref))
	}
	return listed(names)
}

// tagOf is a reference for people who know the image: its tag and the digest's
// beginning.
func tagOf(ref image.Reference) string {
	return strings.TrimPrefix(oneLine(ref.Tag)+"@"+shortDigest(ref.Digest), "@")
}
