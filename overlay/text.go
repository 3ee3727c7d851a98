package overlay

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// checkText refuses bytes that kyaml and kustomize would not read, or in which
// a node's line and column would not lead back to its bytes.
func checkText(file string, raw []byte) error {
	if len(raw) > maxKustomization {
		return fmt.Errorf("%s: %w: it has %d bytes, more than the %d that a kustomization may have here", file, ErrUnsafe, len(raw), maxKustomization)
	}
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		return fmt.Errorf("%s: %w: it is UTF-16; save it as UTF-8", file, ErrUnsafe)
	}
	if at := bytes.IndexByte(raw, 0); at >= 0 {
		return refuse(file, lineAt(raw, at), "there is a NUL byte (binary, or UTF-16 without a mark)", "save it as UTF-8 text")
	}
	if !utf8.Valid(raw) {
		return refuse(file, lineAt(raw, invalidAt(raw)), "the bytes are not UTF-8", "save it as UTF-8 text")
	}
	if at, name := oddBreak(raw); at >= 0 {
		return refuse(file, lineAt(raw, at), name+" counts as a line break in YAML but in no editor", "replace it by a line feed or remove it")
	}
	return nil
}

// refuse words an ErrUnsafe: the place, the cause and the next step.
func refuse(file string, line int, cause, fix string) error {
	return fmt.Errorf("%s:%d: %w: %s; %s", file, line, ErrUnsafe, cause, fix)
}

// lineAt is the 1-based line of an offset.
func lineAt(raw []byte, at int) int { return 1 + bytes.Count(raw[:at], []byte("\n")) }

func invalidAt(raw []byte) int {
	for at := 0; at < len(raw); {
		r, size := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return len(raw)
}

// oddBreak finds the first line break other than LF and CR LF. YAML 1.1 (§5.4)
// also breaks lines at CR, NEL, LS and PS, also within comments and quotes.
func oddBreak(raw []byte) (at int, name string) {
	for at := 0; at < len(raw); at++ {
		switch c := raw[at]; {
		case c == '\r' && (at+1 == len(raw) || raw[at+1] != '\n'):
			return at, "a carriage return (CR) without a line feed"
		case c == 0xC2 && bytes.HasPrefix(raw[at:], []byte("\u0085")):
			return at, "U+0085 (NEL)"
		case c == 0xE2 && bytes.HasPrefix(raw[at:], []byte("\u2028")):
			return at, "U+2028 (line separator)"
		case c == 0xE2 && bytes.HasPrefix(raw[at:], []byte("\u2029")):
			return at, "U+2029 (paragraph separator)"
		}
	}
	return -1, ""
}
