// Package plaingit is a repository on any git remote, over file://, https:// (and
// http:// to this machine) or ssh://, without a git binary. A remote has no pull
// requests: the proposal is the pushed branch.
//
// A file:// repository is read and written in place; its hooks do not run. From
// any other remote the newest Depth commits of a branch are fetched into memory,
// with all their files (go-git cannot leave files out), and older ones when they
// are asked for.
package plaingit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"tagboat/scm"
	"tagboat/scm/internal/gitobj"
)

// Options say which remote it is and how to get in. URL alone is enough for
// file://.
type Options struct {
	URL string // as scm.Location.CloneURL: no credential in it

	Username string // for Token; "" is git, which forges accept for a token
	Token    string // https:// and http:// only
	CAFiles  []string

	SSHKeyFile       string // PEM; "" asks the SSH agent
	SSHKeyPassphrase string

	Author, Email string           // of commits; "" is Tagboat <tagboat@noreply.invalid>
	Depth         int              // commits of a branch that are fetched at first; 0 is 50
	Now           func() time.Time // of commits; nil is time.Now

	// Transport overrides how http is spoken, for tests; Host and Authorize are set
	// here.
	Transport scm.TransportOptions
}

// Repository implements scm.Repository. New makes one; it is safe for concurrent
// use.
type Repository struct {
	o        Options
	location scm.Location
	remote   remote

	mu      sync.Mutex // go-git's storages are not safe for concurrent use
	objects storer.EncodedObjectStorer
}

var _ scm.Repository = (*Repository)(nil)

// refs is what a remote advertises.
type refs struct {
	heads map[string]plumbing.Hash // by branch name
	main  string                   // the default branch
}

// remote is where the branches are. Its methods are called under Repository.mu.
type remote interface {
	// read lists the branches and brings the commits that pick chooses among them
	// into the object store, with depth commits of history (0: all).
	read(ctx context.Context, depth int, pick func(refs) []plumbing.Hash) (refs, error)
	// move sets a branch from old to new (zero: not there) if it still is at old,
	// and sends objects before. Another head is scm.ErrMoved.
	move(ctx context.Context, branch string, old, new plumbing.Hash, objects []plumbing.Hash) error
	// complete tells whether all history is in the object store.
	complete() bool
}

// New makes a Repository. It makes no call; a URL that is wrong, and an SSH key or
// CA file that cannot be read, are errors.
func New(o Options) (*Repository, error) {
	l, err := scm.Locate(o.URL, scm.LocateOptions{Forge: scm.Git})
	if err != nil {
		return nil, err
	}
	if o.Author == "" {
		o.Author, o.Email = "Tagboat", "tagboat@noreply.invalid"
	}
	if o.Depth <= 0 {
		o.Depth = 50
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Repository{o: o, location: l}
	if l.Scheme == "file" {
		r.remote, r.objects, err = openLocal(l.Name)
	} else {
		r.remote, r.objects, err = openNetwork(l, o)
	}
	if err != nil {
		return nil, r.wrap("open", err)
	}
	return r, nil
}

// wrap names the repository; nil stays nil.
func (r *Repository) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", r.location.CloneURL, doing, err)
}

// About implements scm.Repository.
func (r *Repository) About() scm.About {
	return scm.About{
		Forge: scm.Git, Host: r.location.Host, Name: r.location.Name, URL: r.location.CloneURL,
		PullRequestWord: "pull request", PullRequestMark: "#", BodyLimit: 65536,
	}
}

// Tip implements scm.Repository.
func (r *Repository) Tip(ctx context.Context, branch string) (scm.Tip, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got, err := r.remote.read(ctx, r.o.Depth, func(all refs) []plumbing.Hash {
		return present(all.heads[all.named(branch)])
	})
	if err != nil {
		return scm.Tip{}, r.wrap(strings.TrimSpace("read branch "+branch), err)
	}
	branch = got.named(branch)
	head, ok := got.heads[branch]
	if !ok {
		return scm.Tip{}, r.wrap("read branch", fmt.Errorf("%w: branch %q", scm.ErrNotFound, branch))
	}
	c, err := object.GetCommit(r.objects, head)
	if err != nil {
		return scm.Tip{}, r.wrap("read commit "+head.String(), err)
	}
	return scm.Tip{Branch: branch, Commit: commitOf(c)}, nil
}

func (all refs) named(branch string) string {
	if branch == "" {
		return all.main
	}
	return branch
}

func present(hashes ...plumbing.Hash) (list []plumbing.Hash) {
	for _, h := range hashes {
		if !h.IsZero() {
			list = append(list, h)
		}
	}
	return list
}

func commitOf(c *object.Commit) scm.Commit {
	out := scm.Commit{SHA: c.Hash.String(), Message: c.Message, Author: c.Author.Name, Time: c.Committer.When.UTC(), Parents: []string{}}
	for _, p := range c.ParentHashes {
		out.Parents = append(out.Parents, p.String())
	}
	return out
}

// commit finds a commit in the object store, or fetches it.
func (r *Repository) commit(ctx context.Context, sha string) (*object.Commit, error) {
	h := plumbing.NewHash(sha)
	if !plumbing.IsHash(sha) {
		return nil, fmt.Errorf("%w: %q is no commit id", scm.ErrNotFound, sha)
	}
	if c, err := object.GetCommit(r.objects, h); err == nil {
		return c, nil
	}
	// Many servers refuse a commit that no branch is at; then every branch is
	// fetched whole, in case one leads to it.
	_, refused := r.remote.read(ctx, r.o.Depth, func(refs) []plumbing.Hash { return []plumbing.Hash{h} })
	if _, err := object.GetCommit(r.objects, h); err != nil {
		_, err := r.remote.read(ctx, 0, func(all refs) []plumbing.Hash { return slices.Collect(maps.Values(all.heads)) })
		if err != nil {
			return nil, errors.Join(refused, err)
		}
	}
	c, err := object.GetCommit(r.objects, h)
	if err != nil {
		return nil, fmt.Errorf("%w: commit %s", scm.ErrNotFound, sha)
	}
	return c, nil
}

// deepen fetches all history of commits, once; false if there is no more.
func (r *Repository) deepen(ctx context.Context, commits ...string) (bool, error) {
	if r.remote.complete() {
		return false, nil
	}
	var wants []plumbing.Hash
	for _, sha := range commits {
		wants = append(wants, plumbing.NewHash(sha))
	}
	_, err := r.remote.read(ctx, 0, func(refs) []plumbing.Hash { return wants })
	return err == nil, err
}

// Files implements scm.Repository.
func (r *Repository) Files(ctx context.Context, commit string) fs.FS {
	entry := func(path string) (object.TreeEntry, error) {
		if err := ctx.Err(); err != nil {
			return object.TreeEntry{}, err
		}
		c, err := r.commit(ctx, commit)
		if err != nil {
			return object.TreeEntry{}, r.wrap("read "+path, err)
		}
		return gitobj.Entry(r.objects, c.TreeHash, path)
	}
	return scm.NewFiles(ctx, scm.FileSource{
		ReadFile: func(_ context.Context, path string) ([]byte, fs.FileMode, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			e, err := entry(path)
			mode := gitMode(e)
			if err != nil || mode.IsDir() || mode&fs.ModeIrregular != 0 {
				return nil, mode, err
			}
			b, err := gitobj.ReadBlob(r.objects, e.Hash)
			return b, mode, r.wrap("read "+path, err)
		},
		ReadDir: func(_ context.Context, path string) ([]scm.FileEntry, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			e, err := entry(path)
			if err != nil {
				return nil, err
			}
			return r.list(e)
		},
	})
}

func gitMode(e object.TreeEntry) fs.FileMode { return scm.GitMode(fmt.Sprintf("%06o", uint32(e.Mode))) }

func (r *Repository) list(dir object.TreeEntry) ([]scm.FileEntry, error) {
	if !gitMode(dir).IsDir() {
		return nil, fs.ErrNotExist
	}
	t, err := object.GetTree(r.objects, dir.Hash)
	if err != nil {
		return nil, r.wrap("read tree "+dir.Hash.String(), err)
	}
	list := make([]scm.FileEntry, len(t.Entries))
	for i, e := range t.Entries {
		list[i] = scm.FileEntry{Name: e.Name, Mode: gitMode(e), ID: e.Hash.String()}
		if mode := list[i].Mode; mode.IsDir() || mode&fs.ModeIrregular != 0 {
			continue
		}
		if list[i].Size, err = r.objects.EncodedObjectSize(e.Hash); err != nil {
			return nil, r.wrap("size of "+e.Name, err)
		}
	}
	return list, nil
}

// firstLine splits a commit's message as a pull request's title and body.
func firstLine(message string) (title, body string) {
	title, body, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return strings.TrimSpace(title), strings.TrimSpace(body)
}
