package scmtest

import (
	"strings"

	"tagboat/scm"
)

func dispatchCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"dispatch: a run with its inputs":              dispatchRuns,
		"dispatch: of another branch":                  dispatchBranch,
		"dispatch: no such workflow or branch":         dispatchMissing,
		"dispatch: a workflow without the trigger":     dispatchUntriggered,
		"dispatch: an input that is not declared":      dispatchUnknownInput,
		"dispatch: a required input that is not given": dispatchNoInput,
		"dispatch: an input that is no plain value":    dispatchOddInput,
		"run: goes from queued to its end":             runEnds,
		"run: a missing one is not found":              runMissing,
	}
}

// The workflow of these cases, as each forge has it.
const (
	kWorkflow = "promote.yml"
	kActions  = `name: promote
run-name: promote ${{ inputs.app }} for ${{ inputs.request }}
on:
  workflow_dispatch:
    inputs:
      app: {required: true, type: string}
      request: {type: string}
      dry-run: {type: boolean, default: false}
jobs:
  promote:
    runs-on: nowhere
    steps:
      - run: tagboat version
`
	kPipeline = `spec:
  inputs:
    app:
    request: {default: ""}
    dry-run: {type: boolean, default: false}
---
promote:
  script: tagboat version
`
	kPushed = "on: push\njobs:\n  build:\n    runs-on: nowhere\n    steps:\n      - run: make\n"
)

func (s *suite) workflow(branch string) scm.Dispatcher {
	s.t.Helper()
	d, ok := s.Repo.(scm.Dispatcher)
	s.need(ok && s.Can.Dispatch, "dispatch")
	must(s, tried(s.Person.Push(branch, "mei", "Let others ask for promotions", map[string]string{
		".github/workflows/" + kWorkflow: kActions, ".github/workflows/build.yml": kPushed, ".gitlab-ci.yml": kPipeline,
	})))
	return d
}

func ask(more map[string]any) scm.Dispatch {
	d := scm.Dispatch{Workflow: kWorkflow, Mark: "request-4711", Inputs: map[string]any{"app": "todo-api", "request": "request-4711", "dry-run": true}}
	for name, v := range more {
		d.Inputs[name] = v
	}
	return d
}

func dispatchRuns(s *suite) {
	d := s.workflow(s.main)
	run := must(s, tried(d.Dispatch(s.t.Context(), ask(nil))))
	if run.ID == 0 || run.State.Ended() || !strings.HasPrefix(run.URL, "http") {
		s.t.Errorf("run %+v, want one that is under way", run)
	}
	if run.Title != "" && !strings.Contains(run.Title, "request-4711") {
		s.t.Errorf("the run is called %q: the inputs did not reach it", run.Title)
	}
	again := must(s, tried(d.Run(s.t.Context(), run.ID)))
	s.diff("the same run", run.URL, again.URL)
}

func dispatchBranch(s *suite) {
	d := s.workflow(s.main)
	s.push("next", ".github/workflows/"+kWorkflow, strings.ReplaceAll(kActions, "promote ${{", "next ${{"))
	wanted := ask(nil)
	wanted.Branch = "next"
	run := must(s, tried(d.Dispatch(s.t.Context(), wanted)))
	if run.ID == 0 || run.Title != "" && !strings.HasPrefix(run.Title, "next todo-api") {
		s.t.Errorf("run %+v, want one of branch next", run)
	}
}

func dispatchMissing(s *suite) {
	d, ok := s.Repo.(scm.Dispatcher)
	s.need(ok && s.Can.Dispatch, "dispatch")
	_, err := d.Dispatch(s.t.Context(), ask(nil))
	s.wantErr(err, scm.ErrNotFound)
	s.workflow(s.main)
	wanted := ask(nil)
	wanted.Branch = "no-such-branch"
	_, err = d.Dispatch(s.t.Context(), wanted)
	s.wantErr(err, scm.ErrNotFound)
}

func dispatchUntriggered(s *suite) {
	s.need(s.Can.Workflows, "triggers of workflows")
	d := s.workflow(s.main)
	_, err := d.Dispatch(s.t.Context(), scm.Dispatch{Workflow: "build.yml"})
	s.wantErr(err, scm.ErrRefused)
	if err != nil && !strings.Contains(err.Error(), "workflow_dispatch") {
		s.t.Errorf("%v does not name the trigger", err)
	}
}

func dispatchUnknownInput(s *suite) {
	d := s.workflow(s.main)
	_, err := d.Dispatch(s.t.Context(), ask(map[string]any{"target": "x"}))
	s.wantErr(err, scm.ErrRefused)
	if err != nil && !strings.Contains(err.Error(), "target") {
		s.t.Errorf("%v does not name the input", err)
	}
}

func dispatchNoInput(s *suite) {
	d := s.workflow(s.main)
	wanted := ask(nil)
	delete(wanted.Inputs, "app")
	_, err := d.Dispatch(s.t.Context(), wanted)
	s.wantErr(err, scm.ErrRefused)
	if err != nil && !strings.Contains(err.Error(), "app") {
		s.t.Errorf("%v does not name the input", err)
	}
}

func dispatchOddInput(s *suite) {
	d := s.workflow(s.main)
	if _, err := d.Dispatch(s.t.Context(), ask(map[string]any{"app": []string{"todo-api"}})); err == nil {
		s.t.Error("no error")
	}
}

func runEnds(s *suite) {
	s.need(s.Can.Runs, "runner")
	d := s.workflow(s.main)
	_, talker := s.talk()
	for state, want := range map[string]scm.RunState{
		"running": scm.RunRunning, "success": scm.RunSuccess, "failure": scm.RunFailure, "cancelled": scm.RunFailure,
	} {
		run := must(s, tried(d.Dispatch(s.t.Context(), ask(nil))))
		s.diff("at first", scm.RunQueued, run.State)
		must(s, tried(true, talker.SetRun(run.ID, state, "one\ntwo "+state+"\n")))
		run = must(s, tried(d.Run(s.t.Context(), run.ID)))
		s.diff(state, want, run.State)
		if !run.State.Ended() {
			continue
		}
		text := must(s, tried(d.Output(s.t.Context(), run.ID)))
		if !strings.Contains(text, "one\n") || !strings.HasSuffix(text, "two "+state+"\n") {
			s.t.Errorf("%s: the log is %q", state, text)
		}
	}
}

func runMissing(s *suite) {
	d := s.workflow(s.main)
	_, err := d.Run(s.t.Context(), 999_999)
	s.wantErr(err, scm.ErrNotFound)
}
