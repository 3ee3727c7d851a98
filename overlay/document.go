package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// document is one kustomization file: its bytes, and the nodes that kyaml found in them.
type document struct {
	file    string
	raw     []byte
	lines   []int                     // offset of the first byte of each line
	root    *yaml.Node                // the top-level mapping
	key     *yaml.Node                // the images key, nil where it is missing
	images  *yaml.Node                // its value, nil where it is missing
	items   []item                    // none where images is missing or null
	aliases map[*yaml.Node]*yaml.Node // an anchored node and the first alias that repeats it
}

// item is one element of the images list.
type item struct {
	node   *yaml.Node       // the mapping; that of the anchor where the element is an alias
	alias  *yaml.Node       // the element, where it is an alias
	merge  *yaml.Node       // the merge key, where there is one
	twice  *yaml.Node       // a key that stands there already
	fields map[string]field // by lower-case key: kustomize reads keys in any case
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
)

// placeholders are what templates leave in a file: @(X), {{X}}, ${X}, $(X), {% x %}.
var placeholders = regexp.MustCompile(`@\([^)\n]*\)|\{\{[^\n]*?\}\}|\$\{[^}\n]*\}|\$\([^)\n]*\)|\{%[^\n]*?%\}`)

// brokenLine finds the line in an error of the YAML decoder.
var brokenLine = regexp.MustCompile(`line (\d+)`)

// parse reads a kustomization file. It refuses what kustomize would read
// otherwise than its text suggests.
func parse(file string, raw []byte) (doc *document, err error) {
	if err := checkText(file, raw); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, fmt.Errorf("%s: %w: the YAML decoder gave up: %v", file, ErrUnsafe, r)
		}
	}()
	root, err := decodeOne(file, raw)
	if err != nil {
		return nil, err
	}
	d := &document{file: file, raw: raw, lines: lineStarts(raw), root: root, aliases: map[*yaml.Node]*yaml.Node{}}
	d.collectAliases(root)
	if err := d.checkKind(); err != nil {
		return nil, err
	}
	if err := d.checkKeys(); err != nil {
		return nil, err
	}
	return d, d.readItems()
}

// decodeOne gives the mapping of the only document. kustomize reads the first
// and forgets the others without a word.
func decodeOne(file string, raw []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var first, next yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w: it is empty, which kustomize refuses; write at least resources: into it", file, ErrUnsafe)
	case err != nil:
		return nil, notYAML(file, raw, err)
	}
	for {
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, notYAML(file, raw, err)
		}
		if len(next.Content) > 0 && !isNull(next.Content[0]) {
			return nil, refuse(file, next.Content[0].Line, "a second YAML document starts here, which kustomize does not read", "keep one document in the file")
		}
		next = yaml.Node{}
	}
	if len(first.Content) == 0 || first.Content[0].Kind != yaml.MappingNode {
		return nil, refuse(file, max(first.Line, 1), "it is not a mapping of keys such as resources: and images:", "make it a kustomization")
	}
	return first.Content[0], nil
}

// notYAML words a syntax error; a template's mark is its usual cause.
func notYAML(file string, raw []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if at := placeholders.FindIndex(raw); at != nil {
		return refuse(file, lineAt(raw, at[0]), fmt.Sprintf("the template placeholder %s makes it no YAML (%s)", raw[at[0]:at[1]], text), "promote the file that the template makes, or write a value")
	}
	if m := brokenLine.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s:%s: %w: it is not YAML: %s; correct it first", file, m[1], ErrUnsafe, text)
	}
	return fmt.Errorf("%s: %w: it is not YAML: %s; correct it first", file, ErrUnsafe, text)
}

func (d *document) collectAliases(n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		if d.aliases[n.Alias] == nil {
			d.aliases[n.Alias] = n
		}
		return
	}
	for _, c := range n.Content {
		d.collectAliases(c)
	}
}

// checkKind refuses other objects that share the name, above all Flux's.
func (d *document) checkKind() error {
	version, kind := d.top("apiVersion"), d.top("kind")
	if strings.HasPrefix(version, "kustomize.toolkit.fluxcd.io/") {
		return fmt.Errorf("%s: %w: it is Flux's Kustomization, which points at an overlay; give the directory in its spec.path", d.file, ErrNoKustomization)
	}
	if kind != "" && kind != types.KustomizationKind && kind != types.ComponentKind {
		return fmt.Errorf("%s: %w: its kind is %s, not Kustomization or Component", d.file, ErrNoKustomization, kind)
	}
	return nil
}

// top is a top-level scalar, or "".
func (d *document) top(key string) string {
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		if d.root.Content[i].Value == key && d.root.Content[i+1].Kind == yaml.ScalarNode {
			return d.root.Content[i+1].Value
		}
	}
	return ""
}

// checkKeys refuses a key that stands twice at the top, in any case: kustomize
// takes the last and loses the first without a word (kustomize#5061).
func (d *document) checkKeys() error {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		key := d.root.Content[i]
		lower := foldKey(key.Value)
		if first := seen[lower]; first != nil {
			return refuse(d.file, key.Line, fmt.Sprintf("the key %s stands already on line %d; kustomize loses one of the two", key.Value, first.Line), "join them")
		}
		seen[lower] = key
		switch lower {
		case "imagetags":
			return refuse(d.file, key.Line, "imageTags is the former name of images and wins over it", "rename it to images, or run kustomize edit fix")
		case "images":
			d.key, d.images = key, d.root.Content[i+1]
		}
	}
	return nil
}

func (d *document) readItems() error {
	list := d.images
	if list != nil && list.Kind == yaml.AliasNode {
		list = list.Alias
	}
	if list == nil || isNull(list) {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		return refuse(d.file, list.Line, "images is not a list", "write it as a list of name, newName, newTag and digest")
	}
	for _, n := range list.Content {
		it := readItem(n)
		if it.node.Kind != yaml.MappingNode {
			return refuse(d.file, n.Line, "this item of images is not a mapping", "write it as name: and newTag:")
		}
		d.items = append(d.items, it)
	}
	return nil
}

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

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// unwrittenNull says whether a null is one for want of any text: "newTag:".
func unwrittenNull(n *yaml.Node) bool { return isNull(n) && n.Value == "" }

// entries gives the list as the contract has it.
func (d *document) entries() []Entry {
	var list []Entry
	for _, it := range d.items {
		list = append(list, d.entry(it))
	}
	return list
}

func (d *document) entry(it item) Entry {
	e := Entry{Dir: path.Dir(d.file), File: d.file, Line: it.line()}
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

// foldKey is a key as kustomize's JSON decoder compares it: without case, where
// "ſ" also counts as s and the Kelvin sign as k.
func foldKey(key string) string { return strings.ToLower(strings.ToUpper(key)) }
