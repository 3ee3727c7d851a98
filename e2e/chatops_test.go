//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"tagboat/chatops"
)

const chatSecret = "e2e-signing-secret-of-slack"

// documented are the YAML blocks of docs/chatops.md, in order.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/chatops.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], ""))
	}
	if len(blocks) < 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	return blocks
}

// chatWorkflow is the documented workflow with the documented step of Gitea.
func chatWorkflow(t *testing.T, args string) string {
	t.Helper()
	blocks := documented(t)
	head, _, found := strings.Cut(blocks[0], "    steps:\n")
	if !found || !strings.Contains(blocks[1], "tagboat chatops") {
		t.Fatalf("the documents have another shape:\n%s\n%s", blocks[0], blocks[1])
	}
	return head + strings.Replace(blocks[1], "tagboat chatops", "tagboat chatops "+args, 1)
}

// TestDocumentedChatops lints the workflows of the documents, and looks at what they
// declare.
func TestDocumentedChatops(t *testing.T) {
	project := t.TempDir()
	workflows := filepath.Join(project, ".github", "workflows")
	if err := os.MkdirAll(workflows, 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, "../action.yml", filepath.Join(project, "action.yml"))
	for name, text := range map[string]string{"github.yml": strings.Replace(documented(t)[0], "OWNER/tagboat@COMMIT", "./", 1), "gitea.yml": chatWorkflow(t, "")} {
		if err := os.WriteFile(filepath.Join(workflows, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, project, "init", "-q")
	lint := exec.CommandContext(t.Context(), tool(t, "TAGBOAT_ACTIONLINT"), "-no-color")
	lint.Dir = project
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
	var on struct {
		On struct {
			Dispatch struct{ Inputs map[string]any } `yaml:"workflow_dispatch"`
		}
	}
	if err := yaml.Unmarshal([]byte(documented(t)[0]), &on); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(on.On.Dispatch.Inputs))
	if diff := cmp.Diff(slices.Sorted(slices.Values(chatops.InputNames())), names); diff != "" {
		t.Errorf("inputs of the workflow (-want +got):\n%s", diff)
	}
}

// chatRoom is a config repository that takes commands, on a real Gitea.
type chatRoom struct {
	*repository
	registry string
	runner   *runner
	digests  map[string]string
}

func openChatRoom(t *testing.T) *chatRoom {
	t.Helper()
	c := &chatRoom{registry: startRegistry(t), digests: map[string]string{}}
	for n, tag := range []string{"v1", "v2", "v3"} {
		c.digests[tag] = push(t, c.registry+"/acme/todo-api:"+tag, time.Date(2026, 3, 1+n, 0, 0, 0, 0, time.UTC))
	}
	g := startGitea(t)
	for _, user := range []string{"li", "todo-ci"} {
		if err := g.AddUser(t.Context(), user); err != nil {
			t.Fatal(err)
		}
	}
	c.repository = g.repository(t, "config", map[string]string{
		"tagboat.yaml": "version: 1\napps:\n  todo-api: {images: [{repository: " + c.registry + "/acme/todo-api}]}\nenvironments:\n" +
			"  - {name: staging, path: staging}\n  - {name: production, path: production, from: [staging]}\nchat:\n  slack: {T1/U1: mei, T1/U2: li}\n",
		"base/kustomization.yaml":              "resources:\n  - deployment.yaml\n",
		"base/deployment.yaml":                 fmt.Sprintf(deployment, "todo-api"),
		"staging/kustomization.yaml":           c.overlay("v2"),
		"production/kustomization.yaml":        c.overlay("v1"),
		".gitea/workflows/tagboat-chatops.yml": chatWorkflow(t, ""),
	})
	c.must(t, "PUT", "/collaborators/tagboat-bot", map[string]any{"permission": "admin"}, nil) // to be told what others may do
	c.must(t, "PUT", "/collaborators/todo-ci", map[string]any{"permission": "write"}, nil)
	c.runner = c.repository.runner(t)
	// Gitea notes a push in the background, later than it was. What was noted after a
	// comment came after it, as far as anybody can tell.
	waitFor(t, "note of the push", time.Minute, func() bool {
		var feed []struct {
			Type string `json:"op_type"`
		}
		c.must(t, "GET", "/activities/feeds", nil, &feed)
		for _, entry := range feed {
			if entry.Type == "commit_repo" {
				return true
			}
		}
		return false
	})
	time.Sleep(1100 * time.Millisecond) // whole seconds
	return c
}

func (c *chatRoom) overlay(tag string) string {
	return "resources: [../base]\nimages:\n  - name: todo-api\n    newName: " + c.registry + "/acme/todo-api\n    newTag: " + tag + "\n    digest: " + c.digests[tag] + "\n"
}

// say comments on an issue.
func (c *chatRoom) say(t *testing.T, user string, issue int, text string) {
	t.Helper()
	c.gitea.must(t, user, "POST", fmt.Sprintf("/repos/%s/issues/%d/comments", c.name, issue), map[string]any{"body": text}, nil)
}

// replies are what the bot has said on an issue, oldest first.
func (c *chatRoom) replies(t *testing.T, issue int) []string {
	t.Helper()
	var all []struct {
		Body string
		User struct{ Login string }
	}
	c.must(t, "GET", fmt.Sprintf("/issues/%d/comments", issue), nil, &all)
	var said []string
	for _, comment := range all {
		if comment.User.Login == "tagboat-bot" {
			said = append(said, comment.Body)
		}
	}
	return said
}

func (c *chatRoom) openPulls(t *testing.T) []string {
	t.Helper()
	var all []pull
	c.must(t, "GET", "/pulls?state=open&limit=50", nil, &all)
	var heads []string
	for _, p := range all {
		heads = append(heads, p.Head.Ref)
	}
	return heads
}

// serve starts the built command's server.
func (c *chatRoom) serve(t *testing.T, env ...string) string {
	t.Helper()
	address := freeAddress(t)
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv("TAGBOAT_BIN"), "serve", "--repo", c.url(), "--forge", "gitea", "--listen", address)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TAGBOAT_TOKEN=" + c.gitea.bot}, env...)
	server(t, "http://"+address+"/readyz", command)
	return "http://" + address
}

// slack gives a signed command, and the answer's text and how long it took.
func slackCommand(t *testing.T, server, user, text, reply string) (string, time.Duration) {
	t.Helper()
	form := url.Values{"team_id": {"T1"}, "user_id": {user}, "command": {"/tagboat"}, "text": {text}, "response_url": {reply}}.Encode()
	stamp := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(chatSecret))
	mac.Write([]byte("v0:" + stamp + ":" + form))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/slack/command", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Slack-Request-Timestamp", stamp)
	request.Header.Set("X-Slack-Signature", fmt.Sprintf("v0=%x", mac.Sum(nil)))
	start := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	took := time.Since(start)
	var said struct{ Text string }
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(body, &said) != nil {
		t.Fatalf("%s %s (%v)", response.Status, body, err)
	}
	return said.Text, took
}

// TestChatopsOnGitea: comments, a webhook, Slack and a pipeline ask on a real Gitea,
// whose own jobs do what is asked.
func TestChatopsOnGitea(t *testing.T) {
	c := openChatRoom(t)
	var issue struct{ Number int }
	c.must(t, "POST", "/issues", map[string]any{"title": "Release"}, &issue)

	// a stranger's command is refused, by a job that does not fail
	c.say(t, "li", issue.Number, "/promote todo-api to production")
	if done := c.runner.next(t, "chatops"); done.event != "issue_comment" || done.exit != 0 || !strings.Contains(done.stderr, "li may not write") {
		t.Fatalf("%+v", done)
	}
	// mei's is done, by Gitea's own job
	c.say(t, "mei", issue.Number, "/promote todo-api to production --reason \"@li <!-- x -->\"\nplease")
	if done := c.runner.next(t, "chatops"); done.exit != 0 || !strings.Contains(done.stderr, "opened: todo-api to production") {
		t.Fatalf("%+v", done)
	}
	if got := c.replies(t, issue.Number); len(got) != 2 || !strings.Contains(got[0], "Refused") || !strings.Contains(got[1], "**opened**") {
		t.Fatalf("replies %q", got)
	}
	if got := c.openPulls(t); !slices.Equal(got, []string{"tagboat/production/todo-api"}) {
		t.Fatalf("pull requests %q", got)
	}
	if !c.gitea.AtLeast(25) {
		t.Run("request is refused", c.tooOld)
		return
	}
	t.Run("webhook", func(t *testing.T) { c.webhook(t, issue.Number) })
	t.Run("slack", c.slack)
	t.Run("request", c.request)
}

// tooOld: a Gitea that tells no job who started it is asked for none.
func (c *chatRoom) tooOld(t *testing.T) {
	ask := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), "request", "--repo", c.url(), "--forge", "gitea", "--to", "staging",
		c.registry+"/acme/todo-api:v3@"+c.digests["v3"])
	ask.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TAGBOAT_TOKEN=" + c.gitea.bot}
	if out, err := ask.CombinedOutput(); err == nil || !strings.Contains(string(out), "it needs Gitea 1.25 or later") {
		t.Errorf("%v\n%s", err, out)
	}
}

// webhook: the comment starts Gitea's own job, and the webhook another one through
// the server. Both answer in one reply.
func (c *chatRoom) webhook(t *testing.T, issue int) {
	server := c.serve(t, "TAGBOAT_GITEA_SECRET="+chatSecret)
	c.must(t, "POST", "/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"issue_comment", "pull_request_comment"},
		"config": map[string]string{"url": server + "/gitea/hook", "content_type": "json", "secret": chatSecret},
	}, nil)
	before := len(c.replies(t, issue))
	c.say(t, "mei", issue, "/hold production todo-api until 2h it migrates")
	events := []string{}
	for range 2 {
		done := c.runner.next(t, "chatops", "--speaker=tagboat-bot")
		events = append(events, done.event)
		if done.exit != 0 {
			t.Fatalf("%+v", done)
		}
	}
	slices.Sort(events)
	if !slices.Equal(events, []string{"issue_comment", "workflow_dispatch"}) {
		t.Fatalf("jobs of %q", events)
	}
	got := c.replies(t, issue)[before:]
	if len(got) != 1 || !strings.Contains(got[0], "todo-api in production") {
		t.Errorf("replies %q", got)
	}
	c.say(t, "mei", issue, "/release production todo-api")
	for range 2 {
		c.runner.next(t, "chatops", "--speaker=tagboat-bot")
	}
}

func (c *chatRoom) slack(t *testing.T) {
	var mu sync.Mutex
	var answers []string
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, string(text))
	}))
	defer chat.Close()
	server := c.serve(t, "TAGBOAT_SLACK_SECRET="+chatSecret)
	said, took := slackCommand(t, server, "U1", "promote todo-api to production", chat.URL+"/commands/1")
	t.Logf("acknowledged after %d ms: %s", took.Milliseconds(), said)
	if !strings.HasPrefix(said, "Accepted: /promote todo-api from staging to production") || took > 3*time.Second {
		t.Fatalf("%s after %v", said, took)
	}
	done := c.runner.next(t, "chatops", "--speaker=tagboat-bot", "--reply-host="+strings.TrimPrefix(chat.URL, "http://"))
	if done.event != "workflow_dispatch" || done.exit != 0 || !strings.Contains(done.stderr, "unchanged: todo-api to production") {
		t.Fatalf("%+v", done)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(answers) != 1 || !strings.Contains(answers[0], "unchanged: todo-api to production") {
		t.Errorf("the chat got %q", answers)
	}
	// Gitea runs the job again in the name of who started it first, for anybody who may write
	var list struct {
		Runs []struct{ ID int64 } `json:"workflow_runs"`
	}
	c.must(t, "GET", "/actions/runs?event=workflow_dispatch", nil, &list)
	c.gitea.must(t, "todo-ci", "POST", fmt.Sprintf("/repos/%s/actions/runs/%d/rerun", c.name, list.Runs[0].ID), nil, nil)
	if done := c.runner.next(t, "chatops", "--speaker=tagboat-bot", "--reply-host="+strings.TrimPrefix(chat.URL, "http://")); done.exit == 0 || !strings.Contains(done.stderr, "started again") {
		t.Errorf("run again: %+v", done)
	}
	if said, _ := slackCommand(t, server, "U2", "promote todo-api to production", chat.URL); !strings.Contains(said, "li may not write") {
		t.Error(said)
	}
}

// request: a pipeline whose token is another user's asks, and waits for the result.
func (c *chatRoom) request(t *testing.T) {
	var token struct{ SHA1 string }
	c.gitea.must(t, "todo-ci", "POST", "/users/todo-ci/tokens", map[string]any{"name": "e2e", "scopes": []string{"write:repository"}}, &token)
	ask := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), "request", "--repo", c.url(), "--forge", "gitea", "--to", "staging", "--wait", "60s",
		c.registry+"/acme/todo-api:v3@"+c.digests["v3"])
	ask.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TAGBOAT_TOKEN=" + token.SHA1}
	var stdout, stderr bytes.Buffer
	ask.Stdout, ask.Stderr = &stdout, &stderr
	if err := ask.Start(); err != nil {
		t.Fatal(err)
	}
	done := c.runner.next(t, "chatops", "--accept=todo-ci=todo-api")
	if err := ask.Wait(); err != nil || done.exit != 0 {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if got := strings.TrimSpace(stdout.String()); !strings.HasPrefix(got, c.url()+"/pulls/") || !strings.Contains(stderr.String(), "opened: todo-api to staging") {
		t.Errorf("%s\n%s", got, stderr.String())
	}
	if got := c.openPulls(t); !slices.Contains(got, "tagboat/staging/todo-api") {
		t.Errorf("pull requests %q", got)
	}
}

// TestWebhookExamples reads what GitHub's webhooks really send: of all of it, the
// new comments of people are events, and nothing else is.
func TestWebhookExamples(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tool(t, "TAGBOAT_WEBHOOKS"), "api.github.com", "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Name     string
		Examples []json.RawMessage
	}
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	taken, all := 0, 0
	for _, event := range events {
		for _, example := range event.Examples {
			all++
			var said struct {
				Action  string
				Comment struct{ ID int64 }
				Issue   struct{ Number int }
			}
			_ = json.Unmarshal(example, &said) // a list has no action
			e, err := chatops.GitHubEvent(example)
			switch made := event.Name == "issue_comment" && said.Action == "created"; {
			case made && (err != nil || e.ID != said.Comment.ID || e.Number != said.Issue.Number || e.Author == "" || e.Repository == ""):
				t.Errorf("a new comment reads as %+v, %v", e, err)
			case event.Name == "issue_comment" && !made && !errors.Is(err, chatops.ErrIgnored):
				t.Errorf("%s %s: %v", event.Name, said.Action, err)
			case made:
				taken++
			case err == nil:
				t.Errorf("%s %s is taken for a new comment: %+v", event.Name, said.Action, e)
			}
		}
	}
	if taken < 3 || all < 100 {
		t.Errorf("%d new comments among %d examples", taken, all)
	}
}
