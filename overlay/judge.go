package overlay

import (
	"bytes"
	"errors"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// judge reads the result anew and refuses it unless it is the old document with
// only the wanted fields of the wanted entries changed: by its bytes, by kyaml
// (YAML 1.2) and by kustomize's own types (YAML 1.1). It shares no code with
// what made the change.
func judge(before *document, raw []byte, plans []plan) (*document, []string, error) {
	fail := func(err error) error {
		return fmt.Errorf("%s: %w: %w; edit the entry by hand", before.file, ErrUnsafe, err)
	}
	after, err := parse(before.file, raw)
	if err != nil {
		return nil, nil, fail(errors.New("the way in which it is written is unknown here, and the edit would break it"))
	}
	if err := fewLines(before, after, plans); err != nil {
		return nil, nil, fail(err)
	}
	if err := sameNodes(before, after, plans); err != nil {
		return nil, nil, fail(err)
	}
	warnings, err := sameTypes(before, after, plans)
	if err != nil {
		return nil, nil, fail(err)
	}
	return after, append(warnings, namesTwice(after)...), nil
}

// fewLines holds the bounds: cuts lie in their entry's lines, and an entry
// changes at most two lines, three with a new name. One that is added has its
// own, and those of the list where that was missing.
func fewLines(before, after *document, plans []plan) error {
	bound := 0
	for _, p := range plans {
		if len(p.cuts) == 0 {
			continue
		}
		switch {
		case p.added:
			bound += 9
			continue
		case p.set.Rename:
			bound += 3
		default:
			bound += 2
		}
		from, to := before.reach(before.items[p.index])
		for _, c := range p.cuts {
			if c.start < from || c.end > to {
				return errors.New("the edit reaches beyond the entry's lines")
			}
		}
	}
	if n := max(extraLines(after.raw, before.raw), extraLines(before.raw, after.raw)); n > bound {
		return fmt.Errorf("the edit changes %d lines, more than %d", n, bound)
	}
	return nil
}

// reach is the range of an entry's own lines: from the line break before its
// first to that behind its last.
func (d *document) reach(it item) (from, to int) {
	last := it.node.Line
	for _, n := range it.node.Content {
		last = max(last, n.Line)
	}
	from = d.lines[it.node.Line-1]
	if last < len(d.lines) {
		return from, d.lines[last]
	}
	return from, len(d.raw)
}

// extraLines counts the lines of a that b has not, or not as often.
func extraLines(a, b []byte) int {
	have := map[string]int{}
	for line := range bytes.Lines(b) {
		have[string(bytes.TrimRight(line, "\r\n"))]++
	}
	extra := 0
	for line := range bytes.Lines(a) {
		key := string(bytes.TrimRight(line, "\r\n"))
		if have[key]--; have[key] < 0 {
			extra++
		}
	}
	return extra
}

// sameNodes compares by kyaml: every key, value, order and anchor outside the
// written fields.
func sameNodes(before, after *document, plans []plan) error {
	was, is := others(before), others(after)
	if len(was) != len(is) {
		return errors.New("the edit would add or lose a top-level key")
	}
	for i := range was {
		if !same(was[i], is[i]) {
			return fmt.Errorf("the edit would change %s", was[i-i%2].Value)
		}
	}
	added := 0
	touched := map[int]plan{}
	for _, p := range plans {
		if p.added {
			added++
		}
		touched[p.index] = p
	}
	if len(after.items) != len(before.items)+added {
		return fmt.Errorf("the edit would leave %d entries, not %d", len(after.items), len(before.items)+added)
	}
	for i, it := range after.items {
		var old item
		if i < len(before.items) {
			old = before.items[i]
		}
		if err := sameItem(old, it, touched[i].writes); err != nil {
			return err
		}
	}
	return nil
}

// others is the top level without images, keys and values in turn.
func others(d *document) []*yaml.Node {
	var list []*yaml.Node
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		if d.root.Content[i] != d.key {
			list = append(list, d.root.Content[i], d.root.Content[i+1])
		}
	}
	return list
}

// sameItem demands the old fields in the old order, but for the written ones.
func sameItem(old, now item, writes []write) error {
	want := map[string]string{}
	for _, w := range writes {
		want[w.field] = w.value
	}
	if len(writes) == 0 {
		if !same(old.node, now.node) {
			return errors.New("the edit would change another entry")
		}
		return nil
	}
	for name, value := range want {
		f, ok := now.fields[name]
		if ok != (value != "") || ok && (f.value.Kind != yaml.ScalarNode || f.value.Value != value || f.value.Tag != "!!str") {
			return fmt.Errorf("the edit would not write %s as the text %q", name, value)
		}
	}
	if now.twice != nil || now.merge != nil || now.alias != nil {
		return errors.New("the edit would write a key twice")
	}
	kept, left := unwritten(old, want), unwritten(now, want)
	if len(kept) != len(left) {
		return errors.New("the edit would add or lose a field")
	}
	for i := range kept {
		if !same(kept[i], left[i]) {
			return errors.New("the edit would change another field of the entry")
		}
	}
	return nil
}

// unwritten is an entry without the written fields, keys and values in turn.
func unwritten(it item, want map[string]string) []*yaml.Node {
	var list []*yaml.Node
	if it.node == nil {
		return nil
	}
	for i := 0; i+1 < len(it.node.Content); i += 2 {
		key := it.node.Content[i]
		if f, ok := it.fields[foldKey(key.Value)]; ok && f.key == key {
			if _, written := want[foldKey(key.Value)]; written {
				continue
			}
		}
		list = append(list, key, it.node.Content[i+1])
	}
	return list
}

// same compares two nodes and all below. Aliases are compared by name: what they
// stand for is compared where it is anchored.
func same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Value != b.Value || a.Anchor != b.Anchor || a.Style != b.Style || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
