package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
)

var update = flag.Bool("update", false, "rewrite golden files") //nolint:gochecknoglobals // flags of a test are

// golden compares a text with a file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s is not what the types say; go test ./config -update rewrites it (-want +got):\n%s", file, diff)
	}
}

// TestSchema holds the published schemas to the types.
func TestSchema(t *testing.T) {
	golden(t, "schema.json", encode(t, reflected(t, &Config{}, "tagboat.yaml")))
	golden(t, "schema-included.json", encode(t, reflected(t, &Included{}, "tagboat.yaml of a team, which the root's includes")))
}

func encode(t *testing.T, s *jsonschema.Schema) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func reflected(t *testing.T, v any, title string) *jsonschema.Schema {
	t.Helper()
	r := &jsonschema.Reflector{FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, Anonymous: true, Mapper: mapped}
	if err := r.AddGoComments("tagboat/config", ".", jsonschema.WithFullComment()); err != nil {
		t.Fatal(err)
	}
	for name, comment := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(comment), " ")
	}
	s := r.Reflect(v)
	s.Title = title
	s.ID = "urn:tagboat:config:1"
	if _, included := v.(*Included); included {
		s.ID = "urn:tagboat:included:1"
	}
	for name, def := range s.Definitions {
		shape(name, def)
	}
	return s
}

// mapped gives the types that are written as text.
func mapped(t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[Duration]() {
		return &jsonschema.Schema{Type: "string", Pattern: durationGrammar.String(), MinLength: one(), Examples: []any{"24h"}}
	}
	return nil
}

func one() *uint64 { n := uint64(1); return &n }

// shape adds to a type what no tag can say: that every text is one line, what a
// name looks like, which keys go together.
func shape(name string, s *jsonschema.Schema) {
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		texts(pair.Value)
	}
	property := func(key string) *jsonschema.Schema { p, _ := s.Properties.Get(key); return p }
	items := func(key string, grammar *regexp.Regexp) { property(key).Items.Pattern = grammar.String() }
	switch name {
	case "Config", "Included":
		property("version").Enum = []any{1}
		limit := uint64(itemLimit)
		property("apps").MaxProperties = &limit
		property("apps").PropertyNames = &jsonschema.Schema{Pattern: appGrammar.String()}
	case "Chat":
		limit := uint64(itemLimit)
		property("slack").MaxProperties = &limit
		property("slack").PropertyNames = &jsonschema.Schema{Pattern: slackGrammar.String()}
		property("slack").AdditionalProperties = &jsonschema.Schema{Type: "string", Pattern: loginGrammar.String(), MinLength: one()}
	case "App":
		property("group").Pattern = appGrammar.String()
		items("environments", nameGrammar)
	case "Environment":
		property("name").Pattern = nameGrammar.String()
		items("from", nameGrammar)
		for _, key := range []string{"path", "paths", "rings"} {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{key}})
		}
		s.Not = &jsonschema.Schema{Required: []string{"path", "paths"}}
		s.DependentRequired = map[string][]string{"forge": {"repository"}}
		fallthrough
	case "Policy":
		items("promoters", actorGrammar)
		items("overriders", actorGrammar)
	case "Tightened":
		property("name").Pattern = nameGrammar.String()
		items("promoters", actorGrammar)
		items("overriders", actorGrammar)
	case "Ring":
		property("name").Pattern = nameGrammar.String()
	case "Gates":
		items("platforms", platformGrammar)
	}
}

// texts bounds a text, and a list and its texts.
func texts(s *jsonschema.Schema) {
	switch s.Type {
	case "string":
		if s.Enum != nil || s.Pattern != "" {
			return
		}
		limit := uint64(textLimit)
		s.MinLength, s.MaxLength, s.Pattern = one(), &limit, `^[^\x00-\x1f\x7f]*$`
	case "array":
		limit := uint64(itemLimit)
		s.MaxItems = &limit
		texts(s.Items)
	}
}
