package registry

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"tagboat/image"
	"tagboat/registry/registrytest"
)

// clock is time that passes only when someone sleeps.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

func (c *clock) total() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum time.Duration
	for _, d := range c.slept {
		sum += d
	}
	return sum
}

// elsewhere sends requests for the hosts of the internet to local servers.
type elsewhere map[string]string

func (e elsewhere) RoundTrip(req *http.Request) (*http.Response, error) {
	to, known := e[req.URL.Host]
	if !known {
		return http.DefaultTransport.RoundTrip(req)
	}
	local, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	moved := req.Clone(req.Context())
	moved.URL.Scheme, moved.URL.Host, moved.Host = local.Scheme, local.Host, req.URL.Host
	resp, err := http.DefaultTransport.RoundTrip(moved)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// start is a running registry, and a client that finds no credential anywhere.
func start(t *testing.T, options ...registrytest.Option) (*registrytest.Registry, *Client) {
	t.Helper()
	r := registrytest.New(options...)
	t.Cleanup(r.Close)
	return r, newClient(t, Options{})
}

// newClient makes a client without credentials, whose time passes by sleeping
// alone, unless the options say else.
func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Env == nil {
		o.Env = env(nil)
	}
	if o.Now == nil {
		time := newClock()
		o.Now, o.Sleep = time.Now, time.Sleep
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func env(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

// basicAuth is a password for another client than ours; nobody's where user is "".
func basicAuth(user, password string) authn.Authenticator {
	if user == "" {
		return authn.Anonymous
	}
	return &authn.Basic{Username: user, Password: password}
}

func push(t *testing.T, r *registrytest.Registry, ref string, spec registrytest.ImageSpec) string {
	t.Helper()
	digest, err := r.PushImage(ref, spec)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func reference(t *testing.T, s string) image.Reference {
	t.Helper()
	ref, err := image.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
