package scm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// TransportOptions says how NewTransport talks to one forge.
type TransportOptions struct {
	// Host is the API's URL. Its scheme, host and port are where the credential
	// may go; the path does not matter.
	Host string
	// Authorize sets the credential's header on a request to Host; nil sends
	// none. It is called before every try, so it may renew a token; it must not
	// send through this Transport.
	Authorize func(*http.Request) error
	UserAgent string   // "" is tagboat
	CAFiles   []string // PEM files, trusted beside the system's authorities

	// Pace is shared with other Transports of this host and credential; nil is one
	// of its own. Writes go one by one.
	Pace *Pace
	// WriteInterval is from one write to the next at least, once ten of a minute
	// went before; 0 is none.
	WriteInterval time.Duration

	Reads  int           // reads in flight at most, without Pace; 0 is 16
	Budget time.Duration // waiting for one request at most, in all; 0 is three minutes
	Tries  int           // of a read that the network or a 5xx stops; 0 is six

	// Observe is told of every try after it ended. It may be called by several
	// goroutines at once.
	Observe func(Try)

	Base  http.RoundTripper                          // below; nil is net/http's, with CAFiles
	Sleep func(context.Context, time.Duration) error // nil sleeps; without Now, the clock moves with it
	Now   func() time.Time                           // nil is time.Now
	Rand  func() float64                             // in [0,1), for the jitter; nil is math/rand
}

// Try is one request that was sent.
type Try struct {
	Method, Path   string
	Write          bool
	Status         int // 0: no answer came
	Started, Ended time.Time
}

// Transport is the http.RoundTripper below every forge's SDK. NewTransport makes
// one; it is safe for concurrent use.
//
// A read (GET, HEAD, or a request whose context is AsRead's) is tried again after
// 429, 5xx and network errors. A write is tried again only where the forge said
// that it did not do it: 429 and GitHub's secondary limit, which is a 403. After
// any other failure of a write its caller reads what is there.
//
// A limit that asks to wait for longer than the budget (or than the context
// lives) is a *StatusError of ErrRateLimited. No answer at all is ErrUnavailable.
// Every other answer is returned as it came.
type Transport struct {
	o    TransportOptions
	host *url.URL
	base http.RoundTripper
	pace *Pace

	readCount, writeCount atomic.Int64
	clock                 reading

	mu      sync.Mutex
	secrets map[string]bool
}

// NewTransport makes a Transport, or says which option is wrong.
func NewTransport(o TransportOptions) (*Transport, error) {
	host, err := url.Parse(o.Host)
	if err != nil || host.Host == "" || host.Scheme != "https" && host.Scheme != "http" {
		return nil, errors.New("forge API: the host's URL is not http:// or https://")
	}
	o = o.withDefaults()
	t := &Transport{o: o, host: host, base: o.Base, pace: o.Pace, secrets: map[string]bool{}}
	if t.pace == nil {
		t.pace = NewPace(o.Reads)
	}
	if t.base == nil {
		if t.base, err = newBase(o.CAFiles, o.Reads); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (o TransportOptions) withDefaults() TransportOptions {
	if o.UserAgent == "" {
		o.UserAgent = "tagboat"
	}
	if o.Reads <= 0 {
		o.Reads = 16
	}
	if o.Budget <= 0 {
		o.Budget = 3 * time.Minute
	}
	if o.Tries <= 0 {
		o.Tries = 6
	}
	if o.Sleep != nil && o.Now == nil {
		o.Sleep, o.Now = virtual(o.Sleep)
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

// virtual is a clock that a given sleep moves, however short it really is.
func virtual(given func(context.Context, time.Duration) error) (func(context.Context, time.Duration) error, func() time.Time) {
	var slept atomic.Int64
	return func(ctx context.Context, d time.Duration) error {
			slept.Add(int64(d))
			return given(ctx, d)
		}, func() time.Time {
			return time.Now().Add(time.Duration(slept.Load()))
		}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Client is an http.Client over the Transport. It follows a redirect only with
// the same method: a write never becomes a read that looks like success.
func (t *Transport) Client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("stopped after 10 redirects")
		}
		if req.Method != via[0].Method {
			return fmt.Errorf("%s %s was redirected: use the repository's new name", via[0].Method, via[0].URL.Path)
		}
		return nil
	}}
}

// Reads is how many reads were sent, tries included.
func (t *Transport) Reads() int { return int(t.readCount.Load()) }

// Writes is how many writes were sent, tries included.
func (t *Transport) Writes() int { return int(t.writeCount.Load()) }

type asRead struct{}

// AsRead marks a context's requests as reads though their method is POST (a
// GraphQL query).
func AsRead(ctx context.Context) context.Context { return context.WithValue(ctx, asRead{}, true) }

func isWrite(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return req.Context().Value(asRead{}) == nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := replayable(req)
	if err != nil {
		return nil, err
	}
	c := &call{t: t, req: req, body: body, write: isWrite(req)}
	slots := t.pace.slots(c.write)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	return c.do()
}

// replayable reads the body of a request, so that it can be sent again.
func replayable(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err := errors.Join(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("read request body: %w", err)
	}
	return body, nil
}

// call is one request with its tries.
type call struct {
	t      *Transport
	req    *http.Request
	body   []byte
	write  bool
	tries  int
	limits int
	waited time.Duration
}

func (c *call) do() (*http.Response, error) {
	for {
		if err := c.gate(); err != nil {
			return nil, err
		}
		resp, err := c.send()
		c.tries++
		d, why := c.verdict(resp, err)
		if why == final {
			return resp, c.finalError(err)
		}
		if why == limited {
			c.t.pace.shut(c.t.o.Now().Add(d))
			if err := c.mayWait(resp, d); err != nil {
				return nil, err
			}
		}
		if resp != nil {
			discard(resp)
		}
		if err := c.wait(d); err != nil {
			return nil, err
		}
	}
}

// gate waits until the time that the forge named to any request before this one,
// and for a write's turn.
func (c *call) gate() error {
	if err := c.whileShut(); err != nil || !c.write || c.t.o.WriteInterval <= 0 {
		return err
	}
	d := c.t.pace.write(c.t.o.Now(), c.t.o.WriteInterval)
	if d <= 0 {
		return nil
	}
	if err := c.t.o.Sleep(c.req.Context(), d); err != nil { // our own manners: not of the budget
		return err
	}
	return c.whileShut()
}

func (c *call) whileShut() error {
	d := c.t.pace.shutFor(c.t.o.Now())
	if d <= 0 {
		return nil
	}
	if err := c.mayWait(nil, d); err != nil {
		return err
	}
	return c.wait(d)
}

func (c *call) wait(d time.Duration) error {
	c.waited += d
	return c.t.o.Sleep(c.req.Context(), d)
}

// mayWait refuses a wait that the budget or the context's deadline forbids.
func (c *call) mayWait(resp *http.Response, d time.Duration) error {
	left := c.t.o.Budget - c.waited
	if deadline, ok := c.req.Context().Deadline(); ok {
		left = min(left, deadline.Sub(c.t.o.Now()))
	}
	if d <= left {
		return nil
	}
	e := &StatusError{Method: c.req.Method, Path: c.req.URL.Path, Status: http.StatusTooManyRequests, Err: ErrRateLimited}
	if resp != nil {
		body := peek(resp)
		discard(resp)
		e = c.t.StatusError(resp, Messages(body)...)
		e.Err = ErrRateLimited
	}
	e.Messages = append(e.Messages, fmt.Sprintf("%s asks to wait %s, this call may wait %s more: run again later",
		c.t.host.Host, d.Round(time.Second), max(left, 0).Round(time.Second)))
	return e
}

func (c *call) send() (*http.Response, error) {
	req := c.req.Clone(c.req.Context())
	if c.body != nil {
		req.Body = io.NopCloser(bytes.NewReader(c.body))
		req.GetBody = nil
	}
	req.Header.Set("User-Agent", c.t.o.UserAgent)
	if err := c.t.authorize(req); err != nil {
		return nil, &authError{err}
	}
	if c.write {
		c.t.writeCount.Add(1)
	} else {
		c.t.readCount.Add(1)
	}
	try := Try{Method: req.Method, Path: req.URL.Path, Write: c.write, Started: time.Now()}
	resp, err := c.t.base.RoundTrip(req)
	if resp != nil {
		try.Status = resp.StatusCode
		resp.Request = c.req // without the credential, for whoever prints it
		if sameHost(req.URL, c.t.host) {
			c.t.clock.take(resp.Header, c.t.o.Now())
		}
	}
	try.Ended = time.Now()
	if c.t.o.Observe != nil {
		c.t.o.Observe(try)
	}
	return resp, err
}

// finalError turns a lost connection into ErrUnavailable, its cause kept.
func (c *call) finalError(err error) error {
	var auth *authError
	switch {
	case err == nil:
		return nil
	case c.req.Context().Err() != nil:
		return c.req.Context().Err()
	case errors.As(err, &auth):
		return auth.error
	}
	hint := ""
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		hint = " (a private certificate authority is added with a CA file)"
	}
	return fmt.Errorf("%w: %s: %w%s", ErrUnavailable, c.t.host.Host, &redacted{err, c.t.Redact(err.Error())}, hint)
}

// redacted is an error whose text holds no credential.
type redacted struct {
	error
	text string
}

// Error is the text without credentials.
func (e *redacted) Error() string { return e.text }

// Unwrap gives the cause, for errors.Is and As.
func (e *redacted) Unwrap() error { return e.error }

// hopeless tells the network errors that another try cannot mend.
func hopeless(err error) bool {
	var cert *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var dns *net.DNSError
	return errors.As(err, &cert) || errors.As(err, &plain) || errors.As(err, &dns) && dns.IsNotFound
}
