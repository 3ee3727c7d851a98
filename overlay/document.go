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

// document is one list of images: that of a kustomization file, or of an object
// in a file. It has the file's bytes, and the nodes that kyaml found in them.
type document struct {
	file    string
	target  string // the directory, or FILE or FILE#NAME
	object  string // kind and name; "" for a kustomization
	at      [2]int // the document of the object in the file, and the list in the object
	raw     []byte
	lines   []int                     // offset of the first byte of each line
	docs    []*yaml.Node              // the documents of the file
	chain   []*yaml.Node              // the mappings above root; none for a kustomization
	root    *yaml.Node                // the mapping that has the images key
	key     *yaml.Node                // the images key, nil where it is missing
	images  *yaml.Node                // its value, nil where it is missing
	strings bool                      // its items are strings, not mappings
	items   []item                    // none where images is missing or null
	aliases map[*yaml.Node]*yaml.Node // an anchored node and the first alias that repeats it
}

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
	docs, err := decodeAll(file, raw)
	if err != nil {
		return nil, err
	}
	root, err := onlyOne(file, docs)
	if err != nil {
		return nil, err
	}
	d := &document{file: file, target: path.Dir(file), raw: raw, lines: lineStarts(raw), docs: docs[:1], root: root, aliases: map[*yaml.Node]*yaml.Node{}}
	d.collectAliases(root)
	if err := d.checkKind(); err != nil {
		return nil, err
	}
	if err := d.checkKeys(); err != nil {
		return nil, err
	}
	return d, d.readItems()
}

// decodeAll gives the documents of a file. Their nodes have the lines of the
// whole file.
func decodeAll(file string, raw []byte) ([]*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var docs []*yaml.Node
	for {
		var next yaml.Node
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, notYAML(file, raw, err)
		}
		docs = append(docs, &next)
	}
}

// onlyOne gives the mapping of the only document. kustomize reads the first and
// forgets the others without a word.
func onlyOne(file string, docs []*yaml.Node) (*yaml.Node, error) {
	if len(docs) == 0 {
		return nil, fmt.Errorf("%s: %w: it is empty, which kustomize refuses; write at least resources: into it", file, ErrUnsafe)
	}
	for _, next := range docs[1:] {
		if len(next.Content) > 0 && !isNull(next.Content[0]) {
			return nil, refuse(file, next.Content[0].Line, "a second YAML document starts here, which kustomize does not read", "keep one document in the file")
		}
	}
	first := docs[0]
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
		return fmt.Errorf("%s: %w: it is Flux's Kustomization, which points at an overlay; give the directory in its spec.path, or the file itself for its spec.images", d.file, ErrNoKustomization)
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
		if d.strings {
			d.items = append(d.items, d.stringItem(it))
			continue
		}
		if it.node.Kind != yaml.MappingNode {
			return refuse(d.file, n.Line, "this item of images is not a mapping", "write it as name: and newTag:")
		}
		d.items = append(d.items, it)
	}
	return nil
}
