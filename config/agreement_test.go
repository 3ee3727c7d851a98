package config

import (
	"bytes"
	"errors"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func compiled(t testing.TB, schema []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func validates(t testing.TB, schema *jsonschema.Schema, document string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(document), &value); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	return schema.Validate(value)
}

// TestSchemaOfExamples: what is documented is valid by the published schemas.
func TestSchemaOfExamples(t *testing.T) {
	blocks := examples(t)
	if err := validates(t, compiled(t, Schema()), blocks[0]); err != nil {
		t.Error(err)
	}
	if err := validates(t, compiled(t, IncludedSchema()), blocks[1]); err != nil {
		t.Error(err)
	}
}

// TestSchemaAgrees: schema and Load accept and refuse the same documents, as far
// as a schema can tell.
func TestSchemaAgrees(t *testing.T) {
	schema := compiled(t, Schema())
	const head = "version: 1\nenvironments:\n  - {name: a, path: x}\n  - "
	for document, want := range map[string]bool{
		base:                          true,
		head + "{name: b, path: y}\n": true,
		head + "{name: b, paths: [y, z], from: [a]}\n":                  true,
		head + "{name: b, rings: [{name: r, paths: [y]}]}\n":            true,
		head + "{name: b, path: 'y/{ring}', rings: [{name: r}]}\n":      true,
		head + "{name: b, path: y, merge: direct, overriders: []}\n":    true,
		head + "{name: b, path: y, repository: o/r, forge: git}\n":      true,
		head + "{name: b, path: y, from: [a], gates: {approvals: 0}}\n": true,
		head + "{name: b, path: y, from: [a], gates: {soak: 1d12h}}\n":  true,
		head + "{name: b, path: y, promoters: [\"user:x[bot]\"]}\n":     true,
		head + "{name: b, path: y, freeze: []}\n":                       true,
		base + "chat: {slack: {U123: mei}}\n":                           true,
		base + "chat: {slack: {T9A/W123: tagboat_1.x-y}}\n":             true,
		base + "chat: {}\n":                                                                        true,
		base + "chat: {slack: {mei: mei}}\n":                                                       false,
		base + "chat: {slack: {u123: mei}}\n":                                                      false,
		base + "chat: {slack: {X1/U123: mei}}\n":                                                   false,
		base + "chat: {slack: {U123: '@mei'}}\n":                                                   false,
		base + "chat: {slack: {U123: ''}}\n":                                                       false,
		base + "chat: {slack: {U123: [mei]}}\n":                                                    false,
		base + "chat: {slack: {U123: 1}}\n":                                                        false,
		base + "chat: {slack: [U123]}\n":                                                           false,
		base + "chat: {irc: {U123: mei}}\n":                                                        false,
		"version: 1\n":                                                                             false,
		"[]\n":                                                                                     false,
		"version: 2\nenvironments: [{name: a, path: x}]\n":                                         false,
		"version: '1'\nenvironments: [{name: a, path: x}]\n":                                       false,
		"version: 1\nenvironments: []\n":                                                           false,
		"version: 1\nenvironments: {a: {path: x}}\n":                                               false,
		base + "unknown: 1\n":                                                                      false,
		base + "defaults: {merge: never}\n":                                                        false,
		base + "defaults: {path: x}\n":                                                             false,
		base + "defaults: null\n":                                                                  false,
		base + "include: []\n":                                                                     false,
		base + "include: x\n":                                                                      false,
		head + "{path: y}\n":                                                                       false,
		head + "{name: B, path: y}\n":                                                              false,
		head + "{name: b}\n":                                                                       false,
		head + "{name: b, path: ''}\n":                                                             false,
		head + "{name: b, path: \"a\\nb\"}\n":                                                      false,
		head + "{name: b, path: y, paths: [z]}\n":                                                  false,
		head + "{name: b, paths: []}\n":                                                            false,
		head + "{name: b, paths: [y, y]}\n":                                                        false,
		head + "{name: b, path: y, from: a}\n":                                                     false,
		head + "{name: b, path: y, from: []}\n":                                                    false,
		head + "{name: b, path: y, promoters: []}\n":                                               false,
		head + "{name: b, path: y, promoters: [x]}\n":                                              false,
		head + "{name: b, path: y, forge: git}\n":                                                  false,
		head + "{name: b, path: y, repository: o/r, forge: svn}\n":                                 false,
		head + "{name: b, path: y, copy: 'true'}\n":                                                false,
		head + "{name: b, path: y, branch: 1}\n":                                                   false,
		head + "{name: b, path: y, from: [a], gates: {soak: 60}}\n":                                false,
		head + "{name: b, path: y, from: [a], gates: {soak: -1h}}\n":                               false,
		head + "{name: b, path: y, from: [a], gates: {soak: ''}}\n":                                false,
		head + "{name: b, path: y, from: [a], gates: {approvals: -1}}\n":                           false,
		head + "{name: b, path: y, from: [a], gates: {approvals: 1.5}}\n":                          false,
		head + "{name: b, path: y, from: [a], gates: {approvals: 101}}\n":                          false,
		head + "{name: b, path: y, gates: {platforms: [amd64]}}\n":                                 false,
		head + "{name: b, path: y, freeze: [{duration: 1h}]}\n":                                    false,
		head + "{name: b, path: y, freeze: [{cron: 0 0 * * *}]}\n":                                 false,
		head + "{name: b, path: y, pull-request: {draft: 1}}\n":                                    false,
		head + "{name: b, rings: [{paths: [y]}]}\n":                                                false,
		"version: 1\napps: {A: {images: [{repository: x}]}}\nenvironments: [{name: a, path: x}]\n": false,
		"version: 1\napps: {a: {images: []}}\nenvironments: [{name: a, path: x}]\n":                false,
		"version: 1\napps: {a: {}}\nenvironments: [{name: a, path: x}]\n":                          false,
		"version: 1\napps: {a: {images: [x]}}\nenvironments: [{name: a, path: x}]\n":               false,
		"version: 1\napps: {a: {images: [{name: x}]}}\nenvironments: [{name: a, path: x}]\n":       false,
		"version: 1\napps: [a]\nenvironments: [{name: a, path: x}]\n":                              false,
	} {
		_, err := Load(tree("tagboat.yaml", document))
		if got := err == nil; got != want || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("Load: %v for\n%s", err, document)
		}
		if err := validates(t, schema, document); (err == nil) != want {
			t.Errorf("schema: %v for\n%s", err, document)
		}
	}
}

// TestIncludedSchemaAgrees is the same for a team's file.
func TestIncludedSchemaAgrees(t *testing.T) {
	schema := compiled(t, IncludedSchema())
	for document, want := range map[string]bool{
		shopApps:       true,
		"version: 1\n": true,
		"version: 1\nenvironments: [{name: dev, merge: review, copy: false}]\n":                   true,
		"version: 1\nenvironments: [{name: staging, pull-request: {labels: [x], draft: true}}]\n": true,
		"apps: {}\n":                                                             false,
		"version: 1\ninclude: [a/b.yaml]\n":                                      false,
		"version: 1\ndefaults: {}\n":                                             false,
		"version: 1\nenvironments: []\n":                                         false,
		"version: 1\nenvironments: [{merge: review}]\n":                          false,
		"version: 1\nenvironments: [{name: dev, path: x}]\n":                     false,
		"version: 1\nenvironments: [{name: dev, skip-ci: true}]\n":               false,
		"version: 1\nenvironments: [{name: dev, freeze-exceptions: []}]\n":       false,
		"version: 1\nenvironments: [{name: dev, pull-request: {title: x}}]\n":    false,
		"version: 1\nenvironments: [{name: dev, gates: {platforms: [amd64]}}]\n": false,
	} {
		if _, err := team(document); (err == nil) != want {
			t.Errorf("Load: %v for\n%s", err, document)
		}
		if err := validates(t, schema, document); (err == nil) != want {
			t.Errorf("schema: %v for\n%s", err, document)
		}
	}
}
