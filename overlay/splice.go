package overlay

import (
	"bytes"
	"errors"
	"slices"
)

// cut replaces raw[start:end] by text.
type cut struct {
	start, end int
	text       string
}

// splice applies the cuts. Those at one place go in the order given.
func splice(raw []byte, cuts []cut) ([]byte, error) {
	cuts = slices.Clone(cuts)
	slices.SortStableFunc(cuts, func(a, b cut) int { return a.start - b.start })
	var out bytes.Buffer
	at := 0
	for _, c := range cuts {
		if c.start < at || c.end < c.start || c.end > len(raw) {
			return nil, errors.New("two changes fall on the same bytes")
		}
		out.Write(raw[at:c.start])
		out.WriteString(c.text)
		at = c.end
	}
	out.Write(raw[at:])
	return out.Bytes(), nil
}
