//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestActRunsChatops runs the documented workflow with act, as it stands there, on a
// real Gitea: for a comment, and for what tagboat request starts.
func TestActRunsChatops(t *testing.T) {
	c := openChatRoom(t)
	project := t.TempDir()
	workflows := filepath.Join(project, ".github", "workflows")
	if err := os.MkdirAll(workflows, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workflows, "tagboat-chatops.yml"), []byte(chatWorkflow(t, "--accept=todo-ci=todo-api")), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, project, "init", "-q", "-b", "main")
	git(t, project, "remote", "add", "origin", "https://github.com/acme/config.git")
	git(t, project, "add", "-A")
	git(t, project, "-c", "user.name=mei", "-c", "user.email=mei@acme.example", "commit", "-q", "-m", "Take commands")

	var issue struct{ Number int }
	c.must(t, "POST", "/issues", map[string]any{"title": "Release"}, &issue)
	text := "/promote todo-api to production --reason \"$(touch " + project + "/injected)\""
	var comment struct{ ID int64 }
	c.gitea.must(t, "mei", "POST", fmt.Sprintf("/repos/%s/issues/%d/comments", c.name, issue.Number), map[string]any{"body": text}, &comment)
	log := c.act(t, project, "issue_comment", 1, map[string]any{
		"action": "created", "issue": map[string]any{"number": issue.Number}, "repository": map[string]any{"full_name": c.name},
		"comment": map[string]any{"id": comment.ID, "body": text, "user": map[string]any{"login": "mei", "type": "User"}, "author_association": "NONE"},
	})
	if !strings.Contains(log, "opened: todo-api to production") {
		t.Errorf("the job says\n%s", log)
	}
	if got := c.replies(t, issue.Number); len(got) != 1 || !strings.Contains(got[0], "**opened**") {
		t.Errorf("replies %q", got)
	}
	if log := c.act(t, project, "issue_comment", 1, map[string]any{"action": "created", "comment": map[string]any{"body": "Nice."}}); strings.Contains(log, "tagboat chatops") {
		t.Errorf("a comment that is no command runs a step:\n%s", log)
	}

	// What todo-ci asks for is a run of the real Gitea, which its own runner has taken.
	var token struct{ SHA1 string }
	c.gitea.must(t, "todo-ci", "POST", "/users/todo-ci/tokens", map[string]any{"name": "e2e", "scopes": []string{"write:repository"}}, &token)
	ask := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), "request", "--repo", c.url(), "--forge", "gitea", "--to", "staging", c.registry+"/acme/todo-api:v3@"+c.digests["v3"])
	ask.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TAGBOAT_TOKEN=" + token.SHA1}
	if out, err := ask.CombinedOutput(); err != nil {
		t.Fatalf("request: %v\n%s", err, out)
	}
	job := c.runner.take(t)
	for job.Context.EventName != "workflow_dispatch" { // those of the comments wait too
		job = c.runner.take(t)
	}
	run, err := strconv.ParseInt(job.Context.RunID, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	log = c.act(t, project, "workflow_dispatch", run, map[string]any{"inputs": job.inputs()})
	if !strings.Contains(log, "opened: todo-api to staging") {
		t.Errorf("the job says\n%s", log)
	}
	if got := c.openPulls(t); len(got) != 2 || !slices.Contains(got, "tagboat/staging/todo-api") {
		t.Errorf("pull requests %q", got)
	}
	if _, err := os.Stat(filepath.Join(project, "injected")); err == nil {
		t.Error("text of a comment was run as a command")
	}
}

// act runs the workflow for an event as the job of a run of the Gitea.
func (c *chatRoom) act(t *testing.T, project, event string, run int64, payload map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	home := t.TempDir()
	file := filepath.Join(home, "event.json")
	body, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Getenv("TAGBOAT_BIN"), filepath.Join(home, "tagboat")); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, tool(t, "TAGBOAT_ACT"), event, "-P", "ubuntu-latest=-self-hosted", "--pull=false", "-e", file, "--secret", "TAGBOAT_TOKEN",
		"--env", "GITHUB_SERVER_URL="+c.gitea.URL, "--env", "GITEA_ACTIONS=true", "--env", fmt.Sprintf("GITHUB_RUN_ID=%d", run))
	command.Env = []string{"PATH=" + home + ":" + os.Getenv("PATH"), "HOME=" + home, "XDG_CACHE_HOME=" + home, "TMPDIR=" + home, "TAGBOAT_TOKEN=" + c.gitea.bot}
	command.Dir = project
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("act %s: %v\n%s", event, err, tail(string(out), 60))
	}
	if strings.Contains(string(out), c.gitea.bot) {
		t.Errorf("the token is in the log:\n%s", out)
	}
	return string(out)
}
