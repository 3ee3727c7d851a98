package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Inputs of the Action that are no option of promote, and options that are no input:
// its result goes to the workflow by itself.
func notOptions() []string {
	return []string{"command", "image", "args", "token", "app-id", "private-key", "download-url", "build-from-source"}
}

func notInputs() []string { return []string{"output"} }

// TestActionOffersEveryOption holds action.yml and promote's options together: an
// input is the option of its name, and both scripts of the Action rely on that.
func TestActionOffersEveryOption(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Description string }
		Runs   struct {
			Steps []struct{ Env map[string]string }
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	env := action.Runs.Steps[len(action.Runs.Steps)-1].Env
	var options []string
	for _, flag := range new(tool).promoteCommand().Flags {
		name := flag.Names()[0]
		options = append(options, name)
		if slices.Contains(notInputs(), name) {
			continue
		}
		if action.Inputs[name].Description == "" {
			t.Errorf("action.yml has no input %s with a description", name)
		}
		variable := "TAGBOAT_INPUT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if got, want := env[variable], "${{ inputs."+name+" }}"; got != want {
			t.Errorf("the last step of action.yml sets %s to %q, want %s", variable, got, want)
		}
	}
	for name := range action.Inputs {
		if !slices.Contains(options, name) && !slices.Contains(notOptions(), name) {
			t.Errorf("input %s of action.yml is no option of promote", name)
		}
	}
}
