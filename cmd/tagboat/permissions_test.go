package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab/gitlabtest"
)

// granted is what a command is tried with: a need, or one right less than it.
type granted struct {
	rights []string
	role   scm.Permission
	also   bool
	names  []string // what must be said of what is missing; nil: nothing is
}

// lesser are the ways to have one right less than a need has.
func lesser(forge string, n need, where map[string]string) (all []granted) {
	for i, right := range n.rights {
		for _, instead := range belowRight(right) {
			g := granted{rights: slices.Clone(n.rights), role: n.role, also: true, names: []string{right, where["right"]}}
			if g.rights[i] = instead; instead == "" {
				g.rights = slices.Delete(g.rights, i, i+1)
				// What reads may come first: statuses:read of who needs statuses:write.
				g.names[0] = strings.TrimSuffix(strings.TrimPrefix(right, "write"), "write")
			}
			all = append(all, g)
		}
	}
	if forge != scm.GitHub { // an App has no role
		below := map[scm.Permission]scm.Permission{scm.PermissionAdmin: scm.PermissionWrite, scm.PermissionWrite: scm.PermissionRead, scm.PermissionRead: scm.PermissionNone}[n.role]
		all = append(all, granted{rights: n.rights, role: below, also: true, names: []string{where[string(n.role)]}})
	}
	if n.also != "" {
		all = append(all, granted{rights: n.rights, role: n.role, names: []string{where["also"]}})
	}
	return all
}

// belowRight is what may stand in place of a right when one is taken away; "" is
// nothing at all.
func belowRight(right string) []string {
	switch name, level, _ := strings.Cut(right, ":"); {
	case right == "api":
		return []string{"read_api"}
	case right == "read_api":
		return []string{"read_repository"}
	case level == "write":
		return []string{name + ":read", ""}
	case name == "write":
		return []string{"read:" + level, ""}
	}
	return []string{""}
}

// hold tries each command of a forge with exactly what needs says, then with each
// right less: it fails, names what is missing, and has written nothing.
func holdNeeds(t *testing.T, forge string, where map[string]string, serve func(*trial, granted)) {
	for _, n := range needs(forge) {
		for _, command := range n.commands {
			t.Run(command, func(t *testing.T) {
				try := func(g granted) (code int, said string, wrote bool) {
					b := newTrial(t)
					b.prepare(command)
					serve(b, g)
					if command == afterAsking || command == "chatops" { // what starts the job is no write of it
						b.job(command)
					}
					before := b.state()
					code, said = b.try(command)
					return code, said, b.state() != before
				}
				reads := n.role == scm.PermissionRead
				if code, said, wrote := try(granted{n.rights, n.role, true, nil}); code != 0 || wrote == reads {
					t.Errorf("with %q, %s: exit %d, wrote: %t\n%s", n.rights, n.role, code, wrote, said)
				}
				for _, g := range lesser(forge, n, where) {
					code, said, wrote := try(g)
					silent := slices.ContainsFunc(g.names, func(name string) bool { return !strings.Contains(said, name) })
					if code == 0 || wrote || silent {
						t.Errorf("with %q, %s, also %t: exit %d, wrote: %t; want words %q\n%s", g.rights, g.role, g.also, code, wrote, g.names, said)
					}
				}
			})
		}
	}
}

// TestGitHubRights is about an App, which is asked for its rights before anything
// else is.
func TestGitHubRights(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	holdNeeds(t, scm.GitHub, map[string]string{"right": "the App's settings (Permissions)"}, func(b *trial, g granted) {
		app := &githubtest.FakeApp{ID: "42", Key: &key.PublicKey, InstallationID: 7, Grants: levels(g.rights)}
		for name, value := range serveGitHub(githubtest.Options{App: app})(b.t, b.store, b.t.Cleanup) {
			b.setenv(name, value)
		}
		b.store.SetTeam("release", "", "tagboat[bot]")
		b.setenv("TAGBOAT_TOKEN", "")
		b.setenv("TAGBOAT_APP_ID", "42")
		b.setenv("TAGBOAT_APP_KEY", text)
	})
}

func levels(rights []string) map[string]string {
	grants := map[string]string{}
	for _, right := range rights {
		name, level, _ := strings.Cut(right, ":")
		grants[name] = level
	}
	return grants
}

// TestGitLabRights is about a project access token.
func TestGitLabRights(t *testing.T) {
	where := map[string]string{"right": "Access tokens", "write": "Developer", "read": "role Reporter", "also": "a member of the group"}
	role := map[scm.Permission]int{scm.PermissionWrite: 30, scm.PermissionRead: 20, scm.PermissionNone: 10}
	holdNeeds(t, scm.GitLab, where, func(b *trial, g granted) {
		b.gitlab = gitlabtest.New(b.t, b.store)
		b.gitlab.Scopes, b.gitlab.Role, b.gitlab.HiddenGroups = g.rights, role[g.role], !g.also
		at, stop := b.gitlab.Start()
		b.t.Cleanup(stop)
		b.store.SetPermission("mei", "30")
		b.store.SetTeam("release", "", gitlabtest.BotLogin)
		for name, value := range map[string]string{"REPO": at + "/" + gitlabtest.Project, "FORGE": scm.GitLab, "TAGBOAT_TOKEN": gitlabtest.Token, "CI_SERVER_URL": at} {
			b.setenv(name, value)
		}
	})
}

// TestGiteaRights is about a token of a user of its own.
func TestGiteaRights(t *testing.T) {
	where := map[string]string{
		"right": "Settings, Applications", "admin": "administrator of the repository", "write": "no write access", "read": "cannot see it", "also": "must be in that team",
	}
	holdNeeds(t, scm.Gitea, where, func(b *trial, g granted) {
		fake := httptest.NewServer(giteatest.New(giteatest.Options{
			Store: b.store, Report: b.t.Errorf, Teams: []string{"release"}, Scopes: append([]string{}, g.rights...),
			NotRepoAdmin: g.role != scm.PermissionAdmin, NoTeamMember: !g.also,
		}))
		b.t.Cleanup(fake.Close)
		b.store.SetPermission("tagboat", string(g.role))
		b.store.SetTeam("release", "", "tagboat")
		for name, value := range map[string]string{"REPO": fake.URL + "/acme/config", "FORGE": scm.Gitea, "GITEA_TOKEN": "token"} {
			b.setenv(name, value)
		}
	})
}

// TestPermissionTables: the tables of docs/permissions.md say what needs says.
func TestPermissionTables(t *testing.T) {
	doc, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	for forge, title := range map[string]string{scm.GitHub: "GitHub", scm.GitLab: "GitLab", scm.Gitea: "Gitea and Forgejo"} {
		_, section, _ := strings.Cut(string(doc), "\n## "+title+"\n")
		_, table, _ := strings.Cut(section, "\n| --- | --- |\n")
		table, _, found := strings.Cut(table, "\n\n")
		var want []string
		for _, n := range needs(forge) {
			want = append(want, "| `"+strings.Join(n.commands, "`, `")+"` | "+inWords(forge, n)+" |")
		}
		if diff := cmp.Diff(strings.Join(want, "\n"), table); !found || diff != "" {
			t.Errorf("the table of %s (-needs +docs):\n%s", title, diff)
		}
	}
}

// inWords is a need as a row of the documentation has it.
func inWords(forge string, n need) string {
	roles := map[string]map[scm.Permission]string{
		scm.GitLab: {scm.PermissionRead: "Reporter", scm.PermissionWrite: "Developer"},
		scm.Gitea:  {scm.PermissionRead: "read access", scm.PermissionWrite: "write access", scm.PermissionAdmin: "administrator"},
	}
	var words []string
	for _, right := range n.rights {
		if name, level, _ := strings.Cut(right, ":"); forge == scm.GitHub {
			words = append(words, "*"+name+"*: "+level)
			continue
		}
		words = append(words, "`"+right+"`")
	}
	for _, more := range []string{roles[forge][n.role], n.also} {
		if more != "" {
			words = append(words, more)
		}
	}
	return strings.Join(words, ", ")
}

// What needs no right of its own goes on without it, and warns.
func TestGiteaGoesOnWithout(t *testing.T) {
	for _, c := range []struct {
		command, lacks string
		words          []string
	}{
		{"promote", "write:issue", []string{"labels promotion", ":issue too"}},
		{"hold", "read:user", []string{"as told", "read:user"}},
	} {
		b := newTrial(t)
		_, err := b.store.Push("main", "mei", "Label", map[string]string{"tagboat.yaml": "version: 1\napps:\n  todo-api:\n    images: [{repository: '" + b.image("") + "'}]\n" +
			"environments:\n- {name: staging, path: staging, pull-request: {labels: [promotion]}}\n- {name: checked, path: checked}\n"})
		b.check(err)
		b.store.SetPermission("tagboat", "write")
		fake := httptest.NewServer(giteatest.New(giteatest.Options{Store: b.store, Report: t.Errorf, Scopes: []string{"write:repository"}}))
		t.Cleanup(fake.Close)
		b.env = map[string]string{"REPO": fake.URL + "/acme/config", "FORGE": scm.Gitea, "GITEA_TOKEN": "token"}
		before := b.state()
		code, said := b.try(c.command)
		for _, word := range c.words {
			if code != 0 || b.state() == before || !strings.Contains(said, word) {
				t.Errorf("%s without %s: exit %d, want a warning with %q\n%s", c.command, c.lacks, code, word, said)
			}
		}
	}
}
