//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// gitea is a running Gitea with an organisation acme, the bot that promotes and
// the person mei who reviews. What the tests check, they ask Gitea itself, not
// our own client.
type gitea struct {
	url string
	bot string // token
	mei string // token of the organisation's owner
}

const giteaConfig = `APP_NAME = Acme
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]s
ROOT_URL = http://127.0.0.1:%[2]s/
STATIC_ROOT_PATH = %[3]s
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
SQLITE_JOURNAL_MODE = WAL
[repository]
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-this-test
PASSWORD_HASH_ALGO = pbkdf2_v1
[service]
DISABLE_REGISTRATION = true
[log]
LEVEL = Warn
`

func startGitea(t *testing.T) *gitea {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	config := filepath.Join(dir, "app.ini")
	text := fmt.Sprintf(giteaConfig, dir, port, tool(t, "TAGBOAT_GITEA_SOURCE"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(context.WithoutCancel(t.Context()), tool(t, "TAGBOAT_GITEA"), append([]string{"--config", config}, args...)...)
		c.Env = append(os.Environ(), "HOME="+dir)
		return c
	}
	g := &gitea{url: "http://" + address}
	server(t, g.url+"/api/healthz", command("web"))
	g.mei = newUser(t, command, "mei", "--admin")
	g.bot = newUser(t, command, "tagboat-bot")
	g.must(t, g.mei, "POST", "/orgs", map[string]any{"username": "acme"}, nil)
	return g
}

func newUser(t *testing.T, command func(...string) *exec.Cmd, name string, flags ...string) (token string) {
	t.Helper()
	create := append([]string{"admin", "user", "create", "--username", name, "--email", name + "@acme.example",
		"--random-password", "--must-change-password=false"}, flags...)
	if out, err := command(create...).CombinedOutput(); err != nil {
		t.Fatalf("create user %s: %v\n%s", name, err, out)
	}
	out, err := command("admin", "user", "generate-access-token", "--username", name, "--token-name", "e2e",
		"--scopes", "all", "--raw").Output()
	if err != nil {
		t.Fatalf("create token of %s: %v", name, err)
	}
	return tail(strings.TrimSpace(string(out)), 1) // warnings stand before it
}

// repository makes acme/NAME with the files, and lets the bot write to it.
func (g *gitea) repository(t *testing.T, name string, files map[string]string) *repository {
	t.Helper()
	g.must(t, g.mei, "POST", "/orgs/acme/repos", map[string]any{"name": name, "auto_init": true, "default_branch": "main"}, nil)
	r := &repository{gitea: g, name: "acme/" + name}
	var changes []map[string]any
	for _, path := range slices.Sorted(maps.Keys(files)) {
		changes = append(changes, map[string]any{"operation": "create", "path": path, "content": encode(files[path])})
	}
	r.must(t, "POST", "/contents", map[string]any{"branch": "main", "message": "Add the apps", "files": changes}, nil)
	r.must(t, "PUT", "/collaborators/tagboat-bot", map[string]any{"permission": "write"}, nil)
	return r
}

func (g *gitea) must(t *testing.T, token, method, path string, in, out any) {
	t.Helper()
	if status, text := g.call(t, token, method, path, in, out); status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
}

// call asks the API; out is a *string for plain text, or what JSON decodes into.
func (g *gitea) call(t *testing.T, token, method, path string, in, out any) (int, string) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, g.url+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "token "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if plain, ok := out.(*string); ok {
		*plain = string(text)
	} else if out != nil && response.StatusCode < 300 {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return response.StatusCode, string(text)
}

// repository is one repository on the Gitea, as mei sees it.
type repository struct {
	gitea *gitea
	name  string
}

func (r *repository) url() string { return r.gitea.url + "/" + r.name }

func (r *repository) must(t *testing.T, method, path string, in, out any) {
	t.Helper()
	r.gitea.must(t, r.gitea.mei, method, "/repos/"+r.name+path, in, out)
}

type pull struct {
	Number int
	Title  string
	Body   string
	State  string
	Merged bool
	URL    string `json:"html_url"`
	Head   struct{ Ref, Label, SHA string }
	Base   struct{ Ref, SHA string }
}

// pulls returns the pull requests of an app to staging, newest first.
func (r *repository) pulls(t *testing.T, state, app string) []pull {
	t.Helper()
	var all, found []pull
	r.must(t, "GET", "/pulls?limit=50&sort=newest&state="+state, nil, &all)
	for _, p := range all {
		if p.Head.Label == "tagboat/staging/"+app {
			found = append(found, p)
		}
	}
	return found
}

// pull returns the one open pull request of an app.
func (r *repository) pull(t *testing.T, app string) pull {
	t.Helper()
	open := r.pulls(t, "open", app)
	if len(open) != 1 {
		t.Fatalf("%s has %d open pull requests, want 1", app, len(open))
	}
	return open[0]
}

// diff returns the changed lines of a pull request, without their context.
func (r *repository) diff(t *testing.T, number int) (files, lines []string) {
	t.Helper()
	var text string
	r.must(t, "GET", fmt.Sprintf("/pulls/%d.diff", number), nil, &text)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
			files = append(files, line)
		case strings.HasPrefix(line, "+"), strings.HasPrefix(line, "-"):
			lines = append(lines, line)
		}
	}
	return files, lines
}

func (r *repository) file(t *testing.T, ref, path string) string {
	t.Helper()
	var text string
	r.must(t, "GET", "/raw/"+path+"?ref="+ref, nil, &text)
	return text
}

func (r *repository) branchHead(t *testing.T, branch string) string {
	t.Helper()
	var answer struct{ Commit struct{ ID string } }
	r.must(t, "GET", "/branches/"+branch, nil, &answer)
	return answer.Commit.ID
}

func (r *repository) branches(t *testing.T) []string {
	t.Helper()
	var all []struct{ Name string }
	r.must(t, "GET", "/branches?limit=50", nil, &all)
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	return names
}

// write is a person's commit of one file on a branch.
func (r *repository) write(t *testing.T, branch, path, text, message string) {
	t.Helper()
	var old struct{ SHA string }
	status, _ := r.gitea.call(t, r.gitea.mei, "GET", "/repos/"+r.name+"/contents/"+path+"?ref="+branch, nil, &old)
	change := map[string]any{"branch": branch, "message": message, "content": encode(text)}
	method := "POST"
	if status == http.StatusOK {
		method, change["sha"] = "PUT", old.SHA
	}
	r.must(t, method, "/contents/"+path, change, nil)
}

// merge merges as a person does who presses the button as soon as Gitea, which
// checks for conflicts in the background, shows it.
func (r *repository) merge(t *testing.T, number int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("merge of %d", number), 30*time.Second, func() bool {
		status, text := r.gitea.call(t, r.gitea.mei, "POST", fmt.Sprintf("/repos/%s/pulls/%d/merge", r.name, number), map[string]any{"Do": "merge"}, nil)
		if status >= 300 && status != http.StatusMethodNotAllowed {
			t.Fatalf("merge %d: %d %s", number, status, text)
		}
		return status < 300
	})
}

func (r *repository) close(t *testing.T, number int) {
	t.Helper()
	r.must(t, "PATCH", fmt.Sprintf("/pulls/%d", number), map[string]any{"state": "closed"}, nil)
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
