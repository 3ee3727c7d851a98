package promote

import (
	"cmp"
	"fmt"
	"strings"

	"tagboat/scm"
)

const (
	// listedCommits bounds the commits that a body lists of one source.
	listedCommits = 30
	// listedSources bounds the sources that a body tells of.
	listedSources = 5
)

// sourceView is one source in the body: a line, and the commits folded below it.
type sourceView struct {
	Line, Title string
	Items       []string
}

// sourceViews tells at most so many commits of each source; the line of each stays.
func sourceViews(all []Commits, commits int) []sourceView {
	var out []sourceView
	for _, c := range all[:min(len(all), listedSources)] {
		out = append(out, viewOf(c, commits))
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, sourceView{Line: fmt.Sprintf("%d more pairs of commits", more)})
	}
	return out
}

func viewOf(c Commits, commits int) sourceView {
	from, to := Code(short(c.From)), Code(short(c.To))
	compare := Code(short(c.From) + "…" + short(c.To))
	if c.Relation == Behind {
		compare = Code(short(c.To) + "…" + short(c.From))
	}
	if link := webURL(c.URL); link != "" {
		compare = "[" + compare + "](" + link + ")"
	}
	where := Code(c.Repository)
	v := sourceView{Title: "What comes, newest first"}
	span := c.Come
	switch c.Relation {
	case Ahead:
		v.Line = fmt.Sprintf("%s of %s, %s", countOf(c.Come), where, compare)
	case Behind:
		span, v.Title = c.Gone, "What goes, newest first"
		v.Line = fmt.Sprintf("⚠️ a step back in %s: %s is %s behind %s, which runs now (%s)", where, to, countOf(c.Gone), from, compare)
	case Diverged:
		v.Line = fmt.Sprintf("⚠️ %s does not follow from %s, which runs now: in %s, what comes is %s, what goes %s (%s)", to, from, where, countOf(c.Come), countOf(c.Gone), compare)
	case SameCommit:
		v.Line = fmt.Sprintf("the same commit %s of %s, built again", to, where)
		return v
	default:
		v.Line = fmt.Sprintf("the commits of %s are not known: %s", where, Code(c.Reason))
	}
	if commits > 0 {
		v.Items = listCommits(span, commits)
	}
	return v
}

func countOf(s scm.Span) string {
	words := fmt.Sprintf("%d commits", s.Count)
	if s.Count == 1 {
		words = "1 commit"
	}
	if s.AtLeast {
		words = "at least " + words
	}
	return words
}

// Listed gives the first of a span's commits, without its merges, and how many are
// left: merges that were passed over, and others.
func Listed(s scm.Span, limit int) (list []scm.Commit, merges, more int) {
	for _, c := range s.Commits {
		switch {
		case len(list) == limit:
			return list, merges, s.Count - len(list) - merges
		case len(c.Parents) > 1:
			merges++
		default:
			list = append(list, c)
		}
	}
	return list, merges, s.Count - len(list) - merges
}

func listCommits(s scm.Span, limit int) []string {
	list, merges, more := Listed(s, limit)
	var out []string
	for _, c := range list {
		item := Code(short(oneLine(c.SHA)))
		if link := webURL(c.URL); link != "" {
			item = "[" + item + "](" + link + ")"
		}
		if words := span(cut(Subject(c), 120)); words != "" {
			item += " " + words
		}
		if by := span(cut(oneLine(c.Author), 40)); by != "" {
			item += " by " + by
		}
		out = append(out, item)
	}
	if rest := left(merges, more, s.AtLeast); rest != "" {
		out = append(out, rest)
	}
	return out
}

// left says what a list of commits leaves out.
func left(merges, more int, atLeast bool) string {
	var words []string
	switch {
	case atLeast:
		words = append(words, fmt.Sprintf("at least %d more", max(more, 1)))
	case more > 0:
		words = append(words, fmt.Sprintf("%d more", more))
	}
	switch {
	case merges == 1:
		words = append(words, "1 merge")
	case merges > 1:
		words = append(words, fmt.Sprintf("%d merges", merges))
	}
	if len(words) == 0 {
		return ""
	}
	return "and " + strings.Join(words, " and ")
}

// Subject is the first line of a commit's message, without what could hide in it.
func Subject(c scm.Commit) string {
	first, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return cmp.Or(oneLine(first), "(no subject)")
}
