//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const registryConfig = `version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: %s}
  delete: {enabled: true}
http:
  addr: %s
`

// startRegistry starts the distribution registry and returns its host and port.
func startRegistry(t *testing.T) string {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	config := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, registryConfig, filepath.Join(dir, "data"), address), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := exec.CommandContext(context.WithoutCancel(t.Context()), tool(t, "TAGBOAT_REGISTRY"), "serve", config)
	serve.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	server(t, "http://"+address+"/v2/", serve)
	return address
}

// push builds an image for two platforms, as a CI build would, and returns the
// digest of its index.
func push(t *testing.T, reference string, created time.Time) string {
	t.Helper()
	return pushBuilt(t, reference, created, "https://git.example/acme/todo", strings.Repeat("c0ffee12", 5))
}

// pushBuilt is push of an image that says of which commit it was built.
func pushBuilt(t *testing.T, reference string, created time.Time, source, revision string) string {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "arm64"} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        buildImage(t, architecture, created),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	annotated := mutate.Annotations(index, map[string]string{
		"org.opencontainers.image.created":  created.Format(time.RFC3339),
		"org.opencontainers.image.revision": revision,
		"org.opencontainers.image.source":   source,
	}).(v1.ImageIndex)
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, annotated, remote.WithContext(t.Context())); err != nil {
		t.Fatalf("push %s: %v", reference, err)
	}
	digest, err := annotated.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func buildImage(t *testing.T, architecture string, created time.Time) v1.Image {
	t.Helper()
	image, err := random.Image(256, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: created}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return mutate.MediaType(image, types.OCIManifestSchema1)
}
