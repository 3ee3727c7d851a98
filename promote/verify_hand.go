package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/image"
	"tagboat/overlay"
	"tagboat/scm"
)

// byHand checks a pull request that is no promotion: it may change anything but the
// images of an environment that has rules.
func (v *verifying) byHand(ctx context.Context) ([]Gate, error) {
	var gates []Gate
	for _, e := range v.config.Environments {
		repo, err := v.repository(ctx, e)
		if err != nil {
			return nil, err
		}
		if repo != v.base.repo || e.Branch != "" && e.Branch != v.pr.Base {
			continue
		}
		for _, app := range v.config.AppNames() {
			changed, policy, err := v.appByHand(ctx, app, e)
			if err != nil {
				return nil, err
			}
			if changed == "" {
				continue
			}
			g, err := v.hand(ctx, e.Name, changed, policy)
			if err != nil {
				return nil, err
			}
			gates = append(gates, g)
		}
	}
	return gates, nil
}

// hand is the gate of images that are changed by hand: an overrider may let it pass
// by approving it.
func (v *verifying) hand(ctx context.Context, environment, changed string, policy config.Policy) (Gate, error) {
	g := Gate{Name: "by hand", Status: GateFailed, Link: v.pr.URL}
	g.Evidence = fmt.Sprintf("it changes %s, which is promoted under rules: use tagboat promote, or let an overrider of %s approve it", changed, environment)
	for _, login := range v.backers {
		is, err := v.among(ctx, login, policy.Overriders, "overriders")
		if err != nil {
			return g, err
		}
		if is {
			g.Status, g.Evidence = GateOverridden, fmt.Sprintf("it changes %s; %s stands behind it", changed, login)
		}
	}
	return g, nil
}

// appByHand names an app's entry that is changed in an environment with rules; "" for
// none.
func (v *verifying) appByHand(ctx context.Context, app string, e config.Environment) (changed string, policy config.Policy, err error) {
	if !v.config.Apps[app].In(e.Name) {
		return "", policy, nil
	}
	if policy, err = v.config.Policy(app, e.Name); err != nil || !governed(policy, e) {
		return "", policy, err
	}
	dirs, err := v.config.Targets(v.base.repo.Files(ctx, v.base.tip.Commit.SHA), app, e.Name, "")
	if err != nil && !errors.Is(err, config.ErrNoTarget) {
		return "", policy, err
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool {
		return !slices.ContainsFunc(v.changes.Paths, func(p string) bool { return overlay.Holds(dir, p) })
	})
	before, after := v.base.repo.Files(ctx, v.changes.MergeBase), v.base.repo.Files(ctx, v.pr.HeadCommit)
	for _, dir := range dirs {
		if changed, err = changedEntry(before, after, dir, v.config.Apps[app].Images); err != nil || changed != "" {
			return changed, policy, err
		}
	}
	return "", policy, nil
}

// governed says whether an environment has rules that a change by hand goes around.
func governed(p config.Policy, e config.Environment) bool {
	g := p.Gates
	return e.From != nil || g.Soak > 0 || len(g.Checks) > 0 || g.Approvals > 0 || len(g.Platforms) > 0 || len(p.Freeze) > 0 || len(p.Promoters) > 0
}

// changedEntry names an entry of an app's images that runs something else after a
// change. A target that cannot be read afterwards is named whole.
func changedEntry(before, after fs.FS, dir string, images []config.Image) (string, error) {
	was, err := entriesOf(before, []string{dir})
	if passing(err) || errors.Is(err, scm.ErrDenied) {
		return "", err
	}
	if err != nil {
		return "", nil // there was nothing to promote to
	}
	is, err := entriesOf(after, []string{dir})
	if passing(err) || errors.Is(err, scm.ErrDenied) {
		return "", err
	}
	if err != nil {
		return dir, nil
	}
	names := namesOf(slices.Concat(was, is), images)
	foreign := func(e overlay.Entry) bool { return !slices.ContainsFunc(names, e.May) && !ofAny(e, images) }
	was, is = slices.DeleteFunc(was, foreign), slices.DeleteFunc(is, foreign)
	key := func(e overlay.Entry) string { return strings.Join([]string{e.Name, e.Runs().String()}, "\x00") }
	for _, pair := range [][2][]overlay.Entry{{was, is}, {is, was}} {
		for _, e := range pair[0] {
			if !slices.ContainsFunc(pair[1], func(o overlay.Entry) bool { return key(o) == key(e) }) {
				return fmt.Sprintf("entry %s in %s", e.Name, e.File), nil
			}
		}
	}
	return "", nil
}

// namesOf are the names that an app's images may have while kustomize goes through
// entries: each that names one may change it.
func namesOf(entries []overlay.Entry, images []config.Image) []string {
	var names []string
	for _, img := range images {
		names = append(names, img.Name, img.Repository)
	}
	for _, e := range entries {
		if ofAny(e, images) {
			names = append(names, e.Name, e.Runs().Repository)
		}
	}
	return names
}

// ofAny says whether an entry is one of an app's images.
func ofAny(e overlay.Entry, images []config.Image) bool {
	return slices.ContainsFunc(images, func(img config.Image) bool {
		return img.Name != "" && img.Name == e.Name || image.SameRepository(e.Name, img.Repository) || image.SameRepository(e.Runs().Repository, img.Repository)
	})
}
