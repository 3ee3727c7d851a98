package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"tagboat/image"
	"tagboat/registry/registrytest"
)

// between is a copy from one registry to another.
type between struct {
	*testing.T
	source, target *registrytest.Registry
	client         *Client
	from, to       image.Reference
}

func newBetween(t *testing.T, spec registrytest.ImageSpec, options Options, target ...registrytest.Option) *between {
	t.Helper()
	b := &between{T: t, source: registrytest.New(), target: registrytest.New(target...)}
	t.Cleanup(b.source.Close)
	t.Cleanup(b.target.Close)
	if options.Env == nil {
		options.Env = env(map[string]string{"TAGBOAT_REGISTRY_HOST": b.target.Host(), "TAGBOAT_REGISTRY_USER": "mei", "TAGBOAT_REGISTRY_PASSWORD": "secret-of-mei"})
	}
	b.client = newClient(t, options)
	digest := push(t, b.source, "acme/app:v1", spec)
	b.from = image.Reference{Repository: b.source.Host() + "/acme/app", Digest: digest}
	b.to = image.Reference{Repository: b.target.Host() + "/prod/app", Tag: "v1"}
	return b
}

// pulled checks the copy with another client, down to the layers.
func (b *between) pulled(user, password string) {
	b.Helper()
	ref, err := name.ParseReference(b.to.Repository + "@" + b.from.Digest)
	if err != nil {
		b.Fatal(err)
	}
	got, err := remote.Get(ref, remote.WithAuth(basicAuth(user, password)))
	if err != nil {
		b.Fatal(err)
	}
	if !got.MediaType.IsIndex() {
		img, err := got.Image()
		if err != nil {
			b.Fatal(err)
		}
		if err := validate.Image(img); err != nil {
			b.Error(err)
		}
		return
	}
	index, err := got.ImageIndex()
	if err != nil {
		b.Fatal(err)
	}
	if err := validate.Index(index); err != nil && !strings.Contains(err.Error(), "in-toto") {
		b.Error(err)
	}
}

func TestCopy(t *testing.T) {
	two := []string{"linux/amd64", "linux/arm64"}
	for name, test := range map[string]struct {
		spec   registrytest.ImageSpec
		target []registrytest.Option
	}{
		"one platform":  {registrytest.ImageSpec{Content: "a"}, nil},
		"index":         {registrytest.ImageSpec{Platforms: two}, nil},
		"Docker's":      {registrytest.ImageSpec{Platforms: two, Docker: true}, nil},
		"with password": {registrytest.ImageSpec{Platforms: two}, []registrytest.Option{registrytest.WithBasic("mei", "secret-of-mei")}},
		"with token":    {registrytest.ImageSpec{Platforms: two}, []registrytest.Option{registrytest.WithToken("mei", "secret-of-mei")}},
		"public":        {registrytest.ImageSpec{Platforms: two}, []registrytest.Option{registrytest.WithToken("mei", "secret-of-mei"), registrytest.WithAnonymousPull()}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBetween(t, test.spec, Options{}, test.target...)
			got, err := b.client.Copy(t.Context(), b.from, b.to)
			if err != nil {
				t.Fatal(err)
			}
			want := image.Reference{Repository: b.to.Repository, Tag: "v1", Digest: b.from.Digest}
			if got.Reference != want || got.Present || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "not copied") {
				t.Errorf("%+v", got)
			}
			b.pulled("mei", "secret-of-mei")
			resolved, err := b.client.Resolve(t.Context(), Query{Reference: image.Reference{Repository: b.to.Repository, Tag: "v1"}})
			if err != nil || resolved.Reference.Digest != b.from.Digest {
				t.Errorf("the tag is %+v, %v", resolved, err)
			}
			b.target.Forget()
			again, err := b.client.Copy(t.Context(), b.from, b.to)
			if err != nil || !again.Present || again.Reference != want {
				t.Errorf("again: %+v, %v", again, err)
			}
			for _, q := range b.target.Requests() {
				if q.Method != http.MethodGet && q.Method != http.MethodHead {
					t.Errorf("again: %s", q)
				}
			}
		})
	}
}

// TestCopyAttested: what BuildKit puts into an index is copied with it.
func TestCopyAttested(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}, Attested: true}, Options{})
	b.to.Tag = ""
	if _, err := b.client.Copy(t.Context(), b.from, b.to); err != nil {
		t.Fatal(err)
	}
	raw, err := b.target.Manifest("prod/app", b.from.Digest)
	if err != nil {
		t.Fatal(err)
	}
	var index document
	if err := json.Unmarshal(raw, &index); err != nil || len(index.Manifests) != 4 {
		t.Fatalf("%s, %v", raw, err)
	}
	for _, child := range index.Manifests {
		if _, err := b.target.Manifest("prod/app", child.Digest); err != nil {
			t.Error(err)
		}
	}
	if b.target.Count("PUT", "/manifests/v1") != 0 {
		t.Error("a tag was set that nobody asked for")
	}
}

func TestCopyOnOneRegistryMounts(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Content: "mount"}, Options{})
	b.to.Repository, b.target = b.source.Host()+"/prod/app", b.source
	b.source.Fail(registrytest.Match{Method: "HEAD", Path: "/prod/app/blobs/"}, http.StatusNotFound, "BLOB_UNKNOWN") // it keeps blobs for all
	if _, err := b.client.Copy(t.Context(), b.from, b.to); err != nil {
		t.Fatal(err)
	}
	b.pulled("", "")
	if n := b.source.Count("POST", "from=acme%2Fapp&mount=sha256"); n == 0 {
		t.Errorf("no layer was mounted: %v", b.source.Requests())
	}
}

func TestCopyNeverMovesATag(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Content: "new"}, Options{})
	old := push(t, b.target, "prod/app:v1", registrytest.ImageSpec{Content: "old"})
	if _, err := b.target.PushManifest("prod/app", "odd", "application/json", []byte(`{"schemaVersion":2}`)); err != nil {
		t.Fatal(err)
	}
	for tag, says := range map[string]string{"v1": "the tag v1 of " + b.to.Repository + " is " + old + " already", "odd": "the tag odd of " + b.to.Repository + " is something else already"} {
		b.to.Tag = tag
		got, err := b.client.Copy(t.Context(), b.from, b.to)
		if err != nil || got.Reference != (image.Reference{Repository: b.to.Repository, Digest: b.from.Digest}) || !strings.Contains(strings.Join(got.Warnings, "\n"), says) {
			t.Errorf("%+v, %v", got, err)
		}
		if b.target.Count("PUT", "/manifests/"+tag) > 0 {
			t.Errorf("the tag %s was written", tag)
		}
	}
	b.pulled("", "")
	now, err := b.client.Resolve(t.Context(), Query{Reference: image.Reference{Repository: b.to.Repository, Tag: "v1"}})
	if err != nil || now.Reference.Digest != old {
		t.Errorf("the tag is %+v, %v", now, err)
	}
}

// TestCopyLosesARaceForATag: somebody takes the tag while the image is copied.
func TestCopyLosesARaceForATag(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Content: "new"}, Options{})
	old := push(t, b.target, "prod/app:v1", registrytest.ImageSpec{Content: "old"})
	b.target.Fail(registrytest.Match{Method: "GET", Path: "/manifests/v1", Times: 1}, http.StatusNotFound, "MANIFEST_UNKNOWN")
	got, err := b.client.Copy(t.Context(), b.from, b.to)
	if err != nil || got.Reference.Tag != "" || !strings.Contains(strings.Join(got.Warnings, "\n"), "is "+old+" already") || b.target.Count("PUT", "/manifests/v1") > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestCopyTagsWhatIsThere: only the tag is missing.
func TestCopyTagsWhatIsThere(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Content: "a"}, Options{})
	push(t, b.target, "prod/app:other", registrytest.ImageSpec{Content: "a"})
	got, err := b.client.Copy(t.Context(), b.from, b.to)
	if err != nil || !got.Present {
		t.Fatalf("%+v, %v", got, err)
	}
	if b.target.Count("PATCH", "") != 0 || b.target.Count("PUT", "/manifests/v1") != 1 {
		t.Errorf("%v", b.target.Requests())
	}
}

func TestCopyHostile(t *testing.T) {
	two := registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}}
	child := func(b *between) string {
		raw, err := b.source.Manifest("acme/app", b.from.Digest)
		if err != nil {
			b.Fatal(err)
		}
		var index document
		if err := json.Unmarshal(raw, &index); err != nil {
			b.Fatal(err)
		}
		return index.Manifests[1].Digest
	}
	for name, test := range map[string]struct {
		spec registrytest.ImageSpec
		prep func(b *between)
		want error
		says string
	}{
		"no such digest": {two, func(b *between) { b.from.Digest = "sha256:" + strings.Repeat("1", 64) }, ErrNotFound, "has no digest"},
		"a child is missing": {two, func(b *between) {
			if err := b.source.Delete("acme/app", child(b)); err != nil {
				b.Fatal(err)
			}
		}, ErrNotFound, "not whole at its source"},
		"a child is another": {two, func(b *between) {
			b.source.Answer(registrytest.Match{Path: "/manifests/" + child(b)}, "application/vnd.oci.image.manifest.v1+json", []byte(`{"schemaVersion":2}`))
		}, ErrDigestMismatch, "other content than its digest says"},
		"the index is another": {two, func(b *between) {
			b.source.Answer(registrytest.Match{Path: "/manifests/" + b.from.Digest}, "application/vnd.oci.image.index.v1+json", []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"`+b.from.Digest+`"}]}`))
		}, ErrDigestMismatch, ""},
		"the index is another the second time": {two, func(b *between) {
			if _, err := b.client.Resolve(b.Context(), Query{Reference: b.from}); err != nil {
				b.Fatal(err)
			}
			b.source.Answer(registrytest.Match{Path: "/manifests/" + b.from.Digest}, "application/vnd.oci.image.index.v1+json", []byte(`{"schemaVersion":2,"manifests":[]}`))
		}, ErrDigestMismatch, ""},
		"a layer is another": {registrytest.ImageSpec{Content: "a"}, func(b *between) {
			b.source.Answer(registrytest.Match{Path: "/blobs/"}, "application/octet-stream", []byte("evil"))
		}, ErrDigestMismatch, "other content"},
		"a layer is missing": {registrytest.ImageSpec{Content: "a"}, func(b *between) {
			b.source.Fail(registrytest.Match{Path: "/blobs/"}, http.StatusNotFound, "BLOB_UNKNOWN")
		}, ErrNotFound, "not whole at its source"},
		"the storage is gone": {registrytest.ImageSpec{Content: "a"}, func(b *between) {
			b.source.Redirect(registrytest.Match{Path: "/blobs/"}, "http://127.0.0.1:1/blob?signature=secret-of-mei")
		}, ErrUnavailable, "127.0.0.1:1"},
		"no image": {two, func(b *between) {
			digest, err := b.source.PushManifest("acme/app", "chart", "application/vnd.oci.image.manifest.v1+json",
				fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":%q,"size":1},"layers":[]}`, "sha256:"+strings.Repeat("2", 64)))
			if err != nil {
				b.Fatal(err)
			}
			b.from.Digest = digest
		}, ErrNotImage, "Helm chart"},
		"an index without end": {two, func(b *between) {
			children := strings.Repeat(fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":2,"digest":%q},`, b.from.Digest), copyManifests+1)
			digest, err := b.source.PushManifest("acme/app", "many", "application/vnd.oci.image.index.v1+json",
				[]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[`+strings.TrimSuffix(children, ",")+`]}`))
			if err != nil {
				b.Fatal(err)
			}
			b.from.Digest = digest
		}, ErrNotImage, "more than 300 manifests"},
		"the target takes nothing": {two, func(b *between) {
			b.target.Fail(registrytest.Match{Method: "POST"}, http.StatusForbidden, "DENIED")
		}, ErrDenied, "TAGBOAT_REGISTRY_PASSWORD: "},
		"the target takes no manifest": {two, func(b *between) {
			b.target.Fail(registrytest.Match{Method: "PUT", Path: "/manifests/"}, http.StatusBadRequest, "MANIFEST_INVALID")
		}, nil, "answered 400 Bad Request (MANIFEST_INVALID"},
		"the target is full": {two, func(b *between) {
			b.target.Fail(registrytest.Match{Method: "PATCH"}, http.StatusInsufficientStorage, "UNKNOWN")
		}, ErrUnavailable, "answered 507"},
		"the target limits": {two, func(b *between) {
			b.target.Limit(registrytest.Match{Method: "POST"}, "7200")
		}, ErrRateLimited, "asks to wait 2h0m0s"},
		"the target lies afterwards": {two, func(b *between) {
			b.target.Answer(registrytest.Match{Method: "GET", Path: "/manifests/sha256"}, "application/vnd.oci.image.index.v1+json", []byte(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:`+strings.Repeat("3", 64)+`"}]}`))
		}, ErrDigestMismatch, ""},
		"the target leads into the network": {two, func(b *between) {
			b.target.SetHeader(registrytest.Match{Method: "POST"}, "Location", "http://10.0.0.1/upload")
		}, ErrUnavailable, ""},
		"no tag is one":        {two, func(b *between) { b.to.Tag = "a b" }, nil, "is not a tag"},
		"another digest":       {two, func(b *between) { b.to.Digest = "sha256:" + strings.Repeat("4", 64) }, nil, "has the digest of its source"},
		"no digest":            {two, func(b *between) { b.from.Digest = "" }, nil, "is not a digest"},
		"to itself":            {two, func(b *between) { b.to.Repository = b.from.Repository }, nil, "are one repository"},
		"a digest of sha512":   {two, func(b *between) { b.from.Digest = "sha512:" + strings.Repeat("1", 128) }, nil, "only sha256"},
		"a repository is none": {two, func(b *between) { b.to.Repository = "UPPER/case" }, nil, "upper-case"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBetween(t, test.spec, Options{Budget: time.Second})
			test.prep(b)
			got, err := b.client.Copy(t.Context(), b.from, b.to)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%+v, %v", got, err)
			}
			if strings.Contains(err.Error(), "secret-of-mei") || !cmp.Equal(got, Copied{}) {
				t.Errorf("%+v, %v", got, err)
			}
			if b.target.Count("PUT", "/manifests/v1") > 0 {
				t.Error("a tag was set")
			}
		})
	}
}

// TestCopyCredentials: one that may only read gives way to the next, and one that
// is refused is named and not shown.
func TestCopyCredentials(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Content: "a"}, Options{}, registrytest.WithBasic("mei", "secret-of-mei"))
	dir := t.TempDir()
	config := fmt.Sprintf(`{"auths":{%q:{"username":"mei","password":"secret-of-mei"}}}`, b.target.Host())
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	stale := map[string]string{"TAGBOAT_REGISTRY_HOST": b.target.Host(), "TAGBOAT_REGISTRY_USER": "mei", "TAGBOAT_REGISTRY_PASSWORD": "stale-password"}
	b.client = newClient(t, Options{Env: env(stale), ConfigDir: dir})
	if _, err := b.client.Copy(t.Context(), b.from, b.to); err != nil {
		t.Fatal(err)
	}
	b.pulled("mei", "secret-of-mei")

	b.to.Repository = b.target.Host() + "/prod/other"
	b.client = newClient(t, Options{Env: env(stale), ConfigDir: t.TempDir()})
	_, err := b.client.Copy(t.Context(), b.from, b.to)
	if !errors.Is(err, ErrDenied) || strings.Contains(err.Error(), "stale-password") || !strings.Contains(err.Error(), "may push to "+b.to.Repository) {
		t.Errorf("%v", err)
	}
}

// TestCopySendsNoCredentialElsewhere: neither to the other registry, nor to a token
// server of another domain.
func TestCopySendsNoCredentialElsewhere(t *testing.T) {
	elsewhere := registrytest.New()
	defer elsewhere.Close()
	b := newBetween(t, registrytest.ImageSpec{Content: "a"}, Options{}, registrytest.WithToken("mei", "secret-of-mei"), registrytest.WithRealm("http://token.example/token"))
	if _, err := b.client.Copy(t.Context(), b.from, b.to); !errors.Is(err, ErrDenied) && !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
	b = newBetween(t, registrytest.ImageSpec{Content: "a"}, Options{}, registrytest.WithBasic("mei", "secret-of-mei"))
	if _, err := b.client.Copy(t.Context(), b.from, b.to); err != nil {
		t.Fatal(err)
	}
	for _, q := range b.source.Requests() {
		if q.Authorization != "" {
			t.Errorf("the source was sent a credential: %s", q)
		}
	}
}

// TestCopyGoesOnAfterABreak: an upload that broke off is begun again.
func TestCopyGoesOnAfterABreak(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Content: "a"}, Options{})
	b.target.Break(registrytest.Match{Method: "PATCH", Times: 1})
	if _, err := b.client.Copy(t.Context(), b.from, b.to); err != nil {
		t.Fatal(err)
	}
	b.pulled("", "")
}

func TestCopyEndsWithItsContext(t *testing.T) {
	b := newBetween(t, registrytest.ImageSpec{Content: "a"}, Options{})
	b.target.Delay(registrytest.Match{Method: "HEAD", Path: "/blobs/"}, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := b.client.Copy(ctx, b.from, b.to)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
