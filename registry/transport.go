package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	requestTimeout  = 30 * time.Second // for one attempt to answer with headers
	longestBackoff  = 30 * time.Second
	networkAttempts = 3 // for connections that break; a status is retried until the budget is spent
)

// call is one call of the Client: the time until which its retries may wait.
type call struct {
	deadline time.Time
	budget   time.Duration
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// transport counts requests, bounds those in flight per host, and waits for 429
// and 5xx inside the call's budget. A 429 closes one gate for all requests to
// that host, so that a hundred workers stop together.
type transport struct {
	base     http.RoundTripper
	agent    string
	workers  int
	now      func() time.Time
	sleep    func(context.Context, time.Duration) error
	requests atomic.Int64

	mu    sync.Mutex
	hosts map[string]*hostState
}

type hostState struct {
	slots chan struct{}
	mu    sync.Mutex
	until time.Time // closed before
}

func newTransport(base http.RoundTripper, o Options) *transport {
	return &transport{base: base, agent: o.UserAgent, workers: o.Workers, now: o.Now, sleep: o.Sleep, hosts: map[string]*hostState{}}
}

// rateLimited is returned where waiting would break the budget.
type rateLimited struct {
	host      string
	wait      time.Duration
	budget    time.Duration
	remaining string // the RateLimit-Remaining header, where there was one
}

func (e *rateLimited) Error() string {
	text := fmt.Sprintf("%s answered 429 and asks to wait %s, which the budget of %s for retries does not allow", e.host, e.wait.Round(time.Second), e.budget)
	if e.remaining != "" {
		text += fmt.Sprintf(" (RateLimit-Remaining: %s)", e.remaining)
	}
	return text
}

func (e *rateLimited) Unwrap() error { return ErrRateLimited }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, host := req.Context(), t.host(req.URL.Host)
	limit := callOf(ctx)
	if limit == nil {
		limit = &call{deadline: t.now()}
	}
	for attempt := 0; ; attempt++ {
		if err := t.enter(ctx, host, req.URL.Host, limit); err != nil {
			return nil, err
		}
		resp, err := t.once(req)
		wait, again := t.verdict(resp, err, attempt)
		if again && resp != nil && resp.StatusCode == http.StatusTooManyRequests {
			host.close(t.now().Add(wait)) // before the slot is free
		}
		host.leave()
		if !again || ctx.Err() != nil {
			return resp, err
		}
		late := t.now().Add(wait).After(limit.deadline)
		if resp != nil && resp.StatusCode == http.StatusTooManyRequests {
			if late {
				drain(resp)
				return nil, &rateLimited{req.URL.Host, wait, limit.budget, resp.Header.Get("RateLimit-Remaining")}
			}
			drain(resp)
			continue // the gate does the waiting
		}
		if late {
			return resp, err
		}
		drain(resp)
		if err := t.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (t *transport) host(name string) *hostState {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[name]
	if h == nil {
		h = &hostState{slots: make(chan struct{}, t.workers)}
		t.hosts[name] = h
	}
	return h
}

// enter takes a slot when the host's gate is open; it may have closed while others
// held the slots.
func (t *transport) enter(ctx context.Context, host *hostState, name string, limit *call) error {
	for {
		if err := t.pass(ctx, host, name, limit); err != nil {
			return err
		}
		if err := take(ctx, host.slots); err != nil {
			return err
		}
		if !host.opens().After(t.now()) {
			return nil
		}
		host.leave()
	}
}

func (h *hostState) leave() { release(h.slots) }

// pass waits until the host's gate is open.
func (t *transport) pass(ctx context.Context, host *hostState, name string, limit *call) error {
	for {
		wait := host.opens().Sub(t.now())
		if wait <= 0 {
			return nil
		}
		if t.now().Add(wait).After(limit.deadline) {
			return &rateLimited{host: name, wait: wait, budget: limit.budget}
		}
		if err := t.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (h *hostState) opens() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

func (h *hostState) close(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.After(h.until) {
		h.until = until
	}
}

// once sends one request.
func (t *transport) once(req *http.Request) (*http.Response, error) {
	try := req.Clone(req.Context())
	try.Header.Set("User-Agent", t.agent)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		try.Body = body
	}
	t.requests.Add(1)
	resp, err := t.base.RoundTrip(try)
	if schemeMismatch(err) {
		t.requests.Add(-1) // TLS against a plain port: no request was made
	}
	return resp, err
}

// verdict says whether to send the request again, and after how long.
func (t *transport) verdict(resp *http.Response, err error, attempt int) (time.Duration, bool) {
	if err != nil {
		return backoff(attempt), attempt+1 < networkAttempts && transient(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if wait, told := retryAfter(resp.Header.Get("Retry-After"), t.now()); told {
			return wait, true
		}
		return backoff(attempt), true
	}
	return 0, false
}

// retryAfter reads both forms of RFC 9110, section 10.2.3. A wait of zero is made
// a second, lest a storm follow.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return max(time.Duration(min(seconds, 1<<30))*time.Second, time.Second), true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), time.Second), true
	}
	return 0, false
}

// backoff doubles from a second, with jitter in its upper half.
func backoff(attempt int) time.Duration {
	d := min(time.Second<<min(attempt, 10), longestBackoff)
	return d/2 + rand.N(d/2+1)
}

// transient says whether a connection that failed may work in a second.
func transient(err error) bool {
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case schemeMismatch(err), untrusted(err):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	}
	return true
}

// schemeMismatch: the other side speaks plain HTTP where TLS was tried.
func schemeMismatch(err error) bool {
	var record tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record)
}

// untrusted: the certificate was not accepted.
func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// drain makes the connection usable again.
func drain(resp *http.Response) {
	if resp == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}
