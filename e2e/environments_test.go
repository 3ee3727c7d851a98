//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const canary, rest = "tagboat/production.canary/todo-api", "tagboat/production.rest/todo-api"

// house is a config repository with rules on a real Gitea. The bot and mei are in
// team release, which may promote; mei alone may override; li, who is in no team,
// reviews.
type house struct {
	*repository
	registry     string
	bot, mei, li forge
	digests      map[string]string // by tag
}

// rules are what changes in tagboat.yaml on the way.
type rules struct {
	soak      string
	approvals int
	freeze    string
}

const houseRules = `version: 1
apps:
  todo-api:
    images:
      - repository: %s/acme/todo-api
environments:
  - name: dev
    path: apps/{app}/overlays/dev
    branch: dev
    merge: direct
  - name: staging
    from: [dev]
    path: apps/{app}/overlays/staging
    merge: auto
  - name: production
    from: [staging]
    rings:
      - {name: canary, paths: ["apps/{app}/overlays/production/eu-west"]}
      - {name: rest, paths: ["apps/{app}/overlays/production/*"]}
    gates: {soak: %s, checks: ["argocd/*"], platforms: [linux/amd64, linux/arm64], approvals: %d}
    freeze: [%s]
    promoters: ["team:release"]
    overriders: ["user:mei"]
`

func (h *house) yaml(r rules) string {
	return fmt.Sprintf(houseRules, h.registry, r.soak, r.approvals, r.freeze)
}

// rule is mei's commit to the protected branch that sets other rules.
func (h *house) rule(t *testing.T, r rules) {
	t.Helper()
	h.write(t, "main", "tagboat.yaml", h.yaml(r), "Set other rules")
}

// soak lets a second pass by the forge's clock, which tells whole ones.
func soak() { time.Sleep(2100 * time.Millisecond) }

// window is a daily freeze of one hour that begins some time from now.
func window(from time.Duration) string {
	begins := time.Now().UTC().Add(from)
	return fmt.Sprintf(`{cron: "%d %d * * *", duration: 1h, reason: the quarter ends}`, begins.Minute(), begins.Hour())
}

func buildHouse(t *testing.T, g *gitea, registry string) *house {
	t.Helper()
	h := &house{registry: registry, digests: map[string]string{}}
	for n, tag := range []string{"v1", "v2", "v3"} {
		h.digests[tag] = push(t, h.image(tag), time.Date(2026, 3, 1+n, 0, 0, 0, 0, time.UTC))
	}
	files := map[string]string{
		"tagboat.yaml":                          h.yaml(rules{"24h", 2, window(3 * time.Hour)}),
		"apps/todo-api/base/kustomization.yaml": "resources: [deployment.yaml]\n",
		"apps/todo-api/base/deployment.yaml":    fmt.Sprintf(deployment, "todo-api"),
		houseOverlay("staging"):                 h.kustomization("../../base", "v1"),
		houseOverlay("dev"):                     h.kustomization("../../base", "v1"),
		houseOverlay("production/eu-west"):      h.kustomization("../../../base", "v1"),
		houseOverlay("production/us-east"):      h.kustomization("../../../base", "v1"),
	}
	if err := g.AddUser(t.Context(), "li"); err != nil {
		t.Fatal(err)
	}
	g.team(t, "release", "tagboat-bot", "mei")
	h.repository = g.repository(t, "house", files)
	h.must(t, "POST", "/branches", map[string]any{"new_branch_name": "dev", "old_branch_name": "main"}, nil)
	h.must(t, "PUT", "/collaborators/li", map[string]any{"permission": "write"}, nil)
	h.protect(t)
	scopes := []string{"write:repository", "write:issue", "read:user", "read:organization"}
	h.bot, h.mei, h.li = h.as(g.token(t, "tagboat-bot", scopes...)), h.as(g.token(t, "mei", scopes...)), h.as(g.token(t, "li", scopes...))
	return h
}

func (h *house) image(tag string) string { return h.registry + "/acme/todo-api:" + tag }

func houseOverlay(place string) string {
	return "apps/todo-api/overlays/" + place + "/kustomization.yaml"
}

func (h *house) kustomization(base, tag string) string {
	return fmt.Sprintf("resources: [%s]\nimages:\n  - name: todo-api\n    newName: %s/acme/todo-api\n    newTag: %s\n    digest: %s\n", base, h.registry, tag, h.digests[tag])
}

// TestEnvironments tells the way of an image under a team's rules, on a Gitea that
// holds them at the merge: tagboat/policy is required there. Then it promotes to
// what is no directory of the config repository's default branch.
func TestEnvironments(t *testing.T) {
	g, registry := startGitea(t), startRegistry(t)
	t.Run("story", func(t *testing.T) { buildHouse(t, g, registry).story(t) })
	t.Run("places", func(t *testing.T) { findPlaces(t, g, registry).story(t) })
}

// chapter is a part of a story. Each begins where the one before ended.
type chapter struct {
	name string
	tell func(*testing.T)
}

func tell(t *testing.T, chapters []chapter) {
	t.Helper()
	for _, c := range chapters {
		if !t.Run(c.name, c.tell) {
			return
		}
	}
}

func (h *house) story(t *testing.T) {
	tell(t, []chapter{
		{"a build goes to dev without a pull request", h.toDev},
		{"Gitea merges to staging when policy and approval are there", h.toStaging},
		{"production waits for its gates", h.gates},
		{"policy is red, pending and green at the merge", h.policyHolds},
		{"a forged head branch is red", h.forged},
		{"the next ring, in a freeze that mei overrides", h.overridden},
		{"what was rolled back is held", h.rolledBack},
	})
}

func (h *house) toDev(t *testing.T) {
	main := h.branchHead(t, "main")
	done := h.bot.promote(t, "--to", "dev", h.image("v2")).want(t, 0, "committed").Promotions[0]
	if head := h.branchHead(t, "dev"); done.Commit != head {
		t.Errorf("committed %s, dev is at %s", done.Commit, head)
	}
	if diff := cmp.Diff(h.kustomization("../../base", "v2"), h.file(t, "dev", houseOverlay("dev"))); diff != "" {
		t.Errorf("the file on dev (-want +got):\n%s", diff)
	}
	h.bot.promote(t, "--to", "dev", h.image("v2")).want(t, 0, "up-to-date")
	if h.branchHead(t, "main") != main || len(h.bot.verify(t)) != 0 {
		t.Error("a direct promotion to dev changed main or opened a pull request")
	}
}

func (h *house) toStaging(t *testing.T) {
	opened := h.promote(t, h.bot, "staging", "--from", "dev").want(t, 0, "opened").Promotions[0].PullRequest
	h.refusesMerge(t, opened.Number, "Not all required status checks successful")
	h.approve(t, "li", opened.Number)
	h.refusesMerge(t, opened.Number, "Not all required status checks successful")
	h.wantVerified(t, opened.Number, "success: diff, order")
	merged := h.waitMerged(t, opened.Number)
	if diff := cmp.Diff(h.kustomization("../../base", "v2"), h.file(t, "main", houseOverlay("staging"))); diff != "" {
		t.Errorf("what Gitea merged by itself (-want +got):\n%s", diff)
	}
	shoot(t, merged.URL, "4-staging-merged")
	soak()
}

func (h *house) gates(t *testing.T) {
	staging := h.pullsFrom(t, "all", "tagboat/staging/todo-api")[0]
	since := staging.MergedAt.UTC().Format("2006-01-02 15:04 UTC")
	h.blocked(t, h.bot, map[string]string{
		"soak":           "pending: in staging since " + since + ", 24h are asked for",
		"check argocd/*": "pending: no status of that name",
		"approvals":      fmt.Sprintf("pending: 1 of 2 approvals of pull request #%d: li", staging.Number),
	})
	h.rule(t, rules{"1s", 1, window(3 * time.Hour)})
	h.status(t, "argocd/todo-staging", "failure", "CrashLoopBackOff")
	h.blocked(t, h.bot, map[string]string{"check argocd/*": "failed: argocd/todo-staging is failure"})
	h.status(t, "argocd/todo-staging", "success", "Healthy")
	if r := h.production(t, h.li); r.exit != 1 || !strings.Contains(r.Promotions[0].Error.Message, "must be a member of organisation acme") {
		t.Errorf("li, who is in no team, promoted: exit %d, %+v", r.exit, r.Promotions[0])
	}
	opened := h.production(t, h.bot).want(t, 0, "opened").Promotions[0]
	if opened.Ring != "canary" || opened.PullRequest.HeadBranch != canary {
		t.Errorf("opened %s from %s, want ring canary first", opened.Ring, opened.PullRequest.HeadBranch)
	}
	for _, g := range opened.Gates {
		if g.Status != "passed" {
			t.Errorf("opened with gate %+v", g)
		}
	}
}

const green = "success: diff, freeze, promoters, order, soak, check argocd/*, approvals, platforms"

func (h *house) policyHolds(t *testing.T) {
	number := h.open(t, canary).Number
	h.refusesMerge(t, number, "Not all required status checks successful")
	h.wantVerified(t, number, green)
	h.refusesMerge(t, number, "Does not have enough approvals")
	h.approve(t, "li", number)

	h.bot.must(t, "hold", "production", "--reason", "incident 12")
	h.wantVerified(t, number, "failure: hold: production is held by tagboat-bot since ")
	if again := h.bot.verify(t); len(again) != 1 || again[0].Posted {
		t.Errorf("verified again: %+v, want nothing posted", again)
	}
	h.refusesMerge(t, number, "Not all required status checks successful")
	shoot(t, h.open(t, canary).URL, "5-held")
	still := h.production(t, h.bot).want(t, 0, "unchanged").Promotions[0]
	if !strings.Contains(strings.Join(still.Warnings, "\n"), "production is held by tagboat-bot") {
		t.Errorf("warnings %q do not say who holds it", still.Warnings)
	}
	h.bot.must(t, "release", "production", "--reason", "over")

	h.rule(t, rules{"1s", 1, window(-10 * time.Minute)})
	h.wantVerified(t, number, "pending: freeze: frozen from ")
	h.refusesMerge(t, number, "Not all required status checks successful")
	h.rule(t, rules{"1s", 1, window(3 * time.Hour)})

	before := h.open(t, canary).Head.SHA
	h.updateBranch(t, number)
	waitFor(t, "the updated branch", time.Minute, func() bool { return h.open(t, canary).Head.SHA != before })
	h.refusesMerge(t, number, "Not all required status checks successful")
	h.wantVerified(t, number, green)
	shoot(t, h.open(t, canary).URL, "6-green")
}

// forged is what mei does to a branch that is nobody's but Tagboat's. Before 1.26 her
// commits stay in its history, so that li, who approves it, must have none there.
func (h *house) forged(t *testing.T) {
	number := h.open(t, canary).Number
	const more = "apps/todo-api/base/deployment.yaml"
	h.write(t, canary, more, strings.Replace(h.file(t, canary, more), "8080", "9090", 1), "Another port")
	h.wantVerified(t, number, "failure: diff: it changes something else than its trailers say: commits of mei")
	h.refusesMerge(t, number, "Not all required status checks successful")
	if r := h.production(t, h.bot); r.exit != 1 || r.Promotions[0].Error.Code != "foreign-commits" {
		t.Errorf("exit %d, %+v, want foreign-commits", r.exit, r.Promotions[0].Error)
	}
	if forced := h.production(t, h.bot, "--force"); h.gitea.AtLeast(26) {
		forced.want(t, 0, "updated")
	} else {
		h.notForced(t, forced, more)
	}
	h.wantVerified(t, number, green)

	// in Tagboat's own words, with a digest that staging does not run
	own := h.message(t, canary)
	other := strings.NewReplacer(h.digests["v2"], h.digests["v3"], "v2", "v3")
	h.write(t, canary, houseOverlay("production/eu-west"), other.Replace(h.file(t, canary, houseOverlay("production/eu-west"))), other.Replace(own))
	h.wantVerified(t, number, "failure: order: staging runs ")
	h.refusesMerge(t, number, "Not all required status checks successful")
	h.production(t, h.bot).want(t, 0, "updated")
	h.wantVerified(t, number, green)
	h.approve(t, "li", number)
	h.merge(t, number)
	if diff := cmp.Diff(h.kustomization("../../../base", "v2"), h.file(t, "main", houseOverlay("production/eu-west"))); diff != "" {
		t.Errorf("what was merged (-want +got):\n%s", diff)
	}
}

// notForced: before 1.26 mei's commit stays, and she does what the error says.
func (h *house) notForced(t *testing.T, r result, file string) {
	t.Helper()
	if r.exit != 1 || r.Promotions[0].Error.Code != "unsupported" || !strings.Contains(r.Promotions[0].Error.Message, "take back on it what somebody has committed") {
		t.Fatalf("exit %d, %+v, want unsupported and what to do", r.exit, r.Promotions[0].Error)
	}
	if got := h.file(t, canary, file); !strings.Contains(got, "9090") {
		t.Fatalf("mei's commit is gone:\n%s", got)
	}
	h.write(t, canary, file, h.file(t, "main", file), "Take the port back")
	h.production(t, h.bot).want(t, 0, "unchanged")
}

func (h *house) overridden(t *testing.T) {
	soak()
	h.status(t, "argocd/todo-canary", "success", "Healthy")
	h.rule(t, rules{"1s", 1, window(-10 * time.Minute)})
	h.blocked(t, h.bot, map[string]string{"freeze": "pending: frozen from "})
	refused := h.production(t, h.bot, "--override", "in a hurry").want(t, 3, "blocked").Promotions[0]
	if !strings.Contains(strings.Join(refused.Warnings, "\n"), "tagboat-bot is not among the overriders of production: user:mei") {
		t.Errorf("warnings %q", refused.Warnings)
	}
	opened := h.production(t, h.mei, "--override", "customers cannot log in").want(t, 0, "opened").Promotions[0]
	p := h.open(t, rest)
	if opened.Ring != "rest" || !strings.Contains(p.Body, "by `mei`: `customers cannot log in`") {
		t.Errorf("ring %s, and the pull request does not say who passed the freeze and why:\n%s", opened.Ring, p.Body)
	}
	h.wantVerified(t, p.Number, "success: diff, freeze (overridden), promoters, order, soak, check argocd/*, approvals, platforms, override")
	h.approve(t, "li", p.Number)
	shoot(t, p.URL, "7-overridden")
	h.merge(t, p.Number)
}

func (h *house) rolledBack(t *testing.T) {
	h.bot.must(t, "rollback", "--env", "production", "--app", "todo-api", "--ring", "rest", "--reason", "errors since v2")
	p := h.open(t, rest)
	if !strings.HasPrefix(p.Title, "Roll back todo-api in production.rest: v2 → v1") {
		t.Errorf("title %s", p.Title)
	}
	h.wantVerified(t, p.Number, "success: diff, history, promoters, platforms")
	shoot(t, p.URL, "8-rollback")
	h.approve(t, "li", p.Number)
	h.merge(t, p.Number)
	if diff := cmp.Diff(h.kustomization("../../../base", "v1"), h.file(t, "main", houseOverlay("production/us-east"))); diff != "" {
		t.Errorf("what was rolled back (-want +got):\n%s", diff)
	}
	h.production(t, h.bot).want(t, 0, "declined")
	h.blocked(t, h.bot, map[string]string{
		"freeze": "pending: frozen from ",
		"hold":   "failed: todo-api in production is held by tagboat-bot since ",
	}, "--again")
	shoot(t, h.url()+"/src/branch/tagboat-holds/holds", "9-holds")
	history := h.bot.must(t, "history", "--environment", "production", "--ring", "rest", "--app", "todo-api")
	for _, want := range []string{"errors since v2", "customers cannot log in (mei)", h.digests["v1"], h.digests["v2"], p.URL} {
		if !strings.Contains(history, want) {
			t.Errorf("the history does not tell %q:\n%s", want, history)
		}
	}
}

// promote promotes todo-api from one environment to another.
func (h *house) promote(t *testing.T, as forge, to string, args ...string) result {
	t.Helper()
	return as.promote(t, append([]string{"--to", to, "--app", "todo-api"}, args...)...)
}

func (h *house) production(t *testing.T, as forge, args ...string) result {
	t.Helper()
	return h.promote(t, as, "production", append([]string{"--from", "staging"}, args...)...)
}

// blocked demands that production refuses, for these reasons alone, and that nothing
// was written.
func (h *house) blocked(t *testing.T, as forge, shut map[string]string, args ...string) {
	t.Helper()
	before := h.branches(t)
	got := map[string]string{}
	for _, g := range h.production(t, as, args...).want(t, 3, "blocked").Promotions[0].Gates {
		if g.Status != "passed" {
			got[g.Name] = g.Status + ": " + g.Evidence
			if want := shut[g.Name]; want != "" && strings.HasPrefix(got[g.Name], want) {
				got[g.Name] = want
			}
		}
	}
	if diff := cmp.Diff(shut, got); diff != "" {
		t.Errorf("shut gates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, h.branches(t)); diff != "" {
		t.Errorf("a blocked promotion changed branches:\n%s", diff)
	}
}

// wantVerified lets the bot verify, and demands what Gitea shows of the one open pull
// request: the status of its head commit begins so, and is new.
func (h *house) wantVerified(t *testing.T, number int, status string) {
	t.Helper()
	found := h.bot.verify(t)
	if len(found) != 1 || found[0].PullRequest != number || !found[0].Posted || found[0].Error != nil {
		t.Fatalf("verified %+v, want %d alone, posted", found, number)
	}
	var p pull
	h.must(t, "GET", fmt.Sprintf("/pulls/%d", number), nil, &p)
	if got := h.policyAt(t, p.Head.SHA); !strings.HasPrefix(got, status) {
		t.Errorf("%s of %d is %q, want %q", policy, number, got, status)
	}
}

// open is the one open pull request of a head branch.
func (h *house) open(t *testing.T, branch string) pull {
	t.Helper()
	list := h.pullsFrom(t, "open", branch)
	if len(list) != 1 {
		t.Fatalf("%d open pull requests from %s, want 1", len(list), branch)
	}
	return list[0]
}
