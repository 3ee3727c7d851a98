package giteatest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
)

// RoundTrip implements http.RoundTripper: the server without a network. Within
// testing/synctest Latency costs no time, and Rounds is exact.
func (s *Server) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	body := io.Reader(http.NoBody)
	if req.Body != nil {
		body = req.Body
		defer func() { _ = req.Body.Close() }()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	arrived := httptest.NewRequestWithContext(req.Context(), req.Method, req.URL.RequestURI(), body)
	arrived.Header, arrived.Host = req.Header.Clone(), req.URL.Host
	defer func() {
		p := recover()
		if cut, ok := p.(error); ok && errors.Is(cut, http.ErrAbortHandler) {
			resp, err = nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, io.ErrUnexpectedEOF)
		} else if p != nil {
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, arrived)
	resp = w.Result()
	resp.Request = req
	return resp, nil
}
