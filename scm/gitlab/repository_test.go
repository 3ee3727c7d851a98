package gitlab_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

func TestTipOfTheDefaultBranch(t *testing.T) {
	for name, rounds := range map[string]int{"main": 1, "master": 1, "trunk": 2} {
		t.Run(name, func(t *testing.T) {
			counted(t, func(t *testing.T) {
				w := start(t, slow, func(s *gitlabtest.Server, _ *gitlab.Options) { s.Store = scmtest.NewStore(name, seed()) })
				tip := w.tip("")
				if sha, _ := w.fake.Store.Branch(name); tip.Branch != name || tip.Commit.SHA != sha || tip.Protected {
					t.Errorf("got %+v", tip)
				}
				if n := w.fake.Rounds(); n != rounds {
					t.Errorf("%d rounds", n)
				}
			})
		})
	}
}

func TestTipTellsProtection(t *testing.T) {
	w := start(t)
	w.store.Protect("main")
	if !w.tip("main").Protected || !w.tip("").Protected {
		t.Error("main is protected")
	}
}

func TestTipMissing(t *testing.T) {
	w := start(t)
	_, err := w.repo.Tip(t.Context(), "tagboat/none/app")
	if !errors.Is(err, scm.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"tagboat/none/app", gitlabtest.Project, "404 Branch Not Found", "project", "branch", "token cannot see it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func TestReadDirReadsAllPages(t *testing.T) {
	w := start(t)
	var changes []scmtest.TreeChange
	for i := range 250 {
		changes = append(changes, scmtest.TreeChange{Path: fmt.Sprintf("many/f%03d", i), Content: []byte("same")})
	}
	changes = append(changes, scmtest.TreeChange{Path: "many/link", Mode: "120000", Content: []byte("f000")},
		scmtest.TreeChange{Path: "many/sub/run.sh", Mode: "100755", Content: []byte("x")})
	if _, err := w.store.PushChanges("main", "mei", "Many", changes); err != nil {
		t.Fatal(err)
	}
	files := w.repo.Files(t.Context(), w.tip("main").Commit.SHA)
	list, err := fs.ReadDir(files, "many")
	if err != nil || len(list) != 252 {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	if n := w.fake.Count("listTree"); n != 3 {
		t.Errorf("%d pages", n)
	}
	info, err := fs.Lstat(files, "many/link")
	if err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("link: %v %v", info, err)
	}
	if target, err := fs.ReadLink(files, "many/link"); err != nil || target != "f000" {
		t.Errorf("link to %q, %v", target, err)
	}
	if _, err := fs.ReadFile(files, "many/link"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a symlink was read: %v", err)
	}
	if info, err := fs.Stat(files, "many/sub/run.sh"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run.sh: %v %v", info, err)
	}
}

// A missing file is fs.ErrNotExist only where GitLab says so.
func TestMissingFiles(t *testing.T) {
	cases := []struct {
		name    string
		commit  string
		prepare func(*world)
		missing bool
		kind    error
	}{
		{"no such file", "", nil, true, nil},
		{"no such commit", strings.Repeat("ab", 20), nil, false, scm.ErrNotFound},
		{"project gone", "", func(w *world) { w.fake.Fail("", 9, 404, "404 Project Not Found") }, false, scm.ErrNotFound},
		{"forbidden", "", func(w *world) { w.fake.Fail("", 9, 403, "403 Forbidden") }, false, scm.ErrDenied},
		{"down", "", func(w *world) { w.fake.Fail("", 99, 503, nil) }, false, scm.ErrUnavailable},
		{"limited for ever", "", func(w *world) { w.fake.Throttle("", 999, 900) }, false, scm.ErrRateLimited},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			commit := c.commit
			if commit == "" {
				commit = w.tip("main").Commit.SHA
			}
			if c.prepare != nil {
				c.prepare(w)
			}
			files := w.repo.Files(t.Context(), commit)
			_, readErr := fs.ReadFile(files, "overlays/staging/none.yaml")
			_, listErr := fs.ReadDir(files, "overlays/none")
			for what, err := range map[string]error{"file": readErr, "directory": listErr} {
				if errors.Is(err, fs.ErrNotExist) != c.missing || c.kind != nil && !errors.Is(err, c.kind) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// Before 15.0 an unknown directory was an empty list.
func TestMissingDirectoryOfAnOldGitLab(t *testing.T) {
	w := start(t)
	files := w.repo.Files(t.Context(), w.tip("main").Commit.SHA)
	w.fake.Fail("listTree", 1, 200, []any{})
	if _, err := fs.ReadDir(files, "overlays/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestFilesEndWithTheirContext(t *testing.T) {
	w := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	files := w.repo.Files(ctx, w.tip("main").Commit.SHA)
	cancel()
	if _, err := fs.ReadFile(files, overlay); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLogReadsPagesAsTheyAreAskedFor(t *testing.T) {
	w := start(t)
	var want []string
	for i := range 120 {
		want = append(want, w.push("main", overlay, fmt.Sprint(i)))
		if i%3 == 0 {
			w.push("main", "base/other.txt", fmt.Sprint(i))
		}
	}
	slices.Reverse(want)
	tip := w.at("main")
	n := 0
	for c, err := range w.repo.Log(t.Context(), tip, overlay) {
		if err != nil || c.SHA != want[n] || len(c.Parents) != 1 || c.Time.IsZero() {
			t.Fatalf("%d: %+v %v", n, c, err)
		}
		if n++; n == 10 {
			break
		}
	}
	if got := w.fake.Count("listCommits"); got != 1 {
		t.Errorf("%d pages for ten commits", got)
	}
	n = 0
	for _, err := range w.repo.Log(t.Context(), tip, "") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 161 {
		t.Errorf("%d commits", n)
	}
	for _, err := range w.repo.Log(t.Context(), strings.Repeat("ab", 20), "") {
		if !errors.Is(err, scm.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func TestChanges(t *testing.T) { counted(t, changes) }

func changes(t *testing.T) {
	w := start(t, slow)
	base := w.tip("main")
	first := w.commit(w.draft(base, "v2"))
	w.push("main", "base/other.txt", "moved on")
	merge, err := w.store.MergeBranch("main", head)
	if err != nil {
		t.Fatal(err)
	}
	theirs := w.push(head, "x", "1")
	w.fake.Forget()
	got, err := w.repo.Changes(t.Context(), w.at("main"), theirs)
	if err != nil {
		t.Fatal(err)
	}
	var shas []string
	for _, c := range got.Commits {
		shas = append(shas, c.SHA)
	}
	if d := cmp.Diff([]string{theirs, merge, first.SHA}, shas); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{overlay, "x"}, got.Paths); d != "" {
		t.Error(d)
	}
	if got.MergeBase != w.at("main") || w.fake.Rounds() != 1 {
		t.Errorf("merge base %s, %d rounds", got.MergeBase, w.fake.Rounds())
	}
}

func TestChangesThatGitLabCutsShort(t *testing.T) {
	w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) { s.DiffLimit = 2 })
	base := w.at("main")
	sha, err := w.store.Push("big", "mei", "Big", map[string]string{"a": "1", "b": "2", "c": "3"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.Changes(t.Context(), base, sha); !errors.Is(err, scm.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
