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
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"
)

// tree makes a file system of pairs of names and contents.
func tree(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return files
}

func load(t *testing.T, pairs ...string) *Config {
	t.Helper()
	c, err := Load(tree(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// base is a valid document that cases change.
const base = `version: 1
apps:
  todo-api:
    images:
      - repository: ghcr.io/acme/todo-api
environments:
  - name: staging
    path: apps/{app}/overlays/staging
  - name: production
    from: [staging]
    path: apps/{app}/overlays/production
`

func TestLoadFillsDefaults(t *testing.T) {
	c := load(t, "tagboat.yaml", `version: 1
environments:
  - name: staging
    path: ./a//staging/
    merge: auto
    gates: {platforms: [linux/amd64]}
  - name: production
    from: [staging]
    paths: [a/production]
    gates: {soak: 0s}
    pull-request: {labels: []}
defaults:
  gates: {soak: 1d, checks: [argocd/*], platforms: [linux/arm64]}
  pull-request: {labels: [promotion], draft: false, reviewers: [mei]}
  promoters: [team:release]
`)
	want := []Environment{
		{
			Name: "staging", Path: "a/staging",
			Policy: Policy{
				Merge: Auto, Pin: PinTagAndDigest, Prove: ProveAuto, Promoters: []string{"team:release"},
				Gates:       Gates{Platforms: []string{"linux/amd64"}}, // nothing to soak in
				PullRequest: PullRequest{Labels: []string{"promotion"}, Reviewers: []string{"mei"}},
			},
		},
		{
			Name: "production", From: []string{"staging"}, Paths: []string{"a/production"},
			Policy: Policy{
				Merge: Review, Pin: PinTagAndDigest, Prove: ProveAuto, Promoters: []string{"team:release"},
				Gates:       Gates{Checks: []string{"argocd/*"}, Platforms: []string{"linux/arm64"}},
				PullRequest: PullRequest{Labels: []string{}, Reviewers: []string{"mei"}},
			},
		},
	}
	if diff := cmp.Diff(want, c.Environments); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	c.Environments[0].PullRequest.Reviewers[0] = "changed"
	if c.Environments[1].PullRequest.Reviewers[0] != "mei" {
		t.Error("environments share the lists of defaults")
	}
}

func TestLoadReadsEverything(t *testing.T) {
	c := load(t, "tagboat.yaml", fullExample(t))
	app, err := c.App("todo-api")
	if err != nil {
		t.Fatal(err)
	}
	if app.Line == 0 || app.File != "tagboat.yaml" || app.Dir != "." || len(app.Images) == 0 {
		t.Errorf("app %+v", app)
	}
	e, err := c.Environment("production")
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(e.Gates.Soak); got != 24*time.Hour {
		t.Errorf("soak %v", got)
	}
	if got := e.RingNames(); !cmp.Equal(got, []string{"canary", "rest"}) {
		t.Errorf("rings %q", got)
	}
}

// TestLoadSays is what is wrong with a document, and where.
// onGit is a document whose staging is on plain git, with a gate of production.
func onGit(gate string) string {
	return strings.Replace(strings.Replace(base, "    path: apps/{app}/overlays/staging\n", "    path: apps/{app}/overlays/staging\n    repository: https://git.example/x\n    forge: git\n", 1),
		"    from: [staging]\n", "    from: [staging]\n    gates: {"+gate+"}\n", 1)
}

// direct is a document whose staging is committed to, with a gate of production.
func direct(gate string) string {
	return strings.Replace(onGit(gate), "    repository: https://git.example/x\n    forge: git\n", "    merge: direct\n", 1)
}

func TestLoadSays(t *testing.T) {
	replaced := func(old, with string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("base has no %q", old)
		}
		return strings.Replace(base, old, with, 1)
	}
	production := func(lines string) string { return base + "    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n" }
	for name, c := range map[string]struct{ document, want string }{
		"empty":                 {"", "tagboat.yaml: the file is empty"},
		"comment only":          {"# nothing\n", "tagboat.yaml: the file is empty"},
		"binary":                {"version: 1\n\x00\x01", "tagboat.yaml: the file is not text in UTF-8"},
		"latin-1":               {"version: 1 # \xe9", "tagboat.yaml: the file is not text in UTF-8"},
		"5 MB":                  {strings.Repeat("# 5 MB\n", 5<<20/7), "tagboat.yaml: the file is larger than 1024 kB"},
		"no YAML":               {"version: 1\napps: [\n", "tagboat.yaml:2: no YAML"},
		"tab":                   {"version: 1\napps:\n\ta: 1\n", "tagboat.yaml:3: no YAML"},
		"two documents":         {base + "---\nversion: 1\n", "tagboat.yaml:12: a second document"},
		"a list":                {"- version: 1\n", "tagboat.yaml:1: the document wants keys and values, has a list"},
		"no environments":       {"version: 1\n", "tagboat.yaml:1: the document needs the key environments"},
		"no version":            {replaced("version: 1\n", ""), "tagboat.yaml:1: the document needs the key version"},
		"version 2":             {replaced("version: 1", "version: 2"), "tagboat.yaml:1: version: there is version 1 alone"},
		"version text":          {replaced("version: 1", `version: "1"`), `tagboat.yaml:1: version wants a whole number, has the text "1"`},
		"unknown key":           {replaced("environments:", "environmentz:"), `tagboat.yaml:6: the document has no key "environmentz": did you mean environments?`},
		"unknown key deep":      {production("gates: {sock: 24h}"), `tagboat.yaml:12: environments[1].gates has no key "sock": did you mean soak?`},
		"far key":               {production("zzzzzzzzzzzz: 1"), `tagboat.yaml:12: environments[1] has no key "zzzzzzzzzzzz": there is name, path`},
		"key twice":             {production("path: other"), `tagboat.yaml:12: key "path" is there already, on line 11`},
		"key is a number":       {production("1: x"), "tagboat.yaml:12: environments[1]: a key must be text, this is the number 1"},
		"merge key":             {production("<<: {merge: auto}"), "tagboat.yaml:12: environments[1]: merge keys are not read here"},
		"no value":              {production("branch:"), "tagboat.yaml:12: environments[1].branch has no value"},
		"empty text":            {production(`branch: ""`), "tagboat.yaml:12: environments[1].branch is empty"},
		"line break":            {production(`branch: "a\nb"`), "tagboat.yaml:12: environments[1].branch has a line break"},
		"long text":             {production("branch: " + strings.Repeat("a", 1001)), "environments[1].branch is longer than 1000 characters"},
		"text for a list":       {replaced("from: [staging]", "from: staging"), `tagboat.yaml:10: environments[1].from wants a list, has the text "staging": write [staging]`},
		"keys for a list":       {replaced("from: [staging]", "from: {a: b}"), "tagboat.yaml:10: environments[1].from wants a list, has keys and values"},
		"empty list":            {replaced("from: [staging]", "from: []"), "tagboat.yaml:10: environments[1].from is an empty list"},
		"nobody promotes":       {production("promoters: []"), "tagboat.yaml:12: environments[1].promoters is an empty list"},
		"twice in a list":       {replaced("from: [staging]", "from: [staging, staging]"), "tagboat.yaml:10: environments[1].from[1]: staging is in the list already"},
		"number for text":       {production("branch: 1.10"), `tagboat.yaml:12: environments[1].branch wants text, has the number 1.10: write "1.10"`},
		"list for text":         {production("branch: [a]"), "tagboat.yaml:12: environments[1].branch wants text, has a list"},
		"text for truth":        {production("copy: maybe"), `tagboat.yaml:12: environments[1].copy wants true or false, has the text "maybe"`},
		"unknown word":          {production("merge: revue"), `tagboat.yaml:12: environments[1].merge cannot be "revue": did you mean review?`},
		"negative approvals":    {production("gates: {approvals: -1}"), "tagboat.yaml:12: environments[1].gates.approvals cannot be -1"},
		"too many approvals":    {production("gates: {approvals: 99999999999999999999}"), "tagboat.yaml:12: environments[1].gates.approvals wants a whole number"},
		"negative duration":     {production("gates: {soak: -1h}"), "tagboat.yaml:12: environments[1].gates.soak: duration -1h is negative"},
		"duration as number":    {production("gates: {soak: 3600}"), "tagboat.yaml:12: environments[1].gates.soak wants a duration, as in 24h, has the number 3600"},
		"duration nonsense":     {production("gates: {soak: soon}"), `tagboat.yaml:12: environments[1].gates.soak: "soon" is not a duration`},
		"duration of years":     {production("gates: {soak: 999999w}"), "longer than a year"},
		"app name":              {replaced("todo-api:\n", "Todo API:\n"), `tagboat.yaml:3: apps.Todo API: "Todo API" cannot be the name of an app`},
		"app that locks":        {replaced("todo-api:\n", "todo.lock:\n"), "tagboat.yaml:3: apps.todo.lock"},
		"app without images":    {replaced("images:\n      - repository: ghcr.io/acme/todo-api", "source: github.com/acme/todo"), "tagboat.yaml:4: apps.todo-api needs the key images"},
		"app of no images":      {replaced("images:\n      - repository: ghcr.io/acme/todo-api", "images: []"), "tagboat.yaml:4: apps.todo-api.images is an empty list"},
		"image with tag":        {replaced("acme/todo-api\n", "acme/todo-api:v1\n"), "tagboat.yaml:5: apps.todo-api.images[0].repository: ghcr.io/acme/todo-api:v1 has a tag or digest: write ghcr.io/acme/todo-api"},
		"image upper-case":      {replaced("ghcr.io/acme/", "ghcr.io/Acme/"), "has upper-case letters"},
		"image twice":           {replaced("acme/todo-api\n", "acme/todo-api\n      - repository: ghcr.io/acme/todo-api\n"), "tagboat.yaml:6: apps.todo-api.images[1]: the image is in the list already"},
		"image of two apps":     {replaced("environments:", "  web:\n    images:\n      - repository: ghcr.io/acme/todo-api\nenvironments:"), "tagboat.yaml:8: apps.web.images[0].repository: ghcr.io/acme/todo-api belongs to the app todo-api already"},
		"hub's two names":       {replaced("environments:", "  a:\n    images: [{repository: nginx}]\n  b:\n    images: [{repository: docker.io/library/nginx}]\nenvironments:"), "docker.io/library/nginx belongs to the app a already"},
		"app nowhere":           {replaced("    images:", "    environments: [prod]\n    images:"), `tagboat.yaml:4: apps.todo-api.environments[0]: no environment "prod": there is staging, production`},
		"group that is an app":  {replaced("environments:", "  web:\n    group: todo-api\n    images: [{repository: acme/web}]\nenvironments:"), "tagboat.yaml:7: apps.web.group: todo-api is the name of an app"},
		"environment name":      {replaced("name: staging", "name: Staging"), `tagboat.yaml:7: environments[0].name: "Staging" cannot be a name here`},
		"environment twice":     {replaced("name: production", "name: staging"), "tagboat.yaml:9: environments[1].name: the environment staging is there already"},
		"from nowhere":          {replaced("from: [staging]", "from: [stagin]"), `tagboat.yaml:10: environments[1].from[0]: no environment "stagin": did you mean staging?`},
		"from itself":           {replaced("from: [staging]", "from: [production]"), "tagboat.yaml:10: environments[1].from[0]: an environment is not promoted from itself"},
		"loop":                  {replaced("  - name: staging", "  - name: staging\n    from: [production]"), "tagboat.yaml:8: environments[0].from[0]: production comes later than staging: environments stand in the order of promotion, so that it does not loop"},
		"no path":               {replaced("    path: apps/{app}/overlays/production\n", ""), "tagboat.yaml:9: environments[1]: the environment production has no path"},
		"path and paths":        {production("paths: [x]"), "tagboat.yaml:12: environments[1].paths: the environment has a path as well"},
		"path climbs":           {replaced("apps/{app}/overlays/production", "apps/../../x"), "tagboat.yaml:11: environments[1].path: path \"apps/../../x\" leaves the repository"},
		"path absolute":         {replaced("apps/{app}/overlays/production", "/etc"), `path "/etc" is absolute`},
		"path backslash":        {replaced("apps/{app}/overlays/production", `apps\x`), "has a backslash"},
		"path of git":           {replaced("apps/{app}/overlays/production", ".git/hooks"), "is in git's own directory"},
		"path of stars":         {replaced("apps/{app}/overlays/production", "apps/**/x"), "has '**'"},
		"path bracket":          {replaced("apps/{app}/overlays/production", "apps/[x"), "has a '[' that does not end"},
		"placeholder":           {replaced("apps/{app}/overlays/production", "apps/{aap}"), `"apps/{aap}" has the unknown placeholder {aap}: did you mean app?`},
		"ring without rings":    {replaced("apps/{app}/overlays/production", "apps/{ring}"), "unknown placeholder {ring}"},
		"brace":                 {replaced("apps/{app}/overlays/production", `"apps/{app"`), "has a brace without its other"},
		"same path":             {replaced("overlays/production", "overlays/staging"), "tagboat.yaml:9: environments[1]: staging and production have the same path"},
		"branch":                {production("branch: a..b"), `tagboat.yaml:12: environments[1].branch: "a..b" cannot be the name of a branch`},
		"credential":            {production("repository: https://mei:hunter2@git.acme.example/x/y"), "tagboat.yaml:12: environments[1].repository: the URL holds a credential"},
		"repository is a path":  {production("repository: ../other"), "is a path: write file:///"},
		"forge alone":           {production("forge: gitea"), "tagboat.yaml:12: environments[1].forge: is of no use without repository"},
		"ring without paths":    {production("rings: [{name: canary}]"), "tagboat.yaml:12: environments[1].rings[0]: the ring canary has no paths, and the environment's path has no {ring}"},
		"ring without any path": {replaced("    path: apps/{app}/overlays/production\n", "    rings: [{name: canary}]\n"), "tagboat.yaml:11: environments[1].rings[0]: the ring canary has no paths"},
		"ring twice":            {replaced("    path: apps/{app}/overlays/production\n", "    rings: [{name: a, paths: [a]}, {name: a, paths: [b]}]\n"), "environments[1].rings[1].name: the ring a is there already"},
		"path that none uses":   {production("rings: [{name: a, paths: [a]}]"), "has a path that no ring uses"},
		"rings of one path":     {replaced("    path: apps/{app}/overlays/production\n", "    rings: [{name: a, paths: [x]}, {name: b, paths: [x]}]\n"), "production.a and production.b have the same path x"},
		"gate without source":   {replaced("  - name: production", "    gates: {checks: [x]}\n  - name: production"), "tagboat.yaml:9: environments[0].gates.checks: the environment staging has no earlier environment or ring"},
		"platform":              {production("gates: {platforms: [amd64]}"), `environments[1].gates.platforms[0]: "amd64" is no platform`},
		"check pattern":         {production(`gates: {checks: ["a["]}`), "has a '[' that does not end"},
		"promoter":              {production("promoters: [mei]"), `tagboat.yaml:12: environments[1].promoters[0]: "mei" is nobody: write user:LOGIN or team:SLUG`},
		"reviewer":              {production(`pull-request: {reviewers: ["@mei"]}`), `"@mei" is no login or slug`},
		"title":                 {production(`pull-request: {title: "{apps}"}`), "unknown placeholder {apps}: did you mean app?"},
		"draft and auto":        {production("merge: auto\npull-request: {draft: true}"), "tagboat.yaml:13: environments[1].pull-request.draft: a draft is never merged by itself"},
		"cron":                  {production(`freeze: [{cron: "0 25 * * *", duration: 1h}]`), `tagboat.yaml:12: environments[1].freeze[0].cron: cron "0 25 * * *"`},
		"cron with seconds":     {production(`freeze: [{cron: "0 0 0 * * *", duration: 1h}]`), "expected exactly 5 fields"},
		"cron every":            {production(`freeze: [{cron: "@every 1h", duration: 1h}]`), "is no cron expression here"},
		"cron zone":             {production(`freeze: [{cron: "TZ=x", duration: 1h}]`), "the time zone is a key of its own"},
		"no such day":           {production(`freeze: [{cron: "0 0 30 2 *", duration: 1h}]`), "never begins: there is no such day"},
		"time zone":             {production(`freeze: [{cron: "0 0 * * *", duration: 1h, timezone: Asia/Taipeh}]`), `environments[1].freeze[0].timezone: "Asia/Taipeh" is no time zone`},
		"time zone Local":       {production(`freeze: [{cron: "0 0 * * *", duration: 1h, timezone: Local}]`), `"Local" is no time zone`},
		"freeze of nothing":     {production(`freeze: [{cron: "0 0 * * *", duration: 0s}]`), "a window lasts longer than nothing"},
		"freeze never ends":     {production(`freeze: [{cron: "0 0 * * *", duration: 24h}]`), "tagboat.yaml:12: environments[1].freeze[0].duration: the window never ends"},
		"a hash in a directory": {replaced("apps/{app}/overlays/production", "apps/{app}#x"), "tagboat.yaml:11: environments[1].path: path \"apps/{app}#x\" has a '#', which names an object in a file: write FILE.yaml#NAME"},
		"no name after a hash":  {replaced("apps/{app}/overlays/production", "apps/{app}.yaml#"), "has a '#', which names an object"},
		"trailer as message":    {production(`commit-message: "Tagboat-App: x"`), "begins like a trailer of Tagboat's"},
		"soak on plain git":     {onGit("soak: 1h"), "tagboat.yaml:13: environments[1].gates.soak: gates.soak of production cannot be met: staging is in a plain git repository, which has no times, statuses and approvals of a forge: leave the gate out"},
		"checks on plain git":   {onGit("checks: [a]"), "environments[1].gates.checks: gates.checks of production cannot be met: staging is in a plain git repository"},
		"approvals on git":      {onGit("approvals: 1"), "environments[1].gates.approvals: gates.approvals of production cannot be met: staging is in a plain git repository"},
		"on a file URL":         {strings.Replace(onGit("soak: 1h"), "    repository: https://git.example/x\n    forge: git", "    repository: file:///srv/x.git", 1), "gates.soak of production cannot be met: staging is in a plain git"},
		"from defaults on git":  {strings.Replace(strings.Replace(onGit("soak: 0s"), "{soak: 0s}", "{platforms: [linux/amd64]}", 1), "apps:", "defaults: {gates: {checks: [a]}}\napps:", 1), "tagboat.yaml:12: environments[1].name: gates.checks of production cannot be met: staging is in a plain git repository, which has no times, statuses and approvals of a forge: leave the gate out, or write gates: {checks: []}"},
		"approvals of direct":   {direct("approvals: 2"), "tagboat.yaml:12: environments[1].gates.approvals: gates.approvals of production cannot be met: promotions to staging are commits without a pull request (merge: direct), which nobody approves: leave the gate out, or use merge: auto there"},
		"rings of direct":       {production("merge: direct\ngates: {approvals: 1}\nrings: [{name: a, paths: [a]}, {name: b, paths: [b]}]"), "promotions to production are commits without a pull request"},
		"freezes without a gap": {production(`freeze: [{cron: "0 0 * * *", duration: 13h}, {cron: "0 12 * * *", duration: 13h}]`), "tagboat.yaml:12: environments[1].freeze: the freezes together never end: each begins before another is over, for a whole year"},
		"minutes without a gap": {production(`freeze: [{cron: "*/2 * * * *", duration: 1m}, {cron: "1-59/2 * * * *", duration: 1m}]`), "the freezes together never end"},
		"too many windows":      {production("freeze: [" + strings.Repeat(`{cron: "0 0 1 1 *", duration: 1h}, `, 101) + "]"), "environments[1].freeze: 101 windows are more than anybody keeps in mind: at most 100 are read"},
		"include climbs":        {replaced("version: 1", "version: 1\ninclude: [../x/tagboat.yaml]"), "tagboat.yaml:2: include[0]: path \"../x/tagboat.yaml\" leaves the repository"},
		"include at the top":    {replaced("version: 1", "version: 1\ninclude: [tagboat.yaml]"), "is at the top of the repository"},
		"include of a text":     {replaced("version: 1", "version: 1\ninclude: [teams/README.md]"), "does not end in .yaml"},
		"include of nothing":    {replaced("version: 1", "version: 1\ninclude: [teams/*/tagboat.yaml]"), "tagboat.yaml:2: include[0]: no file matches teams/*/tagboat.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(tree("tagboat.yaml", c.document))
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("the error repeats a credential")
			}
		})
	}
}

func TestLoadSaysAllAtOnce(t *testing.T) {
	_, err := Load(tree("tagboat.yaml", `version: 3
apps:
  web: {images: [{repositry: acme/web}]}
environments:
  - name: Staging
    path: /x
  - {name: b, from: [c], merge: never, path: y}
`))
	want := []Problem{
		{"tagboat.yaml", 1, "version: there is version 1 alone; a newer Tagboat may know 3"},
		{"tagboat.yaml", 3, `apps.web.images[0] has no key "repositry": did you mean repository?`},
		{"tagboat.yaml", 5, `environments[0].name: "Staging" cannot be a name here: use a-z, 0-9 and '-', beginning and ending with a letter or digit`},
		{"tagboat.yaml", 6, `environments[0].path: path "/x" is absolute: write it from the top of the repository`},
		{"tagboat.yaml", 7, `environments[1].merge cannot be "never": there is review, auto, direct`},
		{"tagboat.yaml", 7, `environments[1].from[0]: no environment "c": there is Staging`},
	}
	var got *Invalid
	if !errors.As(err, &got) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Problems); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLoadBoundsWhatItSays(t *testing.T) {
	_, err := Load(tree("tagboat.yaml", base+strings.Repeat("x", 3)+": 1\n"+func() (s string) {
		for i := range 100 {
			s += fmt.Sprintf("wrong%d: 1\n", i)
		}
		return s
	}()))
	var got *Invalid
	if !errors.As(err, &got) || len(got.Problems) != problemLimit || got.More != 81 {
		t.Errorf("got %v", err)
	}
}

// TestLoadBoundsAliases loads a few lines that stand for billions of values, and
// one that stands for itself.
func TestLoadBoundsAliases(t *testing.T) {
	bomb := "version: 1\nenvironments: []\nx0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("x%d: &x%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*x%d, ", i), 10))
	}
	bombApps := "version: 1\napps:\n"
	for i := range 2000 {
		bombApps += fmt.Sprintf("  a%d: {images: *i}\n", i)
	}
	images := "[" + strings.Repeat("{repository: nginx}, ", 1000) + "]"
	bombApps = strings.Replace(bombApps, "*i", "&i "+images, 1)
	for name, document := range map[string]string{
		"unknown keys": bomb, "apps": bombApps, "itself": "version: 1\nenvironments: &e [*e]\n", "itself deep": "version: 1\napps: &a {b: *a}\nenvironments: []\n",
		"deep": strings.Repeat("[", 9000), "deep map": strings.Repeat("{a: ", 9000),
	} {
		start := time.Now()
		if _, err := Load(tree("tagboat.yaml", document)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	c := load(t, "tagboat.yaml", `version: 1
environments:
  - {name: a, path: a, gates: &g {platforms: [linux/amd64]}}
  - {name: b, path: b, gates: *g}
`)
	if diff := cmp.Diff(c.Environments[0].Gates, c.Environments[1].Gates); diff != "" {
		t.Errorf("an alias is what it stands for (-want +got)\n%s", diff)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	if _, err := Load(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
	broken := errors.New("the forge is on fire")
	if _, err := Load(failing{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// failing is a file system that cannot be read.
type failing struct{ err error }

func (f failing) Open(string) (fs.File, error) { return nil, f.err }

// FuzzLoad: no document makes Load panic, and what it accepts the schema accepts,
// and Load again when it is written with its defaults.
func FuzzLoad(f *testing.F) {
	schema := compiled(f, Schema())
	for _, team := range []string{examples(f)[1], shopApps} {
		f.Add(strict, team)
		f.Add(layout, team)
		f.Add(examples(f)[0], team)
	}
	f.Add(base, "")
	f.Add(fullExample(f), "version: 1\nenvironments: [{name: production, merge: review}]\n")
	f.Add(strings.Replace(base, "version: 1", "version: 1\ninclude: [t/*/x.yaml]", 1), "version: 1\napps: {b: {images: [{repository: b}]}}\nenvironments: [{name: production, gates: {soak: 2h}}]\n")
	f.Add("version: 1\nenvironments: &e [*e]\n", "{")
	f.Fuzz(func(t *testing.T, root, team string) {
		c, err := Load(tree("tagboat.yaml", root, "t/a/x.yaml", team, "teams/a/tagboat.yaml", team))
		if err != nil {
			return
		}
		if err := validates(t, schema, root); err != nil {
			t.Errorf("the schema refuses what Load accepts: %v", err)
		}
		roundTrip(t, c)
	})
}

// roundTrip writes what was loaded, all in one file, and loads it again.
func roundTrip(t *testing.T, c *Config) {
	t.Helper()
	for name, app := range c.Apps {
		if app.Dir != "." {
			delete(c.Apps, name) // of a team's file
		}
	}
	c.Include, c.Defaults = nil, Policy{} // the environments have them
	written, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(tree("tagboat.yaml", string(written)))
	if err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	ignore := []cmp.Option{
		cmpopts.IgnoreUnexported(Config{}), cmpopts.IgnoreFields(App{}, "File", "Line"), cmpopts.IgnoreFields(Config{}, "Defaults"), cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(c, again, ignore...); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "90m": 90 * time.Minute, "1d12h": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1h1s": time.Hour + time.Second, "366d": longest,
	} {
		got, err := ParseDuration(text)
		if err != nil || time.Duration(got) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := ParseDuration(got.String()); err != nil || again != got {
			t.Errorf("%s is written %s, which is %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "1", "h", "1.5h", "1m1h", "+1h", "-1h", "1H", "1 h", "367d", "8785h", "999999w999999d", "1ms", "१h"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
