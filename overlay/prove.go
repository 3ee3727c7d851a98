package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/resmap"
)

// Prove builds each of dirs before and after an edit, in memory and in process,
// and demands that every difference is a wanted image reference, and that each
// change makes one: in its own directory's build where that is among dirs, else
// in any. Nothing is fetched and no process is started: a tree that would need
// it is not built.
//
// dirs are the edited targets and the overlays to prove with; none means the
// targets of e.Changes. An edited Component is proven by the overlays among dirs
// that use it. Of an edited object in a file, what is built is the directory that
// it points to, with its images (and what else it says that may reach them) set
// in the directory's kustomization, as Flux and Argo CD do; where it points to
// another repository, the other directories of dirs are built so in its stead.
//
// repository lists the URLs of this repository, by which an Argo CD repoURL or a
// Flux GitRepository is known to be it: the path of the URL counts, not the host,
// which has aliases. Without one a directory that is here is taken for the one
// meant: what it proves is told in a warning, and what it does not is a skip.
//
// The reads of fsys take the levels of bases + 1 parallel rounds, all directories
// at the same time.
//
// The Proof is Proven, Skipped (with the reason) or Off. Under ProveRequired a
// tree that cannot be built here, or was broken before, is ErrUnproven. In every
// mode but ProveOff: ErrNoEffect; ErrUnwanted, also where the edit breaks a build
// that worked; ErrNoKustomization; and whatever fsys or ctx failed with.
func Prove(ctx context.Context, fsys fs.FS, dirs []string, e Edited, mode Mode, repository ...string) (Proof, error) {
	if mode == ProveOff {
		return Proof{Status: Off}, nil
	}
	if len(e.Changes) == 0 {
		return Proof{Status: Skipped, Reason: "nothing is changed"}, nil
	}
	dirs, err := proveDirs(dirs, e)
	if err != nil {
		return Proof{}, fmt.Errorf("prove: %w", err)
	}
	builds, err := followBoth(ctx, fsys, dirs, e, repository)
	if err != nil {
		return Proof{}, fmt.Errorf("prove: %w", err)
	}
	for _, b := range builds {
		if err := b.judge(ctx, e.Changes); b.assumed != "" && (errors.Is(err, ErrUnwanted) || errors.Is(err, ErrNoKustomization)) {
			b.skipped = fmt.Sprintf("%s, and building %s says: %v", b.assumed, b.new.dir, err)
		} else if err != nil {
			return Proof{}, fmt.Errorf("prove %s: %w", b.dir, err)
		}
	}
	proof, err := conclude(builds, e.Changes)
	if err != nil {
		return Proof{}, fmt.Errorf("prove %w", err)
	}
	if proof.Status == Skipped && mode == ProveRequired {
		return Proof{}, fmt.Errorf("%w: %s (prove: auto goes on and says so)", ErrUnproven, proof.Reason)
	}
	return proof, nil
}

func proveDirs(dirs []string, e Edited) ([]string, error) {
	var out []string
	if len(dirs) == 0 {
		for _, c := range e.Changes {
			dirs = append(dirs, c.Dir)
		}
	}
	for _, d := range dirs {
		d, err := cleanDir(d)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out, nil
}

// proveBuild is one directory before and after the edit, and what that shows.
type proveBuild struct {
	dir           string // or the target that it is built for
	old, new      *buildTree
	before, after resmap.ResMap

	target  string // FILE or FILE#NAME of the object that it is built for; "" for a directory
	of      []int  // the changes of the object's list of images
	assumed string // what is taken for granted, where it may not be what the object points to

	skipped   string // why it is not proven
	component bool   // it cannot be built alone
	changed   []Rendered
	warnings  []string
	seen      map[int]bool // changes that it has shown
}

// followBoth follows every directory with the files as they were, and as they are
// after the edit, which reads again only what is new.
func followBoth(ctx context.Context, fsys fs.FS, dirs []string, e Edited, repository []string) ([]*proveBuild, error) {
	before, after := map[string][]byte{}, map[string][]byte{}
	for _, f := range e.Files {
		if f.Before != nil {
			before[f.Path] = f.Before
		}
		after[f.Path] = f.After
	}
	s := newSource(fsys).with(before)
	dirs, objects, err := objectBuilds(dirs, e, repository)
	if err != nil {
		return nil, err
	}
	var builds []*proveBuild
	var others errgroup.Group
	for _, o := range objects {
		builds = append(builds, o.proveBuild)
		if o.skipped == "" {
			others.Go(func() error { return o.follow(ctx, s, after) })
		}
	}
	plain, err := followDirs(ctx, s, dirs, after)
	if err := errors.Join(err, others.Wait()); err != nil {
		return nil, err
	}
	return append(plain, builds...), nil
}

func followDirs(ctx context.Context, s *source, dirs []string, after map[string][]byte) ([]*proveBuild, error) {
	olds, err := follow(ctx, s, dirs)
	if err != nil {
		return nil, err
	}
	news, err := follow(ctx, s.with(after), dirs)
	if err != nil {
		return nil, err
	}
	out := make([]*proveBuild, len(dirs))
	for i, dir := range dirs {
		out[i] = &proveBuild{dir: dir, old: olds[i], new: news[i], seen: map[int]bool{}}
	}
	return out, nil
}

// judge builds both sides and compares them. It fails where no mode may go on.
func (b *proveBuild) judge(ctx context.Context, changes []Change) error {
	if b.skipped != "" {
		return nil
	}
	if errors.Is(b.new.err, errComponent) {
		b.component, b.skipped = true, errComponent.Error()
		return nil
	}
	var errBefore, errAfter error
	if b.before, errBefore = build(ctx, b.old); notForAuto(errBefore) {
		return errBefore
	}
	if b.after, errAfter = build(ctx, b.new); notForAuto(errAfter) {
		return errAfter
	}
	var cannot skip
	switch {
	case errors.As(errBefore, &cannot), errors.As(errAfter, &cannot):
		b.skipped = cannot.reason
	case errBefore != nil && errAfter != nil:
		b.skipped = "was broken before: " + b.redact(errBefore)
	case errBefore != nil:
		b.skipped = "was broken before: " + b.redact(errBefore) + "; " + b.repaired(changes)
	case errAfter != nil:
		return fmt.Errorf("%w: it was built before the edit, and no longer is: %s", ErrUnwanted, b.redact(errAfter))
	default:
		return b.compare(ctx, changes)
	}
	return nil
}

// notForAuto says whether an error is neither a skip nor the tree's own fault.
func notForAuto(err error) bool {
	return err != nil && !errors.As(err, new(skip)) && !errors.As(err, new(broken))
}

// compare demands that every difference is a wanted one.
func (b *proveBuild) compare(ctx context.Context, changes []Change) error {
	unclear := map[int]bool{}
	for _, d := range compare(b.before, b.after) {
		by, runs := wanted(d, changes)
		if len(by) == 0 {
			return fmt.Errorf("%w: %s", ErrUnwanted, unwantedBecause(d, changes))
		}
		for _, i := range by {
			b.seen[i] = b.seen[i] || runs && len(by) == 1
			unclear[i] = unclear[i] || runs && len(by) > 1
		}
		b.changed = append(b.changed, Rendered{Dir: b.dir, Object: d.object, Field: d.field, Container: d.container, From: d.old, To: d.new})
		if repository := repositoryOf(d.new); strings.Contains(d.new, "@") && repository != changes[by[0]].To.Repository {
			b.warnings = append(b.warnings, fmt.Sprintf("%s: %s %s runs from %s: a later transformer writes another repository, which must hold the same digest", b.dir, d.object, d.field, repository))
		}
	}
	b.warnings = append(b.warnings, b.alsoMatched(changes)...)
	return b.attribute(ctx, changes, unclear)
}

// repaired says what a build runs that the edit made possible.
func (b *proveBuild) repaired(changes []Change) string {
	var runs []string
	for _, p := range placed(b.after) {
		if slices.ContainsFunc(changes, func(c Change) bool { return p.value == c.To.String() || p.value == pinned(c.To) }) {
			runs = append(runs, p.String())
		}
	}
	if len(runs) == 0 {
		return "the edit repairs it, and what was edited matches nothing that runs"
	}
	return "the edit repairs it, and it runs " + shorten(runs)
}

// conclude makes one proof of all builds: a change must be seen in its own
// target's builds, or else in any; a Component's only elsewhere.
func conclude(builds []*proveBuild, changes []Change) (Proof, error) {
	p := Proof{Status: Proven}
	var reasons []string
	for _, b := range builds {
		p.Changed = append(p.Changed, b.changed...)
		p.Warnings = append(p.Warnings, b.warnings...)
		if b.skipped != "" && !b.component {
			reasons = append(reasons, b.dir+": "+b.skipped)
		}
		if b.assumed != "" && len(b.changed) > 0 {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s: proven by building %s: %s", b.dir, b.new.dir, b.assumed))
		}
	}
	for i, c := range changes {
		why, err := concludeOne(builds, i, c, len(reasons) > 0)
		if err != nil {
			return Proof{}, err
		}
		if why != "" {
			reasons = append(reasons, why)
		}
	}
	if len(reasons) > 0 {
		p.Status, p.Reason = Skipped, strings.Join(reasons, "; ")
	}
	return p, nil
}

// concludeOne says why a change is not proven, where no build shows it; with an
// error where one should.
func concludeOne(builds []*proveBuild, i int, c Change, skipped bool) (string, error) {
	var own, plain *proveBuild
	shown, shownInOwn := false, false
	for _, b := range builds {
		shown = shown || b.seen[i]
		switch {
		case b.skipped != "":
		case b.isOf(i, c):
			own, shownInOwn = b, shownInOwn || b.seen[i]
		case b.target == "":
			plain = cmp.Or(plain, b)
		}
	}
	switch {
	case own != nil && shownInOwn, own == nil && shown:
		return "", nil
	case own != nil && own.assumed != "":
		return fmt.Sprintf("%s: %s, and the edit changes nothing in %s", c.Dir, own.assumed, own.new.dir), nil
	case own != nil:
		return "", own.noEffect(c)
	case skipped:
		return "", nil
	case plain != nil:
		return "", plain.noEffect(c)
	}
	return c.Dir + ": " + errComponent.Error(), nil
}

// isOf says whether a build is the change's own.
func (b *proveBuild) isOf(i int, c Change) bool {
	if b.target != "" {
		return slices.Contains(b.of, i)
	}
	return b.dir == path.Clean(c.Dir)
}

// layer is the directory in a build whose kustomization has a change's entry.
func (b *proveBuild) layer(c Change) string {
	if b.target != "" && b.target == path.Clean(c.Dir) {
		return b.new.dir
	}
	return path.Clean(c.Dir)
}
