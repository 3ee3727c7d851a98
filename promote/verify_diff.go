package promote

import (
	"context"
	"fmt"
	"slices"

	"tagboat/image"
	"tagboat/overlay"
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
	entries, err := entriesOf(h.fork, t.Paths)
	if err != nil {
		return g, nil, err
	}
	images, odd := v.imagesOf(t, entries, rules)
	if odd != "" {
		g.Evidence = odd
		return g, nil, nil
	}
	g.Status, g.Evidence = GatePassed, "it changes what its trailers say, and nothing else"
	return g, images, nil
}

// imagesOf are the images that edits promote, as the build pushes them. An edit of
// an entry that is none of the app's images is named. entries are those before it.
func (v *verifying) imagesOf(t record.Trailers, entries []overlay.Entry, rules *rules) (images []image.Reference, odd string) {
	for _, e := range t.Edits {
		built, ok := v.builtOf(e, entries, rules)
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

// builtOf is the app's image that an edit is of, by where the build pushes it. The
// entry must be the one that tagboat.yaml names, else one that has the image's
// repository: where it is pushed, or where a source runs it from. An edit that writes
// the repository must write one of these.
func (v *verifying) builtOf(e record.Edit, entries []overlay.Entry, rules *rules) (string, bool) {
	for _, app := range rules.apps {
		for n, img := range v.config.Apps[app].Images {
			own := func(repository string) bool {
				return image.SameRepository(img.Repository, repository) || slices.ContainsFunc(rules.sources, func(s *source) bool {
					return s.app == app && image.SameRepository(s.images[n].Repository, repository)
				})
			}
			is := img.Name == e.Entry
			if img.Name == "" {
				is = own(e.Entry) || slices.ContainsFunc(entries, func(o overlay.Entry) bool {
					return o.File == e.File && o.Name == e.Entry && own(o.Runs().Repository)
				})
			}
			if is && (own(e.Image.Repository) || !e.Rename && !e.Add) {
				return img.Repository, true
			}
		}
	}
	return "", false
}
