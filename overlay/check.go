package overlay

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"tagboat/image"
)

// regexpMarks are the characters of a name that kustomize, which puts the name
// into a regular expression as it is (kustomize#4184), would not take literally.
// The dot is left out: it is in every host, and also matches itself.
const regexpMarks = `\+*?()|[]{}^$`

// check refuses to write into an entry where the write would reach further
// than the entry, or would not say what runs.
func (d *document) check(it item, s Set) error {
	if err := d.checkShape(it); err != nil {
		return err
	}
	if it.image != nil {
		if err := d.checkString(it); err != nil {
			return err
		}
	}
	if err := d.checkName(it.line(), s.Entry.Name); err != nil || it.image != nil {
		return err
	}
	for _, name := range []string{fieldNewTag, fieldDigest, fieldNewName} {
		f, ok := it.fields[name]
		if mark := placeholders.FindString(d.text(it, name)); ok && mark != "" && (name != fieldNewName || s.Rename) {
			return refuse(d.file, f.key.Line, fmt.Sprintf("%s is the template placeholder %s, filled in later by another tool", f.key.Value, mark), "write a value there, or promote where the placeholder is filled in")
		}
	}
	return d.checkForm(it, s.Rename)
}

// checkString refuses a string that Argo CD would not read as it is written here.
func (d *document) checkString(it item) error {
	text := it.node.Value
	switch {
	case placeholders.MatchString(text) || it.node.Kind != yaml.ScalarNode && placeholders.MatchString(it.image.name):
		from := "filled in later by another tool"
		if d.object != "" && strings.HasPrefix(d.object, kindApplicationSet) {
			from = "which a generator fills in"
		}
		return refuse(d.file, it.line(), fmt.Sprintf("the entry %s has the template placeholder %s, %s", it.image.name, placeholders.FindString(text+it.image.name), from), "write a value there, or promote where the placeholder is filled in")
	case it.node.Kind != yaml.ScalarNode || isNull(it.node):
		return refuse(d.file, it.line(), "this item of images is not a string", "write it as [name=]repository:tag")
	case it.image.newName == "*" || it.image.tag == "*" || it.image.digest == "*":
		return refuse(d.file, it.line(), fmt.Sprintf("the entry %s keeps a part of what the kustomization says (*)", text), "write that part out")
	case it.image.String() != text || it.image.name == "" || strings.Contains(it.image.digest, "@"):
		return refuse(d.file, it.line(), fmt.Sprintf("the entry %q is not written as [name=]repository[:tag][@digest]", text), "write it so")
	case strings.Contains(it.image.name, "@"):
		return refuse(d.file, it.line(), fmt.Sprintf("the name %s carries a digest, so that it matches only that one", it.image.name), "write the name without it")
	}
	return nil
}

// checkShape refuses nodes that stand for more, or less, than this entry.
func (d *document) checkShape(it item) error {
	switch {
	case it.alias != nil:
		return refuse(d.file, it.alias.Line, fmt.Sprintf("the entry is an alias (*%s): its text stands elsewhere", it.alias.Value), "write the entry out")
	case it.merge != nil:
		return refuse(d.file, it.merge.Line, "the entry takes fields from a merge key (<<)", "write them out")
	case it.twice != nil:
		return refuse(d.file, it.twice.Line, fmt.Sprintf("%s stands twice in the entry; kustomize takes the last", it.twice.Value), "keep one of them")
	case d.images.Kind == yaml.AliasNode:
		return refuse(d.file, d.images.Line, "images is an alias of a list that stands elsewhere", "write the list out")
	}
	nodes := append(slices.Clone(d.chain), d.root, d.images, it.node)
	for _, w := range []write{{field: fieldName}, {field: fieldNewName}, {field: fieldNewTag}, {field: fieldDigest}} {
		f, ok := it.fields[w.field]
		if d.object != "" && ok && f.key.Value != w.key() {
			return refuse(d.file, f.key.Line, fmt.Sprintf("the key %s is spelled %s in Kubernetes objects", f.key.Value, w.key()), "spell it so")
		}
		if w.field != fieldName {
			nodes = append(nodes, f.value)
		}
	}
	for _, n := range nodes {
		if alias := d.aliases[n]; n != nil && alias != nil {
			return refuse(d.file, n.Line, fmt.Sprintf("the anchor &%s would carry the change to line %d (*%s)", n.Anchor, alias.Line, alias.Value), "write the value out in both places")
		}
	}
	return nil
}

// checkName refuses a name that kustomize reads as a pattern.
func (d *document) checkName(line int, name string) error {
	if !strings.ContainsAny(name, regexpMarks) {
		return nil
	}
	if _, err := regexp.Compile("^" + name); err != nil {
		return refuse(d.file, line, fmt.Sprintf("kustomize reads the name %q as a regular expression, and it is none: it matches nothing", name), "name the image literally")
	}
	return refuse(d.file, line, fmt.Sprintf("kustomize reads the name %q as a regular expression: it may match other images, or not itself", name), "name the image literally")
}

// May says whether kustomize may take the entry for an image's, given by its name in
// what is built: it reads an entry's name as a pattern, and of the tag, too. Of a
// pattern with more than dots it is not asked what it matches.
func (e Entry) May(name string) bool {
	pattern := placeholders.ReplaceAllString(e.Name, "")
	if strings.ContainsAny(pattern, regexpMarks) {
		_, err := regexp.Compile("^" + e.Name)
		return err == nil
	}
	if name == "" || len(pattern) < len(name) {
		return false
	}
	is, err := regexp.MatchString("^"+pattern[:len(name)]+"$", name)
	rest := pattern[len(name):]
	return err == nil && is && (rest == "" || strings.ContainsAny(rest[:1], ":@."))
}

// checkForm refuses entries in which tag or digest stand where kustomize would
// join them with what is written.
func (d *document) checkForm(it item, rename bool) error {
	name, newName := d.text(it, fieldName), d.text(it, fieldNewName)
	newTag, digest := d.text(it, fieldNewTag), d.text(it, fieldDigest)
	if f := it.fields[fieldNewName]; !rename && hasTag(newName) {
		return refuse(d.file, f.key.Line, fmt.Sprintf("newName %s carries a tag or digest, which kustomize joins with newTag and digest to no valid reference", newName), "move it to newTag and digest")
	}
	if strings.Contains(name, "@") {
		return refuse(d.file, it.fields[fieldName].key.Line, fmt.Sprintf("the name %s carries a digest, so that it matches only that one", name), "write the name without it")
	}
	_, inTag, joined := strings.Cut(newTag, "@")
	if !joined {
		return nil
	}
	line := it.fields[fieldNewTag].key.Line
	if err := image.CheckDigest(inTag); err != nil {
		return refuse(d.file, line, fmt.Sprintf("newTag %s: %v", newTag, err), "write tag@digest, or the tag alone")
	}
	if digest != "" {
		return refuse(d.file, line, fmt.Sprintf("newTag %s carries a digest beside digest: kustomize writes both", newTag), "keep one of them")
	}
	return nil
}

// hasTag says whether a tag or digest stands at the end of a name.
func hasTag(name string) bool {
	repository, _, _ := splitName(name)
	return repository != name
}

// splitName parts a name or newName from a tag and a digest at its end.
func splitName(name string) (repository, tag, digest string) {
	repository, digest, _ = strings.Cut(name, "@")
	if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
		repository, tag = repository[:colon], repository[colon+1:]
	}
	return repository, tag, digest
}
