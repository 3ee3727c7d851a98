package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tagboat/config"
	"tagboat/inventory"
	"tagboat/scm"
	"tagboat/scm/plaingit"
	"tagboat/scm/scmtest"
)

const (
	dir  = "overlays/staging"
	file = dir + "/kustomization.yaml"
	repo = "ghcr.io/acme/todo-api"
)

// digest is one for each letter.
func digest(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

// pinned is a kustomization that runs a letter's digest.
func pinned(letter string) string { return tagged(letter, "v-"+letter) }

func tagged(letter, tag string) string {
	return fmt.Sprintf("images:\n- name: %s\n  newTag: %s\n  digest: %s\n", repo, tag, digest(letter))
}

// world is a config repository in which staging has run a since it began.
type world struct {
	*testing.T
	store *scmtest.Store
	repo  scm.Repository
	calls atomic.Int64
}

func newWorld(t *testing.T, open open) *world {
	w := &world{T: t, store: scmtest.NewStore("main", map[string]string{file: pinned("a"), "other": "0"})}
	w.repo = open(t, w.store, scm.TransportOptions{Observe: func(scm.Try) { w.calls.Add(1) }})
	return w
}

func (w *world) tip() string {
	sha, _ := w.store.Branch("main")
	return sha
}

func (w *world) target() inventory.Target {
	return inventory.Target{Repo: w.repo, Branch: "main", Dirs: []string{dir}, Images: []config.Image{{Repository: repo}}}
}

func (w *world) must(sha string, err error) string {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return sha
}

// push pushes a file to a branch.
func (w *world) push(branch, path, content string) string {
	w.Helper()
	return w.must(w.store.Push(branch, "mei", "Change "+path, map[string]string{path: content}))
}

// merge makes a pull request of a branch and merges it.
func (w *world) merge(branch, how string) string {
	w.Helper()
	p, err := w.store.OpenPull(scmtest.NewPull{Head: branch, Base: "main", Title: branch, Author: "mei"})
	if err != nil {
		w.Fatal(err)
	}
	sha := w.must(w.store.MergePullRequest(p.Number, how))
	return sha
}

// keep merges main into a branch that keeps its own files.
func (w *world) keep(branch string) string {
	w.Helper()
	side, _ := w.store.Branch(branch)
	tree := w.must(w.store.WriteTree(side, nil))
	sha := w.must(w.store.WriteCommit(tree, []string{side, w.tip()}, "Merge main, keep ours", "mei", w.store.Now()))
	if err := w.store.ForcePush(branch, sha); err != nil {
		w.Fatal(err)
	}
	return sha
}

// mergedAt is when the pull request that made a commit was merged.
func (w *world) mergedAt(sha string) time.Time {
	for _, p := range w.store.Pulls(func(p scmtest.Pull) bool { return p.MergeSHA == sha }) {
		return p.Closed
	}
	return time.Time{}
}

// TestArrived: make builds a history and gives the commit by which what runs has
// arrived, and the digest's letter.
func TestArrived(t *testing.T) {
	for name, make := range map[string]func(w *world) (want string){
		"merged": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			w.push("main", "other", "1")
			return w.merge("tagboat/b", "merge")
		},
		"squashed": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			w.push("tagboat/b", "other", "1")
			return w.merge("tagboat/b", "squash")
		},
		"rebased": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			w.push("main", "another", "1")
			return w.merge("tagboat/b", "rebase")
		},
		"other lines, another tag and other files since": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			sha := w.merge("tagboat/b", "squash")
			w.push("main", file, "namePrefix: x-\n"+pinned("b"))
			w.push("main", file, tagged("b", "stable"))
			w.push("branch", "other", "2")
			w.merge("branch", "merge")
			return sha
		},
		"other lines by a merge": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			sha := w.merge("tagboat/b", "squash")
			w.push("branch", file, "namePrefix: x-\n"+pinned("b"))
			w.merge("branch", "merge")
			return sha
		},
		"left and came back": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			merged := w.merge("tagboat/b", "merge")
			w.must(w.store.Revert("main", merged))
			w.push("tagboat/b2", file, pinned("b"))
			return w.merge("tagboat/b2", "merge")
		},
		"a merge whose side had kept the old file": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			w.merge("tagboat/b", "squash")
			w.push("side", "another", "1") // its file is b, and never changes
			w.push("main", file, pinned("c"))
			w.keep("side")
			return w.merge("side", "merge")
		},
		"a new file name": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			sha := w.merge("tagboat/b", "squash")
			w.must(w.store.PushChanges("main", "mei", "Rename", []scmtest.TreeChange{{Path: file, Delete: true}, {Path: dir + "/kustomization.yml", Content: []byte(pinned("b"))}}))
			return sha
		},
		"a tag alone before": func(w *world) string {
			w.push("main", file, "images:\n- name: "+repo+"\n  newTag: v-b\n")
			w.push("tagboat/b", file, pinned("b"))
			return w.merge("tagboat/b", "squash")
		},
		"another entry before": func(w *world) string {
			w.push("main", file, strings.ReplaceAll(pinned("b"), repo, "ghcr.io/acme/other"))
			w.push("tagboat/b", file, pinned("b"))
			return w.merge("tagboat/b", "squash")
		},
		"broken in between": func(w *world) string {
			w.push("main", file, pinned("b"))
			w.push("main", file, "images: [\n")
			w.push("tagboat/b", file, pinned("b"))
			return w.merge("tagboat/b", "squash")
		},
		"a long time": func(w *world) string {
			w.push("tagboat/b", file, pinned("b"))
			sha := w.merge("tagboat/b", "squash")
			for i := range 120 {
				w.push("main", "other", fmt.Sprint(i))
			}
			return sha
		},
	} {
		for forge, open := range forges() {
			t.Run(name+" on "+forge, func(t *testing.T) {
				w := newWorld(t, open)
				want := make(w)
				w.calls.Store(0)
				got, err := inventory.Arrived(context.Background(), w.target(), w.tip())
				if err != nil {
					t.Fatal(err)
				}
				if got.Commit.SHA != want || !got.At.Equal(w.mergedAt(want)) {
					t.Errorf("arrived at %s %v, want %s %v", got.Commit.SHA, got.At, want, w.mergedAt(want))
				}
				if got.PullRequest == nil {
					t.Error("no pull request")
				}
			})
		}
	}
}

// TestUntold: a forge without a record, and plain git, tell no time.
func TestUntold(t *testing.T) {
	for forge, open := range forges() {
		t.Run(forge, func(t *testing.T) {
			w := newWorld(t, open)
			w.push("main", file, pinned("b"))
			w.store.ForgetMoves()
			w.untold()
		})
	}
	t.Run("git", func(t *testing.T) {
		bare, err := scmtest.NewBare(t.TempDir(), map[string]string{file: pinned("a")})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, store: bare.Store}
		if w.repo, err = plaingit.New(plaingit.Options{URL: bare.URL}); err != nil {
			t.Fatal(err)
		}
		w.push("main", file, pinned("b"))
		w.untold()
		if _, err := inventory.Checked(context.Background(), w.target(), w.tip(), inventory.Arrival{}, []string{"*"}); !errors.Is(err, inventory.ErrUntold) {
			t.Errorf("checks: %v", err)
		}
	})
}

// TestStandIn: where the forge has no record of a commit, the next that a pull
// request brought tells the time. That one's approvals are not this one's.
func TestStandIn(t *testing.T) {
	for forge, open := range forges() {
		t.Run(forge, func(t *testing.T) {
			w := newWorld(t, open)
			pushed := w.push("main", file, pinned("b"))
			w.push("side", "other", "1")
			merged := w.merge("side", "squash")
			w.store.ForgetMoves()
			got, err := inventory.Arrived(context.Background(), w.target(), w.tip())
			if err != nil || got.Commit.SHA != pushed || !got.At.Equal(w.mergedAt(merged)) || got.PullRequest != nil {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestOtherMerge: a commit that an earlier pull request had too, whose merge made
// another commit of it, came when it was pushed.
func TestOtherMerge(t *testing.T) {
	for forge, open := range forges() {
		t.Run(forge, func(t *testing.T) {
			w := newWorld(t, open)
			start := w.tip()
			b := w.push("tagboat/b", file, pinned("b"))
			w.merge("tagboat/b", "squash")
			w.push("main", file, pinned("a"))
			if err := w.store.ForcePush("main", start); err != nil {
				t.Fatal(err)
			}
			before := w.store.Now()
			if err := w.store.ForcePush("main", b); err != nil {
				t.Fatal(err)
			}
			got, err := inventory.Arrived(context.Background(), w.target(), w.tip())
			if err != nil || got.Commit.SHA != b || got.At.Before(before) || got.PullRequest != nil {
				t.Errorf("%+v, %v, want not before %v", got, err, before)
			}
		})
	}
}

func (w *world) untold() {
	w.Helper()
	got, err := inventory.Arrived(context.Background(), w.target(), w.tip())
	if !errors.Is(err, inventory.ErrUntold) || got.Commit.SHA != w.tip() || !got.At.IsZero() {
		w.Errorf("%+v, %v", got, err)
	}
	w.Log(err)
}
