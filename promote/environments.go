package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// ErrSource is returned where the source environment does not run one pinned
// digest, or has changed since it was read.
var ErrSource = errors.New("the source does not tell one digest")

// Environments asks for promotions in the words of tagboat.yaml.
type Environments struct {
	To   []string
	Ring string   // "": the next ring that is not there yet
	From string   // "": Request.Images are promoted; else what this environment runs
	Apps []string // with From: which apps; none means all
	// Since is when the promotion was asked for, by the forge's clock: what came to a
	// source after it was not meant. The zero time asks nothing.
	Since time.Time
}

// ErrLater is returned where a source runs what it runs since after
// Environments.Since.
var ErrLater = errors.New("it came after the promotion was asked for")

// RunEnvironments makes the promotions that tagboat.yaml gives for a request: an
// app's images to environments, or what one environment runs to the next. Several
// run side by side, and one promotion's failure does not stop the others; results
// and errors stand side by side. The last error is of the request as a whole.
func (p *Promoter) RunEnvironments(ctx context.Context, q Request, e Environments) ([]Result, []error, error) {
	o, err := p.order(ctx, q)
	if errors.Is(err, errNoConfig) && e.From == "" && e.Ring == "" {
		return p.runFound(ctx, q, e)
	}
	if err != nil {
		return nil, nil, err
	}
	if e.From == "" && len(e.Apps) > 0 {
		return nil, nil, fmt.Errorf("%w: --app: %s tells the app by its image", ErrMisused, config.FileName)
	}
	o.e = e
	jobs, err := o.jobs()
	if err != nil {
		return nil, nil, err
	}
	results, errs := make([]Result, len(jobs)), make([]error, len(jobs))
	var group errgroup.Group
	group.SetLimit(sideBySide)
	queue := newQueue(len(jobs))
	for i, job := range jobs {
		group.Go(func() error {
			job.turn, job.done = queue.place(i)
			defer job.done()
			results[i], errs[i] = o.run(ctx, job)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	return results, errs, nil
}

// sideBySide is how many promotions read at once. They write one after the other.
const sideBySide = 8

// order reads tagboat.yaml at the tip of the default branch.
func (p *Promoter) order(ctx context.Context, q Request) (*order, error) {
	repo, err := p.Open(ctx, q.Repository, "")
	if err != nil {
		return nil, err
	}
	o := &order{Promoter: p, repo: repo, q: q}
	tip, err := o.tip(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	o.config, err = config.Load(repo.Files(ctx, tip.Commit.SHA))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has %w on %s: name the overlay with --path", ErrMisused, repo.About().Name, errNoConfig, tip.Branch)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, branch %s: %w", repo.About().Name, tip.Branch, err)
	}
	if q.Base != "" {
		return nil, fmt.Errorf("%w: --base %s: %s says on which branch an environment is", ErrMisused, q.Base, config.FileName)
	}
	return o, nil
}

// errNoConfig is told where the repository has no tagboat.yaml.
var errNoConfig = errors.New("no " + config.FileName)

// runFound promotes images without tagboat.yaml: an environment's overlay is the one
// whose path has its name and that carries the images.
func (p *Promoter) runFound(ctx context.Context, q Request, e Environments) ([]Result, []error, error) {
	repo, err := p.Open(ctx, q.Repository, "")
	if err != nil {
		return nil, nil, err
	}
	tip, err := repo.Tip(ctx, q.Base)
	if err != nil {
		return nil, nil, err
	}
	results, errs := make([]Result, len(e.To)), make([]error, len(e.To))
	for i, to := range e.To {
		q.Base, q.Environment, q.App = tip.Branch, to, strings.Join(e.Apps, ",")
		results[i] = Result{App: q.App, Environment: to, Outcome: Failed}
		if q.Path, err = Search(ctx, repo.Files(ctx, tip.Commit.SHA), to, q.Images); err != nil {
			errs[i] = fmt.Errorf("%s has %w, and its overlays do not tell: %w", repo.About().Name, errNoConfig, err)
			continue
		}
		p.progress(fmt.Sprintf("%s has %v: found %s for %s", repo.About().Name, errNoConfig, q.Path, to))
		results[i], errs[i] = p.Run(ctx, q)
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

	mu     sync.Mutex
	opened map[remote]scm.Repository
	tips   map[tipKey]func() (scm.Tip, error)
	lines  map[lineKey]*inventory.Line
	trees  map[lineKey]fs.FS
}

// remote names a repository.
type remote struct{ name, forge string }

type tipKey struct{ host, repository, branch string }
type lineKey struct{ host, repository, commit string }

// historyOf is the first-parent line of a tip, shared by all promotions of a request.
func (o *order) historyOf(repo scm.Repository, commit string) *inventory.Line {
	about := repo.About()
	key := lineKey{about.Host, about.Name, commit}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines == nil {
		o.lines = map[lineKey]*inventory.Line{}
	}
	if o.lines[key] == nil {
		o.lines[key] = inventory.NewLine(repo, commit)
	}
	return o.lines[key]
}

// files is the tree at a commit, read once for all promotions of a request. It is
// bound to the context of the first.
func (o *order) files(ctx context.Context, repo scm.Repository, commit string) fs.FS {
	about := repo.About()
	key := lineKey{about.Host, about.Name, commit}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.trees == nil {
		o.trees = map[lineKey]fs.FS{}
	}
	if o.trees[key] == nil {
		o.trees[key] = repo.Files(ctx, commit)
	}
	return o.trees[key]
}

// repository opens where an environment's files are, once.
func (o *order) repository(ctx context.Context, e config.Environment) (scm.Repository, error) {
	if e.Repository == "" {
		return o.repo, nil
	}
	at := remote{e.Repository, e.Forge}
	o.mu.Lock()
	defer o.mu.Unlock()
	if repo, ok := o.opened[at]; ok {
		return repo, nil
	}
	repo, err := o.Open(ctx, at.name, at.forge)
	if err != nil {
		return nil, err
	}
	if o.opened == nil {
		o.opened = map[remote]scm.Repository{}
	}
	o.opened[at] = repo
	return repo, nil
}

// tip reads a branch's newest commit once, so that all promotions of a request
// see one state of it.
func (o *order) tip(ctx context.Context, repo scm.Repository, branch string) (scm.Tip, error) {
	about := repo.About()
	key := tipKey{about.Host, about.Name, branch}
	o.mu.Lock()
	read, ok := o.tips[key]
	if !ok {
		read = sync.OnceValues(func() (scm.Tip, error) { return repo.Tip(ctx, branch) })
		if o.tips == nil {
			o.tips = map[tipKey]func() (scm.Tip, error){}
		}
		o.tips[key] = read
	}
	o.mu.Unlock()
	return read()
}

// forget makes the next look at branches a fresh one.
func (o *order) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tips = nil
}

// job is one promotion: an app, or a group of them, to one environment or ring.
type job struct {
	name   string // of the app or group
	apps   []string
	at     config.Place
	images []image.Reference // of a build; none where the source tells them

	turn func(context.Context) error // waits until it may write
	done func()                      // it writes no more, or not in its turn
}

// jobs lists the promotions: every environment that was named, with every app
// that is meant and is in it.
func (o *order) jobs() ([]job, error) {
	apps, err := o.apps()
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, to := range o.e.To {
		if _, err := o.config.Environment(to); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMisused, err)
		}
		if o.e.From != "" {
			if err := o.config.CheckPair(o.e.From, to); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrMisused, err)
			}
		}
		for _, app := range apps {
			if o.e.From != "" && len(o.e.Apps) == 0 {
				app.apps = slices.DeleteFunc(slices.Clone(app.apps), func(name string) bool { return !o.config.Apps[name].In(to) })
			}
			if len(app.apps) > 0 {
				app.at = config.Place{Environment: to, Ring: o.e.Ring}
				jobs = append(jobs, app)
			}
		}
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%w: no app is in both %s and %v", ErrMisused, o.e.From, o.e.To)
	}
	return jobs, nil
}

// apps finds what is meant: the apps whose images were given, or those that were
// named, or all of them; of all, those of one group together.
func (o *order) apps() ([]job, error) {
	switch {
	case o.e.From == "":
		return o.appsOfImages()
	case len(o.e.Apps) > 0:
		return o.appsNamed()
	}
	var jobs []job
	for _, name := range o.config.AppNames() {
		app := o.config.Apps[name]
		if !app.In(o.e.From) {
			continue
		}
		together := app.GroupOrName(name)
		i := slices.IndexFunc(jobs, func(j job) bool { return j.name == together })
		if i < 0 {
			jobs, i = append(jobs, job{name: together}), len(jobs)
		}
		jobs[i].apps = append(jobs[i].apps, name)
	}
	return jobs, nil
}

func (o *order) appsNamed() ([]job, error) {
	var jobs []job
	for _, name := range o.e.Apps {
		if _, err := o.config.App(name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMisused, err)
		}
		jobs = append(jobs, job{name: name, apps: []string{name}})
	}
	return jobs, nil
}

func (o *order) appsOfImages() ([]job, error) {
	var jobs []job
	for _, ref := range o.q.Images {
		app, err := o.config.AppOf(ref.Repository)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMisused, err)
		}
		i := slices.IndexFunc(jobs, func(j job) bool { return j.name == app })
		if i < 0 {
			jobs, i = append(jobs, job{name: app, apps: []string{app}}), len(jobs)
		}
		jobs[i].images = append(jobs[i].images, ref)
	}
	return jobs, nil
}

// run makes one promotion, and makes it again while it waits for a gate.
func (o *order) run(ctx context.Context, j job) (Result, error) {
	for left := o.q.Wait; ; {
		res, err := o.once(ctx, j)
		if err != nil || !res.waits() || left <= 0 {
			return res, err
		}
		j.done() // those behind need not wait for its gates
		pause := min(left, pollEvery)
		left -= pause
		o.progress(fmt.Sprintf("%s to %s is blocked (%s); asking again in %s", j.name, j.at, res.Reason, pause))
		if err := o.sleep(ctx, pause); err != nil {
			return res, err
		}
		o.forget()
	}
}

// pollEvery is how long a promotion waits before it asks for its gates again.
const pollEvery = 30 * time.Second

// once makes one promotion under the environment's policy.
func (o *order) once(ctx context.Context, j job) (Result, error) {
	res := Result{App: j.name, Environment: j.at.Environment, Ring: j.at.Ring, Outcome: Failed}
	about := func(err error) error { return fmt.Errorf("promote %s to %s: %w", j.name, j.at, err) }
	if err := o.place(ctx, &j); err != nil {
		return res, about(err)
	}
	res.Ring = j.at.Ring
	if why, err := o.ownBuild(ctx, j); err != nil || why != "" {
		res.Outcome, res.Reason = UpToDate, why
		if err != nil {
			res.Outcome = Failed
		}
		return res, err
	}
	rules, err := o.rules(ctx, j)
	if err != nil {
		return res, about(err)
	}
	q, id, repo, err := o.request(ctx, j, rules)
	if err != nil {
		return res, about(err)
	}
	if res, err = o.promote(ctx, q, id, repo); err != nil {
		return res, about(err)
	}
	return res, nil
}

// ownBuild says why an image is nothing new, or "": in a repository that holds both
// source and overlays, a promotion's own merge starts a build.
func (o *order) ownBuild(ctx context.Context, j job) (string, error) {
	if len(j.images) == 0 || o.q.Again || !strings.EqualFold(o.q.Job.Repository, o.repo.About().Name) {
		return "", nil
	}
	var first []string // environments that take what builds push
	for _, e := range o.config.Environments {
		if e.From == nil {
			first = append(first, e.Name)
		}
	}
	return o.ownMerge(ctx, o.repo, j.name, first, o.q.Job.Revision)
}

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
