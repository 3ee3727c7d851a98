package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tagboat/image"
	"tagboat/overlay"
)

// The bounds of a search: each directory is a call to the forge.
const (
	searchDepth    = 6   // elements of an overlay's path
	searchDirs     = 300 // directories that are listed
	searchOverlays = 60  // overlays that are read
	searchAtOnce   = 16
)

// Search finds the overlay of an environment where nobody names it: the one
// directory with a kustomization that has an entry for every image, and in whose
// path one element is the environment's name as it is written. Part of an element is
// not enough, for "non-production" has "production" in it; such directories are named
// in the error, as are several that would do. Both are ErrMisused, with --path as the
// next step.
//
// Directories are listed level by level from the top, at most 300 and down to six
// levels; hidden ones, vendor and node_modules are left out, and no symlink is
// followed. Beyond the bounds nothing can be said to be the only one: an error.
func Search(ctx context.Context, files fs.FS, environment string, images []image.Reference) (dir string, err error) {
	s := &search{files: files, environment: environment, images: images}
	if err := s.walk(ctx); err != nil {
		return "", err
	}
	if err := s.look(ctx); err != nil {
		return "", err
	}
	if s.more == "" && len(s.found) == 1 {
		return s.found[0], nil
	}
	return "", fmt.Errorf("%w: %s", ErrMisused, s.failure())
}

// search is a search in the making. Its lists are in the order of paths.
type search struct {
	files       fs.FS
	environment string
	images      []image.Reference

	overlays []string // with the word in their path and a kustomization
	near     []string // with the word in a part of an element, and a kustomization
	found    []string // overlays that carry the images
	others   []string // those that do not, with the reason
	listed   int
	more     string // which bound was met
}

// walk lists directories level by level.
func (s *search) walk(ctx context.Context) error {
	level := []string{"."}
	for depth := 0; len(level) > 0 && depth <= searchDepth; depth++ {
		if s.listed+len(level) > searchDirs {
			s.more = fmt.Sprintf("the repository has more than %d directories", searchDirs)
			level = level[:searchDirs-s.listed]
		}
		s.listed += len(level)
		lists := make([][]fs.DirEntry, len(level))
		err := s.each(ctx, level, func(i int, dir string) (err error) {
			lists[i], err = fs.ReadDir(s.files, dir)
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a repository without files has no top either
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("look for the overlay of %s: %w", s.environment, err)
		}
		var below []string
		for i, dir := range level {
			s.note(dir, lists[i])
			below = append(below, subdirectories(dir, lists[i])...)
		}
		level = below
		if s.more != "" {
			break
		}
	}
	slices.Sort(s.overlays)
	slices.Sort(s.near)
	return nil
}

// each calls for every item, some at the same time.
func (s *search) each(ctx context.Context, items []string, do func(i int, item string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(searchAtOnce)
	for i, item := range items {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return do(i, item)
		})
	}
	return group.Wait()
}

func subdirectories(dir string, list []fs.DirEntry) []string {
	var out []string
	for _, e := range list {
		if name := e.Name(); e.IsDir() && !strings.HasPrefix(name, ".") && name != "vendor" && name != "node_modules" {
			out = append(out, path.Join(dir, name))
		}
	}
	return out
}

// note keeps a directory with a kustomization and the word.
func (s *search) note(dir string, list []fs.DirEntry) {
	if !slices.ContainsFunc(list, isKustomization) {
		return
	}
	elements := strings.Split(dir, "/")
	switch {
	case slices.Contains(elements, s.environment):
		s.overlays = append(s.overlays, dir)
	case slices.ContainsFunc(elements, s.partly):
		s.near = append(s.near, dir)
	}
}

func isKustomization(e fs.DirEntry) bool {
	return e.Type().IsRegular() && slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, e.Name())
}

// partly says whether the word is a part of a path's element, in any case.
func (s *search) partly(element string) bool {
	parts := strings.FieldsFunc(element, func(c rune) bool { return c == '-' || c == '_' || c == '.' })
	return strings.EqualFold(element, s.environment) ||
		slices.ContainsFunc(parts, func(part string) bool { return strings.EqualFold(part, s.environment) })
}

// look reads the overlays' entries.
func (s *search) look(ctx context.Context) error {
	if len(s.overlays) > searchOverlays {
		s.more = fmt.Sprintf("more than %d overlays have %s in their path", searchOverlays, s.environment)
		s.overlays = s.overlays[:searchOverlays]
	}
	missing := make([]string, len(s.overlays))
	err := s.each(ctx, s.overlays, func(i int, dir string) error {
		entries, err := overlay.Entries(s.files, dir)
		switch {
		case errors.Is(err, overlay.ErrUnsafe), errors.Is(err, overlay.ErrNoKustomization):
			missing[i] = oneLine(cut(err.Error(), 200))
			return nil
		case err != nil:
			return err
		}
		missing[i] = s.missing(dir, entries)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for the overlay of %s: %w", s.environment, err)
	}
	for i, dir := range s.overlays {
		if missing[i] == "" {
			s.found = append(s.found, dir)
		} else {
			s.others = append(s.others, fmt.Sprintf("%s (%s)", oneLine(dir), missing[i]))
		}
	}
	return nil
}

// missing says which image an overlay does not carry, or "".
func (s *search) missing(dir string, entries []overlay.Entry) string {
	for _, ref := range s.images {
		if _, err := overlay.Pick(entries, overlay.Want{Dir: dir, Repository: ref.Repository}); err != nil {
			return "no entry for " + ref.Repository
		}
	}
	return ""
}

// failure says why there is not one overlay.
func (s *search) failure() string {
	var b strings.Builder
	var names []string
	for _, ref := range s.images {
		names = append(names, ref.Repository)
	}
	switch {
	case len(s.found) > 1:
		fmt.Fprintf(&b, "%d overlays have %s in their path and an entry for %s: %s", len(s.found), s.environment, listed(names), ten(s.found))
	case len(s.found) == 1:
		fmt.Fprintf(&b, "%s has an entry for %s, but may not be the only one", oneLine(s.found[0]), listed(names))
	default:
		fmt.Fprintf(&b, "no overlay with %s as an element of its path has an entry for %s", s.environment, listed(names))
	}
	if s.more != "" {
		fmt.Fprintf(&b, "; not all were looked at: %s", s.more)
	}
	if len(s.found) == 0 && len(s.others) > 0 {
		fmt.Fprintf(&b, "; there is %s", ten(s.others))
	}
	if len(s.found) == 0 && len(s.near) > 0 {
		fmt.Fprintf(&b, "; with %s in a part of an element: %s", s.environment, ten(s.near))
	}
	b.WriteString(": name the overlay with --path")
	return b.String()
}

// ten names at most ten, on one line.
func ten(names []string) string {
	var out []string
	for _, name := range names[:min(len(names), 10)] {
		out = append(out, oneLine(cut(name, 300)))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}
