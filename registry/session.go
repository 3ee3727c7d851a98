package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// session is what is known of one registry: its scheme, its challenge, the
// credentials for it and the token of each repository.
type session struct {
	client *Client
	host   string

	ready     chan struct{} // held while the registry is pinged
	pinged    bool
	failed    error // of the ping, for the other images of the same call
	failedFor *call
	scheme    string

	mu         sync.Mutex
	challenge  challenge
	candidates []*candidate
	absent     []string // sources that have nothing for this registry
	grants     map[string]*repositoryGrant
	proving    chan struct{} // held while no credential has been accepted yet
	proven     bool
}

func newSession(c *Client, host string) *session {
	return &session{client: c, host: host, ready: make(chan struct{}, 1), proving: make(chan struct{}, 1), grants: map[string]*repositoryGrant{}}
}

// get fetches path (below /v2/) with the repository's credential. The statuses
// that a credential can mend are tried with each one; others are the caller's.
func (s *session) get(ctx context.Context, method, repository, path string, limit int64) (*answer, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	done, err := s.prove(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	for {
		grant, err := s.authorize(ctx, repository)
		if err != nil {
			return nil, err
		}
		target := s.scheme + "://" + s.host + "/v2/" + repository + path
		a, err := s.sendOn(ctx, method, target, grant.header, limit)
		if err != nil {
			return nil, s.unreachable(err)
		}
		if !s.isRefusal(method, a) {
			s.accepted(grant)
			a.as = grant.who()
			return a, nil
		}
		again, err := s.rejected(ctx, repository, grant, a)
		if err != nil || !again {
			return a, err
		}
	}
}

// prove lets requests through one at a time until one was answered, so that a
// stale credential is refused once and not for every worker.
func (s *session) prove(ctx context.Context) (done func(), err error) {
	if s.isProven() {
		return func() {}, nil
	}
	if err := take(ctx, s.proving); err != nil {
		return nil, err
	}
	if s.isProven() {
		release(s.proving)
		return func() {}, nil
	}
	return func() { release(s.proving) }, nil
}

// isRefusal says whether another credential may help. A 403 to a HEAD may only
// mean that the storage wants a GET, and what storage elsewhere says is not about
// the registry's credential.
func (s *session) isRefusal(method string, a *answer) bool {
	if a.url.Host != s.host {
		return false
	}
	return a.status == http.StatusUnauthorized || (a.status == http.StatusForbidden && method != http.MethodHead)
}

// prepare pings the registry and looks its credentials up, once. Those who wait
// for a ping that fails get its error as well, unless it was the other's context
// that ended.
func (s *session) prepare(ctx context.Context) error {
	select {
	case s.ready <- struct{}{}:
		defer func() { <-s.ready }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.pinged {
		return nil
	}
	if s.failed != nil && s.failedFor == callOf(ctx) {
		return s.failed
	}
	err := s.ping(ctx)
	if err == nil {
		s.candidates, s.absent = s.client.keys.lookup(s.host)
		s.pinged = true
		return nil
	}
	if ctx.Err() == nil {
		s.failed, s.failedFor = err, callOf(ctx)
	}
	return err
}

// ping asks GET /v2/, which tells whether there is a registry and what it wants.
func (s *session) ping(ctx context.Context) error {
	s.scheme = "https"
	if s.client.plainHTTP(s.host) {
		s.scheme = "http"
	}
	a, err := s.send(ctx, http.MethodGet, s.scheme+"://"+s.host+"/v2/", "", maxBody)
	if err != nil && s.scheme == "https" && isLoopback(s.host) && !untrusted(err) && !errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil {
		s.scheme = "http"
		a, err = s.send(ctx, http.MethodGet, "http://"+s.host+"/v2/", "", maxBody)
	}
	if err != nil {
		return s.unreachable(err)
	}
	switch {
	case a.status == http.StatusUnauthorized:
		s.challenge = readChallenge(a.header)
	case a.status >= 500:
		return s.judge("/v2/", a)
	case isHTML(a.header) && a.header.Get("Docker-Distribution-API-Version") == "":
		return &problem{kind: ErrUnavailable, text: fmt.Sprintf("%s answers /v2/ with a web page (%d, from %s)", s.host, a.status, a.url.Host), fix: "check the host: this is no registry, or a login page stands before it"}
	}
	// Any other status says little: some registries serve no /v2/ at all, and the
	// manifest's own answer decides.
	return nil
}

// sendOn sends, and where that led to another registry which wants a token first,
// gets one from there as nobody: our credential is not for it.
func (s *session) sendOn(ctx context.Context, method, target, authorization string, limit int64) (*answer, error) {
	a, err := s.send(ctx, method, target, authorization, limit)
	if err != nil || a.status != http.StatusUnauthorized || a.url.Host == s.host {
		return a, err
	}
	wants := readChallenge(a.header)
	if wants.scheme != "bearer" {
		return a, nil
	}
	g, _, err := s.token(ctx, wants, wants.scope, login{})
	if err != nil || g == nil {
		return a, err
	}
	return s.send(ctx, method, a.url.String(), g.header, limit)
}

// isHTML: what a login page or a web server answers.
func isHTML(header http.Header) bool {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return kind == "text/html"
}

// plainHTTP says whether a host was named as one to ask without TLS.
func (c *Client) plainHTTP(host string) bool {
	return slices.ContainsFunc(c.options.PlainHTTP, func(named string) bool { return strings.EqualFold(named, host) })
}

// send makes one request and reads the answer, again where it broke off. The authorization goes to the
// registry's own scheme, host and port and nowhere else, wherever it redirects.
func (s *session) send(ctx context.Context, method, target, authorization string, limit int64) (*answer, error) {
	for attempt := 0; ; attempt++ {
		a, err := s.sendOnce(ctx, method, target, authorization, limit)
		if !errors.Is(err, errBrokeOff) || attempt+1 >= networkAttempts || ctx.Err() != nil {
			return a, err
		}
	}
}

// errBrokeOff: the headers came, the body did not.
var errBrokeOff = errors.New("the answer broke off")

func (s *session) sendOnce(ctx context.Context, method, target, authorization string, limit int64) (*answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accepted)
	client := &http.Client{
		Transport:     &authorizer{s.client.transport, req.URL.Scheme, req.URL.Host, authorization},
		CheckRedirect: s.checkRedirect,
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer drain(resp)
	stalled := time.AfterFunc(requestTimeout, cancel)
	defer stalled.Stop()
	return readAnswer(resp, limit)
}

// readAnswer reads the body, and notes when there is more than the limit.
func readAnswer(resp *http.Response, limit int64) (*answer, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBrokeOff, err)
	}
	a := &answer{status: resp.StatusCode, header: resp.Header, body: body, url: resp.Request.URL}
	if int64(len(body)) > limit {
		a.body, a.over = body[:limit], true
	}
	return a, nil
}

// authorizer adds the credential to requests for one origin.
type authorizer struct {
	inner         http.RoundTripper
	scheme, host  string
	authorization string
}

// RoundTrip implements http.RoundTripper.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.authorization != "" && req.URL.Scheme == a.scheme && req.URL.Host == a.host {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", a.authorization)
	}
	return a.inner.RoundTrip(req)
}

// redirectRefused is a redirect that is not followed.
type redirectRefused struct{ from, to, why string }

func (e *redirectRefused) Error() string {
	return fmt.Sprintf("%s redirects to %s, which is not followed: %s", e.from, e.to, e.why)
}

// checkRedirect follows a registry to its storage, but not to plain HTTP and not
// into this network.
func (s *session) checkRedirect(req *http.Request, via []*http.Request) error {
	refuse := func(why string) error { return &redirectRefused{s.host, req.URL.Host, why} }
	switch {
	case len(via) >= 5:
		return refuse("it is the fifth in a row")
	case req.URL.Scheme != "https" && req.URL.Scheme != s.scheme:
		return refuse("it leaves TLS")
	case !s.mayVisit(req.URL):
		return refuse("it is an address inside this network")
	}
	return nil
}

// mayVisit refuses address literals inside this network unless they are the
// registry's own; from loopback to loopback is fine.
func (s *session) mayVisit(u *url.URL) bool {
	if !isInside(u.Host) || hostname(u.Host) == hostname(s.host) {
		return true
	}
	return isLoopback(s.host) && isLoopback(u.Host)
}
