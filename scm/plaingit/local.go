package plaingit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"tagboat/scm"
	"tagboat/scm/internal/gitobj"
)

// local is a repository on this machine, used in place.
type local struct {
	dir     string // the git directory
	bare    bool
	storage *filesystem.Storage
}

func openLocal(path string) (remote, storer.EncodedObjectStorer, error) {
	l := &local{dir: path, bare: true}
	if info, err := os.Stat(filepath.Join(path, ".git")); err == nil && info.IsDir() {
		l.dir, l.bare = filepath.Join(path, ".git"), false
	}
	if _, err := os.Stat(filepath.Join(l.dir, "HEAD")); err != nil {
		return nil, nil, fmt.Errorf("%w: %s is no git repository", scm.ErrNotFound, path)
	}
	l.storage = gitobj.Disk(l.dir)
	if _, err := git.Open(l.storage, nil); err != nil { // checks the format's version and extensions
		return nil, nil, err
	}
	return l, l.storage, nil
}

func (l *local) complete() bool { return true }

func (l *local) read(ctx context.Context, _ int, _ func(refs) []plumbing.Hash) (refs, error) {
	out := refs{heads: map[string]plumbing.Hash{}}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	l.storage.Reindex() // another process may have packed objects
	all, err := l.storage.IterReferences()
	if err != nil {
		return out, err
	}
	err = all.ForEach(func(r *plumbing.Reference) error {
		if r.Name().IsBranch() && r.Type() == plumbing.HashReference {
			out.heads[r.Name().Short()] = r.Hash()
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	head, err := l.storage.Reference(plumbing.HEAD)
	if err != nil {
		return out, fmt.Errorf("read HEAD: %w", err)
	}
	out.main = head.Target().Short()
	return out, nil
}

// lockTries bounds the wait for another process that moves the same branch.
const (
	lockTries = 20
	lockPause = 50 * time.Millisecond
)

// move follows git's own protocol: the lock file is made exclusively, the branch
// is read under it, and renaming the lock publishes.
func (l *local) move(ctx context.Context, branch string, old, new plumbing.Hash, _ []plumbing.Hash) error {
	if !l.bare {
		if head, err := l.storage.Reference(plumbing.HEAD); err == nil && head.Target().Short() == branch {
			return fmt.Errorf("%w: branch %s is checked out in %s", scm.ErrRefused, branch, l.dir)
		}
	}
	if err := l.conflict(ctx, branch, old); err != nil {
		return err
	}
	file := filepath.Join(l.dir, filepath.FromSlash(plumbing.NewBranchReferenceName(branch).String()))
	lock, err := l.lock(ctx, file+".lock")
	if err != nil {
		return err
	}
	published := false
	defer func() {
		if !published { // else another process may hold a lock of this name by now
			_ = os.Remove(lock)
		}
	}()
	at, err := l.head(branch)
	if err != nil {
		return err
	}
	if at != old {
		return movedFrom(branch, old, at)
	}
	if new.IsZero() {
		return l.storage.RemoveReference(plumbing.NewBranchReferenceName(branch))
	}
	if err := os.WriteFile(lock, []byte(new.String()+"\n"), 0o644); err != nil {
		return err
	}
	_ = os.Remove(file + "/") // an empty folder that a deleted branch left
	err = os.Rename(lock, file)
	published = err == nil
	return err
}

// conflict refuses the folder of another branch and a name below one.
func (l *local) conflict(ctx context.Context, branch string, old plumbing.Hash) error {
	if !old.IsZero() {
		return nil
	}
	all, err := l.read(ctx, 0, nil)
	if err != nil {
		return err
	}
	for other := range all.heads {
		if strings.HasPrefix(other, branch+"/") || strings.HasPrefix(branch, other+"/") {
			return fmt.Errorf("%w: branch %s cannot be beside branch %s: one is the folder of the other", scm.ErrRefused, branch, other)
		}
	}
	return nil
}

func (l *local) lock(ctx context.Context, file string) (string, error) {
	for range lockTries {
		// git deletes empty folders: make them again at each try.
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			return file, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(lockPause):
		}
	}
	return "", fmt.Errorf("%w: %s stays locked: remove it if no git process runs", scm.ErrMoved, file)
}

func (l *local) head(branch string) (plumbing.Hash, error) {
	ref, err := l.storage.Reference(plumbing.NewBranchReferenceName(branch))
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return ref.Hash(), nil
}

func movedFrom(branch string, old, at plumbing.Hash) error {
	name := func(h plumbing.Hash) string {
		if h.IsZero() {
			return "not there"
		}
		return "at " + h.String()
	}
	return fmt.Errorf("%w: branch %s is %s, was %s when it was read", scm.ErrMoved, branch, name(at), name(old))
}
