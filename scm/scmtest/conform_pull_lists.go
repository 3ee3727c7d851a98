package scmtest

import (
	"fmt"
	"slices"
	"strings"

	"tagboat/scm"
)

func pullsAmongMany(s *suite) {
	p := s.proposed()
	s.push("other-base", "b.txt", "b")
	must(s, tried(s.Person.OpenPull(NewPull{Head: kHead, Base: "other-base", Title: "another base", Author: "mei"})))
	many := 150
	if s.Can.Slow {
		many = 3
	}
	for i := range many {
		head := fmt.Sprintf("%s-%d", kHead, i)
		s.push(head, "n.txt", head)
		must(s, tried(s.Person.OpenPull(NewPull{Head: head, Base: s.main, Title: head, Author: "mei"})))
	}
	s.diff("listed", []int{p.Number}, numbers(s.list()))
}

func pullsClosed(s *suite) {
	p := s.proposed()
	if err := s.Person.ClosePullRequest(p.Number, "mei"); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Person.DeleteBranch(kHead, ""); err != nil {
		s.t.Fatal(err)
	}
	list := s.list()
	if len(list) != 1 || list[0].State != scm.Closed || list[0].HeadCommit != p.HeadCommit || list[0].Number != p.Number || list[0].Head != kHead {
		s.t.Fatalf("listed %+v, want one closed with head %s of %s", list, p.HeadCommit, kHead)
	}
	s.diff("log of the closed head", []string{p.HeadCommit}, s.log(p.HeadCommit, "", 1))
}

func pullsMerged(s *suite) {
	p := s.proposed()
	merge := must(s, tried(s.Person.MergePullRequest(p.Number, "squash")))
	list := s.list()
	if len(list) != 1 || list[0].State != scm.Merged || list[0].HeadCommit != p.HeadCommit {
		s.t.Fatalf("listed %+v, want one merged", list)
	}
	if got := list[0].MergeCommit; got != "" && got != merge {
		s.t.Errorf("merge commit %s, want %s", got, merge)
	}
}

func pullsOrder(s *suite) {
	first := s.proposed()
	if err := s.Person.ClosePullRequest(first.Number, "mei"); err != nil {
		s.t.Fatal(err)
	}
	second := must(s, tried(s.Repo.Propose(s.t.Context(), s.proposal(first.HeadCommit))))
	if second.Number == first.Number {
		s.t.Fatal("a closed pull request was taken up again")
	}
	s.diff("listed", []int{second.Number, first.Number}, numbers(s.list()))
}

func pullsOpen(s *suite) {
	s.diff("before", 0, len(s.open()))
	p := s.proposed()
	many := 105 // a page has 100 at most
	if s.Can.Slow {
		many = 3
	}
	want := []int{p.Number}
	for i := range many {
		head := fmt.Sprintf("%s-%d", kHead, i)
		s.push(head, "n.txt", head)
		want = append(want, must(s, tried(s.Person.OpenPull(NewPull{Head: head, Base: s.main, Title: head, Author: "mei"}))).Number)
	}
	slices.Reverse(want)
	s.push("other-base", "b.txt", "b")
	must(s, tried(s.Person.OpenPull(NewPull{Head: kHead, Base: "other-base", Title: "another base", Author: "mei"})))
	if s.Can.Forks {
		fork := NewPull{Head: kHead, Base: s.main, Title: "evil", Author: "eve", Fork: "eve/config"}
		want = slices.Insert(want, 2, must(s, tried(s.Person.OpenForkPull(fork, map[string]string{kFile: "evil"}))).Number)
	}
	if err := s.Person.ClosePullRequest(want[0], "mei"); err != nil {
		s.t.Fatal(err)
	}
	must(s, tried(s.Person.MergePullRequest(want[1], "merge")))
	list := s.open()
	s.diff("listed", want[2:], numbers(list))
	for _, p := range list {
		s.diff("from a fork", s.Can.Forks && p.Number == want[2], p.Fork)
	}
	last := list[len(list)-1]
	if last.Head != kHead || last.Base != s.main || last.HeadCommit != p.HeadCommit || last.State != scm.Open || last.Body == "" {
		s.t.Errorf("listed %+v, want %+v", last, p)
	}
}

func (s *suite) open() []scm.PullRequest {
	s.t.Helper()
	return must(s, tried(s.Repo.PullRequests(s.t.Context(), "", s.main)))
}

func pullsLabels(s *suite) {
	s.need(s.Can.Labels, "labels")
	c := s.commit(s.draft(kNew))
	w := s.proposal(c.SHA)
	w.Labels = []string{"staging", "promotion"}
	must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	for what, list := range map[string][]scm.PullRequest{"one": s.list(), "all": s.open()} {
		if len(list) != 1 {
			s.t.Fatalf("%s: listed %+v", what, list)
		}
		s.diff(what, []string{"promotion", "staging"}, list[0].Labels)
	}
}

func closeSays(s *suite) {
	p := s.proposed()
	p.Title, p.Body = p.Title+" (superseded)", "superseded\n"
	if err := s.Repo.Close(s.t.Context(), p, "v3 is there already"); err != nil {
		s.t.Fatal(err)
	}
	got := s.pull(p.Number)
	s.diff("state", "closed", got.State)
	s.diff("title", p.Title, got.Title)
	s.diff("body", strings.TrimSpace(p.Body), strings.TrimSpace(got.Body))
	s.diff("the branch", p.HeadCommit, s.branch(kHead))
	if !slices.ContainsFunc(got.Comments, func(c Comment) bool { return strings.Contains(c.Body, "v3 is there already") }) {
		s.t.Errorf("comments %+v do not say why", got.Comments)
	}
}

func branchIsProposal(s *suite) {
	s.diff("before", 0, len(s.list()))
	_, err := s.Repo.PullRequests(s.t.Context(), "", s.main)
	s.wantErr(err, scm.ErrUnsupported)
	c := s.commit(s.draft(kNew))
	w := s.proposal(c.SHA)
	w.Labels, w.AutoMerge = []string{"promotion"}, false
	p := must(s, tried(s.Repo.Propose(s.t.Context(), w)))
	list := s.list()
	if len(list) != 1 || list[0].Number != 0 || list[0].State != scm.Open || list[0].HeadCommit != c.SHA || list[0].Head != kHead {
		s.t.Fatalf("listed %+v, want the pushed branch", list)
	}
	if p.HeadCommit != c.SHA || p.State != scm.Open || len(p.Warnings) == 0 {
		s.t.Errorf("proposed %+v, want a warning about the label", p)
	}
	person := s.push(kHead, "README.md", "a person was here")
	s.wantErr(s.Repo.Close(s.t.Context(), list[0], "superseded"), scm.ErrMoved)
	s.diff("the person's branch", person, s.branch(kHead))
	must(s, tried(s.Person.MergeBranch(kHead, s.main)))
	s.diff("after the merge", 0, len(s.list()))
	if err := s.Repo.Close(s.t.Context(), scm.PullRequest{Head: kHead, Base: s.main, HeadCommit: person}, "merged"); err != nil {
		s.t.Fatal(err)
	}
	s.diff("the closed branch", "", s.branch(kHead))
}
