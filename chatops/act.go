package chatops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
)

// Errors of a command that was understood.
var (
	// ErrEdited is returned for a comment that is not what it was when it was made.
	ErrEdited = errors.New("the comment was edited")
	// ErrStale is returned for a comment that is answered long after it was made.
	ErrStale = errors.New("the command is old")
	// ErrChanged is returned where the source runs something else than when the
	// command was given, or than the command says.
	ErrChanged = errors.New("the source runs something else")
)

// Bot does commands: it is what a job of the config repository's CI runs.
type Bot struct {
	Promoter *promote.Promoter
	// Request is what all promotions have in common: Repository, which is the config
	// repository, and Job.
	Request promote.Request
}

// Order is a command of somebody for whom the forge vouches.
type Order struct {
	Command Command
	Login   string
	// Since is when the command was given, by the forge's clock: what came to the
	// source after it was not meant. The zero time does not ask.
	Since time.Time
	// Image is asked for instead of what a source runs: what a build has pushed.
	Image image.Reference
}

// Answer is how a command ended.
type Answer struct {
	Command Command
	Login   string
	// Results and Errors are of promotions and rollbacks, side by side.
	Results []promote.Result
	Errors  []error
	Hold    *promote.HoldResult // of a hold or release
	Help    bool
	// Err is why nothing was done, or why it failed as a whole.
	Err error
}

// Do does a command whose names are resolved. Whoever calls has asked for the
// rights; promote asks for the promoters once more, right before it writes.
func (b *Bot) Do(ctx context.Context, o Order) Answer {
	a := Answer{Command: o.Command, Login: o.Login}
	switch o.Command.Verb {
	case Promote:
		a.Results, a.Errors, a.Err = b.promote(ctx, o)
	case Rollback:
		a.Results, a.Errors, a.Err = b.Promoter.RollBack(ctx, b.request(o), promote.Rollback{
			Environment: o.Command.Environment, App: o.Command.App, Ring: o.Command.Ring, To: o.Command.To, Reason: o.Command.Reason,
		})
	case Hold, Release:
		a.Hold, a.Err = b.hold(ctx, o)
	default:
		a.Help = true
	}
	return a
}

func (b *Bot) request(o Order) promote.Request {
	q := b.Request
	q.Actor, q.DryRun = o.Login, o.Command.DryRun
	q.Job.Actor, q.Job.Command = o.Login, o.Command.String() // not who the environment says started the job
	return q
}

// promote promotes what the source runs. A digest that the command says is bound
// by the gate order: the source must run it when it is published, too.
func (b *Bot) promote(ctx context.Context, o Order) ([]promote.Result, []error, error) {
	c, q := o.Command, b.request(o)
	to := promote.Environments{To: []string{c.Environment}, Ring: c.Ring}
	if o.Image.Repository != "" {
		q.Images = []image.Reference{o.Image}
		return b.Promoter.RunEnvironments(ctx, q, to)
	}
	if c.Digest == "" {
		return b.meant(ctx, o, q)
	}
	running, err := b.sources(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	ref, err := b.pinned(c, running)
	if err != nil {
		return nil, nil, err
	}
	q.Images, q.AllowMoved = []image.Reference{ref}, true // the digest counts; the tag is its name
	return b.Promoter.RunEnvironments(ctx, q, to)
}

// meant promotes what the source ran when the command was given, and runs still.
func (b *Bot) meant(ctx context.Context, o Order, q promote.Request) ([]promote.Result, []error, error) {
	c := o.Command
	results, errs, err := b.Promoter.RunEnvironments(ctx, q, promote.Environments{
		To: []string{c.Environment}, Ring: c.Ring, From: c.From, Apps: []string{c.App}, Since: o.Since,
	})
	for _, late := range errs {
		if errors.Is(late, promote.ErrLater) {
			return nil, nil, fmt.Errorf("%w than when the command was given: %w; give it again to promote that", ErrChanged, late)
		}
	}
	return results, errs, err
}

// running is what one of the sources of a promotion runs.
type running struct {
	at     config.Place
	built  []config.Image
	images []image.Reference
}

// sources reads what the sources run.
func (b *Bot) sources(ctx context.Context, o Order) ([]running, error) {
	repo, err := b.Promoter.Open(ctx, b.Request.Repository, "")
	if err != nil {
		return nil, err
	}
	names, _, err := loadConfig(ctx, repo)
	if err != nil {
		return nil, err
	}
	environment, err := names.Environment(o.Command.Environment)
	if err != nil {
		return nil, err
	}
	ring := o.Command.Ring
	if ring == "" && len(environment.Rings) > 0 {
		ring = environment.Rings[0].Name
	}
	places, err := names.Sources(o.Command.App, environment.Name, ring)
	if err != nil {
		return nil, err
	}
	if len(places) == 0 { // a build's digest
		return []running{{built: names.Apps[o.Command.App].Images}}, nil
	}
	var all []running
	for _, at := range places {
		r, err := b.source(ctx, repo, names, at, o.Command.App)
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", o.Command.App, at, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (b *Bot) source(ctx context.Context, repo scm.Repository, names *config.Config, at config.Place, app string) (running, error) {
	r := running{at: at, built: names.Apps[app].Images}
	environment, err := names.Environment(at.Environment)
	if err != nil {
		return r, err
	}
	if environment.Repository != "" {
		if repo, err = b.Promoter.Open(ctx, environment.Repository, environment.Forge); err != nil {
			return r, err
		}
	}
	tip, err := repo.Tip(ctx, environment.Branch)
	if err != nil {
		return r, err
	}
	files := repo.Files(ctx, tip.Commit.SHA)
	dirs, err := names.Targets(files, app, at.Environment, at.Ring)
	if err != nil {
		return r, err
	}
	r.images, err = inventory.Running(files, dirs, r.built)
	return r, err
}

// pinned is the image that a digest in a command means, with the tag that the
// source has for it.
func (b *Bot) pinned(c Command, sources []running) (image.Reference, error) {
	first := sources[0]
	if len(first.built) != 1 {
		return image.Reference{}, &SyntaxError{Verb: Promote, Problem: fmt.Sprintf("%s has %d images, so that one digest does not tell them: leave it out", c.App, len(first.built))}
	}
	ref := image.Reference{Repository: first.built[0].Repository, Digest: c.Digest}
	for _, s := range sources {
		if s.images == nil {
			continue
		}
		if s.images[0].Digest != c.Digest {
			return ref, fmt.Errorf("%w: %s runs %s, the command says %s: promote it there first, or give the command again with that digest", ErrChanged, s.at, s.images[0], c.Digest)
		}
		ref.Tag = s.images[0].Tag
	}
	return ref, nil
}

func (b *Bot) hold(ctx context.Context, o Order) (*promote.HoldResult, error) {
	repo, err := b.Promoter.Open(ctx, b.Request.Repository, "")
	if err != nil {
		return nil, err
	}
	options := promote.HoldOptions{Actor: o.Login, Job: b.Request.Job}
	h := record.Hold{Environment: o.Command.Environment, App: o.Command.App, Reason: o.Command.Reason}
	if o.Command.Verb == Release {
		res, err := b.Promoter.Release(ctx, repo, h, options)
		return &res, err
	}
	if h.Until, options.For, err = promote.ParseUntil(o.Command.Until); err != nil {
		return nil, err
	}
	res, err := b.Promoter.Hold(ctx, repo, h, options)
	return &res, err
}

// Good tells that the command did what it says, or found it done.
func (a Answer) Good() bool {
	blocked := func(r promote.Result) bool { return r.Outcome == promote.Blocked || r.Outcome == promote.Failed }
	return a.Err == nil && !slices.ContainsFunc(a.Errors, func(err error) bool { return err != nil }) && !slices.ContainsFunc(a.Results, blocked)
}
