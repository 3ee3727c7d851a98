package main

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
	"tagboat/registry"
	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/github"
	"tagboat/scm/gitlab"
	"tagboat/scm/plaingit"
)

// registry makes the client of image registries that the options ask for.
func (t *tool) registry(c *cli.Context) (*registry.Client, error) {
	return registry.New(registry.Options{
		Env: t.env, CAFiles: words(c.StringSlice("ca-file")), PlainHTTP: words(c.StringSlice("plain-http")),
		UserAgent: t.userAgent(), Warn: t.warn, Secret: func(s string) { t.hide(s) },
	})
}

func (t *tool) userAgent() string {
	agent := "tagboat/" + version()
	if t.job.RunURL != "" {
		agent += " (" + t.job.RunURL + ")"
	}
	return agent
}

// opener gives code repositories by name. The token of the config repository goes
// to its own host alone.
func (t *tool) opener(c *cli.Context) func(ctx context.Context, repository, forge string) (scm.Repository, error) {
	named, caFiles := c.String("forge"), words(c.StringSlice("ca-file"))
	if own, err := scm.Locate(cmp.Or(strings.TrimSpace(c.String("repo")), t.job.Repository), scm.LocateOptions{Forge: named, CI: t.server()}); err == nil {
		t.mainHost = cmp.Or(own.Host, "file:") // a directory has none, and "" is not known yet
	}
	t.readOnly = slices.Contains([]string{"verify", "serve", "request", "status", "history", "holds"}, c.Command.Name) || c.Bool("dry-run")
	return func(_ context.Context, repo, forge string) (scm.Repository, error) {
		if forge == "" {
			forge = named
		}
		at, err := scm.Locate(repo, scm.LocateOptions{Forge: forge, CI: t.server()})
		if err != nil {
			return nil, misused("%v", err)
		}
		return t.open(at, caFiles)
	}
}

// server is the forge that runs this job.
func (t *tool) server() scm.Server {
	switch t.job.Kind {
	case ci.GitHub:
		return scm.Server{URL: t.job.ServerURL, Forge: scm.GitHub}
	case ci.Gitea:
		return scm.Server{URL: t.job.ServerURL, Forge: scm.Gitea}
	case ci.GitLab:
		return scm.Server{URL: t.job.ServerURL, Forge: scm.GitLab}
	}
	return scm.Server{}
}

func (t *tool) open(at scm.Location, caFiles []string) (scm.Repository, error) {
	transport := scm.TransportOptions{UserAgent: t.userAgent(), CAFiles: caFiles}
	owner, name, _ := strings.Cut(at.Name, "/")
	switch at.Forge {
	case scm.GitHub:
		return t.openGitHub(at, transport)
	case scm.GitLab:
		token, kind, err := t.gitlabToken(at)
		if err != nil {
			return nil, err
		}
		transport.Pace = t.paces.of(at.Host, token)
		return gitlab.New(gitlab.Options{BaseURL: at.BaseURL, Project: at.Name, Token: token, TokenKind: kind, Transport: transport})
	case scm.Gitea:
		token, err := t.token(at, "GITEA_TOKEN", "GITHUB_TOKEN")
		if err != nil {
			return nil, err
		}
		transport.Pace = t.paces.of(at.Host, token)
		return gitea.New(gitea.Options{BaseURL: at.BaseURL, Owner: owner, Name: name, Token: token, HTTP: transport})
	case scm.Git:
		token, err := t.mainToken(at)
		if err != nil {
			return nil, err
		}
		passphrase, err := t.fileOr("TAGBOAT_SSH_PASSPHRASE")
		if err != nil {
			return nil, err
		}
		t.hide(passphrase)
		return plaingit.New(plaingit.Options{
			URL: at.CloneURL, Token: token, CAFiles: caFiles, SSHKeyFile: t.env("TAGBOAT_SSH_KEY_FILE"), SSHKeyPassphrase: passphrase,
		})
	}
	return nil, misused("which forge is %s? Say --forge github, gitlab, gitea or git", at.Host)
}

func (t *tool) openGitHub(at scm.Location, transport scm.TransportOptions) (scm.Repository, error) {
	owner, name, _ := strings.Cut(at.Name, "/")
	o := github.Options{
		BaseURL: github.APIURL(at.Host), Owner: owner, Name: name, Transport: transport, OnSecret: func(s string) { t.hide(s) },
	}
	if api := t.env("GITHUB_API_URL"); api != "" && t.ownHost(at.Host) {
		o.BaseURL = api
	}
	id := t.env("TAGBOAT_APP_ID")
	key, err := t.fileOr("TAGBOAT_APP_KEY")
	if err != nil {
		return nil, err
	}
	t.hide(key)
	byName, err := t.tokenFor(at)
	if err != nil {
		return nil, err
	}
	if (id != "" || key != "") && byName == "" && t.isMain(at) {
		o.App = &github.App{ID: id, PrivateKey: key, ReadOnly: t.readOnly}
		o.Transport.Pace = t.paces.of(at.Host, "App "+id)
		return github.New(o)
	}
	if o.Token, err = t.token(at, "GITHUB_TOKEN"); err != nil {
		return nil, err
	}
	o.Transport.Pace = t.paces.of(at.Host, o.Token)
	o.ActionsToken = t.job.Kind == ci.GitHub && o.Token == t.env("GITHUB_TOKEN")
	if o.ActionsToken && !strings.EqualFold(at.Name, t.job.Repository) {
		return nil, misused("GITHUB_TOKEN of %s cannot reach %s, it is for its own repository alone: use a GitHub App (TAGBOAT_APP_ID, TAGBOAT_APP_KEY) or another token in TAGBOAT_TOKEN", t.job.Repository, at.Name)
	}
	return github.New(o)
}

// gitlabToken finds GitLab's token. A job's own token is passed on as what it is,
// for it can neither commit nor open merge requests.
func (t *tool) gitlabToken(at scm.Location) (string, gitlab.TokenKind, error) {
	token, err := t.token(at, "GITLAB_TOKEN")
	switch {
	case err == nil && token == t.env("CI_JOB_TOKEN"):
		return token, gitlab.JobToken, nil
	case err != nil && t.env("CI_JOB_TOKEN") != "" && t.ownHost(at.Host):
		return t.env("CI_JOB_TOKEN"), gitlab.JobToken, nil
	}
	return token, gitlab.PrivateToken, err
}

// token finds the credential of a repository: one that was given for it by name,
// TAGBOAT_TOKEN where it is on the config repository's host; the forges' own variables
// are for their own host only.
func (t *tool) token(at scm.Location, names ...string) (string, error) {
	token, err := t.mainToken(at)
	if err != nil || token != "" {
		return token, err
	}
	for _, name := range names {
		if token, err = t.fileOr(name); err != nil {
			return "", err
		}
		if token != "" && t.isFor(name, at) {
			t.hide(token)
			return token, nil
		}
	}
	return "", noToken(at, t.isMain(at), names)
}

// isFor says whether a forge's own variable is meant for a host. GITEA_TOKEN has
// no public host of its own: it is for the one that --repo names.
func (t *tool) isFor(name string, at scm.Location) bool {
	sure := scm.SureForge(at.Host)
	switch name {
	case "GITHUB_TOKEN":
		return t.job.Kind != ci.GitHub && sure == scm.GitHub || t.ownHost(at.Host)
	case "GITLAB_TOKEN":
		return sure == scm.GitLab || t.ownHost(at.Host)
	}
	return at.Forge == scm.Gitea && t.isMain(at)
}

// ownHost says whether a host is the one whose CI this is, or that the forge's own
// variables name.
func (t *tool) ownHost(host string) bool {
	for _, name := range []string{"GITHUB_SERVER_URL", "GITHUB_API_URL", "CI_SERVER_URL", "GITLAB_URL"} {
		u, err := url.Parse(t.env(name))
		if err == nil && u.Host != "" && strings.EqualFold(strings.TrimPrefix(u.Host, "api."), host) {
			return true
		}
	}
	return strings.EqualFold(t.env("GITLAB_HOST"), host)
}
