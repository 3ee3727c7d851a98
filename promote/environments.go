package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/image"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// Errors of promotions by tagboat.yaml.
var (
	// ErrNotEnforced is returned where tagboat.yaml has a rule that this version
	// does not enforce: going on without it would look like passing it.
	ErrNotEnforced = errors.New("a rule that is not enforced yet")
	// ErrSource is returned where the source environment does not run one pinned
	// digest, or has changed since it was read.
	ErrSource = errors.New("the source does not tell one digest")
)

// Environments asks for promotions in the words of tagboat.yaml.
type Environments struct {
	To   []string
	Ring string
	From string   // "": Request.Images are promoted; else what this environment runs
	Apps []string // with From: which apps; none means all
}

// RunEnvironments makes the promotions that tagboat.yaml gives for a request: an
// app's images to environments, or what one environment runs to the next. One
// promotion's failure does not stop the others; results and errors stand side by
// side. The last error is of the request as a whole.
func (p *Promoter) RunEnvironments(ctx context.Context, q Request, e Environments) ([]Result, []error, error) {
	repo, err := p.Open(ctx, q.Repository, "")
	if err != nil {
		return nil, nil, err
	}
	tip, err := repo.Tip(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	c, err := config.Load(repo.Files(ctx, tip.Commit.SHA))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s has no %s on %s: name the overlay with --path", ErrMisused, repo.About().Name, config.FileName, tip.Branch)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s, branch %s: %w", repo.About().Name, tip.Branch, err)
	}
	o := &order{Promoter: p, config: c, repo: repo, q: q, e: e}
	jobs, err := o.jobs(ctx)
	if err != nil {
		return nil, nil, err
	}
	results, errs := make([]Result, len(jobs)), make([]error, len(jobs))
	for i, job := range jobs {
		results[i], errs[i] = o.run(ctx, job)
	}
	return results, errs, nil
}

// order is a request under a configuration.
type order struct {
	*Promoter
	config *config.Config
	repo   scm.Repository // the one with tagboat.yaml
	q      Request
	e      Environments
}

// job is one app to one environment or ring.
type job struct {
	app    string
	at     config.Place
	images []image.Reference // of a build; none where the source tells them
}

// jobs lists the promotions: every environment that was named, with every app
// that is meant.
func (o *order) jobs(ctx context.Context) ([]job, error) {
	apps, err := o.apps()
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, to := range o.e.To {
		environment, err := o.config.Environment(to)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMisused, err)
		}
		if o.e.From != "" {
			if err := o.config.CheckPair(o.e.From, to); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrMisused, err)
			}
		}
		if rings := environment.RingNames(); len(rings) > 0 && o.e.Ring == "" {
			return nil, fmt.Errorf("%w: %s has the rings %s: name one with --ring", ErrMisused, to, strings.Join(rings, ", "))
		}
		for _, app := range apps {
			app.at = config.Place{Environment: to, Ring: o.e.Ring}
			jobs = append(jobs, app)
		}
	}
	return jobs, nil
}

// apps finds what is meant: the apps whose images were given, or those that were
// named.
func (o *order) apps() ([]job, error) {
	var jobs []job
	if o.e.From == "" {
		for _, ref := range o.q.Images {
			app, err := o.config.AppOf(ref.Repository)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrMisused, err)
			}
			i := slices.IndexFunc(jobs, func(j job) bool { return j.app == app })
			if i < 0 {
				jobs, i = append(jobs, job{app: app}), len(jobs)
			}
			jobs[i].images = append(jobs[i].images, ref)
		}
		return jobs, nil
	}
	names := o.e.Apps
	if len(names) == 0 {
		names = o.config.AppNames()
	}
	for _, name := range names {
		app, err := o.config.App(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMisused, err)
		}
		if len(o.e.Apps) == 0 && !app.In(o.e.From) {
			continue
		}
		jobs = append(jobs, job{app: name})
	}
	return jobs, nil
}

// run makes one promotion under the environment's policy.
func (o *order) run(ctx context.Context, j job) (Result, error) {
	res := Result{App: j.app, Environment: j.at.Environment, Ring: j.at.Ring, Outcome: Failed}
	policy, err := o.config.Policy(j.app, j.at.Environment)
	if err == nil {
		err = enforced(policy)
	}
	if err != nil {
		return res, fmt.Errorf("promote %s to %s: %w", j.app, j.at, err)
	}
	q, repo, err := o.request(ctx, j, policy)
	if err != nil {
		return res, err
	}
	id := identity{App: j.app, Environment: j.at.Environment, Ring: j.at.Ring}
	if id.Branch, err = record.Branch(id.Environment, id.Ring, id.App); err != nil {
		return res, fmt.Errorf("%w: %w", ErrMisused, err)
	}
	tip, err := repo.Tip(ctx, q.Base)
	if err != nil {
		return res, err
	}
	if id.Paths, err = o.config.Targets(repo.Files(ctx, tip.Commit.SHA), j.app, j.at.Environment, j.at.Ring); err != nil {
		return res, fmt.Errorf("promote %s to %s: %w", j.app, j.at, err)
	}
	q.Base = tip.Branch
	if q.proveWith, err = o.config.ProveWith(repo.Files(ctx, tip.Commit.SHA), j.app, j.at); err != nil {
		return res, fmt.Errorf("promote %s to %s: %w", j.app, j.at, err)
	}
	if o.e.From != "" {
		if q.source, err = o.source(ctx, j.app); err != nil {
			return res, fmt.Errorf("promote %s from %s to %s: %w", j.app, o.e.From, j.at, err)
		}
		q.Images = q.source.images
	}
	if err := checkImages(q); err != nil {
		return res, fmt.Errorf("%w: %w", ErrMisused, err)
	}
	return o.promote(ctx, q, id, repo)
}

// request is the user's request with what the environment's policy adds.
func (o *order) request(ctx context.Context, j job, policy config.Policy) (Request, scm.Repository, error) {
	environment, err := o.config.Environment(j.at.Environment)
	if err != nil {
		return Request{}, nil, err
	}
	app, err := o.config.App(j.app)
	if err != nil {
		return Request{}, nil, err
	}
	q, repo := o.q, o.repo
	q.Images, q.Base = j.images, environment.Branch
	if environment.Repository != "" {
		if repo, err = o.Open(ctx, environment.Repository, environment.Forge); err != nil {
			return Request{}, nil, err
		}
	}
	if q.Pin == "" && policy.Pin == config.PinDigest {
		q.Pin = overlay.PinDigest
	}
	if q.Prove == "" {
		q.Prove = overlay.Mode(policy.Prove)
	}
	q.Platforms = both(q.Platforms, policy.Gates.Platforms)
	pr := policy.PullRequest
	q.Labels, q.Reviewers = both(q.Labels, pr.Labels), both(q.Reviewers, pr.Reviewers)
	q.TeamReviewers, q.Assignees = both(q.TeamReviewers, pr.TeamReviewers), both(q.Assignees, pr.Assignees)
	q.Draft = q.Draft || pr.Draft
	q.AutoMerge = q.AutoMerge || policy.Merge == config.Auto
	q.names = map[string]string{}
	for _, i := range app.Images {
		q.names[image.Canonical(i.Repository)] = i.Name
	}
	return q, repo, nil
}

func both(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// enforced refuses a policy with rules that would be passed over.
func enforced(p config.Policy) error {
	var rules []string
	for _, rule := range []struct {
		name string
		set  bool
	}{
		{"merge: direct", p.Merge == config.Direct}, {"gates.soak", p.Gates.Soak > 0}, {"gates.checks", len(p.Gates.Checks) > 0},
		{"gates.approvals", p.Gates.Approvals > 0}, {"freeze", len(p.Freeze) > 0}, {"promoters", len(p.Promoters) > 0},
		{"freeze-exceptions", len(p.FreezeExceptions) > 0}, {"overriders", len(p.Overriders) > 0}, {"copy", p.Copy}, {"skip-ci", p.SkipCI}, {"commit-message", p.CommitMessage != ""},
		{"pull-request.title", p.PullRequest.Title != ""},
	} {
		if rule.set {
			rules = append(rules, rule.name)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s has %s: use --path to promote without %s, or wait for a version that has it", ErrNotEnforced, config.FileName, strings.Join(rules, ", "), config.FileName)
}
