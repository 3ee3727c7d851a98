package gitea

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"tagboat/scm"
)

// Files implements scm.Repository. A file is one call, a directory one too,
// as a git tree: Gitea's contents API spends a look at the history on each entry
// (seven seconds for 600 on a small server) and does not tell which are
// executable. A server that does not take "SHA:path" for a tree is asked level by
// level.
func (r *Repository) Files(ctx context.Context, commit string) fs.FS {
	t := treeAt{r, commit}
	return scm.NewFiles(ctx, scm.FileSource{ReadFile: t.readFile, ReadDir: t.readDir})
}

type treeAt struct {
	r      *Repository
	commit string
}

func (t treeAt) readFile(ctx context.Context, path string) ([]byte, fs.FileMode, error) {
	raw, err := t.contents(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	if raw[0] == '[' {
		return nil, fs.ModeDir, fmt.Errorf("is a directory: %w", fs.ErrInvalid)
	}
	var c sdk.ContentsResponse
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, 0, t.r.describe(err, "decode %s", path)
	}
	switch c.Type {
	case "symlink":
		if c.Target == nil {
			return nil, 0, t.r.describe(errors.New("the symlink has no target"), "read %s", path)
		}
		return []byte(*c.Target), fs.ModeSymlink | 0o777, nil
	case "submodule":
		return nil, fs.ModeIrregular, nil
	case "file":
		b, err := content(&c)
		return b, 0o644, t.r.describe(err, "read %s", path) // the executable bit is told by the tree only
	}
	return nil, 0, t.r.describe(fmt.Errorf("it is a %q", c.Type), "read %s", path)
}

func content(c *sdk.ContentsResponse) ([]byte, error) {
	switch {
	case c.Content == nil || c.Encoding == nil:
		return nil, fmt.Errorf("its %d bytes are more than the server hands out (DEFAULT_MAX_BLOB_SIZE, 10 MiB by default)", c.Size)
	case *c.Encoding != "base64":
		return nil, fmt.Errorf("its encoding is %q", *c.Encoding)
	}
	b, err := base64.StdEncoding.DecodeString(*c.Content)
	if err == nil && int64(len(b)) != c.Size {
		err = fmt.Errorf("the server sent %d of its %d bytes", len(b), c.Size)
	}
	return b, err
}

func (t treeAt) readDir(ctx context.Context, dir string) ([]scm.FileEntry, error) {
	if unlawful(dir) {
		return nil, fs.ErrNotExist
	}
	entries, err := t.list(ctx, dir)
	if err != nil {
		return nil, err
	}
	list := make([]scm.FileEntry, 0, len(entries))
	for _, e := range entries {
		list = append(list, scm.FileEntry{Name: e.Path, Mode: scm.GitMode(e.Mode), Size: e.Size, ID: e.SHA})
	}
	return list, nil
}

func (t treeAt) list(ctx context.Context, dir string) ([]sdk.GitEntry, error) {
	if dir == "." || t.r.noTreePath.Load() {
		return t.walk(ctx, dir)
	}
	_, entries, err := t.r.tree(ctx, t.commit+":"+dir)
	if err == nil {
		return entries, nil
	}
	if s := statusOf(err); s != http.StatusBadRequest && s != http.StatusNotFound {
		return nil, t.r.describe(err, "list %s at %s", dir, short(t.commit))
	}
	entries, err = t.walk(ctx, dir)
	if err == nil {
		t.r.noTreePath.Store(true) // it is there, so that the notation was refused
	}
	return entries, err
}

// walk lists a directory from the root down, one call a level. It decides whether
// the directory is there.
func (t treeAt) walk(ctx context.Context, dir string) ([]sdk.GitEntry, error) {
	_, entries, err := t.r.tree(ctx, t.commit)
	if says(err, http.StatusBadRequest, "sha not found") {
		err = fmt.Errorf("%w: %w", scm.ErrNotFound, err)
	}
	if err != nil || dir == "." {
		return entries, t.r.describe(err, "list the files of commit %s", short(t.commit))
	}
	for part := range strings.SplitSeq(dir, "/") {
		i := slices.IndexFunc(entries, func(e sdk.GitEntry) bool { return e.Path == part && e.Type == "tree" })
		if i < 0 {
			return nil, fmt.Errorf("%w in commit %s", fs.ErrNotExist, short(t.commit))
		}
		if _, entries, err = t.r.tree(ctx, entries[i].SHA); err != nil {
			return nil, t.r.describe(err, "list %s at %s", dir, short(t.commit))
		}
	}
	return entries, nil
}

// contents reads a path, and answers fs.ErrNotExist if the commit does not have it.
func (t treeAt) contents(ctx context.Context, path string) (json.RawMessage, error) {
	if unlawful(path) {
		return nil, fs.ErrNotExist
	}
	var raw json.RawMessage
	_, err := t.r.repoCall(ctx, request{
		method: http.MethodGet, path: "/contents/" + escapePath(path), query: url.Values{"ref": {t.commit}}, out: &raw,
	})
	switch {
	case err == nil && len(raw) == 0:
		err = errors.New("the answer is empty")
	case err == nil:
		return raw, nil
	case statusOf(err) == http.StatusNotFound:
		return nil, t.notThere(ctx, path, err)
	}
	return nil, t.r.describe(err, "read %s at %s", path, short(t.commit))
}

// notThere tells a missing path from a missing commit or repository. Gitea names
// the object in which it looked in vain: the commit itself only if that is absent.
func (t treeAt) notThere(ctx context.Context, path string, err error) error {
	e := refused(err)
	if e.Says("object does not exist") && !e.Says("id: "+t.commit) {
		return fmt.Errorf("%w in commit %s", fs.ErrNotExist, short(t.commit))
	}
	if _, _, rootErr := t.r.tree(ctx, t.commit); rootErr == nil {
		return fmt.Errorf("%w in commit %s", fs.ErrNotExist, short(t.commit))
	}
	return t.r.describe(err, "read %s at %s", path, short(t.commit))
}

// unlawful tells a path that git puts into no tree. Gitea answers 500 to it.
func unlawful(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}
