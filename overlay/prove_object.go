package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
)

// objectBuild is the build of what an object points to, with its images.
type objectBuild struct {
	*proveBuild
	at      string // the directory
	was, is *document
}

// objectBuilds parts what is built for edited objects from the directories that
// are built as they are: those to prove with count only for objects where nothing
// else is edited.
func objectBuilds(dirs []string, e Edited, repository []string) (plain []string, objects []objectBuild, err error) {
	var targets, with []string
	edited := map[string]bool{}
	for _, c := range e.Changes {
		edited[path.Clean(c.Dir)] = true
		if file, _, ok := FileOf(c.Dir); ok && file == path.Clean(c.File) && !slices.Contains(targets, path.Clean(c.Dir)) {
			targets = append(targets, path.Clean(c.Dir))
		}
	}
	for _, dir := range dirs {
		if !slices.Contains(targets, dir) {
			plain = append(plain, dir)
		}
		if !edited[dir] {
			with = append(with, dir)
		}
	}
	if len(edited) == len(targets) {
		plain = nil
	}
	for _, t := range targets {
		builds, err := buildsOf(t, e, with, repository)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, builds...)
	}
	return plain, objects, nil
}

// buildsOf lists what is built for a target's lists of images.
func buildsOf(target string, e Edited, with, repository []string) ([]objectBuild, error) {
	file, name, _ := FileOf(target)
	at := slices.IndexFunc(e.Files, func(f File) bool { return f.Path == file })
	if at < 0 {
		return nil, fmt.Errorf("%s is changed, but its file is not among those edited", target)
	}
	befores, errBefore := parseObject(file, name, e.Files[at].Before)
	afters, errAfter := parseObject(file, name, e.Files[at].After)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return nil, err
	}
	var out []objectBuild
	for i, after := range afters {
		var of []int
		for n, c := range e.Changes {
			if path.Clean(c.Dir) == target && slices.ContainsFunc(after.items, func(it item) bool { return it.line() == c.Line }) {
				of = append(of, n)
			}
		}
		if len(of) == 0 || i >= len(befores) {
			continue
		}
		points := after.pointsTo(repository)
		dirs := []string{points.dir}
		if points.skip != "" && len(with) > 0 {
			dirs, points.skip = with, ""
		}
		for _, dir := range dirs {
			b := &proveBuild{dir: target, target: target, of: of, seen: map[int]bool{}, skipped: points.skip, assumed: points.assumed}
			out = append(out, objectBuild{b, dir, befores[i], after})
		}
	}
	return out, nil
}

// follow reads what is built, as it was and as it is after the edit.
func (o objectBuild) follow(ctx context.Context, s *source, after map[string][]byte) error {
	s = s.with(nil)
	if err := s.read(ctx, []ask{{o.at, guessDirectory}}); err != nil {
		return o.cannot(err)
	}
	if name := s.listedWith(o.at, ".argocd-source"); name != "" && o.is.strings {
		o.skipped = fmt.Sprintf("%s overrides what the object says of its source", path.Join(o.at, name))
		return nil
	}
	var err error
	if o.old, err = o.followSide(ctx, s, o.was); err != nil {
		return o.cannot(err)
	}
	if o.new, err = o.followSide(ctx, s.with(after), o.is); err != nil {
		return o.cannot(err)
	}
	return nil
}

// cannot keeps a reason not to build, and hands on what failed.
func (o objectBuild) cannot(err error) error {
	if notForAuto(err) {
		return err
	}
	o.skipped = err.Error()
	return nil
}

// followSide follows the directory with the object's images in its kustomization.
func (o objectBuild) followSide(ctx context.Context, s *source, d *document) (*buildTree, error) {
	if f, _ := s.at(o.at); f.kind == isMissing {
		return nil, skip{fmt.Sprintf("it points to %s, which is not in this repository", o.at)}
	}
	t := &buildTree{dir: o.at, files: map[string][]byte{}, dirs: map[string]*kustDir{}}
	k, err := t.kustomization(s, reference{from: d.file, field: "path", value: o.at, path: o.at, role: roleResource})
	if err != nil {
		return nil, err
	}
	if err := d.setIn(&k.content); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(k.content)
	if err != nil {
		return nil, skip{fmt.Sprintf("%s cannot be written with the images of %s: %v", k.file, d.object, err)}
	}
	trees, err := follow(ctx, s.with(map[string][]byte{k.file: raw}), []string{o.at})
	if err != nil {
		return nil, err
	}
	return trees[0], nil
}

// overrides are the keys of a Flux Kustomization's spec or an Argo CD source's
// kustomize that change what is built, beside images.
type overrides struct {
	Namespace       string        `yaml:"namespace"`
	TargetNamespace string        `yaml:"targetNamespace"`
	NamePrefix      string        `yaml:"namePrefix"`
	NameSuffix      string        `yaml:"nameSuffix"`
	Components      []string      `yaml:"components"`
	Patches         []types.Patch `yaml:"patches"`
}

// setIn writes an object's images, and what else it sets that may reach them,
// into a kustomization. An image takes the place of one of its name, as Flux
// (fluxcd/pkg, kustomize_generator.go) and `kustomize edit set image`, which Argo
// CD runs, have it; the latter also sorts them.
func (d *document) setIn(k *types.Kustomization) error {
	var o overrides
	if err := d.root.Decode(&o); err != nil {
		return skip{fmt.Sprintf("%s cannot be read: %v", d.object, err)}
	}
	for _, it := range d.items {
		image := types.Image{Name: d.text(it, fieldName), NewName: d.text(it, fieldNewName), NewTag: d.text(it, fieldNewTag), Digest: d.text(it, fieldDigest)}
		at := slices.IndexFunc(k.Images, func(i types.Image) bool { return i.Name == image.Name })
		if at < 0 {
			k.Images = append(k.Images, image)
			continue
		}
		if d.strings {
			image = keepStarred(image, k.Images[at])
		}
		k.Images[at] = image
	}
	if d.strings {
		slices.SortStableFunc(k.Images, func(a, b types.Image) int { return strings.Compare(a.Name, b.Name) })
	}
	k.Patches = append(k.Patches, o.Patches...)
	k.Components = append(k.Components, o.Components...)
	if o.NamePrefix != "" {
		k.NamePrefix = o.NamePrefix
	}
	if o.NameSuffix != "" {
		k.NameSuffix = o.NameSuffix
	}
	switch {
	case d.strings && o.Namespace != "":
		k.Namespace = o.Namespace
	case !d.strings && o.TargetNamespace != "":
		k.Namespace = o.TargetNamespace
	}
	return nil
}

// keepStarred keeps what an asterisk leaves to the kustomization.
func keepStarred(image, old types.Image) types.Image {
	for _, p := range []struct {
		to   *string
		from string
	}{{&image.NewName, old.NewName}, {&image.NewTag, old.NewTag}, {&image.Digest, old.Digest}} {
		if *p.to == "*" {
			*p.to = p.from
		}
	}
	return image
}
