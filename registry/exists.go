package registry

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"tagboat/image"
)

// Exists says whether a digest is in its repository: nil, or an error that is
// ErrNotFound where the registry said so. It sends a HEAD, and a GET where the
// registry will not answer one.
func (c *Client) Exists(ctx context.Context, ref image.Reference) error {
	ctx = c.begin(ctx, 0)
	if err := image.CheckRepository(ref.Repository); err != nil {
		return fmt.Errorf("look for %s: %w", ref, err)
	}
	if err := image.CheckDigest(ref.Digest); err != nil {
		return fmt.Errorf("look for %s: %w", ref, err)
	}
	if err := c.exists(ctx, ref.Repository, ref.Digest); err != nil {
		return fmt.Errorf("look for %s: %w", ref, err)
	}
	return nil
}

func (c *Client) exists(ctx context.Context, repository, digest string) error {
	s := c.session(repository)
	a, err := s.get(ctx, http.MethodHead, path(repository), "/manifests/"+digest, maxBody)
	if err != nil && !errors.Is(err, ErrDenied) {
		return err
	}
	if err == nil && a.status == http.StatusOK && headProves(a.header, digest) {
		return nil
	}
	// A HEAD has no body to explain a refusal, storage behind a redirect may answer
	// it with 403 or 405, and some registries know no HEAD at all.
	_, err = c.fetchExact(ctx, repository, digest)
	return err
}

// headProves takes the digest in the header for an answer; without that header, at
// least the content type of a manifest, which a login page has not.
func headProves(header http.Header, digest string) bool {
	if announced := header.Get("Docker-Content-Digest"); announced != "" {
		return announced == digest
	}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return isIndexType(kind) || isManifestType(kind)
}
