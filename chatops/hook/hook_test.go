package hook_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/chatops"
	"tagboat/chatops/hook"
	"tagboat/config"
	"tagboat/scm"
)

const (
	secret  = "the-signing-secret"
	comment = `{"action":"created","issue":{"number":7,"pull_request":{"url":"x"}},"comment":{"id":42,"body":"/promote todo-api to production\r\nplease","user":{"login":"mei","type":"User"}},"repository":{"full_name":"acme/todo"}}`
	note    = `{"object_kind":"note","user":{"username":"mei"},"project":{"path_with_namespace":"acme/todo"},"object_attributes":{"id":42,"action":"create","noteable_type":"MergeRequest","note":"/promote todo-api to production"},"merge_request":{"iid":7}}` //nolint:misspell // GitLab's spelling
	slash   = "team_id=T1&user_id=U1&user_name=li&command=%2Fpromote&text=todo-api+to+production&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1%2F1%2Fsecretpath"
)

// desk takes everything, or says err.
type desk struct {
	mu     sync.Mutex
	events []chatops.Event
	lines  []chatops.ChatLine
	err    error
	wait   chan struct{}
}

func (d *desk) Comment(ctx context.Context, e chatops.Event) (chatops.Accepted, error) {
	if d.wait != nil {
		select {
		case <-d.wait:
		case <-ctx.Done():
			return chatops.Accepted{}, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	c, err := chatops.Parse(e.Line)
	return chatops.Accepted{Command: c, Login: e.Author}, errors.Join(err, d.err)
}

func (d *desk) Slack(ctx context.Context, l chatops.ChatLine) (chatops.Accepted, error) {
	if d.wait != nil {
		<-ctx.Done()
		return chatops.Accepted{}, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, l)
	c, err := chatops.Parse(l.Line)
	if err != nil {
		return chatops.Accepted{}, err
	}
	return chatops.Accepted{Command: c, Login: "li", Run: scm.Run{URL: "https://forge.example/run/1"}}, d.err
}

func (d *desk) taken() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.events) + len(d.lines)
}

func server(d *desk, log io.Writer) *hook.Server {
	return hook.New(hook.Options{
		Desk: d, SlackSecret: secret, GitHubSecret: secret, GiteaSecret: secret, GitLabToken: secret,
		Log: slog.New(slog.NewJSONHandler(log, nil)), ChatTime: 50 * time.Millisecond, ForgeTime: 200 * time.Millisecond,
	})
}

func mac(secret, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return fmt.Sprintf("%x", h.Sum(nil))
}

func slackHeader(at time.Time, secret, body string) http.Header {
	stamp := fmt.Sprint(at.Unix())
	return http.Header{
		"X-Slack-Request-Timestamp": {stamp}, "X-Slack-Signature": {"v0=" + mac(secret, "v0:"+stamp+":"+body)},
		"Content-Type": {"application/x-www-form-urlencoded"},
	}
}

func send(t *testing.T, s http.Handler, path string, h http.Header, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for key := range h {
		r.Header.Set(key, h.Get(key))
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestSigned(t *testing.T) {
	now := time.Now()
	gh := func(name, value string) http.Header {
		return http.Header{name: {value}, "X-Github-Event": {"issue_comment"}}
	}
	gt := func(value string) http.Header {
		return http.Header{"X-Gitea-Signature": {value}, "X-Gitea-Event": {"issue_comment"}}
	}
	gl := func(value string) http.Header {
		return http.Header{"X-Gitlab-Token": {value}, "X-Gitlab-Event": {"Note Hook"}}
	}
	reencoded := strings.ReplaceAll(slash, "+", "%20") // a proxy's own spelling of the same form
	tests := []struct {
		name, path string
		header     http.Header
		body       string
		want       int
	}{
		{"github", "/github/hook", gh("X-Hub-Signature-256", "sha256="+mac(secret, comment)), comment, 202},
		{"github, none", "/github/hook", http.Header{"X-Github-Event": {"issue_comment"}}, comment, 401},
		{"github, empty", "/github/hook", gh("X-Hub-Signature-256", ""), comment, 401},
		{"github, prefix alone", "/github/hook", gh("X-Hub-Signature-256", "sha256="), comment, 401},
		{"github, no prefix", "/github/hook", gh("X-Hub-Signature-256", mac(secret, comment)), comment, 401},
		{"github, half", "/github/hook", gh("X-Hub-Signature-256", "sha256="+mac(secret, comment)[:32]), comment, 401},
		{"github, sha1 header", "/github/hook", gh("X-Hub-Signature", "sha256="+mac(secret, comment)), comment, 401},
		{"github, other secret", "/github/hook", gh("X-Hub-Signature-256", "sha256="+mac("x", comment)), comment, 401},
		{"github, empty secret", "/github/hook", gh("X-Hub-Signature-256", "sha256="+mac("", comment)), comment, 401},
		{"github, body changed", "/github/hook", gh("X-Hub-Signature-256", "sha256="+mac(secret, comment)), comment + " ", 401},
		{"gitea", "/gitea/hook", gt(mac(secret, comment)), comment, 202},
		{"gitea, other secret", "/gitea/hook", gt(mac("x", comment)), comment, 401},
		{"gitea, none", "/gitea/hook", gt(""), comment, 401},
		{"gitea, body changed", "/gitea/hook", gt(mac(secret, comment)), strings.Replace(comment, "todo-api", "todo-web", 1), 401},
		{"gitlab", "/gitlab/hook", gl(secret), note, 202},
		{"gitlab, confidential", "/gitlab/hook", http.Header{"X-Gitlab-Token": {secret}, "X-Gitlab-Event": {"Confidential Note Hook"}}, note, 202},
		{"gitlab, none", "/gitlab/hook", gl(""), note, 401},
		{"gitlab, begins alike", "/gitlab/hook", gl(secret + "x"), note, 401},
		{"gitlab, a part", "/gitlab/hook", gl(secret[:5]), note, 401},
		{"slack", "/slack/command", slackHeader(now, secret, slash), slash, 200},
		{"slack, 4 minutes old", "/slack/command", slackHeader(now.Add(-4*time.Minute), secret, slash), slash, 200},
		{"slack, 6 minutes old", "/slack/command", slackHeader(now.Add(-6*time.Minute), secret, slash), slash, 401},
		{"slack, 6 minutes early", "/slack/command", slackHeader(now.Add(6*time.Minute), secret, slash), slash, 401},
		{"slack, other secret", "/slack/command", slackHeader(now, "x", slash), slash, 401},
		{"slack, no signature", "/slack/command", http.Header{"X-Slack-Request-Timestamp": {fmt.Sprint(now.Unix())}}, slash, 401},
		{"slack, no timestamp", "/slack/command", http.Header{"X-Slack-Signature": slackHeader(now, secret, slash)["X-Slack-Signature"]}, slash, 401},
		{"slack, body changed by a proxy", "/slack/command", slackHeader(now, secret, slash), reencoded, 401},
		{"slack, another time", "/slack/command", http.Header{
			"X-Slack-Request-Timestamp": {fmt.Sprint(now.Unix() + 1)}, "X-Slack-Signature": slackHeader(now, secret, slash)["X-Slack-Signature"],
		}, slash, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &desk{}
			var log bytes.Buffer
			code, body := send(t, server(d, &log), tt.path, tt.header, tt.body)
			if code != tt.want {
				t.Errorf("status %d, want %d: %s", code, tt.want, body)
			}
			if want := tt.want < 300; want != (d.taken() == 1) {
				t.Errorf("taken %d times", d.taken())
			}
			for _, hidden := range []string{secret, "secretpath", "v0=", "sha256="} {
				if strings.Contains(log.String(), hidden) || strings.Contains(body, hidden) {
					t.Errorf("%s shows in\n%s\n%s", hidden, log.String(), body)
				}
			}
		})
	}
}

func TestRead(t *testing.T) {
	d := &desk{}
	s := server(d, io.Discard)
	for path, header := range map[string]http.Header{
		"/github/hook":   {"X-Hub-Signature-256": {"sha256=" + mac(secret, comment)}, "X-Github-Event": {"issue_comment"}},
		"/gitlab/hook":   {"X-Gitlab-Token": {secret}, "X-Gitlab-Event": {"Note Hook"}},
		"/slack/command": slackHeader(time.Now(), secret, slash),
	} {
		body := map[string]string{"/github/hook": comment, "/gitlab/hook": note, "/slack/command": slash}[path]
		if code, text := send(t, s, path, header, body); code > 299 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	at := chatops.CommentAt{Repository: "acme/todo", CommentRef: scm.CommentRef{ID: 42, Number: 7, PullRequest: true}}
	event := chatops.Event{CommentAt: at, Author: "mei", Line: "/promote todo-api to production"}
	if diff := cmp.Diff([]chatops.Event{event, event}, d.events); diff != "" {
		t.Error(diff)
	}
	line := chatops.ChatLine{Team: "T1", User: "U1", Line: "/promote todo-api to production", Reply: "https://hooks.slack.com/commands/T1/1/secretpath"}
	if diff := cmp.Diff([]chatops.ChatLine{line}, d.lines); diff != "" {
		t.Error(diff)
	}
}

func TestIgnored(t *testing.T) {
	tests := []struct {
		name, path, kind, body string
		want                   int
	}{
		{"edited", "/github/hook", "issue_comment", strings.Replace(comment, "created", "edited", 1), 200},
		{"deleted", "/gitea/hook", "issue_comment", strings.Replace(comment, "created", "deleted", 1), 200},
		{"bot", "/github/hook", "issue_comment", strings.Replace(comment, `"User"`, `"Bot"`, 1), 200},
		{"app in a person's name", "/github/hook", "issue_comment", strings.Replace(comment, `"user":`, `"performed_via_github_app":{"id":1},"user":`, 1), 200},
		{"push", "/github/hook", "push", "{}", 200},
		{"ping", "/github/hook", "ping", "{}", 200},
		{"review comment", "/gitea/hook", "pull_request_review_comment", "{}", 200},
		{"edited note", "/gitlab/hook", "Note Hook", strings.Replace(note, `"create"`, `"update"`, 1), 200},
		{"note on a commit", "/gitlab/hook", "Note Hook", strings.Replace(note, "MergeRequest", "Commit", 1), 200},
		{"system note", "/gitlab/hook", "Note Hook", strings.Replace(note, `"id":42`, `"id":42,"system":true`, 1), 200},
		{"push hook", "/gitlab/hook", "Push Hook", "{}", 200},
		{"no JSON", "/github/hook", "issue_comment", "payload=%7B%7D", 400},
		{"another event's body", "/github/hook", "issue_comment", "{}", 400},
		{"no repository", "/github/hook", "issue_comment", strings.Replace(comment, "acme/todo", "../x", 1), 400},
		{"no author", "/gitea/hook", "issue_comment", strings.Replace(comment, "mei", "", 1), 400},
		{"other kind", "/gitlab/hook", "Note Hook", "{}", 400},
	}
	for _, tt := range tests {
		d := &desk{}
		h := http.Header{
			"X-Hub-Signature-256": {"sha256=" + mac(secret, tt.body)}, "X-Github-Event": {tt.kind},
			"X-Gitea-Signature": {mac(secret, tt.body)}, "X-Gitea-Event": {tt.kind}, "X-Gitlab-Token": {secret}, "X-Gitlab-Event": {tt.kind},
		}
		if code, text := send(t, server(d, io.Discard), tt.path, h, tt.body); code != tt.want || d.taken() != 0 {
			t.Errorf("%s: %d %s, taken %d", tt.name, code, text, d.taken())
		}
	}
}

// What the desk says becomes what the sender can use: a forge sends again what may
// go well then, a person reads what to do.
func TestAnswers(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		forge int
		chat  string
	}{
		{"accepted", nil, 202, "Accepted: /promote todo-api to production"},
		{"no right", fmt.Errorf("%w: li may not write", chatops.ErrNoRight), 200, "Refused, nothing was started: no right: li may not write"},
		{"unmapped", chatops.ErrUnmapped, 0, "not in tagboat.yaml"}, // 0: of chats alone
		{"unknown", fmt.Errorf("%w: no app", config.ErrUnknown), 0, "Refused, nothing was started: unknown name: no app"},
		{"down", fmt.Errorf("https://forge.internal: %w", scm.ErrUnavailable), 503, "did not answer in time"},
		{"denied", fmt.Errorf("token of https://forge.internal: %w", scm.ErrDenied), 503, "the forge refused to run the job"},
	}
	for _, tt := range tests {
		s := server(&desk{err: tt.err}, io.Discard)
		h := http.Header{"X-Hub-Signature-256": {"sha256=" + mac(secret, comment)}, "X-Github-Event": {"issue_comment"}}
		code, text := send(t, s, "/github/hook", h, comment)
		if tt.forge != 0 && code != tt.forge {
			t.Errorf("%s: %d %s, want %d", tt.name, code, text, tt.forge)
		}
		code, said := send(t, s, "/slack/command", slackHeader(time.Now(), secret, slash), slash)
		if code != 200 || !strings.Contains(said, tt.chat) || !strings.Contains(said, `"ephemeral"`) {
			t.Errorf("%s: %d %s, want %s", tt.name, code, said, tt.chat)
		}
		if strings.Contains(text+said, "forge.internal") {
			t.Errorf("%s: shows the forge's address: %s %s", tt.name, text, said)
		}
	}
}

func TestSlackForms(t *testing.T) {
	tests := []struct{ form, line, said string }{
		{"command=/tagboat&text=promote+a+to+b", "/promote a to b", "Accepted"},
		{"command=/tagboat&text=/promote+a+to+b", "/promote a to b", "Accepted"},
		{"command=/promote&text=a+to+b", "/promote a to b", "Accepted"},
		{"command=/tagboat&text=help", "/help", "/promote APP"},
		{"command=/tagboat&text=", "/", "Not understood"},
		{"command=/promote&text=<!channel>+to+b", "/promote <!channel> to b", "&lt;!channel&gt;"},
		{"command=/promote&text=a+too+b", "/promote a too b", "did you mean to?"},
	}
	for _, tt := range tests {
		d := &desk{}
		body := "team_id=T1&user_id=U1&" + strings.ReplaceAll(strings.ReplaceAll(tt.form, "<", "%3C"), ">", "%3E")
		code, said := send(t, server(d, io.Discard), "/slack/command", slackHeader(time.Now(), secret, body), body)
		if code != 200 || len(d.lines) != 1 || d.lines[0].Line != tt.line || !strings.Contains(unescape(said), tt.said) {
			t.Errorf("%s: %d %s %+v", tt.form, code, said, d.lines)
		}
	}
	for _, body := range []string{"user_id=U1&command=/promote", "team_id=T1&command=/promote", "team_id=T1&user_id=U1", "%zz"} {
		if code, _ := send(t, server(&desk{}, io.Discard), "/slack/command", slackHeader(time.Now(), secret, body), body); code != 400 {
			t.Errorf("%s: %d", body, code)
		}
	}
}

func unescape(json string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(json)
}

// The forge's silence ends before the chat's patience.
func TestSlowForge(t *testing.T) {
	s := server(&desk{wait: make(chan struct{})}, io.Discard)
	began := time.Now()
	code, said := send(t, s, "/slack/command", slackHeader(began, secret, slash), slash)
	if code != 200 || !strings.Contains(said, "did not answer in time") || time.Since(began) > time.Second {
		t.Errorf("%d %s after %v", code, said, time.Since(began))
	}
	h := http.Header{"X-Hub-Signature-256": {"sha256=" + mac(secret, comment)}, "X-Github-Event": {"issue_comment"}}
	if code, said := send(t, s, "/github/hook", h, comment); code != 503 {
		t.Errorf("%d %s", code, said)
	}
}

// The same webhook five times is five dispatches of one promotion: the server keeps
// nothing that it could compare with.
func TestRepeated(t *testing.T) {
	d := &desk{}
	s := server(d, io.Discard)
	h := http.Header{"X-Hub-Signature-256": {"sha256=" + mac(secret, comment)}, "X-Github-Event": {"issue_comment"}}
	for range 5 {
		if code, said := send(t, s, "/github/hook", h, comment); code != 202 {
			t.Errorf("%d %s", code, said)
		}
	}
	if d.taken() != 5 {
		t.Errorf("taken %d times", d.taken())
	}
}

// zeros is a body without end.
type zeros struct{ read int }

func (z *zeros) Read(p []byte) (int, error) {
	z.read += len(p)
	return len(p), nil
}

func TestTooLarge(t *testing.T) {
	for _, path := range []string{"/github/hook", "/gitlab/hook", "/gitea/hook", "/slack/command"} {
		for _, length := range []int64{10 << 20, -1} { // told, or chunked
			d := &desk{}
			body := &zeros{}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
			r.ContentLength = length
			r.Header.Set("X-Gitlab-Token", secret)
			w := httptest.NewRecorder()
			server(d, io.Discard).ServeHTTP(w, r)
			if w.Code != http.StatusRequestEntityTooLarge || body.read > 4<<20 || d.taken() != 0 {
				t.Errorf("%s, length %d: %d after %d bytes", path, length, w.Code, body.read)
			}
		}
	}
}

func TestOtherPaths(t *testing.T) {
	s := server(&desk{}, io.Discard)
	get := func(s http.Handler, method, path string) (int, string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w.Code, w.Body.String()
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/github/hook": 405, "/slack/command": 405, "/": 404, "/debug/pprof/": 404} {
		if code, text := get(s, http.MethodGet, path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := get(s, http.MethodGet, "/metrics"); code != 200 || !strings.Contains(text, `tagboat_requests_total{channel="github",outcome="malformed"} 1`) {
		t.Errorf("metrics: %d %s", code, text)
	}
	s.Drain()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		if code, _ := get(s, http.MethodGet, path); code != want {
			t.Errorf("draining, %s: %d", path, code)
		}
	}
	closed := hook.New(hook.Options{Desk: &desk{}, GitHubSecret: secret, Log: slog.New(slog.DiscardHandler)})
	for _, path := range []string{"/gitea/hook", "/gitlab/hook", "/slack/command"} {
		if code, _ := send(t, closed, path, http.Header{"X-Gitlab-Token": {""}}, note); code != 404 {
			t.Errorf("%s without a secret: %d", path, code)
		}
	}
}

func TestBusy(t *testing.T) {
	d := &desk{wait: make(chan struct{})}
	s := hook.New(hook.Options{Desk: d, GitHubSecret: secret, Log: slog.New(slog.DiscardHandler), InFlight: 2})
	h := http.Header{"X-Hub-Signature-256": {"sha256=" + mac(secret, comment)}, "X-Github-Event": {"issue_comment"}}
	codes := make(chan int, 3)
	for range 3 {
		go func() {
			code, _ := send(t, s, "/github/hook", h, comment)
			codes <- code
		}()
	}
	if code := <-codes; code != 503 { // the one that found no place
		t.Errorf("the first answer is %d", code)
	}
	close(d.wait)
	for range 2 {
		if code := <-codes; code != 202 {
			t.Errorf("%d", code)
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Who sends a byte now and then holds no connection.
func TestSlowSender(t *testing.T) {
	s := hook.New(hook.Options{
		Desk: &desk{}, GitHubSecret: secret, Log: slog.New(slog.DiscardHandler), HeaderTime: 100 * time.Millisecond, BodyTime: 200 * time.Millisecond,
	})
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, time.Second) }()
	for name, begin := range map[string]string{
		"header": "POST /github/hook HTTP/1.1\r\nHost: x\r\nX-A: ",
		"body":   "POST /github/hook HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, begin)
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		answer, err := io.ReadAll(bufio.NewReader(conn))
		if err != nil {
			t.Errorf("%s: the connection is still open: %v, %s", name, err, answer)
		}
		_ = conn.Close()
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A server that is told to stop answers what it has begun.
func TestGraceful(t *testing.T) {
	d := &desk{wait: make(chan struct{})}
	s := hook.New(hook.Options{Desk: d, GitHubSecret: secret, Log: slog.New(slog.DiscardHandler)})
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, 5*time.Second) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, (&url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/github/hook"}).String(), strings.NewReader(comment))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Hub-Signature-256", "sha256="+mac(secret, comment))
	r.Header.Set("X-GitHub-Event", "issue_comment")
	answered := make(chan int, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		defer func() { _ = response.Body.Close() }()
		answered <- response.StatusCode
	}()
	time.Sleep(100 * time.Millisecond)
	stop()
	time.Sleep(50 * time.Millisecond)
	close(d.wait)
	if code := <-answered; code != 202 {
		t.Errorf("status %d", code)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestUnsignedIsNotLogged: who has no secret writes nothing into the log.
func TestUnsignedIsNotLogged(t *testing.T) {
	for _, header := range []http.Header{
		{"X-Slack-Request-Timestamp": {"planted"}, "X-Slack-Signature": {"v0=" + mac("wrong", "x")}},
		{"X-Slack-Request-Timestamp": {fmt.Sprint(time.Now().Unix())}, "X-Slack-Signature": {"v0=planted"}},
		{"X-Slack-Request-Timestamp": {fmt.Sprint(time.Now().Add(-time.Hour).Unix())}, "X-Slack-Signature": {"v0=" + mac("wrong", "planted")}},
	} {
		var log bytes.Buffer
		if status, _ := send(t, server(&desk{}, &log), "/slack/command", header, "text=planted"); status != http.StatusUnauthorized {
			t.Errorf("%v: status %d", header, status)
		}
		if strings.Contains(log.String(), "planted") || !strings.Contains(log.String(), "signature is missing or wrong") {
			t.Errorf("%v: logged %s", header, log.String())
		}
	}
}
