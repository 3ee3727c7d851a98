package giteatest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tagboat/scm/scmtest"
)

// unserved answers as a server that is too old for a call, or has Actions off.
func (c *call) unserved(minor int) bool {
	if c.newer(minor) && !c.o.NoActions {
		return false
	}
	if c.newer(minor) {
		c.notFound("")
		return true
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(c.w, "404 page not found\n")
	return true
}

func (c *call) workflowAt(branch, file string) (scmtest.Workflow, bool) {
	tip, _ := c.o.Store.Branch(branch)
	for _, dir := range []string{".gitea/workflows/", ".github/workflows/"} {
		content, _, err := c.o.Store.ReadFile(tip, dir+file)
		if err != nil {
			continue
		}
		w, err := scmtest.ParseWorkflow(content)
		if err != nil {
			c.o.Report("giteatest: %s on %s: %v", file, branch, err)
		}
		return w, true
	}
	return scmtest.Workflow{}, false
}

// dispatchWorkflow reports what Gitea would run all the same: a workflow without
// the trigger, or with other inputs than it declares.
func (c *call) dispatchWorkflow() {
	var in struct {
		Ref    string            `json:"ref"`
		Inputs map[string]string `json:"inputs"`
	}
	file := c.args[0]
	if c.unserved(24) || !c.decode(&in) {
		return
	}
	if !c.mayWrite() {
		c.fail(http.StatusForbidden, "user should have a permission to write to a repo")
		return
	}
	if slices.Contains(c.o.DisabledWorkflows, file) {
		c.fail(http.StatusForbidden, "workflow is disabled")
		return
	}
	if _, ok := c.o.Store.Branch(in.Ref); !ok {
		c.notFound(fmt.Sprintf("ref %q doesn't exist", in.Ref))
		return
	}
	w, ok := c.workflowAt(in.Ref, file)
	if !ok {
		c.notFound(fmt.Sprintf("workflow %q doesn't exist", file))
		return
	}
	given := map[string]any{}
	for k, v := range in.Inputs {
		given[k] = v
	}
	if bad := slices.Concat(w.Unknown(given), w.Missing(given)); len(bad) > 0 || !w.Dispatch {
		c.o.Report("giteatest: Gitea runs %s all the same: trigger %v, undeclared or missing inputs %q", file, w.Dispatch, bad)
	}
	title := w.Title(given)
	if title == "" {
		title = "Seed"
	}
	run := c.o.Store.StartRun(scmtest.Run{Workflow: file, Branch: in.Ref, Event: "workflow_dispatch", Actor: c.o.User, Inputs: given, Title: title})
	if !c.newer(26) || c.query.Get("return_run_details") != "true" {
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	at := fmt.Sprintf("actions/runs/%d", run.ID)
	c.json(http.StatusOK, object{"workflow_run_id": run.ID, "run_url": c.web("api/" + at), "html_url": c.web(at)})
}

func (c *call) runObject(run scmtest.Run) object {
	status, conclusion := run.State, ""
	switch run.State {
	case "running":
		status = "in_progress"
	case "success", "failure", "cancelled":
		status, conclusion = "completed", run.State
	}
	who := object{"id": 1, "login": run.Actor}
	if run.Actor == "gitea-actions" {
		who["id"] = -2
	}
	out := object{
		"id": run.ID, "html_url": c.web(fmt.Sprintf("actions/runs/%d", run.ID)), "display_title": run.Title, "event": run.Event, "status": status,
		"head_branch": run.Branch, "path": run.Workflow + "@refs/heads/" + run.Branch, "actor": who, "trigger_actor": who, "repository": c.repoObject(),
		"started_at": stamp(run.Created), "completed_at": stamp(run.Created),
	}
	if conclusion != "" {
		out["conclusion"] = conclusion
	}
	return out
}

func (c *call) listRuns() {
	if c.unserved(25) {
		return
	}
	var list []scmtest.Run
	for _, run := range c.o.Store.Runs() {
		if (!c.query.Has("event") || c.query.Get("event") == run.Event) && (!c.query.Has("branch") || c.query.Get("branch") == run.Branch) {
			list = append(list, run)
		}
	}
	objects := []object{}
	for _, run := range page(c, list) {
		objects = append(objects, c.runObject(run))
	}
	c.json(http.StatusOK, object{"total_count": len(list), "workflow_runs": objects})
}

func (c *call) findRun(minor int) (scmtest.Run, bool) {
	if c.unserved(minor) {
		return scmtest.Run{}, false
	}
	id, err := strconv.ParseInt(c.args[0], 10, 64)
	var run scmtest.Run
	if err == nil {
		run, err = c.o.Store.FindRun(id)
	}
	if err != nil {
		c.notFound("", fmt.Sprintf("run with id %s: resource does not exist", c.args[0]))
	}
	return run, err == nil
}

func (c *call) getRun() {
	if run, ok := c.findRun(25); ok {
		c.json(http.StatusOK, c.runObject(run))
	}
}

// listJobs: every run has one job, of its number.
func (c *call) listJobs() {
	run, ok := c.findRun(25)
	if !ok {
		return
	}
	job := maps.Clone(c.runObject(run))
	job["name"], job["run_id"], job["run_attempt"] = "promote", run.ID, 1
	if run.Again != "" { // of which the run itself says nothing
		job["run_attempt"] = 2
	}
	c.json(http.StatusOK, object{"total_count": 1, "jobs": page(c, []object{job})})
}

func (c *call) getLogs() {
	run, ok := c.findRun(24)
	switch {
	case !ok:
	case run.State == "queued":
		c.notFound("job not started")
	default:
		c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for line := range strings.Lines(run.Log) {
			_, _ = fmt.Fprintf(c.w, "2026-01-01T00:00:00.0000000Z %s", line)
		}
	}
}
