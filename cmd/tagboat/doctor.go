package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
	"tagboat/promote"
)

func (t *tool) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check token, rights, rules, registry and surroundings, and say what to mend",
		UsageText: "tagboat doctor [--repo OWNER/NAME] [--image IMAGE[:TAG]] [options]",
		Description: `Asks only, and writes nothing anywhere. Each line is ok, warning or error; what is printed has no
secret in it and can be pasted into a report. The exit code is 1 where a line is an error.

Examples:
  tagboat doctor --repo acme/config
  tagboat doctor --repo acme/config --image ghcr.io/acme/todo-api:v1.4.2
  tagboat doctor --output json`,
		Flags: append(shared("repo", "forge", "base", "ca-file", "plain-http"),
			&cli.StringFlag{Name: "image", Usage: "also resolve `IMAGE`, to check the registry's credential"}, outputFlag()),
		Action: t.doctor,
	}
}

// level is how well a check went.
type level string

const (
	fine    level = "ok"
	warning level = "warning"
	wrong   level = "error"
)

// finding is what one check says.
type finding struct {
	Level level  `json:"level"`
	Check string `json:"check"`
	Text  string `json:"text"`
	// Do is the next step, where there is one.
	Do string `json:"do,omitempty"`
}

// examination is one run of doctor.
type examination struct {
	*tool
	*cli.Context
	caFiles  []string // those that can be read
	app      bool     // the credential is a GitHub App's own
	findings []finding
}

func (t *tool) doctor(c *cli.Context) error {
	if c.Args().Present() {
		return misused("doctor takes no argument, got %q: name an image with --image", c.Args().First())
	}
	if err := checkOutput(c); err != nil {
		return err
	}
	e := &examination{tool: t, Context: c}
	e.surroundings()
	e.forge()
	e.registry()
	return e.report()
}

func (e *examination) note(l level, check, text, do string) {
	e.findings = append(e.findings, finding{Level: l, Check: check, Text: oneLine(text), Do: do})
}

// failed notes an error, with the next step that its kind has.
func (e *examination) failed(check string, err error) {
	do := map[string]string{
		"forge-denied":         "give the credential the right that is named: docs/permissions.md",
		"forge-not-found":      "look at the name; a forge also hides what the credential may not see",
		"forge-unavailable":    "can this machine reach the host? See the lines proxy and ca-file",
		"forge-rate-limited":   "run again later",
		"registry-denied":      "log in to the registry, or give a credential: README, Credentials",
		"registry-unavailable": "can this machine reach the host? See the lines proxy and ca-file",
		"image-not-found":      "look at the repository and the tag; a registry also hides what the credential may not see",
		"invalid-config":       "mend the lines that are named: docs/configuration.md",
	}[failureOf(err).code]
	e.note(wrong, check, strings.TrimPrefix(err.Error(), promote.ErrMisused.Error()+": "), do)
}

func (e *examination) report() error {
	bad := 0
	for _, f := range e.findings {
		if f.Level == wrong {
			bad++
		}
	}
	if e.String("output") == "json" {
		if err := e.printJSON(map[string]any{"schemaVersion": 1, "checks": e.findings}); err != nil {
			return err
		}
	} else {
		for _, f := range e.findings {
			if err := e.print(f); err != nil {
				return err
			}
		}
	}
	if bad > 0 {
		e.say("%d of %d checks found an error", bad, len(e.findings))
		return exitError{1}
	}
	return nil
}

func (e *examination) print(f finding) error {
	colour := map[level]colour{fine: green, warning: yellow, wrong: red}[f.Level]
	line := fmt.Sprintf("%s %-14s %s\n", e.paint(e.screen.out, colour, fmt.Sprintf("%-7s", f.Level)), f.Check, f.Text)
	if f.Do != "" {
		line += fmt.Sprintf("%-22s → %s\n", "", f.Do)
	}
	_, err := fmt.Fprint(e.stdout, line)
	return err
}

// oneLine makes the text of others fit for a line that is pasted elsewhere.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == ' ' || r >= 0x80 && r < 0xa0 }), " ")
}

// registry resolves an image where one is given.
func (e *examination) registry() {
	name := strings.TrimSpace(e.String("image"))
	if name == "" {
		e.note(fine, "image", "not asked: name one with --image to check the registry's credential", "")
		return
	}
	refs, err := parseImages([]string{name})
	if err != nil {
		e.failed("image", err)
		return
	}
	client, err := e.tool.registry(e.Context)
	if err != nil {
		e.failed("image", err)
		return
	}
	if refs[0].Tag == "" && refs[0].Digest == "" {
		refs[0].Tag = "latest"
	}
	images, errs := client.ResolveAll(e.Context.Context, queriesFor(refs))
	if errs[0] != nil {
		e.failed("image", errs[0])
		return
	}
	text := fmt.Sprintf("%s is %s", refs[0], images[0].Reference.Digest)
	if len(images[0].Platforms) > 0 {
		text += " (" + strings.Join(images[0].Platforms, ", ") + ")"
	}
	e.note(fine, "image", text, "")
	for _, w := range images[0].Warnings {
		e.note(warning, "image", w, "")
	}
}

// kindWord is the CI as people name it.
func kindWord(kind ci.Kind) string {
	names := map[ci.Kind]string{ci.None: "none", ci.GitHub: "GitHub Actions", ci.Gitea: "Gitea or Forgejo Actions", ci.GitLab: "GitLab CI"}
	return names[kind]
}

// setOf lists which of some variables, or their NAME_FILE, are set.
func (e *examination) setOf(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return e.env(name) == "" && e.env(name+"_FILE") == "" })
}
