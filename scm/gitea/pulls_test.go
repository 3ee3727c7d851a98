package gitea_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

// opened pushes a branch and opens its pull request as a person.
func opened(t *testing.T, s *scmtest.Store, branch, base string) scmtest.Pull {
	t.Helper()
	push(t, s, branch, "n-"+strings.ReplaceAll(branch, "/", "-")+".txt")
	p, err := s.OpenPull(scmtest.NewPull{Head: branch, Base: base, Title: branch, Author: "mei"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func closed(t *testing.T, s *scmtest.Store, p scmtest.Pull) scmtest.Pull {
	t.Helper()
	if err := s.ClosePullRequest(p.Number, "mei"); err != nil {
		t.Fatal(err)
	}
	return p
}

func numbersOf(t *testing.T, repo scm.Repository) (numbers []int) {
	t.Helper()
	list, err := repo.PullRequests(t.Context(), head, "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		numbers = append(numbers, p.Number)
	}
	return numbers
}

// Gitea's look-up by base and head answers the old one (measured).
func TestTheOpenOneIsFoundBesideTheClosedOne(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{})
	first := closed(t, store, opened(t, store, head, "main"))
	second := opened(t, store, head, "main")
	if diff := cmp.Diff([]int{second.Number, first.Number}, numbersOf(t, repo)); diff != "" {
		t.Errorf("pull requests (-want +got):\n%s", diff)
	}
}

// The branch of a closed pull request lives on: Gitea tells where the branch is.
func TestAClosedOneKeepsItsOwnHead(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{})
	first := closed(t, store, opened(t, store, head, "main"))
	want := first.HeadSHA
	push(t, store, head, "later.txt")
	list, err := repo.PullRequests(t.Context(), head, "main")
	if err != nil || len(list) != 1 || list[0].HeadCommit != want {
		t.Errorf("%+v, %v; want head %s", list, err, want)
	}
}

func TestClosedOnesBeyondTheFirstPage(t *testing.T) {
	cases := map[string]struct {
		newer    int // closed pull requests of other branches, closed later
		want     bool
		requests int
	}{
		"on the first page": {10, true, 4},
		"on the third page": {120, true, 6},
		"the oldest of 270": {270, true, 8}, // named by base and head
	}
	for name, tc := range cases {
		synctest.Test(t, func(t *testing.T) {
			repo, server, store := fake(t, giteatest.Options{Latency: latency})
			first := closed(t, store, opened(t, store, head, "main"))
			for i := range tc.newer {
				closed(t, store, opened(t, store, fmt.Sprintf("other-%d", i), "main"))
			}
			if got := numbersOf(t, repo); slices.Contains(got, first.Number) != tc.want {
				t.Errorf("%s: found %v, want %d: %v", name, got, first.Number, tc.want)
			}
			if n := len(server.Requests()); n > tc.requests {
				t.Errorf("%s: %d requests, want at most %d:\n%s", name, n, tc.requests, list(server))
			}
			if n := server.Rounds(); n > 3 {
				t.Errorf("%s: %d rounds:\n%s", name, n, list(server))
			}
		})
	}
}

// A head without any pull request costs three requests, however many are closed.
func TestNoPullRequestCostsOneRound(t *testing.T) { synctest.Test(t, noPullRequestCostsOneRound) }

func noPullRequestCostsOneRound(t *testing.T) {
	repo, server, store := fake(t, giteatest.Options{Latency: latency})
	for i := range 120 {
		closed(t, store, opened(t, store, fmt.Sprintf("other-%d", i), "main"))
	}
	server.Forget()
	if got := numbersOf(t, repo); got != nil {
		t.Errorf("found %v", got)
	}
	if n, r := len(server.Requests()), server.Rounds(); n != 3 || r != 1 {
		t.Errorf("%d requests in %d rounds, want 3 in 1:\n%s", n, r, list(server))
	}
}

func TestManyOpenOnesAreAllRead(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Version: giteatest.V122, MaxItems: 20})
	mine := opened(t, store, head, "main")
	push(t, store, "next", "x.txt")
	opened(t, store, head+"-2", "next")
	for i := range 70 {
		opened(t, store, fmt.Sprintf("other-%d", i), "main")
	}
	if diff := cmp.Diff([]int{mine.Number}, numbersOf(t, repo)); diff != "" {
		t.Errorf("pull requests (-want +got):\n%s", diff)
	}
}

func TestBranchNamesWithSlashes(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{})
	push(t, store, "release/1.0", "x.txt")
	p := opened(t, store, head, "release/1.0")
	list, err := repo.PullRequests(t.Context(), head, "release/1.0")
	if err != nil || len(list) != 1 || list[0].Number != p.Number || list[0].Base != "release/1.0" {
		t.Errorf("%+v, %v", list, err)
	}
}

// proposedOn commits and opens a pull request with the driver.
func proposedOn(t *testing.T, repo scm.Repository, change func(*scm.Proposal)) (scm.PullRequest, error) {
	t.Helper()
	c, err := repo.Commit(t.Context(), draftOf(tip(t, repo, "main"), "v2\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := scm.Proposal{Head: head, Base: "main", HeadCommit: c.SHA, Title: "Promote", Body: "b"}
	if change != nil {
		change(&p)
	}
	return repo.Propose(t.Context(), p)
}

func TestAnUnansweredPullRequestIsAdopted(t *testing.T) {
	for _, status := range []int{0, 502} {
		repo, server, store := fake(t, giteatest.Options{Store: seeded(0)})
		server.Fail(giteatest.Fault{Method: "POST", Path: "/pulls", Times: 1, Status: status, Applied: true})
		p, err := proposedOn(t, repo, nil)
		if err != nil || p.Number == 0 || len(store.Pulls(nil)) != 1 {
			t.Errorf("%d: %+v, %v, %d pull requests", status, p, err, len(store.Pulls(nil)))
		}
	}
}

func TestWarnings(t *testing.T) {
	o := giteatest.Options{Store: seeded(0), Users: []string{"mei"}, Labels: []string{"promotion"}}
	repo, server, store := fake(t, o)
	p, err := proposedOn(t, repo, func(p *scm.Proposal) {
		p.Labels = []string{"promotion", "new"}
		p.Reviewers = []string{"Tagboat", "ghost", "mei"}
		p.Assignees = []string{"mei", "phantom"}
		p.TeamReviewers = []string{"sre"}
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(p.Warnings, "\n")
	for _, word := range []string{"Tagboat", "ghost", "phantom", "sre"} {
		if !strings.Contains(all, word) {
			t.Errorf("no warning names %s:\n%s", word, all)
		}
	}
	if len(p.Warnings) != 4 {
		t.Errorf("%d warnings:\n%s", len(p.Warnings), all)
	}
	got, err := store.Pull(p.Number)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"promotion", "new"}, {"mei"}, {"mei"}}
	if diff := cmp.Diff(want, [][]string{got.Labels, got.Reviewers, got.Assignees}); diff != "" {
		t.Errorf("labels, reviewers, assignees (-want +got):\n%s", diff)
	}
	if strings.Contains(all, "token ") {
		t.Errorf("a credential in %s", all)
	}
	server.Forget()
	again := scm.Proposal{Number: p.Number, Title: "Promote", Body: "b", Labels: []string{"promotion"}, Assignees: []string{"mei"}, Reviewers: []string{"mei"}}
	if _, err := repo.Propose(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"PATCH /pulls/{index}"}, writes(server)); diff != "" {
		t.Errorf("writes of an update whose labels and people are there (-want +got):\n%s", diff)
	}
}

func TestTeamOfAnOrganisation(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Store: seeded(0), Teams: []string{"sre"}})
	p, err := proposedOn(t, repo, func(p *scm.Proposal) { p.TeamReviewers = []string{"sre", "nobody"} })
	if err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "nobody") {
		t.Errorf("%v, warnings %q", err, p.Warnings)
	}
	if got, _ := store.Pull(p.Number); !slices.Equal(got.TeamReviewers, []string{"sre"}) {
		t.Errorf("teams %v", got.TeamReviewers)
	}
}

func TestAutoMerge(t *testing.T) {
	auto := func(p *scm.Proposal) { p.AutoMerge = true }
	cases := map[string]struct {
		options giteatest.Options
		before  func(*scmtest.Store) // ahead of the merge call
		change  func(*scm.Proposal)
		want    error
		state   scm.State
		set     bool // on the server
	}{
		"set":                     {change: auto, state: scm.Open, set: true},
		"checks have passed":      {options: giteatest.Options{ChecksPass: true}, change: auto, state: scm.Merged},
		"Gitea is still checking": {options: giteatest.Options{Checking: 3}, change: auto, state: scm.Open, set: true},
		"it never stops checking": {options: giteatest.Options{Checking: 99}, change: auto, want: scm.ErrRefused, state: scm.Open},
		"a draft":                 {change: func(p *scm.Proposal) { p.AutoMerge, p.Draft = true, true }, want: scm.ErrRefused, state: scm.Open},
		"somebody pushed":         {change: auto, want: scm.ErrMoved, state: scm.Open, before: func(s *scmtest.Store) { _, _ = s.Push(head, "mei", "x", map[string]string{"x": "y"}) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.Store = seeded(0)
			repo, server, store := fake(t, tc.options)
			if tc.before != nil {
				server.Before(func(r *http.Request) {
					if strings.HasSuffix(r.URL.Path, "/merge") && r.Method == http.MethodPost {
						tc.before(store)
					}
				})
			}
			p, err := proposedOn(t, repo, tc.change)
			if !errors.Is(err, tc.want) || p.Number == 0 || p.State != tc.state || p.AutoMerge != tc.set {
				t.Errorf("%+v, %v; want %v, %s, auto-merge %v", p, err, tc.want, tc.state, tc.set)
			}
			if got, _ := store.Pull(p.Number); got.AutoMerge != tc.set {
				t.Errorf("auto-merge on the server %v, want %v", got.AutoMerge, tc.set)
			}
		})
	}
}

func TestAutoMergeTwiceIsOnce(t *testing.T) {
	repo, _, _ := fake(t, giteatest.Options{Store: seeded(0)})
	p, err := proposedOn(t, repo, func(p *scm.Proposal) { p.AutoMerge = true })
	if err != nil {
		t.Fatal(err)
	}
	again := scm.Proposal{Number: p.Number, Head: head, Base: "main", HeadCommit: p.HeadCommit, Title: "Promote", Body: "b", AutoMerge: true}
	if p, err = repo.Propose(t.Context(), again); err != nil || !p.AutoMerge {
		t.Errorf("%+v, %v", p, err)
	}
}

// A driver that has not listed the pull request looks before it edits the title.
func TestADraftStaysADraft(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Store: seeded(0)})
	for _, title := range []string{"WIP: Promote", "[wip] Promote"} {
		push(t, store, head, "x.txt")
		p, err := store.OpenPull(scmtest.NewPull{Head: head, Base: "main", Title: title, Author: "mei", Draft: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := repo.Propose(t.Context(), scm.Proposal{Number: p.Number, Head: head, Base: "main", Title: "Promote v3", Body: "b"})
		if err != nil || !got.Draft || got.Title != "Promote v3" {
			t.Errorf("%s: %+v, %v", title, got, err)
		}
		if err := repo.Close(t.Context(), got, ""); err != nil {
			t.Fatal(err)
		}
		if now, _ := store.Pull(p.Number); now.State != "closed" || !now.Draft {
			t.Errorf("%s: closed as %+v", title, now)
		}
	}
}

func TestCloseOfAMergedOneIsRefused(t *testing.T) {
	repo, _, store := fake(t, giteatest.Options{Store: seeded(0)})
	p := opened(t, store, head, "main")
	if _, err := store.MergePullRequest(p.Number, "merge"); err != nil {
		t.Fatal(err)
	}
	err := repo.Close(t.Context(), scm.PullRequest{Number: p.Number, Title: "t", Body: "b"}, "superseded")
	if !errors.Is(err, scm.ErrRefused) || !strings.Contains(err.Error(), "already merged") {
		t.Errorf("error %v", err)
	}
}

func TestErrorsNameTheObjectAndHideTheToken(t *testing.T) {
	const token = "s3cret-token-of-the-user"
	repo, server, _ := fake(t, giteatest.Options{Token: token})
	_, err := repo.Tip(t.Context(), "main")
	if !errors.Is(err, scm.ErrDenied) || !strings.Contains(err.Error(), "token is missing, wrong or expired") {
		t.Errorf("a wrong token: %v", err)
	}
	repo = open(t, "https://git.acme.example", token, server)
	server.Fail(giteatest.Fault{Method: "GET", Path: "/branches/", Times: 1, Status: 422, Body: `{"message":"who are you, ` + token + `?"}`})
	_, err = repo.Tip(t.Context(), "nope")
	if err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "branch nope") {
		t.Errorf("error %v, want one that names the branch and no token", err)
	}
	_, err = repo.Propose(t.Context(), scm.Proposal{Head: "nope", Base: "main", Title: "t"})
	if !errors.Is(err, scm.ErrNotFound) || !strings.Contains(err.Error(), "nope into main") {
		t.Errorf("error %v", err)
	}
}

func TestAPageThatIsNotGitea(t *testing.T) {
	repo, server, _ := fake(t, giteatest.Options{Version: giteatest.V126})
	server.Fail(giteatest.Fault{Method: "GET", Path: "/branches/", Times: 1, Status: 200, Body: "<html>Sign in</html>"})
	_, err := repo.Tip(t.Context(), "main")
	if err == nil || !strings.Contains(err.Error(), "address of a Gitea") {
		t.Errorf("error %v", err)
	}
}

var _ scm.Repository = (*gitea.Repository)(nil)

// Another run merges first: what this one wanted is done.
func TestMergeThatAnotherRunHasDone(t *testing.T) {
	for _, version := range []string{giteatest.V123, giteatest.V124, giteatest.V126} {
		repo, server, store := fake(t, giteatest.Options{Version: version, Store: seeded(0)})
		c, err := repo.Commit(t.Context(), draftOf(tip(t, repo, "main"), "v2\n"))
		if err != nil {
			t.Fatal(err)
		}
		pr, err := repo.Propose(t.Context(), scm.Proposal{Head: head, Base: "main", HeadCommit: c.SHA, Title: "Promote", Body: "b"})
		if err != nil {
			t.Fatal(err)
		}
		var other string
		server.Before(func(r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/merge") {
				other, _ = store.MergePullRequest(pr.Number, "squash")
			}
		})
		if sha, err := repo.Merge(t.Context(), pr, c.SHA); err != nil || sha == "" || sha != other {
			t.Errorf("%s: merged by %q, %v; want %q", version, sha, err, other)
		}
	}
}
