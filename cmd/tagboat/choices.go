package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/urfave/cli/v2"
)

// enumerated matches the placeholder of an option with a few lawful values, as
// the option's usage has it: `text|json`.
var enumerated = regexp.MustCompile("`([a-z0-9-]+(?:\\|[a-z0-9-]+)+)`")

// choices are the lawful values of an option; none where any text is lawful.
func choices(flag cli.Flag) []string {
	text, ok := flag.(*cli.StringFlag)
	if !ok {
		return nil
	}
	m := enumerated.FindStringSubmatch(text.Usage)
	if m == nil {
		return nil
	}
	return strings.Split(m[1], "|")
}

// checkChoices refuses a value that an option does not have, and suggests the
// nearest. An empty one is a CI's unset input.
func checkChoices(c *cli.Context) error {
	for _, flag := range c.Command.Flags {
		name := flag.Names()[0]
		lawful, value := choices(flag), strings.TrimSpace(c.String(name))
		if lawful == nil || value == "" || slices.Contains(lawful, value) {
			continue
		}
		last := len(lawful) - 1
		return misused("--%s %s: it is %s or %s.%s", name, value, strings.Join(lawful[:last], ", "), lawful[last], didYouMean(value, lawful))
	}
	return nil
}

// didYouMean suggests the nearest of some words; "" where none is near.
func didYouMean(word string, known []string) string {
	nearest, best := "", 3
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), k); d < best && d < len(k) {
			nearest, best = k, d
		}
	}
	if nearest == "" {
		return ""
	}
	return " Did you mean " + nearest + "?"
}
