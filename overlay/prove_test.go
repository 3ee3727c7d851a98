package overlay

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

const (
	proveOldDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	proveNewDigest = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	proveApp       = "ghcr.io/acme/todo-api"
)

const proveDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: todo-api
spec:
  template:
    spec:
      containers:
      - name: api
        image: ghcr.io/acme/todo-api:v1
      - name: proxy
        image: nginx:1.27
`

// proveTree is a tree as text: "-- path --" before each file.
func proveTree(t *testing.T, text string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, part := range strings.Split("\n"+text, "\n-- ")[1:] {
		name, content, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("no file in %q", part)
		}
		content = strings.ReplaceAll(content+"\n", "DEPLOYMENT\n", proveDeployment)
		files[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	return files
}

// provePinned is the edit of one file by text, as an edit of the entry name.
func provePinned(t *testing.T, files fstest.MapFS, file, name, old, new string) Edited {
	t.Helper()
	before := string(files[file].Data)
	if strings.Count(before, old) != 1 {
		t.Fatalf("%s does not hold %q once", file, old)
	}
	dir, _, _ := strings.Cut(file, "/kustomization")
	return Edited{
		Files: []File{{Path: file, Before: []byte(before), After: []byte(strings.Replace(before, old, new, 1))}},
		Changes: []Change{{Dir: dir, File: file, Line: 1, Entry: name,
			From: image.Reference{Repository: proveApp, Tag: "v1"},
			To:   image.Reference{Repository: proveApp, Tag: "v2", Digest: proveNewDigest}}},
	}
}

const proveEdit = "newTag: v2\n  digest: " + proveNewDigest

func TestProveShowsWhatTheEditMakesRun(t *testing.T) {
	files := proveTree(t, `
-- base/kustomization.yaml --
resources: [deployment.yaml]
-- base/deployment.yaml --
DEPLOYMENT
-- overlays/staging/kustomization.yaml --
namespace: todo
resources: [../../base]
images:
- name: ghcr.io/acme/todo-api
  newTag: v1
`)
	e := provePinned(t, files, "overlays/staging/kustomization.yaml", proveApp, "newTag: v1", proveEdit)
	got, err := Prove(context.Background(), files, []string{"overlays/staging"}, e, ProveRequired)
	if err != nil {
		t.Fatal(err)
	}
	want := Proof{Status: Proven, Changed: []Rendered{{
		Dir: "overlays/staging", Object: "Deployment todo/todo-api", Field: "spec.template.spec.containers[0].image", Container: "api",
		From: proveApp + ":v1", To: proveApp + ":v2@" + proveNewDigest}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
