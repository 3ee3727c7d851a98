package scmtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

// ErrNoRun is returned where there is no such run.
var ErrNoRun = errors.New("no such run")

// Run is one run of a workflow, or a pipeline, of a Store.
type Run struct {
	ID       int64
	Workflow string // the file's name
	Branch   string
	Event    string // in the word of the forge that is played
	Actor    string // login of who started it
	Again    string // login of who started it again; "" is nobody
	Inputs   map[string]any
	Title    string
	State    string // queued, running, success, failure or cancelled
	Log      string // what its one job printed
	Created  time.Time
}

// StartRun starts a run: ID and Created are the Store's, State is queued unless
// given.
func (s *Store) StartRun(r Run) Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ID, r.Created = int64(7001+len(s.runs)), s.clock()
	if r.State == "" {
		r.State = "queued"
	}
	s.runs = append(s.runs, &r)
	return r
}

// FindRun gives a run, or ErrNoRun.
func (s *Store) FindRun(id int64) (Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.ID == id {
			return *r, nil
		}
	}
	return Run{}, fmt.Errorf("%w: %d", ErrNoRun, id)
}

// Runs are all runs, newest first.
func (s *Store) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Run
	for _, r := range slices.Backward(s.runs) {
		list = append(list, *r)
	}
	return list
}

// SetRun says how far a run is and what it has printed, or ErrNoRun.
func (s *Store) SetRun(id int64, state, log string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.ID == id {
			r.State, r.Log = state, log
			return nil
		}
	}
	return fmt.Errorf("%w: %d", ErrNoRun, id)
}

// Workflow is what a workflow file (or .gitlab-ci.yml) says of being started by
// request.
type Workflow struct {
	Dispatch bool // it has the trigger; a pipeline always has
	Inputs   map[string]Input
	RunName  string // with ${{ inputs.NAME }} in it
}

// Input is one declared input.
type Input struct {
	Type     string // "" is string
	Required bool   // and without a default
}

// ParseWorkflow reads a file of GitHub's or Gitea's workflows.
func ParseWorkflow(file []byte) (Workflow, error) {
	var doc struct {
		On      yaml.Node
		RunName string `yaml:"run-name"`
	}
	if err := yaml.Unmarshal(file, &doc); err != nil {
		return Workflow{}, fmt.Errorf("parse the workflow: %w", err)
	}
	w := Workflow{RunName: doc.RunName}
	var name string
	var names []string
	var events map[string]yaml.Node
	switch {
	case doc.On.Decode(&name) == nil:
		w.Dispatch = name == "workflow_dispatch"
	case doc.On.Decode(&names) == nil:
		w.Dispatch = slices.Contains(names, "workflow_dispatch")
	case doc.On.Decode(&events) == nil:
		var at yaml.Node
		if at, w.Dispatch = events["workflow_dispatch"]; w.Dispatch {
			return w.withInputs(at, false)
		}
	}
	return w, nil
}

// ParsePipeline reads a .gitlab-ci.yml: its inputs stand in a first document.
func ParsePipeline(file []byte) (Workflow, error) {
	var header struct{ Spec yaml.Node }
	if err := yaml.NewDecoder(bytes.NewReader(file)).Decode(&header); err != nil {
		return Workflow{}, fmt.Errorf("parse the pipeline: %w", err)
	}
	return Workflow{Dispatch: true}.withInputs(header.Spec, true)
}

// withInputs reads declared inputs; standard says whether one is required that
// does not tell.
func (w Workflow) withInputs(at yaml.Node, standard bool) (Workflow, error) {
	var in struct {
		Inputs map[string]struct {
			Type     string
			Required *bool
			Default  *any
		}
	}
	if err := at.Decode(&in); err != nil {
		return w, fmt.Errorf("parse the inputs: %w", err)
	}
	w.Inputs = map[string]Input{}
	for name, i := range in.Inputs {
		required := standard
		if i.Required != nil {
			required = *i.Required
		}
		w.Inputs[name] = Input{Type: i.Type, Required: required && i.Default == nil}
	}
	return w, nil
}

// Unknown are the given inputs that are not declared, sorted.
func (w Workflow) Unknown(given map[string]any) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := w.Inputs[name]; !ok {
			list = append(list, name)
		}
	}
	return list
}

// Missing are the declared inputs that must be given and are not, sorted.
func (w Workflow) Missing(given map[string]any) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(w.Inputs)) {
		if _, ok := given[name]; !ok && w.Inputs[name].Required {
			list = append(list, name)
		}
	}
	return list
}

// Title is the run's name with its inputs in it; "" where the file gives none.
func (w Workflow) Title(given map[string]any) string {
	title := w.RunName
	for name, v := range given {
		title = strings.ReplaceAll(title, "${{ inputs."+name+" }}", fmt.Sprint(v))
	}
	return title
}
