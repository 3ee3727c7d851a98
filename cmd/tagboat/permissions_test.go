package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"tagboat/registry/registrytest"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// bench is a config repository in which one command at a time is tried.
type bench struct {
	t        *testing.T
	registry *registrytest.Registry
	store    *scmtest.Store
	env      map[string]string // REPO and FORGE, and the credential
}

// newBench has staging on v2, production on v1, and v3 in the registry.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, registry: registrytest.New()}
	t.Cleanup(b.registry.Close)
	digests := map[string]string{}
	for _, tag := range []string{"v1", "v2", "v3"} {
		digest, err := b.registry.PushImage("acme/todo-api:"+tag, registrytest.ImageSpec{Platforms: []string{"linux/amd64"}, Content: tag})
		if err != nil {
			t.Fatal(err)
		}
		digests[tag] = digest
	}
	overlay := func(tag string) string {
		return "resources: [pod.yaml]\nimages:\n- {name: " + b.image("") + ", newTag: " + tag + ", digest: '" + digests[tag] + "'}\n"
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: todo}\nspec: {containers: [{name: api, image: " + b.image("") + "}]}\n"
	b.store = scmtest.NewStore("main", map[string]string{
		"staging/kustomization.yaml": overlay("v2"), "staging/pod.yaml": pod, "production/kustomization.yaml": overlay("v1"), "production/pod.yaml": pod,
		"tagboat.yaml": "version: 1\napps:\n  todo-api:\n    images: [{repository: '" + b.image("") + "'}]\nenvironments:\n" +
			"- {name: staging, path: staging}\n- {name: production, from: [staging], path: production, gates: {checks: [e2e]}}\n",
	})
	tip, _ := b.store.Branch("main")
	if _, err := b.store.PostStatus(tip, scmtest.Status{Context: "e2e", State: "success", Creator: "ci"}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) image(tag string) string { return b.registry.Host() + "/acme/todo-api" + tag }

// run runs a command against the bench's forge.
func (b *bench) run(args ...string) (code int, stderr string) {
	b.t.Helper()
	var out, errOut bytes.Buffer
	full := append([]string{"tagboat", args[0], "--repo", b.env["REPO"], "--forge", b.env["FORGE"]}, args[1:]...)
	code = run(context.Background(), full, &out, &errOut, func(name string) string { return b.env[name] })
	return code, errOut.String() + out.String()
}

// commands are tried with exactly the rights that docs/permissions.md says.
func commands(b *bench) map[string][]string {
	return map[string][]string{
		"promote": {"promote", "--to", "staging", b.image(":v3")},
		"gates":   {"promote", "--from", "staging", "--to", "production", "--app", "todo-api", "--dry-run"},
		"hold":    {"hold", "staging", "--reason", "incident 12"},
		"verify":  {"verify"},
	}
}

// documented reads which commands have a row in a forge's table of
// docs/permissions.md, and what each row says.
func documented(t *testing.T, forge string) map[string]string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "\n## "+forge+"\n")
	if !found {
		t.Fatalf("docs/permissions.md has no section %s", forge)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) >= 3 && strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			rows[strings.Trim(strings.TrimSpace(cells[1]), "`")] = cells[2]
		}
	}
	return rows
}

// gitHubRights are an App's permissions for each command, as GitHub names them.
func gitHubRights() map[string][]string {
	return map[string][]string{
		"promote": {"contents", "pull_requests"},
		"gates":   {"contents", "pull_requests", "statuses", "checks"},
		"hold":    {"contents", "pull_requests"},
		"verify":  {"contents", "pull_requests", "statuses", "checks"},
	}
}

// TestGitHubRights: with an App that has exactly the documented permissions each
// command passes; with one less it fails and names the one.
func TestGitHubRights(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	all := []string{"contents", "pull_requests", "statuses", "checks", "members", "issues", "actions", "administration", "workflows", "metadata"}
	rows := documented(t, "GitHub")
	try := func(t *testing.T, command string, has []string) (int, string) {
		b := newBench(t)
		lacks := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return slices.Contains(has, p) })
		fake := githubtest.New(t, b.store, githubtest.Options{App: &githubtest.FakeApp{ID: "42", Key: &key.PublicKey, InstallationID: 7, Lacks: lacks}})
		b.env = map[string]string{
			"REPO": fake.URL() + "/" + fake.Owner() + "/" + fake.Name(), "FORGE": "github", "GITHUB_API_URL": fake.URL(),
			"TAGBOAT_APP_ID": "42", "TAGBOAT_APP_KEY": string(pem.EncodeToMemory(block)),
		}
		b.propose(command)
		return b.run(commands(b)[command]...)
	}
	for command, needs := range gitHubRights() {
		t.Run(command, func(t *testing.T) {
			for _, p := range needs {
				if !strings.Contains(rows[command], "*"+p+"*") {
					t.Errorf("the row of docs/permissions.md does not say %s: %s", p, rows[command])
				}
			}
			if n := strings.Count(rows[command], "*"); n != 2*len(needs) {
				t.Errorf("the row of docs/permissions.md says other permissions than %q: %s", needs, rows[command])
			}
			if code, said := try(t, command, needs); code != 0 {
				t.Errorf("with %q: exit %d\n%s", needs, code, said)
			}
			for i, missing := range needs {
				code, said := try(t, command, slices.Delete(slices.Clone(needs), i, i+1))
				if code == 0 || !strings.Contains(said, missing+":") {
					t.Errorf("without %s: exit %d\n%s", missing, code, said)
				}
			}
		})
	}
}

// propose has a promotion stand open, for the commands that look at one.
func (b *bench) propose(command string) {
	b.t.Helper()
	if command != "verify" {
		return
	}
	fake := githubtest.New(b.t, b.store, githubtest.Options{})
	own := b.env
	b.env = map[string]string{
		"REPO": fake.URL() + "/" + fake.Owner() + "/" + fake.Name(), "FORGE": "github", "GITHUB_API_URL": fake.URL(), "TAGBOAT_TOKEN": fake.Token(),
	}
	if code, said := b.run(commands(b)["promote"]...); code != 0 {
		b.t.Fatalf("propose: exit %d\n%s", code, said)
	}
	b.env = own
}

// TestGitLabRights: scope api with the role Developer passes; a token that only
// reads is refused, and the scope is named.
func TestGitLabRights(t *testing.T) {
	rows := documented(t, "GitLab")
	for command := range gitHubRights() {
		t.Run(command, func(t *testing.T) {
			if !strings.Contains(rows[command], "`api`") || !strings.Contains(rows[command], "Developer") {
				t.Errorf("the row of docs/permissions.md: %s", rows[command])
			}
			for token, passes := range map[string]bool{gitlabtest.Token: true, gitlabtest.ReadToken: false} {
				b := newBench(t)
				url, stop := gitlabtest.New(t, b.store).Start()
				defer stop()
				b.env = map[string]string{"REPO": url + "/" + gitlabtest.Project, "FORGE": "gitlab", "TAGBOAT_TOKEN": gitlabtest.Token}
				if command == "verify" {
					if code, said := b.run(commands(b)["promote"]...); code != 0 {
						t.Fatalf("propose: exit %d\n%s", code, said)
					}
				}
				b.env["TAGBOAT_TOKEN"] = token
				code, said := b.run(commands(b)[command]...)
				switch {
				case passes && code != 0:
					t.Errorf("exit %d\n%s", code, said)
				case !passes && command == "gates": // reads alone, so that the lesser scope does
					if code != 0 {
						t.Errorf("a dry run with read_api: exit %d\n%s", code, said)
					}
				case !passes && (code == 0 || !strings.Contains(said, "scope api")):
					t.Errorf("with read_api: exit %d\n%s", code, said)
				}
			}
		})
	}
}

// TestGiteaRights: write:repository and write:issue of a user who may write pass;
// a token with read:repository alone is refused, and the scope is named.
func TestGiteaRights(t *testing.T) {
	rows := documented(t, "Gitea and Forgejo")
	for command := range gitHubRights() {
		t.Run(command, func(t *testing.T) {
			if !strings.Contains(rows[command], "`write:repository`") {
				t.Errorf("the row of docs/permissions.md: %s", rows[command])
			}
			for _, reads := range []bool{false, true} {
				b := newBench(t)
				serve := func(o giteatest.Options) {
					o.Store, o.Report = b.store, t.Errorf
					fake := httptest.NewServer(giteatest.New(o))
					t.Cleanup(fake.Close)
					b.env = map[string]string{"REPO": fake.URL + "/acme/config", "FORGE": "gitea", "GITEA_TOKEN": "token"}
				}
				serve(giteatest.Options{})
				if command == "verify" {
					if code, said := b.run(commands(b)["promote"]...); code != 0 {
						t.Fatalf("propose: exit %d\n%s", code, said)
					}
				}
				serve(giteatest.Options{ReadOnly: reads, NoOrgScope: true})
				code, said := b.run(commands(b)[command]...)
				switch {
				case !reads && code != 0:
					t.Errorf("exit %d\n%s", code, said)
				case reads && command == "gates":
					if code != 0 {
						t.Errorf("a dry run with read:repository: exit %d\n%s", code, said)
					}
				case reads && (code == 0 || !strings.Contains(said, "write:repository")):
					t.Errorf("with read:repository: exit %d\n%s", code, said)
				}
			}
		})
	}
}
