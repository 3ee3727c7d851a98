package tagboat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"tagboat/config"
	"tagboat/overlay"
	"tagboat/record"
)

// What README.md and docs/ show is held here, and in cmd/tagboat/docs_test.go for
// what only the commands themselves know: their command lines.

// snippet is one fenced block of a page.
type snippet struct {
	page, language, text string
	line                 int
}

func (s snippet) String() string { return fmt.Sprintf("%s:%d", s.page, s.line) }

func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) < 8 {
		t.Fatalf("%d pages, %v", len(names), err)
	}
	all := map[string]string{}
	for _, name := range append(names, "README.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(name)] = string(text)
	}
	return all
}

func snippets(t *testing.T) []snippet {
	t.Helper()
	var all []snippet
	for page, text := range pages(t) {
		found, err := snippetsOf(page, text)
		if err != nil {
			t.Error(err)
		}
		all = append(all, found...)
	}
	return all
}

func snippetsOf(page, text string) (all []snippet, err error) {
	var open *snippet
	indent, n := "", 0
	for line := range strings.Lines(text) {
		n++
		word, fenced := strings.CutPrefix(strings.TrimLeft(strings.TrimRight(line, "\n"), " "), "```")
		switch {
		case fenced && open == nil:
			open = &snippet{page: page, language: word, line: n}
			indent = line[:strings.Index(line, "`")]
		case fenced:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent)
		}
	}
	if open != nil {
		return all, fmt.Errorf("%s: the block is not closed", open)
	}
	return all, nil
}

// TestSnippets reads every block of the documentation as what it is. One that is of
// no known kind fails: nothing is shown that nobody looks at.
func TestSnippets(t *testing.T) {
	seen := map[string]int{}
	for _, s := range snippets(t) {
		kind, err := check(t, s)
		if err != nil {
			t.Errorf("%s (%s): %v", s, kind, err)
		}
		seen[kind]++
	}
	for _, kind := range []string{"sh", "workflow", "steps", "gitlab", "tagboat.yaml", "object", "console"} {
		if seen[kind] == 0 {
			t.Errorf("no snippet of the kind %s: is it still recognised?", kind)
		}
	}
	t.Logf("%v", seen)
}

// TestSnippetsAreRefused: what is wrong does not pass.
func TestSnippetsAreRefused(t *testing.T) {
	for _, s := range []snippet{
		{language: "", text: "x"},
		{language: "python", text: "x"},
		{language: "json", text: `{"outcome": …}`},
		{language: "yaml", text: "version: 1\napps: {}\nenvironment: []\n"},
		{language: "yaml", text: "environments:\n  - {name: a, path: a, from: [b]}\n"},
		{language: "yaml", text: "environments:\n  - {name: a, path: a, gates: {soak: 1day}}\n"},
		{language: "yaml", text: "a: [1\n"},
		{language: "yaml", text: "unheard-of: 1\n"},
		{language: "yaml", text: "- uses: OWNER/tagboat@COMMIT\n  with: {images: x}\n"},
		{language: "yaml", text: "- uses: actions/checkout@v4\n"},
		{language: "yaml", text: "include:\n  - component: $CI_SERVER_FQDN/GROUP/tagboat/promote@COMMIT\n    inputs: {image: x, to: staging}\n"},
		{language: "yaml", text: "include:\n  - component: $CI_SERVER_FQDN/GROUP/tagboat/promot@COMMIT\n    inputs: {}\n"},
		{language: "yaml", text: "spec: {inputs: {to: {default: A}}}\n---\ninclude:\n  - component: $CI_SERVER_FQDN/GROUP/tagboat/promote@COMMIT\n    inputs: {tagboat: \"x@sha256:…\", to: \"$[[ inputs.to ]]\"}\n"},
		{language: "yaml", text: "spec: {inputs: {}}\n---\ninclude:\n  - component: $CI_SERVER_FQDN/GROUP/tagboat/promote@COMMIT\n    inputs: {tagboat: \"x@sha256:…\", to: \"$[[ inputs.to ]]\"}\n"},
		{language: "yaml", text: "spec: {inputs: {to: {default: a, regex: '^[^x]*$'}}}\n---\na: {script: 'b $[[ inputs.to ]]'}\n"},
		{language: "yaml", text: "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nimages: {name: x}\n"},
		{language: "sh", text: "echo 'not closed\n"},
	} {
		if kind, err := check(t, s); err == nil {
			t.Errorf("passed as %s:\n%s", kind, s.text)
		}
	}
	if _, err := snippetsOf("x.md", "```sh\necho\n"); err == nil {
		t.Error("a block that is not closed passed")
	}
}

func check(t *testing.T, s snippet) (kind string, err error) {
	switch s.language {
	case "text", "diff", "console":
		return s.language, nil
	case "json":
		if !json.Valid([]byte(s.text)) {
			return "json", errors.New("this is no JSON")
		}
		return "json", nil
	case "sh":
		out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", s.text).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			return "sh", nil
		}
		if err != nil {
			return "sh", fmt.Errorf("%w: %s", err, out)
		}
		return "sh", nil
	case "yaml":
		return checkYAML(s)
	}
	return "unknown", fmt.Errorf("no such language: %q", s.language)
}

func checkYAML(s snippet) (kind string, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(s.text))
	var all []any
	for {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "yaml", err
		}
		all = append(all, document)
	}
	if len(all) == 0 {
		return "yaml", errors.New("nothing is in it")
	}
	kind = kindOf(all[0])
	switch kind {
	case "workflow", "steps":
		return kind, checkSteps(all[0])
	case "permissions", "triggers":
		return kind, nil // in TestWorkflows
	case "gitlab":
		return kind, checkPipeline(s.text)
	case "hold":
		_, err := record.ParseHold("holds/production.yaml", []byte(s.text))
		return kind, err
	case "tagboat.yaml":
		if s.page == "docs/configuration.md" {
			return kind, nil // config loads these two together
		}
		_, err := config.Load(fstest.MapFS{config.FileName: {Data: []byte(whole(s.text, all[0].(map[string]any)))}})
		return kind, err
	case "object":
		return kind, checkObjects(s.text, all)
	}
	return "unknown", errors.New("what is this?")
}

// kindOf tells from its keys what a document is.
func kindOf(document any) string {
	if list, ok := document.([]any); ok && len(list) > 0 {
		if step, ok := list[0].(map[string]any); ok && (step["uses"] != nil || step["run"] != nil) {
			return "steps"
		}
	}
	m, _ := document.(map[string]any)
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, ok := m[k]; return ok })
	}
	switch {
	case has("apiVersion"):
		return "object"
	case has("jobs"):
		return "workflow"
	case has("steps"):
		return "steps"
	case has("on"):
		return "triggers"
	case has("permissions"):
		return "permissions"
	case has("reason", "since"):
		return "hold"
	case has("environments", "apps", "chat", "defaults", "version"):
		return "tagboat.yaml"
	case has("include", "spec", "stages"):
		return "gitlab"
	}
	for _, job := range m {
		if job, ok := job.(map[string]any); ok && job["script"] != nil {
			return "gitlab"
		}
	}
	return "unknown"
}

// whole makes a tagboat.yaml of a part of one.
func whole(text string, have map[string]any) string {
	missing := map[string]string{
		"version":      "version: 1\n",
		"apps":         "apps: {todo-api: {images: [{repository: ghcr.io/acme/todo-api}]}}\n",
		"environments": "environments: [{name: staging, path: \"apps/{app}/overlays/staging\"}]\n",
	}
	for _, key := range []string{"version", "apps", "environments"} {
		if _, ok := have[key]; !ok {
			text = missing[key] + text
		}
	}
	return text
}

// checkSteps holds the steps that use the Action to its inputs, and others to a
// commit.
func checkSteps(document any) error {
	var action struct{ Inputs map[string]any }
	if err := readYAML("action.yml", &action); err != nil {
		return err
	}
	var errs []error
	var walk func(any)
	walk = func(v any) {
		if list, ok := v.([]any); ok {
			for _, one := range list {
				walk(one)
			}
		}
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		if uses, ok := m["uses"].(string); ok {
			_, version, _ := strings.Cut(uses, "@")
			if uses != "OWNER/tagboat@COMMIT" && !strings.HasPrefix(uses, "./") && !commitID.MatchString(version) && version != "COMMIT" {
				errs = append(errs, fmt.Errorf("%s is not pinned to a commit", uses))
			}
			with, _ := m["with"].(map[string]any)
			for name := range with {
				if _, known := action.Inputs[name]; uses == "OWNER/tagboat@COMMIT" && !known {
					errs = append(errs, fmt.Errorf("action.yml has no input %s", name))
				}
			}
		}
		for _, one := range m {
			walk(one)
		}
	}
	walk(document)
	return errors.Join(errs...)
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// checkObjects reads the targets among Kubernetes objects as Tagboat does.
func checkObjects(text string, all []any) error {
	for _, one := range all {
		object := one.(map[string]any)
		api, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		if api == "" || kind == "" {
			return errors.New("an object without apiVersion or kind")
		}
		name := ""
		switch {
		case strings.HasPrefix(api, "kustomize.config.k8s.io/"):
			name = "x/kustomization.yaml"
		case strings.HasPrefix(api, "kustomize.toolkit.fluxcd.io/"), kind == "Application":
			name = "x.yaml"
		default:
			continue
		}
		entries, err := overlay.Entries(fstest.MapFS{name: {Data: []byte(text)}}, strings.TrimSuffix(name, "/kustomization.yaml"))
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return errors.New("it has no images")
		}
	}
	return nil
}

func readYAML(name string, into any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}

// TestWorkflows lints the workflows and parts of workflows that are shown, each as a
// repository of its own would have them.
func TestWorkflows(t *testing.T) {
	linter := os.Getenv("TAGBOAT_ACTIONLINT")
	if linter == "" {
		t.Skip("THE WORKFLOWS OF THE DOCUMENTATION ARE NOT LINTED: TAGBOAT_ACTIONLINT does not name actionlint; e2e/run does")
	}
	n := 0
	for _, s := range snippets(t) {
		var document any
		if s.language != "yaml" || yaml.Unmarshal([]byte(s.text), &document) != nil {
			continue
		}
		workflow, ok := workflowOf(kindOf(document), s.text)
		if !ok {
			continue
		}
		n++
		if out := lint(t, linter, workflow); out != "" {
			t.Errorf("%s:\n%s\n%s", s, out, workflow)
		}
	}
	if n < 5 {
		t.Errorf("%d workflows only", n)
	}
	if lint(t, linter, "on: pusch\njobs: {a: {steps: []}}\n") == "" {
		t.Error("the linter says nothing of a workflow that is wrong")
	}
}

func lint(t *testing.T, linter, workflow string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), linter, "-no-color", "-shellcheck=", "-pyflakes=", "-")
	cmd.Stdin = strings.NewReader(workflow)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		return err.Error()
	}
	return string(out)
}

// workflowOf makes a workflow of a part of one.
func workflowOf(kind, text string) (workflow string, ok bool) {
	const head, job = "on: push\n", "jobs:\n  x:\n    runs-on: ubuntu-latest\n"
	switch kind {
	case "workflow":
		return text, true
	case "permissions":
		return head + text + job + "    steps: [{run: 'true'}]\n", true
	case "triggers":
		return text + job + "    steps: [{run: 'true'}]\n", true
	case "steps":
		if strings.Contains(text, "steps.app.") && !strings.Contains(text, "id: app") {
			text = strings.Replace(text, "steps.app.outputs.token", "secrets.TAGBOAT_TOKEN", 1)
		}
		if !strings.HasPrefix(strings.TrimSpace(text), "steps:") {
			text = "steps:\n" + indented(text, "  ")
		}
		if !strings.HasPrefix(text, "    ") {
			text = indented(text, "    ")
		}
		return head + job + text, true
	}
	return "", false
}

func indented(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
	return b.String()
}

// TestPipelines has GitLab's own schema, as gitlab-ci-local brings it, read the
// pipelines that are shown.
func TestPipelines(t *testing.T) {
	local := strings.TrimPrefix(os.Getenv("TAGBOAT_GITLAB_CI_LOCAL"), "-")
	if local == "" {
		t.Skip("THE PIPELINES OF THE DOCUMENTATION ARE NOT LINTED: TAGBOAT_GITLAB_CI_LOCAL does not name gitlab-ci-local; e2e/run does")
	}
	n := 0
	for _, s := range snippets(t) {
		if kind, _ := check(t, s); kind != "gitlab" {
			continue
		}
		n++
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			readPipeline(t, local, s.text)
		})
	}
	if n < 3 {
		t.Errorf("%d pipelines only", n)
	}
	if _, err := listJobs(t, local, "a:\n  script: ['true']\n  resource-group: x\n"); err == nil {
		t.Error("a key that GitLab does not know passed")
	}
}

func readPipeline(t *testing.T, local, text string) {
	t.Helper()
	text = regexp.MustCompile(`component: \S+/tagboat/([a-z]+)@COMMIT`).ReplaceAllString(text, "local: /templates/$1/template.yml")
	text = strings.ReplaceAll(text, "@sha256:…", "@sha256:"+strings.Repeat("0", 64))
	if out, err := listJobs(t, local, text); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func listJobs(t *testing.T, local, pipeline string) (string, error) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "templates"), os.DirFS("templates")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitlab-ci.yml"), []byte(pipeline), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"remote", "add", "origin", "https://gitlab.acme.example/acme/todo.git"}, {"add", "-A"}, {"-c", "user.name=mei", "-c", "user.email=mei@acme.example", "commit", "-q", "-m", "x"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", local, "--home", home, "--list")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	named   = regexp.MustCompile(`docs/[a-z-]+\.md`)
	address = regexp.MustCompile(`https?://[^\s"'()<>|\x60\]]+`)
	setting = regexp.MustCompile(`TAGBOAT_[A-Z_]*[A-Z]`)
)

// TestLinks: every link leads somewhere, and none to an address that somebody else
// could own.
func TestLinks(t *testing.T) {
	all := pages(t)
	for page, text := range all {
		if err := checkLinks(page, text, all); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range []string{"[x](gone.md)", "[x](configuration.md#gone)", "[x](#gone)", "[x](../outside.md)", "https://tagboat.io/x"} {
		if checkLinks("docs/wrong.md", wrong, all) == nil {
			t.Errorf("%s passed", wrong)
		}
	}
}

func checkLinks(page, text string, all map[string]string) error {
	var errs []error
	prose := withoutBlocks(text)
	for _, m := range link.FindAllStringSubmatch(prose, -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(target, "://") {
			continue
		}
		file := page
		if target != "" {
			file = filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
		}
		if _, err := os.Stat(file); err != nil && (target != "" || anchor == "") {
			errs = append(errs, fmt.Errorf("%s: nothing is at %s", page, m[1]))
			continue
		}
		content := all[file]
		if file == page {
			content = text
		}
		if anchor != "" && !slices.Contains(anchors(content), anchor) {
			errs = append(errs, fmt.Errorf("%s: no heading for %s", page, m[1]))
		}
	}
	for _, a := range address.FindAllString(text, -1) {
		u, err := url.Parse(strings.ReplaceAll(a, "…", ""))
		if err != nil || !lawfulHost(u.Hostname()) {
			errs = append(errs, fmt.Errorf("%s: whose address is %s?", page, a))
		}
	}
	return errors.Join(errs...)
}

// lawfulHost says whether a host is an example's, this machine, or of one whom the
// page is about.
func lawfulHost(host string) bool {
	known := []string{"127.0.0.1", "HOST", "github.com", "gitlab.com", "slack.com", "ghcr.io", "token.actions.githubusercontent.com"}
	return slices.Contains(known, host) || strings.HasSuffix(host, ".example") || host == "git.example"
}

func withoutBlocks(text string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			inside = !inside
		} else if !inside {
			b.WriteString(line)
		}
	}
	return b.String()
}

// anchors are the ids that forges give to the headings of a page.
func anchors(text string) []string {
	var ids []string
	for _, m := range heading.FindAllStringSubmatch(withoutBlocks(text), -1) {
		id := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		ids = append(ids, strings.ReplaceAll(strings.TrimSpace(id), " ", "-"))
	}
	return ids
}

// TestNames: the pages that texts, code and templates name are there, and the
// variables that pages name are read somewhere.
func TestNames(t *testing.T) {
	var sources bytes.Buffer
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name == ".git" {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		base := filepath.Base(name)
		if d.IsDir() || strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".yml") && base != "run" && base != "install" && base != "Dockerfile" {
			return nil
		}
		text, err := os.ReadFile(name)
		for _, page := range named.FindAllString(string(text), -1) {
			if _, statErr := os.Stat(page); statErr != nil {
				t.Errorf("%s names %s, which is not there", name, page)
			}
		}
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range pages(t) {
		for _, name := range setting.FindAllString(text, -1) {
			if base := strings.TrimSuffix(name, "_FILE"); !bytes.Contains(sources.Bytes(), []byte(base)) {
				t.Errorf("%s: nothing reads %s", page, name)
			}
		}
	}
}

// TestReadmeIsShort: a newcomer decides in a minute.
func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(pages(t)["README.md"], "\n"); n >= 150 {
		t.Errorf("README.md has %d lines, want fewer than 150", n)
	}
}
