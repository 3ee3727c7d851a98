package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tagboat/image"
)

// Facts reads what the image says of itself: annotations of the index, then those
// of an image's manifest, then the labels of its configuration; each field from
// the first place that has it. It is best effort: what was found before an error
// is returned with it. The manifest that Resolve read is used again, so that it
// costs two requests at most.
func (c *Client) Facts(ctx context.Context, ref image.Reference) (Facts, error) {
	ctx = c.begin(ctx, 0)
	var facts Facts
	if err := image.CheckDigest(ref.Digest); err != nil {
		return facts, fmt.Errorf("read facts of %s: %w", ref, err)
	}
	if err := c.gather(ctx, ref, &facts); err != nil {
		return facts, fmt.Errorf("read facts of %s: %w", ref, err)
	}
	return facts, nil
}

func (c *Client) gather(ctx context.Context, ref image.Reference, facts *Facts) error {
	d, err := c.manifest(ctx, ref.Repository, ref.Digest)
	if err != nil {
		return err
	}
	for depth := maxDepth; d.isIndex(); depth-- {
		facts.add("index annotations", d.Annotations, c.believable)
		child := firstImage(d)
		if facts.complete() || child == "" || depth == 0 {
			return nil
		}
		if d, err = c.manifest(ctx, ref.Repository, child); err != nil {
			return err
		}
	}
	facts.add("manifest annotations", d.Annotations, c.believable)
	if facts.complete() {
		return nil
	}
	config, err := c.configOf(ctx, ref.Repository, d)
	if err != nil {
		return err
	}
	if own := config.String(); own != "" && d.digest == ref.Digest {
		facts.Platforms = []string{own}
	}
	facts.add("config labels", config.Config.Labels, c.believable)
	if facts.Created.IsZero() {
		facts.Created = config.Created
	}
	return nil
}

// firstImage is the child whose labels are read: linux/amd64 where there is one.
func firstImage(d *document) string {
	first := ""
	for _, child := range d.Manifests {
		if !child.isImage() && !isIndexType(child.MediaType) {
			continue
		}
		if child.Platform.String() == "linux/amd64" {
			return child.Digest
		}
		if first == "" && (child.Platform.String() != "" || child.Platform == nil) {
			first = child.Digest
		}
	}
	return first
}

func (f *Facts) complete() bool {
	return f.Revision != "" && f.Source != "" && !f.Created.IsZero()
}

// add takes what is still missing, under the names of the OCI image
// specification and of label-schema.org before it.
func (f *Facts) add(from string, texts map[string]string, believable func(string) time.Time) {
	took := false
	for field, keys := range map[*string][2]string{
		&f.Revision: {"org.opencontainers.image.revision", "org.label-schema.vcs-ref"},
		&f.Source:   {"org.opencontainers.image.source", "org.label-schema.vcs-url"},
		&f.Version:  {"org.opencontainers.image.version", "org.label-schema.version"},
	} {
		if text := plain(cmp.Or(texts[keys[0]], texts[keys[1]]), 500); *field == "" && text != "" {
			*field, took = text, true
		}
	}
	if created := believable(cmp.Or(texts["org.opencontainers.image.created"], texts["org.label-schema.build-date"])); f.Created.IsZero() && !created.IsZero() {
		f.Created, took = created, true
	}
	if took {
		f.From = strings.Join(slices.DeleteFunc([]string{f.From, from}, func(s string) bool { return s == "" }), ", ")
	}
}

// believable reads a time, and takes what is too old or lies ahead for none: before
// Docker there were no images, and reproducible builds say 1970 or year one.
func (c *Client) believable(text string) time.Time {
	docker := time.Date(2013, 3, 1, 0, 0, 0, 0, time.UTC)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Before(docker) || t.After(c.options.Now().Add(24*time.Hour)) {
		return time.Time{}
	}
	return t.UTC()
}
