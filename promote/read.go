package promote

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// run is one promotion over its attempts.
type run struct {
	*Promoter
	q      Request
	id     identity
	repo   scm.Repository
	images images
	copies []copying // images that are not yet where they shall run
	learnt learnt
}

// state is what one attempt has read: the base branch, the head branch, their
// pull requests, and the target's entries.
type state struct {
	base    scm.Tip
	files   fs.FS // at the base tip
	entries []overlay.Entry
	prs     []scm.PullRequest
	said    map[int]record.Trailers // of closed pull requests, by number

	holds   Holds
	owned   func(paths []string) Owned // whose approval is asked for; waits for the files
	head    *scm.Tip                   // nil: no such branch
	tree    fs.FS                      // at the head
	changes scm.Changes
}

// open is the open pull request, or nil.
func (s *state) open() *scm.PullRequest {
	for i := range s.prs {
		if s.prs[i].State == scm.Open {
			return &s.prs[i]
		}
	}
	return nil
}

// read asks the forge in two rounds when the base branch is named: the branches
// and pull requests side by side, then the files at the base tip, the head's
// changes and what closed pull requests were about.
func (r *run) read(ctx context.Context) (*state, error) {
	s := &state{said: map[int]record.Trailers{}}
	if err := r.readBranches(ctx, s); err != nil {
		return nil, err
	}
	if s.files = r.repo.Files(ctx, s.base.Commit.SHA); r.q.rules != nil {
		s.files = r.q.rules.files(ctx, r.repo, s.base.Commit.SHA)
	}
	outer := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s.entries, err = entriesOf(s.files, r.id.Paths)
		return r.about(s, err)
	})
	if s.head != nil {
		s.tree = r.repo.Files(outer, s.head.Commit.SHA)
		group.Go(func() (err error) {
			s.changes, err = r.repo.Changes(ctx, s.base.Commit.SHA, s.head.Commit.SHA)
			return err
		})
		group.Go(func() error {
			_, _ = entriesOf(s.tree, r.id.Paths) // fills the cache; examine says what is wrong with it
			return nil
		})
	}
	said := make([]record.Trailers, len(s.prs))
	asked := worthAsking(s.prs)
	for _, i := range asked {
		group.Go(func() (err error) {
			said[i], err = r.trailersAt(ctx, s.prs[i].HeadCommit)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, i := range asked {
		s.said[s.prs[i].Number] = said[i]
	}
	return s, nil
}

// entriesOf reads the entries of several directories side by side, in their order.
func entriesOf(files fs.FS, dirs []string) ([]overlay.Entry, error) {
	found := make([][]overlay.Entry, len(dirs))
	var group errgroup.Group
	for i, dir := range dirs {
		group.Go(func() (err error) {
			found[i], err = overlay.Entries(files, dir)
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(found...), err
}

func (r *run) readBranches(ctx context.Context, s *state) error {
	group, gctx := errgroup.WithContext(ctx)
	listPullRequests := func(ctx context.Context, base string) (err error) {
		s.prs, err = r.repo.PullRequests(ctx, r.id.Branch, base)
		return err
	}
	group.Go(func() (err error) {
		s.base, err = r.repo.Tip(gctx, r.q.Base)
		return err
	})
	group.Go(func() (err error) {
		s.holds, err = r.Holds(gctx, r.holdsAt())
		return err
	})
	group.Go(func() error {
		tip, err := r.repo.Tip(gctx, r.id.Branch)
		if notThere(err) {
			return nil // the base's own Tip says whether the repository is there
		}
		s.head = &tip
		return err
	})
	if r.q.Base != "" {
		group.Go(func() error { return listPullRequests(gctx, r.q.Base) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if r.q.Base == "" {
		return listPullRequests(ctx, s.base.Branch)
	}
	return nil
}

// owners reads CODEOWNERS in the background, all places of it at once: it is for the
// text alone, and nothing waits for it before that. What cannot be read is a warning.
func (r *run) owners(files fs.FS) func(paths []string) Owned {
	forge := r.repo.About().Forge
	read := &readOnce{FS: files, files: map[string]*readFile{}}
	go func() { _, _ = Owners(read, forge, nil) }() // what is wrong is told below
	return func(paths []string) Owned {
		owned, err := Owners(read, forge, paths)
		if err != nil {
			return Owned{Warnings: []string{"code owners are not known: " + err.Error()}}
		}
		return owned
	}
}

// readOnce remembers files that were read, and those that are not there.
type readOnce struct {
	fs.FS
	mu    sync.Mutex
	files map[string]*readFile
}

type readFile struct {
	once    sync.Once
	content []byte
	err     error
}

// ReadFile implements fs.ReadFileFS.
func (r *readOnce) ReadFile(name string) ([]byte, error) {
	r.mu.Lock()
	f := r.files[name]
	if f == nil {
		f = &readFile{}
		r.files[name] = f
	}
	r.mu.Unlock()
	f.once.Do(func() { f.content, f.err = fs.ReadFile(r.FS, name) })
	return f.content, f.err
}

// holdsAt is the repository with the holds: that of tagboat.yaml.
func (r *run) holdsAt() scm.Repository {
	if r.q.rules != nil {
		return r.q.rules.repo
	}
	return r.repo
}

// about adds the repository and branch to an error of a package that only knows files.
func (r *run) about(s *state, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, branch %s: %w", r.repo.About().Name, s.base.Branch, err)
}

// closedAsked and mergedAsked bound how many pull requests that people have closed
// or merged are looked into.
const (
	closedAsked = 10
	mergedAsked = 5
)

// worthAsking lists the pull requests whose digest may bind this run: the newest
// merged ones (they may have been taken back), and the newest that a person closed
// unmerged. What Tagboat itself closes says so in its marker.
func worthAsking(prs []scm.PullRequest) []int {
	var out []int
	merged, closed := 0, 0
	for i, pr := range prs {
		marker, _ := record.ParseMarker(pr.Body)
		switch {
		case pr.State == scm.Merged && merged < mergedAsked:
			merged++
			out = append(out, i)
		case pr.State == scm.Closed && !marker.Superseded && closed < closedAsked:
			closed++
			out = append(out, i)
		}
	}
	return out
}

// walked bounds how many commits of a closed pull request are looked at: people
// may have put their own on top.
const walked = 20

// trailersAt reads what a pull request was about from the newest commit of its
// head that has trailers of this promotion. A commit that is gone says nothing.
func (r *run) trailersAt(ctx context.Context, sha string) (record.Trailers, error) {
	if sha == "" {
		return record.Trailers{}, nil
	}
	n := 0
	for commit, err := range r.repo.Log(ctx, sha, "") {
		if n++; n > walked || notThere(err) {
			break
		}
		if err != nil {
			return record.Trailers{}, err
		}
		if t, ok := record.ParseTrailers(commit.Message); ok && t.App == r.id.App && t.Environment == r.id.Environment && t.Ring == r.id.Ring {
			return t, nil
		}
	}
	return record.Trailers{}, nil
}
