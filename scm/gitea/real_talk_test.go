//go:build e2e

package gitea_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteareal"
)

// A comment comes through the server's own webhook, with its signature, and what
// the hook says leads to the comment.
func TestRealHookLeadsToTheComment(t *testing.T) {
	server := realServer(t)
	if err := server.AddRepo(t.Context(), "config", "mei"); err != nil {
		t.Fatal(err)
	}
	type delivery struct {
		event, signature string
		body             []byte
	}
	got := make(chan delivery, 4)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		got <- delivery{req.Header.Get("X-Gitea-Event"), req.Header.Get("X-Gitea-Signature"), body}
		w.WriteHeader(http.StatusOK)
	}))
	defer listener.Close()
	if err := server.AddHook(t.Context(), "config", giteareal.Hook{URL: listener.URL, Secret: "hook-secret"}); err != nil {
		t.Fatal(err)
	}
	person := server.Person(t.Context(), "config")
	number, err := person.OpenIssue("Release", "mei")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := person.Say(number, "mei", "/promote todo-api to production"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var d delivery
	select {
	case d = <-got:
	case <-ctx.Done():
		t.Fatal("no delivery")
	}
	mac := hmac.New(sha256.New, []byte("hook-secret"))
	mac.Write(d.body)
	if d.event != "issue_comment" || d.signature != hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("event %s, signature %s", d.event, d.signature)
	}
	var event struct {
		Action  string
		Comment struct{ ID int64 }
		Issue   struct{ Number int }
		Is_Pull bool //nolint:revive // the JSON key
	}
	if err := json.Unmarshal(d.body, &event); err != nil {
		t.Fatal(err)
	}
	repo, err := gitea.New(gitea.Options{BaseURL: server.URL, Owner: server.Admin, Name: "config", Token: server.Token})
	if err != nil {
		t.Fatal(err)
	}
	c, err := repo.Comment(ctx, scm.CommentRef{ID: event.Comment.ID, Number: event.Issue.Number, PullRequest: event.Is_Pull})
	if err != nil || event.Action != "created" || c.Author != "mei" || c.Body != "/promote todo-api to production" {
		t.Errorf("%s: %+v, %v", event.Action, c, err)
	}
}
