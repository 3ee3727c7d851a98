package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"tagboat/scm"
)

// answerLimit bounds an answer in bytes: a page of 50 pull requests with long
// bodies, or a file of 10 MiB (what Gitea hands out at most) in base64.
const answerLimit = 64 << 20

// request is one call below /api/v1. The types are the SDK's; its client is not
// used: it binds one context to all calls, drops the body of a refused PUT or
// DELETE and the errors of a 404, and knows no call that changes several files.
type request struct {
	method string
	path   string // below the repository, each segment escaped
	query  url.Values
	in     any // sent as JSON
	out    any // decoded from JSON
}

// repoCall does a request below the repository.
func (r *Repository) repoCall(ctx context.Context, q request) (http.Header, error) {
	q.path = "/repos/" + url.PathEscape(r.owner) + "/" + url.PathEscape(r.name) + q.path
	return r.call(ctx, q)
}

func (r *Repository) call(ctx context.Context, q request) (http.Header, error) {
	header, body, err := r.fetch(ctx, q, answerLimit)
	if err != nil || q.out == nil || len(body) == 0 {
		return header, err
	}
	if err := json.Unmarshal(body, q.out); err != nil {
		return nil, fmt.Errorf("%s %s: the body is not Gitea's: is %s the address of a Gitea or Forgejo? %w", q.method, q.path, r.base, err)
	}
	return header, nil
}

// fetch does a request and reads its answer of at most limit bytes.
func (r *Repository) fetch(ctx context.Context, q request, limit int64) (http.Header, []byte, error) {
	req, err := r.newRequest(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, nil, r.noAnswer(q, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, nil, r.noAnswer(q, fmt.Errorf("%w: read the answer: %w", scm.ErrUnavailable, err))
	}
	if resp.StatusCode/100 != 2 {
		return resp.Header, nil, r.refusal(resp, body)
	}
	if int64(len(body)) > limit {
		return nil, nil, fmt.Errorf("%s %s: %w (%d bytes)", q.method, q.path, errTooLarge, limit)
	}
	return resp.Header, body, nil
}

var errTooLarge = errors.New("the answer is larger than what is read")

func (r *Repository) newRequest(ctx context.Context, q request) (*http.Request, error) {
	target := r.base + "/api/v1" + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	var body io.Reader
	if q.in != nil {
		b, err := json.Marshal(q.in)
		if err != nil {
			return nil, fmt.Errorf("%s %s: encode: %w", q.method, q.path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	req.Header.Set("Accept", "application/json")
	if q.in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// noAnswer says that a call got no answer. What a write did is then unknown.
func (r *Repository) noAnswer(q request, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without the address
	}
	if s := (*scm.StatusError)(nil); errors.As(err, &s) {
		return err // says method and path itself
	}
	return fmt.Errorf("%s %s: %w", q.method, q.path, err)
}

// refusal makes the error of an answer: the transport's, with what Gitea's
// statuses and texts mean and the next step where they tell it.
func (r *Repository) refusal(resp *http.Response, body []byte) error {
	e := r.transport.StatusError(resp, scm.Messages(body)...)
	e.Path = strings.TrimPrefix(e.Path, strings.TrimSuffix(r.path, "/")+"/api/v1")
	switch {
	case e.Status == http.StatusForbidden && !denies(e):
		e.Err = scm.ErrRefused // a hook, a protected branch or file
	case e.Err == nil && e.Status >= 400:
		e.Err = scm.ErrRefused
	}
	if hint := hint(e); hint != "" {
		e.Messages = append(e.Messages, hint)
	}
	return e
}

// denies tells a 403 that speaks of the credential from one of a rule.
func denies(e *scm.StatusError) bool {
	return len(e.Messages) == 0 || e.Says("scope") || e.Says("Must be an organization member") || e.Says("Must be a team member") || e.Says("permission") || e.Says("token") || e.Says("does not have access")
}

// hint is the next step, where the answer tells it.
func hint(e *scm.StatusError) string {
	switch {
	case e.Status == http.StatusUnauthorized:
		return "the token is missing, wrong or expired"
	case e.Says("required scope"):
		return "make a token that has the scope " + neededScope(e) + " too (the user's Settings, Applications)"
	case e.Says("user should have a permission to write"):
		return "the token's user has no write access: make it a collaborator with Write, or a member of a team that has it"
	case e.Status == http.StatusNotFound && e.Says("not found") && !e.Says("page not found"):
		return "it is not there, or the token cannot see it"
	case e.Status == http.StatusLocked:
		return "the repository is archived: nothing can be written to it"
	case e.Status == http.StatusRequestEntityTooLarge:
		return "the server or a proxy before it limits the size of a request"
	}
	return ""
}

// scopeNeeded finds the scope in the refusal of a token that lacks it: "required=[x]"
// since Gitea 1.23, "scope(s): [x]" before and in Forgejo.
var scopeNeeded = regexp.MustCompile(`(?:required=|scope\(s\): )\[([^\]]+)\]`)

func neededScope(e *scm.StatusError) string {
	for _, text := range e.Messages {
		if m := scopeNeeded.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return "that is named"
}

// refused is the forge's refusal in err, or nil.
func refused(err error) *scm.StatusError {
	if e := (*scm.StatusError)(nil); errors.As(err, &e) {
		return e
	}
	return nil
}

// statusOf is the status that err carries, or 0.
func statusOf(err error) int {
	if e := refused(err); e != nil {
		return e.Status
	}
	return 0
}

// says tells whether err is a refusal with the status and, in any case, the text.
func says(err error, status int, text string) bool {
	e := refused(err)
	return e != nil && e.Status == status && e.Says(text)
}

// ambiguous tells whether a write that ended in err may have been done all the
// same: no answer came, or a 5xx that a proxy may have made up.
func ambiguous(err error) bool {
	status := statusOf(err)
	return err != nil && (status == 0 || status >= 500)
}

// escapePath escapes each segment of a path or branch name and keeps the slashes.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// oneOrMany decodes an object or a list of objects.
type oneOrMany[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (m *oneOrMany[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]T)(m))
	}
	*m = make([]T, 1)
	return json.Unmarshal(b, &(*m)[0])
}
