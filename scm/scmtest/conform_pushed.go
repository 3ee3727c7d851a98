package scmtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"tagboat/scm"
)

func pushedCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"pushed: the tip": pushedTip,
		"pushed: an earlier commit, by its own push":        pushedEarlier,
		"pushed: among several of one push, by that push":   pushedTogether,
		"pushed: among the commits of a new branch":         pushedNewBranch,
		"pushed: a commit through the API":                  pushedByAPI,
		"pushed: what a merge brought, by the merge":        pushedByMerge,
		"pushed: not on that branch":                        pushedElsewhere,
		"pushed: forced away and back, when it came back":   pushedBack,
		"pushed: of a missing commit or branch":             pushedMissing,
		"pushed: behind the first page":                     pushedPages,
		"pushed: what the forge has no record of any more":  pushedForgotten,
		"pushed: the commits' own dates are nobody's clock": pushedDates,
	}
}

// span is the time of the forge's clock in which something was done, widened by a
// second, for forges tell whole ones.
type span struct{ from, to time.Time }

// late is how long a forge may take to write a record.
func (s *suite) late() time.Duration {
	if s.Can.Slow {
		return 4 * time.Second
	}
	return time.Second
}

// during does something, so long after all before that no two spans overlap.
func (s *suite) during(do func()) span {
	s.t.Helper()
	_, w := s.evidence()
	s.pass()
	from := w.Clock()
	do()
	return span{from.Add(-time.Second), w.Clock().Add(s.late())}
}

// pass lets more time go by than a record may be late.
func (s *suite) pass() {
	if store, ok := s.Person.(interface{ Advance(time.Duration) }); ok {
		store.Advance(3 * time.Second)
		return
	}
	time.Sleep(s.late() + time.Second)
}

// pushed asks until the forge has written the record.
func (s *suite) pushed(branch, sha string) (at time.Time, err error) {
	s.t.Helper()
	e, _ := s.evidence()
	for range 20 {
		at, err = e.Pushed(s.t.Context(), branch, sha)
		if err == nil || !s.Can.Slow || !errors.Is(err, scm.ErrNotFound) {
			return at, err
		}
		time.Sleep(250 * time.Millisecond)
	}
	return at, err
}

func (s *suite) wantPushed(branch, sha string, in span) {
	s.t.Helper()
	at, err := s.pushed(branch, sha)
	if err != nil {
		s.t.Fatal(err)
	}
	if at.Before(in.from) || at.After(in.to) {
		s.t.Errorf("pushed at %v, want between %v and %v", at, in.from, in.to)
	}
}

func pushedTip(s *suite) {
	var sha string
	in := s.during(func() { sha = s.push(s.main, kFile, kNew) })
	s.pass()
	s.wantPushed(s.main, sha, in)
}

func pushedEarlier(s *suite) {
	var first, second string
	one := s.during(func() { first = s.push(s.main, kFile, kNew) })
	two := s.during(func() { second = s.push(s.main, "README.md", "moved on") })
	s.during(func() { s.push("another", "README.md", "on another branch") })
	s.wantPushed(s.main, second, two)
	s.wantPushed(s.main, first, one)
}

// together pushes three commits at once, which were made an hour before.
func (s *suite) together(branch string) (shas []string) {
	s.t.Helper()
	_, w := s.evidence()
	return must(s, tried(w.PushTogether(branch, "mei", w.Clock().Add(-time.Hour),
		map[string]string{kFile: kNew}, map[string]string{"README.md": "moved on"}, map[string]string{"README.md": "and on"})))
}

func pushedTogether(s *suite) {
	var shas []string
	in := s.during(func() { shas = s.together(s.main) })
	s.during(func() { s.push(s.main, "LICENSE", "later") })
	for _, sha := range shas {
		s.wantPushed(s.main, sha, in)
	}
}

func pushedNewBranch(s *suite) {
	var shas []string
	in := s.during(func() { shas = s.together("another") })
	for _, sha := range shas {
		s.wantPushed("another", sha, in)
	}
}

func pushedByAPI(s *suite) {
	var proposed, committed scm.Commit
	one := s.during(func() { proposed = s.commit(s.draft(kNew)) })
	two := s.during(func() { committed = s.commit(direct(s.draft(kNew))) })
	s.wantPushed(kHead, proposed.SHA, one)
	s.wantPushed(s.main, committed.SHA, two)
}

func pushedByMerge(s *suite) {
	for _, how := range []string{"merge", "squash"} {
		head := "tagboat/" + how
		shas := s.together(head)
		p := must(s, tried(s.Person.OpenPull(NewPull{Head: head, Base: s.main, Title: how, Author: "mei"})))
		var merge string
		in := s.during(func() { merge = must(s, tried(s.Person.MergePullRequest(p.Number, how))) })
		s.wantPushed(s.main, merge, in)
		if how == "merge" {
			s.wantPushed(s.main, shas[1], in)
		}
		s.push(s.main, kFile, "back\n"+how)
		s.push(s.main, "README.md", "back "+how)
	}
}

func (s *suite) notPushed(branch, sha string) {
	s.t.Helper()
	e, _ := s.evidence()
	at, err := e.Pushed(s.t.Context(), branch, sha)
	s.wantErr(err, scm.ErrNotFound)
	if !at.IsZero() {
		s.t.Errorf("pushed at %v", at)
	}
}

func pushedElsewhere(s *suite) {
	sha := s.push("another", kFile, kNew)
	s.notPushed(s.main, sha)
}

func pushedMissing(s *suite) {
	s.notPushed(s.main, noCommit)
	s.notPushed("no-such-branch", s.tip("").Commit.SHA)
}

func pushedBack(s *suite) {
	w, ok := s.Person.(interface {
		ForcePush(branch, sha string) error
	})
	s.need(ok, "force push beside it")
	before := s.push("another", "README.md", "1")
	sha := s.push("another", kFile, kNew)
	s.push("kept", "LICENSE", "so that the commits stay")
	must(s, tried(s.Person.MergeBranch("another", "kept")))
	s.during(func() { must(s, tried(0, w.ForcePush("another", before))) })
	s.pass()
	s.notPushed("another", sha)
	in := s.during(func() { must(s, tried(0, w.ForcePush("another", sha))) })
	s.wantPushed("another", sha, in)
}

func pushedPages(s *suite) {
	s.need(!s.Can.Slow, "patience")
	var sha string
	in := s.during(func() { sha = s.push(s.main, kFile, kNew) })
	for i := range 105 { // the largest page that any forge gives has 100
		s.push(s.main, "README.md", fmt.Sprint(i))
	}
	s.wantPushed(s.main, sha, in)
}

func pushedForgotten(s *suite) {
	w, ok := s.Person.(interface{ ForgetMoves() })
	s.need(ok, "loss of records")
	sha := s.push(s.main, kFile, kNew)
	w.ForgetMoves()
	s.notPushed(s.main, sha)
	s.push(s.main, "README.md", "later")
	s.notPushed(s.main, sha)
	_, err := s.pushed(s.main, sha)
	if err == nil || !strings.Contains(err.Error(), "recorded") {
		s.t.Errorf("error %v does not say that there is no record", err)
	}
}

func pushedDates(s *suite) {
	_, w := s.evidence()
	var shas []string
	in := s.during(func() {
		shas = must(s, tried(w.PushTogether(s.main, "mei", w.Clock().Add(240*time.Hour), map[string]string{kFile: kNew})))
	})
	s.wantPushed(s.main, shas[0], in)
}
