package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
)

// maxKustomization is the size in bytes above which a kustomization file is not read as one.
const maxKustomization = 10 << 20

// Entries lists the images entries of a target, in the order of the file. A
// target is relative to the root of fsys; "." is the root. It is one of
//
//   - the directory of a kustomization or Component. It must hold exactly one of
//     the file names that kustomize knows (else ErrNoKustomization), as a regular
//     file and not a link: kustomize build does not see a linked one (kustomize#693);
//   - a file (.yaml, .yml or .json) with a Flux Kustomization, whose spec.images
//     are listed, or an Argo CD Application or ApplicationSet: kustomize.images of
//     its source or sources. In a file with several such objects FILE#NAME names
//     the one of that metadata.name; FILE alone is the only one that has images.
//
// A target without images gives no entries and no error. What cannot be read as
// one kustomization, or as YAML objects, is ErrUnsafe; an object that no images
// can be set in (a Helm chart, a plugin) is ErrNoKustomization.
//
// It costs one round: one ReadDir and one ReadFile of the usual name, or one
// Lstat and one ReadFile of the file, at the same time.
func Entries(fsys fs.FS, target string) ([]Entry, error) {
	lists, err := load(fsys, target)
	if err != nil {
		return nil, fmt.Errorf("list images of %s: %w", target, err)
	}
	var entries []Entry
	for _, d := range lists {
		entries = append(entries, d.entries()...)
	}
	return entries, nil
}

// cleanDir gives dir as io/fs wants it, or says why it is no directory of the repository.
func cleanDir(dir string) (string, error) {
	if strings.Contains(dir, `\`) {
		return "", fmt.Errorf("%w: directory %q has a backslash; write it with /", ErrUnsafe, dir)
	}
	if path.IsAbs(dir) {
		return "", fmt.Errorf("%w: directory %q is absolute; give it relative to the repository's root", ErrUnsafe, dir)
	}
	clean := path.Clean(dir)
	if !fs.ValidPath(clean) {
		return "", fmt.Errorf("%w: directory %q leaves the repository; give one inside of it, without ../", ErrUnsafe, dir)
	}
	return clean, nil
}

// readKustomization finds the file by one listing. The usual name is read at
// the same time, so that a forge is asked in one round.
func readKustomization(fsys fs.FS, dir string) (file string, raw []byte, err error) {
	const usual = "kustomization.yaml"
	type result struct {
		raw []byte
		err error
	}
	guess := make(chan result, 1)
	go func() {
		raw, err := fs.ReadFile(fsys, path.Join(dir, usual))
		guess <- result{raw, err}
	}()
	listing, err := fs.ReadDir(fsys, dir)
	read := <-guess
	if err != nil {
		return "", nil, unreadableDir(fsys, dir, err)
	}
	name, err := pickFile(dir, listing)
	if err != nil {
		return "", nil, err
	}
	file = path.Join(dir, name)
	if name != usual {
		read.raw, read.err = fs.ReadFile(fsys, file)
	}
	if read.err != nil {
		return "", nil, fmt.Errorf("read %s: %w", file, read.err)
	}
	return file, read.raw, nil
}

// unreadableDir keeps a failure to look apart from a directory that is not there.
func unreadableDir(fsys fs.FS, dir string, err error) error {
	if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(dir)) {
		return fmt.Errorf("%w: %s names a file; give the directory, %s: %w", ErrNoKustomization, dir, path.Dir(dir), err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		cause := err
		if at := new(fs.PathError); errors.As(err, &at) {
			cause = at.Err // it says the directory once more
		}
		return fmt.Errorf("%w: there is no directory %s: %w%s", ErrNoKustomization, dir, cause, beside(fsys, dir))
	}
	return fmt.Errorf("read directory %s: %w", dir, err)
}

// beside tells the directories where the missing one would be, "" where that is not
// to be had: somebody may have mistyped.
func beside(fsys fs.FS, dir string) string {
	for dir != "." {
		dir = path.Dir(dir)
		list, err := fs.ReadDir(fsys, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var names []string
		for _, e := range list {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		if err != nil || len(names) == 0 {
			return ""
		}
		if more := len(names) - 10; more > 0 {
			names = append(names[:10], fmt.Sprintf("%d more", more))
		}
		if dir == "." {
			dir = "the top"
		}
		return fmt.Sprintf("; %s has %s", dir, strings.Join(names, ", "))
	}
	return ""
}

// pickFile gives the name of the one kustomization file in a listing. A link
// or a directory of such a name is told, not passed over.
func pickFile(dir string, listing []fs.DirEntry) (string, error) {
	known := konfig.RecognizedKustomizationFileNames()
	var found []fs.DirEntry
	var near []string
	for _, e := range listing {
		switch {
		case slices.Contains(known, e.Name()):
			found = append(found, e)
		case strings.EqualFold(strings.TrimSuffix(e.Name(), path.Ext(e.Name())), "kustomization"):
			near = append(near, e.Name())
		}
	}
	switch {
	case len(found) == 0 && len(near) > 0:
		return "", fmt.Errorf("%w: %s has %s, which kustomize does not read; name it kustomization.yaml", ErrNoKustomization, dir, strings.Join(near, " and "))
	case len(found) == 0:
		return "", fmt.Errorf("%w: %s has none of %s; give the overlay's own directory", ErrNoKustomization, dir, strings.Join(known, ", "))
	case len(found) > 1:
		return "", fmt.Errorf("%w: %s has both %s and %s; kustomize refuses two, remove one", ErrNoKustomization, dir, found[0].Name(), found[1].Name())
	}
	one := found[0]
	if one.Type()&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("%w: %s is a symbolic link, which kustomize build does not follow; give the directory that it points into", ErrUnsafe, path.Join(dir, one.Name()))
	}
	if !one.Type().IsRegular() {
		return "", fmt.Errorf("%w: %s is not a regular file", ErrNoKustomization, path.Join(dir, one.Name()))
	}
	return one.Name(), nil
}
