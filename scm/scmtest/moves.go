package scmtest

import (
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Move is one move of a branch, as a forge records it by its own clock.
type Move struct {
	ID            int // ascending
	Branch        string
	Kind          string // in GitHub's words: push, force_push, pr_merge, branch_creation or branch_deletion
	Before, After string // "" where there was no branch, or is none
	Time          time.Time
}

// Moves are all moves of all branches, newest first.
func (s *Store) Moves() []Move {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Move, 0, len(s.moves))
	for i := range s.moves {
		list = append(list, s.moves[len(s.moves)-1-i])
	}
	return list
}

// ForgetMoves loses all records, as a forge does that keeps them for a while.
func (s *Store) ForgetMoves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = nil
}

func (s *Store) recordMove(branch string, to plumbing.Hash) error {
	at, exists := s.branch(branch)
	kind := "push"
	switch {
	case !exists:
		kind = "branch_creation"
	case s.isMerge(branch, to):
		kind = "pr_merge"
	default:
		forward, err := s.isAncestor(at, to)
		if err != nil {
			return err
		}
		if !forward {
			kind = "force_push"
		}
	}
	s.record(branch, kind, at, to)
	return nil
}

// isMerge tells a move that a pull request was just merged by.
func (s *Store) isMerge(branch string, to plumbing.Hash) bool {
	for _, p := range s.pulls {
		if p.State == "merged" && p.Base == branch && p.MergeSHA == to.String() && p.MergedBy != "" {
			return true
		}
	}
	return false
}

// record keeps a move at the time that the clock shows: the move itself is no step
// of the clock, for it is part of what made one.
func (s *Store) record(branch, kind string, from, to plumbing.Hash) {
	m := Move{ID: s.moved + 1, Branch: branch, Kind: kind, Time: s.peek()}
	if !from.IsZero() {
		m.Before = from.String()
	}
	if !to.IsZero() {
		m.After = to.String()
	}
	s.moved++
	s.moves = append(s.moves, m)
}
