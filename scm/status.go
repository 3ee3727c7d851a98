package scm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StatusError is a refusal as a forge gave it. It unwraps to the sentinel that
// its status means; an implementation that knows better sets Err.
type StatusError struct {
	Method, Path string // without the query
	Status       int
	Messages     []string // the forge's own words, without credentials
	Err          error    // ErrNotFound, ErrDenied …; may be nil
}

// Error is "GET /repos/acme/config: 404 Not Found: message; message".
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Status, http.StatusText(e.Status))
	if len(e.Messages) > 0 {
		text += ": " + strings.Join(e.Messages, "; ")
	}
	return text
}

// Unwrap gives the sentinel.
func (e *StatusError) Unwrap() error { return e.Err }

// Says tells whether one of the messages contains text, in any case.
func (e *StatusError) Says(text string) bool {
	return slices.ContainsFunc(e.Messages, func(m string) bool {
		return strings.Contains(strings.ToLower(m), strings.ToLower(text))
	})
}

// StatusError makes the error of an answer. The messages come from Messages, or
// from an SDK that has read the body; credentials are taken out of them.
func (t *Transport) StatusError(resp *http.Response, messages ...string) *StatusError {
	e := &StatusError{Status: resp.StatusCode, Err: Sentinel(resp.StatusCode)}
	if resp.Request != nil {
		e.Method, e.Path = resp.Request.Method, resp.Request.URL.Path
	}
	for _, m := range messages {
		if m = plain(t.Redact(m)); m != "" && !slices.Contains(e.Messages, m) {
			e.Messages = append(e.Messages, m)
		}
	}
	return e
}

// Sentinel is what a status means on every forge; nil where it depends (400, 405,
// 409, 422).
func Sentinel(status int) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ErrDenied
	case status == http.StatusNotFound, status == http.StatusGone:
		return ErrNotFound
	case status == http.StatusLocked:
		return ErrRefused
	case status == http.StatusTooManyRequests:
		return ErrRateLimited
	case status >= 500:
		return ErrUnavailable
	}
	return nil
}

const messageLimit = 1000

// plain makes a message fit for one line of a terminal: no control characters,
// no page of HTML, not endless.
func plain(m string) string {
	m = strings.TrimSpace(m)
	if strings.HasPrefix(m, "<") {
		return "an HTML page instead of an answer of the API"
	}
	m = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, m)
	if runes := []rune(m); len(runes) > messageLimit {
		m = string(runes[:messageLimit]) + "…"
	}
	return m
}

// Messages finds the words of an error body: GitHub's message and errors, GitLab's
// message (text, list or fields) and error, Gitea's message, or plain text.
func Messages(body []byte) []string {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		if text := strings.TrimSpace(string(body)); text != "" {
			return []string{text}
		}
		return nil
	}
	var list []string
	for _, key := range []string{"message", "error", "error_description", "errors"} {
		list = append(list, words(object[key])...)
	}
	return slices.Compact(list)
}

func words(v any) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case []any:
		var list []string
		for _, x := range v {
			list = append(list, words(x)...)
		}
		return list
	case map[string]any:
		return fieldWords(v)
	}
	return nil
}

// fieldWords reads GitHub's {resource, field, code, message} and GitLab's
// {field: [message]}.
func fieldWords(v map[string]any) []string {
	if m, ok := v["message"].(string); ok && m != "" {
		return []string{m}
	}
	if code, ok := v["code"].(string); ok {
		return []string{strings.TrimSpace(fmt.Sprintf("%v %v %s", text(v["resource"]), text(v["field"]), code))}
	}
	var list []string
	for _, field := range slices.Sorted(maps.Keys(v)) {
		for _, m := range words(v[field]) {
			list = append(list, field+" "+m)
		}
	}
	return list
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
