package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tagboat/config"
	"tagboat/inventory"
	"tagboat/record"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// counted runs Arrived and demands that it takes at most so many calls.
func (w *world) counted(target inventory.Target, atMost int) inventory.Arrival {
	w.Helper()
	w.calls.Store(0)
	a, err := inventory.Arrived(context.Background(), target, w.tip())
	if err != nil {
		w.Fatal(err)
	}
	if n := int(w.calls.Load()); n > atMost {
		w.Errorf("%d calls, at most %d", n, atMost)
	}
	return a
}

// TestCalls counts the calls of Arrived. What does not touch the files costs a
// page of the log for fifty commits, and a call for each merge.
func TestCalls(t *testing.T) {
	for forge, open := range forges() {
		t.Run(forge, func(t *testing.T) {
			w := newWorld(t, open)
			w.push("tagboat/b", file, pinned("b"))
			arrival := w.merge("tagboat/b", "squash")
			w.counted(w.target(), 9)
			for i := range 100 {
				w.push("main", "other", fmt.Sprint(i))
			}
			w.counted(w.target(), 11)
			for i := range 20 {
				w.push(fmt.Sprint("side-", i), "other", fmt.Sprint("side ", i))
				w.merge(fmt.Sprint("side-", i), "merge")
			}
			if got := w.counted(w.target(), 32); got.Commit.SHA != arrival {
				t.Errorf("arrived at %s", got.Commit.SHA)
			}
			target := w.target()
			target.Enough = w.store.Now()
			got := w.counted(target, 7)
			if !got.Earlier || got.At.After(target.Enough) || got.PullRequest != nil {
				t.Errorf("enough: %+v", got)
			}
			target.Enough = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
			if got := w.counted(target, 32); got.Earlier || got.Commit.SHA != arrival {
				t.Errorf("not enough: %+v", got)
			}
		})
	}
}

// TestSharedLine: ten apps of one branch, whose merges are judged once.
func TestSharedLine(t *testing.T) {
	files := map[string]string{}
	for i := range 10 {
		files[fmt.Sprintf("apps/%02d/kustomization.yaml", i)] = pinned("a")
	}
	w := &world{T: t, store: scmtest.NewStore("main", files)}
	w.repo = openGitLab(t, w.store, scm.TransportOptions{Observe: func(scm.Try) { w.calls.Add(1) }})
	for i := range 20 {
		w.push(fmt.Sprint("side-", i), "other", fmt.Sprint("side ", i))
		w.merge(fmt.Sprint("side-", i), "merge")
	}
	line := inventory.NewLine(w.repo, w.tip())
	for i := range 10 {
		target := inventory.Target{Repo: w.repo, Branch: "main", Dirs: []string{fmt.Sprintf("apps/%02d", i)}, Images: []config.Image{{Repository: repo}}, Line: line}
		atMost := 8
		if i == 0 {
			atMost += 40 // two calls a comparison
		}
		w.counted(target, atMost)
	}
}

// TestManyDirectories: a merge costs one comparison, however many there are.
func TestManyDirectories(t *testing.T) {
	files := map[string]string{}
	var dirs []string
	for i := range 10 {
		dirs = append(dirs, fmt.Sprintf("clusters/%02d", i))
		files[dirs[i]+"/kustomization.yaml"] = pinned("a")
	}
	for forge, open := range forges() {
		t.Run(forge, func(t *testing.T) {
			w := &world{T: t, store: scmtest.NewStore("main", files)}
			w.repo = open(t, w.store, scm.TransportOptions{Observe: func(scm.Try) { w.calls.Add(1) }})
			target := w.target()
			target.Dirs = dirs
			for i, dir := range dirs { // one after the other: all run b with the last
				w.push("tagboat/b", dir+"/kustomization.yaml", pinned("b"))
				if i == len(dirs)-1 {
					break
				}
			}
			arrival := w.merge("tagboat/b", "merge")
			w.push("side", "other", "1")
			w.merge("side", "merge")
			if got := w.counted(target, 100); got.Commit.SHA != arrival {
				t.Errorf("arrived at %s, want %s", got.Commit.SHA, arrival)
			}
			w.push("main", dirs[3]+"/kustomization.yaml", pinned("a"))
			w.push("main", dirs[3]+"/kustomization.yaml", pinned("b"))
			if got := w.counted(target, 80); got.Commit.SHA != w.tip() {
				t.Errorf("one directory left and came back: arrived at %s", got.Commit.SHA)
			}
		})
	}
}

// TestEarlier: the looking ends, with a time that is not too early.
func TestEarlier(t *testing.T) {
	w := newWorld(t, openGitea)
	var oldest string
	const limit = 60
	for i := range limit {
		if sha := w.push("main", "other", fmt.Sprint(i)); i == 0 {
			oldest = sha
		}
	}
	target := w.target()
	target.Line = inventory.NewLine(w.repo, w.tip()).Short(limit)
	got := w.counted(target, 12)
	if !got.Earlier || got.Commit.SHA != oldest {
		t.Errorf("%+v, want %s", got, oldest)
	}
	n := 0
	for _, err := range inventory.History(context.Background(), target, w.tip()) {
		if n++; err != nil && !errors.Is(err, inventory.ErrTooLong) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d stays and errors, want the one error", n)
	}
}

// TestTrailers: who asked is told whatever the merge made of the commit's message.
func TestTrailers(t *testing.T) {
	trailers := record.Trailers{App: "todo-api", Environment: "staging", Requester: "li", Edits: []record.Edit{{File: file, Entry: repo}}}
	trailers.Edits[0].Image.Repository, trailers.Edits[0].Image.Digest = repo, digest("b")
	for forge, open := range forges() {
		for _, how := range []string{"merge", "squash", "rebase"} {
			t.Run(how+" on "+forge, func(t *testing.T) {
				w := newWorld(t, open)
				w.must(w.store.Push("tagboat/b", "mei", "Promote\n\n"+trailers.String(), map[string]string{file: pinned("b")}))
				marker := record.Marker{App: "todo-api", Environment: "staging"}
				p, err := w.store.OpenPull(scmtest.NewPull{Head: "tagboat/b", Base: "main", Title: "Promote", Body: marker.String(), Author: "mei"})
				if err != nil {
					t.Fatal(err)
				}
				w.must(w.store.MergePullRequest(p.Number, how))
				if got := w.counted(w.target(), 11); got.Trailers.Requester != "li" || got.PullRequest == nil {
					t.Errorf("%+v", got)
				}
				w.push("main", file, pinned("c")) // nobody's promotion, although it merged nothing
				if got := w.counted(w.target(), 10); got.Trailers.App != "" || got.PullRequest != nil {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}
