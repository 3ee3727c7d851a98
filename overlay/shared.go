package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/types"
)

// sharedAtMost bounds the kustomizations that Shared reads in a round.
const sharedAtMost = 64

// environmentDirs are the names under which repositories keep their environments
// (research: the layouts of public config repositories).
func environmentDirs() []string { return []string{"overlays", "environments", "envs"} }

// sharedDirs are the names under which repositories keep what environments share.
func sharedDirs() []string { return []string{"base", "bases", "components", "common", "variants"} }

// Shared lists the other directories whose kustomization reaches dir's, directly
// or over one other, through resources, bases or components: a change in dir
// changes them too.
//
// It is a bounded look around, whose cost does not grow with the repository. It
// looks only when dir is a Component, or refers to nothing outside of itself and
// so may be a base; and only at dir's siblings, at the directories below
// overlays, environments and envs beside dir and beside its parent, and, where
// the parent is called base, bases, components, common or variants, at the
// parent's siblings. It takes three parallel rounds at most and reads at most 64
// kustomizations in each, named kustomization.yaml; what lies deeper, further
// off, or beyond that number is not found. A kustomization that cannot be decoded
// gives nothing, as Prove says what is wrong with it; a directory without one is
// ErrNoKustomization. A target that is a file is nobody's base: none.
func Shared(fsys fs.FS, dir string) ([]string, error) {
	if _, _, ok := FileOf(dir); ok {
		return nil, nil
	}
	dir, err := cleanDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for what shares it: %w", err)
	}
	s := newSource(fsys)
	if err := s.read(context.Background(), []ask{{dir, guessDirectory}}); err != nil {
		return nil, fmt.Errorf("look for what shares %s: %w", dir, err)
	}
	target := &buildTree{dir: dir, files: map[string][]byte{}, dirs: map[string]*kustDir{}}
	k, err := target.kustomization(s, reference{from: dir, field: "target", value: dir, path: dir, role: roleResource})
	switch {
	case errors.As(err, new(broken)):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for what shares %s: %w: %w", dir, ErrNoKustomization, err)
	}
	if dir == "." || !looksShared(k.content, dir) {
		return nil, nil
	}
	l := lookAround{fsys: fsys, reaches: map[string][]string{}}
	candidates, err := l.candidates(dir)
	if err == nil {
		err = l.readAll(candidates)
	}
	if err == nil {
		err = l.readAll(l.between(dir, candidates))
	}
	if err != nil {
		return nil, fmt.Errorf("look for what shares %s: %w", dir, err)
	}
	var out []string
	for _, c := range candidates {
		over := func(next string) bool { return slices.Contains(l.reaches[next], dir) }
		if slices.Contains(l.reaches[c], dir) || slices.ContainsFunc(l.reaches[c], over) {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out, nil
}

func looksShared(k types.Kustomization, dir string) bool {
	if k.Kind == types.ComponentKind {
		return true
	}
	return !slices.ContainsFunc(directories(k, dir), func(d string) bool { return !within(dir, d) })
}

// directories lists what a kustomization may build, files among it.
func directories(k types.Kustomization, dir string) []string {
	var out []string
	for _, r := range slices.Concat(k.Resources, k.Components) {
		if !remote(r) && !path.IsAbs(r) {
			out = append(out, path.Join(dir, r))
		}
	}
	return out
}

func within(dir, name string) bool {
	return dir == "." || name == dir || len(name) > len(dir) && name[:len(dir)+1] == dir+"/"
}

// lookAround is what Shared has read: what each directory's kustomization lists.
type lookAround struct {
	fsys fs.FS

	mu      sync.Mutex
	reaches map[string][]string
}

// candidates lists the directories to look at, the likeliest first, in one round.
func (l *lookAround) candidates(dir string) ([]string, error) {
	parent := path.Dir(dir)
	above := path.Dir(parent)
	var lists []string
	for _, at := range []string{parent, above} {
		for _, name := range environmentDirs() {
			lists = append(lists, path.Join(at, name))
		}
	}
	lists = append(lists, parent)
	if slices.Contains(sharedDirs(), path.Base(parent)) {
		lists = append(lists, above)
	}
	found := make([][]string, len(lists))
	g := new(errgroup.Group)
	for i, at := range lists {
		g.Go(func() (err error) { found[i], err = l.subdirectories(at); return err })
	}
	err := g.Wait()
	var out []string
	for _, d := range slices.Concat(found...) {
		if d != dir && !slices.Contains(out, d) && len(out) < sharedAtMost {
			out = append(out, d)
		}
	}
	return out, err
}

func (l *lookAround) subdirectories(dir string) ([]string, error) {
	entries, err := fs.ReadDir(l.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if info, statErr := fs.Stat(l.fsys, dir); err != nil && statErr == nil && !info.IsDir() {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' {
			out = append(out, path.Join(dir, e.Name()))
		}
	}
	return out, err
}

// between lists the directories that lie between a candidate and dir, perhaps.
func (l *lookAround) between(dir string, candidates []string) []string {
	var out []string
	for _, c := range candidates {
		for _, d := range l.reaches[c] {
			_, known := l.reaches[d]
			if !known && d != dir && path.Ext(d) == "" && !slices.Contains(out, d) && len(out) < sharedAtMost {
				out = append(out, d)
			}
		}
	}
	return out
}

// readAll reads the kustomizations of directories in one round. What has none, or
// one that kustomize would not accept, reaches nothing.
func (l *lookAround) readAll(dirs []string) error {
	g := new(errgroup.Group)
	for _, dir := range dirs {
		g.Go(func() error {
			content, err := fs.ReadFile(l.fsys, path.Join(dir, "kustomization.yaml"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			var k types.Kustomization
			if k.Unmarshal(content) != nil {
				k = types.Kustomization{}
			}
			k.FixKustomization()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.reaches[dir] = directories(k, dir)
			return nil
		})
	}
	return g.Wait()
}
