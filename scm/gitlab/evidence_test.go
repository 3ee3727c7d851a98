package gitlab_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// reviewed opens a merge request that mei has approved, and pushes to it after.
func reviewed(t *testing.T, set ...func(*gitlabtest.Server, *gitlab.Options)) (*world, scmtest.Pull, string) {
	t.Helper()
	w := start(t, set...)
	first, err := w.store.Push("side", "tomas", "Change", map[string]string{"s.txt": "1"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.store.OpenPull(scmtest.NewPull{Head: "side", Base: "main", Title: "x", Author: "tomas"})
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"mei", "tomas"} {
		if _, err := w.store.Review(p.Number, who, "approved"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.store.Push("side", "tomas", "More", map[string]string{"s.txt": "2"}); err != nil {
		t.Fatal(err)
	}
	if p, err = w.store.Pull(p.Number); err != nil {
		t.Fatal(err)
	}
	return w, p, first
}

// GitLab does not tell what head an approval was for: the time does, from
// approved_at or from its note. Without either it is stale as soon as the head has
// moved, and a note that a person writes is none.
func TestApprovalsOfAnOlderHead(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*gitlabtest.Server, *gitlab.Options)
		knows bool
	}{
		"approved_at": {func(*gitlabtest.Server, *gitlab.Options) {}, true},
		"note":        {func(s *gitlabtest.Server, _ *gitlab.Options) { s.NoApprovalTimes = true }, true},
		"neither": {func(s *gitlabtest.Server, _ *gitlab.Options) {
			s.NoApprovalTimes, s.NoApprovalNotes = true, true
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, first := reviewed(t, c.set)
			if _, err := w.store.Comment(p.Number, "mei", "approved this merge request"); err != nil {
				t.Fatal(err)
			}
			list, err := w.repo.Approvals(t.Context(), scm.PullRequest{Number: p.Number, Author: "tomas", HeadCommit: p.HeadSHA})
			if err != nil || len(list) != 1 || list[0].User != "mei" || list[0].Counts() {
				t.Fatalf("approvals %+v, %v; want mei's that does not count", list, err)
			}
			want := map[bool]string{true: first, false: ""}[c.knows]
			if list[0].Commit != want || list[0].Time.IsZero() == c.knows {
				t.Errorf("%+v, want commit %q", list[0], want)
			}
		})
	}
}

func TestLevelsOfGitLab(t *testing.T) {
	w := start(t)
	for level, want := range map[string]scm.Permission{
		"none": scm.PermissionNone, "5": scm.PermissionNone, "10": scm.PermissionNone, "15": scm.PermissionNone, "20": scm.PermissionRead,
		"30": scm.PermissionWrite, "40": scm.PermissionAdmin, "50": scm.PermissionAdmin, "blocked/40": scm.PermissionNone,
	} {
		w.store.SetPermission("ida", level)
		if p, err := w.repo.Permission(t.Context(), "ida"); err != nil || p != want {
			t.Errorf("%s: %s, %v; want %s", level, p, err, want)
		}
	}
}

// A member of the group above is one of the group, as GitLab counts; not the other
// way round.
func TestGroupsAbove(t *testing.T) {
	w := start(t)
	w.store.SetTeam("platform", "", "mei")
	w.store.SetTeam("platform/releasers", "platform", "tomas")
	for _, c := range []struct {
		group, login string
		want         bool
	}{
		{"@acme/platform/releasers", "tomas", true}, {"acme/platform/releasers", "mei", true},
		{"acme/platform", "mei", true}, {"acme/platform", "tomas", false},
	} {
		if in, err := w.repo.Member(t.Context(), c.group, c.login); err != nil || in != c.want {
			t.Errorf("%s in %s: %v, %v", c.login, c.group, in, err)
		}
	}
}

func TestEvidenceDenied(t *testing.T) {
	w := start(t, func(_ *gitlabtest.Server, o *gitlab.Options) { o.Token = gitlabtest.ReadToken })
	sha := w.tip("main").Commit.SHA
	err := w.repo.SetStatus(t.Context(), sha, scm.Status{Context: "tagboat/policy", State: scm.StatusSuccess})
	if !errors.Is(err, scm.ErrDenied) || !strings.Contains(err.Error(), "scope api") {
		t.Errorf("error %v, want denied that names the scope", err)
	}
	w = start(t)
	w.fake.Fail("getMember", 1, 403, "403 Forbidden")
	if p, err := w.repo.Permission(t.Context(), "mei"); !errors.Is(err, scm.ErrDenied) || p != scm.PermissionNone {
		t.Errorf("%s, %v", p, err)
	}
	w.fake.Fail("getMember", 1, 404, "404 Project Not Found")
	if _, err := w.repo.Permission(t.Context(), "mei"); !errors.Is(err, scm.ErrNotFound) {
		t.Errorf("a project that cannot be seen: %v", err)
	}
	for _, op := range []string{"getApprovals", "listVersions", "listNotes"} {
		w, p, _ := reviewed(t)
		w.fake.Fail(op, 1, 403, "403 Forbidden")
		if list, err := w.repo.Approvals(t.Context(), scm.PullRequest{Number: p.Number}); !errors.Is(err, scm.ErrDenied) || list != nil {
			t.Errorf("%s: %v, %v", op, list, err)
		}
	}
}

func TestEvidenceCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, _ := reviewed(t, func(s *gitlabtest.Server, o *gitlab.Options) {
			s.Latency, o.BaseURL, o.Transport.Base = time.Second, "https://gitlab.example", s.Transport()
		})
		for name, c := range map[string]struct {
			do            func() error
			calls, rounds int
		}{
			"approvals": {func() error {
				_, err := w.repo.Approvals(t.Context(), scm.PullRequest{Number: p.Number})
				return err
			}, 3, 1},
			"statuses":   {func() error { _, err := w.repo.Statuses(t.Context(), p.HeadSHA); return err }, 1, 1},
			"permission": {func() error { _, err := w.repo.Permission(t.Context(), "mei"); return err }, 2, 2},
			"self":       {func() error { _, err := w.repo.Self(t.Context()); return err }, 1, 1},
		} {
			w.fake.Forget()
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if calls := len(w.fake.Calls()); calls != c.calls || w.fake.Rounds() != c.rounds {
				t.Errorf("%s: %d calls in %d rounds, want %d in %d", name, calls, w.fake.Rounds(), c.calls, c.rounds)
			}
		}
	})
}
