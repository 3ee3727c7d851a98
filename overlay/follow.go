package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// skip is why a tree cannot be built here: kustomize is not called.
type skip struct{ reason string }

func (s skip) Error() string { return s.reason }

// broken is why kustomize itself refuses a tree.
type broken struct{ err error }

func (b broken) Error() string { return b.err.Error() }
func (b broken) Unwrap() error { return b.err }

// buildTree is everything that a build of one directory reads, and nothing else.
type buildTree struct {
	dir   string
	files map[string][]byte
	dirs  map[string]*kustDir
	// openAPI is set when a kustomization replaces kustomize's schema, which is
	// process-wide.
	openAPI bool
	// err is why it cannot be built: a skip, a broken, errComponent or
	// ErrNoKustomization.
	err error

	level []reference // to be taken next
	taken map[string]bool
}

// kustDir is a directory with a kustomization.
type kustDir struct {
	file     string
	content  types.Kustomization
	files    []string // read through it
	children []string // directories built through it
}

// role is what a reference is used as, which decides what may stand there.
type role int

const (
	roleTarget    role = iota // the directory that is proven
	roleResource              // a file of objects, or a directory
	roleComponent             // a directory
	rolePlugin                // a generator, transformer or validator: a file of objects, or a directory
	roleData                  // a file
)

// reference is one reference, and where it stands.
type reference struct {
	from  string // the kustomization file
	field string // e.g. resources, configMapGenerator.files
	root  string // the directory that it is relative to
	value string
	role  role
	base  string // rolePlugin: the directory that paths in the configuration are relative to
	path  string // of what is meant, in the repository
}

func (r reference) String() string { return fmt.Sprintf("%s: %s: %s", r.from, r.field, brief(r.value)) }

// follow reads all that a build of each of dirs would read, level by level, each
// level of all of them in one parallel round. A tree's err is a skip when a
// reference is anything but a file or directory in the file system, so that
// kustomize, which fetches and clones whatever its options say, is never given
// one; a broken when kustomize would not accept a kustomization. The error is the
// file system's, or the context's.
func follow(ctx context.Context, s *source, dirs []string) ([]*buildTree, error) {
	trees := make([]*buildTree, len(dirs))
	for i, dir := range dirs {
		trees[i] = &buildTree{dir: dir, files: map[string][]byte{}, dirs: map[string]*kustDir{}, taken: map[string]bool{},
			level: []reference{{from: dir, field: "target", value: dir, path: dir, role: roleTarget}}}
	}
	for {
		level := asks(trees)
		if len(level) == 0 {
			return trees, nil
		}
		err := s.read(ctx, level)
		var tooMuch skip
		if err != nil && !errors.As(err, &tooMuch) {
			return nil, err
		}
		for _, t := range trees {
			if err != nil && t.err == nil {
				t.err = err
			}
			t.descend(s)
		}
	}
}

// descend takes the level that has been read, and finds the next one.
func (t *buildTree) descend(s *source) {
	level := t.level
	t.level = nil
	for _, r := range level {
		if t.err != nil {
			return
		}
		refs, err := t.take(s, r)
		t.err = err
		for _, next := range refs {
			if t.err = cmp.Or(t.err, next.check()); t.err != nil {
				return
			}
			next.path = path.Join(next.root, next.value)
			key := fmt.Sprintf("%q %q %q %d", next.path, next.root, next.base, next.role)
			if !t.taken[key] {
				t.taken[key] = true
				t.level = append(t.level, next)
			}
		}
	}
	if len(level) > 0 && len(t.level) == 0 && t.err == nil {
		t.err = t.bounded()
	}
}

func asks(trees []*buildTree) []ask {
	var out []ask
	seen := map[ask]bool{}
	for _, t := range trees {
		for _, r := range t.level {
			w := ask{path: r.path, guess: guessFile}
			if r.role == roleTarget || r.role == roleComponent || r.role != roleData && path.Ext(r.path) == "" {
				w.guess = guessDirectory
			}
			if !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	return out
}

// check refuses what leaves the repository, before anything is read.
func (r reference) check() error {
	switch {
	case remote(r.value):
		return skip{fmt.Sprintf("%s is not in this repository, and nothing is fetched to prove an edit", r)}
	case path.IsAbs(r.value) || strings.HasPrefix(r.value, `\`):
		return skip{fmt.Sprintf("%s is an absolute path", r)}
	case strings.ContainsAny(r.value, "\x00\n\r"):
		return skip{fmt.Sprintf("%s is neither a path nor readable as YAML", r)}
	}
	if up := path.Join(r.root, r.value); up == ".." || strings.HasPrefix(up, "../") {
		return skip{fmt.Sprintf("%s leaves the repository", r)}
	}
	return nil
}

// take puts what stands at a reference into the tree, and gives the references
// in it.
func (t *buildTree) take(s *source, r reference) ([]reference, error) {
	f, _ := s.at(r.path)
	switch f.kind {
	case isMissing:
		return nil, t.missing(r)
	case isSymlink:
		return nil, skip{fmt.Sprintf("%s is a symbolic link", r)}
	case isTooLarge:
		return nil, skip{fmt.Sprintf("%s has more than the %d MB that are read of one file", r, maxReadFile>>20)}
	case isOther:
		return nil, skip{fmt.Sprintf("%s is neither a file nor a directory", r)}
	case isDirectory:
		return t.takeDir(s, r)
	}
	return t.takeFile(r, f.content)
}

func (t *buildTree) takeFile(r reference, content []byte) ([]reference, error) {
	switch {
	case r.role == roleComponent || r.role == roleTarget:
		return nil, skip{fmt.Sprintf("%s is a file, where a directory is needed", r)}
	case r.root != "." && !strings.HasPrefix(r.path, r.root+"/"):
		return nil, skip{fmt.Sprintf("%s is not in or below %s: kustomize reads it only with --load-restrictor LoadRestrictionsNone", r, r.root)}
	}
	if err := aliasesBounded(r.path, content); err != nil {
		return nil, err
	}
	t.files[r.path] = content
	if parent := t.dirs[r.root]; parent != nil {
		parent.files = append(parent.files, r.path)
	}
	if r.role == rolePlugin {
		return pluginReferences(r.path, r.base, content)
	}
	return nil, nil
}

func (t *buildTree) missing(r reference) error {
	if r.role == roleTarget {
		return fmt.Errorf("%w: no such directory", ErrNoKustomization)
	}
	return skip{fmt.Sprintf("%s does not exist", r)}
}

// takeDir reads a directory's kustomization, and gives the references in it.
func (t *buildTree) takeDir(s *source, r reference) ([]reference, error) {
	if r.role == roleData {
		return nil, skip{fmt.Sprintf("%s is a directory, where a file is needed", r)}
	}
	if parent := t.dirs[r.root]; parent != nil && r.role != roleTarget {
		parent.children = append(parent.children, r.path)
	}
	if k := t.dirs[r.path]; k != nil {
		if r.role == rolePlugin {
			return pluginDirectory(r, k)
		}
		return nil, nil
	}
	k, err := t.kustomization(s, r)
	if err != nil {
		return nil, err
	}
	t.dirs[r.path] = k
	if r.role == rolePlugin {
		return pluginDirectory(r, k)
	}
	return references(k.file, r.path, &k.content)
}

// kustomization decodes a directory's one kustomization file exactly as
// kustomize does.
func (t *buildTree) kustomization(s *source, r reference) (*kustDir, error) {
	k := &kustDir{}
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(r.path, base)
		f, _ := s.at(name)
		switch f.kind {
		case isSymlink:
			return nil, skip{fmt.Sprintf("%s is a symbolic link", name)}
		case isTooLarge:
			return nil, skip{fmt.Sprintf("%s has more than the %d MB that are read of one file", name, maxReadFile>>20)}
		case isMissing, isDirectory, isOther:
			continue
		}
		if k.file != "" {
			return nil, broken{fmt.Errorf("%s has two kustomization files, %s and %s", r.path, path.Base(k.file), base)}
		}
		k.file, t.files[name] = name, f.content
	}
	if k.file == "" && r.role == roleTarget {
		return nil, fmt.Errorf("%w: the directory has none", ErrNoKustomization)
	}
	if k.file == "" {
		return nil, skip{fmt.Sprintf("%s has no kustomization file", r)}
	}
	if err := aliasesBounded(k.file, t.files[k.file]); err != nil {
		return nil, err
	}
	if err := k.content.Unmarshal(t.files[k.file]); err != nil {
		return nil, broken{fmt.Errorf("%s: %w", k.file, err)}
	}
	k.content.FixKustomization()
	if r.role == roleTarget && k.content.Kind == types.ComponentKind {
		return nil, errComponent
	}
	t.openAPI = t.openAPI || len(k.content.OpenAPI) > 0
	return k, nil
}

// errComponent is returned for a target that cannot be built alone.
var errComponent = errors.New("a Component is proven through the overlays that use it")

// brief is a value on one line, for a message.
func brief(s string) string {
	const most = 120
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}
