//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const emulateSeed = `tokens:
  e2e-bot-token: {login: tagboat-bot, scopes: [repo]}
  e2e-mei-token: {login: mei, scopes: [repo]}
github:
  users: [{login: tagboat-bot}, {login: mei}]
  orgs:
    - login: acme
      members: [{login: mei, role: admin}, {login: tagboat-bot, role: admin}]
  repos:
    - {owner: acme, name: config, auto_init: true, default_branch: main}
`

// github is the emulator of GitHub's REST API, stateful as GitHub is.
type github struct{ url string }

func startGitHub(t *testing.T) *github {
	t.Helper()
	seed := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(seed, []byte(emulateSeed), 0o600); err != nil {
		t.Fatal(err)
	}
	loopback, err := filepath.Abs("loopback.cjs")
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	serve := exec.CommandContext(context.WithoutCancel(t.Context()), "node", "--require", loopback, tool(t, "TAGBOAT_EMULATE"),
		"start", "--service", "github", "--port", port, "--base-url", "http://"+address, "--seed", seed)
	server(t, "http://"+address+"/repos/acme/config", serve)
	return &github{url: "http://" + address}
}

func (g *github) forge() forge {
	return forge{
		args: []string{"--forge", "github", "--repo", g.url + "/acme/config"},
		env:  []string{"GITHUB_API_URL=" + g.url, "GITHUB_TOKEN=e2e-bot-token"},
	}
}

func (g *github) call(t *testing.T, method, path string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, g.url+"/repos/acme/config"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer e2e-mei-token")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s (%v)", method, path, response.Status, text, err)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// githubPull is a pull request. What it changes is asked of its branch: the
// emulator keeps a pull request's head commit and files as they were at first.
type githubPull struct {
	Number    int
	Title     string
	Body      string
	State     string
	URL       string `json:"html_url"`
	UpdatedAt string `json:"updated_at"`
	Head      struct{ Ref string }
	Base      struct{ Ref string }
	commits   []string
	files     []githubFile
}

type githubFile struct {
	Filename             string
	Additions, Deletions int
}

func (g *github) pulls(t *testing.T, state string) []githubPull {
	t.Helper()
	var all []githubPull
	g.call(t, "GET", "/pulls?per_page=100&state="+state, nil, &all)
	for i := range all {
		var comparison struct {
			Commits []struct{ SHA string }
			Files   []githubFile
		}
		g.call(t, "GET", "/compare/"+all[i].Base.Ref+"..."+all[i].Head.Ref, nil, &comparison)
		all[i].files = comparison.Files
		for _, commit := range comparison.Commits {
			all[i].commits = append(all[i].commits, commit.SHA)
		}
	}
	return all
}

func (g *github) pull(t *testing.T) githubPull {
	t.Helper()
	open := g.pulls(t, "open")
	if len(open) != 1 {
		t.Fatalf("%d open pull requests, want 1", len(open))
	}
	return open[0]
}

func (g *github) file(t *testing.T, ref, path string) string {
	t.Helper()
	var answer struct{ Content []byte }
	g.call(t, "GET", "/contents/"+path+"?ref="+ref, nil, &answer)
	return string(answer.Content)
}

func (g *github) write(t *testing.T, branch, path, text, message string) {
	t.Helper()
	g.call(t, "PUT", "/contents/"+path, map[string]any{"branch": branch, "message": message, "content": encode(text)}, nil)
}

func TestGitHub(t *testing.T) {
	const app = "todo-api"
	s := &stage{registry: startRegistry(t)}
	g := startGitHub(t)
	g.write(t, "main", "apps/"+app+"/base/kustomization.yaml", "resources:\n  - deployment.yaml\n", "Add the base")
	g.write(t, "main", "apps/"+app+"/base/deployment.yaml", fmt.Sprintf(deployment, app), "Add the deployment")
	g.write(t, "main", path(app), s.overlay(app, "v1.3.0", ""), "Add the overlay")
	promote := func(image string) result {
		return g.forge().promote(t, "--path", "apps/"+app+"/overlays/staging", image)
	}
	v4, digest4 := s.build(t, app, 4)
	v5, digest5 := s.build(t, app, 5)

	opened := promote(v4).want(t, 0, "opened").Promotions[0]
	first := g.wantPull(t, s.overlay(app, "v1.4.0", digest4))
	if opened.PullRequest.Number != first.Number || opened.PullRequest.URL != first.URL {
		t.Errorf("result %+v does not tell pull request %s", opened, first.URL)
	}

	time.Sleep(1100 * time.Millisecond) // updated_at counts seconds
	promote(v4).want(t, 0, "unchanged")
	if diff := cmp.Diff(first, g.wantPull(t, s.overlay(app, "v1.4.0", digest4)), cmp.AllowUnexported(githubPull{})); diff != "" {
		t.Errorf("a second run changed the pull request:\n%s", diff)
	}

	promote(v5).want(t, 0, "updated")
	updated := g.wantPull(t, s.overlay(app, "v1.5.0", digest5))
	if updated.Number != first.Number || cmp.Equal(updated.commits, first.commits) || !strings.Contains(updated.Title+updated.Body, "v1.5.0") {
		t.Errorf("pull request %d at %s became %d at %s: %s", first.Number, first.commits, updated.Number, updated.commits, updated.Title)
	}
	promote(v4).want(t, 0, "outdated")
	if diff := cmp.Diff([]githubPull{updated}, g.pulls(t, "all"), cmp.AllowUnexported(githubPull{})); diff != "" {
		t.Errorf("an older job changed something (-want +got):\n%s", diff)
	}
}

// wantPull checks the one open pull request: one file, in it the image's lines.
func (g *github) wantPull(t *testing.T, file string) githubPull {
	t.Helper()
	p := g.pull(t)
	if len(p.commits) != 1 {
		t.Errorf("%d commits in the pull request, want 1", len(p.commits))
	}
	if p.Head.Ref != "tagboat/staging/todo-api" || p.Base.Ref != "main" {
		t.Errorf("pull request from %s into %s", p.Head.Ref, p.Base.Ref)
	}
	if diff := cmp.Diff([]githubFile{{path("todo-api"), 2, 1}}, p.files); diff != "" {
		t.Errorf("changed files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(file, g.file(t, p.Head.Ref, path("todo-api"))); diff != "" {
		t.Errorf("the file on the head branch (-want +got):\n%s", diff)
	}
	return p
}
