package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"tagboat/record"
	"tagboat/scm/scmtest"
)

// TestHoldsDocument runs every command of docs/holds.md, in its order, and reads
// the file that it shows.
func TestHoldsDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/holds.md")
	if err != nil {
		t.Fatal(err)
	}
	store := scmtest.NewStore("main", map[string]string{"tagboat.yaml": `version: 1
apps:
  todo-api: {images: [{repository: ghcr.io/acme/todo-api}]}
environments:
  - {name: production, path: "apps/{app}/production"}
`})
	env := forges()["gitea"](t, store, t.Cleanup)
	env["USER"] = "mei"
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if block[1] == "yaml" {
			if _, err := record.ParseHold("holds/production.yaml", []byte(block[2])); err != nil {
				t.Error(err)
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			var out, errOut bytes.Buffer
			args := shellWords(strings.ReplaceAll(line, "acme/config", env["REPO"]))
			args = append(args, "--forge", env["FORGE"])
			if code := run(t.Context(), args, &out, &errOut, func(name string) string { return env[name] }); code != 0 {
				t.Errorf("%s: exit %d\n%s", line, code, &errOut)
			}
			ran++
		}
	}
	if ran < 7 {
		t.Errorf("%d commands", ran)
	}
}

// shellWords splits a command line of the documents: spaces and double quotes.
func shellWords(line string) []string {
	var out []string
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
