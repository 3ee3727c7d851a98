package github_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

const (
	overlay = "apps/todo-api/overlays/staging/kustomization.yaml"
	v1      = "images:\n- name: todo-api\n  newTag: v1\n"
	v2      = "images:\n- name: todo-api\n  newTag: v2\n"
	v3      = "images:\n- name: todo-api\n  newTag: v3\n"
	head    = "tagboat/staging/todo-api"
)

func store(t *testing.T) *scmtest.Store {
	t.Helper()
	return scmtest.NewStore("main", map[string]string{"README.md": "# config\n", overlay: v1})
}

// state is what a promotion reads in its first round.
type state struct {
	base, head scm.Tip
	pulls      []scm.PullRequest
}

func readState(t *testing.T, r *github.Repository, base string) state {
	t.Helper()
	var s state
	g, ctx := errgroup.WithContext(t.Context())
	g.Go(func() (err error) { s.base, err = r.Tip(ctx, base); return err })
	g.Go(func() error { s.head, _ = r.Tip(ctx, head); return nil })
	g.Go(func() (err error) { s.pulls, err = r.PullRequests(ctx, head, "main"); return err })
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return s
}

func promote(t *testing.T, r *github.Repository, content string) scm.PullRequest {
	t.Helper()
	s := readState(t, r, "main")
	old, err := fs.ReadFile(r.Files(t.Context(), s.base.Commit.SHA), overlay)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Commit(t.Context(), scm.Draft{
		Branch: head, Expect: s.head.Commit.SHA, From: s.base, Message: "Promote todo-api",
		Files: []scm.File{{Path: overlay, Old: old, New: []byte(content)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := scm.Proposal{Head: head, Base: "main", HeadCommit: c.SHA, Title: "Promote todo-api", Body: "body"}
	if len(s.pulls) > 0 && s.pulls[0].State == scm.Open {
		p.Number = s.pulls[0].Number
	}
	pr, err := r.Propose(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

func TestRoundsOfAPromotion(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{Delay: 20 * time.Millisecond})
	r := open(t, s)

	first := promote(t, r, v2)
	if got := s.Rounds(); got > 6 {
		t.Errorf("a new pull request took %d rounds, want 6 at most: %v", got, s.Ops())
	}
	want := []string{
		"GET branches/{branch}", "GET branches/{branch}", "GET contents/{path}", "GET git/trees/{tree_sha}",
		"GET pulls", "GET pulls", "POST git/commits", "POST git/refs", "POST git/trees", "POST pulls",
	}
	if d := cmp.Diff(want, slices.Sorted(slices.Values(s.Ops()))); d != "" {
		t.Errorf("calls of a new pull request (-want +got):\n%s", d)
	}

	s.Reset()
	second := promote(t, open(t, s), v3)
	if second.Number != first.Number {
		t.Errorf("pull request #%d, want #%d again", second.Number, first.Number)
	}
	if got := s.Rounds(); got > 7 {
		t.Errorf("an update took %d rounds, want 7 at most: %v", got, s.Ops())
	}
	writes := []string{"POST git/trees", "POST git/commits", "GraphQL updateRefs", "PATCH pulls/{pull_number}"}
	if d := cmp.Diff(writes, s.Writes()); d != "" {
		t.Errorf("writes of an update (-want +got):\n%s", d)
	}

	s.Reset()
	readState(t, open(t, s), "")
	if got := s.Rounds(); got != 1 {
		t.Errorf("the default branch, the head and the pull requests took %d rounds: %v", got, s.Ops())
	}
}

// A head branch without a pull request tells no node id: it is asked for while the
// objects are written.
func TestUpdateWithoutPullRequestTakesNoMoreRounds(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{Delay: 20 * time.Millisecond})
	if _, err := st.Push(head, "tagboat[bot]", "Promote", map[string]string{overlay: v2}); err != nil {
		t.Fatal(err)
	}
	promote(t, open(t, s), v3)
	if got := s.Rounds(); got > 6 {
		t.Errorf("%d rounds: %v", got, s.Ops())
	}
}

func TestCostDoesNotGrowWithTheRepository(t *testing.T) {
	ops := map[string][]string{}
	for name, dirs := range map[string]int{"50 files": 1, "50,000 files": 1000} {
		st := store(t)
		grow(t, st, dirs)
		s := githubtest.New(t, st, githubtest.Options{})
		promote(t, open(t, s), v2)
		ops[name] = slices.Sorted(slices.Values(s.Ops()))
	}
	if d := cmp.Diff(ops["50 files"], ops["50,000 files"]); d != "" {
		t.Errorf("calls (-50 files +50,000 files):\n%s", d)
	}
}

// grow adds directories of fifty files each, all of them the same tree.
func grow(t *testing.T, st *scmtest.Store, dirs int) {
	t.Helper()
	var files []scmtest.TreeChange
	for i := range 50 {
		files = append(files, scmtest.TreeChange{Path: string(rune('a'+i%26)) + strings.Repeat("x", i), Content: []byte("x")})
	}
	tree, err := st.WriteTree("", files)
	if err != nil {
		t.Fatal(err)
	}
	var changes []scmtest.TreeChange
	for i := range dirs {
		changes = append(changes, scmtest.TreeChange{Path: "apps/app-" + strings.Repeat("y", i%200) + string(rune('a'+i/200)), Mode: "040000", SHA: tree})
	}
	if _, err := st.PushChanges("main", "mei", "Grow", changes); err != nil {
		t.Fatal(err)
	}
}
