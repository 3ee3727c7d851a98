package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestHelp: every command says what it does, how it is written, and shows
// examples of itself whose options it has; every option says what it is for.
func TestHelp(t *testing.T) {
	app := testApp()
	if len(app.Commands) < 10 {
		t.Fatalf("%d commands", len(app.Commands))
	}
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		t.Run(c.Name, func(t *testing.T) { checkHelp(t, app, c) })
	}
}

func checkHelp(t *testing.T, app *cli.App, c *cli.Command) {
	if c.Usage == "" || strings.HasSuffix(c.Usage, ".") {
		t.Errorf("Usage is %q: want a line without a full stop", c.Usage)
	}
	for line := range strings.Lines(c.UsageText) {
		if !strings.HasPrefix(line, "tagboat "+c.Name) {
			t.Errorf("UsageText has %q", line)
		}
	}
	if c.UsageText == "" {
		t.Error("no UsageText")
	}
	_, examples, found := strings.Cut(c.Description, "Example")
	shown := 0
	for line := range strings.Lines(examples) {
		if command := exampleOf(line); command != nil {
			shown++
			checkExample(t, app, command)
		}
	}
	if !found || shown == 0 {
		t.Error("the description has no example")
	}
	for _, flag := range c.Flags {
		documented, ok := flag.(cli.DocGenerationFlag)
		if !ok || documented.GetUsage() == "" {
			t.Errorf("--%s has no usage", flag.Names()[0])
		}
	}
	for line := range strings.Lines(c.Description) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 110 {
			t.Errorf("a line of the description is too long: %s", line)
		}
	}
}

// exampleOf is the words of tagboat in a line of an example; nil where it has none.
func exampleOf(line string) []string {
	_, command, found := strings.Cut(line, "tagboat ")
	if !found || !strings.HasPrefix(line, "  ") {
		return nil
	}
	command, _, _ = strings.Cut(command, "   ") // what is said of it
	return strings.Fields(command)
}

var option = regexp.MustCompile(`^--([a-z-]+)`)

// checkExample holds an example to the commands and options that there are.
func checkExample(t *testing.T, app *cli.App, words []string) {
	command := app.Command(strings.Trim(words[0], "()"))
	if command == nil {
		t.Errorf("an example has the command %s", words[0])
		return
	}
	for _, word := range words[1:] {
		m := option.FindStringSubmatch(word)
		if m == nil {
			continue
		}
		known := false
		for _, flag := range command.Flags {
			known = known || flag.Names()[0] == m[1]
		}
		if !known {
			t.Errorf("an example has %s of %s", word, command.Name)
		}
	}
}
