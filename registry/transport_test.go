package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tagboat/registry/registrytest"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"5": 5 * time.Second, " 5 ": 5 * time.Second, "0": time.Second,
		"Fri, 01 May 2026 12:00:30 GMT": 30 * time.Second,
		"Fri, 01 May 2026 11:00:00 GMT": time.Second,
		"":                              0, "soon": 0, "-1": 0,
	} {
		got, told := retryAfter(value, now)
		if got != want || told != (want != 0) {
			t.Errorf("retryAfter(%q) = %s, %v; want %s", value, got, told, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	for attempt, most := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second, 5: longestBackoff, 1000: longestBackoff} {
		for range 20 {
			if d := backoff(attempt); d > most || d < most/2 {
				t.Errorf("backoff(%d) = %s, want %s to %s", attempt, d, most/2, most)
			}
		}
	}
}

// Each way in which a registry asks for patience, inside and outside the budget.
func TestLimitsAndOutages(t *testing.T) {
	everything := registrytest.Match{}
	for name, test := range map[string]struct {
		turn     func(*registrytest.Registry)
		budget   time.Duration
		want     error
		says     string
		least    time.Duration
		most     time.Duration
		requests int // 0: any number
	}{
		"429 with seconds": {turn: func(r *registrytest.Registry) { r.Limit(registrytest.Match{Path: "/manifests/", Times: 1}, "5") }, least: 5 * time.Second, most: 5 * time.Second, requests: 3},
		"429 with a date": {turn: func(r *registrytest.Registry) {
			r.Limit(registrytest.Match{Path: "/manifests/", Times: 1}, "Fri, 01 May 2026 12:00:07 GMT")
		}, least: 7 * time.Second, most: 7 * time.Second, requests: 3},
		"429 on the ping":    {turn: func(r *registrytest.Registry) { r.Limit(registrytest.Match{Path: "/v2/", Times: 1}, "5") }, least: 5 * time.Second, most: 5 * time.Second, requests: 3},
		"429 without a time": {turn: func(r *registrytest.Registry) { r.Limit(registrytest.Match{Path: "/manifests/", Times: 3}, "") }, least: 3500 * time.Millisecond, most: 7 * time.Second, requests: 5},
		"429 as a web page": {turn: func(r *registrytest.Registry) {
			r.Fail(registrytest.Match{Path: "/manifests/", Times: 1}, 429, "<html>")
		}, least: 500 * time.Millisecond, most: time.Second, requests: 3},
		"429 longer than the budget": {turn: func(r *registrytest.Registry) { r.Limit(registrytest.Match{Path: "/manifests/"}, "3600") }, want: ErrRateLimited, says: "1h0m0s", requests: 2},
		"429 for ever":               {turn: func(r *registrytest.Registry) { r.Limit(registrytest.Match{Path: "/manifests/"}, "50") }, want: ErrRateLimited, says: "2m0s", least: 100 * time.Second, most: 100 * time.Second, requests: 4},
		"429, no budget":             {turn: func(r *registrytest.Registry) { r.Limit(everything, "1") }, budget: -1, want: ErrRateLimited, requests: 1},
		"503 with seconds": {turn: func(r *registrytest.Registry) {
			r.Fail(registrytest.Match{Path: "/manifests/", Times: 2}, 503, "UNAVAILABLE")
		}, least: 1500 * time.Millisecond, most: 3 * time.Second, requests: 4},
		"500 for ever":               {turn: func(r *registrytest.Registry) { r.Fail(registrytest.Match{Path: "/manifests/"}, 500, "UNKNOWN") }, want: ErrUnavailable, says: "500 UNKNOWN", least: 60 * time.Second, most: 2 * time.Minute},
		"502 on the ping, no budget": {turn: func(r *registrytest.Registry) { r.Fail(everything, 502, "") }, budget: -1, want: ErrUnavailable, says: "502", requests: 1},
		"404 is not retried": {turn: func(r *registrytest.Registry) {
			r.Fail(registrytest.Match{Path: "/manifests/"}, 404, "MANIFEST_UNKNOWN")
		}, want: ErrNotFound, requests: 2},
		"400 is not retried": {turn: func(r *registrytest.Registry) { r.Fail(registrytest.Match{Path: "/manifests/"}, 400, "NAME_INVALID") }, want: errAny, says: "400 NAME_INVALID", requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := start(t)
			time := newClock()
			c := newClient(t, Options{Now: time.Now, Sleep: time.Sleep, Budget: test.budget})
			push(t, r, "acme/app:v1", registrytest.ImageSpec{})
			test.turn(r)
			_, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")})
			if !errors.Is(err, test.want) && (!errors.Is(test.want, errAny) || err == nil) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v does not say %q", err, test.says)
			}
			if time.total() < test.least || time.total() > test.most {
				t.Errorf("waited %s, want %s to %s", time.total(), test.least, test.most)
			}
			if n := c.Requests(); test.requests > 0 && (n != test.requests || n != r.Count("", "")) {
				t.Errorf("%d requests counted, %d arrived, want %d", n, r.Count("", ""), test.requests)
			}
		})
	}
}

var errAny = errors.New("any error")

// One 429 stops all workers of a host: no storm while the window lasts.
func TestSharedGate(t *testing.T) {
	r, _ := start(t)
	time := newClock()
	c := newClient(t, Options{Now: time.Now, Sleep: time.Sleep, Workers: 8})
	var qs []Query
	for i := range 100 {
		ref := fmt.Sprintf("acme/app-%d:v1", i)
		push(t, r, ref, registrytest.ImageSpec{})
		qs = append(qs, Query{Reference: reference(t, r.Host()+"/"+ref)})
	}
	r.Limit(registrytest.Match{Path: "/manifests/"}, "3600")
	_, errs := c.ResolveAll(context.Background(), qs)
	for _, err := range errs {
		if !errors.Is(err, ErrRateLimited) {
			t.Fatalf("%v, want ErrRateLimited", err)
		}
	}
	if n := r.Count("", "/manifests/"); n > 8 {
		t.Errorf("%d requests in the window, want one per worker at most", n)
	}
}

func TestCallersContext(t *testing.T) {
	r, c := start(t)
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	r.Delay(registrytest.Match{Path: "/v2/"}, 5*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := c.Resolve(ctx, Query{Reference: reference(t, r.Host()+"/acme/app:v1"), Wait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's deadline", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	r.Reset() // another's deadline is not ours
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")}); err != nil {
		t.Errorf("after another caller's deadline: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	host := strings.TrimPrefix(gone.URL, "http://")
	gone.Close()
	c := newClient(t, Options{})
	_, err := c.Resolve(context.Background(), Query{Reference: reference(t, host+"/acme/app:v1")})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v, want ErrUnavailable, the host and the cause", err)
	}
}

func TestPrivateAuthority(t *testing.T) {
	r := registrytest.New(registrytest.WithTLS())
	defer r.Close()
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	q := Query{Reference: reference(t, r.Host()+"/acme/app:v1")}

	_, err := newClient(t, Options{}).Resolve(context.Background(), q)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "--ca-file") {
		t.Errorf("without its CA: %v, want ErrUnavailable that names --ca-file", err)
	}
	if n := r.Count("", ""); n != 0 {
		t.Errorf("%d requests reached a registry that is not trusted", n)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, r.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Options{CAFiles: []string{file}})
	if _, err := c.Resolve(context.Background(), q); err != nil {
		t.Errorf("with its CA: %v", err)
	}
	if c.Requests() != 2 {
		t.Errorf("%d requests, want 2", c.Requests())
	}
}

func TestBadCAFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, filepath.Join(t.TempDir(), "absent.pem")} {
		if _, err := New(Options{CAFiles: []string{file}, Env: env(nil)}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want an error that names it", file, err)
		}
	}
}

// Plain HTTP is for loopback and for hosts that were named, not for whatever
// looks private.
func TestPlainHTTP(t *testing.T) {
	r := registrytest.New()
	defer r.Close()
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	private := "10.1.2.3:5000"
	for name, test := range map[string]struct {
		host  string
		plain []string
		ok    bool
	}{
		"loopback":          {host: r.Host(), ok: true},
		"localhost":         {host: strings.Replace(r.Host(), "127.0.0.1", "localhost", 1), ok: true},
		"private":           {host: private},
		"private, named":    {host: private, plain: []string{private}, ok: true},
		"name":              {host: "registry.example"},
		"name, named":       {host: "registry.example", plain: []string{"Registry.Example"}, ok: true},
		"other port, named": {host: private, plain: []string{"10.1.2.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, Options{PlainHTTP: test.plain, base: onlyPlain{elsewhere{private: r.URL(), "registry.example": r.URL()}}})
			_, err := c.Resolve(context.Background(), Query{Reference: reference(t, test.host+"/acme/app:v1")})
			if (err == nil) != test.ok {
				t.Fatalf("%v, want ok: %v", err, test.ok)
			}
			if err != nil && (!errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "--plain-http "+test.host)) {
				t.Errorf("%v does not name --plain-http", err)
			}
		})
	}
}

// onlyPlain refuses TLS as a plain server does.
type onlyPlain struct{ elsewhere }

func (o onlyPlain) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "https" {
		return nil, http.ErrSchemeMismatch
	}
	return o.elsewhere.RoundTrip(req)
}

func TestBodyBreaksOff(t *testing.T) {
	broken := 0
	r, _ := start(t)
	digest := push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.Contains(req.URL.Path, "/manifests/") && broken < 1 {
			broken++
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("{"))
			return
		}
		http.Redirect(w, req, r.URL()+req.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer front.Close()
	got, err := newClient(t, Options{}).Resolve(context.Background(), Query{Reference: reference(t, strings.TrimPrefix(front.URL, "http://")+"/acme/app:v1")})
	if err != nil || got.Reference.Digest != digest {
		t.Errorf("%+v, %v", got, err)
	}
}
