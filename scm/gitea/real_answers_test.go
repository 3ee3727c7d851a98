//go:build e2e

package gitea_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

// side is one of the two servers that are asked the same, as a writer of a repository
// that has file on main, a protected branch, and the branch head with one commit.
type side struct {
	repo, token string // URL of the repository in the API
	names       map[string]string
}

// answer is what the driver decides by.
type answer struct {
	Status  int
	Message string // of a refusal, without what differs between two servers
}

var (
	commitID = regexp.MustCompile(`[0-9a-f]{40}`)
	rowID    = regexp.MustCompile(`(id|uid): \d+`)
)

func (s *side) ask(t *testing.T, method, path, in string) answer {
	t.Helper()
	for name, v := range s.names {
		path, in = strings.ReplaceAll(path, "$"+name, v), strings.ReplaceAll(in, "$"+name, v)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.repo+path, bytes.NewReader([]byte(in)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{Status: resp.StatusCode}
	if resp.StatusCode/100 == 2 {
		return a
	}
	var said struct {
		Message string
		Errors  []string
	}
	if json.Unmarshal(body, &said) != nil {
		said.Message = string(body)
	}
	a.Message = strings.Join(append([]string{said.Message}, said.Errors...), " | ")
	a.Message = strings.ReplaceAll(a.Message, s.names["owner"], "OWNER")
	a.Message = rowID.ReplaceAllString(commitID.ReplaceAllString(a.Message, "COMMIT"), "$1: N")
	return a
}

// files is the body of POST contents with one change.
func files(branch, target, operation, path, content, sha string) string {
	b, err := json.Marshal(map[string]any{"branch": branch, "new_branch": target, "message": "Change", "files": []map[string]string{
		{"operation": operation, "path": path, "content": base64.StdEncoding.EncodeToString([]byte(content)), "sha": sha},
	}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestAnswersReal asks a real server and the fake of its version the same: where the
// driver decides by an answer, the fake's is the real one's.
func TestAnswersReal(t *testing.T) {
	server := realServer(t)
	store := scmtest.NewStore("main", map[string]string{"README.md": "# config\n"})
	listener := httptest.NewServer(giteatest.New(giteatest.Options{
		Store: store, Version: server.Version, User: "mei", Users: []string{"mei", "li"}, NotRepoAdmin: true, Report: t.Logf,
	}))
	t.Cleanup(listener.Close)
	if err := server.AddRepo(t.Context(), "answers", "mei"); err != nil {
		t.Fatal(err)
	}
	if err := server.AddUser(t.Context(), "li"); err != nil {
		t.Fatal(err)
	}
	real := &side{repo: server.URL + "/api/v1/repos/" + server.Admin + "/answers", token: tokenOf(t, server, "mei", "write:repository", "write:issue", "read:user")}
	fake := &side{repo: listener.URL + "/api/v1/repos/acme/config", token: "token"}
	store.SetPermission("mei", "write")
	store.SetPermission("li", "read")
	prepare(t, server.Person(t.Context(), "answers"), real)
	prepare(t, store, fake)
	real.names["owner"], fake.names["owner"] = server.Admin, "acme"
	const none = "1234567890123456789012345678901234567890"
	for _, c := range []struct{ name, method, path, in string }{
		{"a branch that is not there", "GET", "/branches/gone", ""},
		{"a commit that is not there", "GET", "/git/commits/" + none + "?stat=false&verification=false&files=false", ""},
		{"the history of such a commit", "GET", "/commits?stat=false&verification=false&files=false&sha=" + none, ""},
		{"a file's history at such a commit", "GET", "/commits?stat=false&verification=false&files=false&path=README.md&sha=" + none, ""},
		{"the history of a path that never was", "GET", "/commits?stat=false&verification=false&files=false&path=nothing&sha=$main", ""},
		{"a file that is not there", "GET", "/contents/nothing?ref=$main", ""},
		{"a file at no commit", "GET", "/contents/README.md?ref=" + none, ""},
		{"a tree that is not there", "GET", "/git/trees/" + none, ""},
		{"references that are not there", "GET", "/git/refs/pull/999/head", ""},
		{"a pull request by branches that never was", "GET", "/pulls/main/no/such", ""},
		{"a pull request that never was", "GET", "/pulls/999", ""},
		{"statuses of a commit without", "GET", "/commits/$main/status", ""},
		{"statuses of no commit", "GET", "/commits/" + none + "/status", ""},
		{"a status on no commit", "POST", "/statuses/" + none, `{"context":"x","state":"success"}`},
		{"what brought a commit that nothing brought", "GET", "/commits/$main/pull", ""},
		{"own permission", "GET", "/collaborators/mei/permission", ""},
		{"another's permission", "GET", "/collaborators/li/permission", ""},
		{"a comment that is not there", "GET", "/issues/comments/999", ""},
		{"an issue that is not there", "GET", "/issues/999", ""},
		{"a comment on what is not there", "POST", "/issues/999/comments", `{"body":"x"}`},

		{"a new branch", "POST", "/contents", files("main", "made", "create", "new.txt", "x", "")},
		{"a branch that is there", "POST", "/contents", files("main", "made", "create", "new.txt", "x", "")},
		{"on no branch", "POST", "/contents", files("gone", "other", "create", "new.txt", "x", "")},
		{"onto no branch", "POST", "/contents", files("gone", "", "create", "new.txt", "x", "")},
		{"a file that is there", "POST", "/contents", files("main", "other", "create", "README.md", "x", "")},
		{"another blob", "POST", "/contents", files("main", "other", "update", "README.md", "x", none)},
		{"an update of no file", "POST", "/contents", files("main", "other", "update", "nothing", "x", none)},
		{"a deletion of no file", "POST", "/contents", files("main", "other", "delete", "nothing", "", none)},
		{"below a file", "POST", "/contents", files("main", "other", "create", "README.md/x", "x", "")},
		{"where a directory is", "POST", "/contents", files("main", "other", "create", "apps", "x", "")},
		{"a path of git's", "POST", "/contents", files("main", "other", "create", ".git/config", "x", "")},
		{"onto a protected branch", "POST", "/contents", files("locked", "", "create", "new.txt", "x", "")},
		{"a branch below another", "POST", "/contents", files("main", "made/below", "create", "new.txt", "x", "")},
		{"an append", "POST", "/contents", files("made", "", "create", "more.txt", "x", "")},

		{"a swap from another commit", "PUT", "/branches/made", `{"old_commit_id":"` + none + `","new_commit_id":"$main","force":true}`},
		{"a swap of no branch", "PUT", "/branches/gone", `{"old_commit_id":"$main","new_commit_id":"$main","force":true}`},
		{"a swap that goes back", "PUT", "/branches/$head", `{"old_commit_id":"$tip","new_commit_id":"$main"}`},
		{"deletion of no branch", "DELETE", "/branches/gone", ""},
		{"deletion of the default branch", "DELETE", "/branches/main", ""},
		{"deletion of a protected branch", "DELETE", "/branches/locked", ""},

		{"a pull request of no branch", "POST", "/pulls", `{"head":"gone","base":"main","title":"x"}`},
		{"a pull request of itself", "POST", "/pulls", `{"head":"main","base":"main","title":"x"}`},
		{"a pull request without a title", "POST", "/pulls", `{"head":"$head","base":"main"}`},
		{"a second pull request", "POST", "/pulls", `{"head":"$head","base":"main","title":"x"}`},
		{"a reviewer who is not there", "POST", "/pulls/$number/requested_reviewers", `{"reviewers":["nobody-here"]}`},
		{"an assignee who is not there", "PATCH", "/pulls/$number", `{"assignees":["nobody-here"]}`},
		{"auto-merge that nobody has set", "DELETE", "/pulls/$number/merge", ""},
		{"dismissal by a writer", "POST", "/pulls/$number/reviews/1/dismissals", `{"message":"x"}`},
		{"merge of another head", "POST", "/pulls/$number/merge", `{"Do":"merge","head_commit_id":"` + none + `"}`},
		{"merge without a style", "POST", "/pulls/$number/merge", `{}`},
		{"merge", "POST", "/pulls/$number/merge", `{"Do":"merge","head_commit_id":"$tip"}`},
		{"merge again", "POST", "/pulls/$number/merge", `{"Do":"merge","head_commit_id":"$tip"}`},
		{"closing what is merged", "PATCH", "/pulls/$number", `{"state":"closed"}`},
		{"deletion of a merged branch", "DELETE", "/branches/$head", ""},

		{"a workflow that is not there", "POST", "/actions/workflows/nothing.yml/dispatches?return_run_details=true", `{"ref":"main","inputs":{}}`},
		{"a run that is not there", "GET", "/actions/runs/999", ""},
		{"runs", "GET", "/actions/runs?event=workflow_dispatch&branch=main", ""},
	} {
		want := real.ask(t, c.method, c.path, c.in)
		for try := 0; try < 40 && want.Message == "Please try again later"; try++ { // it looks for conflicts
			time.Sleep(250 * time.Millisecond)
			want = real.ask(t, c.method, c.path, c.in)
		}
		if got := fake.ask(t, c.method, c.path, c.in); got != want {
			t.Errorf("%s: %s %s (-real +fake):\n%s", c.name, c.method, c.path, cmp.Diff(want, got))
		}
	}
}

// prepare gives both servers the same, and the side the names of what it got.
func prepare(t *testing.T, p scmtest.Person, s *side) {
	t.Helper()
	main, err := p.Push("main", "mei", "Seed", map[string]string{file: old})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Push("locked", "mei", "Lock", map[string]string{"locked.txt": "x"}); err != nil {
		t.Fatal(err)
	}
	p.Protect("locked")
	tip, err := p.Push(head, "mei", "Change", map[string]string{"changed.txt": "x"})
	if err != nil {
		t.Fatal(err)
	}
	pull, err := p.OpenPull(scmtest.NewPull{Head: head, Base: "main", Title: "Change", Author: "li"})
	if err != nil {
		t.Fatal(err)
	}
	s.names = map[string]string{"main": main, "tip": tip, "head": head, "number": strconv.Itoa(pull.Number)}
}
