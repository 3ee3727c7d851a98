package scmtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"tagboat/scm/internal/gitobj"
)

// Push commits files (path to content) on top of a branch as a person does, who
// passes every protection. A branch that is not there starts at the default
// branch; the first one of all starts empty.
func (s *Store) Push(branch, author, message string, files map[string]string) (sha string, err error) {
	changes := make([]TreeChange, 0, len(files))
	for path, content := range files {
		changes = append(changes, TreeChange{Path: path, Content: []byte(content)})
	}
	return s.PushChanges(branch, author, message, changes)
}

// PushChanges is Push with modes, symlinks and deletions.
func (s *Store) PushChanges(branch, author, message string, changes []TreeChange) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, exists := s.branch(branch)
	if !exists {
		if err := s.checkName(branch); err != nil {
			return "", err
		}
		at, _ = s.branch(s.defaultBranch)
	}
	base, parents := "", []plumbing.Hash(nil)
	if !at.IsZero() {
		base, parents = at.String(), []plumbing.Hash{at}
	}
	tree, err := s.writeTree(base, changes)
	if err != nil {
		return "", err
	}
	return s.commitTo(branch, author, message, tree, parents...)
}

// PushTogether pushes several commits, each of some files, at once. Their own dates
// are made, whatever the Store's clock shows.
func (s *Store) PushTogether(branch, author string, made time.Time, commits ...map[string]string) (shas []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, exists := s.branch(branch)
	if !exists {
		at, _ = s.branch(s.defaultBranch)
	}
	for i, files := range commits {
		var changes []TreeChange
		for path, content := range files {
			changes = append(changes, TreeChange{Path: path, Content: []byte(content)})
		}
		tree, err := s.writeTree(at.String(), changes)
		if err != nil {
			return nil, err
		}
		if at, err = s.writeCommit(tree, []plumbing.Hash{at}, fmt.Sprintf("Change %d", i+1), author, made); err != nil {
			return nil, err
		}
		shas = append(shas, at.String())
	}
	return shas, s.move(branch, at)
}

// CreateBranch makes a branch at a commit as a person does.
func (s *Store) CreateBranch(branch, sha string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkMove(branch, "", sha, false); err != nil {
		return err
	}
	return s.move(branch, plumbing.NewHash(sha))
}

// ForcePush sets a branch to a commit as a person does, whatever it was at.
func (s *Store) ForcePush(branch, sha string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkMove(branch, "", sha, true); err != nil {
		return err
	}
	return s.move(branch, plumbing.NewHash(sha))
}

func (s *Store) commitTo(branch, author, message string, tree plumbing.Hash, parents ...plumbing.Hash) (string, error) {
	h, err := s.writeCommit(tree, parents, message, author, s.clock())
	if err != nil {
		return "", err
	}
	return h.String(), s.move(branch, h)
}

// OpenForkPull opens a pull request from a fork whose branch holds files on top
// of the base branch.
func (s *Store) OpenForkPull(n NewPull, files map[string]string) (Pull, error) {
	base, ok := s.Branch(n.Base)
	if !ok {
		return Pull{}, fmt.Errorf("%w: %s", ErrBranchMissing, n.Base)
	}
	var changes []TreeChange
	for path, content := range files {
		changes = append(changes, TreeChange{Path: path, Content: []byte(content)})
	}
	tree, err := s.WriteTree(base, changes)
	if err != nil {
		return Pull{}, err
	}
	if n.HeadSHA, err = s.WriteCommit(tree, []string{base}, n.Title, n.Author, s.Now()); err != nil {
		return Pull{}, err
	}
	return s.OpenPull(n)
}

// MergePullRequest merges an open pull request as a person: how is merge, squash
// or rebase. It answers the commit on the base branch, ErrConflict if a file was
// changed on both sides, or ErrState.
func (s *Store) MergePullRequest(number int, how string) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pull(number)
	if err != nil {
		return "", err
	}
	base, ok := s.branch(p.Base)
	if !ok || p.State != "open" {
		return "", fmt.Errorf("%w: %d is %s, base %s", ErrState, number, p.State, p.Base)
	}
	merged, err := s.merged(p, how, base, plumbing.NewHash(p.HeadSHA))
	if err != nil {
		return "", fmt.Errorf("merge %d: %w", number, err)
	}
	s.endMerged(p, "a-person", base, merged)
	return merged.String(), s.move(p.Base, merged)
}

func (s *Store) merged(p *Pull, how string, base, head plumbing.Hash) (plumbing.Hash, error) {
	if how == "rebase" {
		return s.rebase(base, head)
	}
	common, _, err := gitobj.MergeBase(s.objects(), base, head)
	if err != nil {
		return base, err
	}
	tree, err := s.mergeTrees(common, base, head)
	if err != nil {
		return base, err
	}
	switch how {
	case "merge":
		message := fmt.Sprintf("Merge pull request #%d from %s\n\n%s", p.Number, p.Head, p.Title)
		return s.writeCommit(tree, []plumbing.Hash{base, head}, message, "a-person", s.clock())
	case "squash":
		message := fmt.Sprintf("%s (#%d)\n\n%s", p.Title, p.Number, p.Body)
		return s.writeCommit(tree, []plumbing.Hash{base}, message, "a-person", s.clock())
	}
	return base, fmt.Errorf("unknown way to merge %q", how)
}

func (s *Store) rebase(base, head plumbing.Hash) (plumbing.Hash, error) {
	commits, err := gitobj.Between(s.objects(), base, head)
	if err != nil {
		return base, err
	}
	for _, c := range slices.Backward(commits) {
		if len(c.ParentHashes) != 1 {
			continue
		}
		tree, err := s.mergeTrees(c.ParentHashes[0], base, c.Hash)
		if err != nil {
			return base, err
		}
		if base, err = s.writeCommit(tree, []plumbing.Hash{base}, c.Message, c.Author.Name, s.clock()); err != nil {
			return base, err
		}
	}
	return base, nil
}

// UpdateBranch merges the base branch into the head branch of an open pull
// request, as the button does, and answers the merge commit.
func (s *Store) UpdateBranch(number int) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pull(number)
	if err != nil {
		return "", err
	}
	base, ok := s.branch(p.Base)
	if !ok || p.State != "open" || p.HeadRepo != "" {
		return "", fmt.Errorf("%w: %d is %s", ErrState, number, p.State)
	}
	return s.mergeInto(p.Head, plumbing.NewHash(p.HeadSHA), base, fmt.Sprintf("Merge branch '%s' into %s", p.Base, p.Head))
}

// MergeBranch merges branch from into branch into as a person does, with a merge
// commit, and answers it.
func (s *Store) MergeBranch(from, into string) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	theirs, ok := s.branch(from)
	ours, also := s.branch(into)
	if !ok || !also {
		return "", fmt.Errorf("%w: %s or %s", ErrBranchMissing, from, into)
	}
	return s.mergeInto(into, ours, theirs, fmt.Sprintf("Merge branch '%s'", from))
}

func (s *Store) mergeInto(branch string, ours, theirs plumbing.Hash, message string) (string, error) {
	common, _, err := gitobj.MergeBase(s.objects(), ours, theirs)
	if err != nil {
		return "", err
	}
	tree, err := s.mergeTrees(common, ours, theirs)
	if err != nil {
		return "", err
	}
	return s.commitTo(branch, "a-person", message, tree, ours, theirs)
}

// Revert takes a commit back on a branch (a merge: against its first parent) and
// answers the new commit.
func (s *Store) Revert(branch, commit string) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.branch(branch)
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrBranchMissing, branch)
	}
	c, err := object.GetCommit(s.git, plumbing.NewHash(commit))
	if err != nil || len(c.ParentHashes) == 0 {
		return "", fmt.Errorf("%w: commit %s with a parent", ErrNoObject, commit)
	}
	tree, err := s.mergeTrees(c.Hash, at, c.ParentHashes[0])
	if err != nil {
		return "", err
	}
	return s.commitTo(branch, "a-person", "Revert \""+firstLine(c.Message)+"\"\n\nThis reverts commit "+commit+".", tree, at)
}

// mergeTrees merges what changed from common to theirs into ours, file by file:
// ErrConflict if a file changed on both sides.
func (s *Store) mergeTrees(common, ours, theirs plumbing.Hash) (plumbing.Hash, error) {
	var trees [3]plumbing.Hash
	for i, h := range []plumbing.Hash{common, ours, theirs} {
		if h.IsZero() {
			continue
		}
		c, err := object.GetCommit(s.git, h)
		if err != nil {
			return h, fmt.Errorf("%w: commit %s", ErrNoObject, h)
		}
		trees[i] = c.TreeHash
	}
	mine, err := gitobj.Diff(s.objects(), trees[0], trees[1])
	if err != nil {
		return trees[1], err
	}
	paths, err := gitobj.Diff(s.objects(), trees[0], trees[2])
	if err != nil {
		return trees[1], err
	}
	var changes []gitobj.Change
	for _, path := range paths {
		want := s.leaf(trees[2], path)
		if slices.Contains(mine, path) {
			if now := s.leaf(trees[1], path); now.Hash != want.Hash || now.Mode != want.Mode {
				return trees[1], fmt.Errorf("%w: %s", ErrConflict, path)
			}
			continue
		}
		changes = append(changes, gitobj.Change{Path: path, Mode: want.Mode, Object: want.Hash, Delete: want.Hash.IsZero()})
	}
	tree, err := gitobj.WriteTree(s.objects(), trees[1], changes)
	if errors.Is(err, gitobj.ErrPathConflict) {
		return tree, fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return tree, err
}

// leaf is the file at a path, or nothing.
func (s *Store) leaf(tree plumbing.Hash, path string) object.TreeEntry {
	e, err := gitobj.Entry(s.objects(), tree, path)
	if err != nil || e.Mode == filemode.Dir {
		return object.TreeEntry{}
	}
	return e
}

func firstLine(text string) string {
	for i, r := range text {
		if r == '\n' {
			return text[:i]
		}
	}
	return text
}
