package ci

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
)

const secret = "s3cr&t/+ü\"x"

func TestRedact(t *testing.T) {
	quoted, err := json.Marshal(map[string]string{"token": secret})
	if err != nil {
		t.Fatal(err)
	}
	std, web := base64.StdEncoding, base64.URLEncoding
	tests := []struct{ name, in, want string }{
		{"nothing", "a text", "a text"},
		{"empty", "", ""},
		{"plain", "a " + secret + " b", "a *** b"},
		{"twice", secret + secret, "******"},
		{"query", "?t=" + url.QueryEscape(secret) + "&u=1", "?t=***&u=1"},
		{"query in lower case", "?t=" + strings.ToLower(url.QueryEscape(secret)), "?t=***"},
		{"path", "/" + url.PathEscape(secret) + "/x", "/***/x"},
		{"user of a URL", (&url.URL{Scheme: "https", Host: "h.example", User: url.UserPassword("mei", secret)}).String(), "https://mei:***@h.example"},
		{"JSON", string(quoted), `{"token":"***"}`},
		{"JSON of other programs", `{"token":"` + strings.ReplaceAll(secret, `"`, `\"`) + `"}`, `{"token":"***"}`},
		{"quoted", fmt.Sprintf("bad token %q", secret), `bad token "***"`},
		{"quoted in ASCII", fmt.Sprintf("bad token %+q", secret), `bad token "***"`},
		{"base64", "x " + std.EncodeToString([]byte(secret)) + " y", "x *** y"},
		{"base64 for URLs", "x " + web.EncodeToString([]byte(secret)) + " y", "x *** y"},
		{"base64 without padding", "x." + base64.RawURLEncoding.EncodeToString([]byte(secret)) + ".y", "x.***.y"},
	}
	r := NewRedactor()
	r.Add(secret + "\n") // as read from a file
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.Redact(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Basic credentials put the secret at any alignment, followed by anything. Of
// what is left, no four characters in a row may belong to the secret alone.
func TestRedactInsideBase64(t *testing.T) {
	r := NewRedactor()
	r.Add(secret)
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		for before := range 6 {
			for after := range 4 {
				plain := strings.Repeat("u", before) + secret + strings.Repeat("v", after)
				text := encoding.EncodeToString([]byte(plain))
				got := r.Redact(text)
				left := len(strings.ReplaceAll(got, mask, ""))
				// Each side keeps its own bytes, and at most one character that it shares.
				if most := (before*8+5)/6 + (after*8+5)/6 + 3; !strings.Contains(got, mask) || left > most {
					t.Errorf("%d before, %d after: %s became %s: %d characters left, want at most %d", before, after, text, got, left, most)
				}
			}
		}
	}
}

func TestRedactOverlap(t *testing.T) {
	r := NewRedactor()
	r.Add("abcd")
	r.Add("cdef")
	r.Add("abc")
	r.Add("")
	for in, want := range map[string]string{"xabcdefy": "x***y", "abcdcdef": "******", "abc": "abc", "ababcd": "ab***"} {
		if got := r.Redact(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestRedactKey(t *testing.T) {
	key := "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq83vEjRWeJCrze8S\n-----END RSA PRIVATE KEY-----\n"
	for name, given := range map[string]string{
		"lines": key, "CRLF": strings.ReplaceAll(key, "\n", "\r\n"), `written \n`: strings.ReplaceAll(key, "\n", `\n`),
	} {
		r := NewRedactor()
		r.Add(given)
		for _, in := range []string{key, given, "parse line q83vEjRWeJCrze8S: bad", fmt.Sprintf("%q", key), base64.StdEncoding.EncodeToString([]byte(key))} {
			got := r.Redact(in)
			if strings.Contains(got, "q83v") || strings.Contains(got, "MIIE") || !strings.Contains(got, mask) {
				t.Errorf("%s: %q became %q", name, in, got)
			}
		}
		const hint = "want a -----BEGIN RSA PRIVATE KEY----- block"
		if got := r.Redact(hint); got != hint {
			t.Errorf("%s: the hint became %q", name, got)
		}
	}
}

func TestWriter(t *testing.T) {
	text := "start " + secret + " mid " + base64.StdEncoding.EncodeToString([]byte("mei:"+secret)) + " s3cr end s3c"
	r := NewRedactor()
	r.Add(secret)
	want := r.Redact(text)
	for size := 1; size <= len(text); size++ {
		if got := streamed(t, r, text, size); got != want {
			t.Errorf("writes of %d: got %q, want %q", size, got, want)
		}
	}
}

func TestWriterDoesNotDelayLines(t *testing.T) {
	var b strings.Builder
	r := NewRedactor()
	r.Add(secret)
	w := r.Writer(&b)
	if _, err := fmt.Fprintln(w, "resolve ghcr.io/acme/todo-api:v2"); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != "resolve ghcr.io/acme/todo-api:v2\n" {
		t.Errorf("got %q before Close", got)
	}
}

func TestWriterReportsErrors(t *testing.T) {
	w := NewRedactor().Writer(broken{})
	if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("got %d, %v; want 0, %v", n, err, errBroken)
	}
}

var errBroken = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestConcurrentUse(t *testing.T) {
	var b strings.Builder
	r := NewRedactor()
	r.Add(secret)
	w := r.Writer(&b)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r.Add(fmt.Sprintf("another-%d", i))
			fmt.Fprintf(w, "%s another-%d\n", secret, i)
		})
	}
	all.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), strings.Repeat("*** ***\n", 8); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzRedact holds the law of the redactor: nothing of a secret is left in any
// form, and a stream says what the whole text says, however it is cut.
func FuzzRedact(f *testing.F) {
	f.Add("abcd", "cdef", "xabcdefy", 3)
	f.Add("aaaa", "aaaaaa", "aaaaaaaaaaa", 2)
	f.Add("abcd", "cde0", "abcde", 1)
	f.Add("s3cr&t/+", "tok\nen two lines", `{"a":"s3cr\u0026t/+"}`, 1)
	f.Add("päss wörd", "%2F%2f", "p%C3%A4ss+w%C3%B6rd", 5)
	f.Fuzz(func(t *testing.T, one, two, text string, size int) {
		if len(one)+len(two)+len(text) > 2000 {
			t.Skip("nothing new, and quadratic")
		}
		r := NewRedactor()
		r.Add(one)
		r.Add(two)
		whole := r.Redact(text)
		for _, s := range []string{one, two} {
			s = strings.TrimSpace(s)
			if len(s) >= minSecret && !strings.Contains(s, "*") && strings.Contains(whole, s) {
				t.Errorf("%q is left in %q", s, whole)
			}
		}
		if got := streamed(t, r, text, size); got != whole {
			t.Errorf("streamed by %d: %q, whole: %q", size, got, whole)
		}
	})
}

func streamed(t *testing.T, r *Redactor, text string, size int) string {
	t.Helper()
	var b strings.Builder
	w := r.Writer(&b)
	for size = max(size, 1); len(text) > 0; text = text[min(size, len(text)):] {
		if _, err := w.Write([]byte(text[:min(size, len(text))])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
