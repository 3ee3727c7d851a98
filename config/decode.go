package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A document is walked node by node, because only nodes know their line. The
// rules of shape (which keys, which types, which words) are those of the struct
// tags, from which the JSON Schema is made as well.

const (
	depthLimit = 20     // the deepest value is at 8
	nodeLimit  = 100000 // aliases repeat what they stand for
	itemLimit  = 2000   // of one list or mapping
)

// decoder puts a document into a value.
type decoder struct {
	*report
	nodes int
	// prefill gives a struct its defaults before its keys are read; nil for none.
	prefill func(at string, v reflect.Value, n *yaml.Node)
}

// decode walks the node at a path into v. What is wrong is reported and leaves v
// as it is.
func (d *decoder) decode(at string, n *yaml.Node, v reflect.Value, f field) {
	n = d.follow(at, n)
	if n == nil {
		return
	}
	if n.ShortTag() == "!!null" {
		d.unreadable(at, n.Line, "%s has no value: leave the key out, or give it one", name(at))
		return
	}
	if v.Type() == reflect.TypeFor[Duration]() {
		d.duration(at, n, v)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(at, n, v)
	case reflect.Map:
		d.named(at, n, v)
	case reflect.Slice:
		d.list(at, n, v, f)
	case reflect.String:
		d.text(at, n, v, f)
	default:
		d.scalar(at, n, v, f)
	}
}

// follow resolves an alias and counts: a few lines of aliases stand for billions
// of nodes, and an alias may stand for what it is in.
func (d *decoder) follow(at string, n *yaml.Node) *yaml.Node {
	if d.nodes++; d.nodes == nodeLimit {
		d.unreadable("", n.Line, "the document has more than %d values: are these aliases of aliases?", nodeLimit)
	}
	if d.nodes >= nodeLimit {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if strings.Count(at, ".")+strings.Count(at, "[") > depthLimit {
		d.unreadable(at, n.Line, "%s: values are nested too deeply", at)
		return nil
	}
	return n
}

// name is how a path is called in a sentence.
func name(at string) string {
	if at == "" {
		return "the document"
	}
	return at
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// pair is one key and its value.
type pair struct {
	key   string
	line  int
	value *yaml.Node
}

// pairs lists a mapping's pairs; keys that are no text or come again are reported.
func (d *decoder) pairs(at string, n *yaml.Node) []pair {
	if n.Kind != yaml.MappingNode {
		d.unreadable(at, n.Line, "%s wants keys and values, has %s", name(at), kind(n))
		return nil
	}
	if len(n.Content)/2 > itemLimit {
		d.unreadable(at, n.Line, "%s has more than %d keys", name(at), itemLimit)
		return nil
	}
	seen := make(map[string]int, len(n.Content)/2)
	var pairs []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.ShortTag() == "!!merge":
			d.unreadable(at, key.Line, "%s: merge keys are not read here: what environments have in common stands in defaults", name(at))
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.unreadable(at, key.Line, "%s: a key must be text, this is %s", name(at), kind(key))
		case seen[key.Value] > 0:
			d.unreadable(join(at, key.Value), key.Line, "key %q is there already, on line %d", key.Value, seen[key.Value])
		default:
			seen[key.Value] = key.Line
			pairs = append(pairs, pair{key.Value, key.Line, n.Content[i+1]})
		}
	}
	return pairs
}

func (d *decoder) object(at string, n *yaml.Node, v reflect.Value) {
	if d.prefill != nil {
		d.prefill(at, v, n)
	}
	fields := fieldsOf(v.Type())
	var got []string
	failed := len(d.broken)
	for _, p := range d.pairs(at, n) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == p.key })
		if i < 0 {
			d.unreadable(join(at, p.key), p.line, "%s has no key %q%s", name(at), p.key, d.keyHint(at, p.key, v.Type(), fields))
			continue
		}
		got = append(got, p.key)
		here := join(at, p.key)
		d.lines[here] = p.line
		d.decode(here, p.value, v.FieldByIndex(fields[i].index), fields[i])
	}
	misspelt := len(d.broken) > failed // then what is missing may be there under another name
	for _, f := range fields {
		switch {
		case !f.required || slices.Contains(got, f.name):
		case misspelt:
			d.broken = append(d.broken, join(at, f.name))
		default:
			d.unreadable(join(at, f.name), n.Line, "%s needs the key %s", name(at), f.name)
		}
	}
}

// keyHint suggests a key, and says of a key that only the root may have that it is so.
func (d *decoder) keyHint(at, key string, t reflect.Type, fields []field) string {
	if elsewhere, ok := rootOnly(t); ok {
		if slices.ContainsFunc(fieldsOf(elsewhere), func(f field) bool { return f.name == key }) {
			return fmt.Sprintf(": only %s at the top of the repository has it", FileName)
		}
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	return Nearest(key, known)
}

// rootOnly gives the root's type for a type of included files.
func rootOnly(t reflect.Type) (reflect.Type, bool) {
	switch t {
	case reflect.TypeFor[Included]():
		return reflect.TypeFor[Config](), true
	case reflect.TypeFor[Tightened]():
		return reflect.TypeFor[Environment](), true
	case reflect.TypeFor[TightenedPullRequest]():
		return reflect.TypeFor[PullRequest](), true
	}
	return nil, false
}

func (d *decoder) named(at string, n *yaml.Node, v reflect.Value) {
	pairs := d.pairs(at, n)
	out := reflect.MakeMapWithSize(v.Type(), len(pairs))
	for _, p := range pairs {
		here := join(at, p.key)
		d.lines[here] = p.line
		item := reflect.New(v.Type().Elem()).Elem()
		d.decode(here, p.value, item, field{})
		out.SetMapIndex(reflect.ValueOf(p.key), item)
	}
	v.Set(out)
}

func (d *decoder) list(at string, n *yaml.Node, v reflect.Value, f field) {
	switch {
	case n.Kind == yaml.ScalarNode:
		d.unreadable(at, n.Line, "%s wants a list, has %s: write [%s]", at, kind(n), n.Value)
		return
	case n.Kind != yaml.SequenceNode:
		d.unreadable(at, n.Line, "%s wants a list, has %s", at, kind(n))
		return
	case len(n.Content) > itemLimit:
		d.unreadable(at, n.Line, "%s has more than %d items", at, itemLimit)
		return
	case len(n.Content) < f.minItems:
		d.unreadable(at, n.Line, "%s is an empty list: leave the key out, or give it an item", at)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		here := at + "[" + strconv.Itoa(i) + "]"
		d.lines[here] = item.Line
		d.decode(here, item, out.Index(i), field{enum: f.enum})
		if f.unique && out.Index(i).Kind() == reflect.String {
			d.unique(here, item, out, i)
		}
	}
	v.Set(out)
}

func (d *decoder) unique(at string, n *yaml.Node, list reflect.Value, i int) {
	for j := range i {
		if list.Index(j).String() == list.Index(i).String() && list.Index(i).String() != "" {
			d.unreadable(at, n.Line, "%s: %s is in the list already", at, list.Index(i))
			return
		}
	}
}

func (d *decoder) text(at string, n *yaml.Node, v reflect.Value, f field) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		d.unreadable(at, n.Line, "%s wants text, has %s%s", at, kind(n), quoted(n))
		return
	}
	if problem := textProblem(n.Value); problem != "" {
		d.unreadable(at, n.Line, "%s %s", at, problem)
		return
	}
	if len(f.enum) > 0 && !slices.Contains(f.enum, n.Value) {
		d.unreadable(at, n.Line, "%s cannot be %q%s", at, n.Value, Nearest(n.Value, f.enum))
		return
	}
	v.SetString(n.Value)
}

// quoted says how to make text of a number.
func quoted(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return fmt.Sprintf(": write %q", n.Value)
}

func (d *decoder) duration(at string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		d.unreadable(at, n.Line, "%s wants a duration, as in 24h, has %s", at, kind(n))
		return
	}
	parsed, err := ParseDuration(n.Value)
	if err != nil {
		d.unreadable(at, n.Line, "%s: %v", at, err)
		return
	}
	v.SetInt(int64(parsed))
}

func (d *decoder) scalar(at string, n *yaml.Node, v reflect.Value, f field) {
	want, tag := "a whole number", "!!int"
	if v.Kind() == reflect.Bool {
		want, tag = "true or false", "!!bool"
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || n.Decode(v.Addr().Interface()) != nil {
		d.unreadable(at, n.Line, "%s wants %s, has %s", at, want, kind(n))
	}
	if v.Kind() == reflect.Int && f.bounded && (v.Int() < 0 || v.Int() > int64(f.maximum)) {
		d.unreadable(at, n.Line, "%s cannot be %d: it is 0 to %d", at, v.Int(), f.maximum)
	}
}

// kind is what a node is, for people.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "the number " + shown(n.Value)
	case "!!bool":
		return "the truth value " + shown(n.Value)
	case "!!null":
		return "nothing"
	case "!!str":
		return "the text " + strconv.Quote(shown(n.Value))
	case "!!timestamp":
		return "the date " + shown(n.Value)
	}
	return "a value of type " + shown(n.ShortTag())
}

// shown cuts what a message repeats.
func shown(s string) string {
	if runes := []rune(s); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return s
}
