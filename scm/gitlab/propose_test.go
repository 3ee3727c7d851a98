package gitlab_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// opened is a world with one commit on the head branch and its merge request.
func opened(t *testing.T, set ...func(*gitlabtest.Server, *gitlab.Options)) (*world, scm.PullRequest) {
	t.Helper()
	w := start(t, set...)
	c := w.commit(w.draft(w.tip("main"), "v2"))
	return w, w.propose(proposal(c))
}

func (w *world) pull(number int) scmtest.Pull {
	w.t.Helper()
	p, err := w.store.Pull(number)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func renewed(pr scm.PullRequest) scm.Proposal {
	return scm.Proposal{Number: pr.Number, Head: pr.Head, Base: pr.Base, HeadCommit: pr.HeadCommit, Title: "Promote app to v3", Body: "New\n", Renewed: true}
}

func TestOpenSetsEverythingInOneCall(t *testing.T) {
	w := start(t)
	p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
	p.Labels, p.Reviewers, p.Assignees, p.Draft = []string{"promotion", "staging"}, []string{"mei", "Tomas"}, []string{"@mei"}, true
	w.fake.Forget()
	pr := w.propose(p)
	if len(pr.Warnings) > 0 {
		t.Errorf("warnings %q", pr.Warnings)
	}
	got := w.pull(pr.Number)
	want := scmtest.Pull{Title: "Draft: Promote app", Draft: true, Labels: []string{"promotion", "staging"}, Assignees: []string{"mei"}}
	if got.Title != want.Title || !got.Draft || !cmp.Equal(got.Labels, want.Labels) || len(got.Reviewers) != 2 || !cmp.Equal(got.Assignees, want.Assignees) {
		t.Errorf("on the forge: %+v", got)
	}
	if pr.Title != "Promote app" || !pr.Draft || pr.State != scm.Open || pr.Author != gitlabtest.BotLogin || pr.URL == "" {
		t.Errorf("returned: %+v", pr)
	}
	if n := w.fake.Count("createMergeRequest") + w.fake.Count("updateMergeRequest"); n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestWhatCouldNotBeSetIsAWarning(t *testing.T) {
	w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) {
		s.Free = true
		s.Users["outsider"] = 77
	})
	p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
	p.Labels, p.Reviewers, p.TeamReviewers, p.Assignees = []string{"a,b", "ok"}, []string{"mei", "tomas", "ghost"}, []string{"sre"}, []string{"outsider"}
	pr := w.propose(p)
	got := w.pull(pr.Number)
	if !cmp.Equal(got.Labels, []string{"ok"}) || len(got.Reviewers) != 1 || len(got.Assignees) != 0 {
		t.Errorf("on the forge: %+v", got)
	}
	all := strings.Join(pr.Warnings, "\n")
	for _, part := range []string{`label "a,b"`, "no user ghost", "groups as reviewers: sre", "outsider was not assigned", "was not made a reviewer"} {
		if !strings.Contains(all, part) {
			t.Errorf("no warning has %q:\n%s", part, all)
		}
	}
}

// The list missed it, or somebody opened it meanwhile: 409, in whatever language.
func TestAdoptsAnOpenOne(t *testing.T) {
	w := start(t)
	p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
	theirs, err := w.store.OpenPull(scmtest.NewPull{Head: p.Head, Base: p.Base, Title: "Mine", Author: "mei"})
	if err != nil {
		t.Fatal(err)
	}
	pr := w.propose(p)
	if pr.Number != theirs.Number || w.pull(pr.Number).Title != "Promote app" || pr.Author != "mei" {
		t.Errorf("got %+v", pr)
	}
	if n := len(w.store.Pulls(nil)); n != 1 {
		t.Errorf("%d merge requests", n)
	}
}

func TestConflictWithoutAnOpenOne(t *testing.T) {
	w := start(t)
	p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
	w.fake.Fail("createMergeRequest", 1, 409, []string{"Une autre demande de fusion ouverte existe déjà"})
	_, err := w.repo.Propose(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("got %v", err)
	}
}

func TestLostAnswerOfOpen(t *testing.T) {
	w := start(t)
	p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
	w.fake.FailAfter("createMergeRequest", 502)
	pr := w.propose(p)
	if all := w.store.Pulls(nil); len(all) != 1 || all[0].Number != pr.Number || w.fake.Count("createMergeRequest") != 1 {
		t.Errorf("%d merge requests, %d calls", len(all), w.fake.Count("createMergeRequest"))
	}
	w.fake.Fail("createMergeRequest", 1, 502, nil)
	p.Base = "release"
	if _, err := w.repo.Propose(t.Context(), p); !errors.Is(err, scm.ErrUnavailable) {
		t.Errorf("not applied: %v", err)
	}
}

func TestUpdateKeepsWhatPeopleSet(t *testing.T) {
	for _, draft := range []bool{true, false} {
		w, pr := opened(t)
		mark := map[bool]string{true: "[Draft] ", false: ""}[draft]
		if _, err := w.store.EditPull(pr.Number, func(p *scmtest.Pull) error {
			p.Title, p.Draft, p.Labels, p.Reviewers = mark+"Promote app", draft, []string{"theirs"}, []string{"tomas"}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		p := renewed(pr)
		p.Labels, p.Draft = []string{"promotion"}, !draft
		got := w.propose(p)
		now := w.pull(pr.Number)
		if got.Draft != draft || now.Draft != draft || got.Title != "Promote app to v3" {
			t.Errorf("draft %v: returned %+v", draft, got)
		}
		if !cmp.Equal(now.Labels, []string{"promotion", "theirs"}) || !cmp.Equal(now.Reviewers, []string{"tomas"}) || now.Body != "New\n" {
			t.Errorf("draft %v: on the forge %+v", draft, now)
		}
	}
}

func TestUpdateRefusesAnother(t *testing.T) {
	w, pr := opened(t)
	p := renewed(pr)
	p.Head = "tagboat/production/app"
	if _, err := w.repo.Propose(t.Context(), p); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("other branch: %v", err)
	}
	if err := w.store.ClosePullRequest(pr.Number, "mei"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.Propose(t.Context(), renewed(pr)); !errors.Is(err, scm.ErrMoved) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("closed: %v", err)
	}
	if got := w.pull(pr.Number); got.Title != "Promote app" {
		t.Errorf("it was changed: %+v", got)
	}
}

func TestRenewedTakesBackApprovalsAndAutoMerge(t *testing.T) {
	cases := []struct {
		name   string
		set    func(*gitlabtest.Server, *gitlab.Options)
		resets int
		warns  string
	}{
		{"bot token", func(*gitlabtest.Server, *gitlab.Options) {}, 1, ""},
		{"a person's token", func(_ *gitlabtest.Server, o *gitlab.Options) { o.Token = gitlabtest.UserToken }, 0, "HTTP 401"},
		{"free plan", func(s *gitlabtest.Server, _ *gitlab.Options) { s.Free = true }, 0, "approvals given before were for another digest"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, pr := opened(t, c.set)
			if _, err := w.store.EditPull(pr.Number, func(p *scmtest.Pull) error { p.AutoMerge = true; return nil }); err != nil {
				t.Fatal(err)
			}
			plain := renewed(pr)
			plain.Renewed = false
			if got := w.propose(plain); !got.AutoMerge || w.fake.Resets(pr.Number) != 0 {
				t.Errorf("same digest: %+v", got)
			}
			got := w.propose(renewed(pr))
			if got.AutoMerge || w.pull(pr.Number).AutoMerge {
				t.Error("auto-merge is still set")
			}
			if n := w.fake.Resets(pr.Number); n != c.resets {
				t.Errorf("%d resets", n)
			}
			if all := strings.Join(got.Warnings, "\n"); (c.warns == "") != (all == "") || !strings.Contains(all, c.warns) {
				t.Errorf("warnings %q", got.Warnings)
			}
		})
	}
}

func TestPullRequestsReadsAllOpenOnesAndNoForks(t *testing.T) {
	w, first := opened(t)
	if _, err := w.store.OpenForkPull(scmtest.NewPull{Head: head, Base: "main", Title: "Evil", Author: "eve", Fork: "eve/config"},
		map[string]string{overlay: "evil"}); err != nil {
		t.Fatal(err)
	}
	closed := w.tip(head).Commit.SHA
	if err := w.store.ClosePullRequest(first.Number, "mei"); err != nil {
		t.Fatal(err)
	}
	if err := w.store.DeleteBranch(head, ""); err != nil {
		t.Fatal(err)
	}
	second := w.propose(proposal(w.commit(w.draft(w.tip("main"), "v4"))))
	w.push("other", "x", "1")
	if _, err := w.store.OpenPull(scmtest.NewPull{Head: "other", Base: "main", Title: "Other"}); err != nil {
		t.Fatal(err)
	}
	all, err := w.repo.PullRequests(t.Context(), head, "main")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, fmt.Sprintf("%d %s %s", p.Number, p.State, p.HeadCommit))
	}
	want := []string{
		fmt.Sprintf("%d open %s", second.Number, second.HeadCommit),
		fmt.Sprintf("%d closed %s", first.Number, closed),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// 150 closed ones above an old open one: the newest page does not hold it.
func TestPullRequestsFindsAnOldOpenOne(t *testing.T) {
	w, open := opened(t)
	for i := range 150 {
		// A store allows one open merge request of a pair; forks' are no way round.
		branch := fmt.Sprintf("b%d", i)
		w.push(branch, "x", fmt.Sprint(i))
		p, err := w.store.OpenPull(scmtest.NewPull{Head: branch, Base: "main", Title: branch})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.store.ClosePullRequest(p.Number, "mei"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.EditPull(p.Number, func(p *scmtest.Pull) error { p.Head = head; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.repo.PullRequests(t.Context(), head, "main")
	if err != nil {
		t.Fatal(err)
	}
	if last := all[len(all)-1]; len(all) != 101 || last.Number != open.Number || last.State != scm.Open {
		t.Errorf("%d found, the last is %+v", len(all), last)
	}
}

func TestClose(t *testing.T) {
	w, pr := opened(t)
	pr.Title, pr.Body = "Promote app (superseded)", "superseded"
	if err := w.repo.Close(t.Context(), pr, "The base has the digest."); err != nil {
		t.Fatal(err)
	}
	got := w.pull(pr.Number)
	if got.State != "closed" || got.Title != pr.Title || got.Body != pr.Body || len(got.Comments) != 1 || got.Comments[0].Body != "The base has the digest." {
		t.Errorf("got %+v", got)
	}
	if _, ok := w.store.Branch(head); !ok {
		t.Error("the branch is gone")
	}
}

func TestCloseOfAMergedOne(t *testing.T) {
	w, pr := opened(t)
	if _, err := w.store.MergePullRequest(pr.Number, "merge"); err != nil {
		t.Fatal(err)
	}
	if err := w.repo.Close(t.Context(), pr, "late"); !errors.Is(err, scm.ErrMoved) || !strings.Contains(err.Error(), "merged") {
		t.Errorf("got %v", err)
	}
	if len(w.pull(pr.Number).Comments) != 0 {
		t.Error("it was commented on")
	}
}

func TestLimits(t *testing.T) {
	w := start(t)
	p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
	p.Title = strings.Repeat("ä", 300)
	pr := w.propose(p)
	if got := []rune(w.pull(pr.Number).Title); len(got) != 255 || got[254] != '…' {
		t.Errorf("%d characters", len(got))
	}
	p.Body = strings.Repeat("ä", w.repo.About().BodyLimit)
	w.propose(p)
	p.Body += "x"
	if _, err := w.repo.Propose(t.Context(), p); !errors.Is(err, scm.ErrRefused) {
		t.Errorf("too long: %v", err)
	}
}
