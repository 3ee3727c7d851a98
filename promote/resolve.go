package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/registry"
)

// images gives the resolved images of a run. pinned is what git holds for them;
// it saves a counted GET on Docker Hub. The registry is asked once in a run.
type images func(pinned []string) ([]Resolved, error)

// resolve starts to ask the registry at once, while the forge is read. Only an
// image on Docker Hub waits for what git pins.
func (p *Promoter) resolve(ctx context.Context, q Request) images {
	var once sync.Once
	var resolved []Resolved
	var err error
	ask := func(pinned []string) {
		once.Do(func() { resolved, err = p.ask(ctx, q, pinned) })
	}
	wait := false
	for _, ref := range q.Images {
		wait = wait || image.DockerHub(ref.Repository)
	}
	if !wait {
		go ask(nil)
	}
	return func(pinned []string) ([]Resolved, error) {
		ask(pinned)
		return resolved, err
	}
}

func (p *Promoter) ask(ctx context.Context, q Request, pinned []string) ([]Resolved, error) {
	queries := make([]registry.Query, len(q.Images))
	for i, ref := range q.Images {
		if q.fromSource() {
			ref.Tag = "" // files tell the digest; the tag may point elsewhere by now
		}
		queries[i] = registry.Query{Reference: ref, Platforms: q.Platforms, Pinned: pinned, AllowMoved: q.AllowMoved, Wait: q.Wait}
	}
	found, errs := p.Registry.ResolveAll(ctx, queries)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	resolved := make([]Resolved, len(found))
	var group errgroup.Group
	for i, f := range found {
		f.Reference.Tag = q.Images[i].Tag
		resolved[i].Image = f
		p.progress(fmt.Sprintf("resolved %s", f.Reference))
		group.Go(func() error {
			// Facts are for the reviewer: their absence never fails a promotion.
			resolved[i].Facts, _ = p.Registry.Facts(ctx, f.Reference)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails
	return resolved, nil
}

// wanted says which entries shall run what: one set per entry that is meant, in
// every target directory.
func (r *run) wanted(ctx context.Context, entries []overlay.Entry, resolved []Resolved) ([]overlay.Set, error) {
	var sets []overlay.Set
	for _, dir := range r.id.Paths {
		here := slices.DeleteFunc(slices.Clone(entries), func(e overlay.Entry) bool { return e.Dir != dir })
		owner := map[string]image.Reference{}
		for _, img := range resolved {
			if !r.meantAt(dir, img.Reference) {
				continue
			}
			picked, err := r.pick(here, dir, img.Reference)
			if err != nil {
				return nil, err
			}
			for _, entry := range picked {
				if other, taken := owner[entry.Name]; taken && other != img.Reference {
					return nil, fmt.Errorf("%w: entry %s is meant by two images, %s and %s", ErrMisused, entry.Name, other, img.Reference)
				}
				owner[entry.Name] = img.Reference
				set, err := r.set(ctx, entry, img.Reference)
				if err != nil {
					return nil, err
				}
				sets = append(sets, set)
			}
		}
	}
	return sets, nil
}

// meantAt says whether an image belongs to a directory: in a group, each app's
// images are set in its own.
func (r *run) meantAt(dir string, ref image.Reference) bool {
	return r.q.imagesAt == nil || slices.ContainsFunc(r.q.imagesAt[dir], func(name string) bool { return image.SameRepository(name, ref.Repository) })
}

// pick finds the entries of a directory that are meant by an image. What was read
// from a source that runs from a mirror is looked for as the build pushes it, too.
func (r *run) pick(here []overlay.Entry, dir string, ref image.Reference) ([]overlay.Entry, error) {
	want := overlay.Want{Dir: dir, Repository: ref.Repository, Name: r.nameOf(ref), Add: r.q.Add}
	picked, err := overlay.Pick(here, want)
	if built := r.q.builtAs(ref); err != nil && built != "" {
		want.Repository = built
		if picked, again := overlay.Pick(here, want); again == nil {
			return picked, nil
		}
	}
	return picked, err
}

// fromSource says whether the images were read from another environment, or from
// the history of this one.
func (q Request) fromSource() bool {
	return q.rules != nil && (q.rules.e.From != "" || q.rules.back != nil)
}

// builtAs is the repository that the build pushes an image to that a source runs
// from elsewhere; "" where it is none.
func (q Request) builtAs(ref image.Reference) string {
	if !q.fromSource() {
		return ""
	}
	for _, s := range q.rules.from() {
		for n, runs := range s.images {
			if runs.Repository == ref.Repository && s.built[n].Repository != ref.Repository {
				return s.built[n].Repository
			}
		}
	}
	return ""
}

// nameOf is the entry's name that was given for an image, if any.
func (r *run) nameOf(ref image.Reference) string {
	if r.q.Entry != "" {
		return r.q.Entry
	}
	return r.q.names[image.Canonical(ref.Repository)]
}

// set decides from which repository an entry shall run the image. An entry that
// runs from a mirror keeps it, and the mirror must hold the same digest.
func (r *run) set(ctx context.Context, entry overlay.Entry, ref image.Reference) (overlay.Set, error) {
	set := overlay.Set{Entry: entry, To: ref, Pin: r.q.Pin}
	runs := entry.Runs().Repository
	if entry.Line == 0 || image.SameRepository(runs, ref.Repository) {
		if entry.Line != 0 {
			set.To.Repository = runs
		}
		return set, nil
	}
	if r.q.Rename {
		set.Rename = true
		return set, nil
	}
	set.To.Repository = runs
	if image.CheckRepository(runs) != nil {
		if entry.NewName != "" {
			return set, nil // a tag inside newName: the edit refuses it, in better words
		}
		return set, fmt.Errorf("%w: entry %s in %s (line %d) runs %q, which is no repository that a registry could be asked for: add --rename to write newName: %s",
			ErrMisused, entry.Name, entry.File, entry.Line, runs, ref.Repository)
	}
	err := r.Registry.Exists(ctx, set.To)
	if errors.Is(err, registry.ErrNotFound) && r.q.Copy {
		r.copies = append(r.copies, copying{ref, set.To})
		return set, nil
	}
	if err != nil {
		return set, fmt.Errorf("entry %s in %s runs from %s, not from %s, and the digest must exist there (copy the image there with --copy, or write the new repository with --rename): %w",
			entry.Name, entry.File, runs, ref.Repository, err)
	}
	return set, nil
}

// copying is an image that is not yet where it shall run.
type copying struct{ from, to image.Reference }

// copyImages copies what is missing, right before it is promoted.
func (r *run) copyImages(ctx context.Context, res *Result) error {
	for _, c := range r.copies {
		r.progress(fmt.Sprintf("copying %s to %s", c.from, c.to.Repository))
		copied, err := r.Registry.Copy(ctx, c.from, c.to)
		if err != nil {
			return err
		}
		res.Warnings = append(res.Warnings, copied.Warnings...)
	}
	r.copies = nil
	return nil
}
