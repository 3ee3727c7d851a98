package plaingit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"tagboat/scm"
	"tagboat/scm/internal/gitobj"
)

// Commit implements scm.Repository. The new commit's only parent is From.Commit;
// the branch moves from Expect to it in one step, or not at all.
func (r *Repository) Commit(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.publish(ctx, d)
	if err != nil {
		return scm.Commit{}, r.wrap("commit to branch "+d.Branch, err)
	}
	return commitOf(c), nil
}

func (r *Repository) publish(ctx context.Context, d scm.Draft) (*object.Commit, error) {
	if err := plumbing.NewBranchReferenceName(d.Branch).Validate(); err != nil {
		return nil, fmt.Errorf("%w: branch %q is no lawful name", scm.ErrRefused, d.Branch)
	}
	from, err := r.commit(ctx, d.From.Commit.SHA)
	if err != nil {
		return nil, err
	}
	changes, err := r.changesOf(from, d.Files)
	if err != nil {
		return nil, err
	}
	written := &recorder{EncodedObjectStorer: r.objects}
	tree, err := gitobj.WriteTree(written, from.TreeHash, changes)
	if err != nil {
		return nil, err
	}
	sig := object.Signature{Name: r.o.Author, Email: r.o.Email, When: r.o.Now()}
	h, err := gitobj.WriteCommit(written, &object.Commit{
		Author: sig, Committer: sig, Message: d.Message, TreeHash: tree, ParentHashes: []plumbing.Hash{from.Hash},
	})
	if err != nil {
		return nil, err
	}
	if err := r.remote.move(ctx, d.Branch, plumbing.NewHash(d.Expect), h, written.ids); err != nil {
		return nil, err
	}
	return object.GetCommit(r.objects, h)
}

// changesOf compares what was read with what is there.
func (r *Repository) changesOf(from *object.Commit, files []scm.File) ([]gitobj.Change, error) {
	var changes []gitobj.Change
	for _, f := range files {
		e, err := gitobj.Entry(r.objects, from.TreeHash, f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.Old == nil:
		case errors.Is(err, fs.ErrNotExist), err == nil && f.Old == nil:
			return nil, fmt.Errorf("%w: file %s is not as it was read", scm.ErrMoved, f.Path)
		case err != nil:
			return nil, err
		default:
			now, err := gitobj.ReadBlob(r.objects, e.Hash)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(now, f.Old) {
				return nil, fmt.Errorf("%w: file %s is not as it was read", scm.ErrMoved, f.Path)
			}
		}
		changes = append(changes, gitobj.Change{Path: f.Path, Content: f.New, Delete: f.New == nil})
	}
	return changes, nil
}

// recorder notes the objects that a commit adds: those are pushed.
type recorder struct {
	storer.EncodedObjectStorer
	ids []plumbing.Hash
}

// SetEncodedObject stores and notes an object.
func (r *recorder) SetEncodedObject(o plumbing.EncodedObject) (plumbing.Hash, error) {
	h, err := r.EncodedObjectStorer.SetEncodedObject(o)
	if err == nil && !slices.Contains(r.ids, h) {
		r.ids = append(r.ids, h)
	}
	return h, err
}
