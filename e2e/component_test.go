//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// The pipeline of a team that includes the component. What is in the inputs must
// reach tagboat as it is, or GitLab's variables expanded, and never a shell.
const componentPipeline = `stages: [ship]
include:
  - local: /templates/promote/template.yml
    inputs:
      tagboat: registry.acme.example/tagboat@sha256:%064d
      image: $REGISTRY/acme/todo-api:v1.4.0
      repo: %s
      forge: gitlab
      to: staging
      path: apps/todo-api/overlays/staging
      label: 'promotion,$(touch %[3]s/injected),* "quoted"'
      args: --draft --assignee mei
      job-name: ship it
      stage: ship
variables:
  REGISTRY: %[4]s
  CI_COMMIT_BRANCH: main
  CI_DEFAULT_BRANCH: main
after:
  stage: ship
  needs: [ship it]
  script:
    - printf '%%s\n' "$TAGBOAT_OUTCOME" "$TAGBOAT_CHANGED" "$TAGBOAT_PULL_REQUEST_NUMBER" "$TAGBOAT_PULL_REQUEST_URL" "$TAGBOAT_DIGEST" >%[3]s/outputs
`

// TestComponentRuns has the template checked by the schema of GitLab's editor, as
// gitlab-ci-local brings it, and its job run in a shell, against GitLab's fake.
func TestComponentRuns(t *testing.T) {
	const app = "todo-api"
	s := &stage{registry: startRegistry(t)}
	_, digest := s.build(t, app, 4)
	store := scmtest.NewStore("main", map[string]string{
		"apps/" + app + "/base/kustomization.yaml": "resources:\n  - deployment.yaml\n",
		"apps/" + app + "/base/deployment.yaml":    fmt.Sprintf(deployment, app),
		path(app):                                  s.overlay(app, "v1.3.0", ""),
	})
	url, stop := gitlabtest.New(t, store).Start()
	t.Cleanup(stop)

	left := t.TempDir()
	dir := pipelineProject(t, fmt.Sprintf(componentPipeline, 0, url+"/"+gitlabtest.Project, left, s.registry))
	log := runPipeline(t, dir, "TAGBOAT_TOKEN="+gitlabtest.Token)

	pull, err := store.Pull(1)
	if err != nil {
		t.Fatalf("no merge request: %v\n%s", err, log)
	}
	head, _ := store.Branch(pull.Head)
	if file, _, err := store.ReadFile(head, path(app)); err != nil || string(file) != s.overlay(app, "v1.4.0", digest) {
		t.Errorf("the file on the head branch: %v\n%s", err, cmp.Diff(s.overlay(app, "v1.4.0", digest), string(file)))
	}
	wantLabels := []string{"$(touch " + left + "/injected)", `* "quoted"`, "promotion"}
	if diff := cmp.Diff(wantLabels, pull.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(pull.Title, "Draft:") {
		t.Errorf("the merge request %q is no draft: args did not arrive", pull.Title)
	}
	if _, err := os.Stat(filepath.Join(left, "injected")); err == nil {
		t.Error("an input was run as a command")
	}
	outputs, err := os.ReadFile(filepath.Join(left, "outputs"))
	if err != nil {
		t.Fatalf("no outputs: %v\n%s", err, log)
	}
	want := fmt.Sprintf("opened\ntrue\n1\nhttps://gitlab.example/%s/-/merge_requests/1\n%s\n", gitlabtest.Project, digest)
	if diff := cmp.Diff(want, string(outputs)); diff != "" {
		t.Errorf("what a later job gets (-want +got):\n%s", diff)
	}
}

const verifyPipeline = `stages: [test]
include:
  - local: /templates/verify/template.yml
    inputs:
      tagboat: registry.acme.example/tagboat@sha256:%064d
      repo: %s
      forge: gitlab
variables:
  CI_PIPELINE_SOURCE: schedule
  CI_COMMIT_BRANCH: main
  CI_DEFAULT_BRANCH: main
`

// TestVerifyComponentRuns has the template checked and run in the same way: an open
// merge request gets its status.
func TestVerifyComponentRuns(t *testing.T) {
	store := scmtest.NewStore("main", map[string]string{
		"tagboat.yaml": "version: 1\napps: {todo-api: {images: [{repository: registry.acme.example/todo-api}]}}\nenvironments: [{name: staging, path: staging}]\n",
	})
	if _, err := store.Push("docs", "mei", "Write", map[string]string{"README.md": "ours\n"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenPull(scmtest.NewPull{Head: "docs", Base: "main", Title: "Write", Author: "mei"}); err != nil {
		t.Fatal(err)
	}
	url, stop := gitlabtest.New(t, store).Start()
	t.Cleanup(stop)
	log := runPipeline(t, pipelineProject(t, fmt.Sprintf(verifyPipeline, 0, url+"/"+gitlabtest.Project)), "TAGBOAT_TOKEN="+gitlabtest.Token)
	head, _ := store.Branch("docs")
	var got []string
	for _, s := range store.Statuses(head) {
		got = append(got, s.Context+" "+s.State+": "+s.Description)
	}
	if diff := cmp.Diff([]string{"tagboat/policy success: no promotion"}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s\n%s", diff, log)
	}
}

// TestComponentSchemaRefuses makes sure that the check of the template is one.
func TestComponentSchemaRefuses(t *testing.T) {
	dir := pipelineProject(t, fmt.Sprintf(componentPipeline, 0, "acme/config", t.TempDir(), "registry.acme.example"))
	template := filepath.Join(dir, "templates", "promote", "template.yml")
	text, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "  resource_group:", "  resource-group:", 1)
	if err := os.WriteFile(template, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := gitlabCILocal(t, dir, "--list").CombinedOutput(); err == nil {
		t.Errorf("a key that GitLab does not know passed:\n%s", out)
	}
}

// pipelineProject is a repository with a pipeline and our templates.
func pipelineProject(t *testing.T, pipeline string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "templates"), os.DirFS("../templates")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitlab-ci.yml"), []byte(pipeline), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	git(t, dir, "remote", "add", "origin", "https://gitlab.acme.example/acme/todo.git")
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=mei", "-c", "user.email=mei@acme.example", "commit", "-q", "-m", "Promote with Tagboat")
	return dir
}

// runPipeline runs all jobs in shells of this machine and returns what they said.
func runPipeline(t *testing.T, dir string, variables ...string) string {
	t.Helper()
	log, err := tryPipeline(t, dir, variables...)
	if err != nil {
		t.Fatalf("gitlab-ci-local: %v\n%s", err, tail(log, 60))
	}
	return log
}

// tryPipeline is runPipeline of jobs that may fail.
func tryPipeline(t *testing.T, dir string, variables ...string) (string, error) {
	t.Helper()
	run := gitlabCILocal(t, dir, "--force-shell-executor",
		"--variable", "GITLAB_CI=true", "--variable", "CI_PROJECT_DIR="+dir, // it says false, and a path of the image
		"--ignore-predefined-vars", "GITLAB_CI,CI_PROJECT_DIR")
	bin := filepath.Dir(os.Getenv("TAGBOAT_BIN"))
	run.Env = append(run.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	run.Env = append(run.Env, variables...)
	out, err := run.CombinedOutput()
	return string(out), err
}

func gitlabCILocal(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	home := t.TempDir()
	run := exec.CommandContext(ctx, "node", append([]string{tool(t, "TAGBOAT_GITLAB_CI_LOCAL"), "--home", home}, args...)...)
	run.Dir = dir
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
	return run
}
