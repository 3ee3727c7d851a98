package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tagboat/chatops"
	"tagboat/registry/registrytest"
	"tagboat/scm"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// trial is a config repository in which one command at a time is tried.
type trial struct {
	t        *testing.T
	registry *registrytest.Registry
	store    *scmtest.Store
	digests  map[string]string // of the tags v1 to v3
	env      map[string]string // REPO and FORGE, the credential, and of a job what the CI sets
	gitlab   *gitlabtest.Server
}

// newTrial has staging on v2 and before that on v1, the others on v1, and v3 in the
// registry.
func newTrial(t *testing.T) *trial {
	t.Helper()
	b := &trial{t: t, registry: registrytest.New(), digests: map[string]string{}}
	t.Cleanup(b.registry.Close)
	for _, tag := range []string{"v1", "v2", "v3"} {
		digest, err := b.registry.PushImage("acme/todo-api:"+tag, registrytest.ImageSpec{Platforms: []string{"linux/amd64"}, Content: tag})
		b.check(err)
		b.digests[tag] = digest
	}
	overlay := func(tag string) string {
		return "resources: [pod.yaml]\nimages:\n- {name: " + b.image("") + ", newTag: " + tag + ", digest: '" + b.digests[tag] + "'}\n"
	}
	files := map[string]string{
		"tagboat.yaml": "version: 1\napps:\n  todo-api:\n    images: [{repository: '" + b.image("") + "'}]\nenvironments:\n" +
			"- {name: staging, path: staging}\n- {name: checked, from: [staging], path: checked, gates: {checks: [e2e]}}\n- {name: next, from: [staging], path: next}\n" +
			"- {name: owned, path: owned, promoters: [team:release]}\nchat: {slack: {U1: mei}}\n",
		".github/workflows/tagboat-chatops.yml": "on: {workflow_dispatch: {inputs: {request: {}, command: {}, image: {}, to: {}, user: {}, reply: {}, comment: {}}}}\n",
		".gitlab-ci.yml": "spec:\n  inputs: {request: {default: ''}, command: {default: ''}, image: {default: ''}, to: {default: ''}, user: {default: ''}, " +
			"reply: {default: ''}, comment: {default: ''}}\n---\npromote: {script: [tagboat chatops]}\n",
	}
	for _, place := range []string{"staging", "checked", "next", "owned"} {
		files[place+"/kustomization.yaml"] = overlay("v1")
		files[place+"/pod.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: todo}\nspec: {containers: [{name: api, image: " + b.image("") + "}]}\n"
	}
	b.store = scmtest.NewStore("main", files)
	tip, err := b.store.Push("main", "mei", "Promote", map[string]string{"staging/kustomization.yaml": overlay("v2")})
	b.check(err)
	_, err = b.store.PostStatus(tip, scmtest.Status{Context: "e2e", State: "success", Creator: "ci"})
	b.check(err)
	b.store.SetClock(time.Now) // that of the App's server
	b.store.SetPermission("mei", "write")
	return b
}

func (b *trial) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *trial) image(tag string) string { return b.registry.Host() + "/acme/todo-api" + tag }

// run runs a command against the trial's forge.
func (b *trial) run(args ...string) (code int, said string) {
	b.t.Helper()
	var out, errOut bytes.Buffer
	full := append([]string{"tagboat", args[0], "--repo", b.env["REPO"], "--forge", b.env["FORGE"]}, args[1:]...)
	code = run(context.Background(), full, &out, &errOut, func(name string) string { return b.env[name] })
	lines := strings.SplitAfter(errOut.String()+out.String(), "\n")
	return code, strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "::") && !strings.HasPrefix(l, "::error") }), "")
}

// try does one of the commands of needs.
func (b *trial) try(command string) (code int, said string) {
	b.t.Helper()
	args := map[string][]string{
		"promote": {"promote", "--to", "staging", b.image(":v3")}, "promote --dry-run": {"promote", "--to", "staging", "--dry-run", b.image(":v3")},
		withChecks: {"promote", "--from", "staging", "--to", "checked", "--app", "todo-api"}, withTeams: {"promote", "--to", "owned", b.image(":v3")},
		"rollback": {"rollback", "--environment", "staging", "--app", "todo-api", "--reason", "errors"},
		"hold":     {"hold", "checked", "--reason", "incident 12"}, "release": {"release", "staging"}, "holds": {"holds"},
		"status": {"status", "--since"}, "history": {"history", "--environment", "staging", "--app", "todo-api"}, "verify": {"verify"},
		"request": {"request", "--to", "staging", b.image(":v3") + "@" + b.digests["v3"]},
	}
	switch command {
	case "serve":
		return b.serve("/promote todo-api to next")
	case "chatops", afterAsking:
		return b.run("chatops", "--speaker", "tagboat", "--speaker", "tomas")
	}
	return b.run(args[command]...)
}

// prepare has what a command finds, made by an almighty credential: an open
// promotion, a hold.
func (b *trial) prepare(command string) {
	b.t.Helper()
	for what, args := range map[string][]string{"verify": {"promote", "--to", "staging", b.image(":v3")}, "release": {"hold", "staging", "--reason", "incident 12"}} {
		if what != command {
			continue
		}
		for key, value := range serveGitHub(githubtest.Options{})(b.t, b.store, b.t.Cleanup) {
			b.setenv(key, value)
		}
		if code, said := b.run(args...); code != 0 {
			b.t.Fatalf("prepare %s: exit %d\n%s", command, code, said)
		}
	}
	b.env = map[string]string{}
}

func (b *trial) setenv(key, value string) {
	if b.env == nil {
		b.env = map[string]string{}
	}
	b.env[key] = value
}

// state is all that a command may have written, but for its words to people.
func (b *trial) state() string {
	var s strings.Builder
	for _, name := range b.store.Branches() {
		sha, _ := b.store.Branch(name)
		fmt.Fprintf(&s, "%s %s %d\n", name, sha, len(b.store.Statuses(sha)))
	}
	for _, p := range b.store.Pulls(func(scmtest.Pull) bool { return true }) {
		fmt.Fprintf(&s, "%d %s %s\n", p.Number, p.State, p.Title)
	}
	fmt.Fprintln(&s, len(b.store.Runs()))
	return s.String()
}

// job is the environment of a job of the forge's CI that a comment, a chat or a
// dispatch has started.
func (b *trial) job(command string) {
	b.t.Helper()
	const line = "/promote todo-api to next"
	issue, err := b.store.OpenIssue("Release", "mei")
	b.check(err)
	c, err := b.store.Say(issue, "mei", line)
	b.check(err)
	if b.gitlab != nil {
		b.gitlab.Job = gitlabtest.Job{User: "mei", Source: "chat"}
		for key, value := range map[string]string{"GITLAB_CI": "true", "CI_PROJECT_PATH": gitlabtest.Project, "CI_PROJECT_DIR": b.t.TempDir(), "CI_JOB_TOKEN": gitlabtest.JobToken, "CHAT_INPUT": line} {
			b.setenv(key, value)
		}
		if command == afterAsking { // serve tells of a comment
			b.gitlab.Job = gitlabtest.Job{User: "tomas", Source: "api"}
			b.setenv("TAGBOAT_COMMENT", fmt.Sprintf("%d issue %d %s %s", c.ID, issue, gitlabtest.Project, chatops.LineHash(line)))
		}
		return
	}
	event := map[string]any{
		"action": "created", "issue": map[string]any{"number": issue}, "repository": map[string]any{"full_name": "acme/config"},
		"comment": map[string]any{"id": c.ID, "body": line, "user": map[string]any{"login": "mei", "type": "User"}},
	}
	name, run := "issue_comment", scmtest.Run{ID: 1}
	if command == afterAsking {
		name, event = "workflow_dispatch", map[string]any{"inputs": map[string]any{"request": "abcdefgh", "command": line}}
		run = b.store.StartRun(scmtest.Run{Workflow: workflowFile, Branch: "main", Event: name, Actor: "mei", Title: "tagboat"})
		b.check(b.store.SetRun(run.ID, "running", ""))
	}
	text, err := json.Marshal(event)
	b.check(err)
	file := filepath.Join(b.t.TempDir(), "event.json")
	b.check(os.WriteFile(file, text, 0o600))
	server, _, _ := strings.Cut(b.env["REPO"], "/acme/")
	for key, value := range map[string]string{
		"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": fmt.Sprint(b.env["FORGE"] == scm.Gitea), "GITHUB_REPOSITORY": "acme/config", "GITHUB_SERVER_URL": server,
		"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": file, "GITHUB_RUN_ID": fmt.Sprint(run.ID),
	} {
		b.setenv(key, value)
	}
}

// serve gives a Slack command to tagboat serve. The code is 0 where it was taken.
func (b *trial) serve(line string) (code int, said string) {
	b.t.Helper()
	b.setenv(slackSecret, hookSecret)
	ctx, stop := context.WithCancel(context.Background())
	log, ended := &listening{ready: make(chan string, 1)}, make(chan int, 1)
	go func() {
		args := []string{"tagboat", "serve", "--repo", b.env["REPO"], "--forge", b.env["FORGE"], "--listen", "127.0.0.1:0"}
		ended <- run(ctx, args, io.Discard, log, func(name string) string { return b.env[name] })
	}()
	defer func() { stop(); <-ended }()
	var at string
	select {
	case at = <-log.ready:
	case code := <-ended:
		ended <- code
		return code, log.text()
	}
	command, text, _ := strings.Cut(line, " ")
	form := url.Values{"team_id": {"T1"}, "user_id": {"U1"}, "command": {command}, "text": {text}, "response_url": {"https://hooks.slack.com/x"}}.Encode()
	stamp := fmt.Sprint(time.Now().Unix())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+"/slack/command", strings.NewReader(form))
	b.check(err)
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", "v0="+mac("v0:"+stamp+":"+form))
	resp, err := http.DefaultClient.Do(req)
	b.check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	b.check(err)
	if !strings.Contains(string(answer), "Accepted") {
		return 1, string(answer) + log.text()
	}
	return 0, string(answer)
}
