package overlay

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// checkRoot refuses to add to a mapping whose text another place repeats.
func (d *document) checkRoot() error {
	for _, n := range append(d.chain[:len(d.chain):len(d.chain)], d.root) {
		if alias := d.aliases[n]; alias != nil {
			return refuse(d.file, n.Line, "the anchor &"+n.Anchor+" would carry the change to where it is repeated (*"+alias.Value+")", "write it out in both places")
		}
	}
	return nil
}

// siteInObject is below the last line of the mapping that is to get images.
func (d *document) siteInObject() (site, error) {
	if d.root.Style&yaml.FlowStyle != 0 || len(d.root.Content) == 0 {
		return site{}, refuse(d.file, d.root.Line, "the place for images is written in braces", "write images: [] into them")
	}
	st := d.siblingStyle()
	column := d.root.Content[0].Column
	s := site{item: func(w []write) string { return d.blockItem(st, w) }}
	if endsInBlock(d.root) {
		// A line more might be text of the block: go before its key.
		s.at = d.lastKeyStart()
		st.eol = d.eol(d.lineOf(s.at))
		if s.at > d.lines[d.root.Content[0].Line-1] {
			s.head, s.tail = strings.Repeat(" ", column-1)+"images:", st.eol
			return s, nil
		}
		return site{}, refuse(d.file, d.root.Line, "what is there ends in a block scalar", "write images: [] above it")
	}
	end := d.blockEnd(d.root.Content[0].Line, column-2)
	st.eol = d.eol(end)
	s.at, s.head = d.lineEnd(end), st.eol+strings.Repeat(" ", column-1)+"images:"
	return s, nil
}

// stringEnd is the offset behind a string of a flow list, or -1; 0 in a block list.
func (d *document) stringEnd(it item) int {
	if it.alias != nil || d.images.Style&yaml.FlowStyle == 0 {
		return 0
	}
	s, why := d.locate(it.node)
	if why != "" {
		return -1
	}
	return s.end
}
