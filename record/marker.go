package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Marker stands invisibly in a pull request's body. It helps to find the pull
// request and to see that its text is up to date. Anybody who may edit the body
// may edit it, so it is never the source of a digest.
type Marker struct {
	App         string `json:"app"`
	Environment string `json:"environment"`
	Ring        string `json:"ring,omitempty"`
	Content     string `json:"content,omitempty"` // Content of the edits that the text tells
	Superseded  bool   `json:"superseded,omitempty"`
}

// BodyStart stands where a pull request's text begins; the marker ends it.
const BodyStart = "<!-- tagboat-text -->"

// Within puts a new text in the place of the old one in a pull request's body, and
// keeps what people have written above and below it. A body without both of its ends
// is replaced.
func Within(body, text string) string {
	start := strings.Index(body, BodyStart)
	end := strings.LastIndex(body, markerStart)
	if start < 0 || end < start {
		return text
	}
	_, below, found := strings.Cut(body[end:], markerEnd)
	if !found {
		return text
	}
	return body[:start] + strings.TrimRight(text, "\n") + strings.TrimSuffix(below, "\n") + "\n"
}

const (
	markerStart = "<!-- tagboat: "
	markerEnd   = " -->"
)

// String writes the marker as an HTML comment of one line.
func (m Marker) String() string {
	b, err := json.Marshal(m) // escapes '>' so that nothing in it ends the comment
	if err != nil {
		panic(err) // a struct of strings and a bool
	}
	return markerStart + string(b) + markerEnd
}

// ParseMarker reads the last marker of a body; false where there is none that reads.
func ParseMarker(body string) (Marker, bool) {
	start := strings.LastIndex(body, markerStart)
	if start < 0 {
		return Marker{}, false
	}
	text, _, found := strings.Cut(body[start+len(markerStart):], markerEnd)
	var m Marker
	if !found || json.Unmarshal([]byte(text), &m) != nil {
		return Marker{}, false
	}
	return m, m.App != ""
}

// ReplaceMarker returns the body with its last marker replaced by m, or with m
// appended where it has none.
func ReplaceMarker(body string, m Marker) string {
	start := strings.LastIndex(body, markerStart)
	if start < 0 {
		return strings.TrimRight(body, "\n") + "\n\n" + m.String() + "\n"
	}
	_, after, found := strings.Cut(body[start:], markerEnd)
	if !found {
		after = ""
	}
	return body[:start] + m.String() + after
}

// Content is a short name of a set of edits: equal for equal edits, whatever
// their order.
func Content(edits []Edit) string {
	lines := make([]string, len(edits))
	for i, e := range edits {
		lines[i] = e.String()
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}
