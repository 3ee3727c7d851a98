package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tagboat/promote"
	"tagboat/registry"
)

// TestCodesAreDocumented: every code that an error can have is in docs/outcomes.md
// with its exit code.
func TestCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/outcomes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range failures() {
		found := false
		for line := range strings.Lines(string(doc)) {
			if strings.HasPrefix(line, "| `") && strings.Contains(line, "`"+known.code+"`") && strings.Contains(line, fmt.Sprintf("| %d |", known.exit)) {
				found = true
			}
		}
		if !found {
			t.Errorf("docs/outcomes.md has no row for %s with exit code %d", known.code, known.exit)
		}
	}
}

func TestFailureOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want failure
	}{
		{fmt.Errorf("x: %w", promote.ErrMisused), failure{"misused", 2}},
		{fmt.Errorf("entry: %w", fmt.Errorf("y: %w", registry.ErrNotFound)), failure{"image-not-found", 1}},
		{fmt.Errorf("whatever"), failure{"failed", 1}},
	} {
		if got := failureOf(c.err); got != c.want {
			t.Errorf("failureOf(%v) = %+v", c.err, got)
		}
	}
}
