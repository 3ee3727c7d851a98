package inventory

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"tagboat/image"
	"tagboat/record"
	"tagboat/scm"
)

// Found is what a survey found at a place.
type Found struct {
	Place
	Repository string // name of the repository of the files
	Branch     string
	Commit     string            // the tip that was read
	Images     []image.Reference // that run there; none where Errs says why
	Since      *Arrival          // nil where it was not asked for or Errs says why; At may be zero
	Open       []scm.PullRequest // open promotions to the place
	// Errs says what could not be told: ErrDisagree where no one digest runs,
	// ErrUntold where the forge knows no time, and what failed. What is not in it
	// was told.
	Errs []error
}

// Err joins what could not be told.
func (f Found) Err() error { return errors.Join(f.Errs...) }

// Look looks at places side by side: what runs there and which promotions are
// open; with since also since when. What fails at one stands in its Errs and does
// not stop the others.
func (s *Survey) Look(ctx context.Context, places []Place, since bool) []Found {
	found := make([]Found, len(places))
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for i, p := range places {
		group.Go(func() error {
			found[i] = s.look(ctx, p, since)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	return found
}

func (s *Survey) look(ctx context.Context, p Place, since bool) Found {
	f := Found{Place: p}
	b, err := s.branchOf(ctx, p)
	if err != nil {
		f.Errs = append(f.Errs, err)
		return f
	}
	f.Repository, f.Branch, f.Commit = b.repo.About().Name, b.tip.Branch, b.tip.Commit.SHA
	var group errgroup.Group
	var unread error
	group.Go(func() (err error) {
		f.Open, err = s.proposed(ctx, p, b)
		return err
	})
	group.Go(func() error {
		unread = s.runs(ctx, b, since, &f)
		return nil
	})
	for _, err := range []error{group.Wait(), unread} {
		if err != nil {
			f.Errs = append(f.Errs, err)
		}
	}
	return f
}

func (s *Survey) runs(ctx context.Context, b *branch, since bool, f *Found) error {
	t, err := s.target(ctx, f.Place, b)
	if err == nil {
		f.Images, err = Running(b.repo.Files(ctx, f.Commit), t.Dirs, t.Images)
	}
	if err != nil || !since {
		return err
	}
	a, err := Arrived(ctx, t, f.Commit)
	if err == nil || errors.Is(err, ErrUntold) {
		f.Since = &a
	}
	return err
}

// proposed lists the open pull requests from the head branch of a promotion to the
// place.
func (s *Survey) proposed(ctx context.Context, p Place, b *branch) (list []scm.PullRequest, err error) {
	app, err := s.Config.App(p.App)
	if err != nil {
		return nil, err
	}
	head, err := record.Branch(p.At.Environment, p.At.Ring, app.GroupOrName(p.App))
	if err != nil {
		return nil, err
	}
	if !b.repo.About().PullRequests { // a pushed branch is known by its name alone
		return b.repo.PullRequests(ctx, head, b.tip.Branch)
	}
	open, err := b.open.get(func() ([]scm.PullRequest, error) { return b.repo.PullRequests(ctx, "", b.tip.Branch) })
	for _, pr := range open {
		if pr.Head == head && !pr.Fork && pr.State == scm.Open {
			list = append(list, pr)
		}
	}
	return list, err
}
