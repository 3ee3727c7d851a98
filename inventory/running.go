package inventory

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tagboat/config"
	"tagboat/image"
	"tagboat/overlay"
)

// Running reads what directories run of images, in the order of images: all
// entries of all directories must agree on one pinned digest of each. What does
// not is ErrDisagree and names file, line and reference of each; what is not
// there or does not read is an error of overlay.
func Running(files fs.FS, dirs []string, images []config.Image) ([]image.Reference, error) {
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%w: no directory is given", ErrDisagree)
	}
	entries, err := entriesOf(files, dirs)
	if err != nil {
		return nil, err
	}
	var running []image.Reference
	for _, img := range images {
		found, err := picked(entries, img)
		if err != nil {
			return nil, err
		}
		ref, err := agreed(found)
		if err != nil {
			return nil, err
		}
		running = append(running, ref)
	}
	return running, nil
}

// entriesOf reads the entries of each directory, side by side.
func entriesOf(files fs.FS, dirs []string) ([][]overlay.Entry, error) {
	found := make([][]overlay.Entry, len(dirs))
	var group errgroup.Group
	for i, dir := range dirs {
		group.Go(func() (err error) {
			found[i], err = overlay.Entries(files, dir)
			return err
		})
	}
	return found, group.Wait()
}

// picked are the entries of an image, at least one of each directory.
func picked(entries [][]overlay.Entry, img config.Image) ([]overlay.Entry, error) {
	var all []overlay.Entry
	for _, here := range entries {
		found, err := overlay.Pick(here, overlay.Want{Repository: img.Repository, Name: img.Name})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// agreed is the one reference that all entries run.
func agreed(found []overlay.Entry) (image.Reference, error) {
	first := found[0].Runs()
	var said []string
	for _, e := range found {
		ref := e.Runs()
		if ref.Digest == "" {
			return ref, &UnpinnedError{File: e.File, Line: e.Line, Image: ref}
		}
		said = append(said, fmt.Sprintf("%s:%d %s", e.File, e.Line, ref))
	}
	if slices.ContainsFunc(found, func(e overlay.Entry) bool { return e.Runs().Digest != first.Digest }) {
		return first, fmt.Errorf("%w: the entries disagree: %s", ErrDisagree, strings.Join(said, "; "))
	}
	return first, nil
}

// UnpinnedError is the ErrUnpinned of one entry.
type UnpinnedError struct {
	File  string
	Line  int
	Image image.Reference // without a digest
}

func (e *UnpinnedError) Error() string {
	return fmt.Sprintf("%v: %s:%d runs %s", ErrUnpinned, e.File, e.Line, e.Image)
}

func (e *UnpinnedError) Unwrap() error { return ErrUnpinned }
