package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite golden files") //nolint:gochecknoglobals // flags of a test are

const (
	commandsFile = "../../docs/commands.md"
	commandsMark = "<!-- from here on made from the commands themselves by: go test ./cmd/tagboat -update -->\n"
)

// TestCommandReference holds docs/commands.md to the commands.
func TestCommandReference(t *testing.T) {
	text := readDoc(t, commandsFile)
	written, _, found := strings.Cut(text, commandsMark)
	if !found {
		t.Fatalf("%s has no place for the reference", commandsFile)
	}
	want := written + commandsMark + commandReference(testApp())
	if *update {
		if err := os.WriteFile(commandsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("%s is not what the commands say; go test ./cmd/tagboat -update writes it (-want +got):\n%s", commandsFile, diff)
	}
}

func commandReference(app *cli.App) string {
	var b strings.Builder
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```text\n%s\n```\n", c.Name, upperFirst(c.Usage), c.UsageText)
		prose, examples, _ := strings.Cut(c.Description, "Example")
		for paragraph := range strings.SplitSeq(strings.TrimSpace(prose), "\n\n") {
			switch {
			case paragraph == "":
			case strings.HasPrefix(paragraph, "/"): // commands of a chat
				fmt.Fprintf(&b, "\n```text\n%s\n```\n", paragraph)
			default:
				fmt.Fprintf(&b, "\n%s\n", markdownText(paragraph))
			}
		}
		fmt.Fprintf(&b, "\n```sh\n%s```\n", shellExamples(examples))
		optionTable(&b, c)
	}
	return b.String()
}

// shellExamples are a command's examples; what is said of one becomes a comment.
func shellExamples(examples string) string {
	var b strings.Builder
	_, examples, _ = strings.Cut(examples, "\n")
	for line := range strings.Lines(examples) {
		command, said, _ := strings.Cut(strings.TrimSpace(line), "   ")
		if said = strings.TrimSpace(said); said != "" {
			command += "  # " + said
		}
		b.WriteString(command + "\n")
	}
	return b.String()
}

func optionTable(b *strings.Builder, c *cli.Command) {
	rows := ""
	for _, flag := range c.Flags {
		name, usage := optionText(flag)
		rows += fmt.Sprintf("| `%s` | %s |\n", strings.ReplaceAll(name, "|", `\|`), markdownText(strings.TrimPrefix(usage, "`")))
	}
	if rows != "" {
		b.WriteString("\n| option | |\n| --- | --- |\n" + rows)
	}
}

func markdownText(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`).Replace(s)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// TestTroubleshooting: docs/troubleshooting.md has a part for every code, and none
// for another.
func TestTroubleshooting(t *testing.T) {
	text := readDoc(t, "../../docs/troubleshooting.md")
	codes := map[string]bool{"failed": false, "blocked": false}
	for _, known := range failures() {
		codes[known.code] = false
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "### ") {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(line, -1) {
			if told, known := codes[m[1]]; !known || told {
				t.Errorf("%s is no code, or stands there twice", m[1])
			}
			codes[m[1]] = true
		}
	}
	for code, told := range codes {
		if !told {
			t.Errorf("nothing is said of %s", code)
		}
	}
}

// shown is a command line that the documentation shows.
type shown struct {
	where string
	args  []string
	run   bool // it is a whole one: what it checks before it asks anybody must pass, too
}

// TestShownCommands holds every command line of README.md and docs/ to the commands:
// options, values, and what a command checks by itself.
func TestShownCommands(t *testing.T) {
	total, ran := 0, 0
	pages := documents(t)
	t.Chdir(t.TempDir())
	for file, text := range pages {
		for _, s := range slices.Concat(shownInBlocks(t, file, text), shownInProse(file, text)) {
			total++
			if err := parses(s.args); err != nil {
				t.Errorf("%s: %q: %v", s.where, s.args, err)
			} else if s.run && asks(s.args[1]) {
				ran++
				startsWell(t, s)
			}
		}
	}
	if total < 60 || ran < 30 {
		t.Errorf("%d command lines, %d of them run: where are they?", total, ran)
	}
}

// TestShownCommandsAreRefused: the checks of TestShownCommands can fail.
func TestShownCommandsAreRefused(t *testing.T) {
	for _, line := range []string{
		"tagboat promot --repo acme/config", "tagboat promote --repoo acme/config", "tagboat promote --prove maybe", "tagboat hold production --till 2h",
	} {
		if parses(strings.Fields(line)) == nil {
			t.Errorf("%s passed", line)
		}
	}
	for _, line := range []string{"tagboat promote --repo acme/config --to staging", "tagboat rollback --repo acme/config --app todo-api", "tagboat hold --repo acme/config production"} {
		if code, _ := startOf(line); code != 2 {
			t.Errorf("%s: exit %d, want 2", line, code)
		}
	}
}

// parses reads a command line with the commands' options and their values; nothing
// is done.
func parses(args []string) error {
	app := testApp()
	if args[1] == "help" {
		return nil
	}
	for _, c := range app.Commands {
		c.Action = func(*cli.Context) error { return nil }
	}
	return app.Run(reorder(app, args))
}

// asks says whether a command asks a forge or a registry before it does anything.
func asks(command string) bool {
	return slices.Contains([]string{"promote", "rollback", "verify", "hold", "release", "holds", "status", "history", "resolve", "request", "doctor"}, command)
}

// startOf runs a command with everything but a network: its context is over, so that
// the first call to a forge or registry ends it.
func startOf(words ...string) (code int, said string) {
	if len(words) == 1 {
		words = strings.Fields(words[0])
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	env := map[string]string{"TAGBOAT_TOKEN": "a-token-of-nobody", "CI": "true"}
	var out, errOut bytes.Buffer
	code = run(ctx, words, &out, &errOut, func(name string) string { return env[name] })
	return code, errOut.String()
}

func startsWell(t *testing.T, s shown) {
	t.Helper()
	args := s.args
	if !slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "--repo") }) && args[1] != "resolve" && args[1] != "doctor" {
		args = append([]string{args[0], args[1], "--repo", "acme/config"}, args[2:]...) // in CI it is the job's own
	}
	if code, said := startOf(args...); code == 2 {
		t.Errorf("%s: %q is misused:\n%s", s.where, args, said)
	}
}

// documents are the pages of the documentation.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 8 {
		t.Fatalf("%d documents, %v", len(names), err)
	}
	pages := map[string]string{}
	for _, name := range append(names, "../../README.md", "../../CONTRIBUTING.md") {
		pages[filepath.Base(name)] = readDoc(t, name)
	}
	return pages
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence      = regexp.MustCompile("(?ms)^( *)```([a-z]+)\n(.*?)^ *```$")
	inlineCode = regexp.MustCompile("`tagboat ([a-z]+[^`]*)`")
	inScript   = regexp.MustCompile(`^ *(?:- |run: |- run: )?(?:\$ )?((?:[A-Z_]+=\S+ )*tagboat .*)$`)
	anyShell   = regexp.MustCompile(`^(?:source <\()?(tagboat [^)|>]*)`)
)

// shownInBlocks are the command lines of fenced blocks: of shells, of pipelines, and
// those that the Action makes of a step's inputs.
func shownInBlocks(t *testing.T, file, text string) (all []shown) {
	t.Helper()
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		language, body := m[2], strings.ReplaceAll(m[3], "\n"+m[1], "\n")
		if language == "text" || language == "json" || language == "diff" {
			continue
		}
		body = strings.ReplaceAll(body, "\\\n", " ")
		for line := range strings.Lines(body) {
			found := inScript.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if found == nil {
				found = anyShell.FindStringSubmatch(line)
			}
			if found != nil {
				all = append(all, shown{where: file, args: commandWords(found[1]), run: true})
			}
		}
		if language == "yaml" {
			all = append(all, shownInSteps(t, file, body)...)
		}
	}
	return all
}

// commandWords splits a command line and leaves out variables before it, comments
// and redirections after it.
func commandWords(line string) []string {
	line, _, _ = strings.Cut(line, " # ")
	line, _, _ = strings.Cut(line, "  # ")
	for _, end := range []string{" > ", " | ", " && ", " || ", "; "} {
		line, _, _ = strings.Cut(line, end)
	}
	line = line[strings.Index(line, "tagboat "):]
	words := shellWords(line)
	for i, w := range words {
		// a variable stands for what it would be
		w = regexp.MustCompile(`\$\{?CI_REGISTRY_IMAGE\}?|\$IMAGE`).ReplaceAllString(w, "registry.acme.example/todo-api")
		w = regexp.MustCompile(`@\$\{?DIGEST\}?|@sha256:…`).ReplaceAllString(w, "@sha256:"+strings.Repeat("0", 64))
		words[i] = regexp.MustCompile(`\$\{?[A-Z_]+\}?`).ReplaceAllString(w, "v1")
	}
	return words
}

// shownInProse are those between single backquotes; they may be parts of one.
func shownInProse(file, text string) (all []shown) {
	for _, m := range inlineCode.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		line := strings.NewReplacer(`\|`, "|", "…", "x", "[", "", "]", "").Replace("tagboat " + m[1])
		line, _, _ = strings.Cut(line, " > ")
		all = append(all, shown{where: file, args: shellWords(line)})
	}
	return all
}

type actionStep struct {
	Uses string
	With map[string]string
}

// shownInSteps are the commands of steps with the Action, as action/run makes them.
func shownInSteps(t *testing.T, file, body string) (all []shown) {
	t.Helper()
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(body), &node); err != nil {
		return nil // whether it reads is another test's
	}
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		var step actionStep
		if n.Kind == yaml.MappingNode && n.Decode(&step) == nil && strings.HasPrefix(step.Uses, "OWNER/tagboat@") {
			all = append(all, shown{where: file + ", a step", args: commandOf(step.With), run: true})
		}
		for _, child := range n.Content {
			walk(child)
		}
	}
	walk(&node)
	return all
}

func commandOf(with map[string]string) []string {
	command := with["command"]
	if command == "" {
		command = "promote"
	}
	args := []string{"tagboat", command}
	var rest []string
	for name, value := range with {
		value = regexp.MustCompile(`\$\{\{[^}]*digest[^}]*\}\}`).ReplaceAllString(value, "sha256:"+strings.Repeat("0", 64))
		value = regexp.MustCompile(`\$\{\{[^}]*\}\}`).ReplaceAllString(value, "v1")
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			switch {
			case slices.Contains([]string{"command", "token", "app-id", "private-key", "download-url", "build-from-source"}, name) || line == "":
			case name == "image" || name == "args" && !strings.HasPrefix(line, "-"):
				rest = append(rest, line)
			case name == "args":
				args = append(args, line)
			default:
				args = append(args, "--"+name+"="+line)
			}
		}
	}
	return slices.Concat(args, []string{"--"}, rest)
}
