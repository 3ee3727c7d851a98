package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tagboat/image"
)

// Copied is what Copy did.
type Copied struct {
	Reference image.Reference // at the target, with the digest, and the tag where it was set
	Present   bool            // the target had the digest already
	Warnings  []string        // what a person should know
}

const (
	copyTime      = 30 * time.Minute // for a copy, its retries among it
	copyManifests = 300              // of an index, nested ones among it
	copyDepth     = 3                // of indexes in one another
	copyJobs      = 4                // layers at the same time
)

// Copy brings the image of from.Digest into another repository, on the same
// registry or another: the manifest byte for byte, of an index all children (those
// of attestations that BuildKit puts there among them), configurations and layers.
// Everything is checked against its digest on the way, and the target is asked for
// the digest afterwards. On one registry, layers are mounted where it allows that.
//
// from.Tag says nothing. With to.Tag the target's tag is set as well, so that no
// clean-up of untagged images takes it away, but only where the tag is free or is
// this digest already: one of another digest stays, and the answer has a warning and
// no tag. The distribution protocol cannot compare and swap: a tag that somebody
// pushes within the very last request is lost.
//
// What is kept beside an image is not copied: cosign's tags (sha256-….sig, .att,
// .sbom) and what the referrers API lists. The answer has a warning that says so.
//
// Credentials are those of the client, in its order; the target's must allow to push.
func (c *Client) Copy(ctx context.Context, from, to image.Reference) (Copied, error) {
	if err := checkCopy(from, &to); err != nil {
		return Copied{}, fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	ctx, cancel := context.WithTimeout(c.begin(ctx, copyTime), copyTime)
	defer cancel()
	done, err := c.copy(ctx, from, to)
	if err != nil {
		return Copied{}, fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return done, nil
}

// checkCopy also puts the digest into to.
func checkCopy(from image.Reference, to *image.Reference) error {
	if err := image.CheckRepository(from.Repository); err != nil {
		return err
	}
	if err := image.CheckRepository(to.Repository); err != nil {
		return err
	}
	if err := image.CheckDigest(from.Digest); err != nil {
		return err
	}
	if !strings.HasPrefix(from.Digest, "sha256:") {
		return fmt.Errorf("%s: only sha256 digests can be copied", from.Digest)
	}
	if to.Tag != "" {
		if err := image.CheckTag(to.Tag); err != nil {
			return err
		}
	}
	if to.Digest != "" && to.Digest != from.Digest {
		return errors.New("a copy has the digest of its source")
	}
	to.Digest = from.Digest
	if image.SameRepository(from.Repository, to.Repository) {
		return errors.New("source and target are one repository")
	}
	return nil
}

func (c *Client) copy(ctx context.Context, from, to image.Reference) (Copied, error) {
	done := Copied{Reference: to}
	switch err := c.exists(ctx, to.Repository, to.Digest); {
	case err == nil:
		done.Present = true
	case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDenied): // a repository that is not there yet may be denied
		return done, err
	}
	tagged, err := c.tagged(ctx, to)
	switch {
	case errors.Is(err, ErrMovedTag):
		done.taken(err)
	case err != nil && !errors.Is(err, ErrDenied):
		return done, err
	}
	if done.Present && (done.Reference.Tag == "" || tagged) {
		return done, nil
	}
	if _, err := c.manifest(ctx, from.Repository, from.Digest); err != nil { // an image, and not a chart
		return done, err
	}
	if err := c.push(ctx, from, done.Reference); errors.Is(err, ErrMovedTag) {
		done.taken(err)
	} else if err != nil {
		return done, err
	}
	if _, err := c.fetchExact(ctx, to.Repository, to.Digest); err != nil {
		return done, fmt.Errorf("after the copy: %w", err)
	}
	done.Warnings = append(done.Warnings, fmt.Sprintf("signatures and attestations that are kept beside %s (cosign's tags, referrers) are not copied: copy them with the tool that made them", from.Repository))
	return done, nil
}

// taken notes that the target's tag stays what it is.
func (done *Copied) taken(err error) {
	done.Reference.Tag = ""
	done.Warnings = append(done.Warnings, "the image was copied without its tag, for no tag is overwritten: "+err.Error())
}

// tagged says whether the target's tag is the digest already; a tag of another
// digest is ErrMovedTag.
func (c *Client) tagged(ctx context.Context, to image.Reference) (bool, error) {
	if to.Tag == "" {
		return false, nil
	}
	d, err := c.fetch(ctx, to.Repository, to.Tag, to.Digest)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case errors.Is(err, ErrNotImage):
		return false, &problem{kind: ErrMovedTag, text: fmt.Sprintf("the tag %s of %s is something else already", to.Tag, to.Repository), cause: err, fix: "a registry that removes untagged images wants another tag"}
	case err != nil:
		return false, err
	case d.digest != to.Digest:
		return false, &problem{kind: ErrMovedTag, text: fmt.Sprintf("the tag %s of %s is %s already", to.Tag, to.Repository, d.digest), fix: "a registry that removes untagged images wants another tag"}
	}
	return true, nil
}

// push copies with the first credential of the target's that may push.
func (c *Client) push(ctx context.Context, from, to image.Reference) error {
	source, target := c.session(from.Repository), c.session(to.Repository)
	if err := target.prepare(ctx); err != nil {
		return err
	}
	read, err := source.current(ctx, path(from.Repository))
	if err != nil {
		return err
	}
	var refused []string
	for _, writer := range append(target.usable(path(to.Repository)), nil) {
		login, err := writer.login(ctx)
		if errors.Is(err, errNothing) {
			continue
		}
		if err != nil {
			refused = append(refused, writer.source+": "+err.Error())
			continue
		}
		err = c.pushAs(ctx, from, to, source.options(ctx, read), target.options(ctx, login))
		if err == nil {
			return nil
		}
		err = c.explain(err, source, target, path(to.Repository))
		if !errors.Is(err, ErrDenied) {
			return err
		}
		refused = append(refused, writer.who()+": "+err.Error())
	}
	return &problem{kind: ErrDenied, text: fmt.Sprintf("no credential for %s may push to %s: %s", target.host, to.Repository, strings.Join(refused, "; ")),
		fix: fmt.Sprintf("give one that may: TAGBOAT_REGISTRY_HOST=%s, TAGBOAT_REGISTRY_USER and TAGBOAT_REGISTRY_PASSWORD, or docker login", target.host)}
}

// login is the candidate's credential; that of nobody for nil.
func (c *candidate) login(ctx context.Context) (login, error) {
	if c == nil {
		return login{}, nil
	}
	return c.get(ctx)
}

func (c *candidate) who() string {
	if c == nil {
		return "without a credential"
	}
	return c.source
}

// current is the credential that the repository was read with.
func (s *session) current(ctx context.Context, repository string) (login, error) {
	g, err := s.authorize(ctx, repository)
	if err != nil {
		return login{}, err
	}
	return g.candidate.login(ctx)
}

// options make go-containerregistry ask through the client's transport, with one
// credential. It retries nothing by itself but uploads that broke off, and writes
// no tag for referrers.
func (s *session) options(ctx context.Context, as login) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuth(authn.FromConfig(as)), remote.WithTransport(newGuard(s)), remote.WithJobs(copyJobs),
		remote.WithRetryBackoff(remote.Backoff{Duration: 200 * time.Millisecond, Factor: 5, Jitter: 0.2, Steps: 3}), remote.WithRetryStatusCodes(), remote.WithRetryPredicate(func(err error) bool { return errors.Is(err, errBrokeOff) }),
		remote.WithReferrersTagFallback(false),
	}
}

// named is a repository as go-containerregistry knows it.
func (s *session) named(repository string) (name.Repository, error) {
	var options []name.Option
	if s.scheme == "http" {
		options = append(options, name.Insecure)
	}
	return name.NewRepository(image.Canonical(repository), options...)
}

func (c *Client) pushAs(ctx context.Context, from, to image.Reference, read, write []remote.Option) error {
	origin, err := c.session(from.Repository).named(from.Repository)
	if err != nil {
		return err
	}
	repository, err := c.session(to.Repository).named(to.Repository)
	if err != nil {
		return err
	}
	found, err := remote.Get(origin.Digest(from.Digest), read...)
	if err != nil {
		return err
	}
	if err := bounded(found); err != nil {
		return err
	}
	pusher, err := remote.NewPusher(write...)
	if err != nil {
		return err
	}
	if err := pusher.Push(ctx, repository.Digest(to.Digest), found); err != nil || to.Tag == "" {
		return err
	}
	tagged, err := c.tagged(ctx, to) // now that the repository is there for sure
	if err != nil || tagged {
		return err
	}
	return pusher.Put(ctx, repository.Tag(to.Tag), found)
}

// bounded refuses an index that no build makes.
func bounded(d *remote.Descriptor) error {
	if !d.MediaType.IsIndex() {
		return nil
	}
	index, err := d.ImageIndex()
	if err != nil {
		return err
	}
	n := 0
	return countManifests(index, 1, &n)
}

func countManifests(index v1.ImageIndex, depth int, n *int) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if *n += len(manifest.Manifests); *n > copyManifests || depth > copyDepth {
		return notImage("its index has more than %d manifests, or more than %d levels", copyManifests, copyDepth)
	}
	for _, child := range manifest.Manifests {
		if !child.MediaType.IsIndex() {
			continue
		}
		inner, err := index.ImageIndex(child.Digest)
		if err != nil {
			return err
		}
		if err := countManifests(inner, depth+1, n); err != nil {
			return err
		}
	}
	return nil
}
