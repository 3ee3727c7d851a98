package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

// answer is a refusal as GitHub gave it, whatever type go-github made of it.
type answer struct {
	status   int
	messages []string // message and the nested errors: the compact message hides the reason
	text     string   // the messages in one line
	header   http.Header
	resp     *http.Response
}

func responseOf(err error) *http.Response {
	var plain *github.ErrorResponse
	var otp *github.TwoFactorAuthError
	var rate *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	switch {
	case errors.As(err, &plain):
		return plain.Response
	case errors.As(err, &otp):
		return otp.Response
	case errors.As(err, &rate):
		return rate.Response
	case errors.As(err, &abuse):
		return abuse.Response
	}
	return nil
}

func answerOf(err error) (answer, bool) {
	resp := responseOf(err) //nolint:bodyclose // go-github has read and closed it
	if resp == nil {
		return answer{}, false
	}
	// go-github puts back the body that it has read.
	body, _ := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	a := answer{status: resp.StatusCode, header: resp.Header, messages: scm.Messages(body), resp: resp}
	a.text = strings.Join(a.messages, "; ")
	return a, true
}

// kind is the contract's word for a status.
func (a answer) kind() error {
	switch {
	case a.limited():
		return scm.ErrRateLimited
	case a.status == http.StatusConflict && strings.Contains(a.text, "is empty"):
		return scm.ErrNotFound
	}
	if err := scm.Sentinel(a.status); err != nil {
		return err
	}
	return scm.ErrRefused
}

// limited sees both limits; headers may be missing, so the text counts too.
func (a answer) limited() bool {
	if a.status == http.StatusTooManyRequests {
		return true
	}
	return a.status == http.StatusForbidden && (a.header.Get("X-RateLimit-Remaining") == "0" ||
		a.header.Get("Retry-After") != "" || strings.Contains(strings.ToLower(a.text), "rate limit"))
}

// has tells whether a says one of the texts, whatever their case.
func (a answer) has(status int, texts ...string) bool {
	if a.status != status {
		return false
	}
	low := strings.ToLower(a.text)
	for _, t := range texts {
		if strings.Contains(low, strings.ToLower(t)) {
			return true
		}
	}
	return false
}

// fault is err with the repository, what was being done, GitHub's words and the
// next step.
func (r *Repository) fault(doing string, err error) error {
	a, ok := answerOf(err)
	if !ok {
		return r.broken(doing, err)
	}
	return r.refusal(doing, a, a.kind())
}

// writeFault is fault for a write to what could be read: GitHub says 404 to a
// personal token that may not write.
func (r *Repository) writeFault(doing string, err error) error {
	a, ok := answerOf(err)
	if !ok || a.status != http.StatusNotFound {
		return r.fault(doing, err)
	}
	return fmt.Errorf("%s: %s: %w; the %s can read the repository, but may not write to it (GitHub says 404 to that)",
		r.fullName(), doing, r.statusError(a, scm.ErrDenied), r.token.word(r.app != nil))
}

func (r *Repository) statusError(a answer, kind error) *scm.StatusError {
	e := r.transport.StatusError(a.resp, a.messages...)
	e.Err = kind
	return e
}

// refusal is an answer with the contract's word for it, and its hint.
func (r *Repository) refusal(doing string, a answer, kind error) error {
	hint := r.hint(a)
	if hint != "" {
		hint = "; " + hint
	}
	return fmt.Errorf("%s: %s: %w%s", r.fullName(), doing, r.statusError(a, kind), hint)
}

// broken is an error without an answer: the wire, the body, or the caller's end.
func (r *Repository) broken(doing string, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || isOurs(err) {
		return fmt.Errorf("%s: %s: %w", r.fullName(), doing, err)
	}
	return fmt.Errorf("%s: %s: %w: %w", r.fullName(), doing, scm.ErrUnavailable, err)
}

func isOurs(err error) bool {
	for _, e := range []error{scm.ErrNotFound, scm.ErrMoved, scm.ErrRefused, scm.ErrDenied, scm.ErrRateLimited, scm.ErrUnavailable, scm.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// hint is the next step for the refusals that people meet most.
func (r *Repository) hint(a answer) string {
	switch {
	case a.limited():
		return "GitHub asks to wait for longer than this call may take; try again later"
	case a.status == http.StatusUnauthorized:
		return "the token is missing, wrong or expired"
	case a.has(http.StatusForbidden, "not accessible by integration", "not accessible by personal access token"):
		return r.permissionHint(a)
	case a.status == http.StatusForbidden && a.header.Get("X-GitHub-SSO") != "":
		return "the token must be authorised for the organisation's single sign-on"
	case a.status == http.StatusNotFound:
		return "it is not there, or the token cannot see it (GitHub says 404 to both)"
	}
	return ""
}

// acceptedPermissions is the header in which GitHub names what a call needs.
const acceptedPermissions = "X-Accepted-GitHub-Permissions"

func (r *Repository) permissionHint(a answer) string {
	need := a.header.Get(acceptedPermissions)
	if need == "" {
		need = "contents:write and pull_requests:write"
	}
	need = strings.NewReplacer("=", ":", "; ", " or ", ",", " and ").Replace(need)
	return "the " + r.token.word(r.app != nil) + " lacks " + need + " on " + r.fullName() + ": " + r.whereToGive()
}

// whereToGive tells where a credential gets a permission that it lacks.
func (r *Repository) whereToGive() string {
	switch {
	case r.app != nil:
		return "add it in the App's settings (Permissions), then the owner of " + r.owner + " approves it"
	case r.actions:
		return "add it to the permissions: block of the workflow (GITHUB_TOKEN reaches its own repository only)"
	case r.token == fineToken:
		return "add it to the token's repository permissions, and have the owner of " + r.owner + " approve that where it asks to"
	}
	return "add it in the settings of the App that made the token, and have the owner of " + r.owner + " approve it; " +
		"a workflow's GITHUB_TOKEN gets it in the workflow's permissions: block"
}

// ambiguous tells whether a write may have been done although it failed.
func ambiguous(err error) bool {
	a, ok := answerOf(err)
	return !ok || a.status >= 500
}
