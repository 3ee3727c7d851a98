package inventory

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tagboat/scm"
)

// Limit is how many commits of a branch's first-parent line are looked at.
const Limit = 1000

// chunk is how many commits are taken of one reading of the log: a page of every
// forge.
const chunk = 50

// Line is the first-parent line of a branch from one tip on, read as far as it is
// asked for and kept. It is safe for concurrent use.
type Line struct {
	repo  scm.Repository
	tip   string
	limit int // Limit, and less in tests

	mu      sync.Mutex
	commits []scm.Commit          // the line, newest first
	others  map[string]scm.Commit // all that the log has told, by SHA
	changed map[string]*changed   // of commits of the line, by SHA
	said    map[string][]scm.Status
}

// NewLine is the first-parent line from a tip (a commit SHA). It makes no call.
func NewLine(repo scm.Repository, tip string) *Line {
	return &Line{repo: repo, tip: tip, limit: Limit, others: map[string]scm.Commit{}, changed: map[string]*changed{}, said: map[string][]scm.Status{}}
}

// line is the target's own, or a new one.
func (t Target) line(tip string) (*Line, error) {
	if t.Line == nil {
		return NewLine(t.Repo, tip), nil
	}
	if t.Line.tip != tip {
		return nil, fmt.Errorf("read the history of %s: its line was read from %s, not from %s", t.Branch, short(t.Line.tip), short(tip))
	}
	return t.Line, nil
}

// at is the commit at a place of the line, 0 is the tip; false beyond its end.
func (l *Line) at(ctx context.Context, i int) (scm.Commit, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i >= len(l.commits) {
		next, more := l.next()
		if !more {
			return scm.Commit{}, false, nil
		}
		if err := l.extend(ctx, next); err != nil {
			return scm.Commit{}, false, err
		}
	}
	return l.commits[i], true, nil
}

// next is the SHA of the commit after the last one that is known.
func (l *Line) next() (string, bool) {
	if len(l.commits) == 0 {
		return l.tip, true
	}
	parents := l.commits[len(l.commits)-1].Parents
	if len(parents) == 0 {
		return "", false
	}
	return parents[0], true
}

// extend reads a page of the log that leads to next, and takes from it what is on
// the line. Each reading begins anew on the line, so that what a merge brought is
// read with it at most once.
func (l *Line) extend(ctx context.Context, next string) error {
	if _, known := l.others[next]; !known {
		n := 0
		for c, err := range l.repo.Log(ctx, next, "") {
			if err != nil {
				return err
			}
			l.others[c.SHA] = c
			if n++; n == chunk {
				break
			}
		}
	}
	c, told := l.others[next]
	if !told {
		return fmt.Errorf("read the history of %s: %w: the log does not tell %s", l.repo.About().Name, scm.ErrNotFound, short(next))
	}
	for told {
		l.commits = append(l.commits, c)
		if next, told = l.next(); told {
			c, told = l.others[next]
		}
	}
	return nil
}

// seen is a commit that the log has told, on the line or not.
func (l *Line) seen(sha string) (scm.Commit, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.others[sha]
	return c, ok
}

// place is where a commit is on what was read of the line; -1 if it is not.
func (l *Line) place(sha string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.IndexFunc(l.commits, func(c scm.Commit) bool { return c.SHA == sha })
}

func short(sha string) string { return sha[:min(len(sha), 7)] }
