package github

import (
	"context"
	"io/fs"

	"tagboat/scm"
)

// Files is the tree at a commit SHA. A directory is one call; a file in a
// directory that has not been listed yet is two calls in one round, a file in one
// that has is one.
func (r *Repository) Files(ctx context.Context, commit string) fs.FS {
	return scm.NewFiles(ctx, scm.FileSource{
		ReadFile: func(ctx context.Context, p string) ([]byte, fs.FileMode, error) {
			e, content, err := r.read(ctx, commit, p)
			return content, scm.GitMode(e.mode), err
		},
		ReadDir: func(ctx context.Context, dir string) ([]scm.FileEntry, error) {
			entries, err := r.list(ctx, commit, dir)
			if err != nil {
				return nil, err
			}
			out := make([]scm.FileEntry, 0, len(entries))
			for _, e := range entries {
				out = append(out, scm.FileEntry{Name: e.name, Mode: scm.GitMode(e.mode), Size: e.size, ID: e.sha})
			}
			return out, nil
		},
	})
}
