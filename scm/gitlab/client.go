package gitlab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// weakToken names a token that can neither commit nor open a merge request, known
// by the prefix that GitLab gives it (docs.gitlab.com/security/tokens, "Token
// prefixes").
func weakToken(token string) string {
	for prefix, name := range map[string]string{
		"glcbt-": "a CI/CD job token (CI_JOB_TOKEN)",
		"gldt-":  "a deploy token",
		"glrt-":  "a runner token",
		"glptt-": "a pipeline trigger token",
		"glft-":  "a feed token",
	} {
		if strings.HasPrefix(token, prefix) {
			return name
		}
	}
	return ""
}

func checkToken(o Options) error {
	weak := weakToken(o.Token)
	if o.TokenKind == JobToken {
		weak = "a CI/CD job token (CI_JOB_TOKEN)"
	}
	if weak != "" {
		return fmt.Errorf("%w: the credential is %s, with which GitLab's API can neither create commits nor merge requests; "+
			"use a project or group access token with the scope api and the role Developer", scm.ErrDenied, weak)
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: the token holds a blank, a line end or another character that no token has; check how it was stored", scm.ErrDenied)
	}
	return nil
}

// connect disables go-gitlab's own retries, which send a POST again after a 5xx
// although it may have been applied, and its own limiter, which is configured
// from the first answer behind the back of concurrent calls. Both are the
// Transport's.
func (r *Repository) connect(base *url.URL, o Options) (err error) {
	o.Transport.Host, o.Transport.Authorize = base.String(), withJobToken(authorize(o))
	if r.transport, err = scm.NewTransport(o.Transport); err != nil {
		return err
	}
	client := r.transport.Client()
	client.Transport = keepNotFound{r.transport}
	r.api, err = gl.NewClient("", //nolint:staticcheck // deprecated, and this project's choice
		gl.WithBaseURL(base.String()), gl.WithHTTPClient(client),
		gl.WithoutRetries(), gl.WithCustomRetryMax(0), gl.WithCustomLimiter(noLimit{}))
	return err
}

// authorize takes away go-gitlab's own header: the token is known to the
// Transport alone, which sends it to no other host.
func authorize(o Options) func(*http.Request) error {
	return func(req *http.Request) error {
		req.Header.Del("PRIVATE-TOKEN")
		switch {
		case o.Token == "":
		case o.TokenKind == OAuthToken:
			req.Header.Set("Authorization", "Bearer "+o.Token)
		default:
			req.Header.Set("PRIVATE-TOKEN", o.Token)
		}
		return nil
	}
}

type noLimit struct{}

// Wait does not.
func (noLimit) Wait(context.Context) error { return nil }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// keepNotFound keeps the body of a 404, which go-gitlab throws away: it alone
// tells a missing file from a missing project.
type keepNotFound struct{ next http.RoundTripper }

// RoundTrip sends a request on.
func (t keepNotFound) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusNotFound {
		return resp, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = &keptBody{Reader: bytes.NewReader(text), text: text}
	return resp, nil
}

type keptBody struct {
	io.Reader
	text []byte
}

// Close does nothing: the body is in memory.
func (*keptBody) Close() error { return nil }

// ref makes a pointer of a value, as go-gitlab's options want it.
func ref[T any](v T) *T { return &v }
