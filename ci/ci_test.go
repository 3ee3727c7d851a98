package ci

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func environ(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestDetect(t *testing.T) {
	github := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/todo", "GITHUB_SHA": "c0ffee", "GITHUB_REF_NAME": "main",
		"GITHUB_ACTOR": "mei", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_API_URL": "https://api.github.com",
		"GITHUB_GRAPHQL_URL": "https://api.github.com/graphql", "GITHUB_EVENT_NAME": "push",
		"GITHUB_EVENT_PATH": "/e.json", "GITHUB_RUN_ID": "77", "GITHUB_RUN_ATTEMPT": "1", "RUNNER_DEBUG": "1",
	}
	tests := []struct {
		name string
		env  map[string]string
		want Job
	}{
		{"none", map[string]string{"CI": "true", "GITHUB_REPOSITORY": "acme/todo"}, Job{}},
		{"github", github, Job{
			Kind: GitHub, Repository: "acme/todo", Commit: "c0ffee", Ref: "main", Actor: "mei",
			RunURL: "https://github.com/acme/todo/actions/runs/77", ServerURL: "https://github.com",
			APIURL: "https://api.github.com", GraphQLURL: "https://api.github.com/graphql",
			Event: "push", EventPath: "/e.json", Debug: true,
		}},
		{"github re-run by another", with(github, "GITHUB_RUN_ATTEMPT", "3", "GITHUB_TRIGGERING_ACTOR", "li", "RUNNER_DEBUG", ""), Job{
			Kind: GitHub, Repository: "acme/todo", Commit: "c0ffee", Ref: "main", Actor: "li",
			RunURL: "https://github.com/acme/todo/actions/runs/77/attempts/3", ServerURL: "https://github.com",
			APIURL: "https://api.github.com", GraphQLURL: "https://api.github.com/graphql",
			Event: "push", EventPath: "/e.json",
		}},
		{"gitea: its variables are GitHub's too, with a slash at the end", map[string]string{
			"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/todo",
			"GITHUB_SERVER_URL": "https://git.example/", "GITHUB_API_URL": "https://git.example/api/v1",
			"GITHUB_RUN_ID": "5", "GITHUB_RUN_ATTEMPT": "2",
		}, Job{
			Kind: Gitea, Repository: "acme/todo", RunURL: "https://git.example/acme/todo/actions/runs/5",
			ServerURL: "https://git.example", APIURL: "https://git.example/api/v1",
		}},
		{"gitlab", map[string]string{
			"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/shop/todo", "CI_COMMIT_SHA": "c0ffee", "CI_COMMIT_REF_NAME": "main",
			"GITLAB_USER_LOGIN": "mei", "CI_JOB_URL": "https://gitlab.example/acme/shop/todo/-/jobs/9",
			"CI_SERVER_URL": "https://gitlab.example", "CI_API_V4_URL": "https://gitlab.example/api/v4",
			"CI_API_GRAPHQL_URL": "https://gitlab.example/api/graphql", "CI_PIPELINE_SOURCE": "trigger",
			"TRIGGER_PAYLOAD": "/payload", "CI_DEBUG_TRACE": "true",
		}, Job{
			Kind: GitLab, Repository: "acme/shop/todo", Commit: "c0ffee", Ref: "main", Actor: "mei",
			RunURL: "https://gitlab.example/acme/shop/todo/-/jobs/9", ServerURL: "https://gitlab.example",
			APIURL: "https://gitlab.example/api/v4", GraphQLURL: "https://gitlab.example/api/graphql",
			Event: "trigger", EventPath: "/payload", Debug: true,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Detect(environ(tt.env)), cmpopts.IgnoreUnexported(Job{})); diff != "" {
				t.Errorf("job (-want +got):\n%s", diff)
			}
		})
	}
}

func with(env map[string]string, pairs ...string) map[string]string {
	changed := map[string]string{}
	for name, value := range env {
		changed[name] = value
	}
	for i := 0; i < len(pairs); i += 2 {
		changed[pairs[i]] = pairs[i+1]
	}
	return changed
}

func TestSecrets(t *testing.T) {
	env := environ(map[string]string{
		"GITHUB_TOKEN":   "ghs_same",
		"TAGBOAT_TOKEN":  "ghs_same\n",
		"CI_JOB_TOKEN":   "glcbt-1",
		"GITHUB_ACTOR":   "mei",
		"HTTPS_PROXY":    "http://proxy:p%40ss@proxy.example:3128",
		"http_proxy":     "user:plain@proxy.example:3128",
		"SOMETHING_ELSE": "not ours",
		"DOCKER_AUTH_CONFIG": `{"auths": {"registry.example": {"auth": "bWVpOnMzY3JldA=="}},
			"credHelpers": {"other.example": "osxkeychain"}}`,
	})
	want := []string{"ghs_same", "glcbt-1", "bWVpOnMzY3JldA==", "s3cret", "p@ss", "plain"}
	if diff := cmp.Diff(want, Secrets(env)); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if got := Secrets(environ(map[string]string{"DOCKER_AUTH_CONFIG": "{broken"})); got != nil {
		t.Errorf("broken DOCKER_AUTH_CONFIG: got %q, want none", got)
	}
}
