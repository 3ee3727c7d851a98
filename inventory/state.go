package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"tagboat/image"
	"tagboat/overlay"
)

// state is what ran at a commit, or why that cannot be said.
type state struct {
	images  []image.Reference
	problem error
}

// state reads what ran at a commit. That something is not there, not pinned or
// does not read is a state; that it could not be asked is an error.
func (w *walker) state(ctx context.Context, commit string) (state, error) {
	images, err := Running(w.Repo.Files(ctx, commit), w.Dirs, w.Images)
	switch {
	case err == nil:
		return state{images: images}, nil
	case errors.Is(err, ErrDisagree), errors.Is(err, fs.ErrNotExist), errors.Is(err, overlay.ErrNoEntry), errors.Is(err, overlay.ErrNoKustomization), errors.Is(err, overlay.ErrUnsafe):
		return state{problem: err}, nil
	}
	return state{}, fmt.Errorf("read what ran at %s: %w", short(commit), err)
}

// runs tells that a state runs the digests of images, whatever their tags.
func (s state) runs(images []image.Reference) bool {
	return s.problem == nil && slices.EqualFunc(s.images, images, func(a, b image.Reference) bool { return a.Digest == b.Digest })
}
