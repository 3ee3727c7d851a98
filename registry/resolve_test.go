package registry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
	"tagboat/registry/registrytest"
)

// clock is time that passes only when someone sleeps.
type clock struct{ now time.Time }

// start is a running registry, and a client that finds no credential anywhere.
func start(t *testing.T, options ...registrytest.Option) (*registrytest.Registry, *Client) {
	t.Helper()
	r := registrytest.New(options...)
	t.Cleanup(r.Close)
	return r, newClient(t, Options{})
}

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Env == nil {
		o.Env = env(nil)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func env(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func push(t *testing.T, r *registrytest.Registry, ref string, spec registrytest.ImageSpec) string {
	t.Helper()
	digest, err := r.PushImage(ref, spec)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func reference(t *testing.T, s string) image.Reference {
	t.Helper()
	ref, err := image.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestResolveIndex(t *testing.T) {
	r, c := start(t)
	ref := r.Host() + "/acme/todo-api:v1.0.0"
	digest := push(t, r, ref, registrytest.ImageSpec{Platforms: []string{"linux/amd64", "linux/arm64/v8"}, Attested: true})
	got, err := c.Resolve(context.Background(), Query{Reference: reference(t, ref), Platforms: []string{"linux/arm64", "linux/amd64"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Image{
		Reference: reference(t, ref+"@"+digest),
		MediaType: "application/vnd.oci.image.index.v1+json",
		Platforms: []string{"linux/amd64", "linux/arm64"},
		Checked:   []string{"linux/arm64", "linux/amd64"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(r.Requests()); n != 4 || c.Requests() != 4 { // ping, GET, two HEADs
		t.Errorf("%d requests arrived, %d counted: %v", n, c.Requests(), r.Requests())
	}
	if err := c.Exists(context.Background(), got.Reference); err != nil {
		t.Error(err)
	}
	if err := c.Exists(context.Background(), reference(t, r.Host()+"/acme/todo-api@sha256:"+digest[8:70]+"00")); !errors.Is(err, ErrNotFound) {
		t.Errorf("Exists of another digest = %v, want ErrNotFound", err)
	}
}

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
