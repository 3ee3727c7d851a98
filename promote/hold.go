package promote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/record"
	"tagboat/scm"
)

// Holds is what one reading of the hold branch found. The zero value is: nothing
// is held.
type Holds struct {
	All    []record.Hold // those that read, by environment and app; also those whose time has passed
	Unread []UnreadHold  // files that do not read: they hold too

	tip   *scm.Tip          // nil: no branch
	bytes map[string][]byte // of every file, by path
}

// UnreadHold is a file on the hold branch that is not understood. It holds what
// its path names; where not even the path is understood, everything.
type UnreadHold struct {
	Path             string
	Environment, App string
	Err              error
}

// Hold is what an unread file does: its reason says what is wrong with it.
func (u UnreadHold) Hold() record.Hold {
	return record.Hold{Environment: u.Environment, App: u.App, Reason: oneLine(fmt.Sprintf("%v: mend it or delete it on branch %s", u.Err, record.HoldBranch))}
}

// holdsAtOnce bounds how many hold files are read at the same time.
const holdsAtOnce = 8

// Holds reads the hold branch of a config repository. No such branch is no hold;
// whatever else cannot be read is an error. It takes one round for the tip, one
// for the list and one for the files (one more where apps are held), beside
// whatever else is read.
func (p *Promoter) Holds(ctx context.Context, repo scm.Repository) (Holds, error) {
	tip, err := repo.Tip(ctx, record.HoldBranch)
	if errors.Is(err, scm.ErrNotFound) {
		return Holds{}, nil
	}
	if err != nil {
		return Holds{}, err
	}
	h := Holds{tip: &tip, bytes: map[string][]byte{}}
	files, err := readHolds(repo.Files(ctx, tip.Commit.SHA))
	if err != nil {
		return Holds{}, fmt.Errorf("read the holds of %s, branch %s: %w", repo.About().Name, record.HoldBranch, err)
	}
	for _, f := range files {
		h.add(f)
	}
	slices.SortFunc(h.All, func(a, b record.Hold) int { // an environment's own before those of its apps
		return cmp.Or(strings.Compare(a.Environment, b.Environment), strings.Compare(a.App, b.App))
	})
	return h, nil
}

// treeFile is a file of a directory, or what stands in a file's place.
type treeFile struct {
	path  string
	bytes []byte
	odd   bool // a symlink or a submodule: it has no bytes
}

// readHolds reads what is at HoldDir: a file or a link in its place is odd, and not
// nothing.
func readHolds(files fs.FS) (found []treeFile, err error) {
	var group errgroup.Group
	var at fs.FileInfo
	group.Go(func() (err error) {
		if at, err = fs.Lstat(files, record.HoldDir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	found, err = readTree(files, record.HoldDir)
	if e := group.Wait(); e != nil {
		return nil, e
	}
	if at != nil && !at.IsDir() {
		return []treeFile{{path: record.HoldDir, odd: true}}, nil
	}
	return found, err
}

// readTree reads all files below a directory, sorted by path, the directories and
// files of a level at the same time. A directory that is not there has none.
func readTree(files fs.FS, dir string) ([]treeFile, error) {
	entries, err := fs.ReadDir(files, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := make([][]treeFile, len(entries))
	var group errgroup.Group
	group.SetLimit(holdsAtOnce)
	for i, e := range entries {
		name := path.Join(dir, e.Name())
		group.Go(func() (err error) {
			found[i], err = readEntry(files, name, e)
			return err
		})
	}
	err = group.Wait()
	return slices.Concat(found...), err
}

func readEntry(files fs.FS, name string, e fs.DirEntry) ([]treeFile, error) {
	switch {
	case e.IsDir():
		return readTree(files, name)
	case !e.Type().IsRegular():
		return []treeFile{{path: name, odd: true}}, nil
	}
	b, err := fs.ReadFile(files, name)
	return []treeFile{{path: name, bytes: b}}, err
}

func (h *Holds) add(f treeFile) {
	hold, err := record.ParseHold(f.path, f.bytes)
	if f.odd {
		err = fmt.Errorf("read the hold %s: it is no file", f.path)
	} else {
		h.bytes[f.path] = f.bytes
	}
	if err == nil {
		h.All = append(h.All, hold)
		return
	}
	u := UnreadHold{Path: f.path, Err: err}
	if environment, app, err := record.SplitHoldPath(f.path); err == nil {
		u.Environment, u.App = environment, app
	}
	h.Unread = append(h.Unread, u)
}

// On lists the holds that stop a promotion of an app's digests to an environment
// at a time (the forge's). An environment's hold holds all its apps. A hold is
// passed where its time has come, or where it allows every one of the digests; it
// lets nothing pass another hold.
func (h Holds) On(environment, app string, at time.Time, digests []string) []record.Hold {
	var on []record.Hold
	for _, hold := range h.All {
		if hold.Stops(environment, app, at, digests) {
			on = append(on, hold)
		}
	}
	for _, u := range h.Unread {
		hold := u.Hold()
		if hold.Stops(environment, app, at, digests) {
			hold.Environment = environment // one that holds everything holds this too
			on = append(on, hold)
		}
	}
	return on
}

// TimeOf is the time by the forge's clock, after the first answer of it, else by
// this machine's; and in words whose it is.
func (p *Promoter) TimeOf(repo scm.Repository) (t time.Time, whose string) {
	if clock, ok := repo.(scm.Clock); ok {
		if t, known := clock.Now(); known {
			return t, "by the clock of " + repo.About().Host
		}
	}
	return p.now(), "by this machine's clock"
}

// find is the hold of a file, and whether it reads; nil where there is no file.
func (h Holds) find(file string) (hold *record.Hold, reads bool) {
	for i := range h.All {
		if h.All[i].Path() == file {
			return &h.All[i], true
		}
	}
	for _, u := range h.Unread {
		if u.Path == file {
			hold := u.Hold()
			return &hold, false
		}
	}
	return nil, false
}
