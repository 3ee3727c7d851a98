package inventory

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"tagboat/config"
	"tagboat/scm"
)

// Survey looks at the places that a tagboat.yaml tells. Repositories, tips, lines
// and lists of pull requests are read once and shared. It is safe for concurrent
// use.
type Survey struct {
	Config *config.Config
	Repo   scm.Repository // the one with tagboat.yaml
	open   func(ctx context.Context, repository, forge string) (scm.Repository, error)

	mu       sync.Mutex
	repos    map[[2]string]*once[scm.Repository]
	branches map[branchKey]*once[*branch]
}

type branchKey struct {
	repo scm.Repository
	name string
}

// branch is a branch as it was when it was first looked at.
type branch struct {
	repo scm.Repository
	tip  scm.Tip
	line *Line
	open *once[[]scm.PullRequest]
}

// once reads something the first time that it is asked for. A failure is kept too.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

func (o *once[T]) get(read func() (T, error)) (T, error) {
	o.Do(func() { o.value, o.err = read() })
	return o.value, o.err
}

// NewSurvey reads tagboat.yaml at the tip of the default branch of repo. Where
// there is none the error is fs.ErrNotExist. Environments of another repository
// are opened by open.
func NewSurvey(ctx context.Context, repo scm.Repository, open func(ctx context.Context, repository, forge string) (scm.Repository, error)) (*Survey, error) {
	s := &Survey{Repo: repo, open: open, repos: map[[2]string]*once[scm.Repository]{}, branches: map[branchKey]*once[*branch]{}}
	b, err := s.branch(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	s.Config, err = config.Load(repo.Files(ctx, b.tip.Commit.SHA))
	if err != nil {
		return nil, fmt.Errorf("%s, branch %s: %w", repo.About().Name, b.tip.Branch, err)
	}
	return s, nil
}

// Place is one app in one environment or ring.
type Place struct {
	App string
	At  config.Place
}

// Places lists the places by app, then in the order of promotion. An environment
// or app that is "" means all; a ring needs its environment. A name that
// tagboat.yaml does not know, or an app that is not in the environment, is an
// error that says what there is.
func (s *Survey) Places(environment, ring, app string) ([]Place, error) {
	apps, environments := s.Config.AppNames(), s.Config.EnvironmentNames()
	if app != "" {
		if _, err := s.Config.App(app); err != nil {
			return nil, err
		}
		apps = []string{app}
	}
	if environment != "" {
		if _, err := s.Config.Environment(environment); err != nil {
			return nil, err
		}
		environments = []string{environment}
	}
	var places []Place
	for _, name := range apps {
		for _, in := range environments {
			if !s.Config.Apps[name].In(in) {
				continue
			}
			e, err := s.Config.Environment(in)
			if err != nil {
				return nil, err
			}
			for _, at := range e.Places() {
				if ring == "" || at.Ring == ring {
					places = append(places, Place{name, at})
				}
			}
		}
	}
	if len(places) == 0 {
		return nil, s.nowhere(environment, ring, app)
	}
	return places, nil
}

// nowhere says why there is no place.
func (s *Survey) nowhere(environment, ring, app string) error {
	if e, err := s.Config.Environment(environment); err == nil && ring != "" {
		if rings := e.RingNames(); len(rings) > 0 {
			return fmt.Errorf("%w: %s has no ring %q, but %s", config.ErrNoTarget, environment, ring, strings.Join(rings, ", "))
		}
		return fmt.Errorf("%w: %s has no rings", config.ErrNoTarget, environment)
	}
	if a, err := s.Config.App(app); err == nil {
		return fmt.Errorf("%w: the app %s is not in %s, but in %s", config.ErrNoTarget, app, environment, strings.Join(a.Environments, ", "))
	}
	return fmt.Errorf("%w: no app is in %s", config.ErrNoTarget, cmp.Or(environment, "any environment"))
}

// Target is a place's target, and the tip of its branch.
func (s *Survey) Target(ctx context.Context, p Place) (Target, scm.Tip, error) {
	b, err := s.branchOf(ctx, p)
	if err != nil {
		return Target{}, scm.Tip{}, err
	}
	t, err := s.target(ctx, p, b)
	return t, b.tip, err
}

func (s *Survey) target(ctx context.Context, p Place, b *branch) (Target, error) {
	app, err := s.Config.App(p.App)
	if err != nil {
		return Target{}, err
	}
	t := Target{Repo: b.repo, Branch: b.tip.Branch, Images: app.Images, Line: b.line}
	t.Dirs, err = s.Config.Targets(b.repo.Files(ctx, b.tip.Commit.SHA), p.App, p.At.Environment, p.At.Ring)
	return t, err
}

func (s *Survey) branchOf(ctx context.Context, p Place) (*branch, error) {
	e, err := s.Config.Environment(p.At.Environment)
	if err != nil {
		return nil, err
	}
	repo := s.Repo
	if e.Repository != "" {
		s.mu.Lock()
		key := [2]string{e.Repository, e.Forge}
		if s.repos[key] == nil {
			s.repos[key] = &once[scm.Repository]{}
		}
		opened := s.repos[key]
		s.mu.Unlock()
		if repo, err = opened.get(func() (scm.Repository, error) { return s.open(ctx, e.Repository, e.Forge) }); err != nil {
			return nil, err
		}
	}
	return s.branch(ctx, repo, e.Branch)
}

func (s *Survey) branch(ctx context.Context, repo scm.Repository, name string) (*branch, error) {
	s.mu.Lock()
	key := branchKey{repo, name}
	if s.branches[key] == nil {
		s.branches[key] = &once[*branch]{}
	}
	read := s.branches[key]
	s.mu.Unlock()
	return read.get(func() (*branch, error) {
		tip, err := repo.Tip(ctx, name)
		if err != nil {
			return nil, err
		}
		return &branch{repo: repo, tip: tip, line: NewLine(repo, tip.Commit.SHA), open: &once[[]scm.PullRequest]{}}, nil
	})
}
