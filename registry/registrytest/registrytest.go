// Package registrytest is an in-process image registry for tests and the demo. It
// speaks the OCI distribution protocol on 127.0.0.1, and has knobs for what real
// registries do: refuse, limit, lie, want a token, answer late, lose manifests.
package registrytest

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is a running registry. Its methods are safe for concurrent use.
type Registry struct {
	server *httptest.Server
	inner  http.Handler

	mu       sync.Mutex
	log      []Request
	rules    []*rule
	auth     *auth
	inFlight int
	peak     int
}

// Request is one request that arrived.
type Request struct {
	Method        string
	Path          string // with the query
	Authorization string
	UserAgent     string
	Accept        string
	Status        int
}

// String is the request in one line, without its credential.
func (r Request) String() string { return fmt.Sprintf("%s %s %d", r.Method, r.Path, r.Status) }

// Option changes how a registry starts.
type Option func(*settings)

type settings struct {
	tls  bool
	auth *auth
}

// WithTLS serves HTTPS with a certificate of the registry's own, which nobody
// trusts; CA is its authority's PEM.
func WithTLS() Option { return func(s *settings) { s.tls = true } }

// WithBasic wants user and password with each request.
func WithBasic(user, password string) Option {
	return func(s *settings) { s.auth = &auth{user: user, password: password} }
}

// WithToken wants a bearer token, which its token server (/token) gives for user
// and password, as Docker Hub and most registries do.
func WithToken(user, password string) Option {
	return func(s *settings) { s.auth = &auth{user: user, password: password, bearer: true} }
}

// WithAnonymousPull lets everybody read, after the handshake.
func WithAnonymousPull() Option { return func(s *settings) { s.auth.anonymous = true } }

// WithRealm names another token server, e.g. one on another host.
func WithRealm(url string) Option { return func(s *settings) { s.auth.realm = url } }

// New starts a registry on a free port of 127.0.0.1. Close it when done.
func New(options ...Option) *Registry {
	var s settings
	for _, o := range options {
		o(&s)
	}
	r := &Registry{inner: registry.New(registry.Logger(log.New(io.Discard, "", 0))), auth: s.auth}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that try TLS first, or do not trust us
	if s.tls {
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	return r
}

// URL is where the registry is, e.g. http://127.0.0.1:12345.
func (r *Registry) URL() string { return r.server.URL }

// Host is the registry as an image reference begins, e.g. 127.0.0.1:12345.
func (r *Registry) Host() string {
	u, err := url.Parse(r.server.URL)
	if err != nil {
		panic(err) // httptest made it
	}
	return u.Host
}

// Close stops the registry, and with it its images.
func (r *Registry) Close() { r.server.Close() }

// Requests are those that arrived since the start or the last Forget, pushes
// through PushImage left out.
func (r *Registry) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// Count is how many of them have a method (any where "") and a path that
// contains part.
func (r *Registry) Count(method, part string) int {
	n := 0
	for _, q := range r.Requests() {
		if (method == "" || q.Method == method) && strings.Contains(q.Path, part) {
			n++
		}
	}
	return n
}

// Peak is the greatest number of requests that were served at the same time.
func (r *Registry) Peak() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peak
}

// Forget empties the log.
func (r *Registry) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log, r.peak = nil, 0
}

// serve keeps the log around the real work.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.inFlight++
	r.peak = max(r.peak, r.inFlight)
	r.mu.Unlock()
	recorder := &recorder{ResponseWriter: w, status: http.StatusOK}
	r.handle(recorder, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	r.log = append(r.log, Request{req.Method, req.URL.RequestURI(), req.Header.Get("Authorization"), req.UserAgent(), req.Header.Get("Accept"), recorder.status})
}

func (r *Registry) handle(w http.ResponseWriter, req *http.Request) {
	if r.apply(w, req) || r.gatekeep(w, req) {
		return
	}
	r.inner.ServeHTTP(w, req)
}

// recorder sees the status that goes out.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
