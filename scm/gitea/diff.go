package gitea

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var errDiff = errors.New("a diff that cannot be read")

// diffPaths lists the paths in the headers of git's own diff, sorted: both names
// of a rename. A line of a file never starts with "diff --git", since a hunk puts
// a sign before each.
func diffPaths(diff string) ([]string, error) {
	paths := []string{}
	var pending string // a header that only its rename lines can tell
	for line := range strings.SplitSeq(diff, "\n") {
		var found []string
		var err error
		header, isHeader := strings.CutPrefix(line, "diff --git ")
		switch {
		case isHeader && pending != "":
			return nil, fmt.Errorf("%w: %q", errDiff, pending)
		case isHeader:
			if found, err = headerPaths(header); err != nil {
				pending, err = line, nil
			}
		case pending != "" && hasAny(line, "rename from ", "copy from "):
			found, err = onePath(line)
		case pending != "" && hasAny(line, "rename to ", "copy to "):
			found, err = onePath(line)
			pending = ""
		}
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if pending != "" {
		return nil, fmt.Errorf("%w: %q", errDiff, pending)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func hasAny(line string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) })
}

func onePath(line string) ([]string, error) {
	_, name, _ := strings.Cut(line, " ")
	_, name, _ = strings.Cut(name, " ")
	if !strings.HasPrefix(name, `"`) {
		return []string{name}, nil
	}
	name, rest, err := unquote(name)
	if err != nil || rest != "" {
		return nil, fmt.Errorf("%w: %q", errDiff, line)
	}
	return []string{name}, nil
}

// headerPaths reads `a/old b/new`. Without quotes it is clear only where both
// names are the same: a name may hold " b/".
func headerPaths(rest string) ([]string, error) {
	if !strings.Contains(rest, `"`) {
		half := len(rest) / 2
		old, ok1 := strings.CutPrefix(rest[:half], "a/")
		now, ok2 := strings.CutPrefix(rest[half:], " b/")
		if ok1 && ok2 && old == now {
			return []string{old}, nil
		}
		return nil, errDiff
	}
	old, rest, err := quotedOrPlain(rest)
	if err != nil {
		return nil, err
	}
	now, rest, err := quotedOrPlain(strings.TrimPrefix(rest, " "))
	old, ok1 := strings.CutPrefix(old, "a/")
	now, ok2 := strings.CutPrefix(now, "b/")
	if err != nil || rest != "" || !ok1 || !ok2 {
		return nil, errDiff
	}
	return []string{old, now}, nil
}

// quotedOrPlain takes a name off: a quoted one, or a plain one before or after a
// quoted one.
func quotedOrPlain(s string) (name, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		return unquote(s)
	}
	if i := strings.Index(s, ` "b/`); i >= 0 {
		return s[:i], s[i:], nil
	}
	return s, "", nil
}

// unquote takes git's C-style quoted name off the front of s.
func unquote(s string) (name, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			n, width, err := escape(s[i+1:])
			if err != nil {
				return "", "", err
			}
			b.WriteByte(n)
			i += width
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", fmt.Errorf("%w: no closing quote", errDiff)
}

// escape reads what follows a backslash, and how many bytes that is.
func escape(s string) (c byte, width int, err error) {
	if s == "" {
		return 0, 0, errDiff
	}
	if i := strings.IndexByte(`abfnrtv"\`, s[0]); i >= 0 {
		return "\a\b\f\n\r\t\v\"\\"[i], 1, nil
	}
	if len(s) < 3 {
		return 0, 0, errDiff
	}
	n, err := strconv.ParseUint(s[:3], 8, 8)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", errDiff, err)
	}
	return byte(n), 3, nil
}
