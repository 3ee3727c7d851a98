package scm

import (
	"fmt"
	"iter"
	"time"
)

// Push is one move of a branch as a forge recorded it: a push, a commit through the
// API, a merge.
type Push struct {
	Before string // the commit that the branch was at; "" where it was new or is not told
	After  string // the commit that it is at since; "" where it was deleted
	Time   time.Time
}

// The bounds of FindPush.
const (
	pushPages   = 20
	pushHistory = 1000 // commits
)

// FindPush finds the newest push that brought a commit to a branch: the branch had
// it after and not before. So a commit that came among others of one push has that
// push's time, and one that was pushed away and back has the later one. Both are
// judged on the commits that lead to the branch's newest recorded commit; one that
// was forced away since leads to nothing.
//
// page gives a page, from 1, of the branch's pushes, newest first, and whether there
// are more; twenty are read at most. log is Repository.Log without a path; a thousand
// commits are read at most. What is not found is ErrNotFound with the reason. It is
// for implementations of Evidence.
func FindPush(commit string, page func(n int) (pushes []Push, more bool, err error), log func(tip string) iter.Seq2[Commit, error]) (time.Time, error) {
	var have map[string]bool
	seen := 0
	for n := 1; n <= pushPages; n++ {
		pushes, more, err := page(n)
		if err != nil {
			return time.Time{}, err
		}
		for _, p := range pushes {
			if seen++; seen == 1 {
				if have, err = descendants(commit, p.After, log); err != nil {
					return time.Time{}, err
				}
			}
			if have[p.After] && !have[p.Before] {
				return p.Time, nil
			}
		}
		if !more {
			return time.Time{}, fmt.Errorf("%w: none of the %d pushes that the forge has recorded brought it", ErrNotFound, seen)
		}
	}
	return time.Time{}, fmt.Errorf("%w: it came before the newest %d pushes that the forge has recorded, and no more are read", ErrNotFound, seen)
}

// descendants are the commits between a tip and a commit that have it in their
// history, itself among them.
func descendants(commit, tip string, log func(string) iter.Seq2[Commit, error]) (map[string]bool, error) {
	have := map[string]bool{commit: true}
	if tip == commit {
		return have, nil
	}
	if tip == "" {
		return nil, fmt.Errorf("%w: the branch was deleted last", ErrNotFound)
	}
	children, read := map[string][]string{}, 0
	for c, err := range log(tip) {
		if err != nil {
			return nil, err
		}
		for _, parent := range c.Parents {
			children[parent] = append(children[parent], c.SHA)
		}
		if c.SHA == commit {
			mark(have, children, commit)
			return have, nil
		}
		if read++; read == pushHistory {
			return nil, fmt.Errorf("%w: it is not among the newest %d commits of the branch, and no more are read", ErrNotFound, read)
		}
	}
	return nil, fmt.Errorf("%w: the newest push that the forge has recorded does not lead to it", ErrNotFound)
}

// mark adds all children of a commit, and theirs.
func mark(have map[string]bool, children map[string][]string, commit string) {
	for queue := []string{commit}; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0]] {
			if !have[child] {
				have[child] = true
				queue = append(queue, child)
			}
		}
	}
}
