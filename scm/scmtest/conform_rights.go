package scmtest

import (
	"errors"
	"maps"
	"slices"

	"tagboat/scm"
)

func rightsCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"permission: none to admin":             permissionLevels,
		"permission of nobody is not found":     permissionNobody,
		"member: in the team, or not":           memberOfTeam,
		"member of a missing team is not found": memberOfNoTeam,
		"member: a login that is nobody's":      memberNobody,
		"self is a login":                       selfLogin,
	}
}

func (s *suite) rights() (scm.Rights, Witness) {
	s.t.Helper()
	r, ok := s.Repo.(scm.Rights)
	s.need(ok, "rights")
	w, ok := s.Person.(Witness)
	s.need(ok, "witness beside it")
	return r, w
}

func permissionLevels(s *suite) {
	r, w := s.rights()
	logins := map[string]scm.Permission{
		"nina": scm.PermissionNone, "rosa": scm.PermissionRead, "walt": scm.PermissionWrite, "anna": scm.PermissionAdmin,
	}
	for _, login := range slices.Sorted(maps.Keys(logins)) {
		err := w.Grant(login, logins[login])
		if errors.Is(err, errors.ErrUnsupported) { // a public repository can be read by all
			continue
		}
		must(s, tried(true, err))
		s.diff(login, logins[login], must(s, tried(r.Permission(s.t.Context(), login))))
	}
}

func permissionNobody(s *suite) {
	r, _ := s.rights()
	p, err := r.Permission(s.t.Context(), s.Ghost)
	s.wantErr(err, scm.ErrNotFound)
	if p.Allows(scm.PermissionRead) {
		s.t.Errorf("%s may %s", s.Ghost, p)
	}
}

// team makes a team with the reviewer in it, and a user beside it.
func (s *suite) team() (scm.Rights, string) {
	s.t.Helper()
	r, w := s.rights()
	must(s, tried(true, w.Grant("walt", scm.PermissionWrite)))
	must(s, tried(true, w.Grant(s.Reviewer, scm.PermissionWrite)))
	return r, must(s, tried(w.AddTeam("releasers", s.Reviewer)))
}

func memberOfTeam(s *suite) {
	r, team := s.team()
	for login, want := range map[string]bool{s.Reviewer: true, "walt": false} {
		s.diff(login, want, must(s, tried(r.Member(s.t.Context(), team, login))))
		s.diff(login+" by @", want, must(s, tried(r.Member(s.t.Context(), "@"+team, login))))
	}
}

func memberOfNoTeam(s *suite) {
	r, team := s.team()
	in, err := r.Member(s.t.Context(), team+"-of-another-name", s.Reviewer)
	s.wantErr(err, scm.ErrNotFound)
	s.diff("member", false, in)
}

func memberNobody(s *suite) {
	r, team := s.team()
	// GitHub does not tell a login that is nobody's from one that is elsewhere.
	in, err := r.Member(s.t.Context(), team, s.Ghost)
	if err != nil {
		s.wantErr(err, scm.ErrNotFound)
	}
	s.diff("member", false, in)
}

func selfLogin(s *suite) {
	r, _ := s.rights()
	self := must(s, tried(r.Self(s.t.Context())))
	s.diff("author of what it opens", s.proposed().Author, self)
}
