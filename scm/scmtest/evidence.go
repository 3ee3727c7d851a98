package scmtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"tagboat/scm/internal/gitobj"
)

// Status is one commit status or check run that was ever posted.
type Status struct {
	ID          int    // ascending in the order of posting
	Context     string // of a check run: its name
	State       string // in the words of the forge that is played
	Description string
	URL         string
	Creator     string // login; of a check run the slug of its app
	CheckRun    bool
	Time        time.Time
}

// evidence is what a Store knows beyond git objects and pull requests.
type evidence struct {
	statuses    map[string][]Status // by commit, oldest first
	posted      int
	permissions map[string]string // login in lower case to the word of the forge that is played
	teams       map[string]*team  // by name in lower case
}

type team struct {
	id      int
	parent  string
	members map[string]bool // login in lower case; false: invited
}

func newEvidence() evidence {
	return evidence{statuses: map[string][]Status{}, permissions: map[string]string{}, teams: map[string]*team{}}
}

// PostStatus posts a status or check run on a commit: ErrNoObject if there is
// none. ID and Time are the Store's.
func (s *Store) PostStatus(sha string, st Status) (Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := object.GetCommit(s.git, plumbing.NewHash(sha)); err != nil || !plumbing.IsHash(sha) {
		return Status{}, fmt.Errorf("%w: commit %s", ErrNoObject, sha)
	}
	s.evidence.posted++
	st.ID, st.Time = s.evidence.posted, s.clock()
	s.evidence.statuses[sha] = append(s.evidence.statuses[sha], st)
	return st, nil
}

// Statuses are all that was posted on a commit, oldest first.
func (s *Store) Statuses(sha string) []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.evidence.statuses[sha])
}

// SetPermission says what a login may do, in the words of the forge that is
// played. "none" is a user without any right.
func (s *Store) SetPermission(login, permission string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evidence.permissions[strings.ToLower(login)] = permission
}

// Permission is what SetPermission said of a login; ok is false for nobody.
func (s *Store) Permission(login string) (permission string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	permission, ok = s.evidence.permissions[strings.ToLower(login)]
	return permission, ok
}

// Logins are those of whom SetPermission said something, in lower case and sorted.
func (s *Store) Logins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.evidence.permissions))
}

// SetTeam makes a team below parent ("" is none). A member whose name ends in ?
// is invited and has not accepted.
func (s *Store) SetTeam(name, parent string, members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &team{id: 501 + len(s.evidence.teams), parent: strings.ToLower(parent), members: map[string]bool{}}
	for _, m := range members {
		login, invited := strings.CutSuffix(strings.ToLower(m), "?")
		t.members[login] = !invited
	}
	s.evidence.teams[strings.ToLower(name)] = t
}

// Team tells the id of a team and what it is below; ok is false if there is none.
func (s *Store) Team(name string) (id int, parent string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.evidence.teams[strings.ToLower(name)]
	if t == nil {
		return 0, "", false
	}
	return t.id, t.parent, true
}

// Teams are the names of all teams, in lower case and sorted.
func (s *Store) Teams() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.evidence.teams))
}

// Membership tells whether a login is in a team, or with nested in one below it:
// "active", "pending" or "".
func (s *Store) Membership(name, login string, nested bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.membership(strings.ToLower(name), strings.ToLower(login), nested)
}

func (s *Store) membership(name, login string, nested bool) string {
	t := s.evidence.teams[name]
	if t == nil {
		return ""
	}
	best := ""
	if active, ok := t.members[login]; ok {
		if best = "pending"; active {
			return "active"
		}
	}
	for child, c := range s.evidence.teams {
		if nested && c.parent == name {
			if m := s.membership(child, login, nested); m == "active" {
				return m
			}
		}
	}
	return best
}

// PullsOf are the pull requests that a commit belongs to, newest first: it is
// among those that they add to their base, or what a merge of them made there.
func (s *Store) PullsOf(sha string) ([]Pull, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Pull
	for _, p := range slices.Backward(s.pulls) {
		in, err := s.brings(p, plumbing.NewHash(sha))
		if err != nil {
			return nil, err
		}
		if in {
			list = append(list, p.copy())
		}
	}
	return list, nil
}

func (s *Store) brings(p *Pull, commit plumbing.Hash) (bool, error) {
	base, _ := s.branch(p.Base)
	ends := []string{p.HeadSHA}
	if p.State == "merged" {
		base = plumbing.NewHash(p.MergedOnto)
		ends = append(ends, p.MergeSHA)
	}
	for _, end := range ends {
		commits, err := gitobj.Between(s.objects(), base, plumbing.NewHash(end))
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(commits, func(c *object.Commit) bool { return c.Hash == commit }) {
			return true, nil
		}
	}
	return false, nil
}
