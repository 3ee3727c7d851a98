package overlay

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// The kinds of objects whose images are edited.
const (
	kindFlux           = "Kustomization" // kustomize.toolkit.fluxcd.io
	kindApplication    = "Application"   // argoproj.io
	kindApplicationSet = "ApplicationSet"
)

// object is one document of a file that may carry images: those of Flux's
// spec.images, or of an Argo CD source's kustomize.images.
type object struct {
	kind, name string
	root       *yaml.Node
	lists      []*document
	err        error // why its lists cannot be told
}

// parseObject gives the lists of images of one object in a file of many: the
// named one, or the only one, or the only one that has images. Its other
// documents may be anything that is YAML.
func parseObject(file, name string, raw []byte) ([]*document, error) {
	objects, err := objectsIn(file, name, raw)
	if err != nil {
		return nil, err
	}
	o, err := pickObject(file, name, objects)
	if err != nil {
		return nil, err
	}
	return o.lists, o.err
}

// objectsIn gives the objects of a file that may carry images. The name is only
// for their lists' target.
func objectsIn(file, name string, raw []byte) (objects []object, err error) {
	if err := checkText(file, raw); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			objects, err = nil, fmt.Errorf("%s: %w: the YAML decoder gave up: %v", file, ErrUnsafe, r)
		}
	}()
	docs, err := decodeAll(file, raw)
	if err != nil {
		return nil, err
	}
	base := document{file: file, target: file, raw: raw, lines: lineStarts(raw), docs: docs, aliases: map[*yaml.Node]*yaml.Node{}}
	if name != "" {
		base.target += "#" + name
	}
	for at, doc := range docs {
		base.collectAliases(doc)
		o := readObject(doc)
		if o.kind == "" {
			continue
		}
		base.object = o.kind + " " + o.name
		o.lists, o.err = base.listsOf(&o)
		for i, list := range o.lists {
			list.at = [2]int{at, i}
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// readObject tells what a document is; its kind is "" where it carries no images.
func readObject(doc *yaml.Node) object {
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return object{}
	}
	o := object{root: doc.Content[0]}
	group, _, _ := strings.Cut(scalarAt(o.root, "apiVersion"), "/")
	kind := scalarAt(o.root, "kind")
	if group == "kustomize.toolkit.fluxcd.io" && kind == kindFlux || group == "argoproj.io" && (kind == kindApplication || kind == kindApplicationSet) {
		o.kind, o.name = kind, scalarAt(o.root, "metadata", "name")
	}
	return o
}

// scalarAt is the scalar below keys, as written; "" where there is none.
func scalarAt(n *yaml.Node, keys ...string) string {
	for _, key := range keys {
		n = valueAt(n, key)
	}
	if n == nil || n.Kind != yaml.ScalarNode || isNull(n) {
		return ""
	}
	return n.Value
}

// valueAt is the value of a key of a mapping, through an alias; nil where there is none.
func valueAt(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			if value := n.Content[i+1]; value.Kind != yaml.AliasNode {
				return value
			}
			return n.Content[i+1].Alias
		}
	}
	return nil
}

// pickObject finds the object that is meant.
func pickObject(file, name string, objects []object) (object, error) {
	var found []object
	for _, o := range objects {
		if name == "" || o.name == name {
			found = append(found, o)
		}
	}
	if name == "" && len(found) > 1 {
		if full := slices.DeleteFunc(slices.Clone(found), func(o object) bool { return !o.hasImages() }); len(full) > 0 {
			found = full
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(objects) == 0 && slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(file)):
		return object{}, fmt.Errorf("%w: %s is kustomize's own file; give the directory, %s", ErrNoKustomization, file, path.Dir(file))
	case len(objects) == 0:
		return object{}, fmt.Errorf("%w: %s has no Flux Kustomization and no Argo CD Application or ApplicationSet; for a kustomization give its directory", ErrNoKustomization, file)
	case len(found) == 0:
		return object{}, fmt.Errorf("%w: %s has no object named %s; it has %s", ErrNoKustomization, file, name, listObjects(file, objects))
	case name == "":
		return object{}, fmt.Errorf("%w: %s has several objects with images; name one: %s", ErrNoKustomization, file, listObjects(file, found))
	}
	return object{}, fmt.Errorf("%w: %s has %d objects named %s; keep each in a file of its own", ErrNoKustomization, file, len(found), name)
}

func (o object) hasImages() bool {
	return slices.ContainsFunc(o.lists, func(d *document) bool { return len(d.items) > 0 })
}

// listObjects is objects as a target names them.
func listObjects(file string, objects []object) string {
	var names []string
	for _, o := range objects {
		names = append(names, fmt.Sprintf("%s#%s (%s)", file, o.name, o.kind))
	}
	return shorten(names)
}

// listsOf finds the lists of images of an object. One that has none yet is given
// where entries can be added to it.
func (d document) listsOf(o *object) ([]*document, error) {
	d.chain = []*yaml.Node{o.root}
	spec, err := d.step("spec")
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, refuse(d.file, o.root.Line, d.object+" has no spec", "write one")
	}
	if o.kind == kindFlux {
		list, err := spec.list()
		if err != nil {
			return nil, err
		}
		return []*document{list}, nil
	}
	if o.kind == kindApplicationSet {
		for _, key := range []string{"template", "spec"} {
			if spec, err = spec.step(key); err != nil {
				return nil, err
			}
			if spec == nil {
				return nil, refuse(d.file, o.root.Line, d.object+" has no spec.template.spec", "write one, or promote what it takes its template from")
			}
		}
	}
	return spec.argoLists()
}

// innermost is the last mapping of the way to the list.
func (d document) innermost() *yaml.Node { return d.chain[len(d.chain)-1] }

// step goes down a key to a mapping; nil where the key is missing or null.
func (d document) step(key string) (*document, error) {
	_, value, err := d.pair(d.innermost(), key)
	if err != nil || value == nil || isNull(value) {
		return nil, err
	}
	if value.Kind != yaml.MappingNode {
		return nil, refuse(d.file, value.Line, fmt.Sprintf("%s of %s is not a mapping", key, d.object), "write it as keys and values")
	}
	d.chain = append(slices.Clone(d.chain), value)
	return &d, nil
}

// pair finds a key of a mapping and its value. Where the value may come from
// elsewhere, or stands twice, it is refused.
func (d document) pair(m *yaml.Node, key string) (k, v *yaml.Node, err error) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		name, value := m.Content[i], m.Content[i+1]
		switch {
		case name.Tag == "!!merge":
			return nil, nil, refuse(d.file, name.Line, d.object+" takes keys from a merge key (<<)", "write them out")
		case name.Value != key:
		case k != nil:
			return nil, nil, refuse(d.file, name.Line, fmt.Sprintf("the key %s stands already on line %d", key, k.Line), "join them")
		case value.Kind == yaml.AliasNode:
			return nil, nil, refuse(d.file, value.Line, fmt.Sprintf("%s is an alias (*%s): its text stands elsewhere", key, value.Value), "write it out")
		default:
			k, v = name, value
		}
	}
	return k, v, nil
}

// list reads the images of the innermost mapping.
func (d document) list() (*document, error) {
	d.root = d.innermost()
	d.chain = d.chain[:len(d.chain)-1]
	var err error
	if d.key, d.images, err = d.pair(d.root, "images"); err != nil {
		return nil, err
	}
	return &d, d.readItems()
}

// argoLists finds kustomize.images of the source or sources of an Application's spec.
func (d document) argoLists() ([]*document, error) {
	_, sources, err := d.pair(d.innermost(), "sources")
	if err != nil {
		return nil, err
	}
	var each []*yaml.Node
	if sources != nil && sources.Kind == yaml.SequenceNode {
		each = sources.Content
	} else if source, err := d.step("source"); err != nil {
		return nil, err
	} else if source != nil {
		each = []*yaml.Node{source.innermost()}
	}
	d.strings = true
	var lists []*document
	for _, source := range each {
		if source.Kind != yaml.MappingNode {
			return nil, refuse(d.file, source.Line, "this source of "+d.object+" is not a mapping", "write it out as keys and values")
		}
		d.chain = append(slices.Clone(d.chain), source)
		kustomize, err := d.step("kustomize")
		d.chain = d.chain[:len(d.chain)-1]
		if err != nil {
			return nil, err
		}
		if kustomize == nil {
			continue
		}
		list, err := kustomize.list()
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, d.notKustomize(each)
	}
	return lists, nil
}

// notKustomize says what an Application without kustomize in any source is.
func (d document) notKustomize(sources []*yaml.Node) error {
	for _, s := range sources {
		what := ""
		switch {
		case valueAt(s, "helm") != nil || valueAt(s, "chart") != nil:
			what = "its source is a Helm chart, whose values Tagboat does not edit"
		case valueAt(s, "plugin") != nil:
			what = "its source is built by a plugin, which alone knows where the image stands"
		case valueAt(s, "directory") != nil:
			what = "its source is a directory of plain manifests, which has no images to set"
		}
		if what != "" {
			return fmt.Errorf("%s:%d: %w: %s: %s; give a target that is built by kustomize", d.file, s.Line, ErrNoKustomization, d.object, what)
		}
	}
	return fmt.Errorf("%s:%d: %w: %s has no source with kustomize.images; write kustomize: and images: [] below its source, or give the directory of source.path", d.file, d.innermost().Line, ErrNoKustomization, d.object)
}
