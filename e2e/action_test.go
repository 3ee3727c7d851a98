//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exampleWorkflow uses every kind of input of the action, and its outputs.
const exampleWorkflow = `name: promote
on: {push: {branches: [main]}}
permissions: {contents: read}
jobs:
  promote:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
      - id: tagboat
        uses: ./
        with:
          image: ghcr.io/acme/todo-api:v1.4.0
          repo: acme/config
          path: apps/todo-api/overlays/staging
          label: |
            promotion
            staging
          draft: "true"
          app-id: ${{ vars.TAGBOAT_APP_ID }}
          private-key: ${{ secrets.TAGBOAT_APP_KEY }}
      - run: echo "$URL"
        env:
          URL: ${{ steps.tagboat.outputs.pull-request-url }}
`

func TestWorkflowsAreSound(t *testing.T) {
	project := t.TempDir()
	workflows := filepath.Join(project, ".github", "workflows")
	if err := os.MkdirAll(workflows, 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, "../action.yml", filepath.Join(project, "action.yml"))
	copyFile(t, "../.github/workflows/ci.yml", filepath.Join(workflows, "ci.yml"))
	if err := os.WriteFile(filepath.Join(workflows, "promote.yml"), []byte(exampleWorkflow), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", project).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	lint := exec.CommandContext(t.Context(), tool(t, "TAGBOAT_ACTIONLINT"), "-no-color")
	lint.Dir = project
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}

// Text of an expression inside a script is run as script: a branch's name with
// $(…) in it would be a command.
func TestActionPastesNothingIntoScripts(t *testing.T) {
	action, err := os.ReadFile("../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for block := range strings.SplitSeq(string(action), "run: |\n") {
		script, _, _ := strings.Cut(block, "\n    - name:")
		if scripts++; scripts > 1 && strings.Contains(script, "${{") {
			t.Errorf("an expression stands in a script:\n%s", script)
		}
	}
	if scripts != 3 {
		t.Errorf("found %d scripts in action.yml, want 2", scripts-1)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
