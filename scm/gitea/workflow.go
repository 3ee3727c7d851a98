package gitea

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"tagboat/scm"
)

// checkWorkflow refuses what GitHub does and Gitea does not: a workflow without
// the trigger, an input that it does not declare, one that it requires and that is
// not given. A workflow that is not where Gitea looks by default is its to judge.
func (r *Repository) checkWorkflow(ctx context.Context, tip scm.Tip, file string, given map[string]string) error {
	content, at, err := r.readWorkflow(ctx, tip.Commit.SHA, file)
	if err != nil || content == nil {
		return err
	}
	var w workflowFile
	if err := yaml.Unmarshal(content, &w); err != nil {
		return fmt.Errorf("%w: %s on %s is no YAML: %w", scm.ErrRefused, at, tip.Branch, err)
	}
	declared, ok := w.inputs()
	if !ok {
		return fmt.Errorf("%w: %s on %s does not have 'workflow_dispatch' in its on:; add it", scm.ErrRefused, at, tip.Branch)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := declared[name]; !ok {
			return fmt.Errorf("%w: %s on %s declares no input %s; it has %s", scm.ErrRefused, at, tip.Branch, name, names(declared))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if _, ok := given[name]; !ok && declared[name].Required && declared[name].Default == nil {
			return fmt.Errorf("%w: %s on %s requires input %s", scm.ErrRefused, at, tip.Branch, name)
		}
	}
	return nil
}

func names(declared map[string]input) string {
	if len(declared) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(declared)), ", ")
}

// readWorkflow reads a workflow from where Gitea looks by default (WORKFLOW_DIRS in
// its [actions]). Nil: it is not there.
func (r *Repository) readWorkflow(ctx context.Context, commit, file string) (content []byte, at string, err error) {
	files := r.Files(ctx, commit)
	for _, dir := range []string{".gitea/workflows/", ".github/workflows/"} {
		content, err = fs.ReadFile(files, dir+file)
		if !errors.Is(err, fs.ErrNotExist) {
			return content, dir + file, err
		}
	}
	return nil, "", nil
}

// workflowFile is the part of a workflow file that says what starts it: on is one
// event, a list of events, or events with their settings.
type workflowFile struct {
	On yaml.Node `yaml:"on"`
}

type input struct {
	Required bool
	Default  any
}

// inputs are the declared inputs; ok is false without the trigger.
func (w workflowFile) inputs() (declared map[string]input, ok bool) {
	var events map[string]yaml.Node
	var list []string
	if w.On.Kind == yaml.ScalarNode {
		return nil, w.On.Value == "workflow_dispatch"
	}
	if w.On.Decode(&list) == nil {
		return nil, slices.Contains(list, "workflow_dispatch")
	}
	if w.On.Decode(&events) != nil {
		return nil, false
	}
	node, ok := events["workflow_dispatch"]
	var settings struct{ Inputs map[string]input }
	if ok && node.Decode(&settings) != nil {
		return nil, true // inputs that are malformed declare nothing
	}
	return settings.Inputs, ok
}
