package registry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
	"tagboat/registry/registrytest"
)

// Where facts are found, and what each place costs beyond Resolve.
func TestFacts(t *testing.T) {
	created := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	labels := map[string]string{"org.opencontainers.image.revision": "abc", "org.opencontainers.image.source": "https://github.com/acme/todo", "org.opencontainers.image.version": "1.0.0"}
	annotations := map[string]string{"org.opencontainers.image.revision": "def", "org.opencontainers.image.source": "https://github.com/acme/index", "org.opencontainers.image.created": "2026-03-01T00:00:00Z"}
	two := []string{"linux/arm64", "linux/amd64"}
	for name, test := range map[string]struct {
		spec     registrytest.ImageSpec
		platform bool // required, so that Resolve reads a single image's configuration
		want     Facts
		requests int
	}{
		"labels of an index": {registrytest.ImageSpec{Platforms: two, Labels: labels, Created: created, Attested: true}, false,
			Facts{Revision: "abc", Source: "https://github.com/acme/todo", Version: "1.0.0", Created: created, From: "config labels"}, 2},
		"labels of one image": {registrytest.ImageSpec{Labels: labels, Created: created}, false,
			Facts{Revision: "abc", Source: "https://github.com/acme/todo", Version: "1.0.0", Created: created, From: "config labels", Platforms: []string{"linux/amd64"}}, 1},
		"configuration was read": {registrytest.ImageSpec{Labels: labels, Created: created}, true,
			Facts{Revision: "abc", Source: "https://github.com/acme/todo", Version: "1.0.0", Created: created, From: "config labels", Platforms: []string{"linux/amd64"}}, 0},
		"annotations of an index": {registrytest.ImageSpec{Platforms: two, Labels: labels, Created: created, Annotations: annotations}, false,
			Facts{Revision: "def", Source: "https://github.com/acme/index", Created: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), From: "index annotations"}, 0},
		"annotations of a manifest": {registrytest.ImageSpec{Labels: labels, Annotations: annotations}, false,
			Facts{Revision: "def", Source: "https://github.com/acme/index", Created: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), From: "manifest annotations"}, 0},
		"some here, some there": {registrytest.ImageSpec{Platforms: two, Labels: labels, Created: created, Annotations: map[string]string{"org.opencontainers.image.revision": "def"}}, false,
			Facts{Revision: "def", Source: "https://github.com/acme/todo", Version: "1.0.0", Created: created, From: "index annotations, config labels"}, 2},
		"label-schema": {registrytest.ImageSpec{Created: created, Labels: map[string]string{"org.label-schema.vcs-ref": "abc", "org.label-schema.vcs-url": "https://github.com/acme/old"}}, false,
			Facts{Revision: "abc", Source: "https://github.com/acme/old", Created: created, From: "config labels", Platforms: []string{"linux/amd64"}}, 1},
		"nothing":            {registrytest.ImageSpec{}, false, Facts{Platforms: []string{"linux/amd64"}}, 1},
		"reproducible build": {registrytest.ImageSpec{Created: time.Unix(0, 0).UTC()}, false, Facts{Platforms: []string{"linux/amd64"}}, 1},
		"from the future":    {registrytest.ImageSpec{Created: time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)}, false, Facts{Platforms: []string{"linux/amd64"}}, 1},
		"other time zone":    {registrytest.ImageSpec{Created: created.In(time.FixedZone("", 8*3600))}, false, Facts{Created: created, Platforms: []string{"linux/amd64"}}, 1},
		"hostile labels": {registrytest.ImageSpec{Labels: map[string]string{"org.opencontainers.image.revision": "a\nb\x1b[31m\u202e", "org.opencontainers.image.version": strings.Repeat("v", 10_000)}}, false,
			Facts{Revision: "a b [31m", Version: strings.Repeat("v", 500) + "…", From: "config labels", Platforms: []string{"linux/amd64"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := start(t)
			push(t, r, "acme/app:v1", test.spec)
			q := Query{Reference: reference(t, r.Host()+"/acme/app:v1")}
			if test.platform {
				q.Platforms = []string{"linux/amd64"}
			}
			resolved, err := c.Resolve(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			before := c.Requests()
			got, err := c.Facts(context.Background(), resolved.Reference)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if n := c.Requests() - before; n != test.requests {
				t.Errorf("%d requests, want %d", n, test.requests)
			}
		})
	}
}

// Without Resolve before it, and with parts of the image lost.
func TestFactsBestEffort(t *testing.T) {
	r, c := start(t)
	annotations := map[string]string{"org.opencontainers.image.revision": "abc"}
	digest := push(t, r, "acme/app:v1", registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64"}, Annotations: annotations})
	ref := image.Reference{Repository: r.Host() + "/acme/app", Digest: digest}
	r.Fail(registrytest.Match{Path: "/blobs/"}, 404, "BLOB_UNKNOWN")
	got, err := c.Facts(context.Background(), ref)
	if !errors.Is(err, ErrNotFound) || got.Revision != "abc" || got.From != "index annotations" {
		t.Errorf("%+v, %v; want what was found and the error", got, err)
	}
	if _, err := c.Facts(context.Background(), image.Reference{Repository: ref.Repository, Tag: "v1"}); err == nil {
		t.Error("facts of a tag: no error")
	}
}

// An image whose configuration cannot be read still resolves: facts are extra.
func TestNoFactsNoHarm(t *testing.T) {
	r, c := start(t)
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	r.Fail(registrytest.Match{Path: "/blobs/"}, 500, "UNKNOWN")
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")}); err != nil {
		t.Error(err)
	}
}
