package overlay

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// closedFS gives kustomize a tree, mounted at "/", and nothing else: it reads no
// file system at all, so no look-up can fail or wait in it, and it refuses writes.
// What was not followed beforehand stops the build by a panic, because what
// kustomize does after an ordinary error is to try the reference as a repository
// to clone.
type closedFS struct{ in *buildTree }

var _ filesys.FileSystem = closedFS{}

// notFollowed is the panic.
type notFollowed struct{ path string }

func (n notFollowed) Error() string {
	return fmt.Sprintf("kustomize asks for %s, which no reference that is followed beforehand leads to", n.path)
}

func (c closedFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	p := inTree(name)
	if _, ok := c.in.dirs[p]; ok {
		return confirmed("/" + strings.TrimPrefix(p, ".")), "", nil
	}
	if _, err := c.ReadFile(name); err != nil {
		return "", "", err
	}
	return confirmed(path.Dir("/" + p)), path.Base(p), nil
}

// confirmed has the system's own separators: kustomize compares directories by them.
func confirmed(dir string) filesys.ConfirmedDir { return filesys.ConfirmedDir(filepath.FromSlash(dir)) }

func (c closedFS) ReadFile(name string) ([]byte, error) {
	p := inTree(name)
	if content, ok := c.in.files[p]; ok {
		return slices.Clone(content), nil
	}
	_, isDir := c.in.dirs[p]
	_, inDir := c.in.dirs[path.Dir(p)]
	if isDir || inDir && slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(p)) {
		return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	panic(notFollowed{p})
}

func (c closedFS) Exists(name string) bool { return c.IsDir(name) || c.has(name) }

func (c closedFS) IsDir(name string) bool {
	_, ok := c.in.dirs[inTree(name)]
	return ok
}

func (c closedFS) has(name string) bool {
	_, ok := c.in.files[inTree(name)]
	return ok
}

func (c closedFS) Open(name string) (filesys.File, error)      { panic(notFollowed{inTree(name)}) }
func (c closedFS) ReadDir(name string) ([]string, error)       { panic(notFollowed{inTree(name)}) }
func (c closedFS) Glob(pattern string) ([]string, error)       { panic(notFollowed{inTree(pattern)}) }
func (c closedFS) Walk(name string, _ filepath.WalkFunc) error { panic(notFollowed{inTree(name)}) }

func (c closedFS) Create(name string) (filesys.File, error) { return nil, readOnly(name) }
func (c closedFS) Mkdir(name string) error                  { return readOnly(name) }
func (c closedFS) MkdirAll(name string) error               { return readOnly(name) }
func (c closedFS) RemoveAll(name string) error              { return readOnly(name) }
func (c closedFS) WriteFile(name string, _ []byte) error    { return readOnly(name) }

func readOnly(name string) error {
	return &fs.PathError{Op: "write", Path: name, Err: fs.ErrPermission}
}

// inTree is kustomize's absolute path as the tree names it.
func inTree(name string) string {
	p := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
	if p == "" {
		return "."
	}
	return p
}
