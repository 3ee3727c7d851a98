package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tagboat/scm/gitlab/gitlabtest"
)

// TestChatops runs testdata/chatops/*.txt. Beside the commands of TestScripts a
// script has:
//
//	grant LOGIN PERMISSION         what the forge says of a person: admin, write, read, none
//	comment NUMBER AUTHOR TEXT     comment on an issue (0 opens one); the environment is the job that it starts
//	edit TEXT | delete             do that to the comment
//	thread                         print the conversation and the reactions
//	chat LOGIN TEXT                the environment is GitLab's ChatOps job
//	serve                          start tagboat serve
//	slack TEAM/USER TEXT           give a signed command to it
//	hook FORGE [TIMES]             send the comment's webhook to it
//	runs                           print what was dispatched
//	job                            the environment is the newest run's job
//	ended STATE FILE               the newest run ends and has printed FILE
//	answers                        print what a chat got
func TestChatops(t *testing.T) {
	commands := map[string]func(*testscript.TestScript, bool, []string){
		"push": push, "forge": chatForge, "person": person, "pulls": pulls, "body": body, "show": show, "expand": expand,
		"grant": grant, "comment": comment, "edit": edit, "delete": deleteComment, "thread": thread, "chat": chat,
		"serve": serve, "slack": slackCommand, "hook": sendHook, "runs": listRuns, "job": job, "ended": ended, "answers": answers,
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/chatops", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", Setup: setupChat, Cmds: commands,
	})
}

const hookSecret = "0123456789abcdef-hook"

// room is what a script of chatops has beside its yard.
type room struct {
	comment, number int
	author, text    string
	gitlab          *gitlabtest.Server

	mu   sync.Mutex
	said []string // what the chat got
}

type roomKey struct{}

func roomOf(ts *testscript.TestScript) *room { return ts.Value(roomKey{}).(*room) }

func setupChat(e *testscript.Env) error {
	r := &room{}
	e.Values[roomKey{}] = r
	replies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said = append(r.said, string(text))
	}))
	e.Defer(replies.Close)
	e.Setenv("SLACK", replies.URL)
	e.Setenv("SLACK_HOST", strings.TrimPrefix(replies.URL, "http://"))
	for _, name := range []string{slackSecret, githubSecret, giteaSecret, gitlabSecret} {
		e.Setenv(name, hookSecret)
	}
	return setup(e)
}

// chatForge serves a forge, GitLab with a job.
func chatForge(ts *testscript.TestScript, neg bool, args []string) {
	if args[0] != "gitlab" {
		forge(ts, neg, args)
		return
	}
	forge(ts, neg, []string{"github"}) // for its store; nobody asks it
	y, r := yardOf(ts), roomOf(ts)
	r.gitlab = gitlabtest.New(y.t, y.store)
	at, stop := r.gitlab.Start()
	ts.Defer(stop)
	ts.Setenv("REPO", at+"/"+gitlabtest.Project)
	ts.Setenv("FORGE", "gitlab")
	ts.Setenv("GITHUB_API_URL", "")
	ts.Setenv("TAGBOAT_TOKEN", gitlabtest.Token)
	ts.Setenv("CI_SERVER_URL", at)
}

func grant(ts *testscript.TestScript, _ bool, args []string) {
	yardOf(ts).store.SetPermission(args[0], args[1])
}

func comment(ts *testscript.TestScript, _ bool, args []string) {
	y, r := yardOf(ts), roomOf(ts)
	number, err := strconv.Atoi(args[0])
	ts.Check(err)
	if number == 0 {
		number, err = y.store.OpenIssue("Release", "mei")
		ts.Check(err)
	}
	r.number, r.author, r.text = number, args[1], strings.ReplaceAll(strings.Join(args[2:], " "), `\n`, "\n")
	c, err := y.store.Say(number, r.author, r.text)
	ts.Check(err)
	r.comment = c.ID
	actionsJob(ts, "issue_comment", r.event("created"), 1)
}

// event is an issue_comment as GitHub and Gitea send it, as far as it is read, and
// with what is not believed.
func (r *room) event(action string) map[string]any {
	kind := "User"
	if strings.HasSuffix(r.author, "[bot]") {
		kind = "Bot"
	}
	who := map[string]any{"login": r.author, "id": 7, "type": kind}
	return map[string]any{
		"action": action, "sender": map[string]any{"login": "mei", "type": "User"},
		"issue":      map[string]any{"number": r.number, "title": "Release", "user": who},
		"comment":    map[string]any{"id": r.comment, "body": r.text, "user": who, "author_association": "OWNER"},
		"repository": map[string]any{"full_name": "acme/config"},
	}
}

// actionsJob is the environment of a job of GitHub or Gitea.
func actionsJob(ts *testscript.TestScript, name string, event any, run int64) {
	text, err := json.Marshal(event)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("event.json"), text, 0o600))
	server, _, _ := strings.Cut(ts.Getenv("REPO"), "/acme/")
	for key, value := range map[string]string{
		"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": strconv.FormatBool(ts.Getenv("FORGE") == "gitea"), "GITHUB_REPOSITORY": "acme/config",
		"GITHUB_SERVER_URL": server, "GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": ts.MkAbs("event.json"), "GITHUB_RUN_ID": fmt.Sprint(run),
		"GITHUB_ACTOR": "stranger", "GITHUB_OUTPUT": ts.MkAbs("outputs"),
	} {
		ts.Setenv(key, value)
	}
}

func edit(ts *testscript.TestScript, _ bool, args []string) {
	_, err := yardOf(ts).store.EditComment(roomOf(ts).comment, strings.Join(args, " "))
	ts.Check(err)
}

func deleteComment(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(yardOf(ts).store.DeleteComment(roomOf(ts).comment))
}

var hexDigits = regexp.MustCompile(`[0-9a-f]{12,64}`)

// thread leaves digests and addresses out, which differ.
func thread(ts *testscript.TestScript, _ bool, _ []string) {
	comments, _, err := yardOf(ts).store.Thread(roomOf(ts).number)
	ts.Check(err)
	var b strings.Builder
	for _, c := range comments {
		fmt.Fprintf(&b, "%s: %s", c.Author, c.Body)
		for _, sign := range c.Reactions {
			fmt.Fprintf(&b, " [%s]", sign.Name)
		}
		b.WriteString("\n")
	}
	print(ts, hexDigits.ReplaceAllString(b.String(), "HEX"))
}

func chat(ts *testscript.TestScript, _ bool, args []string) {
	roomOf(ts).gitlab.Job = gitlabtest.Job{User: args[0], Source: "chat"}
	gitlabJob(ts)
	ts.Setenv("CHAT_INPUT", strings.Join(args[1:], " "))
}

func gitlabJob(ts *testscript.TestScript) {
	for key, value := range map[string]string{
		"GITLAB_CI": "true", "CI_PROJECT_PATH": gitlabtest.Project, "CI_JOB_TOKEN": gitlabtest.JobToken, "CI_PROJECT_DIR": ts.MkAbs("."),
		"GITLAB_USER_LOGIN": "stranger", "CI_PIPELINE_SOURCE": "chat",
	} {
		ts.Setenv(key, value)
	}
}

// serve runs the command in this process until the script ends.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan int, 1)
	env := map[string]string{"TAGBOAT_SLACK_SECRET": hookSecret, "TAGBOAT_GITHUB_SECRET": hookSecret, "TAGBOAT_GITEA_SECRET": hookSecret, "TAGBOAT_GITLAB_SECRET": hookSecret}
	for _, name := range []string{"TAGBOAT_TOKEN", "GITEA_TOKEN", "GITHUB_API_URL", "CI_SERVER_URL"} {
		env[name] = ts.Getenv(name)
	}
	if env["GITHUB_API_URL"] != "" {
		env["GITHUB_SERVER_URL"], _, _ = strings.Cut(ts.Getenv("REPO"), "/acme/")
	}
	command := append([]string{"tagboat", "serve", "--repo", ts.Getenv("REPO"), "--forge", ts.Getenv("FORGE"), "--listen", "127.0.0.1:0"}, args...)
	log := &listening{ready: ready}
	go func() {
		ended <- run(ctx, command, io.Discard, log, func(name string) string { return env[name] })
	}()
	ts.Defer(func() {
		stop()
		if code := <-ended; code != 0 {
			yardOf(ts).t.Errorf("serve ended with %d:\n%s", code, log.text())
		}
		if strings.Contains(log.text(), hookSecret) || strings.Contains(log.text(), "/services/") {
			yardOf(ts).t.Errorf("a secret shows in\n%s", log.text())
		}
	})
	select {
	case address := <-ready:
		ts.Setenv("SERVE", "http://"+address)
	case <-time.After(10 * time.Second):
		ts.Fatalf("serve does not listen:\n%s", log.text())
	}
}

// listening finds in the log where a server listens.
type listening struct {
	mu    sync.Mutex
	all   bytes.Buffer
	ready chan string
}

var address = regexp.MustCompile(`"msg":"listening","address":"([^"]+)"`)

func (l *listening) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := address.FindSubmatch(p); m != nil {
		l.ready <- string(m[1])
	}
	return l.all.Write(p)
}

func (l *listening) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func mac(text string) string {
	h := hmac.New(sha256.New, []byte(hookSecret))
	h.Write([]byte(text))
	return fmt.Sprintf("%x", h.Sum(nil))
}

func send(ts *testscript.TestScript, path string, header map[string]string, body string) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, ts.Getenv("SERVE")+path, strings.NewReader(body))
	ts.Check(err)
	for key, value := range header {
		r.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	var said struct{ Text string }
	if json.Unmarshal(text, &said) == nil {
		text = []byte(said.Text + "\n")
	}
	print(ts, fmt.Sprintf("%d %s", response.StatusCode, text))
}

func slackCommand(ts *testscript.TestScript, _ bool, args []string) {
	team, user, _ := strings.Cut(args[0], "/")
	command, text, _ := strings.Cut(strings.Join(args[1:], " "), " ")
	form := url.Values{
		"team_id": {team}, "user_id": {user}, "user_name": {"mei"}, "command": {command}, "text": {text}, "response_url": {ts.Getenv("SLACK") + "/services/secret"},
	}.Encode()
	stamp := fmt.Sprint(time.Now().Unix())
	send(ts, "/slack/command", map[string]string{"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=" + mac("v0:"+stamp+":"+form)}, form)
}

func sendHook(ts *testscript.TestScript, _ bool, args []string) {
	r := roomOf(ts)
	event := any(r.event("created"))
	if args[0] == "gitlab" {
		event = map[string]any{
			"object_kind": "note", "user": map[string]any{"username": r.author}, "project": map[string]any{"path_with_namespace": gitlabtest.Project},
			"object_attributes": map[string]any{"id": r.comment, "note": r.text, "noteable_type": "Issue", "action": "create"}, "issue": map[string]any{"iid": r.number}, //nolint:misspell // GitLab's spelling
		}
	}
	text, err := json.Marshal(event)
	ts.Check(err)
	times := 1
	if len(args) > 1 {
		times, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	for range times {
		send(ts, "/"+args[0]+"/hook", map[string]string{
			"X-GitHub-Event": "issue_comment", "X-Hub-Signature-256": "sha256=" + mac(string(text)), "X-Gitea-Event": "issue_comment",
			"X-Gitea-Signature": mac(string(text)), "X-Gitlab-Event": "Note Hook", "X-Gitlab-Token": hookSecret,
		}, string(text))
	}
}

func listRuns(ts *testscript.TestScript, _ bool, _ []string) {
	var b strings.Builder
	for _, r := range yardOf(ts).store.Runs() {
		fmt.Fprintf(&b, "%s by %s on %s\n", r.Workflow, r.Actor, r.Branch)
		for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
			fmt.Fprintf(&b, "  %s: %v\n", name, r.Inputs[name])
		}
	}
	print(ts, hexDigits.ReplaceAllString(b.String(), "HEX"))
}

// job makes the newest run the one that runs, as soon as there is one that waits.
func job(ts *testscript.TestScript, _ bool, _ []string) {
	y := yardOf(ts)
	for tries := 0; len(y.store.Runs()) == 0 || y.store.Runs()[0].State != "queued"; tries++ {
		if tries == 1000 {
			ts.Fatalf("no run is queued")
		}
		time.Sleep(10 * time.Millisecond)
	}
	r := y.store.Runs()[0]
	ts.Check(y.store.SetRun(r.ID, "running", ""))
	if ts.Getenv("FORGE") == "gitlab" {
		roomOf(ts).gitlab.Job = gitlabtest.Job{User: r.Actor, Source: r.Event}
		gitlabJob(ts)
		for name, value := range r.Inputs {
			ts.Setenv("TAGBOAT_"+strings.ToUpper(name), fmt.Sprint(value))
		}
		return
	}
	actionsJob(ts, "workflow_dispatch", map[string]any{"inputs": r.Inputs, "sender": map[string]any{"login": "mei"}}, r.ID)
}

func ended(ts *testscript.TestScript, _ bool, args []string) {
	y := yardOf(ts)
	ts.Check(y.store.SetRun(y.store.Runs()[0].ID, args[0], ts.ReadFile(args[1])))
}

func answers(ts *testscript.TestScript, _ bool, _ []string) {
	r := roomOf(ts)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.said {
		var said map[string]string
		ts.Check(json.Unmarshal([]byte(text), &said))
		print(ts, hexDigits.ReplaceAllString(said["response_type"]+": "+said["text"]+"\n", "HEX"))
	}
}
