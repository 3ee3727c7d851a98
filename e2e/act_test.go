//go:build e2e

package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The workflow of a team that has Tagboat's repository checked out beside its own:
// it promotes on two forges, and shows what a later step gets.
const actWorkflow = `name: promote
on: push
permissions: {contents: read}
jobs:
  promote:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
      - id: github
        uses: ./
        with:
          image: %[1]s
          repo: %[2]s/acme/config
          forge: github
          path: apps/todo-api/overlays/staging
          label: |
            promotion
            $(touch %[5]s/injected)
          ca-file: %[4]s
          token: ${{ secrets.GITHUB_BOT }}
      - id: gitea
        uses: ./
        with:
          image: %[1]s
          repo: %[3]s
          forge: gitea
          path: apps/todo-api/overlays/staging
          args: --draft
          token: ${{ secrets.GITEA_BOT }}
      - run: printf '%%s\n' "$OUTCOMES" "$URLS" "$DIGESTS" "$CHANGED" "$RESULT" >%[5]s/outputs
        env:
          OUTCOMES: ${{ steps.github.outputs.outcome }} ${{ steps.gitea.outputs.outcome }}
          URLS: ${{ steps.github.outputs.pull-request-url }} ${{ steps.gitea.outputs.pull-request-url }}
          DIGESTS: ${{ steps.github.outputs.digest }} ${{ steps.gitea.outputs.digest }}
          CHANGED: ${{ steps.github.outputs.changed }} ${{ steps.gitea.outputs.changed }}
          RESULT: ${{ fromJSON(steps.gitea.outputs.result).promotions[0].proof.status }}
`

// TestActRunsTheAction runs the action as GitHub's runner would, from a clean clone,
// and asks both forges what it did.
func TestActRunsTheAction(t *testing.T) {
	const app = "todo-api"
	s := setStage(t, app)
	g := startGitHub(t)
	for name, text := range map[string]string{
		"apps/" + app + "/base/kustomization.yaml": "resources:\n  - deployment.yaml\n",
		"apps/" + app + "/base/deployment.yaml":    fmt.Sprintf(deployment, app),
		path(app):                                  s.overlay(app, "v1.3.0", ""),
	} {
		g.write(t, "main", name, text, "Add "+name)
	}
	image, digest := s.build(t, app, 4)

	clone, left := cleanClone(t), t.TempDir()
	hub, authority := enterprise(t, g.url)
	addWorkflow(t, clone, fmt.Sprintf(actWorkflow, image, hub, s.url(), authority, left))
	log := runAct(t, clone, map[string]string{"GITHUB_BOT": "e2e-bot-token", "GITEA_BOT": s.gitea.bot})

	onGitHub := g.wantPull(t, s.overlay(app, "v1.4.0", digest))
	onGitea := s.wantPull(t, app, "v1.4.0", digest)
	outputs, err := os.ReadFile(filepath.Join(left, "outputs"))
	if err != nil {
		t.Fatalf("no outputs: %v\n%s", err, log)
	}
	got := strings.Split(strings.TrimSpace(string(outputs)), "\n")
	want := []string{"opened opened", onGitHub.URL + " " + onGitea.URL, digest + " " + digest, "true true", "proven"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(onGitea.Title, "WIP:") {
		t.Errorf("the pull request %q is no draft: args did not arrive", onGitea.Title)
	}
	if _, err := os.Stat(filepath.Join(left, "injected")); err == nil {
		t.Error("an input was run as a command")
	}
	for _, secret := range []string{"e2e-bot-token", s.gitea.bot} {
		if strings.Contains(log, secret) {
			t.Errorf("a token is in the log:\n%s", log)
		}
	}
	if !strings.Contains(log, "opened: todo-api to staging") {
		t.Errorf("the log does not say what happened:\n%s", log)
	}
}

// enterprise serves the emulator where GitHub Enterprise has its API, with a
// certificate of the company's own.
func enterprise(t *testing.T, emulator string) (server, caFile string) {
	t.Helper()
	to, err := url.Parse(emulator)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/api/v3")
		r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.RawPath, "/api/v3")
	}})
	t.Cleanup(proxy.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	if err := os.WriteFile(caFile, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return proxy.URL, caFile
}

// cleanClone is what a machine gets that has never seen this one.
func cleanClone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tagboat")
	git(t, "..", "clone", "-q", "--no-hardlinks", "--depth", "1", "file://"+absolute(t, ".."), dir)
	git(t, dir, "remote", "set-url", "origin", "https://github.com/acme/todo.git") // whose workflow it is
	return dir
}

func addWorkflow(t *testing.T, clone, text string) {
	t.Helper()
	dir := filepath.Join(clone, ".github", "workflows")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "promote.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, clone, "add", "-A")
	git(t, clone, "-c", "user.name=mei", "-c", "user.email=mei@acme.example", "commit", "-q", "-m", "Promote with Tagboat")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// runAct runs the clone's workflow on this machine, with a home of its own, and
// returns what a person would see of the run.
func runAct(t *testing.T, clone string, secrets map[string]string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := actRun{clone: clone, home: t.TempDir(), env: []string{"PATH=" + os.Getenv("PATH")}, args: []string{"push", "-P", "ubuntu-latest=-self-hosted"}}
	for name, value := range secrets {
		run.args = append(run.args, "--secret", name) // its value comes from the environment
		run.env = append(run.env, name+"="+value)
	}
	log, err := act(ctx, t, run)
	if err != nil {
		t.Fatalf("act: %v\n%s", err, tail(log, 80))
	}
	return log
}

// actRun is what act is started with: the home is outside the clone.
type actRun struct {
	clone, home string
	env, args   []string
}

func act(ctx context.Context, t *testing.T, r actRun) (log string, err error) {
	t.Helper()
	run := exec.CommandContext(ctx, tool(t, "TAGBOAT_ACT"), append(r.args, "--pull=false")...)
	run.Env = append(r.env, "HOME="+r.home, "XDG_CACHE_HOME="+r.home, "TMPDIR="+r.home)
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GOMODCACHE", "GOCACHE"} {
		run.Args = append(run.Args, "--env", name+"="+strings.TrimSpace(output(t, "go", "env", name)))
	}
	run.Dir = r.clone
	start := time.Now()
	out, err := run.CombinedOutput()
	t.Logf("act: %d s", int(time.Since(start).Seconds()))
	return string(out), err
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out)
}
