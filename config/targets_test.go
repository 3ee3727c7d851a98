package config

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const layout = `version: 1
include: [teams/*/tagboat.yaml]
apps:
  todo: {images: [{repository: acme/todo}, {repository: acme/worker, name: worker}]}
  web: {images: [{repository: docker.io/library/web}], environments: [dev, production]}
environments:
  - {name: dev, path: "{environment}/{app}"}
  - {name: flux, path: "clusters/*/{app}.yaml"}
  - {name: argo, path: "argo/*/apps.json#{app}"}
  - {name: one, path: "argo/apps.yaml#{app}"}
  - name: production
    from: [dev]
    rings:
      - {name: canary, paths: ["apps/{app}/{environment}/eu-*"]}
      - {name: early, paths: ["apps/{app}/{environment}/us-west", "apps/{app}/{environment}/eu-west"]}
      - {name: rest, paths: ["apps/{app}/{environment}/*"]}
    prove-with: ["clusters/{ring}"]
  - {name: spread, from: [production], path: "spread/{ring}/{app}", rings: [{name: one}, {name: two}]}
`

func layoutFiles() fstest.MapFS {
	return tree(
		"tagboat.yaml", layout, "teams/shop/tagboat.yaml", "version: 1\napps:\n  shop: {images: [{repository: acme/shop}]}\n",
		"apps/todo/production/README.md", "", "apps/todo/production/ap-east/kustomization.yaml", "", "apps/todo/production/eu-west/kustomization.yaml", "",
		"apps/todo/production/us-west/kustomization.yaml", "", "apps/todo/production/us-east/kustomization.yaml", "",
		"apps/shop/production/eu-west/kustomization.yaml", "", // of nobody: the team's are below teams/shop
		"teams/shop/apps/shop/production/eu-a/kustomization.yaml", "", "teams/shop/apps/shop/production/us-west/kustomization.yaml", "",
		"teams/shop/apps/shop/production/z/kustomization.yaml", "",
		"clusters/a/todo.yaml", "", "clusters/b/todo.yaml", "", "clusters/c/todo.yaml/x", "",
		"argo/a/apps.json", "", "argo/b/apps.json", "", "argo/c/apps.yaml", "",
	)
}

func TestTargets(t *testing.T) {
	fsys := layoutFiles()
	c, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		app, environment, ring string
		want                   []string
		err                    error
		says                   string
	}{
		"literal, not there":    {app: "todo", environment: "dev", want: []string{"dev/todo"}},
		"team's directory":      {app: "shop", environment: "dev", want: []string{"teams/shop/dev/shop"}},
		"files":                 {app: "todo", environment: "flux", want: []string{"clusters/a/todo.yaml", "clusters/b/todo.yaml"}},
		"objects in files":      {app: "todo", environment: "argo", want: []string{"argo/a/apps.json#todo", "argo/b/apps.json#todo"}},
		"object in a file":      {app: "web", environment: "one", err: ErrNoTarget, says: "the app web is not in one"},
		"object in one file":    {app: "todo", environment: "one", want: []string{"argo/apps.yaml#todo"}},
		"first ring":            {app: "todo", environment: "production", ring: "canary", want: []string{"apps/todo/production/eu-west"}},
		"first ring that match": {app: "todo", environment: "production", ring: "early", want: []string{"apps/todo/production/us-west"}},
		"what is left":          {app: "todo", environment: "production", ring: "rest", want: []string{"apps/todo/production/ap-east", "apps/todo/production/us-east"}},
		"all rings": {app: "todo", environment: "production", want: []string{
			"apps/todo/production/ap-east", "apps/todo/production/eu-west", "apps/todo/production/us-east", "apps/todo/production/us-west",
		}},
		"team's ring":      {app: "shop", environment: "production", ring: "canary", want: []string{"teams/shop/apps/shop/production/eu-a"}},
		"ring placeholder": {app: "todo", environment: "spread", ring: "two", want: []string{"spread/two/todo"}},
		"nothing matches":  {app: "web", environment: "production", ring: "canary", err: ErrNoTarget, says: "app web has nothing in production.canary at apps/web/production/eu-*"},
		"app not there":    {app: "web", environment: "flux", err: ErrNoTarget, says: "the app web is not in flux, but in dev, production"},
		"unknown app":      {app: "todoo", environment: "dev", err: ErrUnknown, says: `no app "todoo" in tagboat.yaml: did you mean todo?`},
		"unknown place":    {app: "todo", environment: "prod", err: ErrUnknown, says: `no environment "prod"`},
		"unknown ring":     {app: "todo", environment: "production", ring: "canari", err: ErrUnknown, says: "did you mean canary?"},
		"ring of no rings": {app: "todo", environment: "dev", ring: "canary", err: ErrUnknown, says: "the environment dev has no rings"},
	} {
		got, err := c.Targets(fsys, test.app, test.environment, test.ring)
		if !errors.Is(err, test.err) || test.err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestTargetsOfRings: every directory is in one ring, and RingOf names it.
func TestTargetsOfRings(t *testing.T) {
	fsys := layoutFiles()
	c, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := c.Environment("production")
	seen := map[string]string{}
	for _, ring := range e.RingNames() {
		targets, err := c.Targets(fsys, "todo", "production", ring)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range targets {
			if seen[target] != "" {
				t.Errorf("%s is in %s and %s", target, seen[target], ring)
			}
			seen[target] = ring
			if got, err := c.RingOf("todo", "production", target); err != nil || got != ring {
				t.Errorf("RingOf(%s) = %q, %v, want %s", target, got, err, ring)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("rings have %v", seen)
	}
	if got, err := c.RingOf("todo", "production", "apps/other/production/eu-west"); err != nil || got != "" {
		t.Errorf("another app's directory is in ring %q, %v", got, err)
	}
}

func TestTargetsOfABrokenForge(t *testing.T) {
	c, err := Load(layoutFiles())
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("rate limited")
	if _, err := c.Targets(globFails{failing{broken}}, "todo", "production", "rest"); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// globFails tells its error on Glob, as the files of a forge do; fs.Glob without
// it would find nothing.
type globFails struct{ failing }

func (f globFails) Glob(string) ([]string, error) { return nil, f.err }

func TestProveWith(t *testing.T) {
	fsys := layoutFiles()
	c, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for app, want := range map[string]string{"todo": "clusters/canary", "shop": "teams/shop/clusters/canary"} {
		got, err := c.ProveWith(fsys, app, Place{"production", "canary"})
		if err != nil || !cmp.Equal(got, []string{want}) {
			t.Errorf("%s: %q, %v", app, got, err)
		}
	}
	if got, err := c.ProveWith(fsys, "todo", Place{Environment: "dev"}); err != nil || got != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestOrder(t *testing.T) {
	c, err := Load(layoutFiles())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Pair{{"dev", "production"}, {"production", "spread"}}, c.Pairs()); diff != "" {
		t.Errorf("pairs (-want +got)\n%s", diff)
	}
	for _, test := range []struct {
		from, to string
		err      error
		says     string
	}{
		{"dev", "production", nil, ""},
		{"dev", "spread", ErrNotAllowed, "spread is promoted from production, not from dev"},
		{"production", "dev", ErrNotAllowed, "dev takes what builds push"},
		{"production", "production", ErrNotAllowed, "production is promoted from dev, not from production"},
		{"devv", "production", ErrUnknown, "did you mean dev?"},
		{"dev", "productoin2", ErrUnknown, "did you mean production?"},
	} {
		err := c.CheckPair(test.from, test.to)
		if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s to %s: %v", test.from, test.to, err)
		}
	}
	for _, test := range []struct {
		environment, ring string
		want              []Place
	}{
		{"dev", "", nil},
		{"production", "canary", []Place{{"dev", ""}}},
		{"production", "rest", []Place{{"production", "early"}}},
		{"spread", "one", []Place{{"production", "canary"}, {"production", "early"}, {"production", "rest"}}},
	} {
		got, err := c.Sources("todo", test.environment, test.ring)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s.%s (-want +got)\n%s", test.environment, test.ring, diff)
		}
	}
	for _, test := range []struct{ app, environment, ring string }{{"x", "dev", ""}, {"todo", "x", ""}, {"todo", "production", ""}, {"todo", "dev", "x"}} {
		if got, err := c.Sources(test.app, test.environment, test.ring); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v: %v, %v", test, got, err)
		}
	}
}

// TestSourcesWithoutTheApp: an environment in which an app is not is no source of it.
func TestSourcesWithoutTheApp(t *testing.T) {
	c := load(t, "tagboat.yaml", `version: 1
apps: {web: {images: [{repository: web}], environments: [b, c]}}
environments: [{name: a, path: a}, {name: b, path: b}, {name: c, path: c, from: [a, b]}]
`)
	if got, err := c.Sources("web", "c", ""); err != nil || !cmp.Equal(got, []Place{{Environment: "b"}}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAppOf(t *testing.T) {
	c, err := Load(layoutFiles())
	if err != nil {
		t.Fatal(err)
	}
	for repository, want := range map[string]string{"acme/worker": "todo", "docker.io/acme/todo": "todo", "web": "web", "acme/shop": "shop"} {
		if got, err := c.AppOf(repository); err != nil || got != want {
			t.Errorf("%s: %q, %v", repository, got, err)
		}
	}
	if got, err := c.AppOf("acme/todoo"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "did you mean acme/todo?") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFill(t *testing.T) {
	got := Fill("{environment}.{ring}: {app} {tag}@{digest} {app}", Names{App: "{tag}", Environment: "e", Ring: "r", Tag: "v1", Digest: "sha256:0"})
	if want := "e.r: {tag} v1@sha256:0 {tag}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
