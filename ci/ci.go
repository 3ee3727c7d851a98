// Package ci knows what GitHub Actions and GitLab CI tell a job and want from
// it: environment, outputs, summary, annotations, masks; and it holds the one
// redactor through which every text leaves the process.
package ci

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Kind is the CI system that runs the job.
type Kind string

// The systems that are told apart. Gitea also stands for Forgejo: both run
// GitHub's workflow language and set GITHUB_* for their own server.
const (
	None   Kind = ""
	GitHub Kind = "github"
	Gitea  Kind = "gitea"
	GitLab Kind = "gitlab"
)

// Job is what the environment says of the CI job that runs Tagboat. Each field
// may be empty.
//
// These are claims. Whoever can start a job can set them, so they fill in
// defaults and texts; nothing that needs an identity may rest on them.
type Job struct {
	Kind       Kind
	Repository string // owner/name, group/sub/name: the repository whose CI this is
	Commit     string // SHA of the commit that the job was started for
	Ref        string // branch or tag, without refs/heads/ and refs/tags/
	Actor      string // login that started the job, as claimed
	RunURL     string // page of this run
	ServerURL  string // https://github.com, no trailing slash
	APIURL     string // https://api.github.com, https://gitlab.example/api/v4
	GraphQLURL string
	Event      string // push, workflow_dispatch; on GitLab the pipeline's source
	EventPath  string // file with the event's JSON
	Debug      bool   // the job was started with step debug logs on

	PullRequest int    // the number of the pull request that the job is for; 0: none
	Queued      string // the merge queue's commit of it, where the job is for that

	outputPath  string // GITHUB_OUTPUT
	summaryPath string // GITHUB_STEP_SUMMARY
	dotenvPath  string // GitLab's dotenv report
}

// Detect reads the job from the environment; env is os.Getenv or a stand-in.
// Outside a known CI the zero Job comes back, whose methods write nothing.
func Detect(env func(string) string) Job {
	switch {
	case env("GITEA_ACTIONS") == "true" || env("FORGEJO_ACTIONS") == "true":
		return actionsJob(env, Gitea)
	case env("GITHUB_ACTIONS") == "true":
		return actionsJob(env, GitHub)
	case env("GITLAB_CI") == "true":
		return gitlabJob(env)
	}
	return Job{}
}

func actionsJob(env func(string) string, kind Kind) Job {
	job := Job{
		Kind:        kind,
		Repository:  env("GITHUB_REPOSITORY"),
		Commit:      env("GITHUB_SHA"),
		Ref:         env("GITHUB_REF_NAME"),
		Actor:       env("GITHUB_ACTOR"),
		ServerURL:   noSlash(env("GITHUB_SERVER_URL")), // Gitea's has one
		APIURL:      noSlash(env("GITHUB_API_URL")),
		GraphQLURL:  noSlash(env("GITHUB_GRAPHQL_URL")),
		Event:       env("GITHUB_EVENT_NAME"),
		EventPath:   env("GITHUB_EVENT_PATH"),
		Debug:       env("RUNNER_DEBUG") == "1",
		outputPath:  env("GITHUB_OUTPUT"),
		summaryPath: env("GITHUB_STEP_SUMMARY"),
	}
	job.PullRequest, job.Queued = pullRequestOf(env("GITHUB_REF"), job.Commit)
	if who := env("GITHUB_TRIGGERING_ACTOR"); who != "" { // a re-run is by somebody else
		job.Actor = who
	}
	run := env("GITHUB_RUN_ID")
	if job.ServerURL != "" && job.Repository != "" && run != "" {
		job.RunURL = job.ServerURL + "/" + job.Repository + "/actions/runs/" + run
		if attempt := env("GITHUB_RUN_ATTEMPT"); kind == GitHub && attempt != "" && attempt != "1" {
			job.RunURL += "/attempts/" + attempt
		}
	}
	return job
}

var (
	pullRef  = regexp.MustCompile(`^refs/pull/([0-9]+)/`)
	queueRef = regexp.MustCompile(`^refs/heads/gh-readonly-queue/.+/pr-([0-9]+)-[0-9a-f]+$`)
)

// pullRequestOf reads the number out of the ref of a job: that of a pull request, or
// of GitHub's merge queue, whose commit wants the required statuses, too.
func pullRequestOf(ref, commit string) (number int, queued string) {
	m := pullRef.FindStringSubmatch(ref)
	if m == nil {
		if m = queueRef.FindStringSubmatch(ref); m == nil {
			return 0, ""
		}
		queued = commit
	}
	number, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, ""
	}
	return number, queued
}

func gitlabJob(env func(string) string) Job {
	number, err := strconv.Atoi(env("CI_MERGE_REQUEST_IID"))
	if err != nil {
		number = 0 // no merge request's pipeline
	}
	return Job{
		PullRequest: number,

		Kind:       GitLab,
		Repository: env("CI_PROJECT_PATH"),
		Commit:     env("CI_COMMIT_SHA"),
		Ref:        env("CI_COMMIT_REF_NAME"),
		Actor:      env("GITLAB_USER_LOGIN"),
		RunURL:     env("CI_JOB_URL"),
		ServerURL:  noSlash(env("CI_SERVER_URL")),
		APIURL:     noSlash(env("CI_API_V4_URL")),
		GraphQLURL: noSlash(env("CI_API_GRAPHQL_URL")),
		Event:      env("CI_PIPELINE_SOURCE"),
		EventPath:  env("TRIGGER_PAYLOAD"),
		Debug:      env("CI_DEBUG_TRACE") == "true",
		dotenvPath: dotenvPath(env),
	}
}

// dotenvPath puts the report where GitLab looks for artifacts: below the
// project's directory, wherever the job has moved to.
func dotenvPath(env func(string) string) string {
	path := env("TAGBOAT_DOTENV")
	if path == "" {
		path = "tagboat.env"
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(env("CI_PROJECT_DIR"), path)
}

func (j Job) isActions() bool { return j.Kind == GitHub || j.Kind == Gitea }

func noSlash(url string) string { return strings.TrimRight(url, "/") }
