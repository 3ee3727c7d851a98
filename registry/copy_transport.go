package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// uploadTimeout is for a registry to answer a request that writes: it may have to
// move gigabytes in its storage first.
const uploadTimeout = 10 * time.Minute

// guard stands between go-containerregistry and the client's transport, and holds
// it to the client's rules: a credential goes to the registry and to its own token
// server alone, nothing leaves TLS, and nobody is led into this network.
type guard struct {
	session *session
	patient http.RoundTripper // for requests that write
}

func newGuard(s *session) *guard {
	g := &guard{session: s, patient: s.client.transport.base}
	if base, ok := g.patient.(*http.Transport); ok {
		base = base.Clone()
		base.ResponseHeaderTimeout = uploadTimeout
		g.patient = base
	}
	return g
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.allow(req); err != nil {
		return nil, err
	}
	if req.Method != http.MethodPatch && req.Method != http.MethodPut {
		return g.session.client.transport.RoundTrip(req)
	}
	return g.write(req)
}

// allow refuses what would take a credential or a request where it must not go.
func (g *guard) allow(req *http.Request) error {
	s, u := g.session, req.URL
	if u.Host == s.host {
		if u.Scheme != "https" && u.Scheme != s.scheme {
			return &redirectRefused{s.host, u.Host, "it leaves TLS"}
		}
		return nil
	}
	named := slices.ContainsFunc(s.client.options.TokenHosts, func(h string) bool { return strings.EqualFold(h, u.Host) })
	secret := req.Header.Get("Authorization") != "" || req.Method == http.MethodPost // of an identity token
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || s.scheme != "http"):
		return &redirectRefused{s.host, u.Host, "it leaves TLS"}
	case !named && !s.mayVisit(u):
		return &redirectRefused{s.host, u.Host, "it is an address inside this network"}
	case secret && !named && !sameSite(s.host, u.Host):
		return &realmRefused{fmt.Sprintf("not sent, as the token server %s is not of the registry's domain (TAGBOAT_REGISTRY_TOKEN_HOSTS=%s allows it)", u.Host, u.Host)}
	}
	return nil
}

// write sends once: what a registry has taken of an upload, it must not get again.
// An upload that broke off is begun anew by its caller.
func (g *guard) write(req *http.Request) (*http.Response, error) {
	t := g.session.client.transport
	ctx, host := req.Context(), t.host(req.URL.Host)
	limit := callOf(ctx)
	if limit == nil {
		limit = &call{deadline: t.now()}
	}
	if err := t.enter(ctx, host, req.URL.Host, limit); err != nil {
		return nil, err
	}
	defer host.leave()
	try := req.Clone(ctx)
	try.Header.Set("User-Agent", t.agent)
	t.requests.Add(1)
	resp, err := g.patient.RoundTrip(try)
	if err != nil && transient(err) && !mismatch(err) {
		return nil, fmt.Errorf("%w: %w", errBrokeOff, err)
	}
	return resp, err
}

// mismatch recognises go-containerregistry's refusals of content that has not the
// digest or size that was asked for; it exports no type for them.
func mismatch(err error) bool {
	for _, said := range []string{"error verifying ", "does not match requested digest", "does not match expected size"} {
		if strings.Contains(err.Error(), said) {
			return true
		}
	}
	return false
}

// explain turns an error of go-containerregistry's into one of ours.
func (c *Client) explain(err error, source, target *session, repository string) error {
	var ours *problem
	var realm *realmRefused
	var answer *ggcr.Error
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &realm):
		return &problem{kind: ErrDenied, text: realm.text}
	case errors.As(err, &answer):
		return c.explainAnswer(answer, source, target, repository)
	case mismatch(err):
		return &problem{kind: ErrDigestMismatch, text: fmt.Sprintf("%s sent other content than its digest says", source.host), fix: "a proxy or the registry is at fault; nothing was tagged"}
	}
	side := target
	var at *url.Error
	for inner := err; errors.As(inner, &at); inner = at.Err { // the innermost is what failed
		if u, err := url.Parse(at.URL); err == nil && u.Host == source.host {
			side = source
		}
	}
	return &withoutURLs{side.unreachable(err)}
}

// withoutURLs hides all of a URL but its host: those of storage are signed, and so
// secrets.
type withoutURLs struct{ error }

var urlInText = regexp.MustCompile(`(https?://[^/\s"?]+)[^\s"]*`)

func (e *withoutURLs) Error() string { return urlInText.ReplaceAllString(e.error.Error(), "$1/…") }

func (e *withoutURLs) Unwrap() error { return e.error }

// explainAnswer says which registry refused what.
func (c *Client) explainAnswer(e *ggcr.Error, source, target *session, repository string) error {
	side, what := source, "read"
	if req := e.Request; req != nil && req.URL.Host == target.host && strings.HasPrefix(req.URL.Path, "/v2/"+repository+"/") || req != nil && req.Method != http.MethodGet && req.Method != http.MethodHead {
		side, what = target, "write"
	}
	text := fmt.Sprintf("%s answered %d %s", side.host, e.StatusCode, http.StatusText(e.StatusCode))
	if len(e.Errors) > 0 {
		text += fmt.Sprintf(" (%s %q)", plain(string(e.Errors[0].Code), 60), plain(e.Errors[0].Message, 200))
	}
	if req := e.Request; req != nil {
		text += fmt.Sprintf(" to %s %s", req.Method, plain(req.URL.Path, 300))
	}
	text = c.secrets.redact(text)
	switch code := e.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &problem{kind: ErrDenied, text: text, fix: "the credential may not " + what}
	case code == http.StatusNotFound && side == source:
		return &problem{kind: ErrNotFound, text: text, fix: "the image is not whole at its source: build it again"}
	case code == http.StatusNotFound:
		return &problem{kind: ErrNotFound, text: text, fix: "the registry wants the repository to be made first"}
	case code == http.StatusTooManyRequests:
		return &problem{kind: ErrRateLimited, text: text, fix: "run again later"}
	case code >= 500:
		return &problem{kind: ErrUnavailable, text: text, fix: "run again when the registry is well; what is there already is not copied again"}
	}
	return errors.New(text)
}
