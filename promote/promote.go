// Package promote is the flow: resolve, find, edit, prove, propose. It decides;
// registry, overlay and scm do. It knows no forge by name and no YAML.
package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"tagboat/config"
	"tagboat/image"
	"tagboat/overlay"
	"tagboat/registry"
	"tagboat/scm"
)

// Registry is what a promotion asks of image registries.
type Registry interface {
	// ResolveAll answers every query; images and errors stand in their order.
	ResolveAll(ctx context.Context, queries []registry.Query) ([]registry.Image, []error)
	// Facts is what the image says of itself, best effort.
	Facts(ctx context.Context, ref image.Reference) (registry.Facts, error)
	// Exists fails unless the repository holds the reference's digest.
	Exists(ctx context.Context, ref image.Reference) error
	// Copy brings an image by its digest to another repository.
	Copy(ctx context.Context, from, to image.Reference) (registry.Copied, error)
}

// Promoter runs promotions. Registry and Open are required.
type Promoter struct {
	Registry Registry
	// Open gives a code repository by its name or URL, and by its forge's name where
	// that does not tell ("" else); it makes no call.
	Open func(ctx context.Context, repository, forge string) (scm.Repository, error)
	// OpenSource is Open for source repositories, whose commits are compared for the
	// reviewer and to tell which image is older; nil asks none.
	OpenSource func(ctx context.Context, repository, forge string) (scm.Repository, error)
	// Progress is told in one line what is being done; nil is silent.
	Progress func(line string)
	// Sleep waits between attempts; nil is the real clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now is this machine's clock, used where a forge has none; nil is time.Now.
	Now func() time.Time
}

// Request is what a user asks for.
type Request struct {
	Repository string // the config repository
	Base       string // its branch; "" is the default branch
	Path       string // the overlay directory

	Environment string // "" is the last element of Path
	App         string // "" is the last element of the one image's repository
	Entry       string // the images entry to change; "" finds it by repository
	Add         bool   // a missing entry is added
	Rename      bool   // newName is written where the entry runs another repository
	Pin         overlay.Pin
	Prove       overlay.Mode // "" is auto

	Images     []image.Reference
	Platforms  []string
	Wait       time.Duration // how long a tag may take to appear, and a gate to pass
	AllowMoved bool
	AllowOlder bool
	Again      bool // a person's no to this digest is overridden
	Force      bool // someone's commits on the head branch are given up
	DryRun     bool
	Copy       bool // an image that is missing where it shall run is copied there

	Labels, Reviewers, TeamReviewers, Assignees []string
	Draft, AutoMerge                            bool

	Job Job
	// Actor is the login that asks, where the forge has vouched for it; "" is whom
	// the forge says that the token acts as.
	Actor    string
	Override string // why gates, holds and freezes are passed over; "" passes none

	// What tagboat.yaml adds.
	names     map[string]string   // of entries, by image repository as image.Canonical spells it
	sources   map[string]string   // where the source code is, by image repository as image.Canonical spells it
	source    string              // the same for images that sources does not tell
	imagesAt  map[string][]string // image repositories by target directory; nil is all in each
	proveWith []string            // overlays that prove what is built elsewhere
	rules     *rules              // nil: none but holds
	direct    bool                // the edit is committed to the base branch

	// turn waits until those before it have written; nil: nobody is before it.
	turn func(context.Context) error
}

// Job is the CI job that asks, for the reviewer to read. Nothing is decided on it.
type Job struct {
	Actor      string // who started it
	Repository string // whose CI it is
	RunURL     string
	Revision   string // the commit that was built
	Command    string // how the promotion was asked for
}

// Outcome says how a promotion ended.
type Outcome string

// The outcomes (docs/outcomes.md). All but Failed and Blocked are success.
const (
	UpToDate  Outcome = "up-to-date" // the base branch has it
	Opened    Outcome = "opened"     // a pull request was opened
	Updated   Outcome = "updated"    // the open pull request was updated
	Unchanged Outcome = "unchanged"  // the open pull request says it already
	Declined  Outcome = "declined"   // a person has said no to this digest
	Outdated  Outcome = "outdated"   // something newer is proposed or pinned
	Committed Outcome = "committed"  // the base branch got a commit, without a pull request
	Blocked   Outcome = "blocked"    // a gate, hold or freeze says no
	Planned   Outcome = "planned"    // dry run: what would be opened or updated
	Failed    Outcome = "failed"
)

// Result is one app to one environment.
type Result struct {
	App, Environment string
	Ring             string
	Outcome          Outcome
	Reason           string // one sentence, where the outcome needs one
	Changes          []overlay.Change
	Commits          []Commits // between what runs and what is proposed, where it came to a proposal
	Images           []Resolved
	Proof            overlay.Proof
	Gates            []Gate
	OverriddenBy     string // who passed over gates, as the forge vouches
	Override         string // and why
	PullRequest      *scm.PullRequest
	HeadBranch       string
	BaseBranch       string
	Commit           *scm.Commit
	Warnings         []string

	// Planned: it was a dry run that came to a plan. What stops it is in Gates.
	Planned bool
	// The edit as a unified diff, and the pull request's text, where it came to that.
	Diff, Title, Body string
}

// Resolved is one image as the registry told it.
type Resolved struct {
	registry.Image
	Facts registry.Facts
}

// Errors of the flow itself; those of registry, overlay and scm pass through.
var (
	// ErrMisused is returned for a request that cannot be meant.
	ErrMisused = errors.New("misused")
	// ErrForeign is returned when the head branch holds someone's commits.
	ErrForeign = errors.New("the head branch holds someone's commits")
	// ErrOtherTarget is returned when the head branch belongs to another promotion.
	ErrOtherTarget = errors.New("the head branch belongs to another promotion")
	// ErrContended is returned when the branch kept moving at every attempt.
	ErrContended = errors.New("kept moving")
)

// attempts bounds how often a promotion starts again after something moved.
const attempts = 8

// Run makes one promotion and tells how it ended. With an error the result still
// carries what was learnt (warnings, a pull request that was opened).
//
// The flow: the images are resolved while the forge is read; the edit is computed
// from the live tip of the base branch, proven, published by compare and swap and
// proposed. When something moved in between, all of it is done again.
func (p *Promoter) Run(ctx context.Context, q Request) (Result, error) {
	id, err := identify(q)
	if err == nil && q.Override != "" {
		err = fmt.Errorf("%w: --override passes rules of %s, which --path leaves aside; a hold is released with tagboat release", ErrMisused, config.FileName)
	}
	if err != nil {
		return Result{Outcome: Failed}, err
	}
	repo, err := p.Open(ctx, q.Repository, "")
	res := Result{App: id.App, Environment: id.Environment, HeadBranch: id.Branch, Outcome: Failed}
	if err != nil {
		return res, err
	}
	if res.Reason, err = p.ownBuild(ctx, q, repo, id.App, []string{id.Environment}); err != nil {
		return res, err
	}
	if res.Reason != "" {
		res.Outcome = UpToDate
		return res, nil
	}
	return p.promote(ctx, q, id, repo)
}

// promote runs attempts until nothing moves in between.
func (p *Promoter) promote(ctx context.Context, q Request, id identity, repo scm.Repository) (Result, error) {
	if q.Prove == "" {
		q.Prove = overlay.ProveAuto
	}
	r := Result{App: id.App, Environment: id.Environment, Ring: id.Ring, HeadBranch: id.Branch, Outcome: Failed}
	r.Warnings = append(r.Warnings, repo.About().Warnings...)
	run := &run{Promoter: p, q: q, id: id, repo: repo, images: p.resolve(ctx, q)}
	var err error
	for n := range attempts {
		if n > 0 {
			p.progress("something moved; reading again")
			if err := p.sleep(ctx, backoff(n)); err != nil {
				return r, err
			}
		}
		kept := r
		err = run.attempt(ctx, &kept)
		if err == nil || !moved(err) {
			return kept, err
		}
	}
	return r, errors.Join(ErrContended, err)
}

// moved says whether reading again may help.
func moved(err error) bool { return errors.Is(err, scm.ErrMoved) }

// backoff grows from 0.2 s to about 5 s, with jitter, so that jobs that collided
// do not collide again.
func backoff(n int) time.Duration {
	limit := min(200*time.Millisecond<<(n-1), 5*time.Second)
	return limit/2 + rand.N(limit/2)
}

func (p *Promoter) progress(line string) {
	if p.Progress != nil {
		p.Progress(line)
	}
}

func (p *Promoter) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

func (p *Promoter) sleep(ctx context.Context, d time.Duration) error {
	if p.Sleep != nil {
		return p.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// notThere says whether the forge said that a branch or file is not there.
func notThere(err error) bool {
	return errors.Is(err, scm.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}
