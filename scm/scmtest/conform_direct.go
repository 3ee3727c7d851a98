package scmtest

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"tagboat/scm"
)

// directCases are commits on the base branch itself: Branch is From's, and Expect
// the commit of From.
func directCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"direct commit moves the base branch":                           directMoves,
		"direct commit on a base that moved keeps the person's commit":  directStale,
		"direct commit on a base whose file moved writes nothing":       directStaleFile,
		"direct commit on a protected base is refused":                  directProtected,
		"direct commit on a base that is gone is moved":                 directGone,
		"direct commits at once: one wins, and nobody's commit is lost": directRace,
		"direct commit merges no open pull request":                     directBesidePull,
	}
}

// direct makes a draft a commit on the branch that it starts from.
func direct(d scm.Draft) scm.Draft {
	d.Branch, d.Expect = d.From.Branch, d.From.Commit.SHA
	return d
}

func directMoves(s *suite) {
	d := direct(s.draft(kNew))
	c := s.commit(d)
	info, _ := s.Person.Commit(c.SHA)
	s.diff("parents", []string{d.Expect}, info.Parents)
	s.diff("told parents", info.Parents, c.Parents)
	s.diff("file", kNew, s.at(c.SHA, kFile))
	s.diff("another file", "# config\n", s.at(c.SHA, "README.md"))
	s.diff("tip", c.SHA, s.tip(s.main).Commit.SHA)
}

// holds tells whether a branch still holds a commit.
func (s *suite) holds(branch, sha string) bool {
	s.t.Helper()
	return slices.Contains(s.log(s.branch(branch), "", 0), sha)
}

func directStale(s *suite) {
	d := direct(s.draft(kNew))
	person := s.push(s.main, "README.md", "moved on")
	if s.Can.CompareAndSwap {
		s.refusedAs(d, scm.ErrMoved, person)
		return
	}
	_, err := s.Repo.Commit(s.t.Context(), d)
	s.wantErr(err, scm.ErrMoved)
	if !s.holds(s.main, person) {
		s.t.Error("the person's commit is lost")
	}
}

func directStaleFile(s *suite) {
	d := direct(s.draft(kNew))
	person := s.push(s.main, kFile, "a person was here")
	s.refusedAs(d, scm.ErrMoved, person)
}

func directProtected(s *suite) {
	s.need(s.Can.Protection, "protected branches")
	d := direct(s.draft(kNew))
	s.Person.Protect(s.main)
	s.refusedAs(d, scm.ErrRefused, d.Expect)
}

func directGone(s *suite) {
	s.push("production", "README.md", "another environment")
	d := s.draft(kNew)
	d.From = s.tip("production")
	d = direct(d)
	if err := s.Person.DeleteBranch("production", ""); err != nil {
		s.t.Fatal(err)
	}
	s.refusedAs(d, scm.ErrMoved, "")
}

func directRace(s *suite) {
	const hands = 4
	var wg sync.WaitGroup
	errs, made := make([]error, hands), make([]scm.Commit, hands)
	start := s.tip("").Commit.SHA
	for i := range hands {
		d := direct(s.draft("v2 by " + strings.Repeat("x", i+1) + "\n"))
		wg.Go(func() { made[i], errs[i] = s.Repo.Commit(s.t.Context(), d) })
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		switch {
		case err == nil:
			won++
			if !s.holds(s.main, made[i].SHA) {
				s.t.Errorf("commit %s went through and is lost", made[i].SHA)
			}
		case !errors.Is(err, scm.ErrMoved):
			s.t.Errorf("error %v, want moved", err)
		}
	}
	s.diff("commits that went through", 1, won)
	if !s.holds(s.main, start) {
		s.t.Error("the base's own commit is lost")
	}
}

func directBesidePull(s *suite) {
	s.need(s.Can.PullRequests, "pull requests")
	p := s.proposed()
	d := s.draft(kNew)
	d.Files = []scm.File{{Path: "README.md", Old: []byte("# config\n"), New: []byte("# config, by hand\n")}}
	s.commit(direct(d))
	list := s.list()
	if len(list) != 1 || list[0].Number != p.Number || list[0].State != scm.Open {
		s.t.Errorf("listed %+v, want #%d open", list, p.Number)
	}
}
