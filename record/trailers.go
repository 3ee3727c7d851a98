package record

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tagboat/image"
)

// Trailers stand at the end of a promotion's commit message. They say what the
// commit is for and which edits make it, so that a later run can tell whether a
// branch still holds exactly that (and so is Tagboat's own).
type Trailers struct {
	App, Environment, Ring string
	Base                   string   // the branch that the promotion is for
	Paths                  []string // target directories, sorted
	Edits                  []Edit
	Revision               string // source revision that the image claims
	Requester              string // who or what asked, for people
	Undoes                 string // of a rollback: the commit that brought what is taken back
	Reason                 string // of a rollback, in people's words
	Override               string // why gates were passed over, in people's words
	OverriddenBy           string // who did that, as the forge vouched then
}

// Edit is one entry's change: enough to make the same edit again.
type Edit struct {
	File       string
	Entry      string
	Image      image.Reference // what runs after it, with the digest
	Rename     bool            // newName is written
	Add        bool            // the entry is added
	DigestOnly bool            // newTag is left out
}

const (
	keyApp         = "Tagboat-App"
	keyEnvironment = "Tagboat-Environment"
	keyRing        = "Tagboat-Ring"
	keyBase        = "Tagboat-Base"
	keyPath        = "Tagboat-Path"
	keyEdit        = "Tagboat-Edit"
	keyRevision    = "Tagboat-Revision"
	keyRequester   = "Tagboat-Requester"
	keyUndoes      = "Tagboat-Undoes"
	keyReason      = "Tagboat-Reason"
	keyOverride    = "Tagboat-Override"
	keyOverrider   = "Tagboat-Overridden-By"
)

// String writes the trailers, one a line, each line ended.
func (t Trailers) String() string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%s: %s\n", key, value) }
	optional := func(key, value string) {
		if value != "" {
			line(key, quote(value))
		}
	}
	line(keyApp, quote(t.App))
	line(keyEnvironment, quote(t.Environment))
	optional(keyRing, t.Ring)
	optional(keyBase, t.Base)
	for _, p := range t.Paths {
		line(keyPath, quote(p))
	}
	for _, e := range t.Edits {
		line(keyEdit, e.String())
	}
	optional(keyRevision, t.Revision)
	optional(keyRequester, t.Requester)
	optional(keyUndoes, t.Undoes)
	optional(keyReason, t.Reason)
	optional(keyOverride, t.Override)
	optional(keyOverrider, t.OverriddenBy)
	return b.String()
}

// String writes an edit as "file entry image [rename] [add] [digest-only]". A
// field that would not read as one word is quoted as a Go string.
func (e Edit) String() string {
	fields := []string{quote(e.File), quote(e.Entry), e.Image.String()}
	for _, flag := range []struct {
		on   bool
		word string
	}{{e.Rename, "rename"}, {e.Add, "add"}, {e.DigestOnly, "digest-only"}} {
		if flag.on {
			fields = append(fields, flag.word)
		}
	}
	return strings.Join(fields, " ")
}

// ParseTrailers reads the trailers of a commit message, wherever its lines stand
// (a squash merge puts text after them). A message without an app and an
// environment, or with a line that does not read, is no promotion's: false.
func ParseTrailers(message string) (Trailers, bool) {
	var t Trailers
	for line := range strings.Lines(message) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			continue
		}
		var err error
		switch key {
		case keyApp:
			t.App, err = unquote(value)
		case keyEnvironment:
			t.Environment, err = unquote(value)
		case keyRing:
			t.Ring, err = unquote(value)
		case keyBase:
			t.Base, err = unquote(value)
		case keyPath:
			value, err = unquote(value)
			t.Paths = append(t.Paths, value)
		case keyEdit:
			var e Edit
			e, err = parseEdit(value)
			t.Edits = append(t.Edits, e)
		case keyRevision:
			t.Revision, err = unquote(value)
		case keyRequester:
			t.Requester, err = unquote(value)
		case keyUndoes:
			t.Undoes, err = unquote(value)
		case keyReason:
			t.Reason, err = unquote(value)
		case keyOverride:
			t.Override, err = unquote(value)
		case keyOverrider:
			t.OverriddenBy, err = unquote(value)
		}
		if err != nil {
			return Trailers{}, false
		}
	}
	return t, t.App != "" && t.Environment != ""
}

func parseEdit(s string) (Edit, error) {
	fields, err := words(s)
	if err != nil {
		return Edit{}, err
	}
	if len(fields) < 3 {
		return Edit{}, fmt.Errorf("parse edit %q: want file, entry and image", s)
	}
	e := Edit{File: fields[0], Entry: fields[1]}
	if e.Image, err = image.Parse(fields[2]); err != nil {
		return Edit{}, err
	}
	for _, flag := range fields[3:] {
		switch flag {
		case "rename":
			e.Rename = true
		case "add":
			e.Add = true
		case "digest-only":
			e.DigestOnly = true
		default:
			return Edit{}, fmt.Errorf("parse edit %q: unknown word %q", s, flag)
		}
	}
	return e, nil
}

// SameTarget says whether two trailers are of one promotion: the same app to the
// same environment and ring, for the same base branch, in a directory that both
// name.
func (t Trailers) SameTarget(o Trailers) bool {
	if t.App != o.App || t.Environment != o.Environment || t.Ring != o.Ring || t.Base != o.Base {
		return false
	}
	return len(t.Paths) == 0 || len(o.Paths) == 0 ||
		slices.ContainsFunc(t.Paths, func(p string) bool { return slices.Contains(o.Paths, p) })
}

// Target names what the trailers are for, for people.
func (t Trailers) Target() string {
	s := t.App + " to " + t.Environment
	if t.Ring != "" {
		s += "." + t.Ring
	}
	if t.Base != "" {
		s += " on " + t.Base
	}
	if len(t.Paths) > 0 {
		s += " (" + strings.Join(t.Paths, ", ") + ")"
	}
	return s
}

// acts is what a forge acts on in the message of a merged commit: "fixes #12" closes
// an issue, so do "fixes GH-12" (GL-12, or Jira's key, on GitLab) and its address, and
// @mei tells mei. A key alone, as in a path, is not acted on.
var (
	acts = regexp.MustCompile(`[#!&]\d|@\w|://|[Gg][Hh]-\d|\[\w+:`)
	keys = regexp.MustCompile(` [A-Z][A-Z0-9_]*-\d`)
)

// quote leaves plain words as they are and writes others as a Go string, in which
// nothing is left that a forge would act on.
func quote(s string) string {
	odd := func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r > '~' }
	if s != "" && !strings.ContainsFunc(s, odd) && !acts.MatchString(s) {
		return s
	}
	escaped := acts.ReplaceAllStringFunc(strconv.QuoteToGraphic(s), func(found string) string {
		return fmt.Sprintf(`\x%02x`, found[0]) + found[1:]
	})
	return keys.ReplaceAllStringFunc(escaped, func(found string) string {
		return fmt.Sprintf(` \x%02x`, found[1]) + found[2:]
	})
}

func unquote(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		return strconv.Unquote(s)
	}
	return s, nil
}

// words splits at single spaces, keeping quoted fields whole.
func words(s string) ([]string, error) {
	var out []string
	for s != "" {
		word, rest, _ := strings.Cut(s, " ")
		if strings.HasPrefix(s, `"`) {
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, fmt.Errorf("parse %q: %w", s, err)
			}
			rest = strings.TrimPrefix(s[len(quoted):], " ")
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, fmt.Errorf("parse %q: %w", quoted, err)
			}
		}
		out = append(out, word)
		s = rest
	}
	return out, nil
}
