package overlay

import (
	"bytes"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// siteInEmpty is where images is [] or null.
func (d *document) siteInEmpty(flowRoot bool) (site, error) {
	key := field{d.key, d.images}
	colon, why := d.colon(d.key)
	if why != "" {
		return site{}, d.refuseField(key, why)
	}
	end := colon
	switch {
	case d.images.Style&yaml.TaggedStyle != 0:
		return site{}, d.refuseField(key, "has a tag (!!)")
	case d.images.Kind == yaml.SequenceNode:
		open := d.offset(d.images)
		shut := bytes.IndexByte(d.raw[open:], ']')
		if shut < 0 || !blank(d.raw[open+1:open+shut]) {
			return site{}, d.refuseField(key, "is an empty list with a comment inside")
		}
		end = open + shut + 1
	case d.images.Value != "":
		s, why := d.locate(d.images)
		if why != "" {
			return site{}, d.refuseField(key, why)
		}
		end = s.end
	}
	if flowRoot {
		like := d.flowLike()
		return site{at: end, head: d.flowColonOf(d.root) + "[", sep: ", ", tail: "]", more: []cut{{colon - 1, end, ""}},
			item: func(w []write) string { return d.flowItem(like, w) }}, nil
	}
	st := d.siblingStyle()
	st.eol = d.eol(d.lineOf(end))
	return site{at: d.lineEnd(d.lineOf(end)), more: []cut{{colon, end, ""}},
		item: func(w []write) string { return d.blockItem(st, w) }}, nil
}

// siteAtEnd is below the last line of a document without images.
func (d *document) siteAtEnd() site {
	st := d.siblingStyle()
	end := d.documentEnd()
	last := d.lineOf(end)
	if end > 0 && d.raw[end-1] == '\n' {
		last--
	}
	st.eol = d.eol(last)
	between := ""
	if d.blankBetween() {
		between = st.eol
	}
	s := site{head: strings.Repeat(" ", d.root.Content[0].Column-1) + "images:", item: func(w []write) string { return d.blockItem(st, w) }}
	switch {
	case endsInBlock(d.root) && d.raw[end-1] == '\n':
		// Trailing blank lines may be text of a |+ block: go behind them.
		s.at, s.head, s.tail = end, between+s.head, st.eol
		return s
	case endsInBlock(d.root):
		// A line break more would be text of the block: go before its key.
		s.at, s.tail = d.lastKeyStart(), st.eol+between
		return s
	}
	for last > d.root.Line && blank(d.raw[d.lines[last-1]:d.lineEnd(last)]) {
		last--
	}
	s.at, s.head = d.lineEnd(last), st.eol+between+s.head
	return s
}

// lastKeyStart is the start of the last top-level key's line, or of the comment
// lines above it.
func (d *document) lastKeyStart() int {
	line := d.root.Content[len(d.root.Content)-2].Line
	for line > d.root.Line && bytes.HasPrefix(bytes.TrimLeft(d.raw[d.lines[line-2]:], " "), []byte("#")) {
		line--
	}
	if line == 1 && bytes.HasPrefix(d.raw, []byte(bom)) {
		return len(bom)
	}
	return d.lines[line-1]
}

// documentEnd is the offset of the marker that ends the document, or of its end.
func (d *document) documentEnd() int {
	for line := d.root.Line + 1; line <= len(d.lines); line++ {
		text := strings.TrimRight(string(d.raw[d.lines[line-1]:d.lineEnd(line)]), " \t")
		if marker, _, _ := strings.Cut(text, " "); marker == "---" || marker == "..." {
			return d.lines[line-1]
		}
	}
	return len(d.raw)
}

func endsInBlock(n *yaml.Node) bool {
	for len(n.Content) > 0 {
		n = n.Content[len(n.Content)-1]
	}
	return n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// siblingStyle is the style of the last block list beside images; in an object
// without one there that of the file's last; else that in which kustomize writes.
func (d *document) siblingStyle() dashStyle {
	root := strings.Repeat(" ", d.root.Content[0].Column-1)
	st := dashStyle{indent: root, gap: " ", keys: root + "  "}
	found := d.styleBelow(d.root, d.root.Content[0].Column, &st)
	if !found && d.object != "" {
		for _, doc := range d.docs {
			d.styleOfAll(doc, &st)
		}
	}
	return st
}

// styleBelow takes the style of the last block list of a mapping, for one whose
// keys stand at a column.
func (d *document) styleBelow(m *yaml.Node, column int, st *dashStyle) (found bool) {
	for i := 1; i < len(m.Content); i += 2 {
		key, list := m.Content[i-1], m.Content[i]
		if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 || list.Anchor != "" {
			continue
		}
		dash := d.offset(list)
		if dash >= len(d.raw) || d.raw[dash] != '-' || list.Column < key.Column {
			continue
		}
		rest := d.raw[dash+1:]
		gap := strings.Repeat(" ", max(1, len(rest)-len(bytes.TrimLeft(rest, " "))))
		indent := strings.Repeat(" ", column-1+list.Column-key.Column)
		*st, found = dashStyle{indent: indent, gap: gap, keys: indent + " " + gap}, true
	}
	return found
}

func (d *document) styleOfAll(n *yaml.Node, st *dashStyle) {
	if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 {
		d.styleBelow(n, d.root.Content[0].Column, st)
	}
	for _, c := range n.Content {
		d.styleOfAll(c, st)
	}
}

// blankBetween says whether the file keeps its sections apart by blank lines.
func (d *document) blankBetween() bool {
	if len(d.root.Content) < 4 {
		return false
	}
	line := d.root.Content[len(d.root.Content)-2].Line - 1
	for line > 1 && bytes.HasPrefix(d.raw[d.lines[line-1]:], []byte("#")) {
		line--
	}
	return line > 1 && blank(d.raw[d.lines[line-1]:d.lineEnd(line)])
}

// siteInFlow is behind the last {…} of a flow list.
func (d *document) siteInFlow() (site, error) {
	last := d.items[len(d.items)-1]
	end := d.flowEnd(last)
	if end < 0 {
		return site{}, refuse(d.file, last.line(), "the end of the last entry cannot be told", "write images as a block list")
	}
	open := d.offset(last.node)
	sep := ", "
	if before := d.raw[d.lines[last.node.Line-1]:open]; blank(before) {
		sep = "," + d.eol(last.node.Line) + string(before)
	} else if !d.strings && d.flowGap(last.first()) == "" {
		sep = ","
	}
	return site{at: end, head: sep, sep: sep, item: func(w []write) string { return d.flowItem(last, w) }}, nil
}

// first is an entry's first field.
func (it item) first() field { return field{it.node.Content[0], it.node.Content[1]} }

// flowEnd is the offset behind an entry's closing brace, or -1.
func (d *document) flowEnd(it item) int {
	if d.strings {
		return d.stringEnd(it)
	}
	n := it.node.Content
	if it.alias != nil || len(n) < 2 || it.node.Style&yaml.FlowStyle == 0 {
		return -1
	}
	end, why := d.valueEnd(field{n[len(n)-2], n[len(n)-1]})
	if why != "" {
		return -1
	}
	rest := bytes.TrimLeft(d.raw[end:], " \t\r\n")
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(",")), " \t\r\n")
	if !bytes.HasPrefix(rest, []byte("}")) {
		return -1
	}
	return len(d.raw) - len(rest) + 1
}

// flowItem writes {…} with the blanks, lines and quotes of another one.
func (d *document) flowItem(like item, writes []write) string {
	if d.strings {
		return d.stringText(like, writes)
	}
	open, gap, colon, shut := "{", " ", ": ", "}"
	if len(like.fields) > 0 {
		gap, colon = d.flowGap(like.first()), d.flowColon(like.first())
		first := d.offset(like.node.Content[0])
		if start := d.offset(like.node); d.raw[start] == '{' && blank(d.raw[start+1:first]) {
			open = string(d.raw[start:first])
		}
		if end := d.flowEnd(like); end > 0 {
			inner := bytes.TrimRight(d.raw[:end-1], " \t\r\n")
			shut = string(d.raw[len(inner):end])
		}
	}
	parts := make([]string, len(writes))
	for i, w := range writes {
		parts[i] = d.keyText(like, w) + colon + d.valueText(like, w)
	}
	return open + strings.Join(parts, ","+gap) + shut
}

// siteInFlowRoot is before the closing brace of a file that is one {…}.
func (d *document) siteInFlowRoot() (site, error) {
	body := bytes.TrimRight(d.raw[:d.documentEnd()], " \t\r\n")
	if len(body) == 0 || body[len(body)-1] != '}' {
		return site{}, refuse(d.file, d.root.Line, "something follows the closing brace", "write images: [] into the file")
	}
	body = bytes.TrimRight(body[:len(body)-1], " \t\r\n")
	gap := " "
	if len(d.root.Content) > 0 {
		gap = d.flowGap(field{d.root.Content[0], d.root.Content[1]})
	}
	if c := body[len(body)-1]; c != '{' && c != ',' {
		gap = "," + gap
	}
	like := d.flowLike()
	key := d.keyText(like, write{field: "images"})
	return site{at: len(body), head: gap + key + d.flowColonOf(d.root) + "[", sep: ", ", tail: "]",
		item: func(w []write) string { return d.flowItem(like, w) }}, nil
}

// flowLike stands for an entry in a file that has none: quoted as its keys are.
func (d *document) flowLike() item {
	return item{node: &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: d.root.Content}, fields: map[string]field{}}
}

// flowColonOf is the colon of a mapping's first pair.
func (d *document) flowColonOf(n *yaml.Node) string {
	if len(n.Content) == 0 {
		return ": "
	}
	return d.flowColon(field{n.Content[0], n.Content[1]})
}
