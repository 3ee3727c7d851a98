package overlay

import (
	"fmt"
	"regexp"
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
	if err := d.checkName(it.line(), s.Entry.Name); err != nil {
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
	nodes := []*yaml.Node{d.root, d.images, it.node}
	for _, name := range []string{fieldNewName, fieldNewTag, fieldDigest} {
		nodes = append(nodes, it.fields[name].value)
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
