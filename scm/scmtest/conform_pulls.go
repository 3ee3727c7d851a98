package scmtest

import (
	"slices"
	"strings"

	"tagboat/scm"
)

func pullCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"propose opens a pull request":                          proposeOpens,
		"propose adopts what somebody opened":                   proposeAdopts,
		"propose updates title and body":                        proposeUpdates,
		"propose for the branch of a fork opens its own":        proposeBesideFork,
		"propose with labels and people":                        proposeDecorates,
		"propose with people who are nobody warns":              proposeWarns,
		"propose keeps the labels that a person set":            proposeKeepsLabels,
		"propose without a head branch opens nothing":           proposeNothing,
		"propose after a person's update of the branch":         proposeAfterUpdate,
		"propose a draft":                                       proposeDraft,
		"propose with auto-merge":                               proposeAutoMerge,
		"propose another digest clears auto-merge":              proposeRenewed,
		"propose another digest dismisses approvals or says so": proposeDismisses,
		"pull requests: the one of a head and a base among 150": pullsAmongMany,
		"pull requests: closed with its head commit":            pullsClosed,
		"pull requests: merged":                                 pullsMerged,
		"pull requests: newest first":                           pullsOrder,
		"pull requests: every open one into a base":             pullsOpen,
		"pull requests: with their labels":                      pullsLabels,
		"close saves the text and says why":                     closeSays,
		pushedBranch:                                            branchIsProposal,
	}
}

func (s *suite) proposal(head string) scm.Proposal {
	return scm.Proposal{
		Head: kHead, Base: s.main, HeadCommit: head,
		Title: "Promote todo-api to staging", Body: "v1 → v2\n\n<!-- tagboat: x -->\n",
	}
}

// proposed commits and opens a pull request.
func (s *suite) proposed() scm.PullRequest {
	s.t.Helper()
	c := s.commit(s.draft(kNew))
	return must(s, tried(s.Repo.Propose(s.t.Context(), s.proposal(c.SHA))))
}

func (s *suite) list() []scm.PullRequest {
	s.t.Helper()
	return must(s, tried(s.Repo.PullRequests(s.t.Context(), kHead, s.main)))
}

func (s *suite) pull(number int) Pull {
	s.t.Helper()
	return must(s, tried(s.Person.Pull(number)))
}

func numbers(list []scm.PullRequest) (out []int) {
	for _, p := range list {
		out = append(out, p.Number)
	}
	return out
}

func proposeOpens(s *suite) {
	c := s.commit(s.draft(kNew))
	s.diff("before", 0, len(s.list()))
	p := must(s, tried(s.Repo.Propose(s.t.Context(), s.proposal(c.SHA))))
	list := s.list()
	if len(list) != 1 {
		s.t.Fatalf("listed %d pull requests, want one", len(list))
	}
	for _, got := range []scm.PullRequest{p, list[0]} {
		if got.Number == 0 || got.State != scm.Open || got.Head != kHead || got.Base != s.main || got.HeadCommit != c.SHA ||
			got.Author == "" || got.URL == "" || got.Draft || got.AutoMerge {
			s.t.Errorf("pull request: %+v", got)
		}
		s.diff("title", "Promote todo-api to staging", got.Title)
		s.diff("body", strings.TrimSpace(s.proposal("").Body), strings.TrimSpace(got.Body))
	}
}

func proposeAdopts(s *suite) {
	c := s.commit(s.draft(kNew))
	n := must(s, tried(s.Person.OpenPull(NewPull{Head: kHead, Base: s.main, Title: "by hand", Author: "mei"}))).Number
	p := must(s, tried(s.Repo.Propose(s.t.Context(), s.proposal(c.SHA))))
	s.diff("number", n, p.Number)
	s.diff("title", "Promote todo-api to staging", s.pull(n).Title)
	s.diff("listed", []int{n}, numbers(s.list()))
}

func proposeUpdates(s *suite) {
	p := s.proposed()
	w := s.proposal(p.HeadCommit)
	w.Number, w.Title, w.Body = p.Number, "Promote todo-api to staging: v3", "v1 → v3\n"
	again := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	s.diff("number", p.Number, again.Number)
	s.diff("title", w.Title, s.pull(p.Number).Title)
	s.diff("body", strings.TrimSpace(w.Body), strings.TrimSpace(s.pull(p.Number).Body))
	s.diff("state", scm.Open, again.State)
}

func proposeBesideFork(s *suite) {
	s.need(s.Can.Forks, "pull requests of forks")
	fork := must(s, tried(s.Person.OpenForkPull(
		NewPull{Head: kHead, Base: s.main, Title: "evil", Author: "eve", Fork: "eve/config"}, map[string]string{kFile: "evil"})))
	c := s.commit(s.draft(kNew))
	s.diff("listed before", 0, len(s.list()))
	p := must(s, tried(s.Repo.Propose(s.t.Context(), s.proposal(c.SHA))))
	if p.Number == fork.Number {
		s.t.Error("the fork's pull request was adopted")
	}
	s.diff("listed", []int{p.Number}, numbers(s.list()))
	s.diff("the fork's title", "evil", s.pull(fork.Number).Title)
}

func proposeDecorates(s *suite) {
	c := s.commit(s.draft(kNew))
	w := s.proposal(c.SHA)
	w.Labels = []string{"promotion", "staging"}
	if s.Can.Reviewers {
		w.Reviewers = []string{s.Reviewer}
		w.Assignees = []string{s.Reviewer}
	}
	p := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	got := s.pull(p.Number)
	if s.Can.Labels {
		s.diff("labels", w.Labels, slices.Sorted(slices.Values(got.Labels)))
	}
	if s.Can.Reviewers {
		s.diff("reviewers", w.Reviewers, got.Reviewers)
		s.diff("assignees", w.Assignees, got.Assignees)
	}
	if len(p.Warnings) > 0 && s.Can.Labels && s.Can.Reviewers {
		s.t.Errorf("warnings %v", p.Warnings)
	}
}

func proposeWarns(s *suite) {
	s.need(s.Can.Reviewers, "reviewers")
	c := s.commit(s.draft(kNew))
	w := s.proposal(c.SHA)
	w.Reviewers = []string{s.Ghost, s.Reviewer}
	p := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	if p.Number == 0 || !strings.Contains(strings.Join(p.Warnings, "\n"), s.Ghost) {
		s.t.Errorf("pull request %d, warnings %q; want one that names %s", p.Number, p.Warnings, s.Ghost)
	}
	s.diff("reviewers", []string{s.Reviewer}, s.pull(p.Number).Reviewers)
}

func proposeKeepsLabels(s *suite) {
	s.need(s.Can.Labels, "labels")
	p := s.proposed()
	must(s, tried(s.Person.EditPull(p.Number, func(p *Pull) error {
		p.Labels = []string{"urgent"}
		return nil
	})))
	w := s.proposal(p.HeadCommit)
	w.Number, w.Labels = p.Number, []string{"promotion"}
	must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	s.diff("labels", []string{"promotion", "urgent"}, slices.Sorted(slices.Values(s.pull(p.Number).Labels)))
	w.Labels = nil
	must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	s.diff("labels, none asked for", []string{"promotion", "urgent"}, slices.Sorted(slices.Values(s.pull(p.Number).Labels)))
}

func proposeNothing(s *suite) {
	p, err := s.Repo.Propose(s.t.Context(), s.proposal(s.tip("").Commit.SHA))
	if err == nil {
		s.t.Errorf("opened %+v", p)
	}
	s.diff("listed", 0, len(s.list()))
}

func proposeAfterUpdate(s *suite) {
	s.need(s.Can.UpdatesPR, "update of a pull request's branch")
	p := s.proposed()
	main := s.push(s.main, "README.md", "moved on")
	merge := must(s, tried(s.Person.UpdateBranch(p.Number)))
	list := s.list()
	if len(list) != 1 || list[0].HeadCommit != merge {
		s.t.Fatalf("listed %+v, want the head commit %s", list, merge)
	}
	s.diff("net change", []string{kFile}, s.changes(main, merge).Paths)
	c := s.commit(onHead(s.draft("v3\n"), merge, kNew))
	s.diff("net change after a commit", []string{kFile}, s.changes(main, c.SHA).Paths)
	s.diff("the base's file", "moved on", s.at(c.SHA, "README.md"))
}

func proposeDraft(s *suite) {
	s.need(s.Can.Draft, "drafts")
	c := s.commit(s.draft(kNew))
	w := s.proposal(c.SHA)
	w.Draft = true
	p := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	list := s.list()
	if !p.Draft || len(list) != 1 || !list[0].Draft || !s.pull(p.Number).Draft {
		s.t.Errorf("no draft: %+v, listed %+v", p, list)
	}
	s.diff("title", w.Title, list[0].Title)
	w.Number, w.Body = p.Number, "again\n"
	again := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	if !again.Draft {
		s.t.Error("an update took the draft away")
	}
}

func proposeAutoMerge(s *suite) {
	s.need(s.Can.AutoMerge, "auto-merge")
	c := s.commit(s.draft(kNew))
	w := s.proposal(c.SHA)
	w.AutoMerge = true
	p := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	if !p.AutoMerge || !s.pull(p.Number).AutoMerge {
		s.t.Errorf("auto-merge is not set: %+v", p)
	}
	w.Number, w.AutoMerge, w.Body = p.Number, false, "again\n"
	must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	if !s.pull(p.Number).AutoMerge {
		s.t.Error("auto-merge was cleared though the digest is the same")
	}
}

func proposeRenewed(s *suite) {
	s.need(s.Can.AutoMerge, "auto-merge")
	c := s.commit(s.draft(kNew))
	w := s.proposal(c.SHA)
	w.AutoMerge = true
	p := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	second := s.commit(onHead(s.draft("v3\n"), c.SHA, kNew))
	w.Number, w.AutoMerge, w.Renewed, w.HeadCommit = p.Number, false, true, second.SHA
	p = must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	if p.AutoMerge || s.pull(p.Number).AutoMerge {
		s.t.Error("auto-merge is still set for another digest")
	}
}

func proposeDismisses(s *suite) {
	p := s.proposed()
	must(s, tried(s.Person.Review(p.Number, s.Reviewer, "approved")))
	second := s.commit(onHead(s.draft("v3\n"), p.HeadCommit, kNew))
	w := s.proposal(second.SHA)
	w.Number, w.Renewed = p.Number, true
	p = must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	still := slices.ContainsFunc(s.pull(p.Number).Reviews, func(r Review) bool { return r.State == "approved" })
	if still && len(p.Warnings) == 0 {
		s.t.Error("the approval still counts and no warning says so")
	}
}
