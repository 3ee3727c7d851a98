// Package gitobj reads and writes the objects of one git repository: trees with
// changes applied, the paths in which two trees differ, the commits between two
// commits. It works on any go-git object store and knows no branch and no remote.
package gitobj

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

var (
	// ErrPath is returned for a path that no tree may hold: absolute, empty,
	// with a . or .. element or inside .git.
	ErrPath = errors.New("invalid path")
	// ErrPathConflict is returned when a path is wanted as a file and as a
	// directory.
	ErrPathConflict = errors.New("path is a file and a directory")
)

// Change is one path of a tree to write or to delete.
type Change struct {
	Path    string
	Mode    filemode.FileMode // 0: the mode it has, or a regular file's
	Content []byte
	Object  plumbing.Hash // if set, this object stands there instead of Content
	Delete  bool
}

type node struct {
	change   *Change
	children map[string]*node
}

// WriteTree writes base (the zero hash is the empty tree) with changes applied
// and returns its id. Untouched subtrees are not read. Deleting what is not
// there is fs.ErrNotExist.
func WriteTree(s storer.EncodedObjectStorer, base plumbing.Hash, changes []Change) (plumbing.Hash, error) {
	root := &node{}
	for i := range changes {
		if err := root.add(&changes[i]); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	h, empty, err := root.write(s, base)
	if err != nil || !empty {
		return h, err
	}
	return encodeTree(s, nil)
}

func (n *node) add(c *Change) error {
	if !fs.ValidPath(c.Path) || c.Path == "." {
		return fmt.Errorf("%w %q", ErrPath, c.Path)
	}
	for name := range strings.SplitSeq(c.Path, "/") {
		if strings.EqualFold(name, ".git") || strings.Contains(name, "\x00") {
			return fmt.Errorf("%w %q", ErrPath, c.Path)
		}
		if n.children == nil {
			n.children = map[string]*node{}
		}
		if n.children[name] == nil {
			n.children[name] = &node{}
		}
		n = n.children[name]
	}
	if n.change != nil {
		return fmt.Errorf("%w %q: named twice", ErrPath, c.Path)
	}
	n.change = c
	return nil
}

func (n *node) write(s storer.EncodedObjectStorer, base plumbing.Hash) (h plumbing.Hash, empty bool, err error) {
	entries, err := entriesByName(s, base)
	if err != nil {
		return h, false, err
	}
	for name, child := range n.children {
		if err := child.apply(s, name, entries); err != nil {
			return h, false, err
		}
	}
	if len(entries) == 0 {
		return h, true, nil
	}
	list := make([]object.TreeEntry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	h, err = encodeTree(s, list)
	return h, false, err
}

func (n *node) apply(s storer.EncodedObjectStorer, name string, entries map[string]object.TreeEntry) error {
	old, had := entries[name]
	if c := n.change; c != nil {
		if err := c.apply(s, name, entries); err != nil {
			return err
		}
		old, had = entries[name]
	}
	if len(n.children) == 0 {
		return nil
	}
	if had && old.Mode != filemode.Dir {
		return fmt.Errorf("%w: %s", ErrPathConflict, name)
	}
	h, empty, err := n.write(s, old.Hash)
	if err != nil {
		return fmt.Errorf("%s/%w", name, err)
	}
	delete(entries, name)
	if !empty {
		entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: h}
	}
	return nil
}

func (c *Change) apply(s storer.EncodedObjectStorer, name string, entries map[string]object.TreeEntry) error {
	old, had := entries[name]
	if c.Delete {
		if !had {
			return fmt.Errorf("delete %s: %w", c.Path, fs.ErrNotExist)
		}
		delete(entries, name)
		return nil
	}
	if had && old.Mode == filemode.Dir && c.Mode != filemode.Dir {
		return fmt.Errorf("%w: %s", ErrPathConflict, c.Path)
	}
	e := object.TreeEntry{Name: name, Mode: c.Mode, Hash: c.Object}
	switch {
	case e.Mode == 0 && had:
		e.Mode = old.Mode
	case e.Mode == 0:
		e.Mode = filemode.Regular
	}
	if c.Object.IsZero() {
		h, err := WriteBlob(s, c.Content)
		if err != nil {
			return err
		}
		e.Hash = h
	}
	entries[name] = e
	return nil
}

func entriesByName(s storer.EncodedObjectStorer, tree plumbing.Hash) (map[string]object.TreeEntry, error) {
	entries := map[string]object.TreeEntry{}
	if tree.IsZero() {
		return entries, nil
	}
	t, err := object.GetTree(s, tree)
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", tree, err)
	}
	for _, e := range t.Entries {
		entries[e.Name] = e
	}
	return entries, nil
}

func encodeTree(s storer.EncodedObjectStorer, entries []object.TreeEntry) (plumbing.Hash, error) {
	t := &object.Tree{Entries: entries}
	sort.Sort(object.TreeEntrySorter(t.Entries))
	o := s.NewEncodedObject()
	if err := t.Encode(o); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encode tree: %w", err)
	}
	return s.SetEncodedObject(o)
}

// WriteBlob stores content and returns its id.
func WriteBlob(s storer.EncodedObjectStorer, content []byte) (plumbing.Hash, error) {
	o := s.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	o.SetSize(int64(len(content)))
	w, err := o.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := w.Write(content); err != nil {
		return plumbing.ZeroHash, err
	}
	if err := w.Close(); err != nil {
		return plumbing.ZeroHash, err
	}
	return s.SetEncodedObject(o)
}

// ReadBlob reads a blob's bytes.
func ReadBlob(s storer.EncodedObjectStorer, id plumbing.Hash) ([]byte, error) {
	b, err := object.GetBlob(s, id)
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", id, err)
	}
	r, err := b.Reader()
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", id, err)
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// Entry finds a path in a tree; "." is the tree itself. What is not there is
// fs.ErrNotExist. It follows no symlink.
func Entry(s storer.EncodedObjectStorer, tree plumbing.Hash, path string) (object.TreeEntry, error) {
	e := object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: tree}
	if path == "." || path == "" {
		return e, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if e.Mode != filemode.Dir {
			return e, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		t, err := object.GetTree(s, e.Hash)
		if err != nil {
			return e, fmt.Errorf("read tree %s: %w", e.Hash, err)
		}
		i := indexOf(t.Entries, name)
		if i < 0 {
			return e, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		e = t.Entries[i]
	}
	return e, nil
}

func indexOf(entries []object.TreeEntry, name string) int {
	for i := range entries {
		if entries[i].Name == name {
			return i
		}
	}
	return -1
}

// WriteCommit stores a commit and returns its id.
func WriteCommit(s storer.EncodedObjectStorer, c *object.Commit) (plumbing.Hash, error) {
	o := s.NewEncodedObject()
	if err := c.Encode(o); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encode commit: %w", err)
	}
	return s.SetEncodedObject(o)
}
