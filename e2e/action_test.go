//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
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
	ours, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(ours) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	for _, name := range ours {
		copyFile(t, name, filepath.Join(workflows, filepath.Base(name)))
	}
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
func TestNothingIsPastedIntoScripts(t *testing.T) {
	type step struct{ Run, Uses string }
	scripts := 0
	check := func(name string, steps []step) {
		for _, s := range steps {
			if s.Run != "" {
				scripts++
			}
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s: an expression stands in a script:\n%s", name, s.Run)
			}
			if _, version, ok := strings.Cut(s.Uses, "@"); s.Uses != "" && s.Uses != "./" && (!ok || !commit.MatchString(version)) {
				t.Errorf("%s: %s is not a commit", name, s.Uses)
			}
		}
	}
	var action struct{ Runs struct{ Steps []step } }
	readYAML(t, "../action.yml", &action)
	check("action.yml", action.Runs.Steps)
	workflows, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range workflows {
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct{ Steps []step }
		}
		readYAML(t, name, &workflow)
		if diff := cmp.Diff(map[string]string{"contents": "read"}, workflow.Permissions); diff != "" {
			t.Errorf("%s: permissions of all jobs (-want +got):\n%s", name, diff)
		}
		for _, job := range workflow.Jobs {
			check(name, job.Steps)
		}
	}
	if scripts < 5 {
		t.Errorf("looked at %d scripts only", scripts)
	}
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
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
