package ci

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
)

// A shorter secret is no secret, and hiding it would blot out ordinary words.
const minSecret = 4

// A line of a secret by itself is hidden from this length: shorter ones (the
// braces of a JSON key) appear everywhere.
const minLine = 8

// parts returns the secret and, where it has several lines, each line of it: a
// key is often printed or logged line by line. A key that was put into a
// variable with \n written out counts as having lines.
func parts(secret string) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecret {
		return nil
	}
	found := []string{secret}
	lines := strings.FieldsFunc(strings.ReplaceAll(secret, `\n`, "\n"), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) < 2 {
		return found
	}
	found = append(found, strings.Join(lines, "\n"), strings.Join(lines, "\n")+"\n")
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			found = append(found, line)
		}
	}
	return found
}

// forms returns the texts under which a secret may appear.
func forms(secret string) []string {
	found := []string{secret}
	for _, escaped := range []string{url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:]} {
		found = append(found, escaped, lowerHex(escaped))
	}
	quoted, _ := json.Marshal(secret) // a string always can be
	found = append(found, inner(string(quoted)), inner(plainJSON(secret)),
		inner(strconv.Quote(secret)), inner(strconv.QuoteToASCII(secret)), html.EscapeString(secret))
	return append(found, base64Forms(secret)...)
}

// base64Forms covers the secret by itself, padded or not, and inside a longer
// text ("user:secret"), where it may begin at each of three alignments. There
// the outermost characters also carry bits of the neighbours, so the part that
// is the secret's alone is what is looked for.
func base64Forms(secret string) []string {
	var found []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := encoding.EncodeToString([]byte(secret))
		found = append(found, whole, strings.TrimRight(whole, "="))
		for before := range 3 {
			bits := (before + len(secret)) * 8
			text := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
			found = append(found, text[(before*8+5)/6:bits/6])
		}
	}
	return found
}

// lowerHex writes %2F as %2f: both are in use.
func lowerHex(escaped string) string {
	text := []byte(escaped)
	for i := 0; i+2 < len(text); i++ {
		if text[i] == '%' {
			copy(text[i+1:], strings.ToLower(string(text[i+1:i+3])))
			i += 2
		}
	}
	return string(text)
}

// plainJSON is JSON as most other programs write it: <, > and & as they are.
func plainJSON(secret string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(secret) // a string into memory
	return strings.TrimSuffix(b.String(), "\n")
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }
