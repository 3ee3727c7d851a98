package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

// committed is a head branch with a commit, and a proposal of it.
func committed(t *testing.T, r *github.Repository) scm.Proposal {
	t.Helper()
	c, err := r.Commit(t.Context(), draft(t, r, v2))
	if err != nil {
		t.Fatal(err)
	}
	return scm.Proposal{Head: head, Base: "main", HeadCommit: c.SHA, Title: "Promote todo-api", Body: "body"}
}

func propose(t *testing.T, r *github.Repository, p scm.Proposal) scm.PullRequest {
	t.Helper()
	pr, err := r.Propose(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

func count(ops []string, op string) (n int) {
	for _, o := range ops {
		if o == op {
			n++
		}
	}
	return n
}

// The setting is named, the branch stays, and the next run opens
// the pull request from it.
func TestActionsMayNotOpenPullRequests(t *testing.T) {
	st := store(t)
	r := open(t, githubtest.New(t, st, githubtest.Options{ActionsMayNotOpen: true}))
	p := committed(t, r)
	_, err := r.Propose(t.Context(), p)
	wantError(t, err, scm.ErrDenied, "Allow GitHub Actions to create and approve pull requests", "/acme/config/compare/main...tagboat/staging/todo-api")

	s := githubtest.New(t, st, githubtest.Options{})
	pr := propose(t, open(t, s), p)
	if pr.HeadCommit != p.HeadCommit || len(s.Writes()) != 1 {
		t.Errorf("pull request %+v by %v, want one of %s by one call", pr, s.Writes(), p.HeadCommit)
	}
}

func TestRefusalsOfAPullRequest(t *testing.T) {
	for name, c := range map[string]struct {
		opts   githubtest.Options
		change func(*scm.Proposal)
		fail   *githubtest.Answer
		kind   error
		words  string
	}{
		"no commits":    {change: func(p *scm.Proposal) { p.Head = "same" }, kind: scm.ErrRefused, words: "No commits between main and same"},
		"no such head":  {change: func(p *scm.Proposal) { p.Head = "nope" }, kind: scm.ErrRefused, words: "head invalid"},
		"draft":         {opts: githubtest.Options{NoDrafts: true}, change: func(p *scm.Proposal) { p.Draft = true }, kind: scm.ErrRefused, words: "leave the draft option away"},
		"body too long": {change: func(p *scm.Proposal) { p.Body = strings.Repeat("ü", 65537) }, kind: scm.ErrRefused, words: "too long"},
		"integration": {
			fail: &githubtest.Answer{Status: 403, Message: "Resource not accessible by integration", Header: map[string]string{"X-Accepted-GitHub-Permissions": "pull_requests:write"}},
			kind: scm.ErrDenied, words: "pull_requests:write",
		},
		"sign-on": {
			fail: &githubtest.Answer{Status: 403, Message: "Resource protected by organization SAML enforcement.", Header: map[string]string{"X-GitHub-SSO": "required; url=https://github.example/orgs/acme/sso"}},
			kind: scm.ErrDenied, words: "single sign-on",
		},
		"archived": {fail: &githubtest.Answer{Status: 403, Message: "Repository was archived so is read-only."}, kind: scm.ErrDenied, words: "archived"},
		"server":   {fail: &githubtest.Answer{Status: 500, Message: "Server Error"}, kind: scm.ErrUnavailable, words: "500"},
	} {
		t.Run(name, func(t *testing.T) {
			st := store(t)
			if _, err := st.Push("same", "mei", "Side", map[string]string{"x": "x"}); err != nil {
				t.Fatal(err)
			}
			if _, err := st.MergeBranch("same", "main"); err != nil {
				t.Fatal(err)
			}
			s := githubtest.New(t, st, c.opts)
			r := open(t, s)
			p := committed(t, r)
			if c.change != nil {
				c.change(&p)
			}
			if c.fail != nil {
				s.Fail("POST pulls", 1, *c.fail)
			}
			_, err := r.Propose(t.Context(), p)
			wantError(t, err, c.kind, c.words, "acme/config", p.Head, "main")
			if strings.Contains(err.Error(), s.Token()) {
				t.Errorf("the error holds the token: %v", err)
			}
			if n := len(st.Pulls(nil)); n != 0 {
				t.Errorf("%d pull requests", n)
			}
		})
	}
}

// The list lags behind the refusal.
func TestAdoptsAPullRequestThatTheListDoesNotShowYet(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	p := committed(t, r)
	made, err := st.OpenPull(scmtest.NewPull{Head: head, Base: "main", Title: "by hand", Author: "mei"})
	if err != nil {
		t.Fatal(err)
	}
	s.HideNewest(2)
	pr := propose(t, r, p)
	if pr.Number != made.Number || pr.Title != p.Title {
		t.Errorf("pull request %+v, want #%d with the new title", pr, made.Number)
	}
	s.HideNewest(100)
	_, err = r.Propose(t.Context(), p)
	wantError(t, err, scm.ErrRefused, "already exists")
}

// Only the refusals of a server that lags are tried again, and no
// label is set twice.
func TestDecorationWaitsForTheIssueSide(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{Teams: []string{"sre"}})
	r := open(t, s)
	p := committed(t, r)
	p.Labels, p.Assignees, p.Reviewers, p.TeamReviewers = []string{"promotion", "Promotion", ""}, []string{"mei"}, []string{"mei"}, []string{"acme/sre"}
	s.LagIssues(2)
	pr := propose(t, r, p)
	got, err := st.Pull(pr.Number)
	if err != nil {
		t.Fatal(err)
	}
	want := scmtest.Pull{Labels: []string{"promotion"}, Assignees: []string{"mei"}, Reviewers: []string{"mei"}, TeamReviewers: []string{"sre"}}
	have := scmtest.Pull{Labels: got.Labels, Assignees: got.Assignees, Reviewers: got.Reviewers, TeamReviewers: got.TeamReviewers}
	if d := cmp.Diff(want, have); d != "" || len(pr.Warnings) > 0 {
		t.Errorf("(-want +got):\n%s\nwarnings %q", d, pr.Warnings)
	}

	// What is there already is not asked for again.
	s.Reset()
	p.Number = pr.Number
	propose(t, r, p)
	if d := cmp.Diff([]string{"PATCH pulls/{pull_number}", "GET pulls/{pull_number}/reviews"}, s.Ops()); d != "" {
		t.Errorf("calls of an update (-want +got):\n%s", d)
	}
}

func TestLabelThatWasSetThoughTheAnswerSaidNo(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	p := committed(t, r)
	p.Labels = []string{"promotion"}
	s.Lose("POST issues/{issue_number}/labels", githubtest.Answer{Status: 422, Message: "Validation Failed", Errors: []any{"Could not resolve to a node with the global id of 'PR_1'."}})
	pr := propose(t, r, p)
	if n := count(s.Ops(), "POST issues/{issue_number}/labels"); n != 1 || len(pr.Warnings) > 0 {
		t.Errorf("labels were sent %d times, warnings %q", n, pr.Warnings)
	}
}

// One bad name does not lose the others.
func TestReviewersWhoCannotReview(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{Login: "Tagboat[bot]", Teams: []string{"sre"}})
	r := open(t, s)
	p := committed(t, r)
	p.Reviewers, p.TeamReviewers, p.Assignees = []string{"tagboat[BOT]", "mei", "ghost"}, []string{"nobody", "sre"}, []string{"ghost", "mei"}
	pr := propose(t, r, p)
	got, err := st.Pull(pr.Number)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"mei"}, got.Reviewers); d != "" {
		t.Errorf("reviewers (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"sre"}, got.TeamReviewers); d != "" {
		t.Errorf("teams (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"mei"}, got.Assignees); d != "" {
		t.Errorf("assignees (-want +got):\n%s", d)
	}
	for _, who := range []string{"tagboat[BOT]", "assign ghost", "ask ghost", "nobody"} {
		if !slices.ContainsFunc(pr.Warnings, func(w string) bool { return strings.Contains(w, who) }) {
			t.Errorf("no warning names %s: %q", who, pr.Warnings)
		}
	}
}

func TestAutoMergeThatCannotBeSet(t *testing.T) {
	for name, c := range map[string]struct {
		opts  githubtest.Options
		head  string
		kind  error
		words string
	}{
		"nothing to wait for": {opts: githubtest.Options{Clean: true}, kind: scm.ErrRefused, words: "require a check or a review"},
		"off":                 {opts: githubtest.Options{NoAutoMerge: true}, kind: scm.ErrRefused, words: "turn on \"Allow auto-merge\""},
		"another head":        {head: strings.Repeat("1", 40), kind: scm.ErrRefused, words: "moved on"},
		"no GraphQL":          {opts: githubtest.Options{NoGraphQL: true}, kind: scm.ErrUnsupported, words: "merge by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			st := store(t)
			r := open(t, githubtest.New(t, st, c.opts))
			p := committed(t, r)
			p.AutoMerge = true
			if c.head != "" {
				p.HeadCommit = c.head
			}
			pr, err := r.Propose(t.Context(), p)
			wantError(t, err, c.kind, c.words, "acme/config", "#1")
			if pr.Number != 1 || pr.AutoMerge {
				t.Errorf("the pull request beside the error: %+v", pr)
			}
		})
	}
}

func TestAutoMergeTakesAMethodThatIsAllowed(t *testing.T) {
	st := store(t)
	r := open(t, githubtest.New(t, st, githubtest.Options{SquashOnly: true}))
	p := committed(t, r)
	p.AutoMerge = true
	if pr := propose(t, r, p); !pr.AutoMerge {
		t.Errorf("auto-merge is not set: %+v", pr)
	}
}

// A person's own auto-merge is left alone while the digest is the same; set again
// it is not.
func TestAutoMergeThatIsSetAlready(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	p := committed(t, r)
	p.AutoMerge = true
	p.Number = propose(t, r, p).Number
	s.Reset()
	if pr := propose(t, r, p); !pr.AutoMerge || count(s.Ops(), "GraphQL enablePullRequestAutoMerge") != 0 {
		t.Errorf("auto-merge %v by %v", pr.AutoMerge, s.Ops())
	}
	s.Fail("GraphQL disablePullRequestAutoMerge", 1, githubtest.Answer{Status: 200, Errors: []any{map[string]any{"type": "FORBIDDEN", "message": "not you"}}})
	p.AutoMerge, p.Renewed = false, true
	pr := propose(t, r, p)
	if !pr.AutoMerge || !strings.Contains(strings.Join(pr.Warnings, "\n"), "clear it by hand") {
		t.Errorf("auto-merge that could not be cleared: %+v", pr)
	}
}

func TestRenewedDismissesEveryApproval(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	p := committed(t, r)
	p.Reviewers = []string{"mei"}
	p.Number = propose(t, r, p).Number
	for i := range 40 {
		state := "commented"
		if i%10 == 0 {
			state = "approved"
		}
		if _, err := st.Review(p.Number, fmt.Sprintf("person-%d", i), state); err != nil {
			t.Fatal(err)
		}
	}
	s.Fail("PUT pulls/{pull_number}/reviews/{review_id}/dismissals", 1, githubtest.Answer{Status: 403, Message: "Must have admin rights to Repository."})
	p.Renewed = true
	pr := propose(t, r, p)
	got, err := st.Pull(p.Number)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, v := range got.Reviews {
		if v.State == "approved" {
			left++
		}
	}
	if left != 1 || len(pr.Warnings) != 1 || !strings.Contains(pr.Warnings[0], "ask for a new review") {
		t.Errorf("%d approvals are left, warnings %q; want the one that was refused", left, pr.Warnings)
	}
}

// A reviewer who has answered is not asked again while the digest is the same.
func TestReviewerWhoHasAnsweredIsNotAskedAgain(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	p := committed(t, r)
	p.Reviewers = []string{"mei"}
	p.Number = propose(t, r, p).Number
	if _, err := st.EditPull(p.Number, func(p *scmtest.Pull) error { p.Reviewers = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Review(p.Number, "Mei", "approved"); err != nil {
		t.Fatal(err)
	}
	s.Reset()
	propose(t, r, p)
	if n := count(s.Ops(), "POST pulls/{pull_number}/requested_reviewers"); n != 0 {
		t.Errorf("asked %d times", n)
	}
	p.Renewed = true
	propose(t, r, p)
	if n := count(s.Ops(), "POST pulls/{pull_number}/requested_reviewers"); n != 1 {
		t.Errorf("asked %d times for another digest, want once", n)
	}
}

func TestDecorationThatFailsIsAWarning(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	p := committed(t, r)
	p.Labels = []string{"promotion"}
	s.Fail("POST issues/{issue_number}/labels", -1, githubtest.Answer{Status: 403, Message: "Resource not accessible by integration"})
	pr := propose(t, r, p)
	if pr.Number == 0 || len(pr.Warnings) != 1 || !strings.Contains(pr.Warnings[0], "labels promotion") {
		t.Errorf("pull request %+v", pr)
	}
	if n := count(s.Ops(), "POST issues/{issue_number}/labels"); n != 1 {
		t.Errorf("a refusal that no wait mends was tried %d times", n)
	}
}

func TestListsTheNewestPageOfClosedOnes(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	var last string
	for i := range 104 {
		sha, err := st.Push(head, "mei", "More", map[string]string{"n.txt": strings.Repeat("x", i)})
		if err != nil {
			t.Fatal(err)
		}
		last = sha
		p, err := st.OpenPull(scmtest.NewPull{Head: head, Base: "main", Title: "t", Author: "mei"})
		if err != nil {
			t.Fatal(err)
		}
		if i < 103 {
			if err := st.ClosePullRequest(p.Number, "mei"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Reset()
	list, err := r.PullRequests(t.Context(), head, "main")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 100 || list[0].State != scm.Open || list[0].HeadCommit != last || list[1].Number != 103 || list[99].Number != 5 {
		t.Errorf("%d listed, from %+v", len(list), list[0])
	}
	if len(s.Calls()) != 2 {
		t.Errorf("calls %v", s.Ops())
	}
}

func TestCloseThatCannotSayWhy(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	pr := propose(t, r, committed(t, r))
	s.Fail("POST issues/{issue_number}/comments", 1, githubtest.Answer{Status: http.StatusForbidden, Message: "Resource not accessible by integration"})
	err := r.Close(t.Context(), pr, "superseded")
	wantError(t, err, scm.ErrDenied, "it is closed")
	if got, err := st.Pull(pr.Number); err != nil || got.State != "closed" {
		t.Errorf("pull request %+v, %v", got, err)
	}
	if err := r.Close(t.Context(), scm.PullRequest{Number: 99}, "x"); !errors.Is(err, scm.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// A branch, and a commit, that GitHub does not see yet.
func TestProposalRightAfterThePush(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	p := committed(t, r)
	p.AutoMerge = true
	s.Fail("POST pulls", 2, githubtest.Answer{Status: 422, Message: "Validation Failed", Errors: []any{map[string]any{"resource": "PullRequest", "field": "head", "code": "invalid"}}})
	s.Fail("GraphQL enablePullRequestAutoMerge", 2, githubtest.Answer{Status: 200, Errors: []any{map[string]any{"type": "NOT_FOUND", "message": "Could not resolve to a node with the global id of 'PR_1'"}}})
	if pr := propose(t, r, p); pr.Number != 1 || !pr.AutoMerge {
		t.Errorf("pull request %+v", pr)
	}
}

// An organisation may hold a fork of its own repository: OWNER:BRANCH names both.
func TestForkOfTheSameOwnerIsNobody(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	fork, err := st.OpenForkPull(scmtest.NewPull{Head: head, Base: "main", Title: "fork", Author: "eve", Fork: "acme/config-fork"}, map[string]string{overlay: v3})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := r.PullRequests(t.Context(), head, "main"); err != nil || len(list) != 0 {
		t.Errorf("listed %+v, %v", list, err)
	}
	if pr := propose(t, r, committed(t, r)); pr.Number == fork.Number {
		t.Error("the fork's pull request was adopted")
	}
}

// A person closes the pull request while the lists are read, one after the other:
// it is listed all the same, once.
func TestPullRequestThatIsClosedMeanwhile(t *testing.T) {
	for range 4 {
		st := store(t)
		s := githubtest.New(t, st, githubtest.Options{})
		r := open(t, s)
		pr := propose(t, r, committed(t, r))
		s.Before("GET pulls", func() {})
		s.Before("GET pulls", func() {
			if err := st.ClosePullRequest(pr.Number, "mei"); err != nil {
				t.Error(err)
			}
		})
		list, err := r.PullRequests(t.Context(), head, "main")
		if err != nil || len(list) != 1 || list[0].Number != pr.Number {
			t.Errorf("listed %+v, %v", list, err)
		}
	}
}
