package overlay

import (
	"bytes"
	"errors"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// judge reads the result anew and refuses it unless it is the old file with only
// the wanted fields of the wanted entries changed: by its bytes, by kyaml
// (YAML 1.2) and by kustomize's own types, or for an object as Kubernetes reads
// it (YAML 1.1). It shares no code with what made the change. It gives the lists
// as they are after the edit.
func judge(lists []*listEdit, raw []byte) ([]*document, []string, error) {
	first := lists[0].before
	fail := func(err error) error {
		return fmt.Errorf("%s: %w: %w; edit the entry by hand", first.file, ErrUnsafe, err)
	}
	afters, err := reread(lists, raw)
	if err != nil {
		return nil, nil, fail(errors.New("the way in which it is written is unknown here, and the edit would break it"))
	}
	if err := fewLines(lists, raw); err != nil {
		return nil, nil, fail(err)
	}
	if err := sameNodes(lists, afters); err != nil {
		return nil, nil, fail(err)
	}
	var warnings []string
	if first.object == "" {
		warnings, err = sameTypes(first, afters[0], lists[0].plans)
	} else {
		warnings, err = sameObjects(lists, afters)
	}
	if err != nil {
		return nil, nil, fail(err)
	}
	for _, after := range afters {
		warnings = append(warnings, namesTwice(after)...)
	}
	return afters, warnings, nil
}

// reread reads the lists of one file in other bytes of it, all at once: they
// share its nodes.
func reread(lists []*listEdit, raw []byte) ([]*document, error) {
	first := lists[0].before
	if first.object == "" {
		d, err := parse(first.file, raw)
		return []*document{d}, err
	}
	objects, err := objectsIn(first.file, "", raw)
	if err != nil {
		return nil, err
	}
	out := make([]*document, len(lists))
	for i, l := range lists {
		for _, o := range objects {
			for _, list := range o.lists {
				if list.at == l.before.at && list.object == l.before.object {
					list.target = l.before.target
					out[i] = list
				}
			}
		}
		if out[i] == nil {
			return nil, fmt.Errorf("%s: the images of %s are no longer where they were", first.file, l.before.object)
		}
	}
	return out, nil
}

// fewLines holds the bounds: cuts lie in their entry's lines, and an entry
// changes at most two lines, three with a new name. One that is added has its
// own, and those of the list where that was missing.
func fewLines(lists []*listEdit, raw []byte) error {
	bound := 0
	for _, l := range lists {
		for _, p := range l.plans {
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
			from, to := l.before.reach(l.before.items[p.index])
			for _, c := range p.cuts {
				if c.start < from || c.end > to {
					return errors.New("the edit reaches beyond the entry's lines")
				}
			}
		}
	}
	before := lists[0].before.raw
	if n := max(extraLines(raw, before), extraLines(before, raw)); n > bound {
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

// sameNodes compares by kyaml: every key, value, order and anchor of the file
// outside the written fields.
func sameNodes(lists []*listEdit, afters []*document) error {
	was, is := map[*yaml.Node]*yaml.Node{}, map[*yaml.Node]*yaml.Node{}
	for i, l := range lists {
		was[l.before.root], is[afters[i].root] = l.before.key, afters[i].key
	}
	docs, now := lists[0].before.docs, afters[0].docs
	if len(docs) != len(now) {
		return errors.New("the edit would add or lose a document")
	}
	for i := range docs {
		if err := sameTop(lacking(docs[i], was), lacking(now[i], is)); err != nil {
			return err
		}
	}
	for i, l := range lists {
		if err := sameItems(l, afters[i]); err != nil {
			return err
		}
	}
	return nil
}

// sameTop compares two documents, key by key at the top.
func sameTop(a, b *yaml.Node) error {
	if len(a.Content) == 0 || len(b.Content) == 0 || a.Content[0].Kind != yaml.MappingNode {
		if !same(a, b) {
			return errors.New("the edit would change another document")
		}
		return nil
	}
	was, is := a.Content[0].Content, b.Content[0].Content
	if len(was) != len(is) {
		return errors.New("the edit would add or lose a top-level key")
	}
	for i := range was {
		if !same(was[i], is[i]) {
			return fmt.Errorf("the edit would change %s", was[i-i%2].Value)
		}
	}
	return nil
}

// sameItems demands the old entries in the old order, but for what is written.
func sameItems(l *listEdit, after *document) error {
	before := l.before
	added := 0
	touched := map[int]plan{}
	for _, p := range l.plans {
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

// lacking is a copy of what lies below a node, where the mappings of keys lack
// the pair of that key.
func lacking(n *yaml.Node, keys map[*yaml.Node]*yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		return n
	}
	c := *n
	c.Content = nil
	for i := 0; i < len(n.Content); i++ {
		if key := keys[n]; key != nil && n.Content[i] == key {
			i++
			continue
		}
		c.Content = append(c.Content, lacking(n.Content[i], keys))
	}
	return &c
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
	if value, ok := want[fieldString]; ok {
		if now.alias != nil || now.node.Kind != yaml.ScalarNode || now.node.Value != value || now.node.Tag != "!!str" {
			return fmt.Errorf("the edit would not write the entry as the text %q", value)
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
