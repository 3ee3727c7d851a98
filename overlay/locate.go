package overlay

import (
	"bytes"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const bom = "\ufeff"

// span is where a scalar stands in the bytes: raw[start:end], with its quotes.
type span struct {
	start, end int
	quote      byte // ' or ", 0 for plain
}

// lineStarts gives the offset of each line's first byte. Only LF ends a line:
// checkText has refused the breaks that YAML knows besides.
func lineStarts(raw []byte) []int {
	starts := []int{0}
	for at, c := range raw {
		if c == '\n' {
			starts = append(starts, at+1)
		}
	}
	return starts
}

// offset is the byte at which a node starts. kyaml counts columns in runes, not
// bytes, and does not count a byte order mark at the file's start.
func (d *document) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(d.lines) {
		return len(d.raw)
	}
	at := d.lines[n.Line-1]
	if n.Line == 1 && bytes.HasPrefix(d.raw, []byte(bom)) {
		at += len(bom)
	}
	for column := 1; column < n.Column && at < len(d.raw); column++ {
		_, size := utf8.DecodeRune(d.raw[at:])
		at += size
	}
	return at
}

// lineEnd is the offset of a 1-based line's end, before its line break.
func (d *document) lineEnd(line int) int {
	if line >= len(d.lines) {
		return len(d.raw)
	}
	end := d.lines[line] - 1
	if end > d.lines[line-1] && d.raw[end-1] == '\r' {
		end--
	}
	return end
}

// lineOf is the 1-based line of an offset.
func (d *document) lineOf(at int) int { return lineAt(d.raw, at) }

// eol is the line break that ends a line; for the last line, which may have
// none, that of the line before.
func (d *document) eol(line int) string {
	for ; line > 0; line-- {
		if line >= len(d.lines) {
			continue
		}
		if next := d.lines[line]; next >= 2 && d.raw[next-2] == '\r' {
			return "\r\n"
		}
		return "\n"
	}
	return "\n"
}

// locate finds the bytes of a one-line scalar and makes sure that they are it:
// kyaml gives where a node starts, and not where it ends. The second result
// says in words why they cannot be found.
func (d *document) locate(n *yaml.Node) (span, string) {
	if n.Kind == yaml.AliasNode {
		return span{}, "is an alias of a value that stands elsewhere"
	}
	if n.Kind != yaml.ScalarNode {
		return span{}, "is not a plain value"
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return span{}, "is a block scalar (| or >)"
	}
	start := d.skipProperties(n)
	if start < 0 {
		return span{}, "has its value on another line than its anchor or tag"
	}
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return d.quoted(start, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return d.quoted(start, '\'')
	}
	end := start + len(n.Value)
	if end > len(d.raw) || string(d.raw[start:end]) != n.Value {
		return span{}, "goes on over several lines"
	}
	return span{start: start, end: end}, ""
}

// skipProperties gives where the value starts after an anchor and a tag on the
// same line: the node's own position is that of the & or !.
func (d *document) skipProperties(n *yaml.Node) int {
	at := d.offset(n)
	for at < len(d.raw) && (d.raw[at] == '&' || d.raw[at] == '!') {
		for at < len(d.raw) && !bytes.ContainsRune([]byte(" \t\r\n,]}"), rune(d.raw[at])) {
			at++
		}
		for at < len(d.raw) && (d.raw[at] == ' ' || d.raw[at] == '\t') {
			at++
		}
		if at < len(d.raw) && (d.raw[at] == '\r' || d.raw[at] == '\n') && n.Value != "" {
			return -1
		}
	}
	return at
}

// quoted finds the closing quote on the same line.
func (d *document) quoted(start int, quote byte) (span, string) {
	if start >= len(d.raw) || d.raw[start] != quote {
		return span{}, "is not where the parser says"
	}
	for at := start + 1; at < len(d.raw) && d.raw[at] != '\n'; at++ {
		switch {
		case quote == '"' && d.raw[at] == '\\' && !bytes.HasPrefix(d.raw[at+1:], []byte("\n")):
			at++
		case quote == '\'' && d.raw[at] == quote && at+1 < len(d.raw) && d.raw[at+1] == quote:
			at++
		case d.raw[at] == quote:
			return span{start: start, end: at + 1, quote: quote}, ""
		}
	}
	return span{}, "goes on over several lines"
}

// colon is the offset right after the ":" that ends a key.
func (d *document) colon(key *yaml.Node) (int, string) {
	s, why := d.locate(key)
	if why != "" {
		return 0, why
	}
	at := s.end
	for at < len(d.raw) && (d.raw[at] == ' ' || d.raw[at] == '\t') {
		at++
	}
	if at >= len(d.raw) || d.raw[at] != ':' {
		return 0, "is written with a question mark"
	}
	return at + 1, ""
}
