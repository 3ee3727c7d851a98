package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/konfig"
)

// Bounds of what one proof reads. A config repository's overlay is a few dozen
// files of a few kilobytes; what is larger by orders is not one, or not a kind
// one.
const (
	maxPaths     = 2000     // files and directories
	maxReadFile  = 10 << 20 // bytes of one file
	maxReadBytes = 32 << 20 // bytes of all files
	readsAtOnce  = 64
)

// source reads an fs.FS once per path, in parallel rounds, and remembers.
type source struct {
	fsys fs.FS

	mu     sync.Mutex
	found  map[string]found
	listed map[string][]fs.DirEntry // directories
	bytes  int
	local  bool
}

// found is what stands at a path.
type found struct {
	kind    foundKind
	content []byte // of a file
}

type foundKind int

const (
	isMissing foundKind = iota
	isFile
	isDirectory
	isSymlink
	isOther // device, socket, submodule
	isTooLarge
)

func newSource(fsys fs.FS) *source {
	return &source{fsys: fsys, found: map[string]found{}, listed: map[string][]fs.DirEntry{}}
}

// with is the same source with other bytes on top: what was read stays read.
func (s *source) with(files map[string][]byte) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	top := &source{fsys: s.fsys, found: maps.Clone(s.found), listed: maps.Clone(s.listed), bytes: s.bytes, local: s.local}
	for name, content := range files {
		top.found[name] = found{kind: isFile, content: content}
	}
	return top
}

func (s *source) at(name string) (found, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.found[name]
	return f, ok
}

// put keeps the first answer: bytes that lie on top are not replaced.
func (s *source) put(name string, f found) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.found[name]; ok {
		return nil
	}
	if len(f.content) > maxReadFile {
		f = found{kind: isTooLarge}
	}
	s.found[name] = f
	s.bytes += len(f.content)
	switch {
	case s.bytes > maxReadBytes:
		return skip{fmt.Sprintf("what it builds from has more than %d MB", maxReadBytes>>20)}
	case len(s.found) > maxPaths:
		return skip{fmt.Sprintf("what it builds from has more than %d files and directories", maxPaths)}
	}
	return nil
}

// ask is one path to read, and what it most likely is.
type ask struct {
	path  string
	guess guess
}

type guess int

const (
	guessFile guess = iota
	guessDirectory
)

// read reads all paths at the same time. A guess that was right costs one round.
// What is missing is no error; a failed look-up is.
func (s *source) read(ctx context.Context, asks []ask) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsAtOnce)
	for _, w := range asks {
		if _, ok := s.at(w.path); ok {
			continue
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return s.look(w)
		})
	}
	return g.Wait()
}

func (s *source) look(w ask) error {
	if kind, known := s.inListing(w.path); known {
		return s.settle(w.path, kind)
	}
	if !s.isLocal() {
		if err := s.try(w); err == nil || errors.As(err, new(skip)) {
			return err
		}
	}
	kind, err := s.lstat(w.path)
	if err != nil {
		return err
	}
	return s.settle(w.path, kind)
}

// try reads a path as what it is guessed to be. Its error means nothing: a
// directory has been read as a file, say. It asks not for the path's type, which
// on a forge costs the listing of the directory above, however large.
func (s *source) try(w ask) error {
	if w.guess != guessFile {
		return s.directory(w.path)
	}
	content, err := fs.ReadFile(s.fsys, w.path)
	if err != nil {
		return err
	}
	return s.put(w.path, found{kind: isFile, content: content})
}

// settle records what stands at a path, and reads what is not read yet.
func (s *source) settle(name string, kind foundKind) error {
	switch kind {
	case isDirectory:
		return s.directory(name)
	case isFile:
		content, err := fs.ReadFile(s.fsys, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return s.put(name, found{kind: isFile, content: content})
	}
	return s.put(name, found{kind: kind})
}

// lstat says what stands at a path; isMissing only where the file system says so.
// On a local disk a path that leads through a symbolic link is one: kustomize
// would go on from where it points to.
func (s *source) lstat(name string) (foundKind, error) {
	if s.isLocal() {
		for i := range name {
			if name[i] != '/' {
				continue
			}
			if info, err := fs.Lstat(s.fsys, name[:i]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return isSymlink, nil
			}
		}
	}
	info, err := fs.Lstat(s.fsys, name)
	switch {
	case err == nil:
		return kindOf(info.Mode()), nil
	case errors.Is(err, fs.ErrNotExist):
		return isMissing, nil
	}
	return isMissing, fmt.Errorf("look up %s: %w", name, err)
}

// isLocal says whether the file system is the operating system's, in which links
// are followed and a look-up costs nothing. It is known once a directory is listed.
func (s *source) isLocal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local
}

// fromDisk says whether a listing comes from the operating system: only there a
// file has a Sys.
func fromDisk(entries []fs.DirEntry) bool {
	if len(entries) == 0 {
		return false
	}
	info, err := entries[0].Info()
	return err == nil && info.Sys() != nil
}

// inListing says what stands at a path whose directory has been listed.
func (s *source) inListing(name string) (kind foundKind, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, known := s.listed[path.Dir(name)]
	if name == "." || !known {
		return isMissing, false
	}
	i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(name) })
	if i < 0 {
		return isMissing, true
	}
	return kindOf(entries[i].Type()), true
}

// listedWith is the first name in a listed directory that begins so, or "".
func (s *source) listedWith(dir, prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.listed[dir] {
		if strings.HasPrefix(e.Name(), prefix) {
			return e.Name()
		}
	}
	return ""
}

func kindOf(mode fs.FileMode) foundKind {
	switch {
	case mode&fs.ModeSymlink != 0:
		return isSymlink
	case mode.IsDir():
		return isDirectory
	case mode.IsRegular():
		return isFile
	}
	return isOther
}

// directory lists a directory and reads its kustomization, the usual name at the
// same time as the listing.
func (s *source) directory(dir string) error {
	if f, ok := s.at(dir); ok && f.kind == isDirectory {
		return nil
	}
	usual := path.Join(dir, konfig.DefaultKustomizationFileName())
	var content []byte
	var usualErr error
	var both sync.WaitGroup
	_, have := s.at(usual)
	if !have {
		both.Go(func() { content, usualErr = fs.ReadFile(s.fsys, usual) })
	}
	entries, err := fs.ReadDir(s.fsys, dir)
	both.Wait()
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	s.mu.Lock()
	s.listed[dir], s.local = entries, s.local || fromDisk(entries)
	s.mu.Unlock()
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(dir, base)
		kind, _ := s.inListing(name)
		if _, ok := s.at(name); ok || kind == isMissing {
			continue
		}
		if name == usual && kind == isFile && usualErr == nil {
			err = s.put(name, found{kind: isFile, content: content})
		} else {
			err = s.settle(name, kind)
		}
		if err != nil {
			return err
		}
	}
	return s.put(dir, found{kind: isDirectory})
}
