package overlay

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"tagboat/image"
)

// placement is one scalar of a build.
type placement struct {
	object, field, value string
	kind                 string
	rewritten            bool // kustomize's images transformer looks at the field without being told
}

func (p placement) String() string { return fmt.Sprintf("%s (%s %s)", p.value, p.object, p.field) }

// rewrittenField matches the fields that kustomize rewrites in any kind of object
// (api v0.21.2, filters/imagetag/legacy.go and internal/konfig).
var rewrittenField = regexp.MustCompile(`(^|\.)(containers|initContainers)\[[0-9]+\]\.image$|^spec\.((jobTemplate\.spec\.)?template\.spec\.)?volumes\[[0-9]+\]\.image\.reference$`)

// placed lists the scalars of a build, except Secrets', in its order.
func placed(m resmap.ResMap) []placement {
	var out []placement
	for _, r := range m.Resources() {
		if r.GetKind() == "Secret" {
			continue
		}
		scalars(r.YNode(), "", func(field, value string) {
			out = append(out, placement{object: objectName(r), field: field, value: value, kind: r.GetKind(),
				rewritten: rewrittenField.MatchString(field) && r.GetKind() != "CustomResourceDefinition"})
		})
	}
	return out
}

func scalars(n *yaml.Node, field string, each func(field, value string)) {
	switch n.Kind {
	case yaml.DocumentNode:
		for _, root := range n.Content {
			scalars(root, field, each)
		}
	case yaml.ScalarNode:
		each(field, n.Value)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			scalars(n.Content[i+1], joinField(field, n.Content[i].Value), each)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			scalars(item, field+"["+strconv.Itoa(i)+"]", each)
		}
	}
}

// noEffect says what a build contains instead of what a change was meant for, and
// the likely cause.
func (b *proveBuild) noEffect(c Change) error {
	all := placed(b.after)
	declared := b.new.declaredImages()
	for i, p := range all {
		all[i].rewritten = p.rewritten || slices.Contains(declared, plainField(p.field))
	}
	hints := b.hints(c, all)
	var runs []string
	for _, p := range all {
		if p.rewritten {
			runs = append(runs, p.String())
		}
	}
	has := "the build has no containers"
	if len(runs) > 0 {
		has = "the build runs " + shorten(runs)
	}
	return fmt.Errorf("%s: %w: entry %s in %s: %s", b.dir, ErrNoEffect, c.Entry, c.File, strings.Join(append(hints, has), "; "))
}

// hints are the likely causes, the surest first.
func (b *proveBuild) hints(c Change, all []placement) []string {
	var out []string
	out = append(out, b.renamedBefore(c)...)
	for _, p := range all {
		if repository := repositoryOf(p.value); repository != c.Entry && repository != c.To.Repository {
			continue
		}
		switch {
		case !p.rewritten && !p.likeImage():
		case !p.rewritten:
			out = append(out, fmt.Sprintf("%s stands in a field that kustomize does not rewrite: declare it in a file under configurations: as images: [{kind: %s, path: %s}]", p, p.kind, fieldSpec(p.field)))
		case p.value == c.To.String():
			out = append(out, fmt.Sprintf("%s is set already, by %s", p, b.setters(p.value)))
		case repositoryOf(p.value) == c.Entry && !matches(c.Entry, p.value):
			out = append(out, fmt.Sprintf("%s does not match the entry's name: kustomize takes it as a regular expression, followed by a tag of letters, digits and _ . { } -", p))
		default:
			out = append(out, fmt.Sprintf("%s is set after the entry, by %s", p, b.setters(p.value)))
		}
	}
	if len(out) == 0 {
		out = append(out, nearby(c, all)...)
	}
	if len(out) == 0 {
		out = append(out, "nothing in the build is named so")
	}
	return slices.Compact(out)
}

// likeImage tells an image in a field that kustomize does not rewrite from an
// object's or a label's name, which may be the same as an entry's.
func (p placement) likeImage() bool {
	named := strings.Contains(strings.ToLower(lastElement(fieldSpec(p.field))), "image")
	return !strings.HasPrefix(p.field, "metadata.") && (named || strings.ContainsAny(p.value, ":/"))
}

// renamedBefore finds a base or component that gives the image another name, by
// which this layer must call it.
func (b *proveBuild) renamedBefore(c Change) []string {
	var out []string
	for _, dir := range sortedKeys(b.new.dirs) {
		k := b.new.dirs[dir]
		if dir == b.layer(c) {
			continue
		}
		for _, i := range k.content.Images {
			if i.Name == c.Entry && i.NewName != "" && i.NewName != c.Entry {
				out = append(out, fmt.Sprintf("%s renames it to %s before: name the entry %s", k.file, i.NewName, i.NewName))
			}
		}
	}
	return out
}

// setters names what in the tree holds a repository and runs after images.
func (b *proveBuild) setters(value string) string {
	repository := repositoryOf(value)
	var out []string
	for _, dir := range sortedKeys(b.new.dirs) {
		k := b.new.dirs[dir]
		for _, s := range layers(k) {
			text := s.text
			if s.path != "" {
				text = string(b.new.files[pathIn(dir, s.path)])
			}
			if strings.Contains(text, repository) {
				out = append(out, strings.TrimSpace(k.file+": "+s.field+" "+s.path))
			}
		}
	}
	if len(out) == 0 {
		return "a patch, a replacement, a transformer or another layer's images"
	}
	return shorten(out)
}

// nearby suggests what was perhaps meant: the same repository spelled otherwise,
// the same last element, a slip of the pen.
func nearby(c Change, all []placement) []string {
	var out []string
	for _, p := range all {
		repository := repositoryOf(p.value)
		if !p.rewritten || repository == "" {
			continue
		}
		switch {
		case image.SameRepository(repository, c.Entry):
			out = append(out, fmt.Sprintf("%s is the same image under another name, and kustomize compares names as text: name the entry %s", p, repository))
		case lastElement(repository) == lastElement(c.Entry) || levenshtein.ComputeDistance(repository, c.Entry) <= 2:
			out = append(out, fmt.Sprintf("perhaps %s is meant: then name the entry %s", p, repository))
		}
	}
	return slices.Compact(out)
}

func lastElement(repository string) string {
	return repository[strings.LastIndex(repository, "/")+1:]
}

// fieldSpec is a field as kustomize's configurations name it.
func fieldSpec(field string) string {
	return indexes.ReplaceAllString(strings.ReplaceAll(field, ".", "/"), "[]")
}

var indexes = regexp.MustCompile(`\[[0-9]+\]`)

// plainField is a field without indexes, as two spellings of it compare.
func plainField(field string) string { return strings.ReplaceAll(fieldSpec(field), "[]", "") }

// shorten joins what is listed, up to a dozen.
func shorten(items []string) string {
	const most = 12
	if len(items) > most {
		return strings.Join(items[:most], ", ") + fmt.Sprintf(" and %d more", len(items)-most)
	}
	return strings.Join(items, ", ")
}
