package overlay

import (
	"bytes"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// anchor is the field below which a new one goes: digest below newTag, that
// below newName, that below name.
func (it item) anchor(w write) field {
	if f, ok := it.fields[fieldNewTag]; ok && w.field == fieldDigest {
		return f
	}
	if f, ok := it.fields[fieldNewName]; ok && w.field != fieldNewName {
		return f
	}
	return it.fields[fieldName]
}

// insertBlock adds one line below the anchor's, with the entry's indent and the
// file's line break.
func (d *document) insertBlock(it item, w write) ([]cut, error) {
	a := it.anchor(w)
	end, why := d.valueEnd(a)
	if why != "" {
		return nil, d.refuseField(a, why)
	}
	line := d.lineOf(end)
	at := d.lineEnd(line)
	column := d.keyColumn(it)
	indent := strings.Repeat(" ", column-1)
	key := quoteAs(w.key(), d.keyQuote(it), '"')
	gap := strings.Repeat(" ", max(1, d.valueColumn(it)-column-len(key)-1))
	value := quoteAs(w.value, d.newQuote(it), d.spareQuote())
	return []cut{{at, at, d.eol(line) + indent + key + ":" + gap + value}}, nil
}

// keyColumn is the column of a block entry's keys, or of their question marks.
func (d *document) keyColumn(it item) int {
	if start := d.offset(it.node); start < len(d.raw) && d.raw[start] == '?' {
		return it.node.Column
	}
	return it.node.Content[0].Column
}

// insertFlow adds a field behind the anchor in {…}: on its own line where the
// anchor is on its own, with the blanks that stand around the anchor's.
func (d *document) insertFlow(it item, w write) ([]cut, error) {
	a := it.anchor(w)
	end, why := d.valueEnd(a)
	if why != "" {
		return nil, d.refuseField(a, why)
	}
	key := quoteAs(w.key(), d.keyQuote(it), '"')
	value := quoteAs(w.value, d.newQuote(it), d.spareQuote())
	return []cut{{end, end, "," + d.flowGap(a) + key + d.flowColon(a) + value}}, nil
}

// flowGap is what stands between a comma and the next key.
func (d *document) flowGap(a field) string {
	start := d.offset(a.key)
	if before := d.raw[d.lines[a.key.Line-1]:start]; blank(before) {
		return d.eol(a.key.Line) + string(before)
	}
	if d.flowColon(a) == ":" {
		return ""
	}
	return " "
}

// flowColon is the colon and the blanks behind it, as the anchor has them.
func (d *document) flowColon(a field) string {
	at, why := d.colon(a.key)
	if why == "" && d.offset(a.value) == at && !unwrittenNull(a.value) {
		return ":"
	}
	return ": "
}

// valueColumn is the column at which all the values of an entry start where
// they are aligned, else 0.
func (d *document) valueColumn(it item) int {
	column, wide := 0, false
	for i := 0; i+1 < len(it.node.Content); i += 2 {
		key, value := it.node.Content[i], it.node.Content[i+1]
		if value.Line != key.Line || (column > 0 && value.Column != column) {
			return 0
		}
		column = value.Column
		wide = wide || value.Column > key.Column+len(key.Value)+2
	}
	if len(it.node.Content) < 4 || !wide {
		return 0
	}
	return column
}

// keyQuote is the quote around the entry's keys (JSON), or 0.
func (d *document) keyQuote(it item) byte { return d.commonQuote(it.node.Content, 0) }

// newQuote is the quote for a value that the entry did not have: the one that
// all of its values have, in JSON always the double one, else 0.
func (d *document) newQuote(it item) byte {
	if it.node.Style&yaml.FlowStyle != 0 && d.keyQuote(it) == '"' {
		return '"'
	}
	return d.commonQuote(it.node.Content, 1)
}

func (d *document) commonQuote(content []*yaml.Node, from int) byte {
	var quote byte
	for i := from; i < len(content); i += 2 {
		q := quoteOf(content[i])
		if q == 0 || (quote != 0 && q != quote) {
			return 0
		}
		quote = q
	}
	return quote
}

func quoteOf(n *yaml.Node) byte {
	switch {
	case n.Kind != yaml.ScalarNode:
		return 0
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return '"'
	case n.Style&yaml.SingleQuotedStyle != 0:
		return '\''
	}
	return 0
}

// spareQuote is the quote for a value that needs one: that of the file's other
// entries, else the double one.
func (d *document) spareQuote() byte {
	for _, it := range d.items {
		if it.image != nil && quoteOf(it.node) != 0 {
			return quoteOf(it.node)
		}
		for _, name := range []string{fieldNewTag, fieldDigest, fieldNewName, fieldName} {
			if f, ok := it.fields[name]; ok && quoteOf(f.value) != 0 {
				return quoteOf(f.value)
			}
		}
	}
	if bytes.IndexByte(d.raw, '"') < 0 && bytes.Count(d.raw, []byte("'")) >= 2 {
		return '\''
	}
	return '"'
}
