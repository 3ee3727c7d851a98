package record

import (
	"fmt"
	"regexp"
	"strings"
)

// BranchLimit is how long a head branch may be, in characters. Forges allow
// about 250; tools that make names of file systems or hosts of them need less.
const BranchLimit = 100

var (
	nameGrammar = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	appGrammar  = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)
)

// Branch is the head branch of a promotion: tagboat/<environment>[.<ring>]/<app>.
// A ring is no path element of its own, which would collide with an app of its
// name. Names that make no lawful branch are an error that says which and why.
func Branch(environment, ring, app string) (string, error) {
	if err := CheckName("environment", environment); err != nil {
		return "", err
	}
	if ring != "" {
		if err := CheckName("ring", ring); err != nil {
			return "", err
		}
		environment += "." + ring
	}
	if err := CheckApp(app); err != nil {
		return "", err
	}
	branch := "tagboat/" + environment + "/" + app
	if len(branch) > BranchLimit {
		return "", fmt.Errorf("the head branch %s would have %d characters, at most %d are allowed: choose a shorter name for the app", branch, len(branch), BranchLimit)
	}
	return branch, nil
}

// CheckName says what is wrong with the name of an environment or ring (what), or nothing.
func CheckName(what, name string) error {
	if !nameGrammar.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of an %s: use a-z, 0-9 and '-', beginning and ending with a letter or digit", name, what)
	}
	return nil
}

// CheckApp says what is wrong with an app's name, or nothing. Git forbids ".."
// and the ending ".lock" in a branch (git-check-ref-format).
func CheckApp(name string) error {
	if !appGrammar.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".lock") {
		return fmt.Errorf("%q cannot be the name of an app: use a-z, 0-9, '-', '.' and '_', beginning and ending with a letter or digit, without '..' and not ending in .lock", name)
	}
	return nil
}
