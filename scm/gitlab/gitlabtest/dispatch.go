package gitlabtest

import (
	"fmt"
	"strconv"

	"tagboat/scm/scmtest"
)

// The tokens that start pipelines and tell of a job.
const (
	TriggerToken = "glptt-fake"          // a pipeline trigger token, of tomas
	JobToken     = "glcbt-fake-of-a-job" // of Server.Job
)

// runRules are the endpoints of lib/api/ci: triggers.rb, pipelines.rb and jobs.rb.
func runRules() []rule {
	paging := []string{"page:int", "per_page:int"}
	return []rule{
		{op: "createPipeline", method: "POST", path: "projects/:id/pipeline", serve: (*Server).createPipeline,
			body: []string{"ref:string!", "inputs:object"}},
		{op: "triggerPipeline", method: "POST", path: "projects/:id/trigger/pipeline", serve: (*Server).triggerPipeline,
			body: []string{"ref:string!", "token:string!", "inputs:object"}},
		{op: "getPipeline", method: "GET", path: "projects/:id/pipelines/:pipeline", serve: (*Server).getPipeline},
		{op: "listPipelineJobs", method: "GET", path: "projects/:id/pipelines/:pipeline/jobs", serve: (*Server).listPipelineJobs, query: paging},
		{op: "getTrace", method: "GET", path: "projects/:id/jobs/:job/trace", serve: (*Server).getTrace},
		{op: "getJob", method: "GET", path: "job", serve: (*Server).getJob},
	}
}

// Job is the running job whose token is JobToken.
type Job struct {
	Project int    // 0 is this one
	User    string // login of who started it
	Source  string // of its pipeline: chat, push …
	Status  string // "" is running
}

// createPipeline takes a token of the role Developer.
func (s *Server) createPipeline(q *request) answer {
	return s.startPipeline(q, s.login(q), "api")
}

// triggerPipeline takes a trigger token or a job token, and nothing else; it tells
// nobody else that the project is there.
func (s *Server) triggerPipeline(q *request) answer {
	switch q.body["token"] {
	case TriggerToken:
		return s.startPipeline(q, "tomas", "trigger")
	case JobToken:
		return s.startPipeline(q, s.Job.User, "pipeline")
	}
	return say(404, "404 Not Found")
}

// startPipeline follows lib/gitlab/ci/pipeline/chain: all that it refuses is a 400 on base.
func (s *Server) startPipeline(q *request, login, source string) answer {
	branch, _ := q.body["ref"].(string)
	given, _ := q.body["inputs"].(map[string]any)
	base := func(text string) answer {
		return say(400, map[string]any{"base": []string{text}})
	}
	tip, ok := s.Store.Branch(branch)
	if !ok {
		return base("Reference not found")
	}
	if s.NoPipelineRights {
		return base("Insufficient permissions to create a new pipeline")
	}
	content, _, err := s.Store.ReadFile(tip, ".gitlab-ci.yml")
	if err != nil {
		return base("Missing CI config file")
	}
	w, err := scmtest.ParsePipeline(content)
	if err != nil {
		s.fault("%v", err)
	}
	unknown, missing := w.Unknown(given), w.Missing(given)
	switch {
	case len(w.Inputs) == 0 && len(given) > 0:
		return base("Given inputs not defined in the `spec` section of the included configuration file")
	case len(unknown) > 0:
		return base("unknown input arguments: " + unknown[0])
	case len(missing) > 0:
		return base(fmt.Sprintf("`%s` input: required value has not been provided", missing[0]))
	}
	for name, v := range given {
		if want := w.Inputs[name].Type; !typed(want, v) {
			return base(fmt.Sprintf("`%s` input: provided value is not a %s", name, want))
		}
	}
	run := s.Store.StartRun(scmtest.Run{Branch: branch, Event: source, Actor: login, Inputs: given})
	return answer{status: 201, body: s.pipelineShape(run)}
}

func typed(want string, v any) (ok bool) {
	switch want {
	case "boolean":
		_, ok = v.(bool)
	case "number":
		_, ok = v.(float64)
	default:
		_, ok = v.(string)
	}
	return ok
}

func (s *Server) pipelineShape(run scmtest.Run) map[string]any {
	status := map[string]string{"queued": "created", "failure": "failed", "cancelled": "canceled"}[run.State]
	if status == "" {
		status = run.State
	}
	return map[string]any{
		"id": run.ID, "iid": 1, "project_id": ProjectID, "sha": "0", "ref": run.Branch, "status": status, "source": run.Event, "name": nil,
		"web_url": fmt.Sprintf("%s/-/pipelines/%d", s.web(), run.ID), "created_at": stamp(run.Created), "updated_at": stamp(run.Created), "user": s.userShape(run.Actor),
	}
}

func (s *Server) findRun(q *request) (scmtest.Run, *answer) {
	id, err := strconv.ParseInt(q.args[0], 10, 64)
	if err != nil {
		return scmtest.Run{}, ref(say(404, "404 Not found"))
	}
	run, err := s.Store.FindRun(id)
	if err != nil {
		return run, ref(say(404, "404 Not found"))
	}
	return run, nil
}

func (s *Server) getPipeline(q *request) answer {
	run, missing := s.findRun(q)
	if missing != nil {
		return *missing
	}
	return answer{status: 200, body: s.pipelineShape(run)}
}

// listPipelineJobs: every pipeline has one job, of its number, and one that waits
// for a person.
func (s *Server) listPipelineJobs(q *request) answer {
	run, missing := s.findRun(q)
	if missing != nil {
		return *missing
	}
	part, h := page(q, []map[string]any{
		{"id": run.ID + 1_000_000, "name": "later", "status": "manual", "started_at": nil},
		{"id": run.ID, "name": "promote", "status": s.pipelineShape(run)["status"], "started_at": stamp(run.Created)},
	})
	return answer{status: 200, body: part, header: h}
}

func (s *Server) getTrace(q *request) answer {
	run, missing := s.findRun(q)
	if missing != nil {
		return *missing
	}
	return answer{status: 200, text: run.Log}
}

// getJob tells of the job whose token is sent, and of nothing to other tokens.
func (s *Server) getJob(q *request) answer {
	switch {
	case q.jobToken == "":
		return say(404, "404 Job Not Found")
	case q.jobToken != JobToken || s.Job.User == "":
		return say(401, "401 Unauthorized")
	}
	status, project := s.Job.Status, s.Job.Project
	if status == "" {
		status = "running"
	}
	if project == 0 {
		project = ProjectID
	}
	user := s.userShape(s.Job.User)
	user["bot"] = isBot(s.Job.User)
	return answer{status: 200, body: map[string]any{
		"id": 8, "status": status, "stage": "test", "name": "promote", "ref": "main", "user": user, "web_url": s.web() + "/-/jobs/8",
		"pipeline": map[string]any{
			"id": 9, "iid": 1, "project_id": project, "ref": "main", "status": "running", "source": s.Job.Source, "created_at": stamp(s.Store.Clock()),
			"web_url": s.web() + "/-/pipelines/9",
		},
		"project": map[string]any{"ci_job_token_scope_enabled": false},
	}}
}
