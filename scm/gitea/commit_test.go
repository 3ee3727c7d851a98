package gitea_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

func tip(t *testing.T, repo scm.Repository, branch string) scm.Tip {
	t.Helper()
	tip, err := repo.Tip(t.Context(), branch)
	if err != nil {
		t.Fatal(err)
	}
	return tip
}

// update commits v2 on a new branch and drafts v3 on it.
func update(t *testing.T, repo scm.Repository) scm.Draft {
	t.Helper()
	d := draftOf(tip(t, repo, "main"), "v2\n")
	first, err := repo.Commit(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	d.Files[0].New = []byte("v3\n")
	d.Expect, d.OnHead = first.SHA, []scm.File{{Path: file, Old: []byte("v2\n"), New: []byte("v3\n")}}
	return d
}

func push(t *testing.T, s *scmtest.Store, branch, path string) string {
	t.Helper()
	sha, err := s.Push(branch, "mei", "Change "+path, map[string]string{path: "a person was here"})
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

func noTemporary(t *testing.T, s *scmtest.Store) {
	t.Helper()
	for _, b := range s.Branches() {
		if strings.HasPrefix(b, "tagboat-tmp/") {
			t.Errorf("branch %s was left behind", b)
		}
	}
}

// A person pushes between Gitea's own comparison and git's: only the lease sees it.
func TestSwapLosesToALatePush(t *testing.T) {
	store := seeded(0)
	var person string
	o := giteatest.Options{Store: store, BeforeSwapPush: func() { person = push(t, store, head, "README.md") }}
	repo, _, _ := fake(t, o)
	_, err := repo.Commit(t.Context(), update(t, repo))
	if !errors.Is(err, scm.ErrMoved) {
		t.Errorf("error %v, want moved", err)
	}
	if at, _ := store.Branch(head); at != person {
		t.Errorf("the branch is at %s, want the person's %s", at, person)
	}
	noTemporary(t, store)
}

// The base branch moves between the reading and the commit: Gitea takes the new
// tip as the parent. Nothing of that may stay.
func TestNewBranchOnAMovedBaseIsTakenBack(t *testing.T) {
	for _, version := range []string{giteatest.V122, giteatest.V126} {
		repo, _, store := fake(t, giteatest.Options{Version: version, Store: seeded(0)})
		d := draftOf(tip(t, repo, "main"), "v2\n")
		push(t, store, "main", "README.md")
		_, err := repo.Commit(t.Context(), d)
		if !errors.Is(err, scm.ErrMoved) {
			t.Errorf("error %v, want moved", err)
		}
		if diff := cmp.Diff([]string{"main"}, store.Branches()); diff != "" {
			t.Errorf("branches (-want +got):\n%s", diff)
		}
	}
}

// A person pushes onto the new branch before it is taken back: their commit stays.
func TestTakingBackSparesAPersonsCommit(t *testing.T) {
	store := seeded(0)
	repo, server, _ := fake(t, giteatest.Options{Store: store})
	d := draftOf(tip(t, repo, "main"), "v2\n")
	push(t, store, "main", "README.md")
	var person string
	server.Before(func(r *http.Request) {
		if _, ok := store.Branch(head); ok && person == "" {
			person = push(t, store, head, "person.txt")
		}
	})
	_, err := repo.Commit(t.Context(), d)
	if !errors.Is(err, scm.ErrMoved) || !strings.Contains(err.Error(), "still there") {
		t.Errorf("error %v, want moved that says what is left", err)
	}
	if at, _ := store.Branch(head); at != person {
		t.Errorf("the branch is at %s, want the person's %s", at, person)
	}
}

func TestUpdateOnAMovedBaseLeavesTheBranch(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Store: seeded(0)})
	d := update(t, repo)
	push(t, store, "main", "README.md")
	if _, err := repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("error %v, want moved", err)
	}
	if at, _ := store.Branch(head); at != d.Expect {
		t.Errorf("the branch moved to %s", at)
	}
	noTemporary(t, store)
}

// A server without compare and swap: the branch is looked at first.
func TestAppendRefusesABranchThatMoved(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Version: giteatest.Forgejo, Store: seeded(0)})
	d := update(t, repo)
	person := push(t, store, head, "README.md")
	if _, err := repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("error %v, want moved", err)
	}
	if at, _ := store.Branch(head); at != person {
		t.Errorf("the branch is at %s, want %s", at, person)
	}
}

// The window that is left on an old server: the person's commit is kept below.
func TestAppendInTheWindowKeepsThePersonsCommit(t *testing.T) {
	store := seeded(0)
	repo, server, _ := fake(t, giteatest.Options{Version: giteatest.V125, Store: store})
	d := update(t, repo)
	var person string
	server.Before(func(r *http.Request) {
		if r.Method == http.MethodPost {
			person = push(t, store, head, "README.md")
		}
	})
	_, err := repo.Commit(t.Context(), d)
	if !errors.Is(err, scm.ErrMoved) || !strings.Contains(err.Error(), "nothing was overwritten") {
		t.Errorf("error %v, want moved that says what happened", err)
	}
	at, _ := store.Branch(head)
	if c, _ := store.Commit(at); !slices.Equal(c.Parents, []string{person}) {
		t.Errorf("the branch's commit has parents %v, want %s", c.Parents, person)
	}
}

func TestAppendPushThatCameTooLate(t *testing.T) {
	store := seeded(0)
	repo, _, _ := fake(t, giteatest.Options{Version: giteatest.V125, Store: store})
	d := update(t, repo)
	late := giteatest.Options{Version: giteatest.V125, Store: store, BeforeCommit: func() { push(t, store, head, "README.md") }}
	repo, _, _ = fake(t, late)
	if _, err := repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("error %v, want moved", err)
	}
}

func TestRebuildOnAnOldServerIsUnsupported(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Version: giteatest.V122, Store: seeded(0)})
	d := update(t, repo)
	d.Rebuild = true
	_, err := repo.Commit(t.Context(), d)
	if !errors.Is(err, scm.ErrUnsupported) || !strings.Contains(err.Error(), "1.26") || !strings.Contains(err.Error(), giteatest.V122) {
		t.Errorf("error %v, want unsupported that names both versions", err)
	}
	if at, _ := store.Branch(head); at != d.Expect {
		t.Error("the branch moved")
	}
}

func TestRebuildOfAnUnwatchedBranchOnAnOldServer(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Version: giteatest.V122, Store: seeded(0)})
	d := update(t, repo)
	d.Rebuild, d.Unwatched = true, true
	c, err := repo.Commit(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := store.Branch(head)
	made, _ := store.Commit(at)
	if at != c.SHA || len(made.Parents) != 1 || made.Parents[0] != d.From.Commit.SHA {
		t.Errorf("the branch is at %s with parents %v, want one commit on the base", at, made.Parents)
	}

	push(t, store, head, "README.md") // a person's
	person, _ := store.Branch(head)
	d.Expect = c.SHA
	if _, err := repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("error %v, want moved", err)
	}
	if at, _ := store.Branch(head); at != person {
		t.Error("a person's commit is lost")
	}
}

// A proxy answers instead of Gitea after Gitea has done the work.
func TestUnansweredWrites(t *testing.T) {
	cases := map[string]giteatest.Fault{
		"502 after a commit":          {Method: "POST", Path: "/contents", Status: 502, Applied: true},
		"no answer after a commit":    {Method: "POST", Path: "/contents", Applied: true},
		"504 after the swap":          {Method: "PUT", Path: "/branches/", Status: 504, Applied: true},
		"no answer to the swap":       {Method: "PUT", Path: "/branches/", Applied: true},
		"502 to the clean-up, undone": {Method: "DELETE", Path: "/branches/", Status: 502},
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			repo, server, store := fake(t, giteatest.Options{Store: seeded(0)})
			d := update(t, repo)
			fault.Times = 1
			server.Fail(fault)
			c, err := repo.Commit(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if at, _ := store.Branch(head); at != c.SHA {
				t.Errorf("the branch is at %s, the commit is %s", at, c.SHA)
			}
			if n := server.Count("POST /contents"); n != 2 {
				t.Errorf("POST contents was sent %d times, want one for each commit", n)
			}
			noTemporary(t, store)
		})
	}
}

func TestRefusedWrites(t *testing.T) {
	cases := map[string]struct {
		options giteatest.Options
		fault   giteatest.Fault
		want    error
		says    string
	}{
		"502 before a commit":      {fault: giteatest.Fault{Method: "POST", Path: "/contents", Status: 502}, want: scm.ErrUnavailable, says: "no such commit was seen"},
		"no answer, nothing done":  {fault: giteatest.Fault{Method: "POST", Path: "/contents"}, want: scm.ErrUnavailable, says: "no such commit was seen"},
		"read-only token":          {options: giteatest.Options{Scopes: []string{"read:repository", "read:issue"}}, want: scm.ErrDenied, says: "write:repository"},
		"archived":                 {options: giteatest.Options{Archived: true}, want: scm.ErrRefused, says: "archived"},
		"a limit that is too long": {fault: giteatest.Fault{Method: "POST", Path: "/contents", Status: 429, Header: http.Header{"Retry-After": {"86400"}}}, want: scm.ErrRateLimited},
		"too large":                {fault: giteatest.Fault{Method: "POST", Path: "/contents", Status: 413}, want: scm.ErrRefused, says: "limits the size"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.Store = seeded(0)
			repo, server, store := fake(t, tc.options)
			d := draftOf(tip(t, repo, "main"), "v2\n")
			tc.fault.Times = 1
			server.Fail(tc.fault)
			_, err := repo.Commit(t.Context(), d)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "acme/config") {
				t.Errorf("error %v, want %v that says %q and names the repository", err, tc.want, tc.says)
			}
			if diff := cmp.Diff([]string{"main"}, store.Branches()); diff != "" {
				t.Errorf("branches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDirectCommitIsAFastForward(t *testing.T) {
	for _, version := range []string{giteatest.V122, giteatest.V126} {
		repo, _, store := fake(t, giteatest.Options{Version: version, Store: seeded(0)})
		base := tip(t, repo, "main")
		d := draftOf(base, "v2\n")
		d.Branch, d.Expect = "main", base.Commit.SHA
		c, err := repo.Commit(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if at, _ := store.Branch("main"); at != c.SHA || !slices.Equal(c.Parents, []string{base.Commit.SHA}) {
			t.Errorf("main is at %s, the commit %+v", at, c)
		}
		d.Files[0].Old, d.Files[0].New = []byte("v2\n"), []byte("v3\n")
		if _, err := repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
			t.Errorf("a stale direct commit: %v, want moved", err)
		}
	}
}

func TestProtectedBranch(t *testing.T) {
	for _, version := range []string{giteatest.V122, giteatest.V125, giteatest.V126} {
		repo, _, store := fake(t, giteatest.Options{Version: version, Store: seeded(0)})
		store.Protect("main")
		base := tip(t, repo, "main")
		if !base.Protected {
			t.Error("the tip does not tell that main is protected")
		}
		d := draftOf(base, "v2\n")
		d.Branch, d.Expect = "main", base.Commit.SHA
		if _, err := repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrRefused) {
			t.Errorf("%s: error %v, want refused", version, err)
		}
		if at, _ := store.Branch("main"); at != base.Commit.SHA {
			t.Error("main moved")
		}
		noTemporary(t, store)
	}
}

func TestNewRefuses(t *testing.T) {
	cases := map[string]struct {
		options gitea.Options
		says    string
	}{
		"no URL":     {gitea.Options{Owner: "acme", Name: "config"}, "no http(s) URL"},
		"ssh":        {gitea.Options{BaseURL: "ssh://git.acme.example", Owner: "acme", Name: "config"}, "no http(s) URL"},
		"no owner":   {gitea.Options{BaseURL: "https://git.acme.example", Name: "config"}, "owner/name"},
		"three part": {gitea.Options{BaseURL: "https://git.acme.example", Owner: "acme/x", Name: "config"}, "owner/name"},
		"credential": {gitea.Options{BaseURL: "ftp://mei:hunter2@git.acme.example", Owner: "acme", Name: "config"}, "no http(s) URL"},
	}
	for name, tc := range cases {
		_, err := gitea.New(tc.options)
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want one that says %q and no secret", name, err, tc.says)
		}
	}
}

// The run is cancelled while Gitea makes the commit: the temporary branch goes.
func TestCancelledUpdateLeavesNoTemporaryBranch(t *testing.T) {
	repo, server, store := fake(t, giteatest.Options{Store: seeded(0)})
	d := update(t, repo)
	ctx, cancel := context.WithCancel(t.Context())
	server.Before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			cancel()
		}
	})
	_, _ = repo.Commit(ctx, d) // the swap may have been done or not
	noTemporary(t, store)
}

// A server that hides its version and has no compare and swap: the branch is
// appended to, and the temporary branch goes.
func TestHiddenOldVersionAppends(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Version: giteatest.V122, HideVersion: true, Store: seeded(0)})
	d := update(t, repo)
	c, err := repo.Commit(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if at, _ := store.Branch(head); at != c.SHA || !slices.Equal(c.Parents, []string{d.Expect}) {
		t.Errorf("the branch is at %s, the commit %+v, want it on %s", at, c, d.Expect)
	}
	noTemporary(t, store)
}

// The branch is deleted between the reading and the swap.
func TestSwapOfABranchThatHasGone(t *testing.T) {
	for _, version := range []string{giteatest.V126, giteatest.V127} {
		repo, server, store := fake(t, giteatest.Options{Version: version, Store: seeded(0)})
		d := update(t, repo)
		server.Before(func(r *http.Request) {
			if r.Method == http.MethodPut {
				_ = store.DeleteBranch(head, "")
			}
		})
		if _, err := repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
			t.Errorf("%s: error %v, want moved", version, err)
		}
		noTemporary(t, store)
	}
}
