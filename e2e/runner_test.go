//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runner is a runner of Gitea Actions as far as one step needs one: it takes a job,
// runs the built command in the job's environment, and hands in log and result.
// act_runner would read the workflow's steps; what a job gets is Gitea's own.
type runner struct {
	repository  *repository
	uuid, token string
}

func (r *repository) runner(t *testing.T) *runner {
	t.Helper()
	var registration struct{ Token string }
	method := "POST"
	if !r.gitea.AtLeast(24) {
		method = "GET"
	}
	r.must(t, method, "/actions/runners/registration-token", nil, &registration)
	w := &runner{repository: r}
	var answer struct{ Runner struct{ UUID, Token string } }
	w.call(t, "Register", map[string]any{"name": "e2e", "token": registration.Token, "version": "v0", "labels": []string{"ubuntu-latest"}}, &answer)
	w.uuid, w.token = answer.Runner.UUID, answer.Runner.Token
	return w
}

// call speaks Connect's JSON.
func (w *runner) call(t *testing.T, method string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.repository.gitea.URL+"/api/actions/runner.v1.RunnerService/"+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("x-runner-uuid", w.uuid)
	request.Header.Set("x-runner-token", w.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s (%v)", method, response.Status, text, err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("%s: %v in %s", method, err, text)
	}
}

// ran is a job that was run.
type ran struct {
	event          string
	exit           int
	stdout, stderr string
}

// next waits for a job and runs tagboat with args in it. The bot's own replies start
// jobs too, which a runner skips by the workflow's if; here they find nothing to do.
func (w *runner) next(t *testing.T, args ...string) ran {
	t.Helper()
	for {
		if done := w.run(t, args...); !strings.Contains(done.stderr, "nothing to do: not a command") {
			return done
		}
	}
}

// task is a job that a runner has taken.
type task struct {
	ID      string
	Context struct {
		Event      json.RawMessage
		EventName  string `json:"event_name"`
		Repository string
		RunID      string `json:"run_id"`
		ServerURL  string `json:"server_url"`
		Actor      string
	}
}

// inputs are those of workflow_dispatch.
func (k task) inputs() map[string]any {
	var event struct{ Inputs map[string]any }
	if json.Unmarshal(k.Context.Event, &event) != nil {
		return nil
	}
	return event.Inputs
}

// take waits for a job, which then runs.
func (w *runner) take(t *testing.T) task {
	t.Helper()
	var fetched struct{ Task task }
	waitFor(t, "job", 30*time.Second, func() bool {
		w.call(t, "FetchTask", map[string]any{"tasksVersion": "0"}, &fetched)
		return fetched.Task.ID != ""
	})
	return fetched.Task
}

func (w *runner) run(t *testing.T, args ...string) ran {
	t.Helper()
	taken := w.take(t)
	job := taken.Context
	home := t.TempDir()
	event := filepath.Join(home, "event.json")
	if err := os.WriteFile(event, job.Event, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), args...)
	command.Dir = home
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GITHUB_ACTIONS=true", "GITEA_ACTIONS=true", "GITHUB_REPOSITORY=" + job.Repository,
		"GITHUB_SERVER_URL=" + job.ServerURL, "GITHUB_EVENT_NAME=" + job.EventName, "GITHUB_EVENT_PATH=" + event, "GITHUB_RUN_ID=" + job.RunID,
		"GITHUB_ACTOR=" + job.Actor, "TAGBOAT_TOKEN=" + w.repository.gitea.bot,
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	_ = command.Run() // its exit code is looked at
	done := ran{event: job.EventName, exit: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	t.Logf("job of %s: tagboat %s: exit %d\n%s", done.event, strings.Join(args, " "), done.exit, done.stderr)
	w.handIn(t, taken.ID, done)
	return done
}

func (w *runner) handIn(t *testing.T, task string, done ran) {
	t.Helper()
	now := time.Now().UTC().Format(time.RFC3339Nano)
	var rows []map[string]any
	for line := range strings.Lines(done.stderr + done.stdout) {
		rows = append(rows, map[string]any{"time": now, "content": strings.TrimRight(line, "\n")})
	}
	result := "RESULT_SUCCESS"
	if done.exit != 0 {
		result = "RESULT_FAILURE"
	}
	var nothing struct{}
	w.call(t, "UpdateLog", map[string]any{"taskId": task, "index": "0", "rows": rows, "noMore": true}, &nothing)
	step := map[string]any{"id": "0", "result": result, "startedAt": now, "stoppedAt": now, "logIndex": "0", "logLength": fmt.Sprint(len(rows))}
	w.call(t, "UpdateTask", map[string]any{"state": map[string]any{
		"id": task, "result": result, "startedAt": now, "stoppedAt": now, "steps": []any{step},
	}}, &nothing)
}
