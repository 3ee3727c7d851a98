package main

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tagboat/chatops"
	"tagboat/chatops/hook"
	"tagboat/scm"
)

// The secrets of tagboat serve, each of which opens a path.
const (
	slackSecret  = "TAGBOAT_SLACK_SECRET"
	githubSecret = "TAGBOAT_GITHUB_SECRET"
	giteaSecret  = "TAGBOAT_GITEA_SECRET"
	gitlabSecret = "TAGBOAT_GITLAB_SECRET"
)

func (t *tool) serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "take commands from Slack and webhooks, and start the config repository's CI for them",
		UsageText: "tagboat serve --repo OWNER/NAME [--listen HOST:PORT] [options]",
		Description: `Serves /slack/command, /github/hook, /gitea/hook and /gitlab/hook, each where its secret is set
(TAGBOAT_SLACK_SECRET, TAGBOAT_GITHUB_SECRET, TAGBOAT_GITEA_SECRET, TAGBOAT_GITLAB_SECRET, or NAME_FILE for a
file that holds it), and /healthz, /readyz and /metrics. It checks signatures, asks the forge for rights and
starts the workflow that runs tagboat chatops. It keeps nothing: run as many replicas as you like, behind TLS.

docs/chatops.md tells how it is set up.

Example:
  tagboat serve --repo acme/config --listen 127.0.0.1:8080`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "repo", Usage: "config `REPOSITORY`: owner/name, group/sub/name or a URL"},
			&cli.StringFlag{Name: "forge", Usage: "`github|gitlab|gitea`, where the host does not tell"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8080", Usage: "`HOST:PORT` to listen on"},
			&cli.StringFlag{Name: "log", Value: "json", Usage: "`json|text`"},
			&cli.DurationFlag{Name: "grace", Value: 10 * time.Second, Usage: "how `LONG` requests may take when it is told to stop"},
		}, workflowFlags()),
		Action: t.serve,
	}
}

func (t *tool) serve(c *cli.Context) error {
	log, err := t.logger(c)
	if err != nil {
		return err
	}
	o := hook.Options{Log: log}
	if err := t.hookSecrets(&o); err != nil {
		return err
	}
	name := strings.TrimSpace(c.String("repo"))
	if name == "" {
		return misused("no config repository: name it with --repo OWNER/NAME or a URL")
	}
	repo, err := t.opener(c)(c.Context, name, "")
	if err != nil {
		return err
	}
	forge, ok := repo.(chatops.Forge)
	if !ok {
		return fmt.Errorf("%w: a %s repository tells nothing about people and has no CI to start", scm.ErrUnsupported, repo.About().Forge)
	}
	o.Desk = &chatops.Desk{Repository: forge, Workflow: c.String("workflow"), Branch: strings.TrimSpace(c.String("branch"))}
	listener, err := (&net.ListenConfig{}).Listen(c.Context, "tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	log.Info("listening", "address", listener.Addr().String(), "repository", repo.About().Name)
	if err := hook.New(o).Serve(c.Context, listener, c.Duration("grace")); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// logger writes to standard error, through the redactor.
func (t *tool) logger(c *cli.Context) (*slog.Logger, error) {
	switch c.String("log") {
	case "json":
		return slog.New(slog.NewJSONHandler(t.stderr, nil)), nil
	case "text":
		return slog.New(slog.NewTextHandler(t.stderr, nil)), nil
	}
	return nil, misused("--log %s: it is json or text", c.String("log"))
}

// hookSecrets reads the secrets of the paths; one at least must be there.
func (t *tool) hookSecrets(o *hook.Options) error {
	any := false
	for _, s := range []struct {
		name string
		to   *string
	}{{slackSecret, &o.SlackSecret}, {githubSecret, &o.GitHubSecret}, {giteaSecret, &o.GiteaSecret}, {gitlabSecret, &o.GitLabToken}} {
		value, err := t.fileOr(s.name)
		if err != nil {
			return err
		}
		if value == "" && t.env(s.name+"_FILE") != "" {
			return misused("%s_FILE names a file that is empty", s.name)
		}
		if value == "" {
			continue
		}
		if len(value) < 16 {
			return misused("%s has %d characters: a secret that nobody guesses has 16 at least", s.name, len(value))
		}
		t.hide(value)
		*s.to, any = value, true
	}
	if !any {
		return misused("nothing to serve: set %s, %s, %s or %s (or NAME_FILE)", slackSecret, githubSecret, giteaSecret, gitlabSecret)
	}
	return nil
}
