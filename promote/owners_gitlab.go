package promote

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The rules of GitLab's CODEOWNERS are those of docs.gitlab.com, "Syntax of
// CODEOWNERS file" and "Advanced CODEOWNERS configuration": sections each ask for
// an approval of their own, in each the last entry that matches counts, "!" takes
// paths out of its section for good, and patterns are those of Ruby's File.fnmatch
// with dot files, where "**" stands for directories alone.

var (
	gitlabHeading = regexp.MustCompile(`^(\^)?\[([^\]]+)\](?:\[([\s\d]*)\])?(.*)$`)
	gitlabOwner   = regexp.MustCompile(`^@@?[A-Za-z0-9_][A-Za-z0-9_./+-]*$`)
)

// gitlabSection is a section; the first has no name.
type gitlabSection struct {
	name      string
	entries   []gitlabEntry
	excluded  []*regexp.Regexp
	defaults  []string
	approvals int
	optional  bool
}

// gitlabEntry keeps what its heading said: a section may have several.
type gitlabEntry struct {
	pattern    string
	expression *regexp.Regexp
	owners     []string
	approvals  int
	optional   bool
}

// gitlab reads GitLab's file.
func (o *owning) gitlab(content []byte, paths []string) {
	sections := []*gitlabSection{{approvals: 1}}
	current := sections[0]
	o.lines(content, func(n int, line string) {
		if m := gitlabHeading.FindStringSubmatch(line); m != nil {
			name := strings.TrimSpace(m[2])
			i := slices.IndexFunc(sections, func(s *gitlabSection) bool { return s.name != "" && strings.EqualFold(s.name, name) })
			if i < 0 {
				i = len(sections)
				sections = append(sections, &gitlabSection{name: name})
			}
			current = sections[i]
			current.optional, current.defaults, current.approvals = m[1] == "^", gitlabOwners(m[4]), 1
			if n, err := strconv.Atoi(strings.TrimSpace(m[3])); err == nil && n > 1 {
				current.approvals = n
			}
			return
		}
		if err := current.add(line); err != nil {
			o.passOver(n, err.Error())
		}
	})
	for _, s := range sections {
		s.ask(o, paths)
	}
}

// gitlabOwners keeps the words that can be owners; GitLab ignores others.
func gitlabOwners(text string) []string {
	return slices.DeleteFunc(strings.Fields(text), func(who string) bool {
		return !gitlabOwner.MatchString(who) && !emailOwner.MatchString(who)
	})
}

// add takes in an entry. One that comes again takes the place of the first.
func (s *gitlabSection) add(line string) error {
	pattern, rest := cutUnescaped(line)
	pattern, exclude := strings.CutPrefix(pattern, "!")
	expression, err := gitlabPattern(pattern)
	if err != nil {
		return err
	}
	if exclude {
		s.excluded = append(s.excluded, expression)
		return nil
	}
	e := gitlabEntry{pattern, expression, gitlabOwners(rest), s.approvals, s.optional}
	if strings.TrimSpace(rest) == "" {
		e.owners = s.defaults
	}
	if i := slices.IndexFunc(s.entries, func(known gitlabEntry) bool { return known.pattern == pattern }); i >= 0 {
		s.entries[i] = e
		return nil
	}
	s.entries = append(s.entries, e)
	return nil
}

// ask notes what the section asks for. It is optional where all its headings are.
func (s *gitlabSection) ask(o *owning, paths []string) {
	optional := !slices.ContainsFunc(s.entries, func(e gitlabEntry) bool { return !e.optional })
	entries := slices.Clone(s.entries)
	slices.Reverse(entries)
	for _, p := range paths {
		rooted := "/" + p
		if slices.ContainsFunc(s.excluded, func(x *regexp.Regexp) bool { return x.MatchString(rooted) }) {
			continue
		}
		i := slices.IndexFunc(entries, func(e gitlabEntry) bool { return e.expression.MatchString(rooted) })
		if i >= 0 && len(entries[i].owners) > 0 { // without owners, GitLab approves by itself
			o.add(Demand{Owners: entries[i].owners, Section: s.name, Approvals: entries[i].approvals, Optional: optional}, p)
		}
	}
}

// gitlabPattern makes an expression for a path that begins with a slash.
func gitlabPattern(pattern string) (*regexp.Regexp, error) {
	if strings.HasPrefix(pattern, `\#`) {
		pattern = pattern[1:]
	}
	if pattern == "*" {
		pattern = "/**/*"
	}
	if !strings.HasPrefix(pattern, "/") {
		pattern = "/**/" + pattern
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**/*"
	}
	return regexp.Compile(`^/` + globExpression(strings.Split(pattern[1:], "/"), false, true) + `$`)
}
