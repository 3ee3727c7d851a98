package gitea_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

func TestEvidenceRounds(t *testing.T) {
	for name, c := range map[string]struct {
		do            func(context.Context, *gitea.Repository, string) error
		calls, rounds int
	}{
		"statuses": {func(ctx context.Context, r *gitea.Repository, sha string) error {
			_, err := r.Statuses(ctx, sha)
			return err
		}, 2, 1},
		"set status": {func(ctx context.Context, r *gitea.Repository, sha string) error {
			return r.SetStatus(ctx, sha, scm.Status{Context: "tagboat/policy", State: scm.StatusSuccess})
		}, 1, 1},
		"permission": {func(ctx context.Context, r *gitea.Repository, _ string) error {
			_, err := r.Permission(ctx, "mei")
			return err
		}, 1, 1},
		"member": {func(ctx context.Context, r *gitea.Repository, _ string) error {
			_, err := r.Member(ctx, "acme/ops", "mei")
			return err
		}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				repo, server, store := fake(t, giteatest.Options{Latency: latency, Teams: []string{}})
				store.SetPermission("mei", "write")
				store.SetTeam("ops", "", "mei")
				sha, _ := store.Branch("main")
				for i := range 40 {
					if _, err := store.PostStatus(sha, scmtest.Status{Context: fmt.Sprint(i), State: "success", Creator: "ci"}); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.do(t.Context(), repo, sha); err != nil {
					t.Fatal(err)
				}
				if calls := len(server.Requests()); calls != c.calls || server.Rounds() != c.rounds {
					t.Errorf("%d calls in %d rounds, want %d in %d", calls, server.Rounds(), c.calls, c.rounds)
				}
			})
		})
	}
}

// What may not be asked is an error that names what is missing, and no "none".
func TestEvidenceDenied(t *testing.T) {
	self := func(r *gitea.Repository) error { _, err := r.Self(t.Context()); return err }
	member := func(r *gitea.Repository) error { _, err := r.Member(t.Context(), "ops", "mei"); return err }
	permission := func(r *gitea.Repository) error { _, err := r.Permission(t.Context(), "mei"); return err }
	org := []string{}
	for name, c := range map[string]struct {
		o     giteatest.Options
		do    func(*gitea.Repository) error
		kind  error
		names string
	}{
		"self without the scope":     {giteatest.Options{Scopes: []string{"write:repository", "write:issue"}}, self, scm.ErrDenied, "read:user"},
		"member without the scope":   {giteatest.Options{Scopes: []string{"write:repository", "write:issue"}, Teams: org}, member, scm.ErrDenied, "read:organization"},
		"member by an outsider":      {giteatest.Options{NoOrgMember: true, Teams: org}, member, scm.ErrDenied, "must be a member of organisation acme"},
		"member by another's member": {giteatest.Options{NoTeamMember: true, Teams: org}, member, scm.ErrDenied, "must be in that team"},
		"member of a hidden team":    {giteatest.Options{Version: giteatest.V127, NoTeamMember: true, Teams: org}, member, scm.ErrNotFound, "must be in that team"},
		"member of a person's":       {giteatest.Options{}, member, scm.ErrNotFound, "org does not exist"},
		"permission by a writer":     {giteatest.Options{NotRepoAdmin: true}, permission, scm.ErrDenied, "administrator of the repository"},
		"set status by a reader": {giteatest.Options{Scopes: []string{"read:repository", "read:issue"}}, func(r *gitea.Repository) error {
			return r.SetStatus(t.Context(), strings.Repeat("a", 40), scm.Status{Context: "x", State: scm.StatusSuccess})
		}, scm.ErrDenied, "write:repository"},
	} {
		t.Run(name, func(t *testing.T) {
			repo, _, store := fake(t, c.o)
			store.SetTeam("ops", "", "mei")
			store.SetPermission("mei", "write")
			if err := c.do(repo); !errors.Is(err, c.kind) || errors.Is(err, scm.ErrRefused) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error %v, want %v alone that names %q", err, c.kind, c.names)
			}
		})
	}
}

func TestWordsOfGitea(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{})
	sha, _ := store.Branch("main")
	want := map[string]scm.StatusState{
		"pending": scm.StatusPending, "success": scm.StatusSuccess, "skipped": scm.StatusPending,
		"failure": scm.StatusFailure, "error": scm.StatusFailure, "warning": scm.StatusFailure,
	}
	for word := range want {
		if _, err := store.PostStatus(sha, scmtest.Status{Context: word, State: word, Creator: "ci"}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := repo.Statuses(t.Context(), sha)
	if err != nil || len(list) != len(want) {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, s := range list {
		if s.State != want[s.Context] || s.Word != s.Context {
			t.Errorf("%+v, want %s", s, want[s.Context])
		}
	}
	for word, want := range map[string]scm.Permission{"owner": scm.PermissionAdmin, "admin": scm.PermissionAdmin, "none": scm.PermissionNone} {
		store.SetPermission("mei", word)
		if p, err := repo.Permission(t.Context(), "mei"); err != nil || p != want {
			t.Errorf("%s: %s, %v", word, p, err)
		}
	}
	if p, err := repo.Permission(t.Context(), ".."); !errors.Is(err, scm.ErrNotFound) || p != scm.PermissionNone {
		t.Errorf("%s, %v", p, err)
	}
}

// A writer asks what they may do themselves, on a server that tells nobody but
// administrators.
func TestOwnPermissionOfAWriter(t *testing.T) {
	for _, version := range []string{giteatest.V123, giteatest.V124, giteatest.V127} {
		repo, _, store := fake(t, giteatest.Options{Version: version, NotRepoAdmin: true})
		store.SetPermission("tagboat", "write")
		store.SetPermission("mei", "write")
		if p, err := repo.Permission(t.Context(), "Tagboat"); err != nil || p != scm.PermissionWrite {
			t.Errorf("%s: own permission %s, %v", version, p, err)
		}
		if p, err := repo.Permission(t.Context(), "mei"); !errors.Is(err, scm.ErrDenied) {
			t.Errorf("%s: another's permission %s, %v, want denied", version, p, err)
		}
	}
}
