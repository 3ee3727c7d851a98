package chatops

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// word is a word of a line, or a text in quotes.
type word struct {
	text   string
	quoted bool
}

func (w word) is(text string) bool { return !w.quoted && w.text == text }

// String is the word for an error.
func (w word) String() string { return quoted(w.text) }

// quoted cuts what a message repeats.
func quoted(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		s = string(runes[:80]) + "…"
	}
	return `"` + s + `"`
}

// split cuts a line at spaces. Outside quotes there is only visible ASCII, or text
// of a reason; in quotes any text that people can see, without escapes.
func split(line string) ([]word, error) {
	if err := visible(line); err != nil {
		return nil, err
	}
	var words []word
	for {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			return words, nil
		}
		if line[0] == '"' {
			text, rest, closed := strings.Cut(line[1:], `"`)
			if !closed {
				return nil, errors.New("a quotation mark is not closed")
			}
			if rest != "" && rest[0] != ' ' {
				return nil, fmt.Errorf("a space is missing behind %s", quoted(text))
			}
			words, line = append(words, word{strings.Join(strings.Fields(text), " "), true}), rest
			continue
		}
		text, rest, _ := strings.Cut(line, " ")
		if strings.Contains(text, `"`) {
			return nil, fmt.Errorf("a quotation mark stands inside of a word: %s", text)
		}
		words, line = append(words, word{text, false}), rest
	}
}

// visible refuses what a reader cannot see, or takes for something else: control
// and zero-width characters, other spaces than the plain one, text that is not
// composed (NFC), and the quotes and dashes that a phone writes for plain ones.
func visible(line string) error {
	if !utf8.ValidString(line) {
		return errors.New("the line is not text in UTF-8")
	}
	for _, r := range line {
		switch {
		case strings.ContainsRune("“”„‟«»", r):
			return fmt.Errorf(`%c (%U): write plain quotation marks: "`, r, r)
		case strings.ContainsRune("‐‑‒–—―−", r):
			return fmt.Errorf("%c (%U): write plain dashes: --", r, r)
		case r == '\t', r != ' ' && unicode.IsSpace(r):
			return fmt.Errorf("%U is a blank that is no plain space: write a space", r)
		case !unicode.IsPrint(r):
			return fmt.Errorf("%U cannot be seen: write the line without it", r)
		case unicode.Is(unicode.Mn, r) && unicode.Is(unicode.Variation_Selector, r), blank(r):
			return fmt.Errorf("%U cannot be seen: write the line without it", r)
		}
	}
	if !norm.NFC.IsNormalString(line) {
		return errors.New("a letter is written in parts (not NFC): type the line again")
	}
	return nil
}

// blank are letters and symbols that print nothing.
func blank(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return false
}
