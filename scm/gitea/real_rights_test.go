//go:build e2e

package gitea_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteareal"
)

// What a real Gitea says to a token or user with a right less: the fake says the same.
func TestRightsReal(t *testing.T) {
	server := realServer(t)
	for _, login := range []string{"tagboat", "li"} {
		if err := server.AddUser(t.Context(), login); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.AddRepo(t.Context(), "config", "tagboat"); err != nil {
		t.Fatal(err)
	}
	team, err := server.Person(t.Context(), "config").AddTeam("release", "mei")
	if err != nil {
		t.Fatal(err)
	}
	full := []string{"write:repository", "write:issue", "read:user", "read:organization"}
	self := func(r *gitea.Repository) error { _, err := r.Self(t.Context()); return err }
	member := func(r *gitea.Repository) error { _, err := r.Member(t.Context(), team, "mei"); return err }
	permission := func(r *gitea.Repository) error { _, err := r.Permission(t.Context(), "mei"); return err }
	commit := func(r *gitea.Repository) error {
		tip, err := r.Tip(t.Context(), "main")
		if err == nil {
			_, err = r.Commit(t.Context(), scm.Draft{From: tip, Branch: "tagboat/x/y", Message: "m", Files: []scm.File{{Path: "a", New: []byte("b\n")}}})
		}
		return err
	}
	for name, c := range map[string]struct {
		login  string
		scopes []string
		do     func(*gitea.Repository) error
		says   string
	}{
		"self without read:user":               {"tagboat", []string{"write:repository"}, self, "read:user too"},
		"member without read:organization":     {"tagboat", []string{"write:repository"}, member, "read:organization too"},
		"member, by an outsider":               {"tagboat", full, member, "must be a member of organisation"},
		"permission of another, by a writer":   {"tagboat", full, permission, "administrator of the repository"},
		"commit with read:repository":          {"tagboat", []string{"read:repository"}, commit, "write:repository too"},
		"commit by who may only read (public)": {"li", full, commit, "no write access"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := scoped(t, server, c.login, c.scopes)
			if err := c.do(repo); !errors.Is(err, scm.ErrDenied) || errors.Is(err, scm.ErrRefused) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want denied that says %q", err, c.says)
			}
			g, err := repo.Grant(t.Context())
			slices.Sort(g.Rights)
			want := slices.Sorted(slices.Values(c.scopes))
			if err != nil || g.Told != server.AtLeast(23) || g.Told && !slices.Equal(g.Rights, want) {
				t.Errorf("grant %+v, %v, want %q", g, err, want)
			}
		})
	}
}

// scoped opens the repository with a new token of a user.
func scoped(t *testing.T, server *giteareal.Server, login string, scopes []string) *gitea.Repository {
	t.Helper()
	var token struct{ SHA1 string }
	in := map[string]any{"name": strings.ReplaceAll(t.Name(), "/", " "), "scopes": scopes}
	if _, err := server.Call(t.Context(), login, http.MethodPost, "/users/"+login+"/tokens", in, &token); err != nil {
		t.Fatal(err)
	}
	repo, err := gitea.New(gitea.Options{BaseURL: server.URL, Owner: server.Admin, Name: "config", Token: token.SHA1})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}
