package promote

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code makes a Markdown code span of any text, so that nothing in it is a link, a
// mention, HTML or a table cell's end. Line breaks and invisible characters go.
func Code(s string) string { return span(strings.ReplaceAll(s, "|", "\\|")) }

// named is a word and the issue that it may be said of, by number; by address or key
// only after the words that forges close an issue for by themselves.
var named = regexp.MustCompile(`[\pL:] +([\w./-]*#\d)|(?i:clos|fix|resolv|implement|reopen)\w*:?(?: +issues?)? +(https?://|\[\w+:|[A-Z][A-Z0-9_]*-\d)`)

// span is Code outside a table, where nothing takes a backslash away again. The span
// ends between a word and an issue, and another begins: to GitLab, and to every forge
// in the message of a squash merge, "closes #12" closes an issue in code, too.
func span(s string) string {
	s = oneLine(s)
	if at := named.FindStringSubmatchIndex(s); at != nil {
		issue := max(at[2], at[4])
		return oneSpan(strings.TrimRight(s[:issue], " ")) + " " + span(s[issue:])
	}
	return oneSpan(s)
}

func oneSpan(s string) string {
	if s == "" {
		return ""
	}
	longest, n := 0, 0
	for _, c := range s {
		if n++; c != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// oneLine drops what could break a line or hide in it, and brings an HTML comment
// apart, so that a marker of Tagboat's cannot come from outside.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\r' || c == '\t':
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, ""))
	return strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(s, "<!--", "<! --"), "-->", "-- >"))
}

// webURL passes an http(s) address that can stand in a Markdown link, else "".
func webURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(s, " ()<>\\\"'`\n\r") {
		return ""
	}
	return s
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9/._:@+-]+$`)

// shellWord quotes a word for a POSIX shell where it needs it.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// cut shortens to at most n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
