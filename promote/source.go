package promote

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/image"
	"tagboat/overlay"
	"tagboat/scm"
)

// source is what an environment runs of an app, at one commit. The digest is read
// from the files; the tag is a name for people and never resolved again.
type source struct {
	environment string
	repo        scm.Repository
	branch      string
	commit      string // S: where it was read
	images      []image.Reference
	read        func(ctx context.Context, commit string) ([]image.Reference, error)
}

// source reads the source environment of a request at its branch's tip.
func (o *order) source(ctx context.Context, app string) (*source, error) {
	environment, err := o.config.Environment(o.e.From)
	if err != nil {
		return nil, err
	}
	s := &source{environment: environment.Name, repo: o.repo}
	if environment.Repository != "" {
		if s.repo, err = o.Open(ctx, environment.Repository, environment.Forge); err != nil {
			return nil, err
		}
	}
	tip, err := s.repo.Tip(ctx, environment.Branch)
	if err != nil {
		return nil, err
	}
	s.branch, s.commit = tip.Branch, tip.Commit.SHA
	s.read = func(ctx context.Context, commit string) ([]image.Reference, error) {
		return o.running(s.repo.Files(ctx, commit), app, environment.Name)
	}
	s.images, err = s.read(ctx, s.commit)
	return s, err
}

// running reads what an environment runs of an app: all its directories must agree
// on one pinned digest for every image.
func (o *order) running(files fs.FS, app, environment string) ([]image.Reference, error) {
	dirs, err := o.config.Targets(files, app, environment, "")
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(files, dirs)
	if err != nil {
		return nil, err
	}
	a, err := o.config.App(app)
	if err != nil {
		return nil, err
	}
	var images []image.Reference
	for _, img := range a.Images {
		ref, err := agreed(entries, dirs, img)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", environment, err)
		}
		images = append(images, ref)
	}
	return images, nil
}

// agreed is the one reference that every directory runs of an image.
func agreed(entries []overlay.Entry, dirs []string, img config.Image) (image.Reference, error) {
	var found []overlay.Entry
	for _, dir := range dirs {
		here := slices.DeleteFunc(slices.Clone(entries), func(e overlay.Entry) bool { return e.Dir != dir })
		picked, err := overlay.Pick(here, overlay.Want{Dir: dir, Repository: img.Repository, Name: img.Name})
		if err != nil {
			return image.Reference{}, err
		}
		found = append(found, picked...)
	}
	first := found[0].Runs()
	var said []string
	agree := true
	for _, e := range found {
		ref := e.Runs()
		if ref.Digest == "" {
			return ref, fmt.Errorf("%w: %s:%d runs %s, a tag without a digest, which may be another image tomorrow: promote the image to it first", ErrSource, e.File, e.Line, ref)
		}
		agree = agree && ref.Digest == first.Digest
		said = append(said, fmt.Sprintf("%s:%d %s", e.File, e.Line, ref))
	}
	if !agree {
		return first, fmt.Errorf("%w: its directories disagree: %s", ErrSource, strings.Join(said, "; "))
	}
	return first, nil
}

// unchanged reads the source again, right before anything is published: what is
// promoted is what the source ran at S, and runs still.
func (s *source) unchanged(ctx context.Context) error {
	tip, err := s.repo.Tip(ctx, s.branch)
	if err != nil || tip.Commit.SHA == s.commit {
		return err
	}
	now, err := s.read(ctx, tip.Commit.SHA)
	if err != nil {
		return err
	}
	for i, ref := range now {
		if ref.Digest != s.images[i].Digest {
			return fmt.Errorf("%w: %s ran %s at %s and runs %s at %s: run again to promote that", ErrSource, s.environment, s.images[i], short(s.commit), ref, short(tip.Commit.SHA))
		}
	}
	return nil
}
