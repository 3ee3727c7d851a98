// Package layout recognises how a config repository is laid out: which
// directories and files set images, for which app and which environment. It
// reads any fs.FS within bounds (a checkout, or a commit on a forge without a
// clone), follows no symlink, and makes no call but through it. What it finds is
// a proposal for tagboat.yaml; what it could only guess is in its remarks.
package layout

import (
	"context"
	"errors"
	"io/fs"

	"tagboat/config"
)

// ErrNothing is returned where no environment can be told: there is no
// kustomization, Flux Kustomization or Argo CD Application in what was read.
var ErrNothing = errors.New("no layout is recognised")

// Options bound what is read and tell what files cannot.
type Options struct {
	// Dirs bounds the directories that are listed, nearest to the top first; 0 is 2000.
	Dirs int
	// Files bounds the files that are read; 0 is 2000.
	Files int
	// Branch tells whether a branch is there. It is asked only where no directory
	// tells of environments, and may be nil.
	Branch func(ctx context.Context, name string) (bool, error)
}

// Layout is what was recognised.
type Layout struct {
	Environments []Environment // in a guessed order of promotion
	Apps         []App         // by name
	// CI lists the systems whose configuration is there: github, gitlab, gitea.
	CI []string
	// Remarks are what was guessed, skipped or left out, one sentence each, without
	// control characters.
	Remarks []string
	// Dirs and Files are how much was read.
	Dirs, Files int
}

// Environment is a place where apps run.
type Environment struct {
	Name   string
	Branch string   // "": the default branch
	Paths  []string // as config.Environment has them
	From   []string
	Rings  []string // their names; Paths then has {ring}
	Notes  []string // for a comment above it

	rank int
}

// App is what is promoted as one.
type App struct {
	Name         string
	Images       []config.Image
	Environments []string // nil: all of them
	Notes        []string
	// Off says why the app cannot be written as it is: it is then a comment.
	Off string
}

// Look reads fsys and says how it is laid out.
func Look(ctx context.Context, fsys fs.FS, o Options) (Layout, error) {
	s := newScan(ctx, fsys, o)
	if err := s.walk(); err != nil {
		return Layout{}, err
	}
	if err := s.readAll(); err != nil {
		return Layout{}, err
	}
	p := plan{scan: s}
	if err := p.make(ctx, o.Branch); err != nil {
		return Layout{}, err
	}
	l := Layout{
		Environments: p.environments, Apps: p.apps, CI: s.ci(), Remarks: s.remarks.list(),
		Dirs: s.listed, Files: s.read,
	}
	if len(l.Environments) == 0 {
		return l, ErrNothing
	}
	l.Remarks = append(l.Remarks, l.check(fsys)...)
	return l, nil
}
