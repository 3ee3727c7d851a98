package chatops

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"tagboat/promote"
)

// Teller writes answers for one channel.
type Teller struct {
	// Redact hides the run's secrets.
	Redact func(string) string
	// RunURL is the job's page; "" where there is none.
	RunURL string
	// Markdown: code is set in code spans, so that nothing in it is a link, a mention
	// or HTML; else the text is plain.
	Markdown bool
}

// wordsLimit is how many characters of one text of others are told. A whole answer
// is cut where the forge's limit is: that must not be inside of a code span, whose
// rest would be Markdown.
const wordsLimit = 2000

// code is a text of others, escaped as the channel needs it.
func (t Teller) code(s string) string {
	s = cutText(t.Redact(s), wordsLimit)
	if t.Markdown {
		return promote.Code(s)
	}
	return strings.Join(strings.Fields(plain(s)), " ")
}

// Text is the whole answer: what happened to what, on what evidence, and what to do
// next. It repeats nothing of the line that was not understood as a word.
func (t Teller) Text(a Answer) string {
	var b strings.Builder
	switch {
	case a.Help:
		t.usage(&b, HelpText())
	case a.Err != nil:
		t.failed(&b, a)
	case a.Hold != nil:
		t.hold(&b, a)
	}
	for i, r := range a.Results {
		t.promotion(&b, a.Command, r, a.Errors[i])
	}
	if t.RunURL != "" {
		fmt.Fprintf(&b, "\nRun: %s\n", t.RunURL)
	}
	return strings.TrimSpace(b.String())
}

func (t Teller) usage(b *strings.Builder, text string) {
	if t.Markdown {
		fmt.Fprintf(b, "```\n%s\n```\n", text) // our own words
		return
	}
	b.WriteString(text + "\n")
}

func (t Teller) failed(b *strings.Builder, a Answer) {
	var syntax *SyntaxError
	text := t.code(a.Err.Error())
	switch {
	case errors.As(a.Err, &syntax):
		fmt.Fprintf(b, "Not understood: %s\nWrite:\n", t.code(syntax.Problem))
		t.usage(b, syntax.Verb.Usage())
	case errors.Is(a.Err, ErrNoRight):
		fmt.Fprintf(b, "Refused: %s\nWho may write to the config repository, and is among the promoters where the environment names some, can ask for it.\n", text)
	case errors.Is(a.Err, ErrStale):
		fmt.Fprintf(b, "Refused: %s\nWrite a new comment.\n", text)
	case errors.Is(a.Err, ErrEdited):
		fmt.Fprintf(b, "Refused: %s\nWrite a new comment: what is edited later is not obeyed.\n", text)
	case a.refused():
		fmt.Fprintf(b, "Refused, nothing was changed: %s\n", text)
	default:
		fmt.Fprintf(b, "Failed: %s\nGiving the command again does no harm.\n", text)
	}
}

func (t Teller) hold(b *strings.Builder, a Answer) {
	h := a.Hold.Hold
	fmt.Fprintf(b, "%s: %s\n", bold(t, string(a.Hold.Outcome)), t.code(h.Target()))
	if a.Hold.Outcome == promote.HoldNone {
		b.WriteString("There was nothing to release.\n")
	} else if a.Command.Verb == Hold {
		fmt.Fprintf(b, "Reason: %s\n", t.code(h.Reason))
		fmt.Fprintf(b, "Release it with %s\n", t.code(Command{Verb: Release, Environment: h.Environment, App: h.App}.String()))
	}
	for _, w := range a.Hold.Warnings {
		fmt.Fprintf(b, "Warning: %s\n", t.code(w))
	}
}

func bold(t Teller, s string) string {
	if t.Markdown {
		return "**" + s + "**"
	}
	return s
}

func (t Teller) promotion(b *strings.Builder, c Command, r promote.Result, err error) {
	to := strings.TrimSuffix(r.Environment+"."+r.Ring, ".")
	fmt.Fprintf(b, "%s: %s to %s\n", bold(t, string(outcomeOf(r, err))), t.code(r.App), t.code(to))
	item := func(format string, args ...any) { fmt.Fprintf(b, "- "+format+"\n", args...) }
	if err != nil {
		item("%s", t.code(err.Error()))
	}
	if r.Reason != "" {
		item("%s", t.code(r.Reason))
	}
	for _, change := range r.Changes {
		from := cmp.Or(change.From.Tag, change.From.Digest, "new")
		item("%s: %s to %s", t.code(change.Entry), t.code(from), t.code(strings.TrimLeft(change.To.Tag+"@"+change.To.Digest, "@")))
	}
	for _, g := range r.Gates {
		item("%s %s: %s", g.Name, g.Status, t.code(g.Evidence))
	}
	for _, w := range r.Warnings {
		item("warning: %s", t.code(w))
	}
	if r.PullRequest != nil && r.PullRequest.URL != "" {
		item("%s", r.PullRequest.URL)
	}
	if next := next(r, err, c); next != "" {
		b.WriteString(next + "\n")
	}
}

func outcomeOf(r promote.Result, err error) promote.Outcome {
	if err != nil {
		return promote.Failed
	}
	return r.Outcome
}

// next says what there is to do.
func next(r promote.Result, err error, c Command) string {
	switch outcomeOf(r, err) {
	case promote.Failed:
		return "Nothing was promoted. Mend the cause and give the command again."
	case promote.Opened, promote.Updated, promote.Unchanged:
		return "A person reviews and merges it."
	case promote.Blocked:
		return "Nothing was written. Give the command again when that has passed."
	case promote.Declined:
		return "A person has said no to this digest. Promote another one, or reopen what was closed."
	case promote.Planned:
		return "That was a dry run: nothing was written."
	}
	return ""
}
