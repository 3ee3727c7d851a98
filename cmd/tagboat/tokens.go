package main

import (
	"fmt"
	"net/url"
	"strings"

	"tagboat/scm"
)

// tokenLine is one line of TAGBOAT_TOKENS: a token and what it is for.
type tokenLine struct{ host, path, token string }

// givenTokens reads TAGBOAT_TOKENS (or the file that TAGBOAT_TOKENS_FILE names), one
// token a line: HOST TOKEN, or HOST/OWNER[/NAME] TOKEN. An error names a line, never
// what stands in it.
func (t *tool) givenTokens() ([]tokenLine, error) {
	text, err := t.fileOr("TAGBOAT_TOKENS")
	if err != nil {
		return nil, err
	}
	var all []tokenLine
	n := 0
	for line := range strings.Lines(text) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		t.hide(fields[len(fields)-1])
		u, err := url.Parse("https://" + fields[0])
		if len(fields) != 2 || err != nil || u.Host == "" || u.User != nil || strings.Contains(fields[0], "://") {
			return nil, misused("TAGBOAT_TOKENS, line %d: write HOST TOKEN or HOST/OWNER/NAME TOKEN", n)
		}
		all = append(all, tokenLine{strings.ToLower(u.Host), strings.Trim(u.Path, "/"), fields[1]})
	}
	return all, nil
}

// tokenFor finds the token that was given for a repository by name: the line with the
// longest path that leads to it. "" where there is none.
func (t *tool) tokenFor(at scm.Location) (string, error) {
	all, err := t.givenTokens()
	if err != nil {
		return "", err
	}
	var best tokenLine
	for _, g := range all {
		leads := g.path == "" || strings.HasPrefix(strings.ToLower(strings.Trim(at.Name, "/"))+"/", strings.ToLower(g.path)+"/")
		if g.host == strings.ToLower(at.Host) && leads && (best.token == "" || len(g.path) > len(best.path)) {
			best = g
		}
	}
	return best.token, nil
}

// mainToken is TAGBOAT_TOKEN, which is for the config repository's host alone: an
// environment may be in a repository elsewhere.
func (t *tool) mainToken(at scm.Location) (string, error) {
	token, err := t.tokenFor(at)
	if err != nil || token != "" {
		return token, err
	}
	if token, err = t.fileOr("TAGBOAT_TOKEN"); err != nil || token == "" {
		return "", err
	}
	t.hide(token)
	if t.isMain(at) {
		return token, nil
	}
	return "", nil
}

// isMain says whether a host is that of the config repository.
func (t *tool) isMain(at scm.Location) bool {
	return t.mainHost == "" || strings.EqualFold(t.mainHost, at.Host)
}

// noToken says which variable to set.
func noToken(at scm.Location, isMain bool, names []string) error {
	if !isMain {
		return fmt.Errorf("%w: no token for %s: it is not the config repository's host, so TAGBOAT_TOKEN is not sent there; add a line \"%s TOKEN\" to TAGBOAT_TOKENS", scm.ErrDenied, at.Host, at.Host)
	}
	return fmt.Errorf("%w: no token for %s: set TAGBOAT_TOKEN, or %s on its own host (or NAME_FILE for a file that holds it)",
		scm.ErrDenied, at.Host, strings.Join(names, " or "))
}
