package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// The scripts ask the program that they complete, so that they never lag behind it.
//
//go:embed completion
var completions embed.FS

func (t *tool) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print what makes a shell complete tagboat's commands and options",
		UsageText: "tagboat completion bash|zsh|fish|powershell",
		Description: `Commands, options, and the values of options that have a few are completed; where any text is
lawful, the shell completes files.

Examples:
  source <(tagboat completion bash)       in ~/.bashrc
  source <(tagboat completion zsh)        in ~/.zshrc, after compinit
  tagboat completion fish | source        in ~/.config/fish/config.fish
  tagboat completion powershell | Out-String | Invoke-Expression`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "words", Usage: "print what may stand in the place of the last argument, for `SHELL`", Hidden: true},
		},
		Action: func(c *cli.Context) error {
			if shell := c.String("words"); shell != "" {
				return t.printWords(c.App, shell, c.Args().Slice())
			}
			shells := []string{"bash", "zsh", "fish", "powershell"}
			shell := c.Args().First()
			if c.Args().Len() != 1 || !slices.Contains(shells, shell) {
				return misused("completion %s: say bash, zsh, fish or powershell.%s", shell, didYouMean(shell, shells))
			}
			script, err := completions.ReadFile("completion/" + shell)
			if err != nil {
				return err
			}
			_, err = t.stdout.Write(script)
			return err
		},
	}
}

// candidate is a word that may stand where the cursor is.
type candidate struct{ text, help string }

// printWords prints the candidates for the last of some words, one a line, in the
// form of a shell.
func (t *tool) printWords(app *cli.App, shell string, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	if last := len(words) - 1; shell == "powershell" && words[last] == ":" {
		words[last] = ""
	}
	for _, c := range complete(app, words, shell == "bash") {
		line := c.text
		switch shell {
		case "zsh":
			line = strings.ReplaceAll(c.text, ":", `\:`) + ":" + c.help
		case "fish", "powershell":
			line = c.text + "\t" + c.help
		}
		if _, err := fmt.Fprintln(t.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// complete lists what may stand in the place of the last word. A shell that
// parts words at "=" (bash) gives --output=json as three.
func complete(app *cli.App, words []string, parted bool) []candidate {
	last := words[len(words)-1]
	if len(words) == 1 {
		return commandsFor(app, last)
	}
	i := slices.IndexFunc(app.Commands, func(c *cli.Command) bool { return c.HasName(words[0]) })
	switch {
	case words[0] == "help" && len(words) == 2:
		return commandsFor(app, last)
	case i < 0:
		return nil
	}
	command := app.Commands[i]
	before := words[1 : len(words)-1]
	if slices.Contains(before, "--") {
		return nil
	}
	if n := len(before); parted && last == "=" && n > 0 {
		return valuesOf(command, before[n-1], "", "")
	} else if parted && n > 1 && before[n-1] == "=" {
		return valuesOf(command, before[n-2], "", last)
	} else if name, value, whole := strings.Cut(last, "="); whole && strings.HasPrefix(last, "-") {
		return valuesOf(command, name, name+"=", value)
	} else if n > 0 && strings.HasPrefix(before[n-1], "-") && !strings.Contains(before[n-1], "=") && takesValue(command, strings.TrimLeft(before[n-1], "-")) {
		return valuesOf(command, before[n-1], "", last)
	}
	if strings.HasPrefix(last, "-") {
		return optionsFor(command, last)
	}
	if command.Name == "completion" && len(before) == 0 {
		return matching([]candidate{{"bash", ""}, {"zsh", ""}, {"fish", ""}, {"powershell", ""}}, last)
	}
	return nil
}

func commandsFor(app *cli.App, prefix string) []candidate {
	all := []candidate{{"help", "show help of a command"}}
	for _, c := range app.Commands {
		if !c.Hidden && c.Name != "help" {
			all = append(all, candidate{c.Name, c.Usage})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.text, b.text) })
	return matching(all, prefix)
}

func optionsFor(command *cli.Command, prefix string) []candidate {
	all := []candidate{{"--help", "show help"}}
	for _, flag := range command.Flags {
		if visible, ok := flag.(cli.VisibleFlag); ok && !visible.IsVisible() || slices.Contains(flag.Names(), "help") {
			continue
		}
		help := ""
		if documented, ok := flag.(cli.DocGenerationFlag); ok {
			help = strings.ReplaceAll(documented.GetUsage(), "`", "")
		}
		all = append(all, candidate{"--" + flag.Names()[0], help})
	}
	return matching(all, prefix)
}

// valuesOf completes an option's value, with a prefix that is kept before it.
func valuesOf(command *cli.Command, option, keep, prefix string) []candidate {
	var all []candidate
	for _, flag := range command.Flags {
		if slices.Contains(flag.Names(), strings.TrimLeft(option, "-")) {
			for _, value := range choices(flag) {
				all = append(all, candidate{value, ""})
			}
		}
	}
	found := matching(all, prefix)
	for i := range found {
		found[i].text = keep + found[i].text
	}
	return found
}

func matching(all []candidate, prefix string) []candidate {
	return slices.DeleteFunc(all, func(c candidate) bool { return !strings.HasPrefix(c.text, prefix) })
}
