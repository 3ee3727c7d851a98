package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

func post(t *testing.T, st *scmtest.Store, sha string, list ...scmtest.Status) {
	t.Helper()
	for _, s := range list {
		if _, err := st.PostStatus(sha, s); err != nil {
			t.Fatal(err)
		}
	}
}

// Every word of GitHub's, and what it is: docs.github.com/rest/checks/runs and
// /rest/commits/statuses.
func TestStatesOfChecks(t *testing.T) {
	words := map[string]scm.StatusState{
		"queued": scm.StatusPending, "in_progress": scm.StatusPending, "waiting": scm.StatusPending, "requested": scm.StatusPending, "pending": scm.StatusPending,
		"completed/success": scm.StatusSuccess, "completed/skipped": scm.StatusPending, "completed/neutral": scm.StatusPending,
		"completed/failure": scm.StatusFailure, "completed/cancelled": scm.StatusFailure, "completed/timed_out": scm.StatusFailure,
		"completed/action_required": scm.StatusFailure,
	}
	st := seeded()
	s := githubtest.New(t, st, githubtest.Options{})
	sha := tipOf(t, st, "main")
	for word := range words {
		post(t, st, sha, scmtest.Status{Context: word, State: word, Creator: "ci", CheckRun: true, URL: "https://ci.example/1", Description: "run"})
	}
	post(t, st, sha, scmtest.Status{Context: "posted", State: "error", Creator: "flux"})
	words["posted"] = scm.StatusFailure
	list, err := open(t, s).Statuses(t.Context(), sha)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]scm.StatusState{}
	for _, x := range list {
		got[x.Context] = x.State
		if want := x.Context[strings.Index(x.Context, "/")+1:]; x.Word != want && x.Context != "posted" {
			t.Errorf("%s: word %q, want %q", x.Context, x.Word, want)
		}
	}
	if d := cmp.Diff(words, got); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
}

// A status and the check runs of two apps may have one name: none hides another.
func TestContextsOfOneName(t *testing.T) {
	st := seeded()
	s := githubtest.New(t, st, githubtest.Options{})
	sha := tipOf(t, st, "main")
	post(t, st, sha,
		scmtest.Status{Context: "e2e", State: "completed/failure", Creator: "ci", CheckRun: true},
		scmtest.Status{Context: "e2e", State: "completed/success", Creator: "ci", CheckRun: true},
		scmtest.Status{Context: "e2e", State: "completed/failure", Creator: "other", CheckRun: true},
		scmtest.Status{Context: "e2e", State: "pending", Creator: "mei"})
	list, err := open(t, s).Statuses(t.Context(), sha)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range list {
		got = append(got, fmt.Sprint(x.Context, " ", x.Creator, " ", x.State))
	}
	if d := cmp.Diff([]string{"e2e ci success", "e2e mei pending", "e2e other failure"}, got); d != "" {
		t.Errorf("statuses (-want +got):\n%s", d)
	}
}

func TestEvidenceRounds(t *testing.T) {
	st := seeded()
	sha := tipOf(t, st, "main")
	for i := range 250 {
		post(t, st, sha, scmtest.Status{Context: fmt.Sprint("run ", i), State: "queued", Creator: "ci", CheckRun: true})
	}
	for name, c := range map[string]struct {
		do            func(context.Context, *github.Repository) error
		calls, rounds int
	}{
		"statuses and three pages of runs": {func(ctx context.Context, r *github.Repository) error { _, err := r.Statuses(ctx, sha); return err }, 4, 3},
		"set status": {func(ctx context.Context, r *github.Repository) error {
			return r.SetStatus(ctx, sha, scm.Status{Context: "tagboat/policy", State: scm.StatusSuccess})
		}, 1, 1},
		"permission": {func(ctx context.Context, r *github.Repository) error { _, err := r.Permission(ctx, "mei"); return err }, 1, 1},
		"member": {func(ctx context.Context, r *github.Repository) error {
			_, err := r.Member(ctx, "acme/ops", "mei")
			return err
		}, 1, 1},
		"no member": {func(ctx context.Context, r *github.Repository) error {
			_, err := r.Member(ctx, "ops", "tomas")
			return err
		}, 2, 2},
		"self": {func(ctx context.Context, r *github.Repository) error { _, err := r.Self(ctx); return err }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := githubtest.New(t, st, githubtest.Options{InProcess: true, Delay: time.Second})
				st.SetPermission("mei", "maintain")
				st.SetTeam("ops", "", "mei")
				o := options(s)
				o.Transport.Base = s.Transport()
				r, err := github.New(o)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.do(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if got := len(s.Calls()); got != c.calls || s.Rounds() != c.rounds {
					t.Errorf("%d calls in %d rounds, want %d in %d: %v", got, s.Rounds(), c.calls, c.rounds, s.Ops())
				}
			})
		})
	}
}

// Missing permissions are errors that name what is missing, and never an empty
// answer.
func TestEvidenceDenied(t *testing.T) {
	st := seeded()
	sha := tipOf(t, st, "main")
	st.SetPermission("mei", "write")
	st.SetTeam("ops", "", "mei")
	statuses := func(r *github.Repository) error { _, err := r.Statuses(t.Context(), sha); return err }
	set := func(r *github.Repository) error {
		return r.SetStatus(t.Context(), sha, scm.Status{Context: "x", State: scm.StatusSuccess})
	}
	member := func(r *github.Repository) error { _, err := r.Member(t.Context(), "ops", "mei"); return err }
	permission := func(r *github.Repository) error { _, err := r.Permission(t.Context(), "mei"); return err }
	for name, c := range map[string]struct {
		lacks, names string
		do           func(*github.Repository) error
	}{
		"statuses": {"statuses", "statuses:read", statuses}, "checks": {"checks", "checks:read", statuses},
		"set": {"statuses", "statuses:write", set}, "member": {"members", "members:read", member},
		"permission": {"administration", "push access", permission},
	} {
		t.Run(name, func(t *testing.T) {
			s := githubtest.New(t, st, githubtest.Options{Lacks: []string{c.lacks}})
			err := c.do(open(t, s))
			if !errors.Is(err, scm.ErrDenied) || !strings.Contains(fmt.Sprint(err), c.names) {
				t.Errorf("error %v, want denied that names %s", err, c.names)
			}
		})
	}
	t.Run("a personal token that may not write", func(t *testing.T) {
		s := githubtest.New(t, st, githubtest.Options{})
		s.Fail("POST statuses/{sha}", 1, githubtest.Answer{Status: http.StatusNotFound, Message: "Not Found"})
		if err := set(open(t, s)); !errors.Is(err, scm.ErrDenied) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a limit is no denial", func(t *testing.T) {
		s := githubtest.New(t, st, githubtest.Options{})
		s.Fail("GET commits/{ref}/check-runs", -1, githubtest.Answer{
			Status: http.StatusForbidden, Message: "You have exceeded a secondary rate limit", Header: map[string]string{"Retry-After": "86400"},
		})
		if err := statuses(open(t, s)); !errors.Is(err, scm.ErrRateLimited) || errors.Is(err, scm.ErrDenied) {
			t.Errorf("error %v", err)
		}
	})
}

// An App's token has the rights of the call and no others, so that an App without
// them promotes all the same.
func TestAppRights(t *testing.T) {
	key := newKey(t)
	st := seeded()
	sha := tipOf(t, st, "main")
	st.SetTeam("ops", "", "mei")
	s := githubtest.New(t, st, githubtest.Options{App: &githubtest.FakeApp{ID: "7", Key: &key.PublicKey, InstallationID: 9, Lacks: []string{"members"}}})
	o := options(s)
	o.Token, o.App = "", &github.App{ID: "7", PrivateKey: pkcs1(key)}
	r, err := github.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tip(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Statuses(t.Context(), sha); err != nil {
			t.Fatal(err)
		}
		if err := r.SetStatus(t.Context(), sha, scm.Status{Context: "tagboat/policy", State: scm.StatusPending}); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(s.Ops(), "POST app/installations/{installation_id}/access_tokens"); n != 3 {
		t.Errorf("%d tokens minted, want one for each set of rights", n)
	}
	_, err = r.Member(t.Context(), "ops", "mei")
	if !errors.Is(err, scm.ErrDenied) || !strings.Contains(err.Error(), "members:read") {
		t.Errorf("error %v, want one that names members:read", err)
	}
	if self, err := r.Self(t.Context()); err != nil || self != "tagboat[bot]" {
		t.Errorf("self %q, %v", self, err)
	}
}

func TestPermissionByRole(t *testing.T) {
	st := seeded()
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	for role, want := range map[string]scm.Permission{
		"none": scm.PermissionNone, "read": scm.PermissionRead, "triage": scm.PermissionRead, "write": scm.PermissionWrite,
		"maintain": scm.PermissionWrite, "admin": scm.PermissionAdmin, "release manager/write": scm.PermissionWrite, "guest/none": scm.PermissionNone,
	} {
		st.SetPermission("mei", role)
		if got, err := r.Permission(t.Context(), "mei"); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", role, got, err, want)
		}
	}
	if got, err := r.Permission(t.Context(), "../../x"); !errors.Is(err, scm.ErrNotFound) || got != scm.PermissionNone {
		t.Errorf("%s, %v", got, err)
	}
}

func TestNestedTeams(t *testing.T) {
	st := seeded()
	st.SetTeam("platform", "", "anna", "ida?")
	st.SetTeam("releasers", "platform", "mei")
	r := open(t, githubtest.New(t, st, githubtest.Options{}))
	for login, want := range map[string]bool{"anna": true, "mei": true, "ida": false, "tomas": false} {
		if in, err := r.Member(t.Context(), "@acme/platform", login); err != nil || in != want {
			t.Errorf("%s: %v, %v; want %v", login, in, err, want)
		}
	}
	if in, err := r.Member(t.Context(), "other/platform", "mei"); in || !errors.Is(err, scm.ErrNotFound) {
		t.Errorf("another organisation: %v, %v", in, err)
	}
	if in, err := r.Member(t.Context(), "acme/a/b", "mei"); in || !errors.Is(err, scm.ErrNotFound) {
		t.Errorf("no team: %v, %v", in, err)
	}
}

// A commit of a branch that went to two bases: the one that made the commit, else
// the one that came last.
func TestMergedOfSeveral(t *testing.T) {
	st := seeded()
	if _, err := st.Push("develop", "mei", "Start", map[string]string{"d.txt": "d"}); err != nil {
		t.Fatal(err)
	}
	sha, err := st.Push("side", "mei", "Change", map[string]string{"s.txt": "s"})
	if err != nil {
		t.Fatal(err)
	}
	var merges []string
	for _, base := range []string{"develop", "main"} {
		p, err := st.OpenPull(scmtest.NewPull{Head: "side", Base: base, Title: base, Author: "mei"})
		if err != nil {
			t.Fatal(err)
		}
		merge, err := st.MergePullRequest(p.Number, "merge")
		if err != nil {
			t.Fatal(err)
		}
		merges = append(merges, merge)
	}
	r := open(t, githubtest.New(t, st, githubtest.Options{}))
	for sha, base := range map[string]string{sha: "main", merges[0]: "develop", merges[1]: "main"} {
		if p, err := r.Merged(t.Context(), sha); err != nil || p.Base != base {
			t.Errorf("%s came by #%d to %q, %v; want %s", sha, p.Number, p.Base, err, base)
		}
	}
}

func TestApprovalsOfMany(t *testing.T) {
	st := seeded()
	if _, err := st.Push("side", "mei", "Change", map[string]string{"s.txt": "s"}); err != nil {
		t.Fatal(err)
	}
	p, err := st.OpenPull(scmtest.NewPull{Head: "side", Base: "main", Title: "x", Author: "mei"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct{ who, what string }{{"anna", "approved"}, {"Mei", "approved"}, {"tomas", "approved"}, {"tomas", "commented"}, {"anna", "changes_requested"}} {
		if _, err := st.Review(p.Number, v.who, v.what); err != nil {
			t.Fatal(err)
		}
	}
	for range 120 {
		if _, err := st.Review(p.Number, "ida", "commented"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Review(p.Number, "nina", "approved"); err != nil {
		t.Fatal(err)
	}
	s := githubtest.New(t, st, githubtest.Options{})
	list, err := open(t, s).Approvals(t.Context(), scm.PullRequest{Number: p.Number, Author: "mei", HeadCommit: p.HeadSHA})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range list {
		got = append(got, fmt.Sprint(a.User, " ", a.Counts()))
		if a.Commit != p.HeadSHA || a.Time.IsZero() {
			t.Errorf("%+v", a)
		}
	}
	if d := cmp.Diff([]string{"anna false", "tomas true", "nina true"}, got); d != "" {
		t.Errorf("approvals (-want +got):\n%s", d)
	}
	if !slices.Equal(s.Ops(), []string{"GET pulls/{pull_number}/reviews", "GET pulls/{pull_number}/reviews"}) {
		t.Errorf("calls %v", s.Ops())
	}
}

func TestTooManyStatuses(t *testing.T) {
	st := seeded()
	sha := tipOf(t, st, "main")
	for range 1000 {
		post(t, st, sha, scmtest.Status{Context: "tagboat/policy", State: "pending"})
	}
	r := open(t, githubtest.New(t, st, githubtest.Options{}))
	err := r.SetStatus(t.Context(), sha, scm.Status{Context: "tagboat/policy", State: scm.StatusSuccess})
	if !errors.Is(err, scm.ErrRefused) || !strings.Contains(err.Error(), "maximum number of statuses") {
		t.Errorf("error %v", err)
	}
}

// Without updateRefs a direct commit is compared all the same: it is no force.
func TestDirectCommitOverREST(t *testing.T) {
	st := seeded()
	s := githubtest.New(t, st, githubtest.Options{NoGraphQL: true})
	r := open(t, s)
	tip, err := r.Tip(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	d := scm.Draft{
		Branch: "main", Expect: tip.Commit.SHA, From: tip, Message: "Promote",
		Files: []scm.File{{Path: "README.md", Old: []byte("# config\n"), New: []byte("# promoted\n")}},
	}
	person := ""
	s.Before("PATCH git/refs/{ref}", func() {
		if person, err = st.Push("main", "mei", "Between", map[string]string{"other.txt": "x"}); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("error %v, want moved", err)
	}
	if at := tipOf(t, st, "main"); at != person {
		t.Errorf("main is at %s, want the person's %s", at, person)
	}
	if w := r.About().Warnings; slices.ContainsFunc(w, func(x string) bool { return strings.Contains(x, "updateRefs") }) {
		t.Errorf("warnings %v of a commit that was compared", w)
	}
}

func TestMergeIsRefused(t *testing.T) {
	st := seeded()
	s := githubtest.New(t, st, githubtest.Options{MergeBlocked: "Changes must be made through the merge queue"})
	if _, err := st.Push("side", "mei", "Change", map[string]string{"s.txt": "s"}); err != nil {
		t.Fatal(err)
	}
	p, err := st.OpenPull(scmtest.NewPull{Head: "side", Base: "main", Title: "x", Author: "mei"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = open(t, s).Merge(t.Context(), scm.PullRequest{Number: p.Number}, p.HeadSHA)
	if !errors.Is(err, scm.ErrRefused) || !strings.Contains(err.Error(), "merge queue") {
		t.Errorf("error %v", err)
	}
	if _, err := open(t, s).Merge(t.Context(), scm.PullRequest{Number: p.Number}, ""); err == nil {
		t.Error("merged without a head commit")
	}
}

// An answer that was lost does not make a merge that was done fail.
func TestMergeWithoutAnswer(t *testing.T) {
	st := seeded()
	s := githubtest.New(t, st, githubtest.Options{SquashOnly: true})
	if _, err := st.Push("side", "mei", "Change", map[string]string{"s.txt": "s"}); err != nil {
		t.Fatal(err)
	}
	p, err := st.OpenPull(scmtest.NewPull{Head: "side", Base: "main", Title: "x", Author: "mei"})
	if err != nil {
		t.Fatal(err)
	}
	s.Lose("PUT pulls/{pull_number}/merge", githubtest.Answer{Status: http.StatusBadGateway, Body: "<html>"})
	sha, err := open(t, s).Merge(t.Context(), scm.PullRequest{Number: p.Number}, p.HeadSHA)
	if err != nil || sha != tipOf(t, st, "main") {
		t.Errorf("merged %s, %v", sha, err)
	}
}
