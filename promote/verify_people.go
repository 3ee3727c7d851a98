package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/record"
	"tagboat/registry"
	"tagboat/scm"
)

// members are the apps that a name of a promotion stands for: an app, or a group.
func (o *order) members(name string) []string {
	if _, ok := o.config.Apps[name]; ok {
		return []string{name}
	}
	var apps []string
	for _, app := range o.config.AppNames() {
		if o.config.Apps[app].Group == name {
			apps = append(apps, app)
		}
	}
	return apps
}

// askPeople finds who stands behind the pull request as it is now: its author, and
// who has approved the head commit or another with the same edits. Approvals that
// were for other edits are kept apart. t is zero where it is no promotion.
func (v *verifying) askPeople(ctx context.Context, t record.Trailers) error {
	v.backers = []string{v.pr.Author}
	evidence, ok := v.base.repo.(scm.Evidence)
	if !ok {
		return fmt.Errorf("%w: a %s repository has neither approvals nor statuses", ErrCannotAsk, v.base.repo.About().Forge)
	}
	list, err := evidence.Approvals(ctx, v.pr)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Dismissed {
			continue
		}
		current := !a.Stale
		if !current && a.Commit != "" && t.App != "" {
			if current, err = v.sameEdits(ctx, a.Commit, t); err != nil {
				return err
			}
		}
		if current {
			v.backers = append(v.backers, a.User)
		} else {
			v.stale = append(v.stale, a.User)
		}
	}
	return nil
}

// sameEdits says whether an earlier head proposed the same: "Update branch" makes a
// new head, and no new promotion. What that head changed must have been just what its
// trailers say: who approved something else has not seen it.
func (v *verifying) sameEdits(ctx context.Context, commit string, t record.Trailers) (bool, error) {
	changes, err := v.base.repo.Changes(ctx, v.base.tip.Commit.SHA, commit)
	if notThere(err) || errors.Is(err, scm.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	was, ok := newestTrailers(changes.Commits)
	if !ok || saysOf(was) != saysOf(t) {
		return false, nil
	}
	h := &head{exists: true, trailers: was}
	h.files, h.fork = v.base.repo.Files(ctx, commit), v.base.repo.Files(ctx, changes.MergeBase)
	return sameChange(h, changes.Paths)
}

// saysOf is all that trailers ask to be approved: not whose job it was.
func saysOf(t record.Trailers) string {
	t.Revision, t.Requester = "", ""
	return t.String()
}

// renewed demands that approvals which stand were given to what is proposed now.
func (v *verifying) renewed() []Gate {
	if len(v.stale) == 0 {
		return nil
	}
	return []Gate{{
		Name: "renewed approvals", Status: GateFailed, Link: v.pr.URL,
		Evidence: "approved for another commit by " + strings.Join(v.stale, ", ") + ": approve again, or dismiss that",
	}}
}

// rolledBack finds in the target's own history that the images ran there before;
// nil where they did not.
func (v *verifying) rolledBack(ctx context.Context, r *rules, images []image.Reference) (*back, error) {
	if len(r.apps) != 1 {
		return nil, nil
	}
	t, tip, err := v.line(ctx, r.apps[0], r.at)
	if err != nil {
		return nil, err
	}
	var found back
	first := true
	for a, err := range inventory.History(ctx, t, tip) {
		if errors.Is(err, inventory.ErrTooLong) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if first {
			found.was, first = a, false
		}
		if a.Problem == nil && len(a.Images) > 0 && ranAll(t, a, images) {
			found.to = a
			return &found, nil
		}
	}
	return nil, nil
}

func ranAll(t inventory.Target, a inventory.Arrival, images []image.Reference) bool {
	return !slices.ContainsFunc(images, func(ref image.Reference) bool {
		return !slices.ContainsFunc(t.Images, func(img config.Image) bool {
			n := slices.Index(t.Images, img)
			return image.SameRepository(img.Repository, ref.Repository) && a.Images[n].Digest == ref.Digest
		})
	})
}

func (v *verifying) havePlatforms(ctx context.Context, want []string, images []image.Reference) (Gate, error) {
	queries := make([]registry.Query, len(images))
	for i, ref := range images {
		queries[i] = registry.Query{Reference: image.Reference{Repository: ref.Repository, Digest: ref.Digest}, Platforms: want}
	}
	_, errs := v.Registry.ResolveAll(ctx, queries)
	g := Gate{Name: "platforms", Status: GatePassed, Evidence: strings.Join(want, ", ")}
	for _, err := range errs {
		switch {
		case errors.Is(err, registry.ErrPlatform), errors.Is(err, registry.ErrNotFound), errors.Is(err, registry.ErrNotImage):
			g.Status, g.Evidence = GateFailed, err.Error()
		case err != nil:
			return g, err
		}
	}
	return g, nil
}
