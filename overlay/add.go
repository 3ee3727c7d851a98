package overlay

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// site is where added entries go, and how they are to look there.
type site struct {
	at   int
	head string               // before the first, e.g. an images: line
	sep  string               // before each but the first
	item func([]write) string // one entry
	tail string               // behind the last
	more []cut                // what else must go, e.g. the [] of an empty list
}

// planAdded fills in the plans of the entries that are to be added.
func (d *document) planAdded(plans []plan) error {
	s, err := d.site()
	if err != nil {
		return err
	}
	first, last := true, -1
	for i := range plans {
		p := &plans[i]
		if !p.added {
			continue
		}
		if err := d.describeAdded(p); err != nil {
			return err
		}
		text := s.item(p.writes)
		if first {
			p.cuts = append(p.cuts, s.more...)
			text, first = s.head+text, false
		} else {
			text = s.sep + text
		}
		p.cuts = append(p.cuts, cut{s.at, s.at, text})
		last = i
	}
	p := &plans[last]
	p.cuts[len(p.cuts)-1].text += s.tail
	return nil
}

// describeAdded says which fields an added entry gets, and what it will run.
func (d *document) describeAdded(p *plan) error {
	e, to := p.set.Entry, p.set.To
	if err := d.checkName(max(1, len(d.lines)), e.Name); err != nil {
		return err
	}
	if strings.Contains(e.Name, "@") {
		return fmt.Errorf("%s: %w: the name %s carries a digest, so that it matches only that one; name the image without it", d.file, ErrUnsafe, e.Name)
	}
	newName := e.NewName
	if p.set.Rename && to.Repository != e.Name {
		newName = to.Repository
	}
	if p.set.Pin == PinDigest {
		to.Tag = ""
	}
	p.writes = []write{{fieldName, e.Name}}
	for _, w := range []write{{fieldNewName, newName}, {fieldNewTag, to.Tag}, {fieldDigest, to.Digest}} {
		if w.value != "" {
			p.writes = append(p.writes, w)
		}
	}
	if d.strings {
		p.writes = []write{{fieldString, imageString{}.with(p.writes).String()}}
	}
	to.Repository = Entry{Name: e.Name, NewName: newName}.Runs().Repository
	p.change = Change{Dir: e.Dir, File: d.file, Entry: e.Name, To: to, Added: true}
	return nil
}

// site finds the place for added entries: behind the last one, or in a list
// that is empty, null or missing.
func (d *document) site() (site, error) {
	flowRoot := d.root.Style&yaml.FlowStyle != 0
	if d.object != "" {
		if err := d.checkRoot(); err != nil {
			return site{}, err
		}
	}
	switch {
	case d.images == nil && d.object != "":
		return d.siteInObject()
	case d.images == nil && flowRoot:
		return d.siteInFlowRoot()
	case d.images == nil:
		return d.siteAtEnd(), nil
	case d.images.Kind == yaml.AliasNode || d.aliases[d.images] != nil || d.images.Anchor != "":
		return site{}, refuse(d.file, d.images.Line, "images is shared by an anchor", "write the list out")
	case len(d.items) == 0:
		return d.siteInEmpty(flowRoot)
	case d.images.Style&yaml.FlowStyle != 0:
		return d.siteInFlow()
	}
	return d.siteInBlock(), nil
}

// siteInBlock is behind the last entry of a block list and the comments that
// are indented as its own.
func (d *document) siteInBlock() site {
	last := d.items[len(d.items)-1]
	st := d.dashOf(last)
	end := d.itemEnd(last, len(st.indent))
	st.like, st.eol = last, d.eol(end)
	if last.alias != nil {
		st.like = item{}
	}
	return site{at: d.lineEnd(end), item: func(w []write) string { return d.blockItem(st, w) }}
}

// itemEnd is the last line of an element whose dash has the given indent: what
// stands deeper is its own. Comments may stand at any indent between its fields.
func (d *document) itemEnd(it item, indent int) int {
	end := it.line()
	if shut := d.flowEnd(it); shut > 0 {
		end = d.lineOf(shut)
	}
	return d.blockEnd(end, indent)
}

// blockEnd is the last line below one that stands deeper than an indent.
func (d *document) blockEnd(end, indent int) int {
	inComment := false
	for line := end + 1; line <= len(d.lines); line++ {
		text := d.raw[d.lines[line-1]:d.lineEnd(line)]
		bare := bytes.TrimLeft(text, " ")
		comment, deeper := bytes.HasPrefix(bare, []byte("#")), len(text)-len(bare) > indent
		switch {
		case blank(text):
		case comment && (inComment || !deeper):
			inComment = true
		case deeper:
			end, inComment = line, false
		default:
			return end
		}
	}
	return end
}

// dashStyle is how a block list's elements are written.
type dashStyle struct {
	indent string // before the dash
	gap    string // between dash and first key; for a dash alone on its line, the line break and indent
	keys   string // before the other keys
	eol    string
	like   item // the entry whose quotes and columns are followed
}

// dashOf reads the style of an element.
func (d *document) dashOf(it item) dashStyle {
	first := it.node
	if it.alias != nil {
		first = it.alias
	} else if it.node.Style&yaml.FlowStyle == 0 && len(it.node.Content) > 0 {
		first = it.node.Content[0]
	}
	start := d.offset(first)
	line := first.Line
	before := string(d.raw[d.lines[line-1]:start])
	if line == 1 {
		before = strings.TrimPrefix(before, bom)
	}
	for !strings.Contains(before, "-") && line > 1 {
		line--
		before = string(d.raw[d.lines[line-1]:d.lineEnd(line)])
	}
	dash := strings.Index(before, "-")
	st := dashStyle{indent: before[:max(dash, 0)], keys: strings.Repeat(" ", first.Column-1)}
	switch rest := before[dash+1:]; {
	case line != first.Line:
		st.gap = d.eol(line) + st.keys
	case blank([]byte(rest)) && rest != "" && !strings.Contains(rest, "\t"):
		st.gap = rest
	default:
		st.gap = " "
		st.keys = st.indent + "  "
	}
	return st
}

// blockItem writes one element with the line break before it.
func (d *document) blockItem(st dashStyle, writes []write) string {
	var b strings.Builder
	b.WriteString(st.eol + st.indent + "-" + st.gap)
	if d.strings {
		b.WriteString(d.stringText(st.like, writes))
		return b.String()
	}
	if st.like.node != nil && st.like.node.Style&yaml.FlowStyle != 0 {
		b.WriteString(d.flowItem(st.like, writes))
		return b.String()
	}
	column := 0
	if st.like.node != nil {
		column = d.valueColumn(st.like)
	}
	for i, w := range writes {
		if i > 0 {
			b.WriteString(st.eol + st.keys)
		}
		key := d.keyText(st.like, w)
		b.WriteString(key + ":" + strings.Repeat(" ", max(1, column-len(st.keys)-len(key)-2)) + d.valueText(st.like, w))
	}
	return b.String()
}

// stringText writes a string as the entry that is followed is written.
func (d *document) stringText(like item, writes []write) string {
	var quote byte
	switch {
	case like.node == nil:
	case like.node.Kind == yaml.MappingNode: // of an empty list in a file that is one {…}
		quote = d.keyQuote(like)
	default:
		quote = quoteOf(like.node)
	}
	return quoteString(writes[0].value, quote, d.spareQuote())
}

// keyText and valueText write as the entry that is followed does.
func (d *document) keyText(like item, w write) string {
	if like.node == nil {
		return w.key()
	}
	return quoteAs(w.key(), d.keyQuote(like), '"')
}

func (d *document) valueText(like item, w write) string {
	var quote byte
	if like.node != nil {
		if f, ok := like.fields[w.field]; ok {
			quote = quoteOf(f.value)
		} else {
			quote = d.newQuote(like)
		}
	}
	return quoteAs(w.value, quote, d.spareQuote())
}
