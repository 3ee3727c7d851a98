package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
	"tagboat/promote"
	"tagboat/scm"
)

// TestTokens: a token goes only to the host, and the repository, that it was given for.
func TestTokens(t *testing.T) {
	const lines = "# per line\n git.acme.example/ops general\ngit.acme.example/ops/production narrow\n\ngithub.com hub-token\n"
	tests := []struct {
		name, host, repository, forge string
		env                           map[string]string
		want                          string
		err                           string
	}{
		{"TAGBOAT_TOKEN on the config repository's host", "git.main.example", "acme/config", scm.Gitea, map[string]string{"TAGBOAT_TOKEN": "main"}, "main", ""},
		{"another repository there", "git.main.example", "acme/other", scm.Gitea, map[string]string{"TAGBOAT_TOKEN": "main"}, "main", ""},
		{"not to another host", "git.acme.example", "ops/production", scm.Gitea, map[string]string{"TAGBOAT_TOKEN": "main"}, "", "TAGBOAT_TOKEN is not sent there"},
		{"nor GITEA_TOKEN", "git.acme.example", "ops/production", scm.Gitea, map[string]string{"GITEA_TOKEN": "main"}, "", "not the config repository's host"},
		{"nor a longer name that begins alike", "git.main.example.org", "acme/config", scm.Gitea, map[string]string{"TAGBOAT_TOKEN": "main"}, "", "is not sent there"},
		{"by name", "git.acme.example", "ops/production", scm.Gitea, map[string]string{"TAGBOAT_TOKEN": "main", "TAGBOAT_TOKENS": lines}, "narrow", ""},
		{"by its owner", "git.acme.example", "Ops/staging", scm.Gitea, map[string]string{"TAGBOAT_TOKENS": lines}, "general", ""},
		{"an owner that begins alike", "git.acme.example", "opsx/staging", scm.Gitea, map[string]string{"TAGBOAT_TOKENS": lines}, "", "no token for git.acme.example"},
		{"by host", "github.com", "acme/config", scm.GitHub, map[string]string{"TAGBOAT_TOKENS": lines}, "hub-token", ""},
		{"by name before TAGBOAT_TOKEN", "git.main.example", "acme/config", scm.Gitea, map[string]string{"TAGBOAT_TOKEN": "main", "TAGBOAT_TOKENS": "git.main.example/acme/config own-token"}, "own-token", ""},
		{"a line that does not read", "git.main.example", "acme/config", scm.Gitea, map[string]string{"TAGBOAT_TOKENS": "# mine\nhttps://git.main.example s3cret"}, "", "TAGBOAT_TOKENS, line 2"},
		{"a token alone", "git.main.example", "acme/config", scm.Gitea, map[string]string{"TAGBOAT_TOKENS": "s3cret"}, "", "TAGBOAT_TOKENS, line 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			job := ci.Detect(func(string) string { return "" })
			tool := &tool{env: func(name string) string { return tt.env[name] }, redactor: ci.NewRedactor(), mainHost: "git.main.example"}
			tool.commands = job.Commands(&out)
			got, err := tool.token(scm.Location{Host: tt.host, Name: tt.repository, Forge: tt.forge}, "GITEA_TOKEN")
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %q, %v; want %q, %q", got, err, tt.want, tt.err)
			}
			if err != nil && !errors.Is(err, scm.ErrDenied) && !errors.Is(err, promote.ErrMisused) {
				t.Errorf("%v has no cause that a code is for", err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error tells a secret: %v", err)
			}
			if got != "" && strings.Contains(tool.redactor.Redact("token "+got), got) {
				t.Errorf("the token %s is not hidden", got)
			}
		})
	}
}

// TestTokenOfAFile: a config repository that is a directory has no host, and then
// TAGBOAT_TOKEN is for none.
func TestTokenOfAFile(t *testing.T) {
	env := map[string]string{"TAGBOAT_TOKEN": "main", "GITEA_TOKEN": "main"}
	job := ci.Detect(func(string) string { return "" })
	tool := &tool{env: func(name string) string { return env[name] }, redactor: ci.NewRedactor(), job: job, commands: job.Commands(io.Discard)}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.String("repo", "file:///srv/config", "")
	open := tool.opener(cli.NewContext(cli.NewApp(), flags, nil))
	if _, err := open(t.Context(), "https://elsewhere.example/acme/todo", scm.Gitea); !errors.Is(err, scm.ErrDenied) || !strings.Contains(err.Error(), "TAGBOAT_TOKEN is not sent there") {
		t.Errorf("%v", err)
	}
	if _, err := open(t.Context(), "file:///srv/config", scm.Git); errors.Is(err, scm.ErrDenied) {
		t.Errorf("the directory itself: %v", err)
	}
}
