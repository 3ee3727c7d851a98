package chatops

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"tagboat/config"
	"tagboat/promote"
)

// The limits of a line. A reason is for people: one sentence.
const (
	LineLimit   = 512 // bytes
	ReasonLimit = 200 // characters
)

var (
	// ErrNotCommand is returned for a text that is none of ours: say nothing.
	ErrNotCommand = errors.New("not a command")
	// ErrSyntax is returned, as a *SyntaxError, for a command that is not in the
	// grammar.
	ErrSyntax = errors.New("the command is not understood")
)

// SyntaxError says which word is wrong, and how the verb is written.
type SyntaxError struct {
	Verb    Verb
	Problem string // names the word; it may hold any text of the line
}

// Error names the word.
func (e *SyntaxError) Error() string { return e.Problem }

// Unwrap makes the error an ErrSyntax.
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

var (
	digestGrammar = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	targetGrammar = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`) // a tag, or a commit
)

// FirstLine is the line of a text that may be a command.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimRight(line, "\r \t")
}

// Parse reads the first line of a text. A text that does not begin with one of the
// verbs is ErrNotCommand; a command that is not in the grammar is a *SyntaxError.
// Whether its names exist is Resolve's to say.
func Parse(text string) (Command, error) {
	line := FirstLine(text)
	c := Command{}
	rest, err := c.verb(line)
	if err != nil {
		return Command{}, err
	}
	p := &parser{command: c}
	if err := p.parse(line, rest); err != nil {
		return Command{}, &SyntaxError{Verb: c.Verb, Problem: err.Error()}
	}
	return p.command, nil
}

// verb reads the first word. What only looks like one of ours is somebody else's,
// but a verb that an invisible or foreign character follows was meant.
func (c *Command) verb(line string) (rest string, err error) {
	after, found := strings.CutPrefix(line, "/")
	if !found {
		return "", ErrNotCommand
	}
	end := strings.IndexFunc(after, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		end = len(after)
	}
	c.Verb, rest = Verb(after[:end]), after[end:]
	if !slices.Contains(verbs(), c.Verb) {
		return "", ErrNotCommand
	}
	if rest != "" && rest[0] > ' ' && rest[0] < utf8.RuneSelf {
		return "", ErrNotCommand // /promote-now, /release.md, /hold/it
	}
	return rest, nil
}

// parser fills a command from its words.
type parser struct {
	command Command
	words   []word
	seen    []string // clauses and options that were read
}

func (p *parser) parse(line, rest string) error {
	if len(line) > LineLimit {
		return fmt.Errorf("the line has %d bytes, at most %d are read", len(line), LineLimit)
	}
	var err error
	if p.words, err = split(rest); err != nil {
		return err
	}
	switch p.command.Verb {
	case Promote, Rollback:
		return p.promotion()
	case Hold:
		return p.hold()
	case Release:
		return p.release()
	}
	return p.end()
}

// next takes a word; what says what is missing without one.
func (p *parser) next(what string) (word, error) {
	if len(p.words) == 0 {
		return word{}, fmt.Errorf("%s is missing at the end", what)
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, nil
}

func (p *parser) end() error {
	if len(p.words) > 0 {
		return fmt.Errorf("%s is one word too many", p.words[0])
	}
	return nil
}

// promotion reads APP and then clauses and options in any order, each once.
func (p *parser) promotion() error {
	w, err := p.next("the app")
	if err != nil {
		return err
	}
	app, digest, pinned := strings.Cut(w.text, "@")
	if p.command.Verb == Rollback && pinned {
		return fmt.Errorf("%s has a digest: write %s, and the digest behind to", w, quoted(app))
	}
	if p.command.App, err = name("app", word{app, w.quoted}, config.CheckApp); err != nil {
		return err
	}
	if pinned && !digestGrammar.MatchString(digest) {
		return fmt.Errorf("%s is no digest: write all of it, sha256: and 64 characters of 0-9 and a-f", quoted(digest))
	}
	p.command.Digest = digest
	for len(p.words) > 0 {
		if err := p.clause(); err != nil {
			return err
		}
	}
	if p.command.Environment == "" {
		before := "to"
		if p.command.Verb == Rollback {
			before = "in"
		}
		return fmt.Errorf("no environment: write %s ENV", before)
	}
	return nil
}

// clause reads one clause or option.
func (p *parser) clause() error {
	w := p.words[0]
	p.words = p.words[1:]
	known := slices.Concat(p.command.Verb.clauses(), p.command.Verb.options())
	if w.quoted || !slices.Contains(known, w.text) {
		return fmt.Errorf("%s is no word of this command%s", w, config.Nearest(w.text, known))
	}
	if slices.Contains(p.seen, w.text) {
		return fmt.Errorf("%s stands there twice", w)
	}
	p.seen = append(p.seen, w.text)
	if w.text == "--dry-run" {
		p.command.DryRun = true
		return nil
	}
	value, err := p.next("what belongs to " + w.text)
	if err != nil {
		return err
	}
	return p.value(w.text, value)
}

func (p *parser) value(clause string, w word) (err error) {
	c := &p.command
	switch {
	case clause == "--reason":
		c.Reason, err = reason(w)
	case clause == "from":
		c.From, err = name("environment", w, config.CheckName)
	case clause == "ring":
		c.Ring, err = name("ring", w, config.CheckName)
	case clause == "to" && c.Verb == Rollback:
		if w.quoted || isKeyword(w.text) || !digestGrammar.MatchString(w.text) && !targetGrammar.MatchString(w.text) {
			return fmt.Errorf("%s is neither a digest (sha256:…), a tag nor a commit", w)
		}
		c.To = w.text
	default: // to of a promotion, in of a rollback
		c.Environment, err = name("environment", w, config.CheckName)
	}
	return err
}

// hold reads ENV [APP] [until T] REASON. A reason in quotes says by itself which
// words are before it; one without may begin with an app's name.
func (p *parser) hold() error {
	if err := p.environment(); err != nil {
		return err
	}
	if len(p.words) > 1 && (p.words[1].is("until") || p.words[1].quoted) && !p.words[0].is("until") {
		if err := p.app(); err != nil {
			return err
		}
	}
	if len(p.words) > 0 && p.words[0].is("until") {
		if err := p.until(); err != nil {
			return err
		}
	}
	if len(p.words) == 0 {
		return errors.New("no reason: say at the end why it is held")
	}
	if p.words[0].quoted {
		w := p.words[0]
		p.words = p.words[1:]
		var err error
		if p.command.Reason, err = reason(w); err != nil {
			return err
		}
		return p.end()
	}
	return p.loose()
}

// loose reads a reason without quotes, to the end of the line.
func (p *parser) loose() error {
	var text []string
	for _, w := range p.words {
		if w.quoted || strings.HasPrefix(w.text, "--") {
			return fmt.Errorf("%s stands in the reason: put the whole reason in quotes", w)
		}
		text = append(text, w.text)
	}
	whole := strings.Join(text, " ")
	var err error
	p.command.Loose = true
	p.command.Reason, err = reason(word{whole, true})
	return err
}

func (p *parser) release() error {
	if err := p.environment(); err != nil {
		return err
	}
	if len(p.words) > 0 {
		if err := p.app(); err != nil {
			return err
		}
	}
	return p.end()
}

func (p *parser) environment() error {
	w, err := p.next("the environment")
	if err == nil {
		p.command.Environment, err = name("environment", w, config.CheckName)
	}
	return err
}

func (p *parser) app() error {
	w, err := p.next("the app")
	if err == nil {
		p.command.App, err = name("app", w, config.CheckApp)
	}
	return err
}

func (p *parser) until() error {
	p.words = p.words[1:]
	w, err := p.next("the time behind until")
	if err != nil {
		return err
	}
	if _, _, err := promote.ParseUntil(w.text); err != nil || w.quoted {
		return fmt.Errorf("%s is no time: write 2026-12-01T08:00:00Z, 2026-12-01, or a duration such as 2h or 3d", w)
	}
	p.command.Until = w.text
	return nil
}

// name reads a word that names something.
func name(what string, w word, check func(string) error) (string, error) {
	switch {
	case w.quoted:
		return "", fmt.Errorf("%s is in quotes: write the %s without", w, what)
	case isKeyword(w.text):
		return "", fmt.Errorf("%s stands where the %s belongs", w, what)
	case strings.ContainsFunc(w.text, foreign):
		r, _ := utf8.DecodeRuneInString(w.text[strings.IndexFunc(w.text, foreign):])
		return "", fmt.Errorf("%s has a %c (%U), which no name has: names are plain ASCII", w, r, r)
	case w.text == "" || check(w.text) != nil:
		return "", fmt.Errorf("%s cannot be the name of an %s: names have a-z, 0-9, '-' (an app's also '.' and '_')", w, what)
	}
	return w.text, nil
}

// foreign is a letter that may look like one of ours and is another.
func foreign(r rune) bool { return r >= utf8.RuneSelf }

func reason(w word) (string, error) {
	switch {
	case !w.quoted:
		return "", fmt.Errorf(`%s: put the reason in quotes: --reason "…"`, w)
	case w.text == "":
		return "", errors.New("the reason is empty")
	case utf8.RuneCountInString(w.text) > ReasonLimit:
		return "", fmt.Errorf("the reason has more than %d characters", ReasonLimit)
	}
	return w.text, nil
}
