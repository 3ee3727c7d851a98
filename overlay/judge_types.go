package overlay

import (
	"errors"
	"fmt"
	"reflect"

	"sigs.k8s.io/kustomize/api/types"
)

// sameTypes compares by kustomize's own types. A file that kustomize could not
// read before need not be readable after, but this is told.
func sameTypes(before, after *document, plans []plan) ([]string, error) {
	var was, is types.Kustomization
	errBefore, errAfter := was.Unmarshal(before.raw), is.Unmarshal(after.raw)
	switch {
	case errAfter != nil && errBefore == nil:
		return nil, fmt.Errorf("kustomize could no longer read the file: %w", errAfter)
	case errAfter != nil:
		return unreadableAfter(after, errAfter), nil
	}
	for _, p := range plans {
		if p.index >= len(is.Images) {
			return nil, errors.New("kustomize reads fewer entries than there are")
		}
		if got := valuesOf(is.Images[p.index]); len(p.writes) > 0 {
			for _, w := range p.writes {
				if got[w.field] != w.value {
					return nil, fmt.Errorf("kustomize would read %s as %q, not %q", w.key(), got[w.field], w.value)
				}
			}
		}
	}
	if errBefore != nil {
		return nil, nil
	}
	for _, p := range plans {
		if p.added {
			was.Images = append(was.Images, types.Image{})
		}
		if len(p.writes) > 0 {
			was.Images[p.index] = withWrites(was.Images[p.index], p.writes)
		}
	}
	if !reflect.DeepEqual(was, is) {
		return nil, errors.New("to kustomize the edit would change more than the image")
	}
	return nil, nil
}

// unreadableAfter names the values that stop kustomize, else gives its own words.
func unreadableAfter(d *document, err error) []string {
	var list []string
	for _, it := range d.items {
		for _, name := range []string{fieldName, fieldNewName, fieldNewTag, fieldDigest} {
			f, ok := it.fields[name]
			if !ok || !notString(f.value) {
				continue
			}
			list = append(list, fmt.Sprintf("%s:%d: %s %s is no string to kustomize, which cannot read the file; write a value in quotes", d.file, f.key.Line, f.key.Value, d.text(it, name)))
		}
	}
	if len(list) == 0 {
		list = append(list, fmt.Sprintf("%s: kustomize could not read the file before and cannot now: %v", d.file, err))
	}
	return list
}

// namesTwice tells of other entries that stand twice: kustomize applies both.
func namesTwice(d *document) []string {
	var list []string
	seen := map[string]int{}
	for _, it := range d.items {
		name := d.text(it, fieldName)
		if first := seen[name]; first > 0 {
			list = append(list, fmt.Sprintf("%s:%d: the name %s stands already on line %d; kustomize applies both entries", d.file, it.line(), name, first))
			continue
		}
		seen[name] = it.line()
	}
	return list
}

func valuesOf(i types.Image) map[string]string {
	return map[string]string{fieldName: i.Name, fieldNewName: i.NewName, fieldNewTag: i.NewTag, fieldDigest: i.Digest, fieldTagSuffix: i.TagSuffix}
}

func withWrites(i types.Image, writes []write) types.Image {
	for _, w := range writes {
		switch w.field {
		case fieldName:
			i.Name = w.value
		case fieldNewName:
			i.NewName = w.value
		case fieldNewTag:
			i.NewTag = w.value
		case fieldDigest:
			i.Digest = w.value
		}
	}
	return i
}
