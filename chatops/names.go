package chatops

import (
	"fmt"
	"slices"
	"strings"

	"tagboat/config"
)

// Resolve looks a command's names up in the configuration and fills in what it
// leaves to it: where a promotion comes from, and whether the loose reason of a
// hold begins with an app. A name that is not there is an error of config, which
// suggests the nearest.
func (c Command) Resolve(names *config.Config) (Command, error) {
	if c.Verb == Help {
		return c, nil
	}
	environment, err := names.Environment(c.Environment)
	if err != nil {
		return c, err
	}
	if c.Loose {
		if c, err = c.tighten(names); err != nil {
			return c, err
		}
	}
	if c.App != "" {
		app, err := names.App(c.App)
		if err != nil {
			return c, err
		}
		if !app.In(c.Environment) {
			return c, fmt.Errorf("%w: %s is not in %s", config.ErrNotAllowed, c.App, c.Environment)
		}
	}
	if c.Ring != "" && !slices.Contains(environment.RingNames(), c.Ring) {
		return c, fmt.Errorf("%w: no ring %q in %s%s", config.ErrUnknown, c.Ring, c.Environment, config.Nearest(c.Ring, environment.RingNames()))
	}
	if c.Verb == Promote {
		return c.source(names, environment)
	}
	return c, nil
}

// tighten takes the first word of a loose reason for the app that it names. What
// names none stays in the reason: then more is held, not less, and the answer says
// what is.
func (c Command) tighten(names *config.Config) (Command, error) {
	c.Loose = false
	first, rest, _ := strings.Cut(c.Reason, " ")
	if _, known := names.Apps[first]; !known || c.App != "" {
		return c, nil
	}
	c.App, c.Reason = first, rest
	if c.Reason == "" {
		return c, &SyntaxError{Verb: Hold, Problem: fmt.Sprintf("no reason: say behind %s why it is held", quoted(first))}
	}
	return c, nil
}

// source fills in the environment that is promoted from.
func (c Command) source(names *config.Config, to config.Environment) (Command, error) {
	switch {
	case c.From != "":
		if _, err := names.Environment(c.From); err != nil {
			return c, err
		}
		return c, names.CheckPair(c.From, c.Environment)
	case len(to.From) > 0: // several must agree, so that any of them tells
		app := names.Apps[c.App]
		c.From = to.From[max(slices.IndexFunc(to.From, app.In), 0)]
	case c.Digest == "":
		return c, &SyntaxError{Verb: Promote, Problem: fmt.Sprintf("%s takes what builds push: say which digest, %s@sha256:…", to.Name, c.App)}
	}
	return c, nil
}
