//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"tagboat/chatops"
	"tagboat/image"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// chatProject is GitLab's fake with a config project that takes commands, for jobs of
// its pipeline.
type chatProject struct {
	*stage
	store  *scmtest.Store
	gitlab *gitlabtest.Server
	url    string
	left   string // where an injection would leave something

	schemaSeen bool // the files have passed GitLab's schema, which takes seconds
}

const chatProjectConfig = `version: 1
apps:
  todo-api: {images: [{repository: %s/acme/todo-api}]}
environments:
  - {name: staging, path: "apps/{app}/overlays/staging"}
  - {name: production, path: "apps/{app}/overlays/production", from: [staging]}
`

func openChatProject(t *testing.T) (c *chatProject, digest string) {
	t.Helper()
	c = &chatProject{stage: &stage{registry: startRegistry(t)}, left: t.TempDir()}
	_, digest = c.build(t, "todo-api", 4)
	c.store = scmtest.NewStore("main", map[string]string{
		"tagboat.yaml":                          fmt.Sprintf(chatProjectConfig, c.registry),
		"apps/todo-api/base/kustomization.yaml": "resources:\n  - deployment.yaml\n",
		"apps/todo-api/base/deployment.yaml":    fmt.Sprintf(deployment, "todo-api"),
		path("todo-api"):                        c.overlay("todo-api", "v1.4.0", digest),
		strings.Replace(path("todo-api"), "staging", "production", 1): c.overlay("todo-api", "v1.3.0", ""),
	})
	c.store.SetPermission("mei", "30")
	c.store.SetPermission("tomas", "20")
	c.gitlab = gitlabtest.New(t, c.store)
	var stop func()
	c.url, stop = c.gitlab.Start()
	t.Cleanup(stop)
	return c, digest
}

// run is one pipeline of the project, which the documentation's file makes: the one
// that hands on inputs where there are some. gitlab-ci-local gives a pipeline no
// inputs, so they are the defaults that the file declares.
func (c *chatProject) run(t *testing.T, job gitlabtest.Job, inputs map[string]any, variables map[string]string) (log string, err error) {
	t.Helper()
	file := documented(t)[2]
	if inputs != nil {
		file = documented(t)[3]
	}
	file = strings.NewReplacer(
		"component: $CI_SERVER_FQDN/GROUP/tagboat/chatops@COMMIT", "local: /templates/chatops/template.yml",
		"sha256:…", "sha256:"+strings.Repeat("0", 64), "todo-ci=", "tomas=",
	).Replace(file)
	for name, value := range inputs {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		from := fmt.Sprintf("    %s: {default: \"\"}\n", name)
		if !strings.Contains(file, from) {
			t.Fatalf("the documented file declares no %s:\n%s", name, file)
		}
		file = strings.Replace(file, from, fmt.Sprintf("    %s: {default: %s}\n", name, text), 1)
	}
	file += "variables:\n"
	all := map[string]string{
		"CI_SERVER_URL": c.url, "CI_API_V4_URL": c.url + "/api/v4", "CI_PROJECT_PATH": gitlabtest.Project, "CI_PIPELINE_SOURCE": job.Source,
		"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main", "CI_JOB_TOKEN": gitlabtest.JobToken, "GITLAB_USER_LOGIN": "mei",
	}
	for name, value := range variables {
		all[name] = value
	}
	for name, value := range all {
		file += fmt.Sprintf("  %s: %q\n", name, value)
	}
	c.gitlab.Job = job
	log, err = tryPipeline(t, pipelineProject(t, file), "TAGBOAT_TOKEN="+gitlabtest.Token, fmt.Sprintf("GCL_JSON_SCHEMA_VALIDATION=%v", !c.schemaSeen))
	if _, statErr := os.Stat(filepath.Join(c.left, "injected")); statErr == nil {
		t.Errorf("what was asked was run as a command:\n%s", log)
	}
	return log, err
}

// TestChatopsComponentRuns has the component checked by the schema of GitLab's
// editor, and its job run in a shell, against GitLab's fake.
func TestChatopsComponentRuns(t *testing.T) {
	c, digest := openChatProject(t)
	t.Run("ChatOps", func(t *testing.T) { c.chats(t, digest) })
	t.Run("request", func(t *testing.T) { c.requests(t, digest) })
	c.schemaSeen = true
	t.Run("injections", c.injections)
	t.Run("rules", c.rules)
}

func (c *chatProject) chats(t *testing.T, digest string) {
	input := map[string]string{"CHAT_INPUT": "promote todo-api to production"}
	log, err := c.run(t, gitlabtest.Job{User: "tomas", Source: "chat"}, nil, input)
	if err != nil || !strings.Contains(log, "Refused: no right: tomas may not write") || len(c.pulls()) != 0 {
		t.Errorf("of one who may not: %v\n%s", err, log)
	}
	log, err = c.run(t, gitlabtest.Job{User: "mei", Source: "chat"}, nil, input)
	if err != nil || !strings.Contains(log, "opened: todo-api to production") || !strings.Contains(log, "chat_reply") {
		t.Fatalf("%v\n%s", err, log)
	}
	head, _ := c.store.Branch("tagboat/production/todo-api")
	file, _, err := c.store.ReadFile(head, strings.Replace(path("todo-api"), "staging", "production", 1))
	if err != nil || string(file) != c.overlay("todo-api", "v1.4.0", digest) {
		t.Errorf("the file on the head branch: %v\n%s", err, cmp.Diff(c.overlay("todo-api", "v1.4.0", digest), string(file)))
	}
}

func (c *chatProject) pulls() []scmtest.Pull {
	return c.store.Pulls(func(scmtest.Pull) bool { return true })
}

func (c *chatProject) requests(t *testing.T, digest string) {
	at := image.Reference{Repository: c.registry + "/acme/todo-api", Tag: "v1.4.0", Digest: digest}
	asked := chatops.Ask{Mark: "b7e2", Image: at, To: "staging"}
	log, err := c.run(t, gitlabtest.Job{User: "tomas", Source: "trigger"}, asked.Inputs(), nil)
	if err != nil || !strings.Contains(log, `b7e2 {"schemaVersion":1,"promotions":[{"outcome":"up-to-date"`) {
		t.Errorf("%v\n%s", err, log)
	}
	asked.To = "production"
	log, err = c.run(t, gitlabtest.Job{User: "tomas", Source: "trigger"}, asked.Inputs(), nil)
	if err == nil || !strings.Contains(log, "production is promoted from staging") {
		t.Errorf("an environment that takes no builds: %v\n%s", err, log)
	}
}

// A hold's reason is free text: it arrives as it was given, or not at all.
func (c *chatProject) injections(t *testing.T) {
	evil := "touch " + c.left + "/injected"
	for name, reason := range map[string]string{
		"a shell's":         `it's $(` + evil + `) & $HOME ${TAGBOAT_TOKEN} $$ %s * ~ ! {a,b} <x >y #z`,
		"more of a shell's": "`" + evil + "` ; " + evil,
		"YAML's":            `"x', expand: true} - [a: b] &a *a !!str @ % | > '...' --- {value: x}"`,
		"GitLab's":          `$[[ inputs.to ]] $CI_JOB_TOKEN ${{ job.inputs.x }}`,
		"an end of quotes":  `a' ; ` + evil + ` ; '`,
	} {
		t.Run(name, func(t *testing.T) {
			if head, ok := c.store.Branch("tagboat-holds"); ok {
				if err := c.store.DeleteBranch("tagboat-holds", head); err != nil {
					t.Fatal(err)
				}
			}
			ask := chatops.Ask{Command: "/hold production todo-api " + reason}
			log, err := c.run(t, gitlabtest.Job{User: "mei", Source: "api"}, ask.Inputs(), nil)
			head, _ := c.store.Branch("tagboat-holds")
			file, _, readErr := c.store.ReadFile(head, "holds/production/todo-api.yaml")
			if err != nil || readErr != nil || !strings.Contains(string(file), "reason: ") {
				t.Fatalf("%v, %v\n%s\n%s", err, readErr, file, log)
			}
			var hold struct{ Reason string }
			if err := yaml.Unmarshal(file, &hold); err != nil {
				t.Fatal(err)
			}
			if want := strings.Trim(reason, `"`); hold.Reason != want {
				t.Errorf("the reason is %q, want %q", hold.Reason, want)
			}
		})
	}
	log, err := c.run(t, gitlabtest.Job{User: "mei", Source: "api"}, map[string]any{"command": "/release production\n/hold staging " + evil}, nil)
	if err == nil || !strings.Contains(log, "input command: it is more than one line") {
		t.Errorf("a line break: %v\n%s", err, log)
	}
	// who may set variables of a pipeline is nobody else by them
	log, err = c.run(t, gitlabtest.Job{User: "tomas", Source: "api"}, chatops.Ask{Command: "/release production todo-api", User: "slack:T1/U1"}.Inputs(), map[string]string{
		"TAGBOAT_INPUT_SPEAKER": "tomas", "TAGBOAT_SPEAKER": "tomas", "GITLAB_USER_LOGIN": "mei",
	})
	if err != nil || !strings.Contains(log, "tomas may not speak for chat users") {
		t.Errorf("a speaker of their own: %v\n%s", err, log)
	}
}

// rules: the job is there where something is asked, on the default branch.
func (c *chatProject) rules(t *testing.T) {
	c.gitlab.Job = gitlabtest.Job{}
	ask := chatops.Ask{Command: "/help"}.Inputs()
	for name, one := range map[string]struct {
		source, branch string
		inputs         map[string]any
		want           bool
	}{
		"by hand":          {"web", "main", ask, true},
		"by hand, nothing": {"web", "main", map[string]any{}, false},
		"another branch":   {"api", "other", ask, false},
		"a push":           {"push", "main", ask, false},
	} {
		log, err := c.run(t, gitlabtest.Job{Source: one.source}, one.inputs, map[string]string{"CI_COMMIT_BRANCH": one.branch})
		if ran := strings.Contains(log, "ask who started this job"); ran != one.want {
			t.Errorf("%s: the job ran: %v, want %v (%v)\n%s", name, ran, one.want, err, tail(log, 20))
		}
	}
}
