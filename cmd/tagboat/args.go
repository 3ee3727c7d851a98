package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder moves a command's options before its arguments, so that people may
// write them in any order: the cli library stops at the first argument.
func reorder(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	i := slices.IndexFunc(app.Commands, func(c *cli.Command) bool { return c.HasName(args[1]) })
	if i < 0 {
		return args
	}
	var options, rest []string
	words := args[2:]
	for n := 0; n < len(words); n++ {
		word := words[n]
		if word == "--" {
			rest = append(rest, words[n+1:]...)
			break
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			rest = append(rest, word)
			continue
		}
		options = append(options, word)
		name, _, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !hasValue && takesValue(app.Commands[i], name) && n+1 < len(words) {
			n++
			options = append(options, words[n])
		}
	}
	return slices.Concat(args[:2], options, []string{"--"}, rest)
}

// takesValue says whether an option's value is the next word.
func takesValue(command *cli.Command, name string) bool {
	for _, flag := range command.Flags {
		if slices.Contains(flag.Names(), name) {
			_, isBool := flag.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}
