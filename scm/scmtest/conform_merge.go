package scmtest

import (
	"tagboat/scm"
)

func mergeCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"merge: bound to the head commit":            mergeBound,
		"merge: of a head that moved merges nothing": mergeMoved,
		"merge: again is no error":                   mergeAgain,
		"merge: of a conflict is refused":            mergeConflict,
		"merge: of a closed one merges nothing":      mergeClosed,
	}
}

func (s *suite) merger() scm.Merger {
	s.t.Helper()
	m, ok := s.Repo.(scm.Merger)
	s.need(ok, "merge")
	s.need(s.Can.MergesNow, "merge at once")
	return m
}

func mergeBound(s *suite) {
	m := s.merger()
	p := s.proposed()
	s.push(s.main, "README.md", "moved on")
	commit := must(s, tried(m.Merge(s.t.Context(), p, p.HeadCommit)))
	s.diff("the base branch", s.branch(s.main), commit)
	s.diff("its file", kNew, s.at(commit, kFile))
	s.diff("another file", "moved on", s.at(commit, "README.md"))
	s.diff("state", "merged", s.pull(p.Number).State)
}

func mergeMoved(s *suite) {
	m := s.merger()
	p := s.proposed()
	s.push(kHead, "README.md", "a person was here")
	before := s.branch(s.main)
	_, err := m.Merge(s.t.Context(), p, p.HeadCommit)
	s.wantErr(err, scm.ErrMoved)
	s.diff("the base branch", before, s.branch(s.main))
	s.diff("state", "open", s.pull(p.Number).State)
}

func mergeAgain(s *suite) {
	m := s.merger()
	p := s.proposed()
	first := must(s, tried(m.Merge(s.t.Context(), p, p.HeadCommit)))
	s.diff("commit", first, must(s, tried(m.Merge(s.t.Context(), p, p.HeadCommit))))
}

func mergeConflict(s *suite) {
	m := s.merger()
	p := s.proposed()
	before := s.push(s.main, kFile, "a person was here")
	_, err := m.Merge(s.t.Context(), p, p.HeadCommit)
	s.wantErr(err, scm.ErrRefused)
	s.diff("the base branch", before, s.branch(s.main))
}

func mergeClosed(s *suite) {
	m := s.merger()
	p := s.proposed()
	if err := s.Person.ClosePullRequest(p.Number, "mei"); err != nil {
		s.t.Fatal(err)
	}
	before := s.branch(s.main)
	_, err := m.Merge(s.t.Context(), p, p.HeadCommit)
	s.wantErr(err, scm.ErrRefused)
	s.diff("the base branch", before, s.branch(s.main))
}
