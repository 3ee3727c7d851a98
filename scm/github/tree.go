package github

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-github/v60/github"
	"golang.org/x/sync/errgroup"
)

// entry is one item of a directory at a commit.
type entry struct {
	name, mode, kind, sha string
	size                  int64
}

func (e entry) regular() bool { return e.mode == "100644" || e.mode == "100755" }

// listing is a directory being read or read; entries and err count after done.
type listing struct {
	done    chan struct{}
	entries []entry
	err     error
}

// keptListings bounds what a process that runs for long remembers.
const keptListings = 4096

// list gives a directory at a commit, in one call the first time. Failures are
// forgotten, except that the directory is not there.
func (r *Repository) list(ctx context.Context, commit, dir string) ([]entry, error) {
	key := commit + ":" + dir
	for {
		r.mu.Lock()
		l, running := r.dirs[key]
		if !running {
			if len(r.dirs) >= keptListings {
				clear(r.dirs)
			}
			l = &listing{done: make(chan struct{})}
			r.dirs[key] = l
		}
		r.mu.Unlock()
		if !running {
			return r.fetch(ctx, commit, dir, l)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.done:
		}
		if !errors.Is(l.err, context.Canceled) && !errors.Is(l.err, context.DeadlineExceeded) {
			return l.entries, l.err
		}
	}
}

func (r *Repository) fetch(ctx context.Context, commit, dir string, l *listing) ([]entry, error) {
	l.entries, l.err = r.readDir(ctx, commit, dir)
	if l.err != nil && !errors.Is(l.err, fs.ErrNotExist) {
		r.mu.Lock()
		delete(r.dirs, commit+":"+dir)
		r.mu.Unlock()
	}
	close(l.done)
	return l.entries, l.err
}

// listed tells whether a directory has been read already.
func (r *Repository) listed(commit, dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.dirs[commit+":"+dir]
	if !ok {
		return false
	}
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// readDir asks for git/trees/COMMIT:DIR: one call tells names, modes, sizes and
// ids of any directory. It is as old as the API but not in its description; a
// server without it is walked from the root.
func (r *Repository) readDir(ctx context.Context, commit, dir string) ([]entry, error) {
	if dir == "." {
		r.mu.Lock()
		tree := r.trees[commit]
		r.mu.Unlock()
		if tree == "" {
			tree = commit
		}
		return r.readTree(ctx, commit, dir, tree)
	}
	entries, err := r.readTree(ctx, commit, dir, commit+":"+dir)
	if err == nil {
		r.mu.Lock()
		r.byPath = true
		r.mu.Unlock()
		return entries, nil
	}
	a, ok := answerOf(err)
	if !ok || (a.status != http.StatusNotFound && a.status != http.StatusUnprocessableEntity) {
		return nil, err
	}
	r.mu.Lock()
	trusted := r.byPath
	r.mu.Unlock()
	if !trusted {
		return r.walk(ctx, commit, dir)
	}
	// The commit itself may be what is not there.
	if _, err := r.treeOf(ctx, commit); err != nil {
		return nil, err
	}
	return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
}

// walk reads a directory through its parents, by tree ids only.
func (r *Repository) walk(ctx context.Context, commit, dir string) ([]entry, error) {
	e, err := r.lookup(ctx, commit, dir)
	if err != nil {
		return nil, err
	}
	if e.kind != "tree" {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	return r.readTree(ctx, commit, dir, e.sha)
}

func (r *Repository) readTree(ctx context.Context, commit, dir, tree string) ([]entry, error) {
	id, below, deep := strings.Cut(tree, ":")
	at := "git/trees/" + url.PathEscape(id)
	if deep {
		at += ":" + escape(below)
	}
	var t github.Tree
	doing := fmt.Sprintf("list %s at %s", dir, short(commit))
	if _, err := r.get(ctx, at, nil, &t); err != nil {
		return nil, r.faultKeeping(doing, err)
	}
	if t.GetTruncated() {
		return nil, fmt.Errorf("%s: %s: GitHub does not show all of it (more than 100,000 entries or 7 MB)", r.fullName(), doing)
	}
	if t.GetSHA() == "" {
		return nil, r.broken(doing, errEmptyAnswer)
	}
	out := make([]entry, 0, len(t.Entries))
	for _, e := range t.Entries {
		out = append(out, entry{name: e.GetPath(), mode: e.GetMode(), kind: e.GetType(), sha: e.GetSHA(), size: int64(e.GetSize())})
	}
	return out, nil
}

// faultKeeping is fault for callers that still look at the answer's status.
func (r *Repository) faultKeeping(doing string, err error) error {
	return &kept{words: r.fault(doing, err), cause: err}
}

type kept struct{ words, cause error }

func (k *kept) Error() string   { return k.words.Error() }
func (k *kept) Unwrap() []error { return []error{k.words, k.cause} }

// lookup gives the entry of a path, out of its directory's listing.
func (r *Repository) lookup(ctx context.Context, commit, p string) (entry, error) {
	entries, err := r.list(ctx, commit, path.Dir(p))
	if err != nil {
		return entry{}, err
	}
	name := path.Base(p)
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	return entries[i], nil
}

// read gives a file's entry and bytes in one round: its directory's listing tells
// what it is, and beside it the contents API already brings it. The contents API
// follows symlinks and leaves out what is over 1 MB; then the blob is read.
func (r *Repository) read(ctx context.Context, commit, p string) (entry, []byte, error) {
	if r.listed(commit, path.Dir(p)) {
		e, err := r.lookup(ctx, commit, p)
		if err != nil || e.kind != "blob" {
			return e, nil, err
		}
		content, err := r.blob(ctx, p, e.sha)
		return e, content, err
	}
	var e entry
	var early []byte
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { e, err = r.lookup(gctx, commit, p); return err })
	g.Go(func() error { early = r.contents(gctx, commit, p); return nil })
	if err := g.Wait(); err != nil || e.kind != "blob" {
		return e, nil, err
	}
	if early != nil && blobID(early) == e.sha {
		return e, early, nil
	}
	content, err := r.blob(ctx, p, e.sha)
	return e, content, err
}

// contents is a guess that saves a round: nil if it brought no bytes.
func (r *Repository) contents(ctx context.Context, commit, p string) []byte {
	var c struct {
		Content, Encoding string
		Size              int
	}
	if _, err := r.get(ctx, "contents/"+escape(p), url.Values{"ref": {commit}}, &c); err != nil || c.Encoding != "base64" {
		return nil
	}
	content, err := decode64(c.Content)
	if err != nil {
		return nil
	}
	return content
}

// blob reads a blob and checks that the bytes are those that its id promises.
func (r *Repository) blob(ctx context.Context, p, sha string) ([]byte, error) {
	b, _, err := r.api().Git.GetBlob(ctx, r.owner, r.name, sha)
	if err != nil {
		return nil, r.fault("read file "+p, err)
	}
	content := []byte(b.GetContent())
	if b.GetEncoding() == "base64" {
		if content, err = decode64(b.GetContent()); err != nil {
			return nil, r.broken("read file "+p, err)
		}
	}
	if blobID(content) != sha {
		return nil, r.broken("read file "+p, fmt.Errorf("the bytes that came are not those of blob %s", short(sha)))
	}
	return content, nil
}

func decode64(s string) ([]byte, error) {
	content, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(s, "\n", ""))
	if content == nil && err == nil {
		content = []byte{}
	}
	return content, err
}

// blobID is git's id of a file's bytes.
func blobID(content []byte) string {
	h := sha1.New() //nolint:gosec // git's object id, not a secret
	h.Write([]byte("blob " + strconv.Itoa(len(content)) + "\x00"))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// differences compares two commits' trees, directory by directory, and gives the
// paths of all files that differ.
func (r *Repository) differences(ctx context.Context, a, b string) ([]string, error) {
	var out []string
	queue := []string{"."}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		olds, news, err := r.both(ctx, a, b, dir)
		if err != nil {
			return nil, err
		}
		for name := range union(olds, news) {
			o, n := olds[name], news[name]
			p := path.Join(dir, name)
			if o.sha == n.sha && o.mode == n.mode {
				continue
			}
			if o.kind == "tree" || n.kind == "tree" {
				queue = append(queue, p)
			}
			if (o.sha != "" && o.kind != "tree") || (n.sha != "" && n.kind != "tree") {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// both lists a directory at two commits; where it is none, there is nothing.
func (r *Repository) both(ctx context.Context, a, b, dir string) (olds, news map[string]entry, err error) {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { olds, err = r.byName(gctx, a, dir); return err })
	g.Go(func() (err error) { news, err = r.byName(gctx, b, dir); return err })
	return olds, news, g.Wait()
}

func (r *Repository) byName(ctx context.Context, commit, dir string) (map[string]entry, error) {
	entries, err := r.list(ctx, commit, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := make(map[string]entry, len(entries))
	for _, e := range entries {
		out[e.name] = e
	}
	return out, nil
}

func union(a, b map[string]entry) map[string]bool {
	out := map[string]bool{}
	for n := range a {
		out[n] = true
	}
	for n := range b {
		out[n] = true
	}
	return out
}
