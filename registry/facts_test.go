package registry

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/registry/registrytest"
)

func TestFactsOfIndex(t *testing.T) {
	r, c := start(t)
	ref := r.Host() + "/acme/todo-api:v1.0.0"
	created := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	push(t, r, ref, registrytest.ImageSpec{
		Platforms: []string{"linux/arm64", "linux/amd64"},
		Labels:    map[string]string{"org.opencontainers.image.revision": "abc", "org.opencontainers.image.source": "https://github.com/acme/todo"},
		Created:   created,
	})
	got, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref)})
	if err != nil {
		t.Fatal(err)
	}
	before := c.Requests()
	facts, err := c.Facts(context.Background(), got.Reference)
	if err != nil {
		t.Fatal(err)
	}
	want := Facts{Revision: "abc", Source: "https://github.com/acme/todo", Created: created, From: "config labels"}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Error(diff)
	}
	if n := c.Requests() - before; n != 2 {
		t.Errorf("facts took %d requests, want 2", n)
	}
}
