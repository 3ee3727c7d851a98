package scmtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"tagboat/scm/internal/gitobj"
)

// Pull is one pull request of a Store, as a copy.
type Pull struct {
	Number      int // counted together with issues, from 1
	Title, Body string
	Author      string    // login
	Head, Base  string    // branch names
	HeadRepo    string    // full name of the fork; "" is this repository
	HeadSHA     string    // follows the branch while open, then stays
	Versions    []Version // of the head, oldest first
	BaseSHA     string    // the base branch when the pull request was opened
	State       string    // open, closed or merged
	Draft       bool

	AutoMerge     bool
	AutoMergeBy   string // login
	Labels        []string
	Reviewers     []string // logins whose review is asked for
	TeamReviewers []string // slugs
	Assignees     []string
	Reviews       []Review
	Comments      []Comment

	MergeSHA                       string // on the base branch
	MergedOnto                     string // where the base branch was right before
	ClosedBy, MergedBy             string
	Created, Updated, Closed       time.Time
	HeadDeleted, RewrittenSinceEnd bool // a closed one of these cannot be reopened
}

// Review is one review of a pull request. State is approved, changes_requested,
// commented or dismissed.
type Review struct {
	ID                      int
	Author, State, SHA, Why string
	Time                    time.Time
}

// Version is a head that a pull request has had.
type Version struct {
	SHA  string
	Time time.Time
}

// Comment is one comment of a pull request.
type Comment struct {
	ID           int
	Author, Body string
	Created      time.Time
	Updated      time.Time // of the last edit; zero is none
	Reactions    []Reaction
}

// NewPull is what OpenPull opens. Fork is the full name of the repository that
// the head branch is in; "" is this one. With a fork, HeadSHA must be given.
type NewPull struct {
	Head, Base, Title, Body, Author string
	Fork, HeadSHA                   string
	Draft                           bool
}

// OpenPull opens a pull request: ErrBranchMissing without its branches,
// ErrPullExists (and that pull request) if there is an open one, ErrNoCommits if
// the head has nothing that the base has not.
func (s *Store) OpenPull(n NewPull) (Pull, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	base, ok := s.branch(n.Base)
	if !ok {
		return Pull{}, fmt.Errorf("%w: %s", ErrBranchMissing, n.Base)
	}
	head := plumbing.NewHash(n.HeadSHA)
	if n.Fork == "" {
		if head, ok = s.branch(n.Head); !ok {
			return Pull{}, fmt.Errorf("%w: %s", ErrBranchMissing, n.Head)
		}
	}
	for _, p := range s.pulls {
		if p.State == "open" && p.Head == n.Head && p.Base == n.Base && p.HeadRepo == n.Fork {
			return p.copy(), fmt.Errorf("%w: %d", ErrPullExists, p.Number)
		}
	}
	if merged, err := s.isAncestor(head, base); err != nil || merged {
		return Pull{}, fmt.Errorf("%w: %s and %s", ErrNoCommits, n.Base, n.Head)
	}
	s.number++
	now := s.clock()
	p := &Pull{
		Number: s.number, Title: n.Title, Body: n.Body, Author: n.Author, Head: n.Head, Base: n.Base, HeadRepo: n.Fork,
		HeadSHA: head.String(), BaseSHA: base.String(), State: "open", Draft: n.Draft, Created: now, Updated: now,
		Versions: []Version{{head.String(), now}},
	}
	s.pulls = append(s.pulls, p)
	return p.copy(), nil
}

func (p *Pull) copy() Pull {
	c := *p
	c.Labels, c.Reviewers = slices.Clone(p.Labels), slices.Clone(p.Reviewers)
	c.TeamReviewers, c.Assignees = slices.Clone(p.TeamReviewers), slices.Clone(p.Assignees)
	c.Versions = slices.Clone(p.Versions)
	c.Reviews, c.Comments = slices.Clone(p.Reviews), slices.Clone(p.Comments)
	return c
}

// NewIssue takes the next number for an issue, which pull requests count too.
func (s *Store) NewIssue() (number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	s.issues[s.number] = true
	return s.number
}

// Pull is the pull request of a number, or ErrNoPull.
func (s *Store) Pull(number int) (Pull, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pull(number)
	if err != nil {
		return Pull{}, err
	}
	return p.copy(), nil
}

func (s *Store) pull(number int) (*Pull, error) {
	for _, p := range s.pulls {
		if p.Number == number {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: %d", ErrNoPull, number)
}

// Pulls lists the pull requests for which keep answers true (nil: all), highest
// number first, forks' too.
func (s *Store) Pulls(keep func(Pull) bool) []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Pull
	for _, p := range slices.Backward(s.pulls) {
		if c := p.copy(); keep == nil || keep(c) {
			list = append(list, c)
		}
	}
	return list
}

// EditPull changes a pull request and its time of update. edit may refuse with an
// error, then nothing changes. The state is changed by ClosePullRequest,
// ReopenPull and MergePullRequest only.
func (s *Store) EditPull(number int, edit func(*Pull) error) (Pull, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pull(number)
	if err != nil {
		return Pull{}, err
	}
	c := p.copy()
	if err := edit(&c); err != nil {
		return p.copy(), err
	}
	c.State, c.Updated = p.State, s.clock()
	*p = c
	return p.copy(), nil
}

// Comment adds a comment to a pull request.
func (s *Store) Comment(number int, author, body string) (Comment, error) {
	var c Comment
	_, err := s.EditPull(number, func(p *Pull) error {
		c = Comment{ID: 1000*number + len(p.Comments) + 1, Author: author, Body: body, Created: s.clock()}
		p.Comments = append(p.Comments, c)
		return nil
	})
	return c, err
}

// Review adds a review (approved, changes_requested or commented) of the head
// commit to a pull request.
func (s *Store) Review(number int, author, state string) (Review, error) {
	var r Review
	_, err := s.EditPull(number, func(p *Pull) error {
		r = Review{ID: 1000*number + len(p.Reviews) + 1, Author: author, State: state, SHA: p.HeadSHA, Time: s.clock()}
		p.Reviews = append(p.Reviews, r)
		return nil
	})
	return r, err
}

// ClosePullRequest closes an open pull request unmerged, by a login, or ErrState.
func (s *Store) ClosePullRequest(number int, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pull(number)
	if err != nil {
		return err
	}
	if p.State != "open" {
		return fmt.Errorf("%w: %d is %s", ErrState, number, p.State)
	}
	s.closePull(p, by)
	return nil
}

func (s *Store) closePull(p *Pull, by string) {
	now := s.clock()
	p.State, p.ClosedBy, p.Closed, p.Updated, p.AutoMerge = "closed", by, now, now, false
	_, exists := s.branch(p.Head)
	p.HeadDeleted = !exists && p.HeadRepo == ""
}

// ReopenPull opens a closed pull request again. One whose head branch was deleted
// or rewritten since is refused with ErrState, as GitHub does.
func (s *Store) ReopenPull(number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pull(number)
	if err != nil {
		return err
	}
	at, ok := s.branch(p.Head)
	if p.State != "closed" || p.RewrittenSinceEnd || p.HeadRepo == "" && !ok {
		return fmt.Errorf("%w: %d is %s, its branch deleted or recreated", ErrState, number, p.State)
	}
	if p.HeadRepo == "" {
		p.HeadSHA = at.String()
	}
	p.State, p.ClosedBy, p.Closed, p.Updated, p.HeadDeleted = "open", "", time.Time{}, s.clock(), false
	return nil
}

func (s *Store) openPulls(head string) []*Pull {
	var list []*Pull
	for _, p := range s.pulls {
		if p.State == "open" && p.HeadRepo == "" && p.Head == head {
			list = append(list, p)
		}
	}
	return list
}

// followBranch does what a forge does after a push: the head of open pull
// requests follows the branch; one whose head came to the base is merged; one
// whose head was set back into the base is closed.
func (s *Store) followBranch(branch string, to plumbing.Hash) error {
	for _, p := range s.openPulls(branch) {
		p.HeadSHA, p.Updated = to.String(), s.clock()
		p.Versions = append(p.Versions, Version{p.HeadSHA, p.Updated})
		base, ok := s.branch(p.Base)
		if !ok {
			continue
		}
		if in, err := s.isAncestor(to, base); err != nil {
			return err
		} else if in {
			s.closePull(p, "")
		}
	}
	for _, p := range s.pulls {
		if p.State == "closed" && p.HeadRepo == "" && p.Head == branch {
			still, err := s.isAncestor(plumbing.NewHash(p.HeadSHA), to)
			if err != nil {
				return err
			}
			p.RewrittenSinceEnd = p.RewrittenSinceEnd || p.HeadDeleted || !still
		}
		if p.State != "open" || p.Base != branch {
			continue
		}
		in, err := s.isAncestor(plumbing.NewHash(p.HeadSHA), to)
		if err != nil {
			return err
		}
		if in {
			s.endMerged(p, "", plumbing.NewHash(p.BaseSHA), to)
		}
	}
	return nil
}

func (s *Store) endMerged(p *Pull, by string, onto, commit plumbing.Hash) {
	now := s.clock()
	p.MergedOnto = onto.String()
	p.State, p.MergedBy, p.MergeSHA, p.Closed, p.Updated, p.AutoMerge = "merged", by, commit.String(), now, now, false
}

// Mergeable tells whether the head merges into the base without a conflict: no
// file was changed on both sides.
func (s *Store) Mergeable(number int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pull(number)
	if err != nil {
		return false, err
	}
	base, ok := s.branch(p.Base)
	if !ok {
		return false, fmt.Errorf("%w: %s", ErrBranchMissing, p.Base)
	}
	head := plumbing.NewHash(p.HeadSHA)
	common, _, err := gitobj.MergeBase(s.objects(), base, head)
	if err != nil {
		return false, err
	}
	_, err = s.mergeTrees(common, base, head)
	return err == nil, nil
}
