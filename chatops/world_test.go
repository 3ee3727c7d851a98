package chatops_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tagboat/chatops"
	"tagboat/promote"
	"tagboat/registry"
	"tagboat/registry/registrytest"
	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// forge is what every forge's driver can do.
type forge interface {
	chatops.Forge
	scm.Conversation
	scm.Job
}

// world is a config repository on a forge, and a registry.
type world struct {
	*testing.T
	store  *scmtest.Store
	images *registrytest.Registry
	forge  forge
	bot    *chatops.Bot
	desk   *chatops.Desk
	name   string // of the repository, as events say it
	roles  map[string]string

	v1, v2, v3 string // digests
	issue      int
}

func forges() map[string]func(*world) {
	return map[string]func(*world){"github": onGitHub, "gitlab": onGitLab, "gitea": onGitea}
}

func newWorld(t *testing.T, on func(*world)) *world {
	w := &world{T: t, images: registrytest.New(), name: "acme/config", roles: map[string]string{"write": "write", "read": "read", "none": "none"}}
	t.Cleanup(w.images.Close)
	w.v1, w.v2, w.v3 = w.push("v1"), w.push("v2"), w.push("v3")
	workflow := "on:\n  workflow_dispatch:\n    inputs: {request: {}, command: {}, image: {}, to: {}, user: {}, reply: {}, comment: {}}\n"
	w.store = scmtest.NewStore("main", map[string]string{
		"tagboat.yaml": strings.ReplaceAll(`
version: 1
apps:
  todo-api: {images: [{repository: HOST/acme/todo-api}]}
  pair: {images: [{repository: HOST/acme/a}, {repository: HOST/acme/b}], environments: [staging, production]}
environments:
  - {name: staging, path: "{app}/staging"}
  - {name: guarded, path: "{app}/guarded", from: [staging], promoters: ["user:mei"]}
  - {name: production, path: "{app}/production", from: [staging]}
chat:
  slack: {T1/U1: mei, U2: li}
`, "HOST", w.images.Host()),
		"todo-api/staging/kustomization.yaml":    w.overlay("v2", w.v2),
		"todo-api/guarded/kustomization.yaml":    w.overlay("v1", w.v1),
		"todo-api/production/kustomization.yaml": w.overlay("v1", w.v1),
		"pair/staging/kustomization.yaml":        w.overlay("v1", w.v1),
		"pair/production/kustomization.yaml":     w.overlay("v1", w.v1),
		"todo-api/base/kustomization.yaml":       "resources: [app.yaml]\n",
		"todo-api/base/app.yaml":                 "apiVersion: v1\nkind: Pod\nmetadata: {name: todo-api}\nspec: {containers: [{name: main, image: todo-api}]}\n",
		".github/workflows/" + "tagboat.yml":     workflow,
		".gitlab-ci.yml":                         "spec:\n  inputs: {request: {default: ''}, command: {default: ''}, image: {default: ''}, to: {default: ''}, user: {default: ''}, reply: {default: ''}, comment: {default: ''}}\n---\na: {script: [b]}\n",
	})
	on(w)
	client, err := registry.New(registry.Options{Env: func(string) string { return "" }, ConfigDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w.bot = &chatops.Bot{
		Promoter: &promote.Promoter{
			Registry: client, Open: func(context.Context, string, string) (scm.Repository, error) { return w.forge, nil },
			Sleep: func(context.Context, time.Duration) error { return nil },
		},
		Request: promote.Request{Repository: "acme/config", Job: promote.Job{RunURL: "https://ci.example/run/1"}},
	}
	w.desk = &chatops.Desk{Repository: w.forge, Workflow: "tagboat.yml"}
	w.grant("mei", "write")
	w.grant("ann", "write")
	w.grant("li", "read")
	if w.issue, err = w.store.OpenIssue("Release", "mei"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) grant(login, permission string) { w.store.SetPermission(login, w.roles[permission]) }

func (w *world) push(tag string) (digest string) {
	w.Helper()
	digest, err := w.images.PushImage("acme/todo-api:"+tag, registrytest.ImageSpec{Platforms: []string{"linux/amd64"}, Content: tag})
	if err != nil {
		w.Fatal(err)
	}
	return digest
}

func (w *world) overlay(tag, digest string) string {
	return "resources: [../base]\nimages:\n- name: todo-api\n  newName: " + w.images.Host() + "/acme/todo-api\n  newTag: " + tag + "\n  digest: " + digest + "\n"
}

// stage makes staging run another image.
func (w *world) stage(tag, digest string) {
	w.Helper()
	if _, err := w.store.Push("main", "ann", "Stage "+tag, map[string]string{"todo-api/staging/kustomization.yaml": w.overlay(tag, digest)}); err != nil {
		w.Fatal(err)
	}
}

// atOnce waits for nothing: the pace of writes is the drivers' own test.
func atOnce() scm.TransportOptions {
	return scm.TransportOptions{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

func onGitHub(w *world) {
	fake := githubtest.New(w, w.store, githubtest.Options{})
	repo, err := github.New(github.Options{BaseURL: fake.URL(), Owner: fake.Owner(), Name: fake.Name(), Token: fake.Token(), Transport: atOnce()})
	if err != nil {
		w.Fatal(err)
	}
	w.forge = repo
}

func onGitea(w *world) {
	fake := httptest.NewServer(giteatest.New(giteatest.Options{Store: w.store, Report: w.Errorf}))
	w.Cleanup(fake.Close)
	w.forge = giteaAt(w.T, fake.URL)
}

func giteaAt(t *testing.T, url string) forge {
	t.Helper()
	repo, err := gitea.New(gitea.Options{BaseURL: url, Owner: "acme", Name: "config", Token: "token", HTTP: atOnce()})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func onGitLab(w *world) {
	fake := gitlabtest.New(w, w.store)
	url, stop := fake.Start()
	w.Cleanup(stop)
	repo, err := gitlab.New(gitlab.Options{BaseURL: url, Project: gitlabtest.Project, Token: gitlabtest.Token, Transport: atOnce()})
	if err != nil {
		w.Fatal(err)
	}
	w.forge, w.name = repo, gitlabtest.Project
	w.roles = map[string]string{"write": "30", "read": "20", "none": "0"}
}

// say comments, and gives the event that the forge sends of it.
func (w *world) say(author, text string) chatops.Event {
	w.Helper()
	c, err := w.store.Say(w.issue, author, text)
	if err != nil {
		w.Fatal(err)
	}
	at := chatops.CommentAt{Repository: w.name, CommentRef: scm.CommentRef{ID: int64(c.ID), Number: w.issue}}
	return chatops.Event{CommentAt: at, Author: author, Line: chatops.FirstLine(text)}
}

func teller() chatops.Teller {
	return chatops.Teller{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }, RunURL: "https://ci.example/run/1"}
}

func (w *world) answer(e chatops.Event) (chatops.Answer, error) {
	return w.bot.Comment(w.Context(), w.forge, e, teller())
}

// want answers a comment and demands the outcome's word.
func (w *world) want(word string, e chatops.Event) chatops.Answer {
	w.Helper()
	a, err := w.answer(e)
	if err != nil || a.Word() != word {
		w.Fatalf("%s: %s (%v), %v; want %s", e.Line, a.Word(), errors.Join(append(a.Errors, a.Err)...), err, word)
	}
	return a
}

// replies are the bot's, with the reactions on a comment.
func (w *world) replies(to chatops.Event) (bodies, reactions []string) {
	w.Helper()
	thread, _, err := w.store.Thread(w.issue)
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range thread {
		if scm.IsReply(c.Body, to.ID) {
			bodies = append(bodies, c.Body)
		}
		if int64(c.ID) == to.ID {
			for _, r := range c.Reactions {
				reactions = append(reactions, r.Name)
			}
		}
	}
	return bodies, reactions
}

func (w *world) pulls() []scmtest.Pull {
	return w.store.Pulls(func(p scmtest.Pull) bool { return p.State == "open" })
}
