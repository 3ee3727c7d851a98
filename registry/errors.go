package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// answer is a registry's response, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	url    *url.URL // where it came from in the end
	over   bool     // the body was longer than the limit
	as     string   // whose credential it was asked with, for people
}

// code and message are the first of the errors that the body lists, as the OCI
// distribution specification defines them, or "".
func (a *answer) code() (code, message string) {
	var body struct {
		Errors []struct{ Code, Message string }
	}
	if json.Unmarshal(a.body, &body) == nil && len(body.Errors) > 0 {
		return plain(body.Errors[0].Code, 60), plain(body.Errors[0].Message, 200)
	}
	return "", ""
}

// String is the answer in an error: status, code and message.
func (a *answer) String() string {
	code, message := a.code()
	text := fmt.Sprintf("%d", a.status)
	if code != "" {
		text += " " + code
	} else if name := http.StatusText(a.status); name != "" {
		text += " " + name
	}
	if message != "" {
		text += fmt.Sprintf(" (%q)", message)
	}
	return text
}

// plain makes another's text fit for one line of ours.
func plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(text)
}

// problem is a refusal with what a user needs: which kind (a sentinel), what the
// registry said, and one thing to do.
type problem struct {
	kind  error
	text  string
	fix   string
	cause error
	gone  bool // also errGone
}

func (p *problem) Error() string {
	text := p.kind.Error() + ": " + p.text
	if p.cause != nil {
		text += ": " + p.cause.Error()
	}
	if p.fix != "" {
		text += "; " + p.fix
	}
	return text
}

func (p *problem) Unwrap() []error {
	all := []error{p.kind}
	if p.cause != nil {
		all = append(all, p.cause)
	}
	if p.gone {
		all = append(all, errGone)
	}
	return all
}

// errGone marks what a replica may still receive: the wait of a query polls for it.
var errGone = errors.New("answered 404")

// unreachable explains a request that got no answer. URLs are left out: signed
// ones are secrets.
func (s *session) unreachable(err error) error {
	var ours *problem
	var limited *rateLimited
	var refused *redirectRefused
	if errors.As(err, &ours) {
		return ours
	}
	if errors.As(err, &limited) {
		fix := "run again later, or log in: most registries allow more to those they know"
		return &problem{kind: ErrRateLimited, text: limited.Error(), fix: fix}
	}
	if errors.As(err, &refused) {
		return &problem{kind: ErrUnavailable, text: refused.Error()}
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	p := &problem{kind: ErrUnavailable, text: s.host, cause: err}
	switch {
	case schemeMismatch(err):
		p.fix = fmt.Sprintf("it speaks plain HTTP: allow that with --plain-http %s", s.host)
	case untrusted(err):
		p.fix = "give the certificate of its authority with --ca-file"
	default:
		p.fix = "check the host's name and that this machine can reach it"
	}
	return p
}

// judge turns a status into the error that it means; 2xx is none.
func (s *session) judge(what string, a *answer) error {
	switch {
	case a.status >= 200 && a.status < 300:
		return nil
	case a.status < 500 && a.status != http.StatusNotFound && a.url.Host != s.host:
		return &problem{kind: ErrUnavailable, text: fmt.Sprintf("%s keeps %s at %s, which answered %s", s.host, what, a.url.Host, s.redact(a)), fix: "the registry's storage is at fault, or not reachable from here"}
	case a.status == http.StatusNotFound:
		return &problem{kind: ErrNotFound, gone: true, text: fmt.Sprintf("%s has no %s, or hides it from %s (%s)", s.host, what, a.as, s.redact(a)),
			fix: "check the spelling, and that the push has finished (--wait polls for it)"}
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return s.denied(a)
	case a.status >= 500:
		return &problem{kind: ErrUnavailable, text: fmt.Sprintf("%s answered %s for %s until the retry budget was spent", s.host, s.redact(a), what), fix: "run again when the registry is well"}
	}
	return fmt.Errorf("%s answered %s for %s, which no registry should", s.host, s.redact(a), what)
}

func (s *session) redact(a *answer) string { return s.client.secrets.redact(a.String()) }
