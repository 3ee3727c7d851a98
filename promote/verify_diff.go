package promote

import (
	"context"
	"fmt"
	"slices"

	"tagboat/image"
	"tagboat/record"
)

// diff demands that the head changes exactly what its trailers say, in the target's
// own files and entries, and gives the images that it promotes.
func (v *verifying) diff(ctx context.Context, t record.Trailers, rules *rules) (Gate, []image.Reference, error) {
	g := Gate{Name: "diff", Status: GateFailed}
	h := &head{exists: true, trailers: t}
	h.files, h.fork = v.base.repo.Files(ctx, v.pr.HeadCommit), v.base.repo.Files(ctx, v.changes.MergeBase)
	files := v.base.repo.Files(ctx, v.base.tip.Commit.SHA)
	var dirs []string
	for _, app := range rules.apps {
		found, err := v.config.Targets(files, app, rules.at.Environment, rules.at.Ring)
		if err != nil {
			return g, nil, err
		}
		dirs = append(dirs, found...)
	}
	for _, dir := range t.Paths {
		if !slices.Contains(dirs, dir) {
			g.Evidence = fmt.Sprintf("it changes %s, which is not in %s", dir, rules.at)
			return g, nil, nil
		}
	}
	same, err := sameChange(h, v.changes.Paths)
	if err != nil {
		return g, nil, err
	}
	if !same {
		g.Evidence = "it changes something else than its trailers say: commits of " + authors(foreignCommits(v.changes.Commits))
		return g, nil, nil
	}
	images, odd := v.imagesOf(t, rules)
	if odd != "" {
		g.Evidence = odd
		return g, nil, nil
	}
	g.Status, g.Evidence = GatePassed, "it changes what its trailers say, and nothing else"
	return g, images, nil
}

// imagesOf are the images that edits promote, as the build pushes them. An edit of
// an entry that is none of the app's images is named.
func (v *verifying) imagesOf(t record.Trailers, rules *rules) (images []image.Reference, odd string) {
	for _, e := range t.Edits {
		built, ok := v.builtOf(e, rules)
		if !ok {
			return nil, fmt.Sprintf("entry %s in %s is no image of %s", e.Entry, e.File, t.App)
		}
		ref := image.Reference{Repository: built, Tag: e.Image.Tag, Digest: e.Image.Digest}
		i := slices.IndexFunc(images, func(have image.Reference) bool { return have.Repository == built })
		if i < 0 {
			images = append(images, ref)
		} else if images[i].Digest != ref.Digest {
			return nil, fmt.Sprintf("it sets %s to two digests", built)
		}
	}
	return images, ""
}

// builtOf is the app's image that an edit is of, by where the build pushes it. An edit
// that writes the repository must write one of the image's own: where it is pushed, or
// where a source runs it from.
func (v *verifying) builtOf(e record.Edit, rules *rules) (string, bool) {
	for _, app := range rules.apps {
		for n, img := range v.config.Apps[app].Images {
			own := image.SameRepository(img.Repository, e.Image.Repository) || slices.ContainsFunc(rules.sources, func(s *source) bool {
				return s.app == app && image.SameRepository(s.images[n].Repository, e.Image.Repository)
			})
			named := img.Name != "" && img.Name == e.Entry || image.SameRepository(img.Repository, e.Entry)
			if own || named && !e.Rename && !e.Add {
				return img.Repository, true
			}
		}
	}
	return "", false
}
