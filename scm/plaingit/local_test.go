package plaingit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"tagboat/scm"
	"tagboat/scm/plaingit"
)

func bareDraft(t *testing.T, r *plaingit.Repository, branch string) scm.Draft {
	t.Helper()
	tip, err := r.Tip(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return scm.Draft{Branch: branch, From: tip, Message: "Promote",
		Files: []scm.File{{Path: "README.md", Old: []byte("first\n"), New: []byte("second\n")}}}
}

func TestALockedBranchIsWaitedFor(t *testing.T) {
	bare := newBare(t)
	r := open(t, plaingit.Options{URL: bare.URL})
	d := bareDraft(t, r, "tagboat/staging/app")
	lock := filepath.Join(bare.Dir, "refs/heads/tagboat/staging/app.lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Commit(ctx, d); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while locked: %v", err)
	}
	if at, ok := bare.Branch(d.Branch); ok {
		t.Errorf("the branch is at %s though it was locked", at)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(t.Context(), d); err != nil {
		t.Errorf("after the lock: %v", err)
	}
	if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stays: %v", err)
	}
}

func TestPackedBranchesAndEmptyFolders(t *testing.T) {
	bare := newBare(t)
	r := open(t, plaingit.Options{URL: bare.URL})
	d := bareDraft(t, r, "tagboat/staging/app")
	first, err := r.Commit(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	disk := filesystem.NewStorage(osfs.New(bare.Dir), cache.NewObjectLRUDefault())
	if err := disk.PackRefs(); err != nil {
		t.Fatal(err)
	}
	d.Expect = first.SHA
	d.Files[0].New = []byte("third\n")
	second, err := r.Commit(t.Context(), d)
	if err != nil {
		t.Fatalf("update of a packed branch: %v", err)
	}
	if err := disk.PackRefs(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context(), scm.PullRequest{Head: d.Branch, Base: "main", HeadCommit: first.SHA}, ""); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("close at an old head: %v", err)
	}
	if err := r.Close(t.Context(), scm.PullRequest{Head: d.Branch, Base: "main", HeadCommit: second.SHA}, ""); err != nil {
		t.Fatal(err)
	}
	if at, ok := bare.Branch(d.Branch); ok {
		t.Errorf("the deleted branch is at %s", at)
	}
	d.Branch, d.Expect = "tagboat/staging", ""
	if _, err := r.Commit(t.Context(), d); err != nil {
		t.Errorf("a branch where a folder was: %v", err)
	}
}

func TestCheckedOutBranchIsRefused(t *testing.T) {
	bare := newBare(t)
	work := t.TempDir()
	if err := os.Rename(bare.Dir, filepath.Join(work, ".git")); err != nil {
		t.Fatal(err)
	}
	r := open(t, plaingit.Options{URL: "file://" + work})
	d := bareDraft(t, r, "main")
	d.Expect = d.From.Commit.SHA
	if _, err := r.Commit(t.Context(), d); !errors.Is(err, scm.ErrRefused) {
		t.Errorf("got %v", err)
	}
	d.Branch, d.Expect = "side", ""
	if _, err := r.Commit(t.Context(), d); err != nil {
		t.Errorf("another branch: %v", err)
	}
}

func TestUnlawfulBranchIsRefused(t *testing.T) {
	bare := newBare(t)
	r := open(t, plaingit.Options{URL: bare.URL})
	for _, name := range []string{"", "a..b", "../x", "a b", "x.lock", "-x/\x00"} {
		if _, err := r.Commit(t.Context(), bareDraft(t, r, name)); !errors.Is(err, scm.ErrRefused) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestSquashedProposalIsNone(t *testing.T) {
	bare := newBare(t)
	r := open(t, plaingit.Options{URL: bare.URL})
	d := bareDraft(t, r, "tagboat/staging/app")
	if _, err := r.Commit(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Push("main", "mei", "Squashed by hand", map[string]string{"README.md": "second\n", "x": "1"}); err != nil {
		t.Fatal(err)
	}
	list, err := r.PullRequests(t.Context(), d.Branch, "main")
	if err != nil || len(list) != 0 {
		t.Errorf("listed %+v, %v", list, err)
	}
}
