package promote

import (
	"regexp"
	"slices"
	"strings"
)

// Gitea's and Forgejo's CODEOWNERS has regular expressions, and every rule that
// matches asks its owners for a review; the rules are those of Gitea's
// models/issues and docs.gitea.com, "Code Owners".

// gitea reads Gitea's file.
func (o *owning) gitea(content []byte, paths []string) {
	o.lines(content, func(n int, line string) {
		words := giteaWords(line)
		if len(words) < 2 {
			o.passOver(n, "it wants an expression and an owner")
			return
		}
		pattern, negative := strings.CutPrefix(words[0], "!")
		expression, err := regexp.Compile("^" + strings.TrimPrefix(pattern, "/") + "$")
		if err != nil {
			o.passOver(n, "its expression cannot be read here, though Gitea may know it: "+cut(err.Error(), 200))
			return
		}
		var owners []string
		for _, who := range words[1:] {
			if who = "@" + strings.TrimPrefix(who, "@"); !slices.Contains(owners, who) {
				owners = append(owners, who)
			}
		}
		for _, p := range paths {
			if expression.MatchString(p) != negative {
				o.add(Demand{Owners: owners, Approvals: 1}, p)
			}
		}
	})
}

// giteaWords parts a line as Gitea does: a backslash takes the next character as it
// is, also the second backslash of an expression's own escape.
func giteaWords(line string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	escaped := false
	for _, c := range line {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\':
			escaped = true
		case c == '#':
			end()
			return words
		case c == ' ' || c == '\t':
			end()
		default:
			word.WriteRune(c)
		}
	}
	end()
	return words
}
