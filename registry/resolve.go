package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tagboat/image"
)

// Resolve asks what an image's tag is, and checks what the query wants of it. The
// digest is that of exactly what the tag points at: the index of an image for
// several platforms. Its cost is a ping, a token and one GET; one request more
// per required platform. On a registry that is known already the ping is saved,
// in a repository that is known the token as well.
func (c *Client) Resolve(ctx context.Context, q Query) (Image, error) {
	ctx = c.begin(ctx, q.Wait)
	if err := q.check(); err != nil {
		return Image{}, fmt.Errorf("resolve %s: %w", q.Reference, err)
	}
	var resolved Image
	err := c.poll(ctx, q.Wait, func() (err error) {
		resolved, err = c.resolve(ctx, q)
		return err
	})
	if err != nil {
		return Image{}, fmt.Errorf("resolve %s: %w", q.Reference, err)
	}
	return resolved, nil
}

func (q Query) check() error {
	r := q.Reference
	if err := image.CheckRepository(r.Repository); err != nil {
		return err
	}
	if r.Tag == "" && r.Digest == "" {
		return errors.New("give a tag or a digest: without one it would be whatever is latest")
	}
	if r.Tag != "" {
		if err := image.CheckTag(r.Tag); err != nil {
			return err
		}
	}
	if r.Digest != "" {
		if err := image.CheckDigest(r.Digest); err != nil {
			return err
		}
	}
	for _, platform := range q.Platforms {
		if _, err := parsePlatform(platform); err != nil {
			return err
		}
	}
	return nil
}

// poll repeats what ended in a 404 until the wait is over: after a push, replicas
// take their time. Nothing else gets better by waiting.
func (c *Client) poll(ctx context.Context, wait time.Duration, ask func() error) error {
	start := c.options.Now()
	for pause := time.Second; ; pause = min(pause*3/2, 5*time.Second) {
		err := ask()
		left := wait - c.options.Now().Sub(start)
		if err == nil || !errors.Is(err, errGone) || wait <= 0 {
			return err
		}
		if left <= 0 {
			return fmt.Errorf("after waiting %s: %w", wait, err)
		}
		if err := c.options.Sleep(ctx, min(pause, left)); err != nil {
			return err
		}
	}
}

// resolve is one attempt.
func (c *Client) resolve(ctx context.Context, q Query) (Image, error) {
	found := Image{Reference: q.Reference, Warnings: mutableTag(q.Reference.Tag)}
	if pinned := c.stillPinned(ctx, q); pinned != "" {
		found.Reference.Digest = pinned
		return found, nil
	}
	d, warnings, err := c.locate(ctx, q)
	if err != nil {
		return Image{}, err
	}
	found.Reference.Digest, found.MediaType = d.digest, d.MediaType
	found.Warnings = append(found.Warnings, warnings...)
	if err := c.describe(ctx, q, d, &found); err != nil {
		return Image{}, err
	}
	return found, nil
}

// stillPinned asks Docker Hub, which counts GETs of manifests and not HEADs,
// whether the tag is what git pins already. Whatever goes wrong here, the GET
// that follows will tell.
func (c *Client) stillPinned(ctx context.Context, q Query) string {
	if q.Reference.Tag == "" || len(q.Pinned) == 0 || !image.DockerHub(q.Reference.Repository) {
		return ""
	}
	s := c.session(q.Reference.Repository)
	a, err := s.get(ctx, http.MethodHead, path(q.Reference.Repository), "/manifests/"+q.Reference.Tag, maxBody)
	if err != nil || a.status != http.StatusOK {
		return ""
	}
	digest := a.header.Get("Docker-Content-Digest")
	if !slices.Contains(q.Pinned, digest) || (q.Reference.Digest != "" && q.Reference.Digest != digest) {
		return ""
	}
	return digest
}

// locate reads the manifest that is to be pinned. With tag and digest, the tag is
// read first: one request shows that the digest is there and that the tag still
// points to it.
func (c *Client) locate(ctx context.Context, q Query) (*document, []string, error) {
	r := q.Reference
	if r.Tag == "" {
		d, err := c.manifest(ctx, r.Repository, r.Digest)
		return d, nil, err
	}
	tagged, err := c.fetch(ctx, r.Repository, r.Tag, r.Digest)
	if r.Digest == "" || (err == nil && tagged.digest == r.Digest) {
		return tagged, nil, err
	}
	if err != nil && !errors.Is(err, errGone) {
		return nil, nil, err
	}
	points := "the tag " + r.Tag + " is not there any more"
	if err == nil {
		points = "the tag " + r.Tag + " points to " + tagged.digest
	}
	given, digestErr := c.manifest(ctx, r.Repository, r.Digest)
	switch {
	case digestErr != nil && err != nil:
		return nil, nil, err
	case digestErr != nil:
		return nil, nil, fmt.Errorf("%s, and the digest given with it: %w", points, digestErr)
	case !q.AllowMoved && err != nil: // the tag may still be on its way
		return nil, nil, &problem{kind: ErrMovedTag, gone: true, text: fmt.Sprintf("%s; %s, which was given with it, is", points, r.Digest), fix: "--allow-moved-tag pins the given digest"}
	case !q.AllowMoved:
		return nil, nil, &problem{kind: ErrMovedTag, text: fmt.Sprintf("%s, not to %s, which was given with it", points, r.Digest), fix: "someone pushed the tag again; --allow-moved-tag pins the given digest"}
	}
	return given, []string{fmt.Sprintf("%s; pinned is %s, as given", points, r.Digest)}, nil
}

// manifest reads a manifest by its digest, from memory if it was read before.
func (c *Client) manifest(ctx context.Context, repository, digest string) (*document, error) {
	if known := c.manifests.document(repository, digest); known != nil {
		return known, nil
	}
	return c.fetchExact(ctx, repository, digest)
}

// fetch GETs what a tag or digest names, hashes it and judges what it is.
func (c *Client) fetch(ctx context.Context, repository, reference, wanted string) (*document, error) {
	s := c.session(repository)
	a, err := s.get(ctx, http.MethodGet, path(repository), "/manifests/"+reference, maxManifest)
	if err != nil {
		return nil, err
	}
	if err := s.judge(naming(reference), a); err != nil {
		return nil, err
	}
	d, err := readManifest(a, wanted)
	if err != nil {
		return nil, err
	}
	c.manifests.keepDocument(repository, d)
	return d, nil
}

func naming(reference string) string {
	if strings.Contains(reference, ":") {
		return "digest " + reference
	}
	return "tag " + reference
}

// fetchExact asks the registry itself, not the memory.
func (c *Client) fetchExact(ctx context.Context, repository, digest string) (*document, error) {
	d, err := c.fetch(ctx, repository, digest, digest)
	if err == nil && d.digest != digest {
		return nil, &problem{kind: ErrDigestMismatch, text: fmt.Sprintf("asked for %s, the registry sent %s", digest, d.digest), fix: "a proxy or the registry is at fault; ask the registry itself"}
	}
	return d, err
}
