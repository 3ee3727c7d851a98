package registrytest

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// Match says which requests a knob is for. The zero value is all of them.
type Match struct {
	Method string // any where ""
	Path   string // a part of the path, e.g. "/manifests/v1"; any where ""
	Times  int    // how often, then the registry is itself again; for ever where 0
}

// rule is a knob that was turned.
type rule struct {
	Match
	used int
	act  func(r *Registry, w http.ResponseWriter, req *http.Request)
}

func (r *Registry) add(m Match, act func(*Registry, http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, &rule{Match: m, act: act})
}

// Reset takes back all knobs.
func (r *Registry) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = nil
}

// Fail answers with a status and an error body of the distribution protocol.
func (r *Registry) Fail(m Match, status int, code string) {
	r.add(m, func(_ *Registry, w http.ResponseWriter, req *http.Request) { writeError(w, req, status, code) })
}

// Limit answers 429, with Retry-After where it is not "".
func (r *Registry) Limit(m Match, retryAfter string) {
	r.add(m, func(_ *Registry, w http.ResponseWriter, req *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		writeError(w, req, http.StatusTooManyRequests, "TOOMANYREQUESTS")
	})
}

// Answer sends these bytes with status 200 and a content type.
func (r *Registry) Answer(m Match, contentType string, body []byte) {
	r.add(m, func(_ *Registry, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
}

// Redirect sends elsewhere (307).
func (r *Registry) Redirect(m Match, to string) {
	r.add(m, func(_ *Registry, w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, to, http.StatusTemporaryRedirect)
	})
}

// SetHeader changes a header of the real answer, e.g. lets Docker-Content-Digest
// lie; "" removes it.
func (r *Registry) SetHeader(m Match, name, value string) {
	r.add(m, func(r *Registry, w http.ResponseWriter, req *http.Request) {
		real := httptest.NewRecorder()
		if !r.gatekeep(real, req) {
			r.inner.ServeHTTP(real, req)
		}
		for key, values := range real.Header() {
			w.Header()[key] = values
		}
		if w.Header().Del(name); value != "" {
			w.Header().Set(name, value)
		}
		w.WriteHeader(real.Code)
		_, _ = real.Body.WriteTo(w)
	})
}

// Delay waits before the real answer.
func (r *Registry) Delay(m Match, d time.Duration) {
	r.add(m, func(r *Registry, w http.ResponseWriter, req *http.Request) {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
			return
		}
		if !r.gatekeep(w, req) {
			r.inner.ServeHTTP(w, req)
		}
	})
}

// Delete removes a manifest by its digest, and leaves indexes that list it: what
// a clean-up of untagged images does. Tags that name it stay and are broken.
func (r *Registry) Delete(repository, digest string) error {
	return r.do(http.MethodDelete, repository, digest)
}

// Untag removes a tag; the manifest stays.
func (r *Registry) Untag(repository, tag string) error {
	return r.do(http.MethodDelete, repository, tag)
}

// do sends a request about a manifest past log, knobs and auth.
func (r *Registry) do(method, repository, reference string) error {
	_, err := r.past(method, r.manifestPath(repository, reference), "", nil)
	return err
}

// past sends a request past log, knobs and auth, and returns the answer's body.
func (r *Registry) past(method, path, contentType string, body []byte) ([]byte, error) {
	req := httptest.NewRequestWithContext(context.Background(), method, path, bytes.NewReader(body))
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	recorder := httptest.NewRecorder()
	r.inner.ServeHTTP(recorder, req)
	if recorder.Code >= 300 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, recorder.Code, bytes.TrimSpace(recorder.Body.Bytes()))
	}
	return recorder.Body.Bytes(), nil
}

func (r *Registry) manifestPath(repository, reference string) string {
	return fmt.Sprintf("/v2/%s/manifests/%s", strings.TrimPrefix(repository, r.Host()+"/"), reference)
}

// CA is the certificate to trust, in PEM; nil without WithTLS.
func (r *Registry) CA() []byte {
	if r.server.Certificate() == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
}

// apply answers by the first knob that matches.
func (r *Registry) apply(w http.ResponseWriter, req *http.Request) bool {
	r.mu.Lock()
	var found *rule
	for _, k := range r.rules {
		if (k.Method == "" || k.Method == req.Method) && strings.Contains(req.URL.Path, k.Path) && (k.Times == 0 || k.used < k.Times) {
			k.used++
			found = k
			break
		}
	}
	r.mu.Unlock()
	if found == nil {
		return false
	}
	found.act(r, w, req)
	return true
}

func writeError(w http.ResponseWriter, req *http.Request, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if req.Method != http.MethodHead {
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, strings.ToLower(code))
	}
}

// Break breaks the connection off without an answer.
func (r *Registry) Break(m Match) {
	r.add(m, func(*Registry, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}
