package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"tagboat/image"
)

// HoldBranch is where holds live in the config repository: a branch of their own,
// so that a hold works at once where the default branch is protected.
const HoldBranch = "tagboat-holds"

// HoldDir is the directory of the hold files on HoldBranch.
const HoldDir = "holds"

// Bounds of what people write into a hold, in characters.
const (
	ReasonLimit = 500 // of a reason
	holderLimit = 200 // of By and Note
)

// holdFileLimit bounds a hold file that is read, in bytes.
const holdFileLimit = 64 << 10

// Hold stops promotions to an environment, or of one app to it, until it is
// released or Until has passed. It is one small file on HoldBranch.
type Hold struct {
	Environment, App string    // App "" holds the whole environment
	By               string    // who placed it
	Note             string    // what is told of By without anybody vouching for it
	Reason           string    // a person's words, one line
	Since            time.Time // zero: not told
	Until            time.Time // zero: until it is released
	Allow            []string  // digests that it lets through: those of a rollback's own hold
}

// HoldPath is the file of a hold: holds/<environment>.yaml, or
// holds/<environment>/<app>.yaml.
func HoldPath(environment, app string) string {
	return path.Join(HoldDir, environment, app) + ".yaml"
}

// SplitHoldPath reads HoldPath backwards. A path that is no hold's is an error.
func SplitHoldPath(file string) (environment, app string, err error) {
	name, ok := strings.CutSuffix(file, ".yaml")
	parts := strings.Split(name, "/")
	if !ok || parts[0] != HoldDir || len(parts) < 2 || len(parts) > 3 {
		return "", "", fmt.Errorf("%s is no hold's file: it is %s or %s", file, HoldPath("ENVIRONMENT", ""), HoldPath("ENVIRONMENT", "APP"))
	}
	if err := CheckName("environment", parts[1]); err != nil {
		return "", "", fmt.Errorf("%s is no hold's file: %w", file, err)
	}
	if len(parts) == 2 {
		return parts[1], "", nil
	}
	if err := CheckApp(parts[2]); err != nil {
		return "", "", fmt.Errorf("%s is no hold's file: %w", file, err)
	}
	return parts[1], parts[2], nil
}

// Check says what is wrong with a hold that is to be written, or nothing.
func (h Hold) Check() error {
	if err := CheckName("environment", h.Environment); err != nil {
		return err
	}
	if h.App != "" {
		if err := CheckApp(h.App); err != nil {
			return err
		}
	}
	if strings.TrimSpace(h.Reason) == "" {
		return errors.New("no reason: a hold says to everybody whom it stops why it is there")
	}
	if err := CheckReason(h.Reason); err != nil {
		return err
	}
	if err := errors.Join(checkLine("by", h.By, holderLimit), checkLine("note", h.Note, holderLimit)); err != nil {
		return err
	}
	for _, digest := range h.Allow {
		if err := image.CheckDigest(digest); err != nil {
			return fmt.Errorf("allow: %w", err)
		}
	}
	for _, t := range []time.Time{h.Since, h.Until} {
		if year := t.UTC().Year(); year > 9999 || year < 1 {
			return fmt.Errorf("the year %d cannot be written", year)
		}
	}
	return nil
}

// CheckReason says what is wrong with people's words about a hold, or nothing:
// they are one line of at most ReasonLimit characters.
func CheckReason(text string) error { return checkLine("reason", text, ReasonLimit) }

// checkLine demands one line of text that can be shown. The joiners that scripts
// and emoji are written with count as such.
func checkLine(what, text string, limit int) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%s: it is not UTF-8", what)
	}
	if n := utf8.RuneCountInString(text); n > limit {
		return fmt.Errorf("%s: it has %d characters, at most %d are allowed", what, n, limit)
	}
	for _, r := range text {
		if !unicode.IsGraphic(r) && r != '\u200c' && r != '\u200d' {
			return fmt.Errorf("%s: it has the character %U, which cannot be shown: write one line of text", what, r)
		}
	}
	return nil
}

// Path is the hold's file.
func (h Hold) Path() string { return HoldPath(h.Environment, h.App) }

// Target names what is held: "production", or "todo-api in production".
func (h Hold) Target() string {
	switch {
	case h.Environment == "":
		return "every environment"
	case h.App == "":
		return h.Environment
	}
	return h.App + " in " + h.Environment
}

// Who is By with its note.
func (h Hold) Who() string {
	if h.Note == "" {
		return h.By
	}
	return strings.TrimSpace(h.By + " (" + h.Note + ")")
}

// String says it to people in one sentence: what is held, by whom, since when,
// until when, and why. Times are in UTC.
func (h Hold) String() string {
	var b strings.Builder
	b.WriteString(h.Target() + " is held")
	if who := h.Who(); who != "" {
		b.WriteString(" by " + who)
	}
	if !h.Since.IsZero() {
		b.WriteString(" since " + stamp(h.Since))
	}
	if !h.Until.IsZero() {
		b.WriteString(" until " + stamp(h.Until))
	}
	return b.String() + ": " + h.Reason
}

// Stops says whether the hold stops a promotion of an app's digests to an
// environment at a time. It lets through what it allows, if that is all of it.
func (h Hold) Stops(environment, app string, at time.Time, digests []string) bool {
	if h.Environment != "" && h.Environment != environment || h.App != "" && h.App != app || h.Passed(at) {
		return false
	}
	allowed := func(digest string) bool { return slices.Contains(h.Allow, digest) }
	return len(digests) == 0 || slices.ContainsFunc(digests, func(d string) bool { return !allowed(d) })
}

// Passed says whether Until has come.
func (h Hold) Passed(at time.Time) bool { return !h.Until.IsZero() && !at.Before(h.Until) }

// stamp writes a time as it stands in the file: UTC, whole seconds.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Bytes is the content of the hold's file. What passes Check is read back as it
// is, times to the second and in UTC.
func (h Hold) Bytes() []byte {
	var b bytes.Buffer
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, value)
		}
	}
	text := func(key, value string) {
		if value != "" {
			// what Go quotes, YAML reads: the escapes of the one are escapes of the other
			line(key, strconv.QuoteToGraphic(value))
		}
	}
	at := func(key string, t time.Time) {
		if !t.IsZero() {
			text(key, stamp(t))
		}
	}
	text("reason", h.Reason)
	text("by", h.By)
	text("note", h.Note)
	at("since", h.Since)
	at("until", h.Until)
	if len(h.Allow) > 0 {
		b.WriteString("allow:\n")
	}
	for _, digest := range h.Allow {
		fmt.Fprintf(&b, "  - %s\n", strconv.QuoteToGraphic(digest))
	}
	return b.Bytes()
}

// holdFile is how a hold stands in its file. The path says what is held.
type holdFile struct {
	Reason string   `yaml:"reason"`
	By     string   `yaml:"by"`
	Note   string   `yaml:"note"`
	Since  string   `yaml:"since"`
	Until  string   `yaml:"until"`
	Allow  []string `yaml:"allow"`
}

// ParseHold reads a hold file, also one that a person wrote. An unknown key, a
// missing reason, a time that is not RFC 3339 and a path that is no hold's are
// errors: the caller lets such a file hold.
func ParseHold(file string, b []byte) (Hold, error) {
	var h Hold
	var err error
	if h.Environment, h.App, err = SplitHoldPath(file); err != nil {
		return Hold{}, err
	}
	bad := func(err error) (Hold, error) { return Hold{}, fmt.Errorf("read the hold %s: %w", file, err) }
	if len(b) > holdFileLimit {
		return bad(fmt.Errorf("it has %d bytes, at most %d are read", len(b), holdFileLimit))
	}
	f, err := decodeHold(b)
	if err != nil {
		return bad(err)
	}
	h.By, h.Note, h.Allow = f.By, f.Note, f.Allow
	h.Reason = strings.TrimSuffix(f.Reason, "\n") // a person's block of one line ends with one
	if h.Since, err = parseStamp("since", f.Since); err != nil {
		return bad(err)
	}
	if h.Until, err = parseStamp("until", f.Until); err != nil {
		return bad(err)
	}
	if err := h.Check(); err != nil {
		return bad(err)
	}
	return h, nil
}

// goType is what yaml says of an unknown key, in the words of this file.
var goType = regexp.MustCompile(`not found in type record\.holdFile`)

func decodeHold(b []byte) (holdFile, error) {
	var f holdFile
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&f); errors.Is(err, io.EOF) {
		return f, errors.New("it is empty")
	} else if err != nil {
		return f, errors.New(goType.ReplaceAllString(err.Error(), "is unknown"))
	}
	if err := d.Decode(&holdFile{}); !errors.Is(err, io.EOF) {
		return f, errors.New("it has more than one document")
	}
	return f, nil
}

func parseStamp(key, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s: %q is no time: write it as 2006-01-02T15:04:05Z", key, text)
	}
	if t.IsZero() {
		return t, fmt.Errorf("%s: %q is before all times", key, text)
	}
	return t.UTC(), nil
}
