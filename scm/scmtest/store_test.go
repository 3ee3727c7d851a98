package scmtest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm/scmtest"
)

func newStore(t *testing.T) *scmtest.Store {
	t.Helper()
	return scmtest.NewStore("main", map[string]string{
		"README.md":                       "hello\n",
		"overlays/staging/kustomization":  "a\n",
		"overlays/prod/kustomization":     "b\n",
		"overlays/prod/deep/er/file.yaml": "c\n",
	})
}

func tip(t *testing.T, s *scmtest.Store, branch string) string {
	t.Helper()
	sha, ok := s.Branch(branch)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return sha
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// The ids were computed by git itself: git hash-object, git write-tree.
func TestObjectIDsAreGits(t *testing.T) {
	s := newStore(t)
	e := must(s.Entry(tip(t, s, "main"), "README.md"))(t)
	want := scmtest.TreeEntry{Name: "README.md", Type: "blob", Mode: "100644", SHA: "ce013625030ba8dba906f756967f9e9ca394464a", Size: 6}
	if d := cmp.Diff(want, e); d != "" {
		t.Error(d)
	}
	empty := must(s.WriteTree("", nil))(t)
	if empty != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		t.Errorf("empty tree is %s", empty)
	}
}

func TestSetBranchRefuses(t *testing.T) {
	s := newStore(t)
	first := tip(t, s, "main")
	second := must(s.Push("main", "mei", "Second", map[string]string{"x": "1"}))(t)
	side := must(s.Push("side", "mei", "Side", map[string]string{"y": "1"}))(t)
	s.Protect("release/*")
	cases := []struct {
		name, branch, expect, sha string
		force                     bool
		want                      error
	}{
		{"exists", "main", "", side, false, scmtest.ErrBranchExists},
		{"missing", "gone", first, second, false, scmtest.ErrBranchMissing},
		{"stale", "main", first, side, true, scmtest.ErrStale},
		{"not a fast forward", "side", side, first, false, scmtest.ErrNotFastForward},
		{"below a branch", "main/x", "", first, false, scmtest.ErrNameConflict},
		{"unlawful", "a..b", "", first, false, scmtest.ErrBranchName},
		{"protected", "release/a/b", "", first, false, scmtest.ErrProtected},
		{"no commit", "new", "", "1234567890123456789012345678901234567890", false, scmtest.ErrNoObject},
		{"forced", "side", side, first, true, nil},
		{"new", "deep/new", "", first, false, nil},
		{"folder of a branch", "deep", "", first, false, scmtest.ErrNameConflict},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := s.SetBranch(c.branch, c.expect, c.sha, c.force); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestWriteTree(t *testing.T) {
	s := newStore(t)
	base := tip(t, s, "main")
	tree := must(s.WriteTree(base, []scmtest.TreeChange{
		{Path: "run.sh", Mode: "100755", Content: []byte("#!")},
		{Path: "link", Mode: "120000", Content: []byte("README.md")},
		{Path: "overlays/prod/deep/er/file.yaml", Delete: true},
		{Path: "overlays/prod/kustomization", Content: []byte("b2\n")},
	}))(t)
	list := must(s.Tree(tree, ""))(t)
	var got []string
	for _, e := range list {
		got = append(got, e.Mode+" "+e.Type+" "+e.Name)
	}
	want := []string{"100644 blob README.md", "120000 blob link", "040000 tree overlays", "100755 blob run.sh"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	paths := must(s.ChangedPaths(base, tree))(t)
	want = []string{"link", "overlays/prod/deep/er/file.yaml", "overlays/prod/kustomization", "run.sh"}
	if d := cmp.Diff(want, paths); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		change scmtest.TreeChange
		want   error
	}{
		{scmtest.TreeChange{Path: "nope", Delete: true}, fs.ErrNotExist},
		{scmtest.TreeChange{Path: "../x"}, scmtest.ErrPath},
		{scmtest.TreeChange{Path: "a/.git/config"}, scmtest.ErrPath},
		{scmtest.TreeChange{Path: "README.md/x"}, scmtest.ErrPathConflict},
		{scmtest.TreeChange{Path: "overlays"}, scmtest.ErrPathConflict},
		{scmtest.TreeChange{Path: "x", SHA: "1234567890123456789012345678901234567890"}, scmtest.ErrNoObject},
	} {
		if _, err := s.WriteTree(base, []scmtest.TreeChange{c.change}); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, want %v", c.change, err, c.want)
		}
	}
}

func TestLogFollowsAPathThroughMerges(t *testing.T) {
	s := newStore(t)
	seed := tip(t, s, "main")
	if err := s.CreateBranch("side", seed); err != nil {
		t.Fatal(err)
	}
	side := must(s.Push("side", "mei", "Side", map[string]string{"x": "1"}))(t)
	other := must(s.Push("main", "mei", "Other", map[string]string{"y": "1"}))(t)
	merge := must(s.MergeBranch("side", "main"))(t)
	shas := func(list []scmtest.CommitInfo) (out []string) {
		for _, c := range list {
			out = append(out, c.SHA)
		}
		return out
	}
	if d := cmp.Diff([]string{merge, other, side, seed}, shas(must(s.Log(merge, ""))(t))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{side}, shas(must(s.Log(merge, "x"))(t))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{merge, other}, shas(must(s.Between(side, merge))(t))); d != "" {
		t.Error(d)
	}
	if base, ok := s.MergeBase(side, other); !ok || base != seed {
		t.Errorf("merge base %s %v, want %s", base, ok, seed)
	}
}

func TestPullRequestLife(t *testing.T) {
	s := newStore(t)
	if n := s.NewIssue(); n != 1 {
		t.Fatalf("issue %d", n)
	}
	head := must(s.Push("p", "bot", "P", map[string]string{"x": "1"}))(t)
	p := must(s.OpenPull(scmtest.NewPull{Head: "p", Base: "main", Title: "P", Author: "bot"}))(t)
	if p.Number != 2 || p.HeadSHA != head {
		t.Fatalf("opened %+v", p)
	}
	if again, err := s.OpenPull(scmtest.NewPull{Head: "p", Base: "main"}); !errors.Is(err, scmtest.ErrPullExists) || again.Number != 2 {
		t.Errorf("second: %v %v", again.Number, err)
	}
	fork := must(s.OpenForkPull(scmtest.NewPull{Head: "p", Base: "main", Title: "F", Author: "eve", Fork: "eve/config"}, map[string]string{"x": "evil"}))(t)
	if fork.Number != 3 || fork.HeadSHA == head {
		t.Errorf("fork %+v", fork)
	}
	must(s.Push("main", "mei", "M", map[string]string{"y": "1"}))(t)
	updated := must(s.UpdateBranch(2))(t)
	if got := must(s.Pull(2))(t); got.HeadSHA != updated {
		t.Errorf("head did not follow: %s, want %s", got.HeadSHA, updated)
	}
	if err := s.DeleteBranch("p", head); !errors.Is(err, scmtest.ErrStale) {
		t.Errorf("delete with a stale head: %v", err)
	}
	if err := s.DeleteBranch("p", ""); err != nil {
		t.Fatal(err)
	}
	if got := must(s.Pull(2))(t); got.State != "closed" || got.HeadSHA != updated {
		t.Errorf("after deletion: %s %s", got.State, got.HeadSHA)
	}
	if err := s.ReopenPull(2); !errors.Is(err, scmtest.ErrState) {
		t.Errorf("reopen: %v", err)
	}
	if _, ok := s.Commit(updated); !ok {
		t.Error("the closed pull request's commit is gone")
	}
}

func TestHeadSetBackIntoBaseClosesThePullRequest(t *testing.T) {
	s := newStore(t)
	head := must(s.Push("p", "bot", "P", map[string]string{"x": "1"}))(t)
	must(s.OpenPull(scmtest.NewPull{Head: "p", Base: "main"}))(t)
	if err := s.SetBranch("p", head, tip(t, s, "main"), true); err != nil {
		t.Fatal(err)
	}
	if got := must(s.Pull(1))(t); got.State != "closed" {
		t.Errorf("state %s, want closed", got.State)
	}
}

func TestMergeWays(t *testing.T) {
	for _, how := range []string{"merge", "squash", "rebase"} {
		t.Run(how, func(t *testing.T) {
			s := newStore(t)
			seed := tip(t, s, "main")
			must(s.Push("p", "bot", "P1", map[string]string{"x": "1"}))(t)
			must(s.Push("p", "bot", "P2", map[string]string{"x": "2"}))(t)
			must(s.OpenPull(scmtest.NewPull{Head: "p", Base: "main", Title: "P"}))(t)
			must(s.Push("main", "mei", "M", map[string]string{"y": "1"}))(t)
			sha := must(s.MergePullRequest(1, how))(t)
			if p := must(s.Pull(1))(t); p.State != "merged" || p.MergeSHA != sha || tip(t, s, "main") != sha {
				t.Errorf("after merge: %+v", p)
			}
			paths := must(s.ChangedPaths(seed, sha))(t)
			if d := cmp.Diff([]string{"x", "y"}, paths); d != "" {
				t.Error(d)
			}
			back := must(s.Revert("main", sha))(t)
			paths = must(s.ChangedPaths(sha, back))(t)
			if d := cmp.Diff([]string{"x"}, paths); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMergeConflict(t *testing.T) {
	s := newStore(t)
	must(s.Push("p", "bot", "P", map[string]string{"README.md": "1"}))(t)
	must(s.OpenPull(scmtest.NewPull{Head: "p", Base: "main"}))(t)
	must(s.Push("main", "mei", "M", map[string]string{"README.md": "2"}))(t)
	if ok := must(s.Mergeable(1))(t); ok {
		t.Error("mergeable")
	}
	if _, err := s.MergePullRequest(1, "merge"); !errors.Is(err, scmtest.ErrConflict) {
		t.Errorf("got %v", err)
	}
}

func TestManyFilesAndManyHands(t *testing.T) {
	files := map[string]string{}
	for i := range 50_000 {
		files[fmt.Sprintf("apps/app-%d/overlays/staging/kustomization-%d.yaml", i/10, i%10)] = fmt.Sprint(i)
	}
	start := time.Now()
	s := scmtest.NewStore("main", files)
	t.Logf("seeding 50,000 files: %v", time.Since(start))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := s.Push("main", "mei", "P", map[string]string{fmt.Sprintf("new/%d", i): "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list := must(s.Tree(tip(t, s, "main"), "new"))(t)
	if len(list) != 20 {
		t.Errorf("%d files of 20", len(list))
	}
}
