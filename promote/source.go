package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/scm"
)

// source is what a place runs of an app, at one commit. The digest is read from
// the files; the tag is a name for people and never resolved again.
type source struct {
	app       string
	at        config.Place
	repo      scm.Repository
	branch    string
	commit    string // S: where it was read
	commitURL string
	line      *inventory.Line
	dirs      []string
	pin       string            // the command that pins what builds push, but for the image; "" where it takes from another
	built     []config.Image    // the app's images, as the build pushes them
	images    []image.Reference // what runs of them, in the same order
}

func (s *source) target() inventory.Target {
	return inventory.Target{Repo: s.repo, Branch: s.branch, Dirs: s.dirs, Images: s.built, Line: s.line}
}

// filled puts the source's names into the patterns of checks.
func (s *source) filled(patterns []string) []string {
	var all []string
	for _, p := range patterns {
		all = append(all, config.Fill(p, config.Names{App: s.app, Environment: s.at.Environment, Ring: s.at.Ring}))
	}
	return all
}

// same says whether an image that is asked for is the source's nth, named by the
// repository that it was built to or that it runs from.
func (s *source) same(n int, asked image.Reference) bool {
	return image.SameRepository(asked.Repository, s.built[n].Repository) || image.SameRepository(asked.Repository, s.images[n].Repository)
}

// sources reads every place that an app's images come from on their way to a
// place; none where they come from a build.
func (o *order) sources(ctx context.Context, app string, to config.Place) ([]*source, error) {
	places, err := o.config.Sources(app, to.Environment, to.Ring)
	if err != nil {
		return nil, err
	}
	var all []*source
	for _, at := range places {
		s, err := o.runs(ctx, app, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		all = append(all, s)
	}
	return all, agree(all)
}

// agree demands that sources run one digest per image.
func agree(sources []*source) error {
	for _, s := range sources[min(1, len(sources)):] {
		for n, ref := range s.images {
			if first := sources[0]; ref.Digest != first.images[n].Digest {
				return fmt.Errorf("%w: %s runs %s, but %s runs %s", ErrSource, first.at, first.images[n], s.at, ref)
			}
		}
	}
	return nil
}

// runs reads what runs of an app at a place, at its branch's tip.
func (o *order) runs(ctx context.Context, app string, at config.Place) (*source, error) {
	environment, err := o.config.Environment(at.Environment)
	if err != nil {
		return nil, err
	}
	a, err := o.config.App(app)
	if err != nil {
		return nil, err
	}
	s := &source{app: app, at: at, built: a.Images}
	if environment.From == nil {
		s.pin = "tagboat promote " + repoWords(o.repo.About()) + " --to " + at.Environment
	}
	if s.repo, err = o.repository(ctx, environment); err != nil {
		return nil, err
	}
	tip, err := o.tip(ctx, s.repo, environment.Branch)
	if err != nil {
		return nil, err
	}
	s.branch, s.commit, s.commitURL = tip.Branch, tip.Commit.SHA, tip.Commit.URL
	s.line = o.historyOf(s.repo, s.commit)
	files := o.files(ctx, s.repo, s.commit)
	if s.dirs, err = o.config.Targets(files, app, at.Environment, at.Ring); err != nil {
		return nil, err
	}
	s.images, err = s.read(files)
	return s, err
}

func (s *source) read(files fs.FS) ([]image.Reference, error) {
	images, err := inventory.Running(files, s.dirs, s.built)
	unpinned := new(inventory.UnpinnedError)
	switch {
	case errors.As(err, &unpinned) && s.pin != "":
		err = fmt.Errorf("%w: pin it first with: %s %s", err, s.pin, shellWord(unpinned.Image.String()))
	case errors.As(err, &unpinned):
		err = fmt.Errorf("%w: promote an image to %s first", err, s.at.Environment)
	case !errors.Is(err, inventory.ErrDisagree):
		return images, err
	}
	return nil, untold{err}
}

// untold is an ErrSource that says it in its own words.
type untold struct{ error }

func (untold) Is(target error) bool { return target == ErrSource }
func (u untold) Unwrap() error      { return u.error }

// unchanged reads the source again, right before anything is published: what is
// promoted is what the source ran at S, and runs still.
func (s *source) unchanged(ctx context.Context) error {
	tip, err := s.repo.Tip(ctx, s.branch)
	if err != nil || tip.Commit.SHA == s.commit {
		return err
	}
	now, err := s.read(s.repo.Files(ctx, tip.Commit.SHA))
	if err != nil {
		return err
	}
	for i, ref := range now {
		if ref.Digest != s.images[i].Digest {
			return fmt.Errorf("%w: %s ran %s at %s and runs %s at %s: run again to promote that", ErrSource, s.at, s.images[i], short(s.commit), ref, short(tip.Commit.SHA))
		}
	}
	return nil
}

// names are of entries, by the image repositories under which a request may ask.
func (o *order) names(apps []string, sources []*source) map[string]string {
	names := map[string]string{}
	for _, app := range apps {
		for _, i := range o.config.Apps[app].Images {
			names[image.Canonical(i.Repository)] = i.Name
		}
	}
	for _, s := range sources {
		for n, ref := range s.images {
			if name := s.built[n].Name; name != "" {
				names[image.Canonical(ref.Repository)] = name
			}
		}
	}
	return names
}
