package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// followFS is a file system that counts, waits and fails.
type followFS struct {
	fstest.MapFS
	mu    sync.Mutex
	asked map[string]int
	wait  time.Duration
	fail  map[string]error
}

func (f *followFS) ask(op, name string) error {
	f.mu.Lock()
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[op+" "+name]++
	err := f.fail[name]
	f.mu.Unlock()
	time.Sleep(f.wait)
	return err
}

func (f *followFS) ReadFile(name string) ([]byte, error) {
	if err := f.ask("read", name); err != nil {
		return nil, err
	}
	return f.MapFS.ReadFile(name)
}

func (f *followFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.ask("list", name); err != nil {
		return nil, err
	}
	return f.MapFS.ReadDir(name)
}

func (f *followFS) Lstat(name string) (fs.FileInfo, error) {
	if err := f.ask("stat", name); err != nil {
		return nil, err
	}
	return f.MapFS.Lstat(name)
}

func (f *followFS) Open(name string) (fs.File, error) {
	return nil, fmt.Errorf("open %s: not to be asked", name)
}

const followLevels = `
-- base/kustomization.yaml --
BASE
-- base/deployment.yaml --
DEPLOYMENT
-- apps/kustomization.yaml --
resources: [../base, ../db]
-- db/kustomization.yaml --
resources: [db.yaml]
-- db/db.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: db}
-- overlays/staging/kustomization.yaml --
resources: [../../apps, own.yaml]
patches: [{path: patches/p.yaml}]
ENTRY
-- overlays/staging/own.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: own}
-- overlays/staging/patches/p.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: own, labels: {a: b}}
`

// The reads of a proof take the levels of bases + 1 rounds beside the target's
// own listing and kustomization, which find has read; and each path is asked for
// once, although the tree is built twice.
func TestProveReadsInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := proveTree(t, followLevels)
		e := proveEdit(t, files, proveTarget)
		counted := &followFS{MapFS: files, wait: time.Second}
		start := time.Now()
		got, err := Prove(t.Context(), counted, []string{proveTarget}, e, ProveRequired)
		if err != nil || got.Status != Proven {
			t.Fatalf("%+v, %v", got, err)
		}
		const levelsOfBases = 2
		if rounds := time.Since(start); rounds != (1+levelsOfBases+1)*time.Second {
			t.Errorf("%s at a second a round, want the target's and %d more", rounds, levelsOfBases+1)
		}
		want := []string{}
		for _, dir := range []string{proveTarget, "apps", "base", "db"} {
			want = append(want, "list "+dir)
			if dir != proveTarget {
				want = append(want, "read "+dir+"/kustomization.yaml")
			}
		}
		want = append(want, "read overlays/staging/own.yaml", "read overlays/staging/patches/p.yaml", "read base/deployment.yaml", "read db/db.yaml")
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(counted.asked))); diff != "" {
			t.Error(diff)
		}
		for what, times := range counted.asked {
			if times > 1 {
				t.Errorf("%s: asked %d times", what, times)
			}
		}
	})
}

// Forty overlays cost the rounds of one.
func TestProveManyDirectoriesInTheRoundsOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := proveTree(t, proveBase)
		var dirs []string
		var all Edited
		for i := range 40 {
			dir := fmt.Sprintf("overlays/r%d", i)
			maps.Copy(files, proveTree(t, "\n-- "+dir+"/kustomization.yaml --\nOVERLAY\nENTRY\n"))
			e := proveEdit(t, files, dir)
			all.Files, all.Changes = append(all.Files, e.Files...), append(all.Changes, e.Changes...)
			dirs = append(dirs, dir)
		}
		start := time.Now()
		got, err := Prove(t.Context(), &followFS{MapFS: files, wait: time.Second}, dirs, all, ProveRequired)
		if err != nil || len(got.Changed) != 40 {
			t.Fatalf("%d images changed, %v", len(got.Changed), err)
		}
		if rounds := time.Since(start); rounds != 3*time.Second {
			t.Errorf("%s at a second a round, want 3", rounds)
		}
	})
}

// What the file system fails with is the outcome: never a skip, never a proof.
func TestProveKeepsTheFileSystemsError(t *testing.T) {
	files := proveTree(t, followLevels)
	e := proveEdit(t, files, proveTarget)
	tooMany := errors.New("429 Too Many Requests")
	for name := range files {
		if name == "overlays/staging/kustomization.yaml" {
			continue // its bytes come with the edit
		}
		for _, at := range []string{name, path.Dir(name)} {
			for _, mode := range []Mode{ProveAuto, ProveRequired} {
				got, err := Prove(t.Context(), &followFS{MapFS: files, fail: map[string]error{at: tooMany}}, []string{proveTarget}, e, mode)
				if at == "overlays/staging/patches" && err == nil {
					continue // not asked for
				}
				if !errors.Is(err, tooMany) || !strings.Contains(err.Error(), at) {
					t.Errorf("%s fails: %+v, %v; want that error", at, got, err)
				}
			}
		}
	}
}

// On a disk a path that leads over a symbolic link is not followed; the rest is
// the same as on a forge.
func TestProveOnDisk(t *testing.T) {
	disk := t.TempDir()
	files := proveTree(t, followLevels)
	for name, f := range files {
		at := filepath.Join(disk, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, f.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	e := proveEdit(t, files, proveTarget)
	if got, err := Prove(t.Context(), os.DirFS(disk), []string{proveTarget}, e, ProveRequired); err != nil || got.Status != Proven {
		t.Errorf("%+v, %v", got, err)
	}
	for _, at := range []string{"base", "base/deployment.yaml", "overlays/staging/patches"} {
		moved := filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(filepath.Join(disk, at), moved); err != nil {
			t.Fatal(err)
		}
		symlink(t, moved, filepath.Join(disk, at))
		got, err := Prove(t.Context(), os.DirFS(disk), []string{proveTarget}, e, ProveAuto)
		if err != nil || got.Status != Skipped || !strings.Contains(got.Reason, "is a symbolic link") {
			t.Errorf("%s is a link: %+v, %v", at, got, err)
		}
		if err := errors.Join(os.Remove(filepath.Join(disk, at)), os.Rename(moved, filepath.Join(disk, at))); err != nil {
			t.Fatal(err)
		}
	}
}
