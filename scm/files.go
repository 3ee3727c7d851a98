package scm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// FileSource is how a forge reads the tree at one commit. Paths are fs.ValidPath,
// the root is ".". An error is fs.ErrNotExist only where the forge said that the
// path is not in the commit; a commit or repository that is not there is another
// error.
type FileSource struct {
	// ReadFile reads a file's bytes and its type and permissions as git has them
	// (see GitMode); of a symlink its target. What is no file is an error.
	ReadFile func(ctx context.Context, path string) ([]byte, fs.FileMode, error)
	// ReadDir lists a whole directory, all pages. What is no directory is
	// fs.ErrNotExist.
	ReadDir func(ctx context.Context, path string) ([]FileEntry, error)
	// Blind says that ReadFile cannot tell a symlink from a file. Its directory is
	// then read at the same time, once for all its files.
	Blind bool
	// ReadLink reads a symlink's target where ReadFile follows it; nil asks
	// ReadFile.
	ReadLink func(ctx context.Context, path string, e FileEntry) (string, error)
}

// FileEntry is one entry of a directory as git has it.
type FileEntry struct {
	Name string
	Mode fs.FileMode // see GitMode
	Size int64       // bytes; 0 where the listing does not tell
	ID   string      // blob or tree id
}

// GitMode turns git's octal mode into Go's: 100644, 100755, 120000 (symlink),
// 040000 (directory), 160000 (submodule, which is fs.ModeIrregular).
func GitMode(mode string) fs.FileMode {
	switch strings.TrimPrefix(mode, "0") {
	case "40000":
		return fs.ModeDir | 0o755
	case "100755":
		return 0o755
	case "120000":
		return fs.ModeSymlink | 0o777
	case "160000":
		return fs.ModeIrregular
	}
	return 0o644
}

// Files is the tree at one commit as a file system: read as it is asked for,
// each directory and file once, kept while the value lives. It follows no
// symlink: Stat is Lstat, and a symlink cannot be read.
type Files struct {
	ctx    context.Context // the one of the call that made it: io/fs has none
	source FileSource
	files  cache[fileContent]
	dirs   cache[[]FileEntry]
}

type fileContent struct {
	bytes []byte
	mode  fs.FileMode
}

// NewFiles makes a file system that reads through source until ctx ends.
func NewFiles(ctx context.Context, source FileSource) *Files {
	return &Files{ctx: ctx, source: source}
}

// globAtOnce bounds the directories that Glob reads at the same time.
const globAtOnce = 16

// ReadFile implements fs.ReadFileFS.
func (f *Files) ReadFile(name string) ([]byte, error) {
	c, err := f.content("read", name)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(c.bytes), nil
}

func (f *Files) content(op, name string) (fileContent, error) {
	if !fs.ValidPath(name) || name == "." {
		return fileContent{}, pathError(op, name, fs.ErrInvalid)
	}
	known := make(chan error, 1)
	if f.source.Blind {
		go func() { known <- f.mustBeFile(name) }()
	} else {
		known <- nil
	}
	c, err := f.load(name)
	notFile := <-known
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, pathError(op, name, err)
	case notFile != nil:
		return c, pathError(op, name, notFile)
	case err != nil:
		return c, pathError(op, name, err)
	}
	if !f.source.Blind {
		return c, pathError(op, name, notAFile(c.mode))
	}
	return c, nil
}

func (f *Files) load(name string) (fileContent, error) {
	return f.files.get(name, func() (fileContent, error) {
		b, mode, err := f.source.ReadFile(f.ctx, name)
		return fileContent{b, mode}, err
	})
}

func (f *Files) mustBeFile(name string) error {
	e, err := f.entry(name)
	if err != nil {
		return err
	}
	return notAFile(e.Mode)
}

func notAFile(mode fs.FileMode) error {
	switch mode.Type() {
	case 0:
		return nil
	case fs.ModeDir:
		return fmt.Errorf("is a directory: %w", fs.ErrInvalid)
	case fs.ModeSymlink:
		return fmt.Errorf("is a symlink, which is not followed: %w", fs.ErrInvalid)
	}
	return fmt.Errorf("is a submodule: %w", fs.ErrInvalid)
}

// pathError is nil for a nil err.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Entry is a path's entry in its directory: type, permissions, size and id.
func (f *Files) Entry(name string) (FileEntry, error) {
	if !fs.ValidPath(name) {
		return FileEntry{}, pathError("stat", name, fs.ErrInvalid)
	}
	e, err := f.entry(name)
	return e, pathError("stat", name, err)
}

func (f *Files) entry(name string) (FileEntry, error) {
	if name == "." {
		return FileEntry{Name: ".", Mode: fs.ModeDir | 0o755}, nil
	}
	list, err := f.list(path.Dir(name))
	if err != nil {
		return FileEntry{}, err
	}
	i, ok := slices.BinarySearchFunc(list, path.Base(name), func(e FileEntry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return FileEntry{}, fs.ErrNotExist
	}
	return list[i], nil
}

func (f *Files) list(dir string) ([]FileEntry, error) {
	return f.dirs.get(dir, func() ([]FileEntry, error) {
		list, err := f.source.ReadDir(f.ctx, dir)
		if err != nil {
			return nil, err
		}
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b FileEntry) int { return strings.Compare(a.Name, b.Name) })
		return list, nil
	})
}

// Lstat implements fs.ReadLinkFS.
func (f *Files) Lstat(name string) (fs.FileInfo, error) {
	e, err := f.Entry(name)
	if err != nil {
		return nil, err
	}
	return fileInfo{e}, nil
}

// Stat implements fs.StatFS. It follows no symlink.
func (f *Files) Stat(name string) (fs.FileInfo, error) { return f.Lstat(name) }

// ReadLink implements fs.ReadLinkFS.
func (f *Files) ReadLink(name string) (string, error) {
	e, err := f.Entry(name)
	if err != nil {
		return "", err
	}
	if e.Mode.Type() != fs.ModeSymlink {
		return "", pathError("readlink", name, fmt.Errorf("is no symlink: %w", fs.ErrInvalid))
	}
	if f.source.ReadLink != nil {
		target, err := f.source.ReadLink(f.ctx, name, e)
		return target, pathError("readlink", name, err)
	}
	c, err := f.load(name)
	return string(c.bytes), pathError("readlink", name, err)
}

// ReadDir implements fs.ReadDirFS.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, pathError("readdir", name, fs.ErrInvalid)
	}
	list, err := f.list(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(list))
	for i, e := range list {
		out[i] = fs.FileInfoToDirEntry(fileInfo{e})
	}
	return out, nil
}

// Open implements fs.FS. A file's bytes are read when they are asked for; those
// of a symlink or a submodule are refused then.
func (f *Files) Open(name string) (fs.File, error) {
	e, err := f.Entry(name)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			p.Op = "open"
		}
		return nil, err
	}
	if e.Mode.IsDir() {
		return &openDir{info: fileInfo{e}, name: name, fsys: f}, nil
	}
	return &openFile{info: fileInfo{e}, name: name, fsys: f}, nil
}

// Glob implements fs.GlobFS: one level after the other, the directories of a
// level at the same time. Unlike fs.Glob it returns the first error that is not
// fs.ErrNotExist.
func (f *Files) Glob(pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	found := []string{"."}
	literal := ""
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if !strings.ContainsAny(part, `*?[\`) && i < len(parts)-1 {
			literal = path.Join(literal, part)
			continue
		}
		next, err := f.globLevel(found, literal, part)
		if err != nil {
			return nil, err
		}
		found, literal = next, ""
	}
	return found, nil
}

func (f *Files) globLevel(dirs []string, literal, pattern string) ([]string, error) {
	matches := make([][]string, len(dirs))
	errs := make([]error, len(dirs))
	slots := make(chan struct{}, globAtOnce)
	var wg sync.WaitGroup
	for i, dir := range dirs {
		slots <- struct{}{}
		wg.Go(func() {
			matches[i], errs[i] = f.globDir(path.Join(dir, literal), pattern)
			<-slots
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(matches...), nil
}

func (f *Files) globDir(dir, pattern string) ([]string, error) {
	if !fs.ValidPath(dir) {
		return nil, nil
	}
	list, err := f.list(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, pathError("glob", dir, err)
	}
	var names []string
	for _, e := range list {
		if ok, err := path.Match(pattern, e.Name); err != nil {
			return nil, err
		} else if ok {
			names = append(names, path.Join(dir, e.Name))
		}
	}
	return names, nil
}
