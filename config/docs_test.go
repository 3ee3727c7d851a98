package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
)

const (
	docsFile      = "../docs/configuration.md"
	referenceMark = "<!-- from here on made from the types in config/ by: go test ./config -update -->\n"
)

// examples are the YAML blocks of the documentation, in order.
func examples(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(text), "```") {
		if yaml, ok := strings.CutPrefix(part, "yaml\n"); ok && i%2 == 1 {
			blocks = append(blocks, yaml)
		}
	}
	return blocks
}

// fullExample is the documentation's example with everything, without the include
// of files that are not there.
func fullExample(t testing.TB) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(examples(t)[0]) {
		if !strings.HasPrefix(line, "include:") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestDocumentedExamples loads what the documentation shows.
func TestDocumentedExamples(t *testing.T) {
	blocks := examples(t)
	if len(blocks) != 2 {
		t.Fatalf("%d examples, want the root's and a team's", len(blocks))
	}
	c := load(t, "tagboat.yaml", blocks[0], "teams/shop/tagboat.yaml", blocks[1])
	if _, err := c.App("shop-api"); err != nil {
		t.Error(err)
	}
	// Every key stands in the example: it is the place where people look first.
	for _, of := range []any{Config{}, Chat{}, App{}, Image{}, Environment{}, Ring{}, Gates{}, Window{}, PullRequest{}} {
		for _, f := range fieldsOf(reflect.TypeOf(of)) {
			if f.name != "path" && f.name != "paths" && !strings.Contains(blocks[0], f.name+":") {
				t.Errorf("the example does not show %s of %T", f.name, of)
			}
		}
	}
}

// TestReference holds the documentation's last part to the types.
func TestReference(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	written, _, found := strings.Cut(string(text), referenceMark)
	if !found {
		t.Fatal("the documentation has no place for the reference")
	}
	golden(t, docsFile, written+referenceMark+reference(t))
}

// reference writes one table for each type.
func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	root := reflected(t, &Config{}, "")
	table := func(title string, s *jsonschema.Schema, but ...string) {
		fmt.Fprintf(&b, "\n### %s\n\n| key | value | what it says |\n| --- | --- | --- |\n", title)
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			if slices.Contains(but, pair.Key) {
				continue
			}
			needed := ""
			if slices.Contains(s.Required, pair.Key) {
				needed = "**needed.** "
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s%s%s |\n", pair.Key, valueOf(pair.Value), needed, pair.Value.Description, standard(pair.Value))
		}
	}
	defs := root.Definitions
	var rules []string
	for pair := defs["Policy"].Properties.Oldest(); pair != nil; pair = pair.Next() {
		rules = append(rules, pair.Key)
	}
	table("The file", defs["Config"])
	table("`apps.NAME`", defs["App"])
	table("`apps.NAME.images[]`", defs["Image"])
	table("`environments[]`", defs["Environment"], rules...)
	table("`environments[].rings[]`", defs["Ring"])
	table("Rules: `defaults` and `environments[]`", defs["Policy"])
	table("`gates`", defs["Gates"])
	table("`freeze[]` and `freeze-exceptions[]`", defs["Window"])
	table("`pull-request`", defs["PullRequest"])
	included := reflected(t, &Included{}, "").Definitions
	table("`chat`", defs["Chat"])
	table("A team's file", included["Included"])
	table("A team's `environments[]`", included["Tightened"])
	return b.String()
}

// valueOf says what a key's value is.
func valueOf(s *jsonschema.Schema) string {
	if s.Ref != "" {
		return "keys, see below"
	}
	switch {
	case s.Type == "array" && s.Items.Ref != "":
		return "list, see below"
	case s.Type == "array":
		return "list of texts"
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Type == "string":
		return "texts by name"
	case s.Type == "object":
		return "keys by name, see below"
	case s.Pattern == durationGrammar.String():
		return "duration"
	case s.Type == "string" && s.Enum != nil:
		words := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", w)
		}
		return strings.Join(words, ", ")
	case s.Type == "string":
		return "text"
	case s.Type == "integer":
		return "number"
	case s.Type == "boolean":
		return "`true`, `false`"
	}
	return s.Type
}

func standard(s *jsonschema.Schema) string {
	if s.Default == nil {
		return ""
	}
	text, _ := json.Marshal(s.Default)
	return fmt.Sprintf(" Default: `%s`.", strings.Trim(string(text), `"`))
}
