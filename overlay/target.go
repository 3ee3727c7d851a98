package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
)

// objectFile matches a target that is a file: its path, and after # the name of
// the object in it.
var objectFile = regexp.MustCompile(`^(.*\.(?:yaml|yml|json))(?:#([^/#]+))?$`)

// FileOf parts a target that names a file, FILE or FILE#NAME, into the file's
// path and the name of the object in it ("" where none is given). A target that
// names a directory is none: false. The name alone decides, without a look at the
// files: a file ends in .yaml, .yml or .json.
func FileOf(target string) (file, object string, ok bool) {
	m := objectFile.FindStringSubmatch(target)
	if m == nil {
		return "", "", false
	}
	return path.Clean(m[1]), m[2], true
}

// Holds says whether a target's entries may stand in a file: one in its
// directory, or itself.
func Holds(target, file string) bool {
	if at, _, ok := FileOf(target); ok && at == path.Clean(file) {
		return true
	}
	return path.Clean(target) == path.Dir(path.Clean(file))
}

// targetOf is the target that an entry stands in. One that was made from a
// file's name alone, as a commit message has it, stands in the file's directory
// where the file can only be a kustomization.
func targetOf(e Entry) string {
	switch {
	case e.File == "", e.Dir != "" && Holds(e.Dir, e.File):
		return e.Dir
	case slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(e.File)):
		return path.Dir(e.File)
	}
	return e.File
}

// load reads the lists of images of a target: one of a directory's
// kustomization, one or more of an object in a file.
func load(fsys fs.FS, target string) ([]*document, error) {
	target, err := cleanDir(target)
	if err != nil {
		return nil, err
	}
	if file, object, ok := FileOf(target); ok {
		raw, err := readObjects(fsys, file)
		if !errors.Is(err, errIsDirectory) {
			if err != nil {
				return nil, err
			}
			return parseObject(file, object, raw)
		}
	}
	file, raw, err := readKustomization(fsys, target)
	if err != nil {
		return nil, err
	}
	d, err := parse(file, raw)
	return []*document{d}, err
}

// errIsDirectory is returned for a directory that is named as a file.
var errIsDirectory = errors.New("is a directory")

// readObjects reads a file, and at the same time what it is: on a disk a link
// would be followed.
func readObjects(fsys fs.FS, file string) ([]byte, error) {
	type result struct {
		info fs.FileInfo
		err  error
	}
	is := make(chan result, 1)
	go func() {
		info, err := fs.Lstat(fsys, file)
		is <- result{info, err}
	}()
	raw, err := fs.ReadFile(fsys, file)
	what := <-is
	switch {
	case errors.Is(what.err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no file %s: %w", ErrNoKustomization, file, what.err)
	case what.err != nil:
		return nil, fmt.Errorf("read %s: %w", file, what.err)
	case what.info.IsDir():
		return nil, errIsDirectory
	case what.info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: %s is a symbolic link; give the file that it points to", ErrUnsafe, file)
	case !what.info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrNoKustomization, file)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return raw, nil
}
