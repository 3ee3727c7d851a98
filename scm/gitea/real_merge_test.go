//go:build e2e

package gitea_test

import (
	"errors"
	"testing"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteareal"
	"tagboat/scm/scmtest"
)

// TestMergeReal merges on a real server at once, bound to the head.
func TestMergeReal(t *testing.T) {
	server := realServer(t)
	if err := server.AddRepo(t.Context(), "merges", "mei"); err != nil {
		t.Fatal(err)
	}
	h := realHarness(t, t.Context(), server, "merges")
	repo := h.Repo.(*gitea.Repository)
	open := func(branch string) (number int, head string) {
		head, err := h.Person.Push(branch, "mei", "Change", map[string]string{branch + ".txt": branch})
		if err != nil {
			t.Fatal(err)
		}
		p, err := h.Person.OpenPull(scmtest.NewPull{Head: branch, Base: "main", Title: branch})
		if err != nil {
			t.Fatal(err)
		}
		return p.Number, head
	}
	number, head := open("one")
	if _, err := repo.Merge(t.Context(), scm.PullRequest{Number: number}, "1234567890123456789012345678901234567890"); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("error %v, want moved", err)
	}
	sha, err := repo.Merge(t.Context(), scm.PullRequest{Number: number}, head)
	if at, _ := h.Person.Branch("main"); err != nil || sha != at {
		t.Fatalf("merged %s, %v; main is at %s", sha, err, at)
	}
	if again, err := repo.Merge(t.Context(), scm.PullRequest{Number: number}, head); err != nil || again != sha {
		t.Errorf("again %s, %v", again, err)
	}
	if p, err := repo.Merged(t.Context(), sha); err != nil || p.Number != number || p.HeadCommit != head || p.MergedAt.IsZero() {
		t.Errorf("merged by %+v, %v", p, err)
	}
	number, head = open("two")
	if err := h.Person.ClosePullRequest(number, "mei"); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Merge(t.Context(), scm.PullRequest{Number: number}, head); !errors.Is(err, scm.ErrRefused) {
		t.Errorf("error %v, want refused", err)
	}
}

// TestAskedByWriterReal asks with the token of a writer, who is no administrator.
func TestAskedByWriterReal(t *testing.T) {
	server := realServer(t)
	if err := server.AddRepo(t.Context(), "asked", "mei"); err != nil {
		t.Fatal(err)
	}
	person := server.Person(t.Context(), "asked")
	team, err := person.AddTeam("releasers", server.Admin)
	if err != nil {
		t.Fatal(err)
	}
	repo := asUser(t, server, "mei", "asked", "write:repository", "read:organization", "read:user")
	if self, err := repo.Self(t.Context()); err != nil || self != "mei" {
		t.Errorf("self %q, %v", self, err)
	}
	for _, login := range []string{server.Admin, "nobody-here"} {
		if _, err := repo.Permission(t.Context(), login); !errors.Is(err, scm.ErrDenied) {
			t.Errorf("permission of %s: %v, want denied", login, err)
		}
	}
	if p, err := repo.Permission(t.Context(), "mei"); err != nil || p != scm.PermissionWrite {
		t.Errorf("own permission %s, %v", p, err)
	}
	if in, err := repo.Member(t.Context(), team, server.Admin); in || !errors.Is(err, scm.ErrDenied) {
		t.Errorf("member %v, %v, want denied", in, err)
	}
	narrow := asUser(t, server, "mei", "asked", "read:repository")
	for what, err := range map[string]error{
		"self":       second(narrow.Self(t.Context())),
		"member":     second(narrow.Member(t.Context(), team, "mei")),
		"set status": narrow.SetStatus(t.Context(), tipOf(t, repo), scm.Status{Context: "x", State: scm.StatusSuccess}),
	} {
		if !errors.Is(err, scm.ErrDenied) {
			t.Errorf("%s: %v, want denied", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func tipOf(t *testing.T, repo scm.Repository) string {
	t.Helper()
	tip, err := repo.Tip(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return tip.Commit.SHA
}

// tokenOf makes a user a token.
func tokenOf(t *testing.T, server *giteareal.Server, login string, scopes ...string) string {
	t.Helper()
	var made struct{ Sha1 string }
	in := map[string]any{"name": t.Name() + scopes[0], "scopes": scopes}
	if _, err := server.Call(t.Context(), login, "POST", "/users/"+login+"/tokens", in, &made); err != nil {
		t.Fatal(err)
	}
	return made.Sha1
}

// asUser opens a repository of the administrator's with a fresh token of a user.
func asUser(t *testing.T, server *giteareal.Server, login, name string, scopes ...string) *gitea.Repository {
	t.Helper()
	repo, err := gitea.New(gitea.Options{BaseURL: server.URL, Owner: server.Admin, Name: name, Token: tokenOf(t, server, login, scopes...)})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}
