package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// describe fills in the platforms, checks the required ones, and notes where git
// pins a child of the index.
func (c *Client) describe(ctx context.Context, q Query, d *document, found *Image) error {
	repository := q.Reference.Repository
	if !d.isIndex() {
		return c.describeSingle(ctx, q, d, found)
	}
	walk := &walk{client: c, repository: repository}
	all, lost := walk.leaves(ctx, d, maxDepth)
	if lost != nil && !errors.Is(lost, ErrNotFound) {
		return lost
	}
	if lost != nil {
		found.Warnings = append(found.Warnings, "a part of the image's index is not in the registry: "+lost.Error())
	}
	found.Platforms = platformsOf(all)
	for _, child := range d.Manifests {
		if slices.Contains(q.Pinned, child.Digest) {
			found.Warnings = append(found.Warnings, fmt.Sprintf("git pins %s, which is only the %s part of this image; the digest of the whole is pinned now", child.Digest, cmp.Or(child.Platform.String(), "nameless")))
		}
	}
	if err := c.checkPlatforms(ctx, repository, q.Platforms, all); err != nil {
		if lost != nil {
			return fmt.Errorf("%w (a part of the index is lost: %w)", err, lost)
		}
		return err
	}
	found.Checked = slices.Clone(q.Platforms)
	return nil
}

// checkPlatforms finds the child of each required platform, and then looks whether
// all of them are there.
func (c *Client) checkPlatforms(ctx context.Context, repository string, required []string, all []leaf) error {
	wanted := map[string]descriptor{}
	for _, text := range required {
		platform, err := parsePlatform(text)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(l leaf) bool { return l.platform == platform })
		if i < 0 {
			return missing(platform, platformsOf(all))
		}
		wanted[platform] = all[i].child
	}
	group, ctx := errgroup.WithContext(ctx)
	for platform, child := range wanted {
		group.Go(func() error { return c.checkChild(ctx, repository, platform, child, maxDepth) })
	}
	return group.Wait()
}

// describeSingle reads the platform of an image that is no index from its
// configuration, which is fetched only where a platform is required.
func (c *Client) describeSingle(ctx context.Context, q Query, d *document, found *Image) error {
	if len(q.Platforms) == 0 {
		return nil
	}
	config, err := c.configOf(ctx, q.Reference.Repository, d)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return &problem{kind: ErrPlatform, gone: true, text: "the image's configuration is not in the registry, so it cannot be pulled", fix: "push the image again"}
		}
		return err
	}
	if own := config.String(); own != "" {
		found.Platforms = []string{own}
	}
	for _, platform := range q.Platforms {
		wanted, err := parsePlatform(platform)
		if err != nil {
			return err
		}
		if !slices.Contains(found.Platforms, wanted) {
			return missing(wanted, found.Platforms)
		}
	}
	found.Checked = slices.Clone(q.Platforms)
	return nil
}
