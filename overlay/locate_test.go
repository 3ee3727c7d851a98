package overlay

import (
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestLocate holds that the line and column of a node lead to its bytes.
func TestLocate(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":                      {"k: value\n", "value"},
		"single quotes":              {"k: 'it''s' # c\n", "'it''s'"},
		"double quotes":              {`k: "a\"b\\" # c` + "\n", `"a\"b\\"`},
		"in flow":                    {"k: value\nm: {a: b}\n", "value"},
		"after runes of two bytes":   {"{é: é, k: value}\n", "value"},
		"after runes of three bytes": {"{本: 本本, k: 'value'}\n", "'value'"},
		"after runes of four bytes":  {"{\"🚀\": \"🚀🚀\", k: \"value\"}\n", `"value"`},
		"after a combining mark":     {"{e\u0301: e\u0301, k: value}\n", "value"},
		"after a BOM":                {bom + "k: value\n", "value"},
		"after a BOM and runes":      {bom + "{é: 本, k: value}\n", "value"},
		"after a BOM, second line":   {bom + "a: é\nk: value\n", "value"},
		"after a BOM and ---":        {bom + "---\nk: value\n", "value"},
		"CRLF":                       {"a: b\r\nk: value\r\n", "value"},
		"CRLF and BOM":               {bom + "# é\r\na: b\r\nk: value\r\n", "value"},
		"value on the next line":     {"k:\n    value\n", "value"},
		"after a tab":                {"k:\tvalue\n", "value"},
		"quoted key":                 {"\"k\": value\n", "value"},
		"question mark":              {"? k\n: value\n", "value"},
		"anchor":                     {"k: &a value\nm: *a\n", "value"},
		"tag":                        {"k: !!str value\n", "value"},
		"anchor and tag":             {"k: &a !!str  'value'\n", "'value'"},
		"tag and anchor":             {"k: !!str &a value\n", "value"},
		"non-specific tag":           {"k: ! value\n", "value"},
		"no final newline":           {"k: value", "value"},
		"JSON":                       {`{"k":"value"}`, `"value"`},
		"a comment of blanks below":  {"k: value\n#\n", "value"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := parse("f", []byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			s, why := d.locate(valueOf(d, "k"))
			if got := string(d.raw[s.start:s.end]); why != "" || got != c.want {
				t.Errorf("locate: %q, %q; want %q", got, why, c.want)
			}
		})
	}
}

func valueOf(d *document, key string) *yaml.Node {
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		if d.root.Content[i].Value == key {
			return d.root.Content[i+1]
		}
	}
	return &yaml.Node{}
}

// TestLocateSaysWhyNot holds the values whose bytes cannot be told.
func TestLocateSaysWhyNot(t *testing.T) {
	for in, want := range map[string]string{
		"k: |\n  value\n":               "block scalar",
		"k: >-\n  value\n":              "block scalar",
		"k: one\n  two\n":               "several lines",
		"k: 'one\n  two'\n":             "several lines",
		"k: \"one\n  two\"\n":           "several lines",
		"k: \"one\\\n  two\"\n":         "several lines",
		"a: &a v\nk: *a\n":              "alias",
		"k: [v]\n":                      "not a plain value",
		"k: {v: w}\n":                   "not a plain value",
		"k: &a\n  value\n":              "another line",
		"k: !!str\n  value\n":           "another line",
		"k: !!str\r\n  value\r\n":       "another line",
		"k: &a !!str\n  'value'\n":      "another line",
		"k: !!str # comment\n  value\n": "several lines",
	} {
		d, err := parse("f", []byte(in))
		if err != nil {
			t.Errorf("parse %q: %v", in, err)
			continue
		}
		if s, why := d.locate(valueOf(d, "k")); !strings.Contains(why, want) {
			t.Errorf("locate in %q: %+v, %q; want %q", in, s, why, want)
		}
	}
}

// TestLineBreaks holds which break a new line gets.
func TestLineBreaks(t *testing.T) {
	d := &document{raw: []byte("a\r\nb\nc")}
	d.lines = lineStarts(d.raw)
	for line, want := range map[int]string{1: "\r\n", 2: "\n", 3: "\n"} {
		if got := d.eol(line); got != want {
			t.Errorf("eol of line %d: %q, want %q", line, got, want)
		}
	}
	for line, want := range map[int]int{1: 1, 2: 4, 3: 6} {
		if got := d.lineEnd(line); got != want {
			t.Errorf("end of line %d: %d, want %d", line, got, want)
		}
	}
	only := &document{raw: []byte("a"), lines: []int{0}}
	if got := only.eol(1); got != "\n" {
		t.Errorf("eol of a file without one: %q", got)
	}
}
