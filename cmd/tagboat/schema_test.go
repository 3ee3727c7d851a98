package main

import (
	"strings"
	"testing"

	"tagboat/config"
	"tagboat/record"
)

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
