package overlay

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// item is one element of the images list.
type item struct {
	node   *yaml.Node       // the mapping; that of the anchor where the element is an alias
	alias  *yaml.Node       // the element, where it is an alias
	merge  *yaml.Node       // the merge key, where there is one
	twice  *yaml.Node       // a key that stands there already
	fields map[string]field // by lower-case key: kustomize reads keys in any case
	image  *imageString     // of a list of strings
}

// field is one key and its value.
type field struct{ key, value *yaml.Node }

// The keys of an entry, as item.fields has them, and as they are written.
const (
	fieldName      = "name"
	fieldNewName   = "newname"
	fieldNewTag    = "newtag"
	fieldDigest    = "digest"
	fieldTagSuffix = "tagsuffix"
	fieldString    = "string" // no key: the whole of an item that is a string
)

func readItem(n *yaml.Node) item {
	it := item{node: n, fields: map[string]field{}}
	if n.Kind == yaml.AliasNode {
		it.node, it.alias = n.Alias, n
	}
	if it.node.Kind == yaml.MappingNode {
		it.read(it.node, map[*yaml.Node]bool{})
	}
	return it
}

// stringItem reads an item of a list of strings. What is no string ({{image}} is
// a map) is named by its source text.
func (d *document) stringItem(it item) item {
	image := imageString{name: strings.TrimSpace(string(d.raw[d.offset(it.node):d.lineEnd(it.node.Line)]))}
	if it.node.Kind == yaml.ScalarNode {
		image = parseImageString(it.node.Value)
	}
	it.image = &image
	return it
}

// read takes the fields of a mapping. An own field wins over a merged one. A
// mapping is taken once: a merge may lead back to itself.
func (it *item) read(n *yaml.Node, seen map[*yaml.Node]bool) {
	if seen[n] {
		return
	}
	merged := len(seen) > 0
	seen[n] = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			it.merge = key
			continue
		}
		lower := foldKey(key.Value)
		_, known := it.fields[lower]
		if known && merged {
			continue
		}
		if known {
			it.twice = key
		}
		it.fields[lower] = field{key, value}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			it.readMerged(n.Content[i+1], seen)
		}
	}
}

func (it *item) readMerged(n *yaml.Node, seen map[*yaml.Node]bool) {
	switch n.Kind {
	case yaml.AliasNode:
		it.readMerged(n.Alias, seen)
	case yaml.SequenceNode:
		if seen[n] {
			return
		}
		seen[n] = true
		for _, c := range n.Content {
			it.readMerged(c, seen)
		}
	case yaml.MappingNode:
		it.read(n, seen)
	}
}

// entries gives the list as the contract has it.
func (d *document) entries() []Entry {
	var list []Entry
	for _, it := range d.items {
		list = append(list, d.entry(it))
	}
	return list
}

func (d *document) entry(it item) Entry {
	e := Entry{Dir: d.target, File: d.file, Line: it.line()}
	e.Name, e.NewName = d.text(it, fieldName), d.text(it, fieldNewName)
	e.Tag, e.Digest = d.text(it, fieldNewTag), d.text(it, fieldDigest)
	if tag, digest, ok := strings.Cut(e.Tag, "@"); ok && !placeholders.MatchString(e.Tag) {
		e.Tag = tag
		if e.Digest == "" {
			e.Digest = digest
		}
	}
	return e
}

// line is where the element stands in the list.
func (it item) line() int {
	if it.alias != nil {
		return it.alias.Line
	}
	return it.node.Line
}

// text is a field's value as written; "" where it is missing or null. What is
// not a scalar ({{X}} is a map) is given as its source text.
func (d *document) text(it item, name string) string {
	if it.image != nil {
		return it.image.field(name)
	}
	f, ok := it.fields[name]
	if !ok {
		return ""
	}
	n := f.value
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case isNull(n):
		return ""
	case n.Kind == yaml.ScalarNode:
		return n.Value
	}
	start := d.offset(n)
	return strings.TrimSpace(string(d.raw[start:d.lineEnd(n.Line)]))
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// unwrittenNull says whether a null is one for want of any text: "newTag:".
func unwrittenNull(n *yaml.Node) bool { return isNull(n) && n.Value == "" }

// foldKey is a key as kustomize's JSON decoder compares it: without case, where
// "ſ" also counts as s and the Kelvin sign as k.
func foldKey(key string) string { return strings.ToLower(strings.ToUpper(key)) }
