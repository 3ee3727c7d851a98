package gitlab

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// refusal is a call that GitLab answered with an error or did not answer, or a
// judgement of our own on what it answered.
type refusal struct {
	status int    // 0: no answer, or our own judgement
	text   string // GitLab's words, or ours
	kind   error  // one of scm's sentinels, or nil
	hint   string // the next step
	cause  error  // what happened where there was no answer
}

// Error is "HTTP 400: what GitLab says; what to do".
func (e *refusal) Error() string {
	var parts []string
	if e.status != 0 {
		parts = append(parts, fmt.Sprintf("HTTP %d", e.status))
	}
	if e.text != "" {
		parts = append(parts, e.text)
	}
	if e.cause != nil {
		parts = append(parts, e.cause.Error())
	}
	text := strings.Join(parts, ": ")
	if e.hint != "" {
		text += "; " + e.hint
	}
	return text
}

// Unwrap gives the sentinel and the cause.
func (e *refusal) Unwrap() []error {
	var all []error
	if e.kind != nil {
		all = append(all, e.kind)
	}
	if e.cause != nil {
		all = append(all, e.cause)
	}
	return all
}

// ambiguous: the request may have been applied although it looks failed.
func (e *refusal) ambiguous() bool {
	return e.status >= 500 || e.cause != nil && !errors.Is(e.cause, scm.ErrRateLimited) && !refusedToConnect(e.cause)
}

func refusedToConnect(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// explain turns what go-gitlab returned into a refusal that says what to do.
// It returns nil for nil.
func (r *Repository) explain(resp *gl.Response, err error) *refusal {
	if err == nil {
		return nil
	}
	if resp == nil || resp.Response == nil {
		return r.unanswered(err)
	}
	said := r.transport.StatusError(resp.Response, scm.Messages(errorBody(resp, err))...)
	e := &refusal{status: said.Status, text: strings.Join(said.Messages, "; "), kind: said.Err}
	switch {
	case e.status < 300:
		e.kind, e.cause = scm.ErrUnavailable, err
		e.text = "the answer cannot be read"
		e.hint = "is a GitLab at this address, or a proxy or sign-in page in front of it?"
	case e.status == http.StatusUnauthorized:
		e.hint = "the token is missing, wrong, expired or revoked"
	case e.status == http.StatusForbidden && scopeLacks(e):
		e.hint = lacksScope(resp.Request)
	case e.status == http.StatusForbidden && reads(resp.Request):
		e.hint = "the token needs at least the role Reporter in the project" + tokenPage
	case e.status == http.StatusForbidden:
		e.hint = "the token needs the scope api and at least the role Developer in the project" + tokenPage
	case e.status == http.StatusNotFound:
		e.hint = "the project or the branch does not exist, or the token cannot see it" + proxyHint(resp, e)
	case e.status == http.StatusMethodNotAllowed, e.status == http.StatusNotAcceptable, e.status == http.StatusUnprocessableEntity:
		e.kind = scm.ErrRefused
	}
	return e
}

// errorBody is the body of an error, which go-gitlab has read already.
func errorBody(resp *gl.Response, err error) []byte {
	var e *gl.ErrorResponse
	if errors.As(err, &e) {
		return e.Body
	}
	if kept, ok := resp.Body.(*keptBody); ok {
		return kept.text
	}
	return nil
}

// unanswered is a call without an answer. The Transport has said why.
func (r *Repository) unanswered(err error) *refusal {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the address is long and says nothing that the caller's words do not
	}
	return &refusal{cause: err}
}

func scopeLacks(e *refusal) bool { return strings.Contains(e.text, "insufficient_scope") }

// tokenPage is where a project access token is made; its scopes and role cannot be
// changed.
const tokenPage = ": make another one (Settings, Access tokens)"

func reads(req *http.Request) bool { return req != nil && req.Method == http.MethodGet }

// lacksScope names the scope that a request needs.
func lacksScope(req *http.Request) string {
	if reads(req) {
		return "the token lacks the scope read_api, or api to write too" + tokenPage
	}
	return "the token lacks the scope api" + tokenPage
}

// proxyHint: a proxy that decodes %2F makes other paths of what was asked, and
// GitLab answers those as unknown routes, without its usual words.
func proxyHint(resp *gl.Response, e *refusal) string {
	if resp.Request == nil || !strings.Contains(resp.Request.URL.EscapedPath(), "%2F") || e.text != "" && e.text != "404 Not Found" {
		return ""
	}
	return "; or a proxy in front of GitLab decodes %2F in paths (give the project's numeric id, and see nginx's proxy_pass without a path)"
}

// fail adds the project and what was done to a refusal.
func (r *Repository) fail(what string, e *refusal) error {
	return fmt.Errorf("%s in GitLab project %s on %s: %w", what, r.project, r.about.Host, e)
}
