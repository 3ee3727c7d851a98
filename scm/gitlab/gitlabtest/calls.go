package gitlabtest

import "net/url"

// Call is one request that was answered.
type Call struct {
	Op     string // getBranch, createCommit, …
	Status int
	Query  url.Values
	Body   map[string]any
	start  int
	end    int
}

// Calls are the requests so far, in the order in which they came.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Forget empties Calls.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// Count is how often an operation was called.
func (s *Server) Count(op string) int {
	n := 0
	for _, c := range s.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

// Rounds is the number of sequential rounds of the calls so far: requests that
// were under way together count once. Set Latency, and use Transport within
// testing/synctest to have it exact.
func (s *Server) Rounds() int {
	rounds, until := 0, -1
	for _, c := range s.Calls() {
		if c.start > until {
			rounds++
			until = c.end
		}
		until = min(until, c.end)
	}
	return rounds
}
