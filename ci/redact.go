package ci

import (
	"io"
	"slices"
	"strings"
	"sync"
)

const mask = "***"

// Redactor hides secrets in texts, also where they appear URL-escaped, in
// base64 (inside a longer text too), in JSON or as a quoted Go string. It is
// safe for concurrent use; the zero value hides nothing until Add.
type Redactor struct {
	mu       sync.RWMutex
	patterns []string // never changed in place: readers hold it without the lock
}

// NewRedactor returns a redactor without secrets.
func NewRedactor() *Redactor { return &Redactor{} }

// Add hides the secret from now on, as a whole and each line of it (a private
// key). Secrets under 4 characters are ignored: they would blot out ordinary
// words, and the caller may want to warn of them.
func (r *Redactor) Add(secret string) {
	var grown []string
	for _, part := range parts(secret) {
		grown = append(grown, forms(part)...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	grown = append(grown, r.patterns...)
	slices.Sort(grown)
	r.patterns = slices.Compact(grown)
}

// Redact returns the text with every added secret replaced by ***.
func (r *Redactor) Redact(text string) string {
	var b strings.Builder
	from := 0
	for _, s := range spans(text, r.snapshot()) {
		b.WriteString(text[from:s.start])
		b.WriteString(mask)
		from = s.end
	}
	if from == 0 {
		return text
	}
	b.WriteString(text[from:])
	return b.String()
}

// Writer returns a writer that hides the secrets on their way to w, also one
// that arrives in several writes. It holds back an end that may be the
// beginning of a secret; Close writes that out, and leaves w open.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return &writer{redactor: r, to: w} }

func (r *Redactor) snapshot() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.patterns
}

type span struct{ start, end int }

// spans finds every place of every pattern and joins those that overlap, so
// that of two secrets that share characters nothing is left over.
func spans(text string, patterns []string) []span {
	var found []span
	for _, p := range patterns {
		for from := 0; ; {
			at := strings.Index(text[from:], p)
			if at < 0 {
				break
			}
			found = append(found, span{from + at, from + at + len(p)})
			from += at + 1
		}
	}
	return join(found)
}

func join(found []span) []span {
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	joined := found[:0]
	for _, s := range found {
		if last := len(joined) - 1; last >= 0 && s.start < joined[last].end {
			joined[last].end = max(joined[last].end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

type writer struct {
	redactor *Redactor

	mu     sync.Mutex
	to     io.Writer
	held   string
	hidden int // bytes at the start of held for which the mask is already out
}

// Write reports len(p) once all of p is written or held.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += string(p)
	patterns := w.redactor.snapshot()
	if err := w.flush(patterns, len(w.held)-openEnd(w.held, patterns)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what was held back.
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush(w.redactor.snapshot(), len(w.held))
}

// flush writes held up to the end, which may lie inside a secret: then the
// mask is written, and the rest of it is remembered as hidden.
func (w *writer) flush(patterns []string, end int) error {
	if end == 0 {
		return nil
	}
	found := spans(w.held, patterns)
	if w.hidden > 0 {
		found = join(append([]span{{0, w.hidden}}, found...))
	}
	var b strings.Builder
	from, hidden := 0, 0
	for _, s := range found {
		if s.start >= end {
			break
		}
		b.WriteString(w.held[from:s.start])
		if s.start > 0 || w.hidden == 0 {
			b.WriteString(mask)
		}
		from = min(s.end, end)
		hidden = s.end - from
	}
	b.WriteString(w.held[from:end])
	w.held, w.hidden = w.held[end:], hidden
	_, err := io.WriteString(w.to, b.String())
	return err
}

// openEnd returns the length of the longest end of text that begins a pattern.
func openEnd(text string, patterns []string) int {
	longest := 0
	for _, p := range patterns {
		for n := min(len(p)-1, len(text)); n > longest; n-- {
			if strings.HasPrefix(p, text[len(text)-n:]) {
				longest = n
			}
		}
	}
	return longest
}
