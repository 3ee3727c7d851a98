package overlay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
)

// attribute finds out which of the changes have an effect that the builds alone
// do not tell apart, because several entries are to run the same reference (web
// and worker of one image): it builds once more, with another digest for each.
func (b *proveBuild) attribute(ctx context.Context, changes []Change, unclear map[int]bool) error {
	marks := map[int]string{}
	marked := *b.new
	marked.files = maps.Clone(b.new.files)
	for _, i := range slices.Sorted(maps.Keys(unclear)) {
		if !unclear[i] || b.seen[i] {
			continue
		}
		if b.target != "" && !b.isOf(i, changes[i]) && b.layer(changes[i]) == b.new.dir {
			continue // an edit of the directory itself, in which the object's images now stand
		}
		marks[i] = fmt.Sprintf("sha256:%064x", i)
		if !marked.mark(b.layer(changes[i]), changes[i].Entry, marks[i]) {
			b.seen[i] = true // of a directory that is not built here: what is seen counts for it
		}
	}
	if len(marks) == 0 {
		return nil
	}
	built, err := build(ctx, &marked)
	if err != nil {
		return fmt.Errorf("tell apart the entries that run one image: %w", err)
	}
	for _, p := range placed(built) {
		for i, mark := range marks {
			b.seen[i] = b.seen[i] || strings.HasSuffix(p.value, mark)
		}
	}
	return nil
}

// mark gives an entry another digest, in a copy of its kustomization that is
// written as JSON from what kustomize has decoded.
func (t *buildTree) mark(dir, entry, digest string) bool {
	k := t.dirs[dir]
	if k == nil {
		return false
	}
	var content types.Kustomization
	if err := content.Unmarshal(t.files[k.file]); err != nil {
		return false
	}
	content.FixKustomization()
	found := false
	for i := range content.Images {
		if content.Images[i].Name == entry {
			content.Images[i].Digest = digest
			content.Images[i].NewTag, _, _ = strings.Cut(content.Images[i].NewTag, "@")
			found = true
		}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return false
	}
	t.files[k.file] = raw
	return found
}
