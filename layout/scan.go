package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

const (
	depthLimit = 12 // directories below one another
	atOnce     = 8  // calls at the same time
	fileLimit  = 1 << 20
	usualDirs  = 2000
	usualFiles = 2000
	nameLimit  = 400 // bytes of a path that is still shown and written
)

// scan is what was read of a repository.
type scan struct {
	ctx  context.Context // of the one call that made it
	fsys fs.FS

	dirs  []string            // all that were listed, "." first
	below map[string][]string // of a directory: the directories in it
	files map[string][]string // of a directory: the regular files in it

	listed, dirsLeft int

	mu              sync.Mutex
	read, filesLeft int

	kustomizations map[string]*kustomization // by directory
	objects        []object
	remarks        remarks
}

func newScan(ctx context.Context, fsys fs.FS, o Options) *scan {
	s := &scan{
		ctx: ctx, fsys: fsys, below: map[string][]string{}, files: map[string][]string{},
		dirsLeft: o.Dirs, filesLeft: o.Files, kustomizations: map[string]*kustomization{},
	}
	if s.dirsLeft <= 0 {
		s.dirsLeft = usualDirs
	}
	if s.filesLeft <= 0 {
		s.filesLeft = usualFiles
	}
	return s
}

// walk lists directories, one level after the other, so that a bound leaves out
// what lies deepest.
func (s *scan) walk() error {
	level := []string{"."}
	for depth := 0; len(level) > 0; depth++ {
		if depth > depthLimit {
			s.remarks.add("directories more than %d below the top were not looked at", depthLimit)
			return nil
		}
		if len(level) > s.dirsLeft {
			bound, further := s.listed+s.dirsLeft, ""
			if bound < usualDirs { // a forge's: each listing is a call
				further = "; in a clone, tagboat init looks further"
			}
			s.remarks.add("this repository has many directories: %d were looked at, what lies further down was not%s", bound, further)
			level = level[:s.dirsLeft]
		}
		next, err := s.level(level)
		if err != nil {
			return err
		}
		s.listed += len(level)
		if s.dirsLeft -= len(level); s.dirsLeft == 0 {
			return nil
		}
		level = next
	}
	return nil
}

// level lists the directories of one level and gives those of the next.
func (s *scan) level(level []string) ([]string, error) {
	listings := make([][]fs.DirEntry, len(level))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, dir := range level {
		group.Go(func() error {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			var err error
			listings[i], err = fs.ReadDir(s.fsys, dir)
			if err != nil && dir != "." && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)) {
				s.remarks.add("%s could not be read", show(dir))
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list the repository's directories: %w", err)
	}
	var next []string
	for i, dir := range level {
		s.dirs = append(s.dirs, dir)
		next = append(next, s.sort(dir, listings[i])...)
	}
	return next, nil
}

// sort parts a listing, and gives the directories to go on with.
func (s *scan) sort(dir string, listing []fs.DirEntry) []string {
	var next []string
	for _, e := range listing {
		name := path.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			if isYAML(name) || path.Ext(name) == "" {
				s.remarks.add("%s is a symbolic link, which is not followed", show(name))
			}
		case e.IsDir() && dir == "." && slices.Contains(ciDirs(), e.Name()):
			s.below[dir] = append(s.below[dir], name)
			next = append(next, name)
		case e.IsDir() && passedOver(e.Name()):
		case e.IsDir() && !plainPath(name):
			s.remarks.add("%s is left out: a path in tagboat.yaml cannot have such characters", show(name))
		case e.IsDir():
			s.below[dir] = append(s.below[dir], name)
			next = append(next, name)
		case e.Type().IsRegular():
			s.files[dir] = append(s.files[dir], name)
		}
	}
	return next
}

// passedOver are directories of tools, and of files that are no environment's.
func passedOver(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "vendor", "testdata"}, name)
}

func ciDirs() []string { return []string{".github", ".gitea", ".forgejo"} }

// ci tells the CI systems whose configuration is in the repository.
func (s *scan) ci() []string {
	has := func(dir string) bool { return slices.ContainsFunc(s.files[dir], isYAML) }
	var found []string
	if has(".github/workflows") {
		found = append(found, "github")
	}
	if slices.Contains(s.files["."], ".gitlab-ci.yml") {
		found = append(found, "gitlab")
	}
	if has(".gitea/workflows") || has(".forgejo/workflows") {
		found = append(found, "gitea")
	}
	return found
}

func isYAML(name string) bool {
	return (path.Ext(name) == ".yaml" || path.Ext(name) == ".yml") && path.Base(name) != ".yaml"
}

// plainPath says whether a path can stand in tagboat.yaml, where some characters
// are those of patterns and placeholders, and in a comment.
func plainPath(p string) bool {
	return len(p) <= nameLimit && !strings.ContainsFunc(p, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r > 0x7e || strings.ContainsRune(`\{}*?[]"'#`, r)
	})
}

// content reads a file within the bounds; nil where they are reached.
func (s *scan) content(name string) ([]byte, error) {
	s.mu.Lock()
	left := s.filesLeft
	if left > 0 {
		s.filesLeft--
		s.read++
	}
	s.mu.Unlock()
	if left == 0 {
		s.remarks.once("this repository has many files: not all of them were read")
		return nil, nil
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	info, err := fs.Lstat(s.fsys, name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > fileLimit) {
		s.remarks.add("%s is no plain file, or too large: it was not read", show(name))
		return nil, nil
	}
	content, err := fs.ReadFile(s.fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrInvalid):
		s.remarks.add("%s could not be read", show(name))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", show(name), err)
	case len(content) > fileLimit:
		s.remarks.add("%s is too large: it was not read", show(name))
		return nil, nil
	}
	return content, nil
}

// remarks are sentences, each once and in the order of the first time.
type remarks struct {
	mu    sync.Mutex
	lines []string
}

func (r *remarks) add(format string, args ...any) { r.once(fmt.Sprintf(format, args...)) }

func (r *remarks) once(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.lines, line) {
		r.lines = append(r.lines, line)
	}
}

// remarkLimit bounds what a hostile repository can make us say.
const remarkLimit = 60

func (r *remarks) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if more := len(r.lines) - remarkLimit; more > 0 {
		return append(slices.Clone(r.lines[:remarkLimit]), fmt.Sprintf("and %d more remarks of this kind", more))
	}
	return slices.Clone(r.lines)
}

// show writes a name of the repository on one line, whatever is in it.
func show(name string) string {
	if plainPath(name) {
		return name
	}
	if len(name) > nameLimit {
		name = strings.ToValidUTF8(name[:nameLimit], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
