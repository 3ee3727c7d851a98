package scmtest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
)

// Harness is one fresh repository as a forge serves it, and a person at its side.
// The repository's default branch has at least one commit; Conform pushes what it
// needs on top.
type Harness struct {
	Repo   scm.Repository
	Person Person
	Can    Can
	// Reviewer is a login whose review can be asked for, Ghost one that is nobody.
	Reviewer, Ghost string
}

// Can is what a repository's forge is able to do, as its documentation says.
type Can struct {
	PullRequests bool // false: a proposal is a pushed branch
	// CompareAndSwap: a branch that moved is never written, whichever files moved.
	// Without it only a change of the same file is guarded.
	CompareAndSwap bool
	// Rebuild: a commit on a branch that exists has the base's tip as its only
	// parent. Without it the branch gets one more commit.
	Rebuild    bool
	Protection bool // protected branches refuse, and Tip tells them
	Forks      bool // a pull request may come from a fork (Person.OpenForkPull)
	Draft      bool
	AutoMerge  bool
	MergesNow  bool // nothing but the branch protection stands in the way of a merge
	Labels     bool // Person.Pull tells the labels
	Reviewers  bool // Person.Pull tells the reviewers
	UpdatesPR  bool // Person.UpdateBranch works
	Dispatch   bool // its own CI can be asked to run
	Workflows  bool // a run is of one workflow file among several, with a trigger of its own
	Runs       bool // Talker.SetRun works
	Slow       bool // a real server: leave out what takes many requests
}

// Person is somebody who works beside Tagboat. *Store is one; against a real
// server it speaks git and the forge's API. errors.ErrUnsupported skips the case.
type Person interface {
	DefaultBranch() string
	Branch(name string) (sha string, ok bool)
	Commit(sha string) (CommitInfo, bool)
	ReadFile(sha, path string) (content []byte, mode string, err error)

	Push(branch, author, message string, files map[string]string) (sha string, err error)
	PushChanges(branch, author, message string, changes []TreeChange) (sha string, err error)
	DeleteBranch(name, expect string) error
	MergeBranch(from, into string) (sha string, err error)
	Protect(pattern string)

	Pull(number int) (Pull, error)
	OpenPull(n NewPull) (Pull, error)
	OpenForkPull(n NewPull, files map[string]string) (Pull, error)
	EditPull(number int, edit func(*Pull) error) (Pull, error)
	Review(number int, author, state string) (Review, error)
	MergePullRequest(number int, how string) (sha string, err error)
	ClosePullRequest(number int, by string) error
	UpdateBranch(number int) (sha string, err error)
}

var _ Person = (*Store)(nil)

// The paths of the tree that every case starts from.
const (
	kFile = "apps/todo-api/overlays/staging/kustomization.yaml"
	kRun  = "hack/run.sh"
	kOld  = "images:\n- name: todo-api\n  newTag: v1\n"
	kNew  = "images:\n- name: todo-api\n  newTag: v2\n"
	kHead = "tagboat/staging/todo-api"
)

// pushedBranch is the case for repositories without pull requests; all others of
// pullCases, evidenceCases, rightsCases and mergeCases are for those with them.
const pushedBranch = "a pushed branch is the proposal"

func seed() []TreeChange {
	return []TreeChange{
		{Path: "README.md", Content: []byte("# config\n")},
		{Path: kFile, Content: []byte(kOld)},
		{Path: "apps/todo-api/overlays/staging/ünï cödé+.yaml", Content: []byte("a: ü\n")},
		{Path: "apps/todo-api/overlays/production/kustomization.yaml", Content: []byte(kOld)},
		{Path: kRun, Mode: "100755", Content: []byte("#!/bin/sh\n")},
		{Path: "current", Mode: "120000", Content: []byte("apps/todo-api")},
	}
}

// suite is one case's repository, with short words for what all cases do.
type suite struct {
	Harness
	t    *testing.T
	main string
}

// Conform runs the suite that every scm.Repository passes. fresh makes one
// repository for each case.
func Conform(t *testing.T, fresh func(t *testing.T) Harness) {
	t.Helper()
	for _, cases := range []map[string]func(*suite){readCases(), commitCases(), directCases(), pullCases(), evidenceCases(), rightsCases(), mergeCases(), conversationCases(), dispatchCases()} {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			t.Run(name, func(t *testing.T) {
				s := &suite{Harness: fresh(t), t: t}
				if onlyForge(name) && s.Can.PullRequests == (name == pushedBranch) {
					t.Skip("the forge has no pull requests, or has them")
				}
				s.main = s.Person.DefaultBranch()
				must(s, tried(s.Person.PushChanges(s.main, "mei", "Seed the configuration", seed())))
				cases[name](s)
			})
		}
	}
}

// onlyForge tells the cases of what plain git has not got.
func onlyForge(name string) bool {
	for _, cases := range []map[string]func(*suite){pullCases(), evidenceCases(), rightsCases(), mergeCases(), conversationCases(), dispatchCases()} {
		if _, ok := cases[name]; ok {
			return true
		}
	}
	return false
}

type result[T any] struct {
	value T
	err   error
}

// tried pairs a value with its error for must.
func tried[T any](v T, err error) result[T] { return result[T]{v, err} }

// must ends the case on an error; what the person's side cannot do skips it.
func must[T any](s *suite, r result[T]) T {
	s.t.Helper()
	if errors.Is(r.err, errors.ErrUnsupported) {
		s.t.Skip(r.err)
	}
	if r.err != nil {
		s.t.Fatal(r.err)
	}
	return r.value
}

func (s *suite) need(ok bool, what string) {
	s.t.Helper()
	if !ok {
		s.t.Skip("the forge has no " + what)
	}
}

func (s *suite) diff(what string, want, got any) {
	s.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func (s *suite) wantErr(err, want error) {
	s.t.Helper()
	if !errors.Is(err, want) {
		s.t.Errorf("error %v, want %v", err, want)
	}
}

func (s *suite) tip(branch string) scm.Tip {
	s.t.Helper()
	return must(s, tried(s.Repo.Tip(s.t.Context(), branch)))
}

func (s *suite) branch(name string) string {
	s.t.Helper()
	sha, _ := s.Person.Branch(name)
	return sha
}

func (s *suite) push(branch, path, content string) string {
	s.t.Helper()
	return must(s, tried(s.Person.Push(branch, "mei", "Change "+path, map[string]string{path: content})))
}
