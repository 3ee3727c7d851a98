package chatops

import (
	"slices"
	"strings"
)

// Verb is what a command does.
type Verb string

// The verbs.
const (
	Promote  Verb = "promote"
	Rollback Verb = "rollback"
	Hold     Verb = "hold"
	Release  Verb = "release"
	Help     Verb = "help"
)

func verbs() []Verb { return []Verb{Promote, Rollback, Hold, Release, Help} }

// Command is one line, understood. Which fields a verb uses is in its usage.
type Command struct {
	Verb        Verb
	App         string
	Digest      string // sha256:… that the source must run; "" takes what it runs
	From        string // environment; "" is what tagboat.yaml says
	Environment string
	Ring        string
	To          string // of a rollback: digest, tag or commit; "" is what ran before
	Until       string // of a hold: a time in RFC 3339, a date or a duration; "" is until released
	Reason      string
	// Loose: the reason of a hold stood without quotes, so that its first word may be
	// an app. Resolve tells.
	Loose  bool
	DryRun bool
}

// Usage is how a verb is written.
func (v Verb) Usage() string {
	switch v {
	case Promote:
		return `/promote APP[@sha256:…] [from ENV] to ENV [ring NAME] [--dry-run] [--reason "…"]`
	case Rollback:
		return `/rollback APP in ENV [ring NAME] [to DIGEST|TAG|COMMIT] [--dry-run] [--reason "…"]`
	case Hold:
		return `/hold ENV [APP] [until TIME|DURATION] REASON`
	case Release:
		return `/release ENV [APP]`
	}
	return "/" + string(v)
}

// clauses are the words that a verb knows, each with a value behind it.
func (v Verb) clauses() []string {
	switch v {
	case Promote:
		return []string{"from", "to", "ring"}
	case Rollback:
		return []string{"in", "ring", "to"}
	case Hold:
		return []string{"until"}
	}
	return nil
}

func (v Verb) options() []string {
	if v == Promote || v == Rollback {
		return []string{"--dry-run", "--reason"}
	}
	return nil
}

// keywords are the words of the grammar, which name nothing.
func keywords() []string { return []string{"from", "to", "in", "ring", "until"} }

func isKeyword(word string) bool { return slices.Contains(keywords(), word) }

// String writes the command in the grammar: Parse reads it back.
func (c Command) String() string {
	words := []string{"/" + string(c.Verb)}
	add := func(before, value string) {
		if value != "" {
			words = append(words, strings.TrimSpace(before+" "+value))
		}
	}
	switch c.Verb {
	case Promote:
		add("", strings.TrimSuffix(c.App+"@"+c.Digest, "@"))
		add("from", c.From)
		add("to", c.Environment)
		add("ring", c.Ring)
	case Rollback:
		add("", c.App)
		add("in", c.Environment)
		add("ring", c.Ring)
		add("to", c.To)
	case Hold:
		add("", c.Environment)
		add("", c.App)
		add("until", c.Until)
		if c.Loose {
			add("", c.Reason)
		} else {
			add("", `"`+c.Reason+`"`)
		}
		return strings.Join(words, " ")
	case Release:
		add("", c.Environment)
		add("", c.App)
	}
	if c.DryRun {
		add("", "--dry-run")
	}
	if c.Reason != "" {
		add("--reason", `"`+c.Reason+`"`)
	}
	return strings.Join(words, " ")
}
