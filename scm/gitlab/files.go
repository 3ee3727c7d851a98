package gitlab

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// Files is the tree at a commit SHA. The files API cannot tell a symlink from a
// file, nor what is not there from a directory, so a file's directory is read
// beside it, once, and has the last word.
func (r *Repository) Files(ctx context.Context, commit string) fs.FS {
	return scm.NewFiles(ctx, scm.FileSource{
		Blind: true,
		ReadFile: func(ctx context.Context, path string) ([]byte, fs.FileMode, error) {
			content, executable, err := r.file(ctx, commit, path)
			if errors.Is(err, fs.ErrNotExist) {
				err = errNoFile
			}
			if executable {
				return content, 0o755, err
			}
			return content, 0o644, err
		},
		ReadDir: func(ctx context.Context, dir string) ([]scm.FileEntry, error) {
			if dir == "." {
				dir = ""
			}
			return r.tree(ctx, commit, dir)
		},
	})
}

// errNoFile is what the files API says of what is no file. It is seen only where
// the directory lists one all the same.
var errNoFile = errors.New("GitLab lists this file but does not give it")

// tree lists a directory ("" is the root) at a commit, all pages. A directory
// that is not there is fs.ErrNotExist. Pages are counted: a keyset page of Gitaly
// before 15.x starts behind the first entry with the last one's content, and so
// never ends where many files are the same.
func (r *Repository) tree(ctx context.Context, commit, dir string) ([]scm.FileEntry, error) {
	opt := &gl.ListTreeOptions{
		ListOptions: gl.ListOptions{PerPage: perPage, Page: 1},
		Path:        ref(dir), Ref: ref(commit),
	}
	var all []scm.FileEntry
	for opt.Page != 0 {
		page, resp, err := r.api.Repositories.ListTree(r.project, opt, gl.WithContext(ctx))
		if e := r.explain(resp, err); e != nil {
			if missingPath(e, "Tree") {
				return nil, fs.ErrNotExist
			}
			return nil, r.fail(fmt.Sprintf("list %s at %s", orRoot(dir), short(commit)), e)
		}
		for _, n := range page {
			all = append(all, scm.FileEntry{Name: n.Name, Mode: scm.GitMode(n.Mode), ID: n.ID})
		}
		opt.Page = resp.NextPage
	}
	// Before 15.0 GitLab answered an unknown path with an empty list; git has no
	// empty directory below the root.
	if len(all) == 0 && dir != "" {
		return nil, fs.ErrNotExist
	}
	return all, nil
}

// file reads a file at a commit, and remembers its identity for Commit. A symlink
// gives its target.
func (r *Repository) file(ctx context.Context, commit, path string) (content []byte, executable bool, err error) {
	f, resp, err := r.api.RepositoryFiles.GetFile(r.project, path, &gl.GetFileOptions{Ref: ref(commit)}, gl.WithContext(ctx))
	what := fmt.Sprintf("read %s at %s", path, short(commit))
	if e := r.explain(resp, err); e != nil {
		if missingPath(e, "File") {
			return nil, false, fs.ErrNotExist
		}
		return nil, false, r.fail(what, e)
	}
	if f.Encoding != "base64" {
		return nil, false, r.fail(what, &refusal{kind: scm.ErrUnavailable,
			text: fmt.Sprintf("the content is encoded as %q, not as base64", f.Encoding)})
	}
	content, err = base64.StdEncoding.DecodeString(f.Content)
	if err == nil && blobID(content, f.BlobID) != f.BlobID {
		err = errors.New("the content is not that of the blob id")
	}
	if err != nil {
		return nil, false, r.fail(what, &refusal{kind: scm.ErrUnavailable, text: err.Error()})
	}
	r.read.put(commit, path, blob{id: f.BlobID, lastCommit: f.LastCommitID})
	return content, f.ExecuteFilemode, nil
}

// identity is what file remembered, or asks for it. A file that is not there is
// fs.ErrNotExist.
func (r *Repository) identity(ctx context.Context, commit, path string) (blob, error) {
	if b, ok := r.read.get(commit, path); ok {
		return b, nil
	}
	if _, _, err := r.file(ctx, commit, path); err != nil {
		return blob{}, err
	}
	b, _ := r.read.get(commit, path)
	return b, nil
}

// missingPath tells a missing file or directory from a missing project or commit:
// only the text does (lib/api/files.rb, lib/api/repositories.rb).
func missingPath(e *refusal, what string) bool {
	if e.status != 404 {
		return false
	}
	text := strings.ToLower(e.text)
	return what == "File" && strings.Contains(text, "file not found") || strings.Contains(text, "invalid revision or path")
}

func orRoot(dir string) string {
	if dir == "" {
		return "the root directory"
	}
	return dir
}

// blob is a file's identity at one commit.
type blob struct {
	id         string // git's object id of the content
	lastCommit string // the newest commit that changed the path
}

type blobs struct {
	mu    sync.Mutex
	known map[[2]string]blob
}

func (b *blobs) put(commit, path string, v blob) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[[2]string]blob{}
	}
	b.known[[2]string{commit, path}] = v
}

func (b *blobs) get(commit, path string) (blob, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.known[[2]string{commit, path}]
	return v, ok
}

// blobID is git's object id of a content, in the object format of another id.
func blobID(content []byte, like string) string {
	h := sha1.New()
	if len(like) == hex.EncodedLen(sha256.Size) {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}
