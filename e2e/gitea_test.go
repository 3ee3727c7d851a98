//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tagboat/scm/gitea/giteareal"
)

// gitea is a running Gitea with an organisation acme, the bot that promotes and
// the person mei who reviews and owns acme. What the tests check, they ask
// Gitea as mei, not through our own client.
type gitea struct {
	*giteareal.Server
	bot string // token
}

func startGitea(t *testing.T) *gitea {
	t.Helper()
	server, err := giteareal.Start(t.Context(), giteareal.Options{
		Binary: tool(t, "TAGBOAT_GITEA"), Static: os.Getenv("TAGBOAT_GITEA_STATIC"), Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, user := range []string{"mei", "tagboat-bot"} {
		if err := server.AddUser(t.Context(), user); err != nil {
			t.Fatal(err)
		}
	}
	g := &gitea{Server: server}
	g.must(t, "mei", "POST", "/orgs", map[string]any{"username": "acme"}, nil)
	g.bot = g.token(t, "tagboat-bot", "write:repository", "write:issue", "read:user")
	return g
}

// token makes a user a token with these scopes.
func (g *gitea) token(t *testing.T, user string, scopes ...string) string {
	t.Helper()
	var made struct{ SHA1 string }
	in := map[string]any{"name": strings.Join(scopes, ","), "scopes": scopes}
	g.must(t, user, "POST", "/users/"+user+"/tokens", in, &made)
	return made.SHA1
}

func (g *gitea) must(t *testing.T, user, method, path string, in, out any) {
	t.Helper()
	if _, err := g.Call(t.Context(), user, method, path, in, out); err != nil {
		t.Fatal(err)
	}
}

// text asks for what is no JSON: a file, a diff.
func (g *gitea) text(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/api/v1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("mei", giteareal.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %s (%v)", path, response.Status, text, err)
	}
	return string(text)
}

// repository makes acme/NAME with the files, and lets the bot write to it.
func (g *gitea) repository(t *testing.T, name string, files map[string]string) *repository {
	t.Helper()
	return g.repositoryOf(t, "acme", map[string]any{"name": name}, "tagboat-bot", files)
}

// repositoryOf makes an organisation's repository with these options and files on
// main, and lets one user write to it.
func (g *gitea) repositoryOf(t *testing.T, org string, options map[string]any, writer string, files map[string]string) *repository {
	t.Helper()
	options["auto_init"], options["default_branch"] = true, "main"
	g.must(t, "mei", "POST", "/orgs/"+org+"/repos", options, nil)
	r := &repository{gitea: g, name: fmt.Sprintf("%s/%s", org, options["name"])}
	var changes []map[string]any
	for _, path := range slices.Sorted(maps.Keys(files)) {
		changes = append(changes, map[string]any{"operation": "create", "path": path, "content": encode(files[path])})
	}
	r.must(t, "POST", "/contents", map[string]any{"branch": "main", "message": "Add the apps", "files": changes}, nil)
	r.must(t, "PUT", "/collaborators/"+writer, map[string]any{"permission": "write"}, nil)
	return r
}

// repository is one repository on the Gitea, as mei sees it.
type repository struct {
	gitea *gitea
	name  string
}

func (r *repository) url() string { return r.gitea.URL + "/" + r.name }

func (r *repository) must(t *testing.T, method, path string, in, out any) {
	t.Helper()
	r.gitea.must(t, "mei", method, "/repos/"+r.name+path, in, out)
}

type pull struct {
	Number   int
	Title    string
	Body     string
	State    string
	Merged   bool
	MergedAt time.Time `json:"merged_at"`
	URL      string    `json:"html_url"`
	Head     struct{ Ref, Label, SHA string }
	Base     struct{ Ref, SHA string }
}

// pulls returns the pull requests of an app to staging, newest first.
func (r *repository) pulls(t *testing.T, state, app string) []pull {
	t.Helper()
	return r.pullsFrom(t, state, "tagboat/staging/"+app)
}

func (r *repository) pullsFrom(t *testing.T, state, branch string) []pull {
	t.Helper()
	var all, found []pull
	r.must(t, "GET", "/pulls?limit=50&sort=newest&state="+state, nil, &all)
	for _, p := range all {
		if p.Head.Label == branch {
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
	for line := range strings.Lines(r.gitea.text(t, fmt.Sprintf("/repos/%s/pulls/%d.diff", r.name, number))) {
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
	return r.gitea.text(t, "/repos/"+r.name+"/raw/"+path+"?ref="+ref)
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

// write is mei's commit on a branch, to a file that is there.
func (r *repository) write(t *testing.T, branch, path, text, message string) {
	t.Helper()
	var old struct{ SHA string }
	r.must(t, "GET", "/contents/"+path+"?ref="+branch, nil, &old)
	r.must(t, "PUT", "/contents/"+path, map[string]any{"branch": branch, "message": message, "content": encode(text), "sha": old.SHA}, nil)
}

// merge merges as a person does who presses the button as soon as Gitea, which
// checks for conflicts in the background, shows it.
func (r *repository) merge(t *testing.T, number int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("merge of %d", number), 3*time.Minute, func() bool {
		status, err := r.gitea.Call(t.Context(), "mei", "POST", fmt.Sprintf("/repos/%s/pulls/%d/merge", r.name, number), map[string]any{"Do": "merge"}, nil)
		if err != nil && status != http.StatusMethodNotAllowed {
			t.Fatal(err)
		}
		return err == nil
	})
}

func (r *repository) close(t *testing.T, number int) {
	t.Helper()
	r.must(t, "PATCH", fmt.Sprintf("/pulls/%d", number), map[string]any{"state": "closed"}, nil)
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
