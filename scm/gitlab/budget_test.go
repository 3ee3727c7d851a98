package gitlab_test

import (
	"fmt"
	"io/fs"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// reading is what a promotion reads first, all at once.
func (w *world) reading() (base, at scm.Tip, all []scm.PullRequest) {
	w.t.Helper()
	var g errgroup.Group
	g.Go(func() (err error) { base, err = w.repo.Tip(w.t.Context(), "main"); return err })
	g.Go(func() error { at, _ = w.repo.Tip(w.t.Context(), head); return nil })
	g.Go(func() (err error) { all, err = w.repo.PullRequests(w.t.Context(), head, "main"); return err })
	if err := g.Wait(); err != nil {
		w.t.Fatal(err)
	}
	return base, at, all
}

// counted runs a case in a bubble where Rounds is exact.
func counted(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func slow(s *gitlabtest.Server, o *gitlab.Options) {
	s.Latency = time.Second
	o.BaseURL, o.Transport.Base = "https://gitlab.example", s.Transport()
}

// The budget: a new merge request within four sequential rounds, an update
// within five, nothing to do within two.
func TestBudget(t *testing.T) { counted(t, budget) }

func budget(t *testing.T) {
	w := start(t, slow)
	base, _, _ := w.reading()
	d := w.draft(base, "v2")
	w.propose(proposal(w.commit(d)))
	check(t, w, "new", 4, map[string]int{"getBranch": 2, "listMergeRequests": 2, "getFile": 1, "listTree": 1, "createCommit": 1, "createMergeRequest": 1})

	w.fake.Forget()
	base, at, all := w.reading()
	var g errgroup.Group
	var old []byte
	g.Go(func() error { d = w.draft(base, "v3"); return nil })
	g.Go(func() (err error) {
		old, err = fs.ReadFile(w.repo.Files(t.Context(), at.Commit.SHA), overlay)
		return err
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	d.Expect, d.OnHead = at.Commit.SHA, []scm.File{{Path: overlay, Old: old, New: d.Files[0].New}}
	c := w.commit(d)
	p := proposal(c)
	p.Number = all[0].Number
	w.propose(p)
	check(t, w, "update", 5, nil)

	w.fake.Forget()
	base, at, _ = w.reading()
	w.draft(base, "v3")
	check(t, w, "nothing to do", 2, nil)
}

func check(t *testing.T, w *world, what string, rounds int, calls map[string]int) {
	t.Helper()
	if got := w.fake.Rounds(); got > rounds {
		t.Errorf("%s: %d rounds, at most %d", what, got, rounds)
	}
	count := map[string]int{}
	for _, c := range w.fake.Calls() {
		count[c.Op]++
	}
	t.Logf("%s: %d rounds, %v", what, w.fake.Rounds(), count)
	if calls != nil && fmt.Sprint(calls) != fmt.Sprint(count) {
		t.Errorf("%s: %v calls, want %v", what, count, calls)
	}
}

// 100 files in one commit cost one commit and no look-up more.
func TestManyFilesOneCommit(t *testing.T) {
	w := start(t)
	base := w.tip("main")
	d := w.draft(base, "v2")
	for i := range 100 {
		d.Files = append(d.Files, scm.File{Path: fmt.Sprintf("new/%d", i), New: []byte("x")})
	}
	w.fake.Forget()
	w.commit(d)
	if n := len(w.fake.Calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// The cost does not grow with the repository: 50,000 files, the same calls, and
// little memory.
func TestLargeRepository(t *testing.T) {
	files := seed()
	for i := range 50_000 {
		files[fmt.Sprintf("apps/app-%d/overlays/staging/file-%d.yaml", i/10, i%10)] = "x"
	}
	w := &world{t: t, store: scmtest.NewStore("main", files)}
	w.fake = gitlabtest.New(t, w.store)
	url, stop := w.fake.Start()
	defer stop()
	var err error
	if w.repo, err = gitlab.New(gitlab.Options{BaseURL: url, Project: gitlabtest.Project, Token: gitlabtest.Token}); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	base, _, _ := w.reading()
	w.propose(proposal(w.commit(w.draft(base, "v2"))))
	runtime.ReadMemStats(&after)
	if n := len(w.fake.Calls()); n != 8 {
		t.Errorf("%d calls", n)
	}
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 100 {
		t.Errorf("%d MiB allocated", grown)
	}
}
