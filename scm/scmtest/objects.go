package scmtest

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"tagboat/scm/internal/gitobj"
)

// CommitInfo is one commit of a Store.
type CommitInfo struct {
	SHA, Tree           string
	Parents             []string
	Message             string
	Author, AuthorEmail string
	Time                time.Time // the committer's
}

// TreeEntry is one entry of a directory, or of a path.
type TreeEntry struct {
	Name string // the last element
	Type string // blob, tree or commit, as git says
	Mode string // 100644, 100755, 120000, 040000, 160000
	SHA  string
	Size int64 // of a blob, in bytes
}

// TreeChange is one path of WriteTree. An empty Mode keeps the mode that the
// path has, 100644 for a new one. A set SHA places that object instead of
// Content.
type TreeChange struct {
	Path, Mode string
	Content    []byte
	SHA        string
	Delete     bool
}

// Commit reads a commit; ok is false if there is none of that full SHA. A commit
// that no branch leads to is still there, as on a forge.
func (s *Store) Commit(sha string) (c CommitInfo, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := object.GetCommit(s.git, plumbing.NewHash(sha))
	if err != nil || !plumbing.IsHash(sha) {
		return CommitInfo{}, false
	}
	return info(o), true
}

func info(c *object.Commit) CommitInfo {
	i := CommitInfo{
		SHA: c.Hash.String(), Tree: c.TreeHash.String(), Message: c.Message,
		Author: c.Author.Name, AuthorEmail: c.Author.Email, Time: c.Committer.When.UTC(),
	}
	for _, p := range c.ParentHashes {
		i.Parents = append(i.Parents, p.String())
	}
	return i
}

// treeOf resolves a commit or a tree to a tree.
func (s *Store) treeOf(sha string) (plumbing.Hash, error) {
	h := plumbing.NewHash(sha)
	if c, err := object.GetCommit(s.git, h); err == nil {
		return c.TreeHash, nil
	}
	if _, err := object.GetTree(s.git, h); err == nil {
		return h, nil
	}
	return h, fmt.Errorf("%w: commit or tree %s", ErrNoObject, sha)
}

// Tree lists a directory ("" or "." is the root) at a commit or tree, in git's
// order. What is not there, or is a file, is fs.ErrNotExist.
func (s *Store) Tree(sha, dir string) ([]TreeEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	root, err := s.treeOf(sha)
	if err != nil {
		return nil, err
	}
	e, err := gitobj.Entry(s.objects(), root, dir)
	if err != nil {
		return nil, err
	}
	if e.Mode != filemode.Dir {
		return nil, fmt.Errorf("%s is no directory: %w", dir, fs.ErrNotExist)
	}
	t, err := object.GetTree(s.git, e.Hash)
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", e.Hash, err)
	}
	list := make([]TreeEntry, 0, len(t.Entries))
	for _, e := range t.Entries {
		list = append(list, s.treeEntry(e))
	}
	return list, nil
}

func (s *Store) treeEntry(e object.TreeEntry) TreeEntry {
	out := TreeEntry{Name: e.Name, Type: "blob", Mode: fmt.Sprintf("%06o", uint32(e.Mode)), SHA: e.Hash.String()}
	switch e.Mode {
	case filemode.Dir:
		out.Type = "tree"
	case filemode.Submodule:
		out.Type = "commit"
	default:
		if size, err := s.git.EncodedObjectSize(e.Hash); err == nil {
			out.Size = size
		}
	}
	return out
}

// Entry finds a path at a commit or tree, following no symlink. What is not there
// is fs.ErrNotExist.
func (s *Store) Entry(sha, path string) (TreeEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	root, err := s.treeOf(sha)
	if err != nil {
		return TreeEntry{}, err
	}
	e, err := gitobj.Entry(s.objects(), root, path)
	if err != nil {
		return TreeEntry{}, err
	}
	return s.treeEntry(e), nil
}

// ReadFile reads a file (of a symlink: its target) and its mode at a commit or
// tree. A directory is fs.ErrInvalid.
func (s *Store) ReadFile(sha, path string) (content []byte, mode string, err error) {
	e, err := s.Entry(sha, path)
	if err != nil {
		return nil, "", err
	}
	if e.Type != "blob" {
		return nil, e.Mode, fmt.Errorf("%s is no file: %w", path, fs.ErrInvalid)
	}
	content, err = s.Blob(e.SHA)
	return content, e.Mode, err
}

// Blob reads a blob by its id, or ErrNoObject.
func (s *Store) Blob(sha string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, err := gitobj.ReadBlob(s.objects(), plumbing.NewHash(sha))
	if err != nil {
		return nil, fmt.Errorf("%w: blob %s", ErrNoObject, sha)
	}
	return content, nil
}

// WriteBlob stores content and returns its id.
func (s *Store) WriteBlob(content []byte) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := gitobj.WriteBlob(s.objects(), content)
	return h.String(), err
}

// WriteTree stores baseTree (a tree or commit, "" for the empty tree) with changes
// applied. Deleting what is not there is fs.ErrNotExist; see also ErrPath,
// ErrPathConflict and ErrNoObject.
func (s *Store) WriteTree(baseTree string, changes []TreeChange) (tree string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.writeTree(baseTree, changes)
	return h.String(), err
}

func (s *Store) writeTree(baseTree string, changes []TreeChange) (base plumbing.Hash, err error) {
	if baseTree != "" {
		if base, err = s.treeOf(baseTree); err != nil {
			return base, err
		}
	}
	list := make([]gitobj.Change, len(changes))
	for i, c := range changes {
		list[i] = gitobj.Change{Path: c.Path, Content: c.Content, Object: plumbing.NewHash(c.SHA), Delete: c.Delete}
		if c.Mode != "" {
			if list[i].Mode, err = filemode.New(c.Mode); err != nil {
				return base, fmt.Errorf("mode of %s: %w", c.Path, err)
			}
		}
		if c.SHA != "" && s.git.HasEncodedObject(list[i].Object) != nil && list[i].Mode != filemode.Submodule {
			return base, fmt.Errorf("%w: %s for %s", ErrNoObject, c.SHA, c.Path)
		}
	}
	return gitobj.WriteTree(s.objects(), base, list)
}

// WriteCommit stores a commit that no branch leads to yet. author is a login, or
// "Name <mail>". A zero time asks the Store's clock. A tree or parent that is not
// there is ErrNoObject.
func (s *Store) WriteCommit(tree string, parents []string, message, author string, when time.Time) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hashes := make([]plumbing.Hash, len(parents))
	for i, p := range parents {
		hashes[i] = plumbing.NewHash(p)
		if _, err := object.GetCommit(s.git, hashes[i]); err != nil {
			return "", fmt.Errorf("%w: commit %s", ErrNoObject, p)
		}
	}
	if _, err := object.GetTree(s.git, plumbing.NewHash(tree)); err != nil {
		return "", fmt.Errorf("%w: tree %s", ErrNoObject, tree)
	}
	h, err := s.writeCommit(plumbing.NewHash(tree), hashes, message, author, when)
	return h.String(), err
}

func (s *Store) writeCommit(tree plumbing.Hash, parents []plumbing.Hash, message, author string, when time.Time) (plumbing.Hash, error) {
	if when.IsZero() {
		when = s.clock()
	}
	sig := signature(author, when)
	return gitobj.WriteCommit(s.objects(), &object.Commit{
		Author: sig, Committer: sig, Message: message, TreeHash: tree, ParentHashes: parents,
	})
}

func signature(author string, when time.Time) object.Signature {
	sig := object.Signature{Name: author, Email: author + "@users.example", When: when}
	if name, mail, ok := strings.Cut(author, " <"); ok {
		sig.Name, sig.Email = name, strings.TrimSuffix(mail, ">")
	}
	return sig
}

// MergeBase is the best common ancestor of two commits; ok is false if there is
// none, or if a commit is not there.
func (s *Store) MergeBase(a, b string) (sha string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok, err := gitobj.MergeBase(s.objects(), plumbing.NewHash(a), plumbing.NewHash(b))
	if err != nil || !ok {
		return "", false
	}
	return h.String(), true
}

// IsAncestor tells whether a leads to b; a commit leads to itself.
func (s *Store) IsAncestor(a, b string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok, err := s.isAncestor(plumbing.NewHash(a), plumbing.NewHash(b))
	return ok && err == nil
}

func (s *Store) isAncestor(a, b plumbing.Hash) (bool, error) {
	base, ok, err := gitobj.MergeBase(s.objects(), a, b)
	return ok && base == a, err
}

// ChangedPaths lists the file paths in which two commits or trees differ, sorted.
func (s *Store) ChangedPaths(a, b string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.treeOf(a)
	if err != nil {
		return nil, err
	}
	y, err := s.treeOf(b)
	if err != nil {
		return nil, err
	}
	return gitobj.Diff(s.objects(), x, y)
}

// Log lists the commits that lead to a commit, newest first; with a path only
// those that changed it.
func (s *Store) Log(sha, path string) ([]CommitInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []CommitInfo
	for c, err := range gitobj.Log(s.objects(), plumbing.NewHash(sha), path, nil) {
		if err != nil {
			return nil, err
		}
		list = append(list, info(c))
	}
	return list, nil
}

// Between lists the commits on head that are not on base, newest first, merges
// included.
func (s *Store) Between(base, head string) ([]CommitInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	commits, err := gitobj.Between(s.objects(), plumbing.NewHash(base), plumbing.NewHash(head))
	if err != nil {
		return nil, err
	}
	list := make([]CommitInfo, len(commits))
	for i, c := range commits {
		list[i] = info(c)
	}
	return list, nil
}
