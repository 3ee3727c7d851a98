package gitea_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

func TestDirectoryIsOneCallWhateverItsDepth(t *testing.T) {
	repo, server, _ := fake(t, giteatest.Options{Store: seeded(0)})
	files := repo.Files(t.Context(), tip(t, repo, "main").Commit.SHA)
	server.Forget()
	if _, err := fs.ReadDir(files, "apps/todo-api/overlays/staging"); err != nil {
		t.Fatal(err)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests:\n%s", n, list(server))
	}
}

func TestPagedDirectory(t *testing.T) {
	store := scmtest.NewStore("main", nil)
	files := map[string]string{}
	for i := range 7 {
		files[fmt.Sprintf("d/%d.yaml", i)] = "x"
	}
	if _, err := store.Push("main", "mei", "Many", files); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{giteatest.V122, giteatest.V126} {
		repo, _, _ := fake(t, giteatest.Options{Version: version, Store: store, TreePage: 3})
		got, err := fs.ReadDir(repo.Files(t.Context(), tip(t, repo, "main").Commit.SHA), "d")
		if err != nil || len(got) != 7 {
			t.Errorf("%s: %d entries, %v", version, len(got), err)
		}
	}
}

func TestReadFileFailures(t *testing.T) {
	cases := map[string]struct {
		options giteatest.Options
		fault   giteatest.Fault
		path    string
		want    error
		says    string
	}{
		"too large":          {options: giteatest.Options{MaxBlob: 10}, path: file, says: "DEFAULT_MAX_BLOB_SIZE"},
		"git's own folder":   {path: ".git/config", want: fs.ErrNotExist},
		"a file as a folder": {path: file + "/x", want: fs.ErrNotExist},
		"unavailable":        {fault: giteatest.Fault{Method: "GET", Path: "/contents/", Status: 503, Times: 99}, path: file, want: scm.ErrUnavailable},
		"no 404 of an API":   {fault: giteatest.Fault{Method: "GET", Path: "/contents/", Status: 404, Times: 1, Body: "404 page not found"}, path: file, want: fs.ErrNotExist},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.Store = seeded(0)
			repo, server, _ := fake(t, tc.options)
			files := repo.Files(t.Context(), tip(t, repo, "main").Commit.SHA)
			server.Fail(tc.fault)
			_, err := fs.ReadFile(files, tc.path)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want %v that says %q", err, tc.want, tc.says)
			}
			if !errors.Is(tc.want, fs.ErrNotExist) && errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error %v says that the file is not there", err)
			}
		})
	}
}

func TestMissingRepositoryIsNoEmptyTree(t *testing.T) {
	repo, server, _ := fake(t, giteatest.Options{Store: seeded(0)})
	files := repo.Files(t.Context(), tip(t, repo, "main").Commit.SHA)
	server.Fail(giteatest.Fault{Method: "GET", Path: "/repos/", Status: 404, Times: 99, Body: `{"message":"not found","errors":null}`})
	_, err := fs.ReadFile(files, file)
	if !errors.Is(err, scm.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read: %v", err)
	}
	_, err = fs.ReadDir(files, "apps")
	if !errors.Is(err, scm.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list: %v", err)
	}
}

// Gitea's list of a commit's files leaves out a file that became a symlink
// (measured on 1.26.0); its diff does not.
func TestChangesTellASymlink(t *testing.T) { synctest.Test(t, changesTellASymlink) }

func changesTellASymlink(t *testing.T) {
	repo, server, store := fake(t, giteatest.Options{Store: seeded(0), Latency: latency})
	base := tip(t, repo, "main").Commit.SHA
	sha, err := store.PushChanges(head, "mei", "Link", []scmtest.TreeChange{
		{Path: file, Mode: "120000", Content: []byte("/etc/passwd")}, {Path: "ünï \"cödé\".txt", Content: []byte("x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Forget()
	c, err := repo.Changes(t.Context(), base, sha)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{file, "ünï \"cödé\".txt"}, c.Paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if r := server.Rounds(); r != 1 {
		t.Errorf("%d rounds, want one:\n%s", r, list(server))
	}
}

// Several commits: what one did and the next took back is no change.
func TestChangesOfSeveralCommitsAreNet(t *testing.T) { synctest.Test(t, changesOfSeveralCommitsAreNet) }

func changesOfSeveralCommitsAreNet(t *testing.T) {
	repo, server, store := fake(t, giteatest.Options{Store: seeded(20), Latency: latency})
	base := tip(t, repo, "main").Commit.SHA
	push(t, store, head, "README.md")
	deep := push(t, store, head, "deep/er/and/deeper.txt")
	sha, err := store.PushChanges(head, "mei", "Take back", []scmtest.TreeChange{{Path: "README.md", Delete: true}, {Path: file, Content: []byte("v2\n")}})
	if err != nil {
		t.Fatal(err)
	}
	server.Forget()
	c, err := repo.Changes(t.Context(), base, sha)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{file, "deep/er/and/deeper.txt"}, c.Paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if c.MergeBase != base || len(c.Commits) != 3 || c.Commits[1].SHA != deep {
		t.Errorf("%+v", c)
	}
	if r := server.Rounds(); r > 5 {
		t.Errorf("%d rounds:\n%s", r, list(server))
	}
}

func TestChangesAfterSeveralUpdatesOfTheBranch(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Store: seeded(0)})
	push(t, store, head, "mine.txt")
	main := ""
	for i := range 3 {
		main = push(t, store, "main", fmt.Sprintf("main-%d.txt", i))
		if _, err := store.MergeBranch("main", head); err != nil {
			t.Fatal(err)
		}
	}
	at, _ := store.Branch(head)
	later := push(t, store, "main", "later.txt")
	c, err := repo.Changes(t.Context(), later, at)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mine.txt"}, c.Paths); diff != "" || c.MergeBase != main || len(c.Commits) != 4 {
		t.Errorf("merge base %s, want %s; %d commits; paths (-want +got):\n%s", c.MergeBase, main, len(c.Commits), diff)
	}
}

func TestLogPages(t *testing.T) {
	repo, server, store := fake(t, giteatest.Options{Store: seeded(0)})
	last := ""
	for i := range 120 {
		last = push(t, store, "main", fmt.Sprintf("%d.txt", i))
	}
	for _, tc := range []struct{ take, requests int }{{10, 1}, {51, 2}, {1000, 3}} {
		server.Forget()
		n := 0
		for _, err := range repo.Log(t.Context(), last, "") {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == tc.take {
				break
			}
		}
		if got := len(server.Requests()); got != tc.requests {
			t.Errorf("%d commits took %d requests, want %d", n, got, tc.requests)
		}
	}
}

func TestLogOfAnUnknownCommitIsNotFound(t *testing.T) {
	repo, _, _ := fake(t, giteatest.Options{Store: seeded(0)})
	for _, path := range []string{"", "apps"} {
		for _, err := range repo.Log(t.Context(), "1234567890123456789012345678901234567890", path) {
			if !errors.Is(err, scm.ErrNotFound) {
				t.Errorf("%q: %v, want not found", path, err)
			}
		}
	}
}

// The commit is read beside its branch: committer's time and parents are known.
func TestTipTellsTheWholeCommit(t *testing.T) {
	repo, server, store := fake(t, giteatest.Options{Store: seeded(0)})
	before, _ := store.Branch("main")
	push(t, store, "main", "x.txt")
	if c := tip(t, repo, "main").Commit; !slices.Equal(c.Parents, []string{before}) {
		t.Errorf("parents %v, want %s", c.Parents, before)
	}
	server.Fail(giteatest.Fault{Method: "GET", Path: "/git/commits/", Status: 404, Times: 1, Body: "404 page not found"})
	if c := tip(t, repo, "main").Commit; c.SHA == "" || c.Parents != nil {
		t.Errorf("a proxy in between: %+v", c)
	}
}
