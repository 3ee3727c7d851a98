// Package scmtest holds what tests of a code repository share: Store, one
// repository's branches, commits and pull requests as a forge keeps them, with
// real git objects; Conform, the suite that every scm.Repository passes; and
// Bare, a bare repository on disk that is made without the git binary.
package scmtest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/memory"

	"tagboat/scm/internal/gitobj"
)

// The refusals of a Store. A fake forge turns each into its own status and text.
var (
	ErrBranchExists   = errors.New("branch already exists")
	ErrBranchMissing  = errors.New("branch does not exist")
	ErrBranchName     = errors.New("invalid branch name")
	ErrNameConflict   = errors.New("branch name conflicts with another branch") // a and a/b cannot both be
	ErrStale          = errors.New("branch is not at the expected commit")
	ErrNotFastForward = errors.New("not a fast forward")
	ErrProtected      = errors.New("branch is protected")
	ErrNoObject       = errors.New("no such object")
	ErrNoPull         = errors.New("no such pull request")
	ErrPullExists     = errors.New("an open pull request for this head and base already exists")
	ErrNoCommits      = errors.New("no commits between base and head")
	ErrConflict       = errors.New("merge conflict")
	ErrState          = errors.New("pull request is in another state")
	// ErrPath and ErrPathConflict are what WriteTree answers to a path that no
	// tree may hold, and to one that is wanted as a file and as a directory. A
	// path that is not there is fs.ErrNotExist.
	ErrPath         = gitobj.ErrPath
	ErrPathConflict = gitobj.ErrPathConflict
)

// Store is one repository as a forge keeps it. It is safe for concurrent use; a
// fake forge is an http.Handler on top of it.
//
// Two kinds of caller use it. A fake acts for a token: WriteTree, WriteCommit
// and SetBranch refuse what a forge refuses, protected branches too. A test acts
// as a person (Push, MergePullRequest, ClosePullRequest …), whom no protection
// stops.
type Store struct {
	mu            sync.Mutex
	git           storage.Storer
	defaultBranch string
	protected     []string
	clock         func() time.Time
	peek          func() time.Time // the clock, without a step
	number        int
	pulls         []*Pull
	issues        map[int]bool
	moves         []Move // oldest first
	moved         int
	evidence      evidence
	talk          talk
	runs          []*Run
}

// NewStore makes a repository in memory whose default branch holds files as one
// commit. It panics on a path that no tree may hold.
func NewStore(defaultBranch string, files map[string]string) *Store {
	s, err := OpenStore(memory.NewStorage(), defaultBranch)
	if err != nil {
		panic(err)
	}
	if _, err := s.Push(defaultBranch, "seed", "Seed", files); err != nil {
		panic(err)
	}
	return s
}

// OpenStore is a Store over git's own storage, for instance a bare repository on
// disk. Pull requests stay in memory.
func OpenStore(git storage.Storer, defaultBranch string) (*Store, error) {
	head := plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(defaultBranch))
	if err := git.SetReference(head); err != nil {
		return nil, fmt.Errorf("set HEAD to %s: %w", defaultBranch, err)
	}
	s := &Store{git: git, defaultBranch: defaultBranch, issues: map[int]bool{}, evidence: newEvidence()}
	s.tick(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return s, nil
}

// tick is the clock without a clock: what happens is one second later each time.
func (s *Store) tick(now time.Time) {
	s.clock = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	s.peek = func() time.Time { return now }
}

// SetClock replaces the Store's clock, which starts at 2026-01-01 UTC and goes
// one second further with everything that happens. now is called under the
// Store's lock.
func (s *Store) SetClock(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock, s.peek = now, now
}

// Clock is the time that the Store's clock shows: what a fake says in the header
// Date.
func (s *Store) Clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peek()
}

// Advance lets time pass, after which the clock ticks again.
func (s *Store) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick(s.peek().Add(d))
}

// DefaultBranch names the default branch.
func (s *Store) DefaultBranch() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.defaultBranch
}

// Protect makes SetBranch and DeleteBranch refuse the branches that match a
// pattern of path.Match, where a final /* also matches deeper names.
func (s *Store) Protect(pattern string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protected = append(s.protected, pattern)
}

// Protected tells whether a pattern of Protect matches the branch.
func (s *Store) Protected(branch string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isProtected(branch)
}

func (s *Store) isProtected(branch string) bool {
	return slices.ContainsFunc(s.protected, func(pattern string) bool {
		if dir, ok := strings.CutSuffix(pattern, "/*"); ok && strings.HasPrefix(branch, dir+"/") {
			return true
		}
		ok, err := path.Match(pattern, branch)
		return ok && err == nil
	})
}

// Branch is a branch's newest commit; ok is false if there is no such branch.
func (s *Store) Branch(name string) (sha string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.branch(name)
	if !ok {
		return "", false
	}
	return h.String(), true
}

func (s *Store) branch(name string) (plumbing.Hash, bool) {
	ref, err := s.git.Reference(plumbing.NewBranchReferenceName(name))
	if err != nil {
		return plumbing.ZeroHash, false
	}
	return ref.Hash(), true
}

// Branches are the names of all branches, sorted.
func (s *Store) Branches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.branches()
}

func (s *Store) branches() []string {
	refs, err := s.git.IterReferences()
	if err != nil {
		panic(fmt.Errorf("list branches: %w", err))
	}
	var names []string
	err = refs.ForEach(func(r *plumbing.Reference) error {
		if r.Name().IsBranch() {
			names = append(names, r.Name().Short())
		}
		return nil
	})
	if err != nil {
		panic(fmt.Errorf("list branches: %w", err))
	}
	slices.Sort(names)
	return names
}

// SetBranch moves a branch to a commit, or makes it. With expect it must be at
// that commit (ErrStale, ErrBranchMissing); without, it must not exist unless
// force is set (ErrBranchExists). Without force only a fast forward is accepted
// (ErrNotFastForward). It refuses protected branches (ErrProtected), unlawful
// names (ErrBranchName), names that are the folder of another branch or below one
// (ErrNameConflict) and commits that are not there (ErrNoObject).
func (s *Store) SetBranch(name, expect, sha string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isProtected(name) {
		return fmt.Errorf("%w: %s", ErrProtected, name)
	}
	if err := s.checkMove(name, expect, sha, force); err != nil {
		return err
	}
	return s.move(name, plumbing.NewHash(sha))
}

func (s *Store) checkMove(name, expect, sha string, force bool) error {
	if _, err := object.GetCommit(s.git, plumbing.NewHash(sha)); err != nil {
		return fmt.Errorf("%w: commit %s", ErrNoObject, sha)
	}
	at, exists := s.branch(name)
	switch {
	case !exists && expect != "":
		return fmt.Errorf("%w: %s", ErrBranchMissing, name)
	case !exists:
		return s.checkName(name)
	case expect == "" && !force:
		return fmt.Errorf("%w: %s", ErrBranchExists, name)
	case expect != "" && at.String() != expect:
		return fmt.Errorf("%w: %s is at %s, expected %s", ErrStale, name, at, expect)
	case force:
		return nil
	}
	ok, err := s.isAncestor(at, plumbing.NewHash(sha))
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s from %s to %s", ErrNotFastForward, name, at, sha)
	}
	return err
}

// MoveBranch moves a branch that exists to a commit, whatever it is at, as an
// API without an expected head does: ErrBranchMissing if there is no such
// branch, ErrNotFastForward without force, and ErrProtected and ErrNoObject.
func (s *Store) MoveBranch(name, sha string, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isProtected(name) {
		return fmt.Errorf("%w: %s", ErrProtected, name)
	}
	at, ok := s.branch(name)
	if !ok {
		return fmt.Errorf("%w: %s", ErrBranchMissing, name)
	}
	if err := s.checkMove(name, at.String(), sha, force); err != nil {
		return err
	}
	return s.move(name, plumbing.NewHash(sha))
}

// CheckName tells whether a branch of that name could be made: ErrBranchName,
// ErrNameConflict or nil.
func (s *Store) CheckName(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkName(name)
}

func (s *Store) checkName(name string) error {
	if err := plumbing.NewBranchReferenceName(name).Validate(); err != nil {
		return fmt.Errorf("%w %q: %w", ErrBranchName, name, err)
	}
	for _, other := range s.branches() {
		if strings.HasPrefix(name, other+"/") || strings.HasPrefix(other, name+"/") {
			return fmt.Errorf("%w: %s and %s", ErrNameConflict, name, other)
		}
	}
	return nil
}

// DeleteBranch deletes a branch and closes the open pull requests of it, which
// keep their head commit. With expect it must be at that commit (ErrStale). The
// default branch and protected ones are refused (ErrProtected).
func (s *Store) DeleteBranch(name, expect string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.branch(name)
	switch {
	case !ok:
		return fmt.Errorf("%w: %s", ErrBranchMissing, name)
	case name == s.defaultBranch || s.isProtected(name):
		return fmt.Errorf("%w: %s", ErrProtected, name)
	case expect != "" && at.String() != expect:
		return fmt.Errorf("%w: %s is at %s, expected %s", ErrStale, name, at, expect)
	}
	if err := s.git.RemoveReference(plumbing.NewBranchReferenceName(name)); err != nil {
		return fmt.Errorf("delete branch %s: %w", name, err)
	}
	s.record(name, "branch_deletion", at, plumbing.ZeroHash)
	for _, p := range s.openPulls(name) {
		s.closePull(p, "")
	}
	return nil
}

// move writes the reference, keeps a record and lets the pull requests follow.
func (s *Store) move(name string, to plumbing.Hash) error {
	if err := s.recordMove(name, to); err != nil {
		return err
	}
	ref := plumbing.NewHashReference(plumbing.NewBranchReferenceName(name), to)
	if err := s.git.SetReference(ref); err != nil {
		return fmt.Errorf("set branch %s: %w", name, err)
	}
	return s.followBranch(name, to)
}

// objects is what the gitobj functions read and write.
func (s *Store) objects() storer.EncodedObjectStorer { return s.git }

// Now is the time of something that happens now: the default clock goes on.
func (s *Store) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock()
}
