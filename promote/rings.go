package promote

import (
	"context"
	"errors"
	"fmt"

	"tagboat/config"
	"tagboat/image"
	"tagboat/registry"
)

// place chooses where a job goes: the environment, the ring that was named, or the
// next ring: the first that does not run yet what comes to it.
func (o *order) place(ctx context.Context, j *job) error {
	environment, err := o.config.Environment(j.at.Environment)
	if err != nil {
		return err
	}
	if j.at.Ring != "" || len(environment.Rings) == 0 {
		return nil
	}
	if len(j.images) > 0 && environment.From == nil {
		if err := o.pinned(ctx, j); err != nil {
			return err
		}
	}
	for _, at := range environment.Places() {
		there, err := o.there(ctx, j, at)
		if err != nil {
			return err
		}
		if j.at = at; !there {
			return nil
		}
	}
	return nil // the last ring, where everything is: up to date
}

// there says whether a ring runs already what its source has, of all apps.
func (o *order) there(ctx context.Context, j *job, at config.Place) (bool, error) {
	for _, app := range j.apps {
		sources, err := o.sources(ctx, app, at)
		if err != nil {
			return false, err
		}
		now, err := o.runs(ctx, app, at)
		if errors.Is(err, ErrSource) {
			return false, nil // not pinned, or its clusters disagree: it is next
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", at, err)
		}
		if len(sources) > 0 && !sameDigests(sources[0].images, now.images) {
			return false, nil
		}
		for n := range now.images {
			for _, asked := range j.images {
				if len(sources) == 0 && now.same(n, asked) && asked.Digest != now.images[n].Digest {
					return false, nil
				}
			}
		}
	}
	return true, nil
}

func sameDigests(a, b []image.Reference) bool {
	for i := range a {
		if a[i].Digest != b[i].Digest {
			return false
		}
	}
	return true
}

// pinned resolves the images of a job, so that every ring is compared with the same
// digest.
func (o *order) pinned(ctx context.Context, j *job) error {
	queries := make([]registry.Query, len(j.images))
	for i, ref := range j.images {
		queries[i] = registry.Query{Reference: ref, AllowMoved: o.q.AllowMoved, Wait: o.q.Wait}
	}
	found, errs := o.Registry.ResolveAll(ctx, queries)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range found {
		j.images[i].Digest = found[i].Reference.Digest
	}
	return nil
}
