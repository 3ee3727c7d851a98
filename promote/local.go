package promote

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"tagboat/overlay"
)

// Edit is the first half of a promotion, on any tree of files: resolve, find, edit
// and prove. It writes nothing; what would be written is in the second answer.
func (p *Promoter) Edit(ctx context.Context, fsys fs.FS, q Request) (Result, overlay.Edited, error) {
	q.Repository = "." // a working tree needs no name
	if q.Prove == "" {
		q.Prove = overlay.ProveAuto
	}
	id, err := identify(q)
	if err != nil {
		return Result{Outcome: Failed}, overlay.Edited{}, err
	}
	res := Result{App: id.App, Environment: id.Environment, Outcome: Failed}
	r := &run{Promoter: p, q: q, id: id}
	entries, err := entriesOf(fsys, id.Paths)
	if err != nil {
		return res, overlay.Edited{}, err
	}
	if res.Images, err = p.resolve(ctx, q)(digests(entries)); err != nil {
		return res, overlay.Edited{}, err
	}
	for _, img := range res.Images {
		res.Warnings = append(res.Warnings, img.Warnings...)
	}
	sets, err := r.wanted(ctx, entries, res.Images)
	if err != nil {
		return res, overlay.Edited{}, err
	}
	edited, err := overlay.Edit(fsys, sets)
	if err != nil {
		return res, overlay.Edited{}, err
	}
	res.Changes, res.Warnings = edited.Changes, append(res.Warnings, edited.Warnings...)
	if len(edited.Files) == 0 {
		res.Outcome = UpToDate
		return res, edited, nil
	}
	if err := r.prove(ctx, fsys, edited, &res); err != nil {
		return res, overlay.Edited{}, err
	}
	res.Outcome, res.Diff = Planned, Diff(edited)
	return res, edited, nil
}

// unproven begins the warning of a proof that was skipped.
const unproven = "not proven: "

// prove builds the overlay before and after, unless it is no environment's own.
func (r *run) prove(ctx context.Context, fsys fs.FS, edited overlay.Edited, res *Result) error {
	if err := r.shared(fsys); err != nil {
		return err
	}
	if r.q.Prove != overlay.ProveOff {
		r.progress("building before and after")
	}
	var err error
	if res.Proof, err = overlay.Prove(ctx, fsys, slices.Concat(r.id.Paths, r.q.proveWith), edited, r.q.Prove, r.urls()...); err != nil {
		return err
	}
	res.Warnings = append(res.Warnings, res.Proof.Warnings...)
	if res.Proof.Status == overlay.Skipped {
		res.Warnings = append(res.Warnings, unproven+res.Proof.Reason)
	}
	return nil
}

// shared refuses a target that another environment builds too.
func (r *run) shared(fsys fs.FS) error {
	for _, dir := range r.id.Paths {
		shared, err := overlay.Shared(fsys, dir)
		if err != nil {
			return err
		}
		shared = slices.DeleteFunc(shared, func(other string) bool { return path.Base(other) == r.id.Environment })
		if len(shared) > 0 {
			return fmt.Errorf("%w: %s is also built by %s: set the image in the overlay of the one environment instead", overlay.ErrShared, dir, listed(shared))
		}
	}
	return nil
}

// urls are those of the config repository, as an Argo CD or Flux object in it may
// name it; none of a working tree.
func (r *run) urls() []string {
	if r.repo == nil || r.repo.About().Host == "" {
		return nil
	}
	return []string{r.repo.About().URL}
}
