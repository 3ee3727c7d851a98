package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"tagboat/scm"
)

// changed is what a commit changes against its first parent, asked for once.
type changed struct {
	mu    sync.Mutex
	known bool
	all   bool // the forge cannot list it: take it that everything has changed
	paths []string
}

// compared tells that touches needs no call for a merge.
func (l *Line) compared(c scm.Commit) bool {
	l.mu.Lock()
	known := l.changed[c.SHA]
	l.mu.Unlock()
	if known == nil {
		return false
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	return known.known
}

// merges are up to n merges from place i on, of what was read of the line.
func (l *Line) merges(i, n int) (list []scm.Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; i < len(l.commits) && len(list) < n; i++ {
		if len(l.commits[i].Parents) > 1 {
			list = append(list, l.commits[i])
		}
	}
	return list
}

// touches tells whether a merge changed one of the paths, or something in it,
// against its first parent. What the forge cannot compare may have.
func (l *Line) touches(ctx context.Context, c scm.Commit, paths []string) (bool, error) {
	l.mu.Lock()
	known := l.changed[c.SHA]
	if known == nil {
		known = &changed{}
		l.changed[c.SHA] = known
	}
	l.mu.Unlock()
	known.mu.Lock()
	defer known.mu.Unlock()
	if !known.known {
		got, err := l.repo.Changes(ctx, c.Parents[0], c.SHA)
		if err != nil && !errors.Is(err, scm.ErrUnsupported) {
			return false, err
		}
		known.known, known.all, known.paths = true, err != nil, got.Paths
	}
	return known.all || slices.ContainsFunc(known.paths, func(changed string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return within(changed, p) })
	}), nil
}

// within tells whether a path is dir or below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}
