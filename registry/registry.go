// Package registry asks registries what a tag is: image reference in, digest and
// facts for a reviewer out. It is the only importer of go-containerregistry.
package registry

import (
	"errors"
	"time"

	"tagboat/image"
)

// The refusals that a caller tells apart; each is wrapped with the image, the
// registry, the status, the credential source that was used and the next step.
var (
	// ErrNotFound: the registry has no such repository, tag or digest, or hides
	// it from this credential.
	ErrNotFound = errors.New("not found")
	// ErrDenied: the credential was refused, or there was none.
	ErrDenied = errors.New("access denied")
	// ErrRateLimited: the registry asks to wait for longer than the budget.
	ErrRateLimited = errors.New("rate limited")
	// ErrUnavailable: the registry cannot be reached, or answers 5xx until the
	// budget is spent.
	ErrUnavailable = errors.New("unavailable")
	// ErrMovedTag: the tag points to another digest than the one given with it.
	ErrMovedTag = errors.New("tag moved")
	// ErrPlatform: a required platform is missing, or its manifest is gone.
	ErrPlatform = errors.New("platform missing")
	// ErrNotImage: what the tag names is no container image (a chart, a
	// signature, schema 1, an HTML page, an empty body).
	ErrNotImage = errors.New("not an image")
	// ErrDigestMismatch: the body's digest is not the one asked for or announced.
	ErrDigestMismatch = errors.New("digest mismatch")
)

// Query is one image to resolve.
type Query struct {
	Reference  image.Reference // tag, digest or both; both are checked against each other
	Platforms  []string        // os/arch[/variant] that must be there and pullable
	Pinned     []string        // digests that git holds: on Docker Hub a HEAD that equals one is enough
	AllowMoved bool            // a tag that points elsewhere than the given digest is a warning
	Wait       time.Duration   // how long a 404 may still turn into an answer
}

// Image is a resolved image.
type Image struct {
	Reference image.Reference // as asked, with the digest
	MediaType string          // "" when a HEAD was enough
	Platforms []string        // of the image itself, attestations left out; sorted
	Checked   []string        // the required platforms whose manifests were seen to be there
	Warnings  []string
}

// Facts is what the image says of itself. It is its author's claim, to be shown
// as such and escaped; each may be empty.
type Facts struct {
	Revision string    // org.opencontainers.image.revision
	Source   string    // org.opencontainers.image.source
	Version  string    // org.opencontainers.image.version
	Created  time.Time // zero where missing or not believable (before 2013, reproducible builds)
	From     string    // where they were found: index annotations, manifest annotations, config labels

	Platforms []string // of an image that is no index, where its configuration was read; else nil
}
