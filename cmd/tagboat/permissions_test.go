package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/chatops"
	"tagboat/registry/registrytest"
	"tagboat/scm"
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
	digests  map[string]string // of the tags v1 to v3
	env      map[string]string // REPO and FORGE, the credential, and of a job what the CI sets
	gitlab   *gitlabtest.Server
}

// newBench has staging on v2 and before that on v1, the others on v1, and v3 in the
// registry.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, registry: registrytest.New(), digests: map[string]string{}}
	t.Cleanup(b.registry.Close)
	for _, tag := range []string{"v1", "v2", "v3"} {
		digest, err := b.registry.PushImage("acme/todo-api:"+tag, registrytest.ImageSpec{Platforms: []string{"linux/amd64"}, Content: tag})
		b.check(err)
		b.digests[tag] = digest
	}
	overlay := func(tag string) string {
		return "resources: [pod.yaml]\nimages:\n- {name: " + b.image("") + ", newTag: " + tag + ", digest: '" + b.digests[tag] + "'}\n"
	}
	files := map[string]string{
		"tagboat.yaml": "version: 1\napps:\n  todo-api:\n    images: [{repository: '" + b.image("") + "'}]\nenvironments:\n" +
			"- {name: staging, path: staging}\n- {name: checked, from: [staging], path: checked, gates: {checks: [e2e]}}\n- {name: next, from: [staging], path: next}\n" +
			"- {name: owned, path: owned, promoters: [team:release]}\nchat: {slack: {U1: mei}}\n",
		".github/workflows/tagboat-chatops.yml": "on: {workflow_dispatch: {inputs: {request: {}, command: {}, image: {}, to: {}, user: {}, reply: {}, comment: {}}}}\n",
		".gitlab-ci.yml": "spec:\n  inputs: {request: {default: ''}, command: {default: ''}, image: {default: ''}, to: {default: ''}, user: {default: ''}, " +
			"reply: {default: ''}, comment: {default: ''}}\n---\npromote: {script: [tagboat chatops]}\n",
	}
	for _, place := range []string{"staging", "checked", "next", "owned"} {
		files[place+"/kustomization.yaml"] = overlay("v1")
		files[place+"/pod.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: todo}\nspec: {containers: [{name: api, image: " + b.image("") + "}]}\n"
	}
	b.store = scmtest.NewStore("main", files)
	tip, err := b.store.Push("main", "mei", "Promote", map[string]string{"staging/kustomization.yaml": overlay("v2")})
	b.check(err)
	_, err = b.store.PostStatus(tip, scmtest.Status{Context: "e2e", State: "success", Creator: "ci"})
	b.check(err)
	b.store.SetClock(time.Now) // that of the App's server
	b.store.SetPermission("mei", "write")
	return b
}

func (b *bench) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) image(tag string) string { return b.registry.Host() + "/acme/todo-api" + tag }

// run runs a command against the bench's forge.
func (b *bench) run(args ...string) (code int, said string) {
	b.t.Helper()
	var out, errOut bytes.Buffer
	full := append([]string{"tagboat", args[0], "--repo", b.env["REPO"], "--forge", b.env["FORGE"]}, args[1:]...)
	code = run(context.Background(), full, &out, &errOut, func(name string) string { return b.env[name] })
	lines := strings.SplitAfter(errOut.String()+out.String(), "\n")
	return code, strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "::") && !strings.HasPrefix(l, "::error") }), "")
}

// try does one of the commands of needs.
func (b *bench) try(command string) (code int, said string) {
	b.t.Helper()
	args := map[string][]string{
		"promote": {"promote", "--to", "staging", b.image(":v3")}, "promote --dry-run": {"promote", "--to", "staging", "--dry-run", b.image(":v3")},
		withChecks: {"promote", "--from", "staging", "--to", "checked", "--app", "todo-api"}, withTeams: {"promote", "--to", "owned", b.image(":v3")},
		"rollback": {"rollback", "--environment", "staging", "--app", "todo-api", "--reason", "errors"},
		"hold":     {"hold", "checked", "--reason", "incident 12"}, "release": {"release", "staging"}, "holds": {"holds"},
		"status": {"status", "--since"}, "history": {"history", "--environment", "staging", "--app", "todo-api"}, "verify": {"verify"},
		"request": {"request", "--to", "staging", b.image(":v3") + "@" + b.digests["v3"]},
	}
	switch command {
	case "serve":
		return b.serve("/promote todo-api to next")
	case "chatops", afterAsking:
		return b.run("chatops", "--speaker", "tagboat", "--speaker", "tomas")
	}
	return b.run(args[command]...)
}

// prepare has what a command finds, made by an almighty credential: an open
// promotion, a hold.
func (b *bench) prepare(command string) {
	b.t.Helper()
	for what, args := range map[string][]string{"verify": {"promote", "--to", "staging", b.image(":v3")}, "release": {"hold", "staging", "--reason", "incident 12"}} {
		if what != command {
			continue
		}
		for key, value := range serveGitHub(githubtest.Options{})(b.t, b.store, b.t.Cleanup) {
			b.setenv(key, value)
		}
		if code, said := b.run(args...); code != 0 {
			b.t.Fatalf("prepare %s: exit %d\n%s", command, code, said)
		}
	}
	b.env = map[string]string{}
}

func (b *bench) setenv(key, value string) {
	if b.env == nil {
		b.env = map[string]string{}
	}
	b.env[key] = value
}

// state is all that a command may have written, but for its words to people.
func (b *bench) state() string {
	var s strings.Builder
	for _, name := range b.store.Branches() {
		sha, _ := b.store.Branch(name)
		fmt.Fprintf(&s, "%s %s %d\n", name, sha, len(b.store.Statuses(sha)))
	}
	for _, p := range b.store.Pulls(func(scmtest.Pull) bool { return true }) {
		fmt.Fprintf(&s, "%d %s %s\n", p.Number, p.State, p.Title)
	}
	fmt.Fprintln(&s, len(b.store.Runs()))
	return s.String()
}

// job is the environment of a job of the forge's CI that a comment, a chat or a
// dispatch has started.
func (b *bench) job(command string) {
	b.t.Helper()
	const line = "/promote todo-api to next"
	issue, err := b.store.OpenIssue("Release", "mei")
	b.check(err)
	c, err := b.store.Say(issue, "mei", line)
	b.check(err)
	if b.gitlab != nil {
		b.gitlab.Job = gitlabtest.Job{User: "mei", Source: "chat"}
		for key, value := range map[string]string{"GITLAB_CI": "true", "CI_PROJECT_PATH": gitlabtest.Project, "CI_JOB_TOKEN": gitlabtest.JobToken, "CHAT_INPUT": line} {
			b.setenv(key, value)
		}
		if command == afterAsking { // serve tells of a comment
			b.gitlab.Job = gitlabtest.Job{User: "tomas", Source: "api"}
			b.setenv("TAGBOAT_COMMENT", fmt.Sprintf("%d issue %d %s %s", c.ID, issue, gitlabtest.Project, chatops.LineHash(line)))
		}
		return
	}
	event := map[string]any{
		"action": "created", "issue": map[string]any{"number": issue}, "repository": map[string]any{"full_name": "acme/config"},
		"comment": map[string]any{"id": c.ID, "body": line, "user": map[string]any{"login": "mei", "type": "User"}},
	}
	name, run := "issue_comment", scmtest.Run{ID: 1}
	if command == afterAsking {
		name, event = "workflow_dispatch", map[string]any{"inputs": map[string]any{"request": "abcdefgh", "command": line}}
		run = b.store.StartRun(scmtest.Run{Workflow: workflowFile, Branch: "main", Event: name, Actor: "mei", Title: "tagboat"})
		b.check(b.store.SetRun(run.ID, "running", ""))
	}
	text, err := json.Marshal(event)
	b.check(err)
	file := filepath.Join(b.t.TempDir(), "event.json")
	b.check(os.WriteFile(file, text, 0o600))
	server, _, _ := strings.Cut(b.env["REPO"], "/acme/")
	for key, value := range map[string]string{
		"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": fmt.Sprint(b.env["FORGE"] == scm.Gitea), "GITHUB_REPOSITORY": "acme/config", "GITHUB_SERVER_URL": server,
		"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": file, "GITHUB_RUN_ID": fmt.Sprint(run.ID),
	} {
		b.setenv(key, value)
	}
}

// serve gives a Slack command to tagboat serve. The code is 0 where it was taken.
func (b *bench) serve(line string) (code int, said string) {
	b.t.Helper()
	b.setenv(slackSecret, hookSecret)
	ctx, stop := context.WithCancel(context.Background())
	log, ended := &listening{ready: make(chan string, 1)}, make(chan int, 1)
	go func() {
		args := []string{"tagboat", "serve", "--repo", b.env["REPO"], "--forge", b.env["FORGE"], "--listen", "127.0.0.1:0"}
		ended <- run(ctx, args, io.Discard, log, func(name string) string { return b.env[name] })
	}()
	defer func() { stop(); <-ended }()
	var at string
	select {
	case at = <-log.ready:
	case code := <-ended:
		ended <- code
		return code, log.text()
	}
	command, text, _ := strings.Cut(line, " ")
	form := url.Values{"team_id": {"T1"}, "user_id": {"U1"}, "command": {command}, "text": {text}, "response_url": {"https://hooks.slack.com/x"}}.Encode()
	stamp := fmt.Sprint(time.Now().Unix())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+"/slack/command", strings.NewReader(form))
	b.check(err)
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", "v0="+mac("v0:"+stamp+":"+form))
	resp, err := http.DefaultClient.Do(req)
	b.check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	b.check(err)
	if !strings.Contains(string(answer), "Accepted") {
		return 1, string(answer) + log.text()
	}
	return 0, string(answer)
}

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
func holdNeeds(t *testing.T, forge string, where map[string]string, serve func(*bench, granted)) {
	for _, n := range needs(forge) {
		for _, command := range n.commands {
			t.Run(command, func(t *testing.T) {
				try := func(g granted) (code int, said string, wrote bool) {
					b := newBench(t)
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
	holdNeeds(t, scm.GitHub, map[string]string{"right": "the App's settings (Permissions)"}, func(b *bench, g granted) {
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
	holdNeeds(t, scm.GitLab, where, func(b *bench, g granted) {
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
	holdNeeds(t, scm.Gitea, where, func(b *bench, g granted) {
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
		b := newBench(t)
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
