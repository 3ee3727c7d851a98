package github_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

// counted runs do against a fake on which calls that are made at the same time
// are one round, by a clock that stands still while anything runs.
func counted(t *testing.T, st *scmtest.Store, do func(*testing.T, *githubtest.Server, func() *github.Repository)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := githubtest.New(t, st, githubtest.Options{InProcess: true, Delay: time.Second})
		do(t, s, func() *github.Repository {
			o := options(s)
			o.Transport.Base = s.Transport()
			r, err := github.New(o)
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
	})
}

func wantRounds(t *testing.T, s *githubtest.Server, what string, most int) {
	t.Helper()
	if got := s.Rounds(); got > most {
		t.Errorf("%s took %d rounds, want %d at most: %v", what, got, most, s.Ops())
	}
}

func TestRoundsOfAPromotion(t *testing.T) {
	counted(t, store(t), func(t *testing.T, s *githubtest.Server, open func() *github.Repository) {
		first := promote(t, open(), v2)
		wantRounds(t, s, "a new pull request", 6)
		want := []string{
			"GET branches/{branch}", "GET branches/{branch}", "GET contents/{path}", "GET git/trees/{tree_sha}",
			"GET pulls", "GET pulls", "POST git/commits", "POST git/refs", "POST git/trees", "POST pulls",
		}
		if d := cmp.Diff(want, slices.Sorted(slices.Values(s.Ops()))); d != "" {
			t.Errorf("calls of a new pull request (-want +got):\n%s", d)
		}

		s.Reset()
		second := promote(t, open(), v3)
		if second.Number != first.Number {
			t.Errorf("pull request #%d, want #%d again", second.Number, first.Number)
		}
		wantRounds(t, s, "an update", 6)
		writes := []string{"POST git/trees", "POST git/commits", "GraphQL updateRefs", "PATCH pulls/{pull_number}"}
		if d := cmp.Diff(writes, s.Writes()); d != "" {
			t.Errorf("writes of an update (-want +got):\n%s", d)
		}

		s.Reset()
		readState(t, open(), "")
		wantRounds(t, s, "the default branch, the head and the pull requests", 1)
	})
}

// A head branch without a pull request tells no node id: it is asked for while the
// objects are written.
func TestUpdateWithoutPullRequestTakesNoMoreRounds(t *testing.T) {
	st := store(t)
	if _, err := st.Push(head, "tagboat[bot]", "Promote", map[string]string{overlay: v2}); err != nil {
		t.Fatal(err)
	}
	counted(t, st, func(t *testing.T, s *githubtest.Server, open func() *github.Repository) {
		promote(t, open(), v3)
		wantRounds(t, s, "an adopted branch", 6)
	})
}

func TestRoundsOfReading(t *testing.T) {
	st := store(t)
	for i := range 3 {
		if _, err := st.Push("main", "mei", "More", map[string]string{fmt.Sprintf("apps/app-%d/overlays/staging/kustomization.yaml", i): v1}); err != nil {
			t.Fatal(err)
		}
	}
	at := tipOf(t, st, "main")
	for name, c := range map[string]struct {
		calls, rounds int
		do            func(fs.FS) error
	}{
		"a file":       {2, 1, func(f fs.FS) error { _, err := fs.ReadFile(f, overlay); return err }},
		"a file twice": {2, 1, func(f fs.FS) error { _, _ = fs.ReadFile(f, overlay); _, err := fs.ReadFile(f, overlay); return err }},
		"a directory":  {1, 1, func(f fs.FS) error { _, err := fs.ReadDir(f, path.Dir(overlay)); return err }},
		"a directory, then a file": {2, 2, func(f fs.FS) error {
			_, _ = fs.ReadDir(f, path.Dir(overlay))
			_, err := fs.ReadFile(f, overlay)
			return err
		}},
		"every overlay": {6, 3, func(f fs.FS) error { _, err := fs.Glob(f, "apps/*/overlays/staging/kustomization.yaml"); return err }},
		"what a listed one has not": {1, 1, func(f fs.FS) error {
			_, _ = fs.ReadDir(f, path.Dir(overlay))
			_, err := fs.Stat(f, path.Dir(overlay)+"/x")
			return notThere(err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			counted(t, st, func(t *testing.T, s *githubtest.Server, open func() *github.Repository) {
				if err := c.do(open().Files(t.Context(), at)); err != nil {
					t.Fatal(err)
				}
				wantRounds(t, s, name, c.rounds)
				if got := len(s.Calls()); got > c.calls {
					t.Errorf("%d calls, want %d at most: %v", got, c.calls, s.Ops())
				}
			})
		})
	}
}

func notThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%w: want fs.ErrNotExist", err)
}

func TestCostDoesNotGrowWithTheRepository(t *testing.T) {
	ops := map[string][]string{}
	for name, dirs := range map[string]int{"50 files": 1, "50,000 files": 1000} {
		st := store(t)
		grow(t, st, dirs)
		if list, err := st.Tree(tipOf(t, st, "main"), "apps"); err != nil || len(list) != dirs+1 {
			t.Fatalf("%d directories of fifty files, %v; want %d and one", len(list), err, dirs)
		}
		s := githubtest.New(t, st, githubtest.Options{})
		promote(t, open(t, s), v2)
		ops[name] = slices.Sorted(slices.Values(s.Ops()))
	}
	if d := cmp.Diff(ops["50 files"], ops["50,000 files"]); d != "" {
		t.Errorf("calls (-50 files +50,000 files):\n%s", d)
	}
}

func tipOf(t *testing.T, st *scmtest.Store, branch string) string {
	t.Helper()
	sha, ok := st.Branch(branch)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return sha
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
