package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/image"
)

// Options are what a Client is made of. The zero value asks public registries
// with whatever credentials the environment and Docker's configuration hold.
type Options struct {
	Env        func(string) string // environment variables; os.Getenv where nil (the SDKs of Google and AWS read the process's own)
	ConfigDir  string              // where Docker's config.json is; $DOCKER_CONFIG, then $HOME/.docker, where empty
	CAFiles    []string            // PEM files, trusted besides the system's authorities
	PlainHTTP  []string            // hosts (with their port, if any) that are asked without TLS; loopback need not be named
	TokenHosts []string            // token servers that may get a credential although they are of another domain than the registry
	Budget     time.Duration       // how long one call may wait for 429 and 5xx in all; 2 minutes where zero, none where negative
	Workers    int                 // requests in flight per host; 12 where zero
	UserAgent  string              // "tagboat" where empty
	Warn       func(string)        // what concerns the registry rather than one image, e.g. a stale credential; one call at a time
	Secret     func(string)        // told each secret before its first use, to be masked; one call at a time

	Now   func() time.Time                           // time.Now where nil
	Sleep func(context.Context, time.Duration) error // waits, or returns the context's error; a timer where nil

	base http.RoundTripper // tests: below retries and counting
}

// Client asks registries. It is safe for concurrent use, and keeps for its
// lifetime what one process needs once: a registry's challenge, its credential,
// one token per repository, and the manifests that were read.
type Client struct {
	options   Options
	transport *transport
	keys      *keychain
	secrets   *secrets
	manifests *memory

	mu       sync.Mutex
	warned   map[string]bool
	sessions map[string]*session
}

// New makes a client. It fails on a CA file that cannot be read or holds no
// certificate, and on TAGBOAT_REGISTRY_* variables that do not say which
// registry they are for.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	base := o.base
	if base == nil {
		var err error
		if base, err = newBase(o); err != nil {
			return nil, err
		}
	}
	secrets := &secrets{tell: o.Secret, seen: map[string]bool{}}
	keys, err := newKeychain(o, secrets)
	if err != nil {
		return nil, err
	}
	return &Client{
		options:   o,
		transport: newTransport(base, o),
		keys:      keys,
		secrets:   secrets,
		manifests: &memory{},
		warned:    map[string]bool{},
		sessions:  map[string]*session{},
	}, nil
}

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Budget == 0 {
		o.Budget = 2 * time.Minute
	}
	if o.Workers == 0 {
		o.Workers = 12
	}
	if o.UserAgent == "" {
		o.UserAgent = "tagboat"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	o.TokenHosts = append(slices.Clone(o.TokenHosts), fields(o.Env("TAGBOAT_REGISTRY_TOKEN_HOSTS"))...)
	return o
}

// newBase is the connection: proxies from the environment, the system's
// authorities and the given ones.
func newBase(o Options) (http.RoundTripper, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = o.Workers
	base.ResponseHeaderTimeout = requestTimeout
	base.DisableCompression = true // digests are of the bytes as they are stored
	if len(o.CAFiles) == 0 {
		return base, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
	}
	for _, file := range o.CAFiles {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read CA file %s: it holds no PEM certificate", file)
		}
	}
	base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return base, nil
}

// ResolveAll resolves many images at once; images and errors are in the order of
// the queries. One registry is pinged once and asked for its credential once, no
// matter how many images it holds, and one retry budget covers the whole call.
func (c *Client) ResolveAll(ctx context.Context, qs []Query) ([]Image, []error) {
	var longest time.Duration
	for _, q := range qs {
		longest = max(longest, q.Wait)
	}
	ctx = c.begin(ctx, longest)
	images, errs := make([]Image, len(qs)), make([]error, len(qs))
	var group errgroup.Group
	group.SetLimit(8 * c.options.Workers) // requests are bounded per host below; this bounds memory
	for i, q := range qs {
		group.Go(func() error {
			images[i], errs[i] = c.Resolve(ctx, q)
			return nil
		})
	}
	_ = group.Wait() // each error is its own image's
	return images, errs
}

// Requests is how many HTTP requests the client has sent: pings, tokens,
// manifests, blobs, retries and followed redirects.
func (c *Client) Requests() int { return int(c.transport.requests.Load()) }

// Secrets are all the passwords and tokens that the client has picked up so far.
func (c *Client) Secrets() []string { return c.secrets.all() }

// begin marks the start of one call, whose retries share one budget; waiting for a
// 404 to turn is not counted against it.
func (c *Client) begin(ctx context.Context, wait time.Duration) context.Context {
	if callOf(ctx) != nil {
		return ctx
	}
	budget := max(c.options.Budget, 0)
	return withCall(ctx, &call{deadline: c.options.Now().Add(budget + wait), budget: budget})
}

// session is the one session of a repository's registry.
func (c *Client) session(repository string) *session {
	host := image.Host(repository)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[host]
	if s == nil {
		s = newSession(c, host)
		c.sessions[host] = s
	}
	return s
}

// warn tells each text once.
func (c *Client) warn(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.options.Warn == nil || c.warned[text] {
		return
	}
	c.warned[text] = true
	c.options.Warn(text)
}

// path is the repository's name on its registry.
func path(repository string) string {
	_, path, _ := strings.Cut(image.Canonical(repository), "/")
	return path
}

// fields splits a list that is separated by commas or white space.
func fields(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// secrets remembers what must never be shown.
type secrets struct {
	tell func(string)
	mu   sync.Mutex
	seen map[string]bool
}

// add takes in a secret before it is used. Very short ones are left out: masking
// "a" would mask every text.
func (s *secrets) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(secret) < 4 || s.seen[secret] {
		return
	}
	s.seen[secret] = true
	if s.tell != nil {
		s.tell(secret)
	}
}

func (s *secrets) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.seen))
	for secret := range s.seen {
		all = append(all, secret)
	}
	slices.Sort(all)
	return all
}

// redact takes the secrets out of a text of the registry's.
func (s *secrets) redact(text string) string {
	all := s.all()
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
