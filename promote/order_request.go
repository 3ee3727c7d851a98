package promote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// rules gathers what must hold for a job, and reads its sources.
func (o *order) rules(ctx context.Context, j job) (*rules, error) {
	r := &rules{order: o, at: j.at, apps: j.apps, told: []string{o.q.Job.Actor}}
	var err error
	if r.policy, err = o.config.Policy(j.apps[0], j.at.Environment); err != nil {
		return nil, err
	}
	for _, app := range j.apps {
		sources, err := o.sources(ctx, app, j.at)
		if err != nil {
			return nil, err
		}
		r.sources = append(r.sources, sources...)
	}
	return r, o.meant(ctx, r.sources)
}

// meant demands that the sources run what they ran when the promotion was asked
// for. It is asked of the commit that is promoted.
func (o *order) meant(ctx context.Context, sources []*source) error {
	if o.e.Since.IsZero() {
		return nil
	}
	for _, s := range sources {
		arrival, err := inventory.Arrived(ctx, s.target(), s.commit)
		if err != nil {
			return err
		}
		if arrival.At.After(o.e.Since) {
			return fmt.Errorf("%w: %s runs %v since %s", ErrLater, s.at, s.images, arrival.At.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// request is the user's request with what the configuration adds to it: where the
// images are set, which they are, and the rules.
func (o *order) request(ctx context.Context, j job, rules *rules) (Request, identity, scm.Repository, error) {
	fail := func(err error) (Request, identity, scm.Repository, error) { return Request{}, identity{}, nil, err }
	environment, err := o.config.Environment(j.at.Environment)
	if err != nil {
		return fail(err)
	}
	repo, err := o.repository(ctx, environment)
	if err != nil {
		return fail(err)
	}
	id := identity{App: j.name, Environment: j.at.Environment, Ring: j.at.Ring}
	if id.Branch, err = record.Branch(id.Environment, id.Ring, id.App); err != nil {
		return fail(fmt.Errorf("%w: %w", ErrMisused, err))
	}
	tip, err := o.tip(ctx, repo, environment.Branch)
	if err != nil {
		return fail(err)
	}
	q := o.q.under(rules.policy)
	q.Base, q.rules, q.names, q.turn = tip.Branch, rules, o.names(j.apps, rules.from()), j.turn
	q.sources, q.source = rules.code()
	q.imagesAt = map[string][]string{}
	files := o.files(ctx, repo, tip.Commit.SHA)
	for _, app := range j.apps {
		dirs, err := o.config.Targets(files, app, j.at.Environment, j.at.Ring)
		if err != nil {
			return fail(err)
		}
		proveWith, err := o.config.ProveWith(files, app, j.at)
		if err != nil {
			return fail(err)
		}
		id.Paths, q.proveWith = both(id.Paths, dirs), both(q.proveWith, proveWith)
		for _, dir := range dirs {
			q.imagesAt[dir] = append(q.imagesAt[dir], rules.repositories(app)...)
		}
	}
	slices.Sort(id.Paths)
	q.Images = j.images
	if o.e.From != "" {
		q.Images = rules.images()
	}
	if err := checkImages(q); err != nil {
		return fail(fmt.Errorf("%w: %w", ErrMisused, err))
	}
	return q, id, repo, nil
}

// repositories are the names under which a request may ask for an app's images.
func (r *rules) repositories(app string) []string {
	var names []string
	for _, i := range r.config.Apps[app].Images {
		names = append(names, i.Repository)
	}
	for _, s := range r.from() {
		for _, ref := range s.images {
			if s.app == app {
				names = append(names, ref.Repository)
			}
		}
	}
	return names
}

// code tells where the source code of images is: by image repository, and what all
// apps agree on.
func (r *rules) code() (byImage map[string]string, common string) {
	byImage, common = map[string]string{}, r.config.Apps[r.apps[0]].Source
	for _, app := range r.apps {
		source := r.config.Apps[app].Source
		for _, name := range r.repositories(app) {
			byImage[image.Canonical(name)] = source
		}
		if source != common {
			common = ""
		}
	}
	return byImage, common
}

// from is what images were read from: the sources, or the past of the place itself.
func (r *rules) from() []*source {
	if r.back == nil {
		return r.sources
	}
	return []*source{{app: r.back.app, at: r.at, built: r.config.Apps[r.back.app].Images, images: r.back.to.Images}}
}

// images are what the sources run: those of an app agree.
func (r *rules) images() []image.Reference {
	var all []image.Reference
	told := map[string]bool{}
	for _, s := range r.sources {
		if !told[s.app] {
			all = append(all, s.images...)
		}
		told[s.app] = true
	}
	return all
}

// under is the request with what a policy says and the user did not.
func (q Request) under(policy config.Policy) Request {
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
	q.Copy = q.Copy || policy.Copy
	q.direct = policy.Merge == config.Direct
	return q
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
