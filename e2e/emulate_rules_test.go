//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const githubRules = `version: 1
apps:
  todo-api: {images: [{repository: %s/acme/todo-api}]}
environments:
  - {name: dev, path: "apps/{app}/overlays/dev", merge: direct}
  - {name: staging, from: [dev], path: "apps/{app}/overlays/staging"}
  - name: production
    from: [staging]
    path: apps/{app}/overlays/production
    gates: {soak: 1s, checks: ["argocd/*"], approvals: 1}
    promoters: ["user:tagboat-bot"]
`

// market is a config repository with rules on GitHub's emulator.
type market struct {
	*stage
	github      *github
	gaps        *gaps
	image       string
	digest, old string // of v1.4.0, which is promoted, and of v1.3.0
}

// TestGitHubEnvironments tells of the way of an image what the emulator can, check
// runs and reviews among it.
func TestGitHubEnvironments(t *testing.T) {
	m := &market{stage: &stage{registry: startRegistry(t)}}
	m.github, m.gaps = startGitHub(t).fillGaps(t)
	_, m.old = m.build(t, "todo-api", 3)
	m.image, m.digest = m.build(t, "todo-api", 4)
	m.github.write(t, "main", "tagboat.yaml", fmt.Sprintf(githubRules, m.registry), "Add the rules")
	m.github.write(t, "main", "apps/todo-api/base/kustomization.yaml", "resources:\n  - deployment.yaml\n", "Add the base")
	m.github.write(t, "main", "apps/todo-api/base/deployment.yaml", fmt.Sprintf(deployment, "todo-api"), "Add the deployment")
	for _, environment := range []string{"dev", "staging", "production"} {
		m.github.write(t, "main", houseOverlay(environment), m.overlay("todo-api", "v1.3.0", m.old), "Add "+environment)
	}
	tell(t, []chapter{
		{"a build goes to dev without a pull request", m.toDev},
		{"staging is reviewed", m.toStaging},
		{"production waits for its gates", m.gates},
		{"a hold turns the policy red", m.held},
	})
}

// wantFile demands that an environment runs v1.4.0 on main.
func (m *market) wantFile(t *testing.T, environment string) {
	t.Helper()
	if diff := cmp.Diff(m.overlay("todo-api", "v1.4.0", m.digest), m.github.file(t, "main", houseOverlay(environment))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", environment, diff)
	}
}

func (m *market) toDev(t *testing.T) {
	done := m.github.forge().promote(t, "--to", "dev", m.image).want(t, 0, "committed").Promotions[0]
	if head := m.github.head(t, "main"); head != done.Commit || len(m.github.pulls(t, "all")) > 0 {
		t.Errorf("committed %s, main is at %s", done.Commit, head)
	}
	m.wantFile(t, "dev")
	m.github.forge().promote(t, "--to", "dev", m.image).want(t, 0, "up-to-date")
}

func (m *market) toStaging(t *testing.T) {
	opened := m.github.forge().promote(t, "--from", "dev", "--to", "staging", "--all").want(t, 0, "opened").Promotions[0]
	m.wantPolicy(t, "tagboat/staging/todo-api", "success: diff, order")
	at := fmt.Sprintf("/pulls/%d", opened.PullRequest.Number)
	m.github.call(t, "POST", at+"/reviews", map[string]any{"event": "APPROVE"}, nil)
	m.github.call(t, "PUT", at+"/merge", map[string]any{}, nil)
	m.wantFile(t, "staging")
}

func (m *market) gates(t *testing.T) {
	soak()
	m.blocked(t, "check argocd/*: no status of that name since the digest is there")
	run := map[string]any{"name": "argocd/todo", "head_sha": m.github.head(t, "main"), "status": "in_progress"}
	m.github.call(t, "POST", "/check-runs", run, nil)
	m.blocked(t, "check argocd/*: argocd/todo is in_progress at ")
	run["status"], run["conclusion"] = "completed", "failure"
	m.github.call(t, "POST", "/check-runs", run, nil)
	m.blocked(t, "check argocd/*: argocd/todo is failure at ")
	run["conclusion"] = "success"
	m.github.call(t, "POST", "/check-runs", run, nil)
	opened := m.production(t).want(t, 0, "opened").Promotions[0]
	var names []string
	for _, g := range opened.Gates {
		names = append(names, g.Name+" "+g.Status)
	}
	if diff := cmp.Diff([]string{"promoters passed", "order passed", "soak passed", "check argocd/* passed", "approvals passed"}, names); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	m.wantPolicy(t, opened.PullRequest.HeadBranch, "success: diff, promoters, order, soak, check argocd/*, approvals")
}

func (m *market) held(t *testing.T) {
	const branch = "tagboat/production/todo-api"
	m.github.forge().must(t, "hold", "production", "--reason", "incident 12")
	m.wantPolicy(t, branch, "failure: hold: production is held by tagboat-bot since ")
	still := m.production(t).want(t, 0, "unchanged").Promotions[0]
	if !strings.Contains(strings.Join(still.Warnings, "\n"), "production is held by tagboat-bot") {
		t.Errorf("warnings %q do not say who holds it", still.Warnings)
	}
	m.github.forge().must(t, "release", "production")
	m.wantPolicy(t, branch, "success: ")
}

func (m *market) production(t *testing.T) result {
	t.Helper()
	return m.github.forge().promote(t, "--from", "staging", "--to", "production", "--all")
}

func (m *market) blocked(t *testing.T, why string) {
	t.Helper()
	if r := m.production(t).want(t, 3, "blocked").Promotions[0]; !strings.HasPrefix(r.Reason, why) {
		t.Errorf("blocked: %s, want %s", r.Reason, why)
	}
}

// wantPolicy lets verify run, and demands how the status of a branch begins.
func (m *market) wantPolicy(t *testing.T, branch, status string) {
	t.Helper()
	m.github.forge().verify(t)
	if got := m.gaps.policyAt(m.github.head(t, branch)); !strings.HasPrefix(got, status) {
		t.Errorf("%s of %s is %q, want %q", policy, branch, got, status)
	}
}

func (g *github) head(t *testing.T, branch string) string {
	t.Helper()
	var ref struct{ Object struct{ SHA string } }
	g.call(t, "GET", "/git/ref/heads/"+branch, nil, &ref)
	return ref.Object.SHA
}
