package chatops_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/chatops"
	"tagboat/config"
	"tagboat/image"
	"tagboat/scm"
)

func TestDesk(t *testing.T) {
	for name, on := range forges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, on)
			line := chatops.ChatLine{Team: "T1", User: "U1", Line: "/promote todo-api to production", Reply: "https://hooks.slack.com/x"}
			a, err := w.desk.Slack(t.Context(), line)
			if err != nil || a.Login != "mei" || a.Run.URL == "" {
				t.Fatalf("%+v, %v", a, err)
			}
			e := w.say("mei", "/promote todo-api to production")
			for range 5 { // the same delivery, five times
				if _, err := w.desk.Comment(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			runs := w.store.Runs()
			if len(runs) != 6 {
				t.Fatalf("%d runs", len(runs))
			}
			want := map[string]any{"command": "/promote todo-api from staging to production", "user": "slack:T1/U1", "reply": line.Reply}
			if diff := cmp.Diff(want, runs[5].Inputs); diff != "" {
				t.Error(diff)
			}
			// what is dispatched is what a job reads
			for _, run := range runs[:5] {
				ask, err := chatops.ParseAsk(texts(run.Inputs))
				if err != nil || ask.Comment != e.CommentAt || ask.LineHash != chatops.LineHash(e.Line) {
					t.Errorf("%+v, %v", ask, err)
				}
			}
		})
	}
}

func texts(inputs map[string]any) map[string]string {
	out := map[string]string{}
	for name, value := range inputs {
		out[name], _ = value.(string)
	}
	return out
}

// TestDeskLong: a line that is just not too long does not become too long by what the
// configuration adds: it would be refused after it was acknowledged.
func TestDeskLong(t *testing.T) {
	w := newWorld(t, onGitHub)
	line := "/promote todo-api@" + w.v2 + ` to production --reason "` + strings.Repeat("€", 132) + `"`
	if len(line) > chatops.LineLimit || len(line)+len(" from staging") <= chatops.LineLimit {
		t.Fatalf("%d bytes", len(line))
	}
	if _, err := w.desk.Slack(t.Context(), chatops.ChatLine{Team: "T1", User: "U1", Line: line}); err != nil {
		t.Fatal(err)
	}
	if c, err := chatops.Parse(texts(w.store.Runs()[0].Inputs)["command"]); err != nil || c.Digest != w.v2 {
		t.Errorf("the job reads %+v, %v", c, err)
	}
}

// TestDeskRefuses: what starts no job.
func TestDeskRefuses(t *testing.T) {
	w := newWorld(t, onGitea)
	tests := []struct {
		name, team, user, line string
		cause                  error
	}{
		{"unmapped", "T1", "U9", "/promote todo-api to production", chatops.ErrUnmapped},
		{"another workspace's user of that id", "T2", "U1", "/promote todo-api to production", chatops.ErrUnmapped},
		{"no right", "T7", "U2", "/promote todo-api to production", chatops.ErrNoRight},
		{"no grammar", "T1", "U1", "/promote", chatops.ErrSyntax},
		{"no command", "T1", "U1", "hello", chatops.ErrNotCommand},
		{"unknown app", "T1", "U1", "/promote todo to production", config.ErrUnknown},
		{"not in the order", "T1", "U1", "/promote todo-api from guarded to production", config.ErrNotAllowed},
	}
	for _, tt := range tests {
		a, err := w.desk.Slack(t.Context(), chatops.ChatLine{Team: tt.team, User: tt.user, Line: tt.line})
		if !errors.Is(err, tt.cause) {
			t.Errorf("%s: %+v, %v; want %v", tt.name, a, err, tt.cause)
		}
	}
	for author, cause := range map[string]error{"li": chatops.ErrNoRight, "stranger": chatops.ErrNoRight} {
		if _, err := w.desk.Comment(t.Context(), w.say(author, "/promote todo-api to production")); !errors.Is(err, cause) {
			t.Errorf("%s: %v", author, err)
		}
	}
	if _, err := w.desk.Comment(t.Context(), w.say("mei", "thanks")); !errors.Is(err, chatops.ErrNotCommand) {
		t.Error(err)
	}
	if a, err := w.desk.Slack(t.Context(), chatops.ChatLine{Team: "T1", User: "U1", Line: "/help"}); err != nil || a.Run.ID != 0 {
		t.Errorf("help: %+v, %v", a, err)
	}
	if n := len(w.store.Runs()); n != 0 {
		t.Errorf("%d runs were started", n)
	}
	// a command with a fault is answered in the conversation: the job does that
	if _, err := w.desk.Comment(t.Context(), w.say("mei", "/promote todo-api")); err != nil || len(w.store.Runs()) != 1 {
		t.Errorf("%v, %d runs", err, len(w.store.Runs()))
	}
}

// TestForgeDown: nothing is acknowledged that the forge has not taken.
func TestForgeDown(t *testing.T) {
	w := newWorld(t, onGitea)
	down := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(down.Close)
	w.forge = giteaAt(t, down.URL)
	w.desk.Repository = w.forge
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if a, err := w.desk.Slack(ctx, chatops.ChatLine{Team: "T1", User: "U1", Line: "/promote todo-api to production"}); !errors.Is(err, scm.ErrUnavailable) {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := w.desk.Comment(ctx, chatops.Event{Author: "mei", Line: "/help"}); err == nil || errors.Is(err, chatops.ErrNoRight) {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestParseAsk(t *testing.T) {
	hash := strings.Repeat("a", 64)
	good := []map[string]string{
		{"command": "/help"},
		{"command": "/help", "request": "abc-1", "to": "", "user": ""},
		{"command": "/help", "user": "slack:T1/U1", "reply": "https://hooks.slack.com/commands/1"},
		{"image": "ghcr.io/acme/a:v1@" + digest, "to": "staging"},
		{"comment": "42 pull 7 group/sub/name " + hash},
		{"comment": "42 issue 7 acme/todo " + hash, "request": "x"},
	}
	for _, inputs := range good {
		a, err := chatops.ParseAsk(inputs)
		if err != nil {
			t.Errorf("%v: %v", inputs, err)
			continue
		}
		again, err := chatops.ParseAsk(texts(a.Inputs()))
		if diff := cmp.Diff(a, again); diff != "" || err != nil {
			t.Errorf("%v: %v %s", inputs, err, diff)
		}
	}
	bad := []map[string]string{
		{},
		{"request": "x"},
		{"command": "/help", "image": "a@" + digest, "to": "staging"},
		{"command": "/help", "comment": "42 pull 7 acme/todo " + hash},
		{"command": "/help\n/promote a to b"},
		{"command": strings.Repeat("x", 2000)},
		{"command": "/help", "request": "a b"},
		{"command": "/help", "request": "$(id)"},
		{"command": "/help", "user": "mei"},
		{"command": "/help", "user": "slack:U1"},
		{"command": "/help", "reply": "https://hooks.slack.com/x"},
		{"image": "ghcr.io/acme/a:v1", "to": "staging"},
		{"image": "ghcr.io/acme/a@" + digest},
		{"image": "https://ghcr.io/acme/a@" + digest, "to": "staging"},
		{"image": "ghcr.io/acme/a@" + digest, "to": "../x"},
		{"image": "ghcr.io/acme/a@" + digest, "to": "staging", "user": "slack:T1/U1"},
		{"to": "staging"},
		{"comment": "42"},
		{"comment": "42 pull 7 acme/todo"},
		{"comment": "0 pull 7 acme/todo " + hash},
		{"comment": "42 commit 7 acme/todo " + hash},
		{"comment": "42 pull 7 ../todo " + hash},
		{"comment": "42 pull 7 https://evil.example/x " + hash},
		{"comment": "99999999999999999999 pull 7 acme/todo " + hash},
		{"comment": "42 pull 7 acme/todo " + hash, "user": "slack:T1/U1"},
	}
	for _, inputs := range bad {
		if a, err := chatops.ParseAsk(inputs); err == nil {
			t.Errorf("%v reads as %+v", inputs, a)
		}
	}
}

func TestInputNames(t *testing.T) {
	ask := chatops.Ask{
		Mark: "m", Command: "c", Image: image.Reference{Repository: "r"}, To: "t", User: "u", Reply: "r",
		Comment: chatops.CommentAt{Repository: "a/b", CommentRef: scm.CommentRef{ID: 1, Number: 1}},
	}
	for name := range ask.Inputs() {
		if !strings.Contains(strings.Join(chatops.InputNames(), " "), name) {
			t.Errorf("%s is no declared input", name)
		}
	}
	if len(ask.Inputs()) != len(chatops.InputNames()) {
		t.Errorf("%v, declared %v", ask.Inputs(), chatops.InputNames())
	}
}

func TestReply(t *testing.T) {
	var got map[string]string
	status := http.StatusOK
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Error(err)
		}
		if status == http.StatusFound {
			w.Header().Set("Location", "http://127.0.0.1:1/")
		}
		w.WriteHeader(status)
	}))
	defer chat.Close()
	address := chat.URL + "/secret-path"
	hosts := append(chatops.SlackHosts(), strings.TrimPrefix(chat.URL, "http://"))
	if err := chatops.CheckReply(address, hosts); err != nil {
		t.Fatal(err)
	}
	if err := chatops.Post(t.Context(), address, "a <!channel> & <@U1>\u202e", true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"response_type": "in_channel", "text": "a &lt;!channel&gt; &amp; &lt;@U1&gt;"}, got); diff != "" {
		t.Error(diff)
	}
	for _, s := range []int{404, 500, http.StatusFound} {
		status = s
		if err := chatops.Post(t.Context(), address, "x", false); err == nil || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%d: %v", s, err)
		}
	}
	chat.Close()
	if err := chatops.Post(t.Context(), address, "x", false); err == nil || strings.Contains(err.Error(), "secret-path") {
		t.Error(err)
	}
	for _, bad := range []string{
		"http://hooks.slack.com/x", "https://hooks.slack.com.evil.example/x", "https://evil.example/hooks.slack.com", "https://a@hooks.slack.com/x",
		"https://hooks.slack.com@evil.example/x", "file:///etc/passwd", "https://169.254.169.254/", "http://127.0.0.1:9/x", "", "https://hooks.slack.com:8443/x",
	} {
		if chatops.CheckReply(bad, hosts) == nil {
			t.Errorf("%s takes answers", bad)
		}
	}
}
