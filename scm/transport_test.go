package scm_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
)

const token = "s3cr3t-t0ken"

// answer is one scripted answer of a forge.
type answer struct {
	status int
	header map[string]string
	body   string
	err    error
}

// forge answers in order, the last answer for ever.
type forge struct {
	mu      sync.Mutex
	answers []answer
	seen    []*http.Request
	bodies  []string
}

func (f *forge) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body := ""
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	a := f.answers[min(len(f.seen), len(f.answers)-1)]
	f.seen, f.bodies = append(f.seen, req), append(f.bodies, body)
	if a.err != nil {
		return nil, a.err
	}
	h := http.Header{}
	for k, v := range a.header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body)), Request: req}, nil
}

// clocked is a Transport whose clock only sleeps move; it notes the sleeps.
func clocked(t *testing.T, f *forge, sleeps *[]time.Duration) *scm.Transport {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	tr, err := scm.NewTransport(scm.TransportOptions{
		Host: "https://git.example/api", Base: f,
		Authorize: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+token); return nil },
		Now:       func() time.Time { return now },
		Sleep: func(_ context.Context, d time.Duration) error {
			*sleeps = append(*sleeps, d)
			now = now.Add(d)
			return nil
		},
		Rand: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// send sends one request and reads the answer to its end.
func send(ctx context.Context, tr *scm.Transport, method, url, payload string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(payload))
	if err != nil {
		return 0, "", err
	}
	resp, err := tr.Client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestTransportTriesAgain(t *testing.T) {
	s := time.Second
	ok := answer{status: 200}
	cases := []struct {
		name    string
		method  string
		answers []answer
		sleeps  []time.Duration
		status  int
		err     error
	}{
		{"read after 502", "GET", []answer{{status: 502}, {status: 503}, ok}, []time.Duration{s / 4, s / 2}, 200, nil},
		{"read after a lost connection", "GET", []answer{{err: io.ErrUnexpectedEOF}, ok}, []time.Duration{s / 4}, 200, nil},
		{"5xx for ever is returned", "GET", []answer{{status: 500}}, []time.Duration{s / 4, s / 2, s, 2 * s, 4 * s}, 500, nil},
		{"no answer for ever", "GET", []answer{{err: io.ErrUnexpectedEOF}}, []time.Duration{s / 4, s / 2, s, 2 * s, 4 * s}, 0, scm.ErrUnavailable},
		{"501 is final", "GET", []answer{{status: 501}, ok}, nil, 501, nil},
		{"503 with Retry-After", "GET", []answer{{status: 503, header: map[string]string{"Retry-After": "7"}}, ok}, []time.Duration{7 * s}, 200, nil},
		{"write after 502 is not sent again", "POST", []answer{{status: 502}, ok}, nil, 502, nil},
		{"write after a lost connection is not sent again", "DELETE", []answer{{err: io.ErrUnexpectedEOF}, ok}, nil, 0, scm.ErrUnavailable},
		{"429 with seconds", "POST", []answer{{status: 429, header: map[string]string{"Retry-After": "9"}}, ok}, []time.Duration{9 * s}, 200, nil},
		{"429 with a date", "GET", []answer{{status: 429, header: map[string]string{
			"Retry-After": "Fri, 15 Jan 2027 08:00:30 GMT", "Date": "Fri, 15 Jan 2027 08:00:10 GMT"}}, ok}, []time.Duration{20 * s}, 200, nil},
		{"429 with a reset", "GET", []answer{{status: 429, header: map[string]string{
			"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1800000042"}}, ok}, []time.Duration{42 * s}, 200, nil},
		{"429 of GitLab", "GET", []answer{{status: 429, header: map[string]string{
			"RateLimit-Remaining": "0", "RateLimit-Reset": "1800000005"}}, ok}, []time.Duration{5 * s}, 200, nil},
		{"429 without a header", "PUT", []answer{{status: 429}, {status: 429}, ok}, []time.Duration{s, 2 * s}, 200, nil},
		{"429 with zero does not spin", "GET", []answer{{status: 429, header: map[string]string{"Retry-After": "0"}}, ok}, []time.Duration{s}, 200, nil},
		{"secondary limit by text alone", "POST", []answer{{status: 403, body: `{"message":"You have exceeded a secondary rate limit"}`}, ok}, []time.Duration{60 * s}, 200, nil},
		{"secondary limit with a header", "PATCH", []answer{{status: 403, header: map[string]string{"Retry-After": "3"}}, ok}, []time.Duration{3 * s}, 200, nil},
		{"a plain 403 is final", "POST", []answer{{status: 403, body: "no"}, ok}, nil, 403, nil},
		{"429 for longer than the budget", "GET", []answer{{status: 429, header: map[string]string{"Retry-After": "3600"}}, ok}, nil, 0, scm.ErrRateLimited},
		{"429 for ever", "GET", []answer{{status: 429, header: map[string]string{"Retry-After": "80"}}}, []time.Duration{80 * s, 80 * s}, 0, scm.ErrRateLimited},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := &forge{answers: c.answers}
			var sleeps []time.Duration
			status, _, err := send(t.Context(), clocked(t, f, &sleeps), c.method, "https://git.example/api/x", "payload")
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			if d := cmp.Diff(c.sleeps, sleeps); d != "" {
				t.Errorf("sleeps: %s", d)
			}
			for i, body := range f.bodies {
				if body != "payload" {
					t.Errorf("body of try %d: %q", i, body)
				}
			}
		})
	}
}

func TestTransportPutsBackTheBodyThatItLookedAt(t *testing.T) {
	var sleeps []time.Duration
	tr := clocked(t, &forge{answers: []answer{{status: 403, body: `{"message":"Resource not accessible by integration"}`}}}, &sleeps)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://git.example/api/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	e := tr.StatusError(resp, scm.Messages(body)...)
	if want := "GET /api/x: 403 Forbidden: Resource not accessible by integration"; e.Error() != want || !errors.Is(e, scm.ErrDenied) {
		t.Errorf("got %q, want %q", e, want)
	}
}

func TestLimitOfOneRequestHoldsBackTheOthers(t *testing.T) {
	f := &forge{answers: []answer{{status: 429, header: map[string]string{"Retry-After": "3600"}}, {status: 200}}}
	var sleeps []time.Duration
	tr := clocked(t, f, &sleeps)
	for range 2 {
		if _, _, err := send(t.Context(), tr, "GET", "https://git.example/api/x", ""); !errors.Is(err, scm.ErrRateLimited) {
			t.Fatalf("got %v", err)
		}
	}
	if len(sleeps) != 0 || len(f.seen) != 1 {
		t.Errorf("slept %v, sent %d requests, want one", sleeps, len(f.seen))
	}
}

func TestDeadlineThatComesBeforeTheLimitEnds(t *testing.T) {
	f := &forge{answers: []answer{{status: 429, header: map[string]string{"Retry-After": "60"}, body: `{"message":"slow down"}`}}}
	tr, err := scm.NewTransport(scm.TransportOptions{Host: "https://git.example", Base: f})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, _, err = send(ctx, tr, "GET", "https://git.example/x", "")
	var status *scm.StatusError
	if !errors.As(err, &status) || !errors.Is(err, scm.ErrRateLimited) || !status.Says("slow down") || !status.Says("asks to wait 1m") {
		t.Errorf("got %v", err)
	}
}

func TestTokenGoesToItsOwnHostOnly(t *testing.T) {
	for _, c := range []struct {
		url  string
		want string
	}{
		{"https://git.example/api", "Bearer " + token},
		{"https://GIT.example:443/other", "Bearer " + token},
		{"http://git.example/api", ""},
		{"https://git.example:8443/api", ""},
		{"https://git.example.evil.example/api", ""},
		{"https://cdn.example/api", ""},
	} {
		t.Run(c.url, func(t *testing.T) {
			f := &forge{answers: []answer{{status: 200}}}
			var sleeps []time.Duration
			req, err := http.NewRequestWithContext(t.Context(), "GET", c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				req.Header.Set("Private-Token", token) // as an SDK does, and net/http on a redirect
			}
			resp, err := clocked(t, f, &sleeps).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			sent := f.seen[0].Header
			if sent.Get("Authorization") != c.want || sent.Get("Private-Token") != "" {
				t.Errorf("sent %v", sent)
			}
			if sent.Get("User-Agent") != "tagboat" {
				t.Errorf("user agent %q", sent.Get("User-Agent"))
			}
			if req.Header.Get("Authorization") != "" {
				t.Error("the caller's request was changed")
			}
		})
	}
}

func TestTokenIsDroppedOnARedirect(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked.Store(r.Header.Get("Authorization")+r.Header.Get("Private-Token") != "")
	}))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusMovedPermanently)
	}))
	defer own.Close()
	tr, err := scm.NewTransport(scm.TransportOptions{Host: own.URL, Authorize: func(r *http.Request) error {
		r.Header.Set("Private-Token", token)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := send(t.Context(), tr, "GET", own.URL, ""); err != nil {
		t.Fatal(err)
	}
	if leaked.Load() {
		t.Error("the token went to another host")
	}
	if _, _, err := send(t.Context(), tr, "POST", own.URL, "x"); err == nil || !strings.Contains(err.Error(), "new name") {
		t.Errorf("a redirected write: %v", err)
	}
}

func TestErrorsHoldNoToken(t *testing.T) {
	f := &forge{answers: []answer{{err: fmt.Errorf("proxy says no to %s", token)}}}
	var sleeps []time.Duration
	tr := clocked(t, f, &sleeps)
	_, _, err := send(t.Context(), tr, "GET", "https://git.example/x", "")
	if err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "git.example: proxy says no to ***") {
		t.Errorf("got %v", err)
	}
	resp := &http.Response{StatusCode: 422}
	if e := tr.StatusError(resp, "bad "+token, "<html>"+token); strings.Contains(e.Error(), token) {
		t.Errorf("got %v", e)
	}
}

func TestWritesGoOneByOneAndReadsSixteenAtOnce(t *testing.T) {
	var now, most [2]atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		kind := 0
		if r.Method == "POST" {
			kind = 1
		}
		n := now[kind].Add(1)
		for old := most[kind].Load(); n > old && !most[kind].CompareAndSwap(old, n); old = most[kind].Load() {
		}
		time.Sleep(5 * time.Millisecond)
		now[kind].Add(-1)
	}))
	defer server.Close()
	var tries atomic.Int64
	tr, err := scm.NewTransport(scm.TransportOptions{Host: server.URL, Observe: func(scm.Try) { tries.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 60 {
		method := []string{"GET", "GET", "POST"}[i%3]
		wg.Go(func() {
			if _, _, err := send(t.Context(), tr, method, server.URL, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most[0].Load() > 16 || most[0].Load() < 2 || most[1].Load() != 1 {
		t.Errorf("at once: %d reads, %d writes", most[0].Load(), most[1].Load())
	}
	if tr.Reads() != 40 || tr.Writes() != 20 || tries.Load() != 60 {
		t.Errorf("counted %d reads, %d writes, observed %d", tr.Reads(), tr.Writes(), tries.Load())
	}
}

func TestGraphQLQueryIsARead(t *testing.T) {
	f := &forge{answers: []answer{{status: 502}, {status: 200}}}
	var sleeps []time.Duration
	tr := clocked(t, f, &sleeps)
	if _, _, err := send(scm.AsRead(t.Context()), tr, "POST", "https://git.example/graphql", "payload"); err != nil {
		t.Fatal(err)
	}
	if tr.Reads() != 2 || tr.Writes() != 0 || f.bodies[1] != "payload" {
		t.Errorf("reads %d, writes %d, bodies %q", tr.Reads(), tr.Writes(), f.bodies)
	}
}

func TestPrivateCA(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	get := func(files ...string) error {
		tr, err := scm.NewTransport(scm.TransportOptions{Host: server.URL, CAFiles: files})
		if err != nil {
			return err
		}
		_, _, err = send(t.Context(), tr, "GET", server.URL, "")
		return err
	}
	if err := get(); !errors.Is(err, scm.ErrUnavailable) || !strings.Contains(err.Error(), "CA file") {
		t.Errorf("without the CA: %v", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := get(ca); err != nil {
		t.Errorf("with the CA: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := get(empty); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Errorf("with an empty file: %v", err)
	}
}

func TestMessages(t *testing.T) {
	cases := []struct{ name, body, want string }{
		{"GitHub", `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"A pull request already exists"},"plain"]}`,
			"Validation Failed|A pull request already exists|plain"},
		{"GitHub code only", `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"title","code":"missing_field"}]}`,
			"Validation Failed|Issue title missing_field"},
		{"GitLab fields", `{"message":{"base":["already exists"],"title":["is too long"]}}`, "base already exists|title is too long"},
		{"GitLab list", `{"message":["Another open merge request already exists"]}`, "Another open merge request already exists"},
		{"GitLab OAuth", `{"error":"insufficient_scope","error_description":"needs api"}`, "insufficient_scope|needs api"},
		{"Gitea", `{"message":"sha does not match","url":"https://git.example/api/swagger"}`, "sha does not match"},
		{"text", "Bad gateway\n", "Bad gateway"},
		{"nothing", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(scm.Messages([]byte(c.body)), "|"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
