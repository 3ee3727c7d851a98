package scmtest

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"

	"tagboat/scm/internal/gitobj"
)

// Bare is a bare repository on disk, with a person at its side: Push, MergeBranch,
// Log and all that a Store can do. It is made and used without a git binary.
type Bare struct {
	*Store
	Dir string // absolute
	URL string // file://…
}

// NewBare makes a bare repository in dir, which must be empty or not there, whose
// branch main holds files as one commit.
func NewBare(dir string, files map[string]string) (*Bare, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make a bare repository: %w", err)
	}
	disk := gitobj.Disk(dir)
	if _, err := git.Init(disk, nil); err != nil {
		return nil, fmt.Errorf("make a bare repository in %s: %w", dir, err)
	}
	store, err := OpenStore(disk, "main")
	if err != nil {
		return nil, err
	}
	if _, err := store.Push("main", "Mei <mei@acme.example>", "Configure the environments", files); err != nil {
		return nil, fmt.Errorf("seed %s: %w", dir, err)
	}
	return &Bare{Store: store, Dir: dir, URL: (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(dir), "/")}).String()}, nil
}

// Merge merges a branch into main, as a person who accepts a proposal does, and
// answers the merge commit.
func (b *Bare) Merge(branch string) (sha string, err error) {
	return b.MergeBranch(branch, b.DefaultBranch())
}
