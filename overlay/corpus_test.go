package overlay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tagboat/image"
)

// variant is a way in which a file's bytes may differ and mean the same.
type variant struct {
	name string
	of   func(string) string
}

func variants() []variant {
	return []variant{
		{"as is", func(s string) string { return s }},
		{"CRLF", crlf},
		{"BOM", func(s string) string { return bom + s }},
		{"BOM and CRLF", func(s string) string { return bom + crlf(s) }},
		{"no final newline", func(s string) string { return strings.TrimRight(s, "\r\n") }},
		{"leading ---", func(s string) string { return "---\n" + s }},
		{"non-ASCII comment above", func(s string) string { return "# Größe 本 🚀 e\u0301\n" + s }},
	}
}

func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// corpusReport counts what the corpus test did.
type corpusReport struct {
	files, entries, edits, lines, outside int
	refused                               map[string]int
}

// TestCorpus edits every entry of real kustomizations, in each variant.
func TestCorpus(t *testing.T) {
	files, _ := filepath.Glob("../../shared/corpus/*.yaml")
	if len(files) == 0 {
		t.Skip("THE CORPUS IS NOT HERE: ../../shared/corpus/*.yaml has no files; nothing of it was tested")
	}
	reports := make([]corpusReport, len(variants()))
	t.Run("variants", func(t *testing.T) {
		for i, v := range variants() {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				reports[i].refused = map[string]int{}
				for _, f := range files {
					raw, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					reports[i].corpusFile(t, filepath.Base(f), v.of(string(raw)))
				}
			})
		}
	})
	all := corpusReport{refused: map[string]int{}}
	for _, r := range reports {
		all.files, all.entries = max(all.files, r.files), max(all.entries, r.entries)
		all.edits, all.lines, all.outside = all.edits+r.edits, all.lines+r.lines, all.outside+r.outside
		for why, n := range r.refused {
			all.refused[why] += n
		}
	}
	var reasons []string
	for why, n := range all.refused {
		reasons = append(reasons, fmt.Sprintf("  %d: %s", n, why))
	}
	slices.Sort(reasons)
	t.Logf("corpus: %d files, %d entries, %d variants, 2 pins: %d edits, %d lines changed, bytes changed outside the entry = %d, refused:\n%s",
		all.files, all.entries, len(variants()), all.edits, all.lines, all.outside, strings.Join(reasons, "\n"))
	if all.outside != 0 || all.edits == 0 {
		t.Errorf("%d bytes changed outside the entry in %d edits", all.outside, all.edits)
	}
}

var positions = regexp.MustCompile(`[^ ]*kustomization\.yaml:?\d*: |line \d+`)

func (r *corpusReport) corpusFile(t *testing.T, name, content string) {
	r.files++
	fsys := fstest.MapFS{stagingFile: {Data: []byte(content)}}
	entries, err := Entries(fsys, stagingDir)
	if err != nil {
		r.refused[fmt.Sprintf("%s: the file: %s", name, positions.ReplaceAllString(err.Error(), ""))]++
		return
	}
	r.entries += len(entries)
	for _, e := range entries {
		for _, pin := range []Pin{PinTagAndDigest, PinDigest} {
			s := Set{Entry: e, To: image.Reference{Repository: "r", Tag: "v0.0.2-new", Digest: newDigest}, Pin: pin}
			edited, err := Edit(fsys, []Set{s})
			if err != nil {
				r.refused[fmt.Sprintf("%s: entry %s: %s", name, e.Name, positions.ReplaceAllString(err.Error(), ""))]++
				continue
			}
			r.edits++
			r.check(t, name+" "+e.Name, content, s, edited)
		}
	}
}

// check looks at the bytes without any of the package's own means: the common
// start and end of the two files must enclose at most the entry's few lines.
func (r *corpusReport) check(t *testing.T, name, content string, s Set, e Edited) {
	t.Helper()
	if len(e.Files) != 1 || len(e.Changes) != 1 || string(e.Files[0].Before) != content {
		t.Errorf("%s: %d files and %d changes; want one of each", name, len(e.Files), len(e.Changes))
		return
	}
	after := string(e.Files[0].After)
	old, now := strings.SplitAfter(content, "\n"), strings.SplitAfter(after, "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	old, now = old[head:len(old)-tail], now[head:len(now)-tail]
	r.lines += max(len(old), len(now))
	first, last := s.Entry.Line-1, entryEnd(content, s.Entry.Line-1)
	if head < first || head+len(old)-1 > last {
		r.outside += len(strings.Join(old, ""))
		t.Errorf("%s: lines %d to %d changed, the entry is on %d to %d", name, head+1, head+len(old), first+1, last+1)
	}
	again, err := Edit(fstest.MapFS{stagingFile: {Data: e.Files[0].After}}, []Set{s})
	if err != nil || len(again.Files) != 0 || len(again.Changes) != 0 {
		t.Errorf("%s: a second run: %v, %d files", name, err, len(again.Files))
	}
	if bytes.Count(e.Files[0].After, []byte("\r")) > 0 != strings.Contains(content, "\r") {
		t.Errorf("%s: the line ends changed", name)
	}
	if strings.HasSuffix(after, "\n") != strings.HasSuffix(content, "\n") {
		t.Errorf("%s: the final newline changed", name)
	}
}

// entryEnd is the 0-based last line of a block entry: the lines below it that
// are indented deeper than its dash.
func entryEnd(content string, first int) int {
	lines := strings.Split(content, "\n")
	dash := strings.IndexByte(lines[first], '-')
	end := first
	for i := first + 1; i < len(lines); i++ {
		text := strings.TrimRight(lines[i], "\r")
		if indent := len(text) - len(strings.TrimLeft(text, " ")); text != "" && indent <= dash {
			break
		}
		end = i
	}
	return end
}
