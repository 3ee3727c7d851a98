package gitlabtest

import (
	"net/http"
	"strconv"
	"time"
)

// plan is what happens to some of the next calls of an operation.
type plan struct {
	op      string
	times   int
	status  int
	body    any
	header  http.Header
	applied bool // answer with status after the request was applied
	do      func()
}

// Fail answers the next calls of an operation ("" is any) with a status.
func (s *Server) Fail(op string, times, status int, body any) {
	s.add(&plan{op: op, times: times, status: status, body: body})
}

// FailAfter applies the next call of an operation and answers with a status all
// the same, as a proxy does that has lost patience.
func (s *Server) FailAfter(op string, status int) {
	s.add(&plan{op: op, times: 1, status: status, applied: true})
}

// Throttle answers the next calls of an operation with 429 and GitLab's headers.
func (s *Server) Throttle(op string, times, seconds int) {
	h := http.Header{}
	h.Set("Retry-After", strconv.Itoa(seconds))
	h.Set("RateLimit-Limit", "60")
	h.Set("RateLimit-Remaining", "0")
	h.Set("RateLimit-Reset", strconv.FormatInt(time.Now().Add(time.Duration(seconds)*time.Second).Unix(), 10))
	s.add(&plan{op: op, times: times, status: 429, header: h,
		body: "This endpoint has been requested too many times. Try again later."})
}

// Before does something right before the next call of an operation is applied:
// what somebody else does at the wrong moment.
func (s *Server) Before(op string, do func()) {
	s.add(&plan{op: op, times: 1, do: do})
}

func (s *Server) add(p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = append(s.plans, p)
}

func (s *Server) next(op string) *plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.plans {
		if p.times > 0 && (p.op == op || p.op == "") {
			p.times--
			return p
		}
	}
	return &plan{}
}
