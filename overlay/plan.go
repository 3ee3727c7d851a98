package overlay

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"tagboat/image"
)

// plan is what one set does to the file.
type plan struct {
	set      Set
	index    int // the entry's place in the list after the edit
	added    bool
	writes   []write
	cuts     []cut // none: nothing to do
	change   Change
	warnings []string
}

// write is one field and its new value; "" removes it.
type write struct{ field, value string }

// key is a field's name as kustomize spells it.
func (w write) key() string {
	switch w.field {
	case fieldNewName:
		return "newName"
	case fieldNewTag:
		return "newTag"
	}
	return w.field
}

// plan finds each set's entry and says what is to be written where.
func (d *document) plan(sets []Set) ([]plan, error) {
	var plans []plan
	var adds []Set
	for _, s := range sets {
		if other := slices.IndexFunc(plans, func(p plan) bool { return p.set.Entry.Name == s.Entry.Name }); other >= 0 {
			if first := plans[other].set; first.To != s.To || first.Rename != s.Rename || first.Pin != s.Pin {
				return nil, fmt.Errorf("%s: entry %s is to be written twice, for %s and for %s; name another entry for one", d.file, s.Entry.Name, first.To, s.To)
			}
			continue
		}
		at, err := d.find(s)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			adds = append(adds, s)
			plans = append(plans, plan{set: s, index: len(d.items) + len(adds) - 1, added: true})
			continue
		}
		p, err := d.planEntry(at, s)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	if len(adds) == 0 {
		return plans, nil
	}
	return plans, d.planAdded(plans)
}

// find gives the place of an entry in the list, -1 for one to add.
func (d *document) find(s Set) (int, error) {
	e, at := s.Entry, -1
	for i, it := range d.items {
		if d.text(it, fieldName) != e.Name {
			continue
		}
		if at >= 0 {
			return 0, refuse(d.file, it.line(), fmt.Sprintf("the entry %s stands already on line %d, and kustomize applies both", e.Name, d.items[at].line()), "keep one of them")
		}
		at = i
	}
	if at < 0 && e.Line > 0 {
		return 0, d.gone(e)
	}
	if at >= 0 && e.Line == 0 && !s.Rename {
		if there := d.entry(d.items[at]); there.Runs().Repository != e.Runs().Repository {
			return 0, refuse(d.file, there.Line, fmt.Sprintf("an entry %s is there already and runs %s, not %s", e.Name, there.Runs().Repository, e.Runs().Repository), "name that entry, or rename it")
		}
	}
	return at, nil
}

func (d *document) gone(e Entry) error {
	return fmt.Errorf("%s: %w named %s; it stood on line %d when it was listed", d.file, ErrNoEntry, e.Name, e.Line)
}

// planEntry is the plan for an entry that is there.
func (d *document) planEntry(at int, s Set) (plan, error) {
	it := d.items[at]
	if err := d.check(it, s); err != nil {
		return plan{}, err
	}
	now := d.entry(it)
	p := plan{set: s, index: at, change: Change{Dir: now.Dir, File: d.file, Entry: now.Name, From: now.Runs()}}
	if s.Entry.Dir != "" {
		p.change.Dir = s.Entry.Dir
	}
	p.change.To = s.To
	if !s.Rename {
		p.change.To.Repository = now.Runs().Repository
	}
	renamed := s.Rename && s.To.Repository != cmp.Or(now.NewName, now.Name)
	if now.Digest == s.To.Digest && !renamed && !d.unreadable(it) {
		return p, nil
	}
	if s.Pin == PinDigest {
		p.change.To.Tag = ""
	}
	p.writes = d.wanted(it, p.change.To, s.Rename)
	if err := d.cut(it, &p); err != nil {
		return plan{}, err
	}
	p.warnings = append(p.warnings, d.warn(it, p)...)
	return p, nil
}

// wanted lists the fields to write, in the order in which they are to stand.
func (d *document) wanted(it item, to image.Reference, rename bool) []write {
	if it.image != nil {
		return wantedString(it, to, rename)
	}
	var w []write
	if rename && (d.text(it, fieldNewName) != "" || to.Repository != d.text(it, fieldName)) {
		w = append(w, write{fieldNewName, to.Repository})
	}
	_, hasTag := it.fields[fieldNewTag]
	switch {
	case to.Tag != "" && strings.Contains(d.text(it, fieldNewTag), "@"):
		return append(w, write{fieldNewTag, to.Tag + "@" + to.Digest})
	case to.Tag != "":
		return append(w, write{fieldNewTag, to.Tag}, write{fieldDigest, to.Digest})
	case hasTag:
		w = append(w, write{fieldNewTag, ""})
	}
	return append(w, write{fieldDigest, to.Digest})
}

// wantedString is the whole new string.
func wantedString(it item, to image.Reference, rename bool) []write {
	s := *it.image
	s.tag, s.digest = to.Tag, to.Digest
	if rename && (s.newName != "" || to.Repository != s.name) {
		s.newName = to.Repository
	}
	return []write{{fieldString, s.String()}}
}

// unreadable says whether the tag or digest is a number or a boolean to
// kustomize, which then cannot read the file: an edit mends it.
func (d *document) unreadable(it item) bool {
	for _, name := range []string{fieldNewTag, fieldDigest} {
		if f, ok := it.fields[name]; ok && notString(f.value) {
			return true
		}
	}
	return false
}

// notString says whether a value is no scalar, or a plain one that YAML 1.2
// (kyaml) or 1.1 (kustomize) types otherwise than as a string.
func notString(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return true
	}
	if n.Style != 0 || isNull(n) {
		return false
	}
	return n.Tag != "!!str" && n.Tag != "!!timestamp" || wordLike.MatchString(n.Value) || numberLike.MatchString(n.Value)
}

// warn tells what a reader of the change would not expect.
func (d *document) warn(it item, p plan) []string {
	var list []string
	say := func(format string, args ...any) {
		list = append(list, fmt.Sprintf("%s:%d: entry %s: %s", d.file, it.line(), p.change.Entry, fmt.Sprintf(format, args...)))
	}
	if old := d.text(it, fieldNewTag); old != "" && p.change.To.Tag == "" {
		say("newTag %s is removed: the digest alone is pinned", old)
	}
	if suffix := d.text(it, fieldTagSuffix); suffix != "" {
		say("tagSuffix %s has no effect beside newTag or digest", suffix)
	}
	if lines := d.elsewhere(p.change.From.Tag); len(lines) > 0 && p.change.From.Tag != p.change.To.Tag {
		say("its old tag %s also stands on line %s, which the edit leaves", p.change.From.Tag, strings.Join(lines, ", "))
	}
	if d.text(it, fieldNewName) == "" && hasTag(p.change.Entry) {
		say("the name carries a tag, so that it matches only resources with exactly that tag")
	}
	return list
}

// elsewhere gives the lines outside images on which a tag stands too: ?ref=, a
// label, an environment variable that go with the image.
// Words such as latest, and tags too short to mean one thing, are left out.
func (d *document) elsewhere(tag string) []string {
	if len(tag) < 5 || !strings.ContainsAny(tag, "0123456789") {
		return nil
	}
	word := regexp.MustCompile(`(^|[^\w.-])` + regexp.QuoteMeta(tag) + `($|[^\w.-])`)
	entries := map[int]bool{}
	for _, it := range d.items {
		if it.image != nil {
			entries[it.line()] = true
		}
		for _, f := range it.fields {
			entries[f.value.Line] = true
		}
	}
	var lines []string
	for i, start := range d.lines {
		if line := i + 1; !entries[line] && word.Match(d.raw[start:d.lineEnd(line)]) {
			lines = append(lines, strconv.Itoa(line))
		}
	}
	return lines
}
