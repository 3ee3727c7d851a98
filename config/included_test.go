package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// strict is a root whose production has every rule.
const strict = `version: 1
include: [teams/*/tagboat.yaml]
apps:
  todo-api: {images: [{repository: acme/todo-api}], group: todo}
environments:
  - {name: dev, path: "apps/{app}/dev", merge: direct, prove: "off", copy: true}
  - {name: staging, path: "apps/{app}/staging"}
  - {name: qa, path: "apps/{app}/qa"}
  - name: production
    from: [staging, qa]
    path: apps/{app}/production
    merge: auto
    prove: auto
    prove-with: [clusters/all]
    gates: {soak: 24h, checks: [argocd/*], platforms: [linux/amd64], approvals: 2}
    freeze: [{cron: "0 18 * * FRI", duration: 60h}]
    promoters: [team:release, user:mei]
    overriders: [team:sre, user:mei]
    pull-request: {labels: [promotion], reviewers: [mei], title: "{app}"}
`

const shopApps = "version: 1\napps:\n  shop-api: {images: [{repository: acme/shop-api}]}\n"

// team loads strict with a team's file.
func team(content string) (*Config, error) {
	return Load(tree("tagboat.yaml", strict, "teams/shop/tagboat.yaml", content))
}

func TestIncludedTightens(t *testing.T) {
	c, err := team(shopApps + `environments:
  - name: production
    merge: review
    prove: required
    prove-with: [./clusters/eu]
    gates: {soak: 2d, checks: [smoke], platforms: [linux/arm64], approvals: 3}
    freeze: [{cron: "0 0 24 12 *", duration: 8d, reason: sale}]
    promoters: [user:mei]
    overriders: []
    pull-request: {labels: [shop], reviewers: [mei, ann], team-reviewers: [shop], assignees: [ann], draft: true}
`)
	if err != nil {
		t.Fatal(err)
	}
	root, err := c.Policy("todo-api", "production")
	if err != nil {
		t.Fatal(err)
	}
	want := root.clone()
	want.Merge, want.Prove = Review, ProveRequired
	want.ProveWith = []string{"clusters/all", "clusters/eu"}
	want.Gates = Gates{Soak: Duration(48 * time.Hour), Checks: []string{"argocd/*", "smoke"}, Platforms: []string{"linux/amd64", "linux/arm64"}, Approvals: 3}
	want.Freeze = append(want.Freeze, Window{Cron: "0 0 24 12 *", Duration: Duration(8 * 24 * time.Hour), Reason: "sale"})
	want.Promoters, want.Overriders = []string{"user:mei"}, []string{}
	want.PullRequest = PullRequest{
		Title: "{app}", Labels: []string{"promotion", "shop"}, Reviewers: []string{"mei", "ann"},
		TeamReviewers: []string{"shop"}, Assignees: []string{"ann"}, Draft: true,
	}
	got, err := c.Policy("shop-api", "production")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the team's app (-want +got)\n%s", diff)
	}
	if root.Merge != Auto || len(root.Gates.Checks) != 1 {
		t.Errorf("the root's app has the team's rules: %+v", root)
	}
	// What a team does not speak of is the root's.
	for _, environment := range []string{"dev", "staging"} {
		e, _ := c.Environment(environment)
		if got, err = c.Policy("shop-api", environment); err != nil || !cmp.Equal(got, e.Policy) {
			t.Errorf("%s: %v, %s", environment, err, cmp.Diff(e.Policy, got))
		}
	}
}

// TestIncludedSaysNothing: a team that names an environment and no rule changes
// nothing, whatever the rule.
func TestIncludedSaysNothing(t *testing.T) {
	c, err := team(shopApps + "environments: [{name: dev}, {name: production, gates: {soak: 24h}}]\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range c.Environments {
		if got, err := c.Policy("shop-api", e.Name); err != nil || !cmp.Equal(got, e.Policy) {
			t.Errorf("%s: %v\n%s", e.Name, err, cmp.Diff(e.Policy, got))
		}
	}
}

// TestIncludedRefuses has every loosening and every way out of the directory.
func TestIncludedRefuses(t *testing.T) {
	rule := func(environment, rules string) string {
		return shopApps + fmt.Sprintf("environments:\n  - name: %s\n    %s\n", environment, rules)
	}
	for name, c := range map[string]struct{ document, want string }{
		"merge":               {rule("production", "merge: direct"), ":6: environments[0].merge: direct is looser than the root's auto"},
		"prove":               {rule("production", `prove: "off"`), ":6: environments[0].prove: off is looser than the root's auto"},
		"soak":                {rule("production", "gates: {soak: 23h}"), ":6: environments[0].gates.soak: 23h is looser than the root's 24h"},
		"no soak":             {rule("production", "gates: {soak: 0s}"), "0s is looser than the root's 24h"},
		"approvals":           {rule("production", "gates: {approvals: 1}"), ":6: environments[0].gates.approvals: 1 is looser than the root's 2"},
		"promoter":            {rule("production", "promoters: [team:release, user:eve]"), ":6: environments[0].promoters[1]: user:eve is looser than the root, which has team:release, user:mei"},
		"nobody is everybody": {rule("production", "promoters: []"), "promoters is an empty list"},
		"overrider":           {rule("production", "overriders: [team:shop]"), ":6: environments[0].overriders[0]: team:shop is looser than the root, which has team:sre, user:mei"},
		"first overrider":     {rule("staging", "overriders: [team:shop]"), "team:shop is looser than the root, which has nobody"},
		"copy":                {rule("production", "copy: true"), ":6: environments[0].copy: the root does not copy images"},
		"exceptions":          {rule("production", "freeze-exceptions: []"), `:6: environments[0] has no key "freeze-exceptions": only tagboat.yaml at the top of the repository has it`},
		"path":                {rule("production", "path: x"), `has no key "path": only tagboat.yaml at the top`},
		"paths":               {rule("production", "paths: [x]"), `has no key "paths": only tagboat.yaml at the top`},
		"rings":               {rule("production", "rings: [{name: a, paths: [x]}]"), `has no key "rings": only`},
		"from":                {rule("production", "from: [dev]"), `has no key "from": only`},
		"branch":              {rule("production", "branch: x"), `has no key "branch": only`},
		"repository":          {rule("production", "repository: a/b"), `has no key "repository": only`},
		"skip-ci":             {rule("production", "skip-ci: true"), `has no key "skip-ci": only`},
		"pin":                 {rule("production", "pin: digest"), `has no key "pin": only`},
		"title":               {rule("production", "pull-request: {title: x}"), `has no key "title": only`},
		"include":             {shopApps + "include: [x/tagboat.yaml]\n", `teams/shop/tagboat.yaml:4: the document has no key "include": only`},
		"defaults":            {shopApps + "defaults: {}\n", `has no key "defaults": only`},
		"new environment":     {rule("prod", "merge: review"), `:5: environments[0].name: no environment "prod" in tagboat.yaml`},
		"twice":               {rule("dev", "merge: auto\n  - name: dev"), ":7: environments[1].name: the environment dev is there already"},
		"gate without source": {rule("dev", "gates: {soak: 1h}"), "the environment dev has no earlier environment or ring"},
		"draft and auto":      {rule("production", "pull-request: {draft: true}"), "a draft is never merged by itself"},
		"freeze never ends":   {rule("dev", `freeze: [{cron: "* * * * *", duration: 1h}]`), ":6: environments[0].freeze[0].duration: the window never ends"},
		"freezes end never":   {rule("dev", `freeze: [{cron: "0 0 * * *", duration: 13h}, {cron: "0 12 * * *", duration: 13h}]`), ":6: environments[0].freeze: the freezes together never end"},
		"added list's line":   {rule("production", "gates: {checks: [x, \"a[\"]}"), ":6: environments[0].gates.checks[1]: \"a[\" has a '['"},
		"path climbs":         {rule("dev", "prove-with: [../other]"), "leaves the repository"},
		"the root's app":      {"version: 1\napps:\n  todo-api: {images: [{repository: acme/x}]}\n", ":3: apps.todo-api: the app is there already, in tagboat.yaml:4"},
		"the root's image":    {"version: 1\napps:\n  x: {images: [{repository: docker.io/acme/todo-api}]}\n", ":3: apps.x.images[0].repository: docker.io/acme/todo-api belongs to the app todo-api already (tagboat.yaml:4)"},
		"the root's group":    {"version: 1\napps:\n  x: {images: [{repository: acme/x}], group: todo}\n", ":3: apps.x.group: the group todo is in tagboat.yaml"},
		"app that is a group": {"version: 1\napps:\n  todo: {images: [{repository: acme/x}]}\n", ":3: apps.todo: todo is the name of a group (app todo-api, tagboat.yaml:4)"},
		"without a source":    {"version: 1\napps:\n  x: {images: [{repository: acme/x}], environments: [staging, production]}\n", ":3: apps.x.environments[1]: production is promoted from qa, where the app is not"},
		"version":             {"version: 2\n", ":1: version: there is version 1 alone"},
		"empty":               {"", "teams/shop/tagboat.yaml: the file is empty"},
		"aliased name":        {"version: 1\napps: {&p production: {images: [{repository: a/b}]}}\nenvironments: [{name: *p, merge: direct}]\n", "direct is looser"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := team(c.document)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestIncludedGatesOfADirectSource: a team may ask for approvals of a source where
// the root commits directly, once it has made that stricter for itself.
func TestIncludedGatesOfADirectSource(t *testing.T) {
	const root = `version: 1
include: [teams/*/tagboat.yaml]
environments:
  - {name: dev, path: "dev/{app}", merge: direct, freeze: [{cron: "0 0 * * *", duration: 13h}]}
  - {name: production, path: "production/{app}", from: [dev]}
`
	for rules, want := range map[string]string{
		"environments: [{name: production, gates: {approvals: 1}}]\n":                             "teams/shop/tagboat.yaml:4: environments[0].gates.approvals: gates.approvals of production cannot be met: promotions to dev are commits without a pull request",
		"environments: [{name: production, gates: {approvals: 1}}, {name: dev, merge: review}]\n": "",
		"environments: [{name: dev, freeze: [{cron: \"0 12 * * *\", duration: 13h}]}]\n":          "teams/shop/tagboat.yaml:4: environments[0].freeze: the freezes together never end",
		"environments: [{name: production, freeze: [{cron: \"0 12 * * *\", duration: 13h}]}]\n":   "",
	} {
		_, err := Load(tree("tagboat.yaml", root, "teams/shop/tagboat.yaml", shopApps+rules))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rules, err)
		}
	}
}

func TestIncludedDraftStays(t *testing.T) {
	root := strings.Replace(strings.Replace(strict, "merge: auto", "merge: review", 1), "title:", "draft: true, title:", 1)
	_, err := Load(tree("tagboat.yaml", root, "teams/shop/tagboat.yaml", shopApps+"environments: [{name: production, pull-request: {draft: false}}]\n"))
	if err == nil || !strings.Contains(err.Error(), "the root opens drafts") {
		t.Errorf("got %v", err)
	}
}

func TestIncludeKeepsFilesApart(t *testing.T) {
	include := func(patterns string) string { return strings.Replace(strict, "[teams/*/tagboat.yaml]", patterns, 1) }
	other := strings.ReplaceAll(shopApps, "shop", "other")
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"one in the other": {
			tree("tagboat.yaml", include("[teams/*/tagboat.yaml, teams/shop/sub/x.yaml]"), "teams/shop/tagboat.yaml", shopApps, "teams/shop/sub/x.yaml", other),
			"tagboat.yaml:2: include: teams/shop/sub/x.yaml and teams/shop/tagboat.yaml are not apart",
		},
		"one directory": {
			tree("tagboat.yaml", include(`["teams/*/*.yaml"]`), "teams/shop/a.yaml", shopApps, "teams/shop/b.yaml", other),
			"teams/shop/a.yaml and teams/shop/b.yaml are not apart",
		},
		"pattern's character": {
			tree("tagboat.yaml", include("[teams/*/tagboat.yaml]"), "teams/{app}/tagboat.yaml", shopApps), "has a character of patterns",
		},
		"a directory": {tree("tagboat.yaml", strict, "teams/shop/tagboat.yaml/x", ""), "teams/shop/tagboat.yaml: the file is no plain file"},
		"a symlink": {
			fstest.MapFS{
				"tagboat.yaml": {Data: []byte(strict)}, "other.yaml": {Data: []byte(shopApps)},
				"teams/shop/tagboat.yaml": {Data: []byte("../../other.yaml"), Mode: fs.ModeSymlink},
			}, "teams/shop/tagboat.yaml: the file is no plain file",
		},
		"too large": {tree("tagboat.yaml", strict, "teams/shop/tagboat.yaml", strings.Repeat("#", 5<<20)), "teams/shop/tagboat.yaml: the file is larger"},
	} {
		if _, err := Load(c.files); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
	}
	// Twice the same file by two patterns is one file.
	if _, err := Load(tree("tagboat.yaml", include(`["teams/*/*.yaml", teams/shop/tagboat.yaml]`), "teams/shop/tagboat.yaml", shopApps)); err != nil {
		t.Error(err)
	}
}

func TestIncludeBounds(t *testing.T) {
	files := tree("tagboat.yaml", strict)
	for i := range includeLimit + 1 {
		files[fmt.Sprintf("teams/t%d/tagboat.yaml", i)] = &fstest.MapFile{Data: []byte("version: 1\n")}
	}
	if _, err := Load(files); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "tagboat.yaml:2: include: 501 files match, at most 500 are read") {
		t.Errorf("got %v", err)
	}
	delete(files, "teams/t0/tagboat.yaml")
	if _, err := Load(files); err != nil {
		t.Error(err)
	}
}

func TestIncludeOfABrokenForge(t *testing.T) {
	broken := errors.New("rate limited")
	if _, err := Load(rootOnlyFS{tree("tagboat.yaml", strict, "teams/shop/tagboat.yaml", shopApps), broken}); !errors.Is(err, broken) || errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// rootOnlyFS reads the root's file and fails with the teams'.
type rootOnlyFS struct {
	fstest.MapFS
	err error
}

func (f rootOnlyFS) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "teams/") {
		return nil, f.err
	}
	return f.MapFS.Open(name)
}

func TestIncludeSaysAllFilesAtOnce(t *testing.T) {
	_, err := Load(tree("tagboat.yaml", strict, "teams/a/tagboat.yaml", "version: 2\n", "teams/b/tagboat.yaml", "version: 3\n"))
	if err == nil || !strings.Contains(err.Error(), "teams/a/tagboat.yaml:1") || !strings.Contains(err.Error(), "teams/b/tagboat.yaml:1") {
		t.Errorf("got %v", err)
	}
}
