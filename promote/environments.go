package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/config"
	"tagboat/image"
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

// ownBuild is Promoter.ownBuild, under the environments that take what builds push.
func (o *order) ownBuild(ctx context.Context, j job) (string, error) {
	var first []string
	for _, e := range o.config.Environments {
		if e.From == nil {
			first = append(first, e.Name)
		}
	}
	q := o.q
	q.Images = j.images
	return o.Promoter.ownBuild(ctx, q, o.repo, j.name, first)
}
