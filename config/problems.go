package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// What a caller tells apart.
var (
	// ErrInvalid is returned by Load for a configuration that cannot be used; the
	// error is an *Invalid, which lists what is wrong.
	ErrInvalid = errors.New("the configuration is not valid")
	// ErrUnknown is returned for the name of an app, environment or ring that the
	// configuration does not have.
	ErrUnknown = errors.New("unknown name")
	// ErrNotAllowed is returned for a promotion that the order does not have.
	ErrNotAllowed = errors.New("not in the order of promotion")
	// ErrNoTarget is returned where no path of an environment is there for an app.
	ErrNoTarget = errors.New("no target")
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	File string // from the top of the repository
	Line int    // 1-based; 0 where the whole file is meant
	Text string // what is wrong and what to write instead
}

// String is file:line: text.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Invalid is everything that is wrong with a configuration, in the order of files
// and lines.
type Invalid struct {
	Problems []Problem
	More     int // how many there are beside those listed
}

// Error lists the problems, one a line.
func (e *Invalid) Error() string {
	lines := make([]string, 0, len(e.Problems)+2)
	lines = append(lines, ErrInvalid.Error()+":")
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes the error an ErrInvalid.
func (e *Invalid) Unwrap() error { return ErrInvalid }

// problemLimit bounds what is listed for one file: who has made more has made
// one of a kind.
const problemLimit = 20

// report collects the problems of one file.
type report struct {
	file     string
	lines    map[string]int // of each key and item, by its path in the document
	problems []Problem
	broken   []string // paths whose value could not be read, so that nothing follows from it
	more     int
}

func newReport(file string) *report { return &report{file: file, lines: map[string]int{}} }

func (r *report) add(line int, format string, args ...any) {
	p := Problem{File: r.file, Line: line, Text: fmt.Sprintf(format, args...)}
	switch {
	case slices.Contains(r.problems, p):
	case len(r.problems) == problemLimit:
		r.more++
	default:
		r.problems = append(r.problems, p)
	}
}

// unreadable adds a problem of the value at a path, about which no more is said.
func (r *report) unreadable(at string, line int, format string, args ...any) {
	r.broken = append(r.broken, at)
	r.add(line, format, args...)
}

// wrong adds a problem of the value at a path, unless it, what it is in or what
// is in it could not be read.
func (r *report) wrong(at, format string, args ...any) {
	for _, b := range r.broken {
		if inside(at, b) || inside(b, at) {
			return
		}
	}
	r.add(r.line(at), "%s: %s", at, fmt.Sprintf(format, args...))
}

// inside says whether a path is another or below it.
func inside(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || parent == "" || rest[0] == '.' || rest[0] == '[')
}

// line finds the line of a path, or of what it is in.
func (r *report) line(at string) int {
	for {
		if line, ok := r.lines[at]; ok || at == "" {
			return line
		}
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
}

// invalid joins the reports; nil where there is nothing to say.
func invalid(reports ...*report) error {
	var e Invalid
	for _, r := range reports {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		e.Problems = append(e.Problems, r.problems...)
		e.More += r.more
	}
	if len(e.Problems) == 0 {
		return nil
	}
	return &e
}

// Nearest ends an error about a word that is not known: it suggests the nearest of
// the known ones, or lists them.
func Nearest(word string, known []string) string {
	nearest, best := "", len(word)/3+2
	for _, k := range known {
		if d := levenshtein.ComputeDistance(word, k); d < best {
			nearest, best = k, d
		}
	}
	switch {
	case nearest != "":
		return fmt.Sprintf(": did you mean %s?", nearest)
	case len(known) == 0:
		return ": there is none"
	case len(known) > 25:
		return fmt.Sprintf(": there are %s and %d more", strings.Join(known[:25], ", "), len(known)-25)
	}
	return ": there is " + strings.Join(known, ", ")
}
