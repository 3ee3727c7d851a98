//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// places is a config repository whose environments are in different places, each a
// target of another kind: dev a Component in a directory, qa a Flux Kustomization on
// a branch, production an Argo CD Application in a private repository of another
// organisation, which another user's token alone can see.
type places struct {
	*repository
	live     *repository
	registry string
	digest   string // of v2, which is promoted
	old      string // of v1
	bot      forge  // with a token for each repository
	alone    forge  // with the config repository's token
}

const placesRules = `version: 1
apps:
  todo-api:
    images: [{repository: %[1]s/acme/todo-api}]
defaults: {prove: required}
environments:
  - name: dev
    path: components/{app}
    prove-with: ["overlays/{environment}"]
  - name: qa
    from: [dev]
    branch: qa
    path: clusters/{environment}/apps.yaml#{app}
  - name: production
    from: [qa]
    repository: %[2]s/ops/live
    forge: gitea
    path: argocd/{app}.yaml
    gates: {soak: 1s, checks: ["flux/*"]}
`

// pinned is an entry of a Component or of Flux, behind its indentation.
func (p *places) pinned(indent, tag, digest string) string {
	return strings.ReplaceAll(fmt.Sprintf("- name: todo-api\n  newName: %s/acme/todo-api\n  newTag: %s\n  digest: %s\n", p.registry, tag, digest), "\n", "\n"+indent)
}

func (p *places) component(tag, digest string) string {
	return "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages:\n" + p.pinned("", tag, digest)
}

func (p *places) flux(tag, digest string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: other}\nspec: {path: ./base, images: []}\n---\n" +
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: todo-api}\nspec:\n  path: ./base\n" +
		"  sourceRef: {kind: GitRepository, name: flux-system}\n  images:\n  " + p.pinned("  ", tag, digest) + "# the end\n"
}

func (p *places) argo(tag, digest string) string {
	return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: todo-api, namespace: argocd}\nspec:\n  source:\n"+
		"    repoURL: %s/ops/live.git\n    path: base\n    kustomize:\n      images:\n        - 'todo-api=%s/acme/todo-api:%s@%s'\n", p.gitea.URL, p.registry, tag, digest)
}

func findPlaces(t *testing.T, g *gitea, registry string) *places {
	t.Helper()
	p := &places{repository: &repository{gitea: g}, registry: registry}
	p.old = push(t, registry+"/acme/todo-api:v1", time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	p.digest = push(t, registry+"/acme/todo-api:v2", time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
	base := map[string]string{
		"base/kustomization.yaml": "resources: [deployment.yaml]\n",
		"base/deployment.yaml":    fmt.Sprintf(deployment, "todo-api"),
	}
	files := map[string]string{
		"tagboat.yaml":                           fmt.Sprintf(placesRules, registry, g.URL),
		"components/todo-api/kustomization.yaml": p.component("v1", p.old),
		"overlays/dev/kustomization.yaml":        "resources: [../../base]\ncomponents: [../../components/todo-api]\n",
		"clusters/qa/apps.yaml":                  p.flux("v1", p.old),
	}
	live := map[string]string{"argocd/todo-api.yaml": p.argo("v1", p.old)}
	for path, text := range base {
		files[path], live[path] = text, text
	}
	if err := g.AddUser(t.Context(), "ops-bot"); err != nil {
		t.Fatal(err)
	}
	p.repository = g.repository(t, "places", files)
	p.must(t, "POST", "/branches", map[string]any{"new_branch_name": "qa", "old_branch_name": "main"}, nil)
	g.must(t, "mei", "POST", "/orgs", map[string]any{"username": "ops"}, nil)
	p.live = g.repositoryOf(t, "ops", map[string]any{"name": "live", "private": true}, "ops-bot", live)
	p.alone = p.forge()
	host := strings.TrimPrefix(g.URL, "http://")
	tokens := fmt.Sprintf("%s/acme/places %s\n%s/ops/live %s\n", host, g.bot, host, g.token(t, "ops-bot", "write:repository", "write:issue", "read:user"))
	p.bot = forge{args: p.alone.args, env: []string{"TAGBOAT_TOKENS=" + tokens}}
	return p
}

func (p *places) story(t *testing.T) {
	tell(t, []chapter{
		{"a Component in a directory", func(t *testing.T) {
			p.arrive(t, p.repository, "main", "components/todo-api/kustomization.yaml", p.component, "--to", "dev", p.registry+"/acme/todo-api:v2")
		}},
		{"a Flux Kustomization on a branch", func(t *testing.T) {
			p.arrive(t, p.repository, "qa", "clusters/qa/apps.yaml", p.flux, "--from", "dev", "--to", "qa", "--all")
		}},
		{"an Argo CD Application in another repository", p.toLive},
	})
}

// toLive promotes where the config repository's own token sees nothing.
func (p *places) toLive(t *testing.T) {
	soak()
	args := []string{"--from", "qa", "--to", "production", "--all"}
	if r := p.alone.promote(t, args...); r.exit != 1 || !strings.Contains(r.Promotions[0].Error.Message, "ops/live") {
		t.Errorf("with a token that cannot see ops/live: exit %d, %+v", r.exit, r.Promotions[0].Error)
	}
	p.bot.promote(t, args...).want(t, 3, "blocked")
	p.must(t, "POST", "/statuses/"+p.branchHead(t, "qa"), map[string]any{"context": "flux/todo-api", "state": "success"}, nil)
	p.arrive(t, p.live, "main", "argocd/todo-api.yaml", p.argo, args...)
}

// arrive promotes v2 from v1 into a file of a branch, lets verify call it good in the
// repository where it is proposed, and merges it.
func (p *places) arrive(t *testing.T, to *repository, branch, path string, file func(tag, digest string) string, args ...string) {
	t.Helper()
	opened := p.bot.promote(t, args...).want(t, 0, "opened").Promotions[0]
	if opened.Proof.Status != "proven" || opened.PullRequest.BaseBranch != branch || !strings.HasPrefix(opened.PullRequest.URL, to.url()+"/") {
		t.Errorf("opened %+v, proof %+v; want it proven, into %s of %s", opened.PullRequest, opened.Proof, branch, to.name)
	}
	if found := p.bot.verify(t); len(found) != 1 || found[0].State != "success" || !found[0].Posted {
		t.Errorf("verified %+v, want success, posted", found)
	}
	if got := to.policyAt(t, to.branchHead(t, opened.PullRequest.HeadBranch)); !strings.HasPrefix(got, "success: diff") {
		t.Errorf("%s in %s is %q", policy, to.name, got)
	}
	if diff := cmp.Diff(file("v1", p.old), to.file(t, branch, path)); diff != "" {
		t.Errorf("before the merge (-want +got):\n%s", diff)
	}
	to.merge(t, opened.PullRequest.Number)
	if diff := cmp.Diff(file("v2", p.digest), to.file(t, branch, path)); diff != "" {
		t.Errorf("after the merge (-want +got):\n%s", diff)
	}
	p.bot.promote(t, args...).want(t, 0, "up-to-date")
}
