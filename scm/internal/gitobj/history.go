package gitobj

import (
	"container/heap"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Diff lists, in order, every file path in which two trees differ: old and new
// names of a rename both. Equal subtrees are not read. The zero hash is the
// empty tree.
func Diff(s storer.EncodedObjectStorer, a, b plumbing.Hash) ([]string, error) {
	var paths []string
	if err := diff(s, "", a, b, &paths); err != nil {
		return nil, err
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func diff(s storer.EncodedObjectStorer, dir string, a, b plumbing.Hash, paths *[]string) error {
	if a == b {
		return nil
	}
	old, err := entriesByName(s, a)
	if err != nil {
		return err
	}
	now, err := entriesByName(s, b)
	if err != nil {
		return err
	}
	for name, x := range old {
		if err := diffEntry(s, dir+name, x, now[name], paths); err != nil {
			return err
		}
	}
	for name, y := range now {
		if _, had := old[name]; had {
			continue
		}
		if err := diffEntry(s, dir+name, object.TreeEntry{}, y, paths); err != nil {
			return err
		}
	}
	return nil
}

func diffEntry(s storer.EncodedObjectStorer, path string, x, y object.TreeEntry, paths *[]string) error {
	if x.Hash == y.Hash && x.Mode == y.Mode {
		return nil
	}
	var a, b plumbing.Hash
	if x.Mode == filemode.Dir {
		a = x.Hash
	}
	if y.Mode == filemode.Dir {
		b = y.Hash
	}
	isFile := func(e object.TreeEntry) bool { return e.Mode != filemode.Dir && !e.Hash.IsZero() }
	if isFile(x) || isFile(y) {
		*paths = append(*paths, path)
	}
	return diff(s, path+"/", a, b, paths)
}

// MergeBase finds the best common ancestor of two commits; ok is false if they
// share none.
func MergeBase(s storer.EncodedObjectStorer, a, b plumbing.Hash) (base plumbing.Hash, ok bool, err error) {
	x, err := object.GetCommit(s, a)
	if err != nil {
		return base, false, fmt.Errorf("read commit %s: %w", a, err)
	}
	y, err := object.GetCommit(s, b)
	if err != nil {
		return base, false, fmt.Errorf("read commit %s: %w", b, err)
	}
	bases, err := x.MergeBase(y)
	if err != nil {
		return base, false, fmt.Errorf("merge base of %s and %s: %w", a, b, err)
	}
	if len(bases) == 0 {
		return base, false, nil
	}
	return bases[0].Hash, true, nil
}

// Log yields the commits that lead to start, newest first by committer time and
// never a parent before its child in a straight line. With a path only those
// that changed it, along the parents that git's own history simplification
// follows. Commits in skip, and what only they lead to, are left out.
func Log(s storer.EncodedObjectStorer, start plumbing.Hash, path string, skip map[plumbing.Hash]bool) iter.Seq2[*object.Commit, error] {
	return func(yield func(*object.Commit, error) bool) {
		w := walk{store: s, path: path, seen: map[plumbing.Hash]bool{}, skip: skip}
		if err := w.push(start); err != nil {
			yield(nil, err)
			return
		}
		for w.Len() > 0 {
			c := heap.Pop(&w).(*object.Commit)
			show, err := w.next(c)
			if err != nil {
				yield(nil, err)
				return
			}
			if show && !yield(c, nil) {
				return
			}
		}
	}
}

// Ancestors collects start and every commit that leads to it.
func Ancestors(s storer.EncodedObjectStorer, start plumbing.Hash) (map[plumbing.Hash]bool, error) {
	found := map[plumbing.Hash]bool{}
	for c, err := range Log(s, start, "", nil) {
		if err != nil {
			return nil, err
		}
		found[c.Hash] = true
	}
	return found, nil
}

// Between lists the commits on head that are not on base, newest first, merges
// included.
func Between(s storer.EncodedObjectStorer, base, head plumbing.Hash) ([]*object.Commit, error) {
	skip, err := Ancestors(s, base)
	if err != nil {
		return nil, err
	}
	var commits []*object.Commit
	for c, err := range Log(s, head, "", skip) {
		if err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	return commits, nil
}

type walk struct {
	store storer.EncodedObjectStorer
	path  string
	seen  map[plumbing.Hash]bool
	skip  map[plumbing.Hash]bool
	queue []*object.Commit
}

func (w *walk) push(id plumbing.Hash) error {
	if w.seen[id] || w.skip[id] {
		return nil
	}
	w.seen[id] = true
	c, err := object.GetCommit(w.store, id)
	if err != nil {
		return fmt.Errorf("read commit %s: %w", id, err)
	}
	heap.Push(w, c)
	return nil
}

// next queues the parents of c that are to be followed and tells whether c
// changed the path.
func (w *walk) next(c *object.Commit) (show bool, err error) {
	follow := c.ParentHashes
	show = true
	if w.path != "" {
		if show, follow, err = w.simplify(c); err != nil {
			return false, err
		}
	}
	for _, p := range follow {
		if err := w.push(p); err != nil {
			return false, err
		}
	}
	return show, nil
}

func (w *walk) simplify(c *object.Commit) (show bool, follow []plumbing.Hash, err error) {
	own, err := w.at(c)
	if err != nil {
		return false, nil, err
	}
	if len(c.ParentHashes) == 0 {
		return !own.Hash.IsZero(), nil, nil
	}
	for _, id := range c.ParentHashes {
		p, err := object.GetCommit(w.store, id)
		if err != nil {
			return false, nil, fmt.Errorf("read commit %s: %w", id, err)
		}
		theirs, err := w.at(p)
		if err != nil {
			return false, nil, err
		}
		if theirs.Hash == own.Hash && theirs.Mode == own.Mode {
			return false, []plumbing.Hash{id}, nil
		}
	}
	return true, c.ParentHashes, nil
}

func (w *walk) at(c *object.Commit) (object.TreeEntry, error) {
	e, err := Entry(w.store, c.TreeHash, w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return object.TreeEntry{}, nil
	}
	return e, err
}

// Len, Less, Swap, Push and Pop make the walk a heap of commits, newest first.
func (w *walk) Len() int { return len(w.queue) }

// Less orders by committer time; equal times keep a stable order by id.
func (w *walk) Less(i, j int) bool {
	a, b := w.queue[i], w.queue[j]
	if !a.Committer.When.Equal(b.Committer.When) {
		return a.Committer.When.After(b.Committer.When)
	}
	return a.Hash.String() > b.Hash.String()
}

// Swap exchanges two commits of the queue.
func (w *walk) Swap(i, j int) { w.queue[i], w.queue[j] = w.queue[j], w.queue[i] }

// Push is heap's: it appends a commit.
func (w *walk) Push(x any) { w.queue = append(w.queue, x.(*object.Commit)) }

// Pop is heap's: it takes the last commit away.
func (w *walk) Pop() any {
	last := w.queue[len(w.queue)-1]
	w.queue = w.queue[:len(w.queue)-1]
	return last
}
