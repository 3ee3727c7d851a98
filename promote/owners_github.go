package promote

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The rules of GitHub's CODEOWNERS are those of docs.github.com, "About code
// owners": patterns as in .gitignore, without "!", "[ ]" and an escaped "#"; the
// last line that matches counts, also one without owners; a line that cannot be
// read is skipped.

var (
	githubOwner = regexp.MustCompile(`^@[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9._-]+)?$`)
	emailOwner  = regexp.MustCompile(`^[^\s@]+@[^\s@]+\.[^\s@.]+$`)
)

// github reads GitHub's file.
func (o *owning) github(content []byte, paths []string) {
	type rule struct {
		expression *regexp.Regexp
		owners     []string
	}
	var rules []rule
	o.lines(content, func(n int, line string) {
		pattern, owners := githubLine(line)
		expression, err := githubPattern(pattern)
		if err != nil {
			o.passOver(n, err.Error())
			return
		}
		for _, who := range owners {
			if !githubOwner.MatchString(who) && !emailOwner.MatchString(who) {
				o.passOver(n, strconv.Quote(cut(who, 100))+" is no owner")
				return
			}
		}
		rules = append(rules, rule{expression, owners})
	})
	slices.Reverse(rules)
	for _, p := range paths {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.expression.MatchString(p) })
		if i >= 0 && len(rules[i].owners) > 0 {
			o.add(Demand{Owners: rules[i].owners, Approvals: 1}, p)
		}
	}
}

// githubLine parts a line into its pattern and owners. A space in the pattern is
// escaped; "#" begins a comment.
func githubLine(line string) (pattern string, owners []string) {
	line, _, _ = strings.Cut(line, "#")
	pattern, rest := cutUnescaped(line)
	return pattern, strings.Fields(rest)
}

// cutUnescaped parts a line at the first white space that no backslash escapes.
func cutUnescaped(line string) (before, after string) {
	escaped := false
	for i, c := range line {
		if !escaped && (c == ' ' || c == '\t') {
			return line[:i], line[i:]
		}
		escaped = c == '\\' && !escaped
	}
	return line, ""
}

// githubPattern makes an expression for whole paths. A pattern with a slash before
// its end is taken from the top, another at any depth; a directory stands for all
// that is in it, but "docs/*" for the files right in docs alone.
func githubPattern(pattern string) (*regexp.Regexp, error) {
	switch {
	case strings.HasPrefix(pattern, "!"):
		return nil, errors.New("GitHub does not take a pattern back with '!'")
	case strings.ContainsAny(pattern, "[]"):
		return nil, errors.New("GitHub knows no '[' in a pattern")
	case strings.Contains(pattern, "***"):
		return nil, errors.New("three '*' are no pattern")
	case pattern == "" || strings.HasSuffix(strings.ReplaceAll(pattern, `\\`, ""), `\`):
		return nil, errors.New("it has no pattern that can be read")
	case pattern == "/":
		return regexp.MustCompile(`^$`), nil // the top itself is no file
	}
	elements := strings.Split(pattern, "/")
	last := len(elements) - 1
	switch {
	case elements[0] == "":
		elements = elements[1:]
	case last == 0 || last == 1 && elements[1] == "":
		elements = append([]string{"**"}, elements...)
	}
	last = len(elements) - 1
	below := elements[last] != "*" && elements[last] != "**"
	if elements[last] == "" { // what is in a directory
		elements[last], below = "**", false
		if last > 0 && elements[last-1] == "**" {
			elements = slices.Insert(elements, last, "*")
		}
	}
	expression := globExpression(elements, true, false)
	if below {
		expression += `(?:/.+)?`
	}
	return regexp.Compile(`^` + expression + `$`)
}

// globExpression makes an expression of a pattern's elements: "**" is any number
// of directories, and at the end, where deep is set, all that is below. Such
// expressions are matched in linear time, whatever somebody has written.
func globExpression(elements []string, deep, classes bool) string {
	var b strings.Builder
	b.WriteString(`(?s)`)
	for i, e := range elements {
		last := i == len(elements)-1
		switch {
		case e == "**" && !last:
			b.WriteString(`(?:.+/)?`)
			continue
		case e == "**" && deep:
			b.WriteString(`.+`)
		case e == "*":
			b.WriteString(`[^/]+`)
		default:
			b.WriteString(globElement(e, classes))
		}
		if !last {
			b.WriteString("/")
		}
	}
	return b.String()
}

// globElement makes an expression of one element of a pattern.
func globElement(e string, classes bool) string {
	var b strings.Builder
	for i := 0; i < len(e); i++ {
		end := -1
		if classes && e[i] == '[' {
			end = classEnd(e[i:])
		}
		switch {
		case end > 0:
			b.WriteString(class(e[i : i+end+1]))
			i += end
		case e[i] == '*':
			b.WriteString(`[^/]*`)
		case e[i] == '?':
			b.WriteString(`[^/]`)
		case e[i] == '\\' && i+1 < len(e):
			i++
			fallthrough
		default:
			b.WriteString(regexp.QuoteMeta(e[i : i+1]))
		}
	}
	return b.String()
}

// classEnd is where a character class that begins s ends, or -1.
func classEnd(s string) int {
	start := 1
	if len(s) > 1 && (s[1] == '!' || s[1] == '^') {
		start = 2
	}
	if start >= len(s) {
		return -1
	}
	end := strings.IndexByte(s[start+1:], ']')
	if end < 0 {
		return -1
	}
	return start + 1 + end
}

// class makes an expression of a character class, which never matches a slash.
func class(s string) string {
	inner, not := s[1:len(s)-1], ""
	if inner[0] == '!' || inner[0] == '^' {
		inner, not = inner[1:], "^/"
	}
	var b strings.Builder
	for i, c := range inner {
		switch {
		case c == '/':
			continue
		case c == '-' && i > 0 && i < len(inner)-1:
			b.WriteByte('-')
		case strings.ContainsRune(`\]^[-&~`, c):
			b.WriteString(`\` + string(c))
		default:
			b.WriteRune(c)
		}
	}
	expression := "[" + not + b.String() + "]"
	if _, err := regexp.Compile(expression); err != nil {
		return `[^\x00-\x{10FFFF}]` // z-a and the like match nothing
	}
	return expression
}
