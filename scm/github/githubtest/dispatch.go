package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"

	"tagboat/scm/scmtest"
)

// runNeeds are the permissions of the calls about workflow runs.
func runNeeds() map[string][2]string {
	return map[string][2]string{
		"POST actions/workflows/{workflow_id}/dispatches": {"actions", "write"},
		"GET actions/workflows/{workflow_id}/runs":        {"actions", "read"},
		"GET actions/runs/{run_id}":                       {"actions", "read"},
		"GET actions/runs/{run_id}/jobs":                  {"actions", "read"},
		"GET actions/jobs/{job_id}/logs":                  {"actions", "read"},
		"GET":                                             {"metadata", "read"},
	}
}

// workflowAt reads a workflow's file on a branch; ok is false if there is none.
func (s *Server) workflowAt(branch, file string) (scmtest.Workflow, bool) {
	tip, _ := s.Store.Branch(branch)
	content, _, err := s.Store.ReadFile(tip, ".github/workflows/"+file)
	if err != nil {
		return scmtest.Workflow{}, false
	}
	w, err := scmtest.ParseWorkflow(content)
	if err != nil {
		s.t.Errorf("fake GitHub: %s on %s: %v", file, branch, err)
	}
	return w, true
}

// dispatchWorkflow knows a workflow by its file on the default branch, and takes
// trigger and inputs from the branch that is asked for.
func dispatchWorkflow(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	const bad = http.StatusUnprocessableEntity
	file := r.params["workflow_id"]
	var in struct {
		Ref     string
		Inputs  map[string]any
		Details *bool `json:"return_run_details"`
	}
	if err := json.Unmarshal(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if s.opts.NoRunDetails != "" && in.Details != nil {
		if s.opts.NoRunDetails == "refuses" {
			return refuse(bad, "Invalid request.\n\n\"return_run_details\" is not a permitted key.")
		}
		in.Details = nil
	}
	for name, v := range in.Inputs {
		if _, text := v.(string); !text {
			s.t.Errorf("fake GitHub: input %s is %T, which older servers refuse", name, v)
		}
	}
	if _, ok := s.workflowAt(s.Store.DefaultBranch(), file); !ok {
		return refuse(http.StatusNotFound, "Not Found")
	}
	if _, ok := s.Store.Branch(in.Ref); !ok {
		return refuse(bad, "No ref found for: "+in.Ref)
	}
	w, ok := s.workflowAt(in.Ref, file)
	switch {
	case slices.Contains(s.opts.DisabledWorkflows, file):
		return refuse(bad, "Cannot trigger a 'workflow_dispatch' on a disabled workflow")
	case !ok || !w.Dispatch:
		return refuse(bad, "Workflow does not have 'workflow_dispatch' trigger")
	case len(w.Unknown(in.Inputs)) > 0:
		list, _ := json.Marshal(w.Unknown(in.Inputs))
		return refuse(bad, "Unexpected inputs provided: "+string(list))
	case len(w.Missing(in.Inputs)) > 0:
		return refuse(bad, fmt.Sprintf("Required input '%s' not provided", w.Missing(in.Inputs)[0]))
	}
	title := w.Title(in.Inputs)
	if title == "" {
		title = file
	}
	run := s.Store.StartRun(scmtest.Run{Workflow: file, Branch: in.Ref, Event: "workflow_dispatch", Actor: r.login, Inputs: in.Inputs, Title: title})
	if in.Details == nil || !*in.Details {
		return http.StatusNoContent, nil
	}
	id := strconv.FormatInt(run.ID, 10)
	return http.StatusOK, map[string]any{"workflow_run_id": run.ID, "run_url": s.rest("actions/runs/" + id), "html_url": s.web("actions/runs/" + id)}
}

func (s *Server) run(run scmtest.Run) map[string]any {
	status, conclusion := run.State, any(nil)
	switch run.State {
	case "running":
		status = "in_progress"
	case "success", "failure", "cancelled":
		status, conclusion = "completed", run.State
	}
	id := strconv.FormatInt(run.ID, 10)
	again := run.Again
	if again == "" {
		again = run.Actor
	}
	return s.object("workflow-run", map[string]any{
		"id": run.ID, "node_id": "WFR_" + id, "name": run.Title, "display_title": run.Title, "event": run.Event, "status": status, "conclusion": conclusion,
		"head_branch": run.Branch, "path": ".github/workflows/" + run.Workflow, "url": s.rest("actions/runs/" + id), "html_url": s.web("actions/runs/" + id),
		"created_at": stamp(run.Created), "updated_at": stamp(run.Created), "run_started_at": stamp(run.Created), "run_attempt": 1,
		"actor": s.user(run.Actor), "triggering_actor": s.user(again), "repository": s.repository("minimal-repository", s.fullName()),
		"head_repository": s.repository("minimal-repository", s.fullName()),
	})
}

func (s *Server) findRun(r *request, param string) (scmtest.Run, *Answer) {
	id, err := strconv.ParseInt(r.params[param], 10, 64)
	if err != nil {
		return scmtest.Run{}, &Answer{Status: http.StatusNotFound, Message: "Not Found"}
	}
	run, err := s.Store.FindRun(id)
	if err != nil {
		return run, &Answer{Status: http.StatusNotFound, Message: "Not Found"}
	}
	return run, nil
}

func getRun(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	run, missing := s.findRun(r, "run_id")
	if missing != nil {
		return missing.Status, *missing
	}
	return http.StatusOK, s.run(run)
}

func listRuns(s *Server, w http.ResponseWriter, r *request) (int, any) {
	var list []scmtest.Run
	for _, run := range s.Store.Runs() {
		if run.Workflow == r.params["workflow_id"] && (r.q("event") == "" || r.q("event") == run.Event) && (r.q("branch") == "" || r.q("branch") == run.Branch) {
			list = append(list, run)
		}
	}
	s.mu.Lock()
	if s.hidden > 0 && len(list) > 0 {
		s.hidden--
		list = list[1:]
	}
	s.mu.Unlock()
	out := []any{}
	for _, run := range page(w, r, list, 30) {
		out = append(out, s.run(run))
	}
	return http.StatusOK, map[string]any{"total_count": len(list), "workflow_runs": out}
}

// listJobs: every run has one job, of the run's number.
func listJobs(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	run, missing := s.findRun(r, "run_id")
	if missing != nil {
		return missing.Status, *missing
	}
	shown := s.run(run)
	job := s.object("job", map[string]any{
		"id": run.ID, "run_id": run.ID, "name": "promote", "status": shown["status"], "conclusion": shown["conclusion"],
		"started_at": stamp(run.Created), "created_at": stamp(run.Created), "html_url": shown["html_url"], "url": s.rest("actions/jobs/x"),
	})
	return http.StatusOK, map[string]any{"total_count": 1, "jobs": []any{job}}
}

// logsPath is where logs lie: on another host than the API's.
const logsPath = "/_logs/"

// getJobLogs sends to another host, once the job has ended.
func getJobLogs(s *Server, w http.ResponseWriter, r *request) (int, any) {
	run, missing := s.findRun(r, "job_id")
	if missing != nil {
		return missing.Status, *missing
	}
	if run.State == "queued" || run.State == "running" {
		return refuse(http.StatusNotFound, "Not Found")
	}
	at := strings.Replace(s.base, "127.0.0.1", "localhost", 1) + logsPath + strconv.FormatInt(run.ID, 10)
	w.Header().Set("Location", at)
	return http.StatusFound, nil
}

// serveLog is the other host, which takes no credential.
func (s *Server) serveLog(w *httptest.ResponseRecorder, req *http.Request) {
	if auth := req.Header.Get("Authorization"); auth != "" {
		s.t.Errorf("fake GitHub: the log's host was sent the credential")
	}
	id, _ := strconv.ParseInt(path.Base(req.URL.Path), 10, 64)
	run, err := s.Store.FindRun(id)
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	for line := range strings.Lines(run.Log) {
		_, _ = fmt.Fprintf(w, "2026-01-01T00:00:00.0000000Z %s", line)
	}
}
