package scmtest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"tagboat/scm"
)

// Witness is the part of a Person that the cases of scm.Evidence and scm.Rights
// need. *Store is one; errors.ErrUnsupported skips the case.
type Witness interface {
	// PostStatus posts a commit status (State pending, success or failure) as a
	// check that somebody else runs.
	PostStatus(sha string, s Status) (Status, error)
	// Clock is what the forge's clock shows.
	Clock() time.Time
	// PushTogether pushes several commits, each of some files, at once. Their own
	// dates are made.
	PushTogether(branch, author string, made time.Time, commits ...map[string]string) (shas []string, err error)
	// AddTeam makes a team with one member and gives the name that Member takes.
	AddTeam(name, member string) (full string, err error)
	// Grant lets a user, who is made if need be, do what p says.
	Grant(user string, p scm.Permission) error
}

var _ Witness = (*StorePerson)(nil)

// StorePerson is a Store whose grants are in the words of a forge.
type StorePerson struct {
	*Store
	// Words are the forge's for the permissions; nil are the contract's own.
	Words map[scm.Permission]string
	// Group is what stands before a team's name for the forge ("acme/"), which the
	// Store does not know.
	Group string
}

// Grant implements Witness.
func (p *StorePerson) Grant(user string, granted scm.Permission) error {
	word, ok := p.Words[granted]
	if !ok {
		word = string(granted)
	}
	p.SetPermission(user, word)
	return nil
}

// AddTeam implements Witness.
func (p *StorePerson) AddTeam(name, member string) (string, error) {
	p.SetTeam(name, "", member)
	return p.Group + name, nil
}

func evidenceCases() map[string]func(*suite) {
	cases := map[string]func(*suite){
		"clock: the forge's, after an answer":                  clockTells,
		"statuses: none":                                       statusesNone,
		"statuses: the latest of each context, on all pages":   statusesLatest,
		"statuses: of that commit alone":                       statusesOfCommit,
		"statuses of a missing commit are not found":           statusesMissing,
		"set status: posts, and the last counts":               setStatus,
		"set status: a long description is cut at a character": setStatusLong,
		"set status of a missing commit is not found":          setStatusMissing,
		"merged: of a squash":                                  mergedSquash,
		"merged: of a merge commit":                            mergedMerge,
		"merged: nothing brought a pushed commit":              mergedPushed,
		"merged: an open pull request brought nothing":         mergedOpen,
		"approvals: none":                                      approvalsNone,
		"approvals: for the head":                              approvalsHead,
		"approvals: for an older head are stale":               approvalsStale,
		"approvals: a later no takes a yes back":               approvalsTakenBack,
		"approvals: of a merged pull request":                  approvalsMerged,
		"approvals of a missing pull request are not found":    approvalsMissing,
	}
	maps.Copy(cases, pushedCases())
	return cases
}

func evidenceThere(s *suite) {
	_, clock := s.Repo.(scm.Clock)
	s.diff("clock", s.Can.PullRequests, clock)
	_, evidence := s.Repo.(scm.Evidence)
	_, rights := s.Repo.(scm.Rights)
	s.diff("evidence", s.Can.PullRequests, evidence)
	s.diff("rights", s.Can.PullRequests, rights)
}

func (s *suite) evidence() (scm.Evidence, Witness) {
	s.t.Helper()
	e, ok := s.Repo.(scm.Evidence)
	s.need(ok, "evidence")
	w, ok := s.Person.(Witness)
	s.need(ok, "witness beside it")
	return e, w
}

func clockTells(s *suite) {
	clock, ok := s.Repo.(scm.Clock)
	if !ok {
		s.t.Fatal("the repository is no scm.Clock")
	}
	_, w := s.evidence()
	before := w.Clock().Add(-2 * time.Second)
	s.tip("")
	if at, ok := clock.Now(); !ok || at.Before(before) || at.After(w.Clock().Add(time.Second)) {
		s.t.Errorf("clock %v, %v, want one between %v and %v", at, ok, before, w.Clock())
	}
}

func (s *suite) post(sha string, st Status) {
	s.t.Helper()
	_, w := s.evidence()
	must(s, tried(w.PostStatus(sha, st)))
}

func (s *suite) statuses(sha string) []scm.Status {
	s.t.Helper()
	e, _ := s.evidence()
	return must(s, tried(e.Statuses(s.t.Context(), sha)))
}

// noCommit is a SHA that no repository has.
const noCommit = "1234567890123456789012345678901234567890"

func statusesNone(s *suite) {
	s.diff("statuses", 0, len(s.statuses(s.tip("").Commit.SHA)))
}

func statusesLatest(s *suite) {
	sha := s.tip("").Commit.SHA
	many := 230
	if s.Can.Slow {
		many = 55
	}
	want := map[string]scm.StatusState{"argocd/todo-api": scm.StatusSuccess, "flux/apps": scm.StatusFailure}
	s.post(sha, Status{Context: "argocd/todo-api", State: "pending", Creator: "argocd", Description: "syncing"})
	s.post(sha, Status{Context: "flux/apps", State: "success", Creator: "flux"})
	for range many {
		s.post(sha, Status{Context: "noise", State: "pending", Creator: "noisy"})
	}
	s.post(sha, Status{Context: "flux/apps", State: "failure", Creator: "flux"})
	s.post(sha, Status{Context: "argocd/todo-api", State: "success", Creator: "argocd", Description: "synced", URL: "https://argocd.example/todo"})
	want["noise"] = scm.StatusPending
	got := map[string]scm.StatusState{}
	list := s.statuses(sha)
	for _, st := range list {
		if _, twice := got[st.Context]; twice {
			s.t.Errorf("%s is there twice", st.Context)
		}
		got[st.Context] = st.State
		if st.Word == "" || st.Time.IsZero() || st.Creator == "" {
			s.t.Errorf("status without the forge's word, time or creator: %+v", st)
		}
	}
	s.diff("states", want, got)
	if !slices.IsSortedFunc(list, func(a, b scm.Status) int { return strings.Compare(a.Context, b.Context) }) {
		s.t.Errorf("not sorted: %+v", list)
	}
	s.diff("description", "synced", list[0].Description)
	s.diff("URL", "https://argocd.example/todo", list[0].URL)
}

func statusesOfCommit(s *suite) {
	first := s.tip("").Commit.SHA
	s.post(first, Status{Context: "argocd/todo-api", State: "success", Creator: "argocd"})
	second := s.push(s.main, kFile, kNew)
	s.diff("of the next commit", 0, len(s.statuses(second)))
	s.diff("of the first", 1, len(s.statuses(first)))
}

func statusesMissing(s *suite) {
	e, _ := s.evidence()
	list, err := e.Statuses(s.t.Context(), noCommit)
	s.wantErr(err, scm.ErrNotFound)
	s.diff("statuses", 0, len(list))
}

func setStatus(s *suite) {
	e, _ := s.evidence()
	p := s.proposed()
	for _, state := range []scm.StatusState{scm.StatusPending, scm.StatusPending, scm.StatusFailure, scm.StatusFailure, scm.StatusSuccess} {
		want := scm.Status{Context: "tagboat/policy", State: state, Description: "soak: " + string(state), URL: "https://ci.example/1"}
		if err := e.SetStatus(s.t.Context(), p.HeadCommit, want); err != nil {
			s.t.Fatalf("set %s: %v", state, err)
		}
		list := s.statuses(p.HeadCommit)
		if len(list) != 1 {
			s.t.Fatalf("statuses %+v, want one", list)
		}
		got := list[0]
		s.diff("state", state, got.State)
		s.diff("context", want.Context, got.Context)
		s.diff("URL", want.URL, got.URL)
		s.diff("description", want.Description, got.Description)
	}
}

func setStatusLong(s *suite) {
	e, _ := s.evidence()
	sha := s.tip("").Commit.SHA
	long := strings.Repeat("ü", 400)
	if err := e.SetStatus(s.t.Context(), sha, scm.Status{Context: "tagboat/policy", State: scm.StatusFailure, Description: long}); err != nil {
		s.t.Fatal(err)
	}
	got := s.statuses(sha)
	if len(got) != 1 || !strings.HasPrefix(got[0].Description, "üüü") || strings.ContainsRune(got[0].Description, '\uFFFD') {
		s.t.Errorf("statuses %+v", got)
	}
}

func setStatusMissing(s *suite) {
	e, _ := s.evidence()
	s.wantErr(e.SetStatus(s.t.Context(), noCommit, scm.Status{Context: "tagboat/policy", State: scm.StatusSuccess}), scm.ErrNotFound)
}

// broughtBy merges a pull request of somebody's and asks who brought the commit.
func (s *suite) broughtBy(how string) {
	s.t.Helper()
	e, _ := s.evidence()
	opened := s.proposed()
	s.push(s.main, "README.md", "moved on")
	merge := must(s, tried(s.Person.MergePullRequest(opened.Number, how)))
	got := must(s, tried(e.Merged(s.t.Context(), merge)))
	if got.Number != opened.Number || got.State != scm.Merged || got.Base != s.main || got.Head != kHead ||
		got.HeadCommit != opened.HeadCommit || got.Author == "" || got.URL == "" {
		s.t.Errorf("merged %+v, want %+v", got, opened)
	}
	// The forge's clock is the Store's or a real one; both are later than any
	// seed, and the field is the time of the merge, not the zero time.
	if got.MergedAt.Before(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) || got.MergedAt.Before(s.tip("").Commit.Time.Add(-time.Minute)) {
		s.t.Errorf("merged at %v", got.MergedAt)
	}
	if list := s.list(); len(list) != 1 || !list[0].MergedAt.Equal(got.MergedAt) {
		s.t.Errorf("listed %+v, want one that was merged at %v", list, got.MergedAt)
	}
}

func mergedSquash(s *suite) { s.broughtBy("squash") }

func mergedMerge(s *suite) { s.broughtBy("merge") }

func (s *suite) broughtByNobody(sha string) {
	s.t.Helper()
	e, _ := s.evidence()
	p, err := e.Merged(s.t.Context(), sha)
	s.wantErr(err, scm.ErrNotFound)
	s.diff("pull request", 0, p.Number)
}

func mergedPushed(s *suite) { s.broughtByNobody(s.push(s.main, kFile, kNew)) }

func mergedOpen(s *suite) { s.broughtByNobody(s.proposed().HeadCommit) }

func (s *suite) approvals(p scm.PullRequest) []scm.Approval {
	s.t.Helper()
	e, _ := s.evidence()
	return must(s, tried(e.Approvals(s.t.Context(), p)))
}

func (s *suite) review(number int, state string) {
	s.t.Helper()
	must(s, tried(s.Person.Review(number, s.Reviewer, state)))
}

func approvalsNone(s *suite) {
	p := s.proposed()
	s.review(p.Number, "commented")
	s.diff("approvals", 0, len(s.approvals(p)))
}

// wantApproval demands one approval of the reviewer's.
func (s *suite) wantApproval(list []scm.Approval, commit string, stands bool) {
	s.t.Helper()
	if len(list) != 1 || !strings.EqualFold(list[0].User, s.Reviewer) || list[0].Counts() != stands {
		s.t.Fatalf("approvals %+v, want one of %s that counts: %v", list, s.Reviewer, stands)
	}
	if list[0].Commit != commit && list[0].Commit != "" {
		s.t.Errorf("approved %s, want %s", list[0].Commit, commit)
	}
}

func approvalsHead(s *suite) {
	p := s.proposed()
	s.review(p.Number, "approved")
	s.wantApproval(s.approvals(p), p.HeadCommit, true)
	s.diff("of its author", 0, len(s.approvals(scm.PullRequest{Number: p.Number, Author: strings.ToUpper(s.Reviewer), HeadCommit: p.HeadCommit})))
}

func approvalsStale(s *suite) {
	p := s.proposed()
	s.review(p.Number, "approved")
	person := s.push(kHead, "README.md", "a person was here")
	list := s.list()
	if len(list) != 1 || list[0].HeadCommit != person {
		s.t.Fatalf("listed %+v", list)
	}
	// A forge may also have dismissed or forgotten it.
	if got := s.approvals(list[0]); len(got) > 0 {
		s.wantApproval(got, p.HeadCommit, false)
	}
	s.review(p.Number, "approved")
	s.wantApproval(s.approvals(list[0]), person, true)
}

func approvalsTakenBack(s *suite) {
	p := s.proposed()
	s.review(p.Number, "approved")
	s.review(p.Number, "changes_requested")
	for _, a := range s.approvals(p) {
		if a.Counts() {
			s.t.Errorf("%+v still counts", a)
		}
	}
	s.review(p.Number, "approved")
	s.wantApproval(s.approvals(p), p.HeadCommit, true)
}

func approvalsMerged(s *suite) {
	e, _ := s.evidence()
	p := s.proposed()
	s.review(p.Number, "approved")
	merge := must(s, tried(s.Person.MergePullRequest(p.Number, "squash")))
	got := must(s, tried(e.Merged(s.t.Context(), merge)))
	s.wantApproval(s.approvals(got), p.HeadCommit, true)
}

func approvalsMissing(s *suite) {
	e, _ := s.evidence()
	_, err := e.Approvals(s.t.Context(), scm.PullRequest{Number: 99999, Author: "mei"})
	s.wantErr(err, scm.ErrNotFound)
	if err != nil && !strings.Contains(err.Error(), "99999") {
		s.t.Errorf("%v does not name the pull request", err)
	}
	if errors.Is(err, scm.ErrDenied) {
		s.t.Errorf("%v", err)
	}
}
