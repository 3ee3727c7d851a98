package overlay

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func proveClosed(t *testing.T) closedFS {
	t.Helper()
	trees, err := follow(t.Context(), newSource(proveTree(t, proveStaging("OVERLAY\nENTRY\n"))), []string{proveTarget})
	if err != nil || trees[0].err != nil {
		t.Fatal(err, trees[0].err)
	}
	return closedFS{trees[0]}
}

func TestProveFilesAreReadOnly(t *testing.T) {
	c := proveClosed(t)
	_, create := c.Create("/x")
	for what, err := range map[string]error{
		"create": create, "mkdir": c.Mkdir("/x"), "mkdirall": c.MkdirAll("/x/y"),
		"remove": c.RemoveAll("/base"), "write": c.WriteFile("/base/deployment.yaml", nil),
	} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, want a refusal", what, err)
		}
	}
	content, err := c.ReadFile("/base/deployment.yaml")
	if err != nil || len(content) == 0 {
		t.Fatal(err)
	}
	content[0] = '#'
	if again, _ := c.ReadFile("/base/deployment.yaml"); again[0] == '#' {
		t.Error("a reader changes the tree")
	}
}

func TestProveFilesAreClosed(t *testing.T) {
	c := proveClosed(t)
	if dir, file, err := c.CleanedAbs("/overlays/staging/../../base/deployment.yaml"); dir != confirmed("/base") || file != "deployment.yaml" || err != nil {
		t.Errorf("%q, %q, %v", dir, file, err)
	}
	if dir, file, err := c.CleanedAbs("/base/"); dir != confirmed("/base") || file != "" || err != nil {
		t.Errorf("%q, %q, %v", dir, file, err)
	}
	if _, err := c.ReadFile("/base/kustomization.yml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another kustomization: %v", err)
	}
	if !c.IsDir("/base") || c.IsDir("/base/deployment.yaml") || !c.Exists("/base/deployment.yaml") || c.Exists("/etc") {
		t.Error("it is not the tree that was followed")
	}
	for what, ask := range map[string]func(){
		"read": func() { _, _ = c.ReadFile("/etc/passwd") }, "abs": func() { _, _, _ = c.CleanedAbs("/base/no.yaml") },
		"open": func() { _, _ = c.Open("/x") }, "list": func() { _, _ = c.ReadDir("/base") },
		"glob": func() { _, _ = c.Glob("*") }, "walk": func() { _ = c.Walk("/", nil) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(notFollowed); !ok {
					t.Errorf("%s: what was not followed is answered", what)
				}
			}()
			ask()
		}()
	}
}

// A file system that lost a file stops the build before kustomize tries the
// reference as a repository.
func TestProveStopsAtWhatWasNotFollowed(t *testing.T) {
	outside := followWatch(t)
	c := proveClosed(t)
	c.in.files["overlays/staging/kustomization.yaml"] = []byte("resources: [github.com/acme/base]\n")
	if _, err := build(t.Context(), c.in); !errors.As(err, new(skip)) {
		t.Errorf("%v, want a skip", err)
	}
	if calls := outside.calls(); len(calls) > 0 {
		t.Errorf("outside of the process: %q", calls)
	}
}

// An OpenAPI schema that one tree sets must not change the next tree's build.
func TestProveResetsTheSchema(t *testing.T) {
	plain := proveCase{tree: proveStaging("OVERLAY\nENTRY\npatches: [{path: p.yaml}]\n") + `-- overlays/staging/p.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: todo-api}
spec: {template: {spec: {containers: [{name: api, tty: true}]}}}
`}
	schema := proveCase{tree: proveStaging("OVERLAY\nENTRY\nopenapi: {path: schema.json}\n") + "-- overlays/staging/schema.json --\n" + `{"definitions": {}}` + "\n"}
	build := func(c proveCase) int {
		t.Helper()
		got, err := c.run(t, ProveRequired)
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Changed)
	}
	// The schema of a tree is left behind by kustomize itself.
	m := filesys.MakeFsInMemory()
	for name, f := range proveTree(t, schema.tree) {
		_ = m.WriteFile("/"+name, f.Data)
	}
	if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(m, "/"+proveTarget); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n := build(schema); n != 1 {
			t.Errorf("with a schema: %d images changed, want 1", n)
		}
		if n := build(plain); n != 1 {
			t.Errorf("after a schema: %d images changed, want 1", n)
		}
	}
}

// A build waits for the one before it no longer than the context lasts, and a
// build that takes too long is a skip.
func TestProveBuildIsBoundedInTime(t *testing.T) {
	c := proveClosed(t)
	building <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := build(ctx, c.in); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(skip)) {
		t.Errorf("while another builds: %v, want the context's error", err)
	}
	<-building
	if _, err := buildWithin(t.Context(), c.in, 0); !errors.As(err, new(skip)) {
		t.Errorf("no time at all: %v, want a skip", err)
	}
	if _, err := build(t.Context(), c.in); err != nil {
		t.Errorf("the next build: %v", err)
	}
}

// Proofs at the same time do not see each other's schema.
func TestProveAtTheSameTime(t *testing.T) {
	plain := proveStaging("OVERLAY\nENTRY\n")
	schema := proveStaging("OVERLAY\nENTRY\nopenapi: {path: schema.json}\n") + "-- overlays/staging/schema.json --\n" + `{"definitions": {}}` + "\n"
	var all sync.WaitGroup
	for i := range 8 {
		c := proveCase{tree: plain}
		if i%2 == 1 {
			c.tree = schema
		}
		files := proveTree(t, c.tree)
		e := proveEdit(t, files, proveTarget)
		all.Go(func() {
			if got, err := Prove(t.Context(), files, []string{proveTarget}, e, ProveRequired); err != nil || len(got.Changed) != 1 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
}
