package plaingit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"tagboat/scm"
	"tagboat/scm/internal/gitobj"
)

// Log implements scm.Repository.
func (r *Repository) Log(ctx context.Context, commit, path string) iter.Seq2[scm.Commit, error] {
	return func(yield func(scm.Commit, error) bool) {
		if _, err := r.locked(func() (*object.Commit, error) { return r.commit(ctx, commit) }); err != nil {
			yield(scm.Commit{}, r.wrap("log", err))
			return
		}
		told := 0
		for {
			next, stop := iter.Pull2(gitobj.Log(r.objects, plumbing.NewHash(commit), path, nil))
			done, err := r.tell(ctx, next, &told, yield)
			stop()
			if done {
				return
			}
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				more, deep := r.lockedDeepen(ctx, commit)
				if more {
					continue // from the start, without what was told
				}
				err = errors.Join(err, deep)
			}
			yield(scm.Commit{}, r.wrap("log of "+commit, err))
			return
		}
	}
}

// tell yields commits after the first *told, taking the lock for one at a time.
func (r *Repository) tell(ctx context.Context, next func() (*object.Commit, error, bool), told *int, yield func(scm.Commit, error) bool) (done bool, err error) {
	for n := 0; ; n++ {
		ok := false
		c, err := r.locked(func() (c *object.Commit, err error) {
			if err = ctx.Err(); err == nil {
				c, err, ok = next()
			}
			return c, err
		})
		switch {
		case err != nil:
			return false, err
		case !ok:
			return true, nil
		case n < *told:
			continue
		}
		*told++
		if !yield(commitOf(c), nil) {
			return true, nil
		}
	}
}

func (r *Repository) locked(do func() (*object.Commit, error)) (*object.Commit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return do()
}

func (r *Repository) lockedDeepen(ctx context.Context, commit string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deepen(ctx, commit)
}

// Changes implements scm.Repository.
func (r *Repository) Changes(ctx context.Context, base, head string) (scm.Changes, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.changes(ctx, base, head)
	return c, r.wrap(fmt.Sprintf("compare %s with %s", head, base), err)
}

func (r *Repository) changes(ctx context.Context, base, head string) (scm.Changes, error) {
	var commits [2]*object.Commit
	for i, sha := range []string{base, head} {
		var err error
		if commits[i], err = r.commit(ctx, sha); err != nil {
			return scm.Changes{}, err
		}
	}
	c, err := r.compare(commits[0], commits[1])
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, plumbing.ErrObjectNotFound) && !errors.Is(err, errUnrelated) {
		return c, err
	}
	more, deep := r.deepen(ctx, base, head)
	if !more {
		return c, errors.Join(err, deep)
	}
	return r.compare(commits[0], commits[1])
}

// Compare implements scm.Repository.
func (r *Repository) Compare(ctx context.Context, base, head string) (scm.Comparison, error) {
	ahead, err := r.Changes(ctx, base, head)
	if err != nil {
		return scm.Comparison{}, err
	}
	behind, err := r.Changes(ctx, head, base)
	return scm.Comparison{Ahead: spanOf(ahead.Commits), Behind: spanOf(behind.Commits)}, err
}

func spanOf(commits []scm.Commit) scm.Span {
	return scm.Span{Count: len(commits), Commits: commits[:min(len(commits), scm.ComparedCommits)]}
}

var errUnrelated = errors.New("the commits have no common ancestor")

func (r *Repository) compare(base, head *object.Commit) (scm.Changes, error) {
	common, ok, err := gitobj.MergeBase(r.objects, base.Hash, head.Hash)
	if err == nil && !ok {
		err = errUnrelated
	}
	if err != nil {
		return scm.Changes{}, err
	}
	fork, err := object.GetCommit(r.objects, common)
	if err != nil {
		return scm.Changes{}, err
	}
	out := scm.Changes{MergeBase: common.String()}
	if out.Paths, err = gitobj.Diff(r.objects, fork.TreeHash, head.TreeHash); err != nil {
		return out, err
	}
	commits, err := gitobj.Between(r.objects, base.Hash, head.Hash)
	if err != nil {
		return out, err
	}
	for _, c := range commits {
		out.Commits = append(out.Commits, commitOf(c))
	}
	return out, nil
}
