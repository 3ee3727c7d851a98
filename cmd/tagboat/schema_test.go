package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"tagboat/config"
	"tagboat/overlay"
	"tagboat/record"
)

// TestFilePaths holds the paths that the configuration takes for files to those that
// overlay does.
func TestFilePaths(t *testing.T) {
	for _, p := range []string{"a/x.yaml", "x.yml", "x.json", "a.yaml#todo", "a.json#{app}", "a.yaml/b", "a", "a.yamlx", "a.YAML", "a#b", "a.yaml#", "a.yaml#b#c", "a.yaml#b/c"} {
		document := "version: 1\nenvironments: [{name: dev, path: \"" + p + "\"}]\n"
		_, err := config.Load(fstest.MapFS{"tagboat.yaml": {Data: []byte(document)}})
		_, _, file := overlay.FileOf(strings.ReplaceAll(p, "{app}", "todo"))
		if hash := strings.Contains(p, "#"); (err == nil) != (file || !hash) {
			t.Errorf("%s: overlay says that it is a file: %t, config says %v", p, file, err)
		}
	}
}

// TestNameGrammars holds the names that the configuration takes to those that
// make a head branch: the two packages may not import each other.
func TestNameGrammars(t *testing.T) {
	for _, name := range []string{
		"", "a", "0", "todo-api", "a.b_c", "Staging", "a/b", "a..b", "a.lock", ".a", "a.", "-a", "a-", "_a", "a_", "a b", "a\n", "é", "..",
		"a.locks", "a--b", "a-.b", strings.Repeat("a", 99),
	} {
		if ours, theirs := config.CheckName(name), record.CheckName("ring", name); (ours == nil) != (theirs == nil) {
			t.Errorf("name %q: config says %v, record %v", name, ours, theirs)
		}
		if ours, theirs := config.CheckApp(name), record.CheckApp(name); (ours == nil) != (theirs == nil) {
			t.Errorf("app %q: config says %v, record %v", name, ours, theirs)
		}
	}
}
