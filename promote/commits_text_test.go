package promote

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
	"tagboat/registry"
	"tagboat/scm"
)

func spanOf(n int) scm.Span {
	s := scm.Span{Count: n}
	for i := range min(n, scm.ComparedCommits) {
		s.Commits = append(s.Commits, scm.Commit{
			SHA: fmt.Sprintf("%040x", n-i), Message: fmt.Sprintf("Change %d\n\nWhy.", n-i), Author: "mei", URL: "https://git.example/c", Parents: []string{"p"},
		})
	}
	return s
}

func TestSourceViews(t *testing.T) {
	c := Commits{Repository: "acme/todo", URL: "https://git.example/acme/todo/compare/a...b", From: strings.Repeat("a", 40), To: strings.Repeat("b", 40)}
	with := func(r Relation, come, gone scm.Span) Commits {
		c := c
		c.Relation, c.Come, c.Gone = r, come, gone
		return c
	}
	merged := spanOf(2)
	merged.Commits[0].Parents = []string{"p", "q"}
	vague := spanOf(50)
	vague.AtLeast = true
	strange := scm.Span{Count: 1, Commits: []scm.Commit{{SHA: "x\n`@mei`", Message: "\n", URL: "javascript:alert(1)"}}}
	unknown := Commits{Repository: "acme/todo", Relation: RelationUnknown, Reason: "it did not answer within 5s"}
	for name, test := range map[string]struct {
		of          Commits
		line, title string
		items       int
		last        string
	}{
		"one commit":  {with(Ahead, spanOf(1), scm.Span{}), "1 commit of `acme/todo`, [`aaaaaaa…bbbbbbb`](https://git.example/acme/todo/compare/a...b)", "What comes, newest first", 1, "[`0000000`](https://git.example/c) `Change 1` by `mei`"},
		"merges":      {with(Ahead, merged, scm.Span{}), "2 commits of `acme/todo`, [`aaaaaaa…bbbbbbb`](https://git.example/acme/todo/compare/a...b)", "What comes, newest first", 2, "and 1 merge"},
		"many":        {with(Ahead, spanOf(1000), scm.Span{}), "1000 commits of `acme/todo`, [`aaaaaaa…bbbbbbb`](https://git.example/acme/todo/compare/a...b)", "What comes, newest first", 31, "and 970 more"},
		"not told":    {with(Ahead, vague, scm.Span{}), "at least 50 commits of `acme/todo`, [`aaaaaaa…bbbbbbb`](https://git.example/acme/todo/compare/a...b)", "What comes, newest first", 31, "and at least 20 more"},
		"back":        {with(Behind, scm.Span{}, spanOf(3)), "⚠️ a step back in `acme/todo`: `bbbbbbb` is 3 commits behind `aaaaaaa`, which runs now ([`bbbbbbb…aaaaaaa`](https://git.example/acme/todo/compare/a...b))", "What goes, newest first", 3, "[`0000000`](https://git.example/c) `Change 1` by `mei`"},
		"diverged":    {with(Diverged, spanOf(2), spanOf(1)), "⚠️ `bbbbbbb` does not follow from `aaaaaaa`, which runs now: in `acme/todo`, what comes is 2 commits, what goes 1 commit ([`aaaaaaa…bbbbbbb`](https://git.example/acme/todo/compare/a...b))", "What comes, newest first", 2, "[`0000000`](https://git.example/c) `Change 1` by `mei`"},
		"built again": {with(SameCommit, scm.Span{}, scm.Span{}), "the same commit `bbbbbbb` of `acme/todo`, built again", "What comes, newest first", 0, ""},
		"not known":   {unknown, "the commits of `acme/todo` are not known: `it did not answer within 5s`", "What comes, newest first", 0, ""},
		"strange":     {with(Ahead, strange, scm.Span{}), "1 commit of `acme/todo`, [`aaaaaaa…bbbbbbb`](https://git.example/acme/todo/compare/a...b)", "What comes, newest first", 1, "`` x `@mei `` `(no subject)`"},
	} {
		t.Run(name, func(t *testing.T) {
			v := sourceViews([]Commits{test.of}, listedCommits)[0]
			last := ""
			if len(v.Items) > 0 {
				last = v.Items[len(v.Items)-1]
			}
			got := []any{v.Line, v.Title, len(v.Items), last}
			if diff := cmp.Diff([]any{test.line, test.title, test.items, test.last}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if all := sourceViews(make([]Commits, 8), 0); len(all) != listedSources+1 || all[listedSources].Line != "3 more pairs of commits" {
		t.Errorf("of many sources: %+v", all)
	}
}

func TestWhyUnknown(t *testing.T) {
	p := pair{source: "https://git.example/acme/todo", from: strings.Repeat("a", 40), to: strings.Repeat("b", 40)}
	for want, err := range map[string]error{
		"its forge tells no difference":         nil,
		"it did not answer within 5s":           fmt.Errorf("compare: %w", context.DeadlineExceeded),
		"it did not answer within":              scm.ErrUnavailable,
		`a line "git.example/acme/todo TOKEN" `: scm.ErrDenied,
		"if it is private":                      fmt.Errorf("x: %w", scm.ErrNotFound),
		"it is on no forge":                     errNoForge,
	} {
		if got := whyUnknown(err, p); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestSourceAddress(t *testing.T) {
	config := scm.About{Forge: scm.GitLab, Host: "git.acme.example", Name: "acme/config", URL: "https://git.acme.example/git/acme/config"}
	for source, want := range map[string][2]string{
		"github.com/acme/todo":            {"https://github.com/acme/todo", scm.GitHub},
		"https://codeberg.org/acme/todo":  {"https://codeberg.org/acme/todo", scm.Gitea},
		"https://other.example/acme/todo": {"https://other.example/acme/todo", scm.GitLab},
		"other.example:8443/acme/todo":    {"https://other.example:8443/acme/todo", scm.GitLab},
		"git.acme.example/git/acme/todo":  {"https://git.acme.example/git/acme/todo", scm.GitLab},
		"acme/todo":                       {"https://git.acme.example/git/acme/todo", scm.GitLab},
		"acme/team/todo":                  {"https://git.acme.example/git/acme/team/todo", scm.GitLab},
	} {
		address, forge := sourceAddress(source, config)
		if diff := cmp.Diff(want, [2]string{address, forge}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

// lateRegistry tells nothing the first time.
type lateRegistry struct {
	Registry
	asked int
}

func (l *lateRegistry) Facts(context.Context, image.Reference) (registry.Facts, error) {
	if l.asked++; l.asked == 1 {
		return registry.Facts{}, context.DeadlineExceeded
	}
	return registry.Facts{Revision: "r"}, nil
}

func TestFactsAreAskedOnceButForFailures(t *testing.T) {
	late := &lateRegistry{}
	r := &run{Promoter: &Promoter{Registry: late}}
	ref := image.Reference{Repository: "registry.acme.example/todo", Digest: "sha256:" + strings.Repeat("0", 64)}
	if _, err := r.factsAt(t.Context(), ref); err == nil {
		t.Error("the failure was not told")
	}
	for range 2 {
		if facts, err := r.factsAt(t.Context(), ref); err != nil || facts.Revision != "r" {
			t.Errorf("%+v, %v", facts, err)
		}
	}
	if late.asked != 2 {
		t.Errorf("asked %d times, want 2", late.asked)
	}
}

func TestSourceBesideANumberedProject(t *testing.T) {
	address, _ := sourceAddress("acme/todo", scm.About{Forge: scm.GitLab, Host: "git.acme.example", Name: "4711", URL: "https://git.acme.example/projects/4711"})
	if want := "https://git.acme.example/acme/todo"; address != want {
		t.Errorf("%s, want %s", address, want)
	}
}

// FuzzCommits: whatever a commit says, outside of code spans stands what Tagboat
// wrote, in one line.
func FuzzCommits(f *testing.F) {
	for _, s := range []string{
		"Fix #12, thanks @mei", "`code` and ``more``", "<img src=x onerror=alert(1)>", "[x](https://evil.example)", "</details>\n\n# Approved",
		"<!-- tagboat: {} -->", "a | b\r\n| --- |", "\u202egnihtemos", "```", "`", "https://evil.example", "\x00\x1b[31m", "- [ ] `",
	} {
		f.Add(s, s, s)
	}
	wrote := regexp.MustCompile(`^(\[C\]\((?i:https?)://[^ ()<>\\"'` + "`" + `]+\)|C)( C)*( by C( C)*)?$`)
	f.Fuzz(func(t *testing.T, message, author, link string) {
		c := scm.Commit{SHA: strings.Repeat("a", 40), Message: message, Author: author, URL: link}
		for _, item := range listCommits(scm.Span{Count: 1, Commits: []scm.Commit{c}}, 1) {
			if strings.ContainsAny(item, "\n\r") || strings.Contains(item, "<!--") || !wrote.MatchString(withoutCode(item)) {
				t.Errorf("%q: outside of code stands %q", item, withoutCode(item))
			}
		}
	})
}

var ticks = regexp.MustCompile("`+")

// withoutCode puts C for each code span, as CommonMark finds them: from a run of
// backticks to the next of the same length.
func withoutCode(s string) string {
	var out strings.Builder
	for {
		open := ticks.FindStringIndex(s)
		if open == nil {
			return out.String() + s
		}
		rest, n := s[open[1]:], open[1]-open[0]
		end := -1
		for _, at := range ticks.FindAllStringIndex(rest, -1) {
			if at[1]-at[0] == n {
				end = at[1]
				break
			}
		}
		if end < 0 {
			return out.String() + s
		}
		out.WriteString(s[:open[0]] + "C")
		s = rest[end:]
	}
}
