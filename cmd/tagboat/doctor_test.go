package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tagboat/scm"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab/gitlabtest"
)

// TestDoctorOfCredentials: what doctor says of the credential itself, on each forge,
// from what the forge tells of it; it never shows the credential, and writes nothing.
func TestDoctorOfCredentials(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }
	app := func(rights ...string) func(*trial) {
		return func(b *trial) {
			serveDoctor(b, githubtest.Options{App: &githubtest.FakeApp{ID: "42", Key: &key.PublicKey, InstallationID: 7, Grants: levels(rights)}})
			b.setenv("TAGBOAT_TOKEN", "")
			b.setenv("TAGBOAT_APP_ID", "42")
			b.setenv("TAGBOAT_APP_KEY", text)
		}
	}
	token := func(o githubtest.Options, role string) func(*trial) {
		return func(b *trial) { serveDoctor(b, o); b.store.SetPermission("mei", role) }
	}
	gitlab := func(scopes []string, role int, expires string, untold bool) func(*trial) {
		return func(b *trial) {
			fake := gitlabtest.New(b.t, b.store)
			fake.Scopes, fake.Role, fake.Expires, fake.NoTokenInfo = scopes, role, expires, untold
			at, stop := fake.Start()
			b.t.Cleanup(stop)
			b.env = map[string]string{"REPO": at + "/" + gitlabtest.Project, "FORGE": scm.GitLab, "TAGBOAT_TOKEN": gitlabtest.Token}
		}
	}
	gitea := func(version, role string, scopes ...string) func(*trial) {
		return func(b *trial) {
			fake := httptest.NewServer(giteatest.New(giteatest.Options{Store: b.store, Report: b.t.Errorf, Version: version, Token: "gitea-0123456789", Scopes: scopes, NotRepoAdmin: role != "admin"}))
			b.t.Cleanup(fake.Close)
			b.store.SetPermission("tagboat", role)
			b.env = map[string]string{"REPO": fake.URL + "/acme/config", "FORGE": scm.Gitea, "GITEA_TOKEN": "gitea-0123456789"}
		}
	}
	for name, c := range map[string]struct {
		serve func(*trial)
		exit  int
		want  []string // regular expressions of lines
	}{
		"an App to promote with": {app("contents:write", "pull_requests:write", "metadata:read"), 0, []string{
			`^ok +token +it may contents:write, metadata:read, pull_requests:write$`, `^ok +rights +tagboat\[bot\]: a bot`,
			`^ok +commands +good for promote, rollback, hold, release, promote --dry-run, holds, status, history$`,
			`^warning commands +not good for verify: it lacks statuses:write, checks:read$`, `^warning commands +not good for request, serve: it lacks actions:write$`,
		}},
		"an App to read with": {app("contents:read", "pull_requests:read"), 0, []string{
			`^ok +commands +good for promote --dry-run, holds, status, history$`, `^warning commands +not good for promote, rollback, hold, release: it lacks contents:write, pull_requests:write$`,
		}},
		"an App that may too much": {app("contents:write", "pull_requests:write", "administration:write", "secrets:read"), 0, []string{
			`^warning token +no command needs administration:write, secrets:read$`,
		}},
		"an App that may nothing here": {app("issues:write"), 1, []string{`^error +branch .*the App lacks contents:read and pull_requests:read: add it in the App's settings`}},
		"a classic token": {token(githubtest.Options{Token: "ghp_0123456789", Login: "mei", Scopes: []string{"repo", "read:org", "gist"}, Expires: time.Now().AddDate(0, 0, 9)}, "write"), 0, []string{
			`^ok +token +it may repo, read:org, gist$`, `^warning token +no command needs gist$`, `^warning token +it ends on ` + day(9) + `, in 8 days$`,
			`^ok +rights +mei: write$`, `^ok +commands +good for promote, .*, team promoters, verify, .*, serve$`,
		}},
		"a fine-grained token": {token(githubtest.Options{Token: "github_pat_0123456789", Login: "mei", Expires: time.Now().AddDate(0, 0, 90)}, "write"), 0, []string{
			`^ok +token +it ends on ` + day(90) + `$`, `^ok +commands +good for promote, .*as far as its user's role goes: its own scopes are not told$`,
		}},
		"a workflow's token": {token(githubtest.Options{Token: "ghs_0123456789"}, "write"), 0, []string{`^ok +commands +what the credential may do is not told by 127`}},
		"GitLab's api, Developer": {gitlab([]string{"api"}, 30, day(200), false), 0, []string{
			`^ok +token +it may api$`, `^ok +token +it ends on ` + day(200) + `$`, `^ok +rights +project_4711_bot_5f2: write$`,
			`^ok +commands +good for promote, .*, team promoters \(if its user is a member of the group\), verify, chatops, .*, serve$`,
		}},
		"GitLab's read_api, Reporter": {gitlab([]string{"read_api", "read_registry"}, 20, "", false), 1, []string{
			`^warning token +no command needs read_registry$`, `^error +rights +project_4711_bot_5f2: read;`, `^ok +commands +good for promote --dry-run, holds, status, history$`,
			`^warning commands +not good for promote, .*: it lacks api, the role write$`,
		}},
		"GitLab's api, ended": {gitlab([]string{"api"}, 30, day(-1), false), 1, []string{`^error +token +it ended on ` + day(-1) + `$`}},
		"GitLab's OAuth":      {gitlab([]string{"api"}, 30, "", true), 0, []string{`^ok +commands +good for promote, .*its own scopes are not told$`}},
		"Gitea's to promote with": {gitea(giteatest.V126, "write", "write:repository", "read:user"), 0, []string{
			`^ok +\S+ +it may write:repository, read:user$`, `^ok +rights +tagboat: write$`, `^ok +commands +good for promote, .*, gates.checks, verify, request$`,
			`^warning commands +not good for team promoters: it lacks read:organization$`, `^warning commands +not good for chatops: it lacks write:issue, the role admin$`,
		}},
		"Gitea's of an administrator": {gitea(giteatest.V126, "admin", "write:repository", "write:issue", "read:user", "write:package"), 0, []string{
			`^warning \S+ +no command needs write:package$`, `^ok +commands +good for .*, chatops, dispatched chatops, request, serve$`,
		}},
		"Forgejo's tells no scopes": {gitea(giteatest.Forgejo, "write", "write:repository", "read:user"), 0, []string{`its own scopes are not told$`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTrial(t)
			c.serve(b)
			before := b.state()
			code, said := b.run("doctor")
			if code != c.exit || b.state() != before {
				t.Errorf("exit %d, want %d; wrote: %t", code, c.exit, b.state() != before)
			}
			lines := strings.Split(said, "\n")
			for _, want := range c.want {
				if !slices.ContainsFunc(lines, regexp.MustCompile(want).MatchString) {
					t.Errorf("no line %s", want)
				}
			}
			for _, secret := range []string{"0123456789", "not-a-real-token", gitlabtest.Token, "PRIVATE KEY"} {
				if strings.Contains(said, secret) {
					t.Errorf("the secret %s is shown", secret)
				}
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
}

func serveDoctor(b *trial, o githubtest.Options) {
	for name, value := range serveGitHub(o)(b.t, b.store, b.t.Cleanup) {
		b.setenv(name, fmt.Sprint(value))
	}
}
