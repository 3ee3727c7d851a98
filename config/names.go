package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The grammars of names. Those of environments, rings and apps are what makes a
// lawful head branch, and are record.CheckName and record.CheckApp once more: the
// JSON Schema needs them as expressions, and neither package may import the other.
// A test of cmd/tagboat, which imports both, holds them together.
var (
	nameGrammar     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	appGrammar      = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)
	actorGrammar    = regexp.MustCompile(`^(user|team):[A-Za-z0-9_][A-Za-z0-9._/-]*(\[bot\])?$`)
	loginGrammar    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	slackGrammar    = regexp.MustCompile(`^(T[A-Z0-9]+/)?[UW][A-Z0-9]+$`)
	platformGrammar = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9.]+)?$`)
)

// CheckName says what is wrong with the name of an environment or ring, or nothing.
func CheckName(name string) error {
	if !nameGrammar.MatchString(name) {
		return fmt.Errorf("%q cannot be a name here: use a-z, 0-9 and '-', beginning and ending with a letter or digit", name)
	}
	return nil
}

// CheckApp says what is wrong with the name of an app or group, or nothing.
func CheckApp(name string) error {
	if !appGrammar.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".lock") {
		return fmt.Errorf("%q cannot be the name of an app or group: use a-z, 0-9, '-', '.' and '_', beginning and ending with a letter or digit, without '..' and not ending in .lock", name)
	}
	return nil
}

// checkPath says what is wrong with a path in a repository, or nothing.
func checkPath(p string) error {
	switch {
	case strings.Contains(p, `\`):
		return fmt.Errorf("path %q has a backslash: write it with '/'", p)
	case strings.HasPrefix(p, "/"):
		return fmt.Errorf("path %q is absolute: write it from the top of the repository", p)
	}
	if _, _, file := fileOf(p); !file && strings.Contains(p, "#") {
		return fmt.Errorf("path %q has a '#', which names an object in a file: write FILE.yaml#NAME", p)
	}
	for element := range strings.SplitSeq(p, "/") {
		switch element {
		case "..":
			return fmt.Errorf("path %q leaves the repository or goes back: write it without '..'", p)
		case "**":
			return fmt.Errorf("path %q has '**', which is not read here: write one '*' for each directory", p)
		case ".git":
			return fmt.Errorf("path %q is in git's own directory", p)
		}
	}
	if _, err := path.Match(p, ""); err != nil {
		return fmt.Errorf("path %q has a '[' that does not end", p)
	}
	return nil
}

// placeholders lists the words in braces of a template; a brace that is none is
// an error.
func placeholders(s string) ([]string, error) {
	var words []string
	for rest := s; ; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return words, nil
		}
		end := strings.IndexAny(rest[open+1:], "{}")
		if rest[open] == '}' || end < 0 || rest[open+1+end] == '{' {
			return nil, fmt.Errorf("%q has a brace without its other", s)
		}
		words = append(words, rest[open+1:open+1+end])
		rest = rest[open+end+2:]
	}
}

// checkTemplate says which placeholder of a text is not known, or nothing.
func checkTemplate(s string, known ...string) error {
	words, err := placeholders(s)
	if err != nil {
		return err
	}
	for _, w := range words {
		if !slices.Contains(known, w) {
			return fmt.Errorf("%q has the unknown placeholder {%s}%s", s, w, Nearest(w, known))
		}
	}
	return nil
}

// checkBranch says what is wrong with a branch's name, or nothing. The rules are
// those of git-check-ref-format.
func checkBranch(b string) error {
	bad := strings.ContainsAny(b, " ~^:?*[\\") || strings.Contains(b, "..") || strings.Contains(b, "@{") || b == "@"
	for element := range strings.SplitSeq(b, "/") {
		bad = bad || element == "" || strings.HasPrefix(element, ".") || strings.HasSuffix(element, ".lock")
	}
	if bad || strings.HasPrefix(b, "-") || strings.HasSuffix(b, ".") {
		return fmt.Errorf("%q cannot be the name of a branch", b)
	}
	return nil
}

// checkRepository says what is wrong with the name or URL of a code repository,
// as far as it can be said without a forge, or nothing. A credential is not
// repeated.
func checkRepository(r string) error {
	scheme, rest, isURL := strings.Cut(r, "://")
	if !isURL {
		rest = r
	}
	user, _, hasUser := strings.Cut(rest, "@")
	switch {
	case hasUser && (isURL && scheme != "ssh" || strings.Contains(user, ":")):
		return fmt.Errorf("the URL holds a credential: leave it out; tokens come from the environment")
	case strings.ContainsAny(r, " ?#"):
		return fmt.Errorf("%q has a space or a query", r)
	case isURL && !slices.Contains([]string{"https", "http", "ssh", "file"}, scheme):
		return fmt.Errorf("scheme %q is none of https, http, ssh, file", scheme)
	case strings.HasPrefix(r, "/") || strings.HasPrefix(r, "."):
		return fmt.Errorf("%q is a path: write file:///absolute/path", r)
	case !isURL && !strings.Contains(r, "/"):
		return fmt.Errorf("%q is neither owner/name nor a URL", r)
	}
	return nil
}
