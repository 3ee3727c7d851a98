package overlay

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// cut turns a plan's writes into byte ranges. Writes of what is there already
// make none.
func (d *document) cut(it item, p *plan) error {
	if it.image != nil {
		return d.cutString(it, p)
	}
	tag := it.fields[fieldNewTag]
	_, hasDigest := it.fields[fieldDigest]
	// One line changes where the digest takes the tag's place, also where the
	// tag cannot go because it stands beside the dash.
	swap := removes(p.writes, fieldNewTag) && (!hasDigest || d.besideDash(it, tag))
	for _, w := range p.writes {
		var cuts []cut
		var err error
		switch f, there := it.fields[w.field]; {
		case swap && w.field == fieldNewTag:
			cuts, err = d.turnInto(tag, write{fieldDigest, p.set.To.Digest})
		case swap && w.field == fieldDigest && !hasDigest:
		case swap && w.field == fieldDigest, w.value == "":
			cuts, err = d.remove(it, f)
		case there:
			cuts, err = d.replace(f, w.value)
		case it.node.Style&yaml.FlowStyle != 0:
			cuts, err = d.insertFlow(it, w)
		default:
			cuts, err = d.insertBlock(it, w)
		}
		if err != nil {
			return err
		}
		for _, c := range cuts {
			if string(d.raw[c.start:c.end]) != c.text {
				p.cuts = append(p.cuts, c)
			}
		}
	}
	return nil
}

// cutString replaces a string by the new one, in the quotes of the old.
func (d *document) cutString(it item, p *plan) error {
	s, why := d.locate(it.node)
	if why != "" {
		return refuse(d.file, it.line(), fmt.Sprintf("the entry %s %s", it.image.name, why), "write it on one line")
	}
	p.cuts = []cut{{s.start, s.end, quoteString(p.writes[0].value, s.quote, d.spareQuote())}}
	return nil
}

func removes(writes []write, field string) bool {
	for _, w := range writes {
		if w.field == field {
			return w.value == ""
		}
	}
	return false
}

// besideDash says whether a field shares its line with the entry's dash.
func (d *document) besideDash(it item, f field) bool {
	return it.node.Style&yaml.FlowStyle == 0 && !blank(d.raw[d.lines[f.key.Line-1]:d.offset(f.key)])
}

// refuseField says why a field cannot be spliced.
func (d *document) refuseField(f field, why string) error {
	return refuse(d.file, f.key.Line, fmt.Sprintf("%s %s", f.key.Value, why), "write it on one line, as key: value")
}

// replace writes a new value in the quotes of the old.
func (d *document) replace(f field, value string) ([]cut, error) {
	if unwrittenNull(f.value) {
		at, why := d.colon(f.key)
		if why != "" {
			return nil, d.refuseField(f, why)
		}
		return []cut{{at, at, " " + quoteAs(value, 0, d.spareQuote())}}, nil
	}
	s, why := d.locate(f.value)
	if why != "" {
		return nil, d.refuseField(f, why)
	}
	return []cut{{s.start, s.end, quoteAs(value, s.quote, d.spareQuote())}}, nil
}

// turnInto makes a field another one in its place, so that one line changes. A
// Flux mark goes with the field that it was for.
func (d *document) turnInto(f field, w write) ([]cut, error) {
	cuts, err := d.replace(f, w.value)
	if err != nil {
		return nil, err
	}
	key, why := d.locate(f.key)
	if why != "" {
		return nil, d.refuseField(f, why)
	}
	cuts = append(cuts, cut{key.start, key.end, quoteAs(w.key(), key.quote, '"')})
	if from, to := d.fluxMark(f); from < to {
		cuts = append(cuts, cut{from, to, ""})
	}
	return cuts, nil
}

// fluxMark is the comment {"$imagepolicy": …} behind a value, with the blanks
// before it: Flux writes the marked field, so it cannot outlive it.
func (d *document) fluxMark(f field) (from, to int) {
	from, why := d.valueEnd(f)
	if why != "" {
		return 0, 0
	}
	to = d.lineEnd(d.lineOf(from))
	rest := strings.TrimLeft(string(d.raw[from:to]), " \t")
	if !strings.HasPrefix(rest, "#") || !strings.Contains(rest, "$imagepolicy") {
		return 0, 0
	}
	return from, to
}

// valueEnd is the offset behind a field's value.
func (d *document) valueEnd(f field) (int, string) {
	if unwrittenNull(f.value) {
		return d.colon(f.key)
	}
	s, why := d.locate(f.value)
	return s.end, why
}

// remove takes a field out.
func (d *document) remove(it item, f field) ([]cut, error) {
	end, why := d.valueEnd(f)
	if why != "" {
		return nil, d.refuseField(f, why)
	}
	if it.node.Style&yaml.FlowStyle != 0 {
		return d.removeFlow(it, f, end)
	}
	if d.lineOf(end) != f.key.Line {
		return nil, d.refuseField(f, "has its value on the line below")
	}
	start := d.offset(f.key)
	lineStart, lineEnd := d.lines[f.key.Line-1], d.lineEnd(f.key.Line)
	if from, to := d.fluxMark(f); from < to {
		end = to
	}
	if comment := bytes.IndexByte(d.raw[end:lineEnd], '#'); comment >= 0 {
		return []cut{{start, end + comment, ""}}, nil
	}
	if lineEnd == len(d.raw) {
		return []cut{{d.lineEnd(f.key.Line - 1), lineEnd, ""}}, nil
	}
	return []cut{{lineStart, d.lines[f.key.Line], ""}}, nil
}

// removeFlow takes a field out of {…} with one of its commas.
func (d *document) removeFlow(it item, f field, end int) ([]cut, error) {
	at := 0
	for it.node.Content[at] != f.key {
		at += 2
	}
	from, to := d.offset(f.key), end
	if at > 0 {
		before, why := d.valueEnd(field{it.node.Content[at-2], it.node.Content[at-1]})
		if why != "" {
			return nil, d.refuseField(f, "cannot be taken out: the field before it "+why)
		}
		from = before
	} else if len(it.node.Content) > 2 {
		to = d.offset(it.node.Content[2])
	}
	if bytes.IndexByte(d.raw[from:d.offset(f.key)], '#') >= 0 || bytes.IndexByte(d.raw[end:to], '#') >= 0 {
		return nil, refuse(d.file, f.key.Line, f.key.Value+" cannot be taken out without the comment beside it", "move the comment, or remove the field")
	}
	return []cut{{from, to, ""}}, nil
}

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
