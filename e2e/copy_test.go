//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"tagboat/image"
	"tagboat/registry"
)

// TestCopyOnRealRegistries copies an index with its children from one registry to
// another, and mounts it on one: the distribution registry refuses an index whose
// children, and a manifest whose layers, are not in the repository.
func TestCopyOnRealRegistries(t *testing.T) {
	source, target := startRegistry(t), startRegistry(t)
	digest := push(t, source+"/acme/todo-api:v1", time.Now())
	other := push(t, target+"/prod/todo-api:v1", time.Now())
	client, err := registry.New(registry.Options{Env: func(string) string { return "" }, ConfigDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	from := image.Reference{Repository: source + "/acme/todo-api", Digest: digest}
	for _, to := range []image.Reference{
		{Repository: target + "/prod/todo-api", Tag: "v2"},
		{Repository: target + "/prod/todo-api", Tag: "v2"}, // there already
		{Repository: source + "/prod/todo-api", Tag: "v1"}, // mounted
	} {
		done, err := client.Copy(t.Context(), from, to)
		if err != nil {
			t.Fatal(err)
		}
		if to.Digest = digest; done.Reference != to {
			t.Errorf("got %+v, want %s", done, to)
		}
		wantWhole(t, to.Repository+":"+to.Tag, digest)
	}
	done, err := client.Copy(t.Context(), from, image.Reference{Repository: target + "/prod/todo-api", Tag: "v1"})
	if err != nil || done.Reference.Tag != "" || !strings.Contains(strings.Join(done.Warnings, "\n"), "is "+other+" already") {
		t.Errorf("a tag of another digest: %+v, %v", done, err)
	}
	wantWhole(t, target+"/prod/todo-api:v1", other)
}

// wantWhole pulls an image with another client, down to its layers.
func wantWhole(t *testing.T, reference, digest string) {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Get(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if found.Digest.String() != digest {
		t.Errorf("%s is %s, want %s", reference, found.Digest, digest)
	}
	index, err := found.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("%s: %v", reference, err)
	}
}
