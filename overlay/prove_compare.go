package overlay

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// difference is one place in which two builds differ.
type difference struct {
	object    string // kind namespace/name
	field     string // "" for the whole object
	container string
	old, new  string // of scalars
	what      string // where it is not one scalar's value that differs
	secret    bool   // of a Secret: its values are never shown
}

// compare pairs the objects of two builds and walks their nodes.
func compare(before, after resmap.ResMap) []difference {
	var out []difference
	olds := map[string]*resource.Resource{}
	for _, r := range before.Resources() {
		olds[objectKey(r)] = r
	}
	for _, r := range after.Resources() {
		old, ok := olds[objectKey(r)]
		delete(olds, objectKey(r))
		if !ok {
			out = append(out, difference{object: objectName(r), what: "is new"})
			continue
		}
		w := walk{object: objectName(r), secret: r.GetKind() == "Secret"}
		w.nodes(old.YNode(), r.YNode(), "", "")
		out = append(out, w.found...)
	}
	for _, r := range before.Resources() {
		if _, gone := olds[objectKey(r)]; gone {
			out = append(out, difference{object: objectName(r), what: "is gone"})
		}
	}
	return out
}

func objectKey(r *resource.Resource) string {
	return strings.Join([]string{r.GetApiVersion(), r.GetKind(), r.GetNamespace(), r.GetName()}, "\x00")
}

// objectName is kind namespace/name, or kind name.
func objectName(r *resource.Resource) string {
	if ns := r.GetNamespace(); ns != "" {
		return r.GetKind() + " " + ns + "/" + r.GetName()
	}
	return r.GetKind() + " " + r.GetName()
}

// secretPart matches what of a Secret is never shown. Annotations may hold the
// whole object, as kubectl applied it last.
var secretPart = regexp.MustCompile(`^(data|stringData|metadata\.annotations)\b`)

type walk struct {
	object string
	secret bool
	found  []difference
}

func (w *walk) add(field, container, old, new, what string) {
	d := difference{object: w.object, field: field, container: container, old: old, new: new, what: what}
	if w.secret && secretPart.MatchString(field) {
		d.secret, d.old, d.new = true, "", ""
	}
	w.found = append(w.found, d)
}

func (w *walk) nodes(old, new *yaml.Node, field, container string) {
	switch {
	case old.Kind != new.Kind:
		w.add(field, container, "", "", "is another kind of value")
	case old.Kind == yaml.MappingNode:
		w.mappings(old, new, field)
	case old.Kind == yaml.SequenceNode:
		w.sequences(old, new, field)
	case old.Value != new.Value || old.ShortTag() != new.ShortTag():
		w.add(field, container, old.Value, new.Value, "")
	}
}

func (w *walk) mappings(old, new *yaml.Node, field string) {
	container := ""
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(old.Content); i += 2 {
		values[old.Content[i].Value] = old.Content[i+1]
	}
	for i := 0; i+1 < len(new.Content); i += 2 {
		if new.Content[i].Value == "name" && new.Content[i+1].Kind == yaml.ScalarNode && strings.HasSuffix(field, "]") {
			container = new.Content[i+1].Value
		}
	}
	for i := 0; i+1 < len(new.Content); i += 2 {
		key := new.Content[i].Value
		value, ok := values[key]
		delete(values, key)
		if !ok {
			w.add(joinField(field, key), container, "", "", "is new")
			continue
		}
		w.nodes(value, new.Content[i+1], joinField(field, key), container)
	}
	for i := 0; i+1 < len(old.Content); i += 2 {
		if _, gone := values[old.Content[i].Value]; gone {
			w.add(joinField(field, old.Content[i].Value), container, "", "", "is gone")
		}
	}
}

func (w *walk) sequences(old, new *yaml.Node, field string) {
	if len(old.Content) != len(new.Content) {
		w.add(field, "", "", "", fmt.Sprintf("has %d items instead of %d", len(new.Content), len(old.Content)))
		return
	}
	for i := range new.Content {
		w.nodes(old.Content[i], new.Content[i], field+"["+strconv.Itoa(i)+"]", "")
	}
}

// joinField adds a key to a path, in brackets where it holds a dot.
func joinField(field, key string) string {
	if strings.ContainsAny(key, ".[]/ ") {
		return field + "[" + strconv.Quote(key) + "]"
	}
	if field == "" {
		return key
	}
	return field + "." + key
}

func (d difference) String() string {
	at := d.object
	if d.field != "" && !d.secret {
		at += " " + d.field
	}
	switch {
	case d.secret:
		return at + " data"
	case d.what != "":
		return at + " " + d.what
	}
	return fmt.Sprintf("%s: %s → %s", at, brief(d.old), brief(d.new))
}
