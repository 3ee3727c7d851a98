package githubtest

import (
	"net/http"
	"slices"
)

// Call is one request that was served.
type Call struct {
	Op         string // "POST git/refs", "GraphQL updateRefs", "GET" for the repository
	Method     string
	Path       string
	Body       []byte
	Status     int
	Start, End int // order of arrival and of the answer, in one count
}

// Calls are the requests since the start or the last Reset, in order of arrival.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Rounds is the length of the longest chain of Calls of which each began after
// the one before had ended; see Options.InProcess.
func (s *Server) Rounds() int {
	calls := s.Calls()
	depth := make([]int, len(calls))
	longest := 0
	for i, c := range calls {
		depth[i] = 1
		for j, before := range calls[:i] {
			if before.End < c.Start {
				depth[i] = max(depth[i], depth[j]+1)
			}
		}
		longest = max(longest, depth[i])
	}
	return longest
}

// Operations are the names of all operations that the fake serves.
func (s *Server) Operations() []string {
	var ops []string
	for _, r := range s.spec.routes {
		ops = append(ops, r.op)
	}
	return append(ops, "GraphQL updateRefs", "GraphQL enablePullRequestAutoMerge", "GraphQL disablePullRequestAutoMerge", "GraphQL viewer")
}

// Reset forgets the calls.
func (s *Server) Reset() { s.mu.Lock(); s.calls = nil; s.mu.Unlock() }

// Ops are the operations of Calls.
func (s *Server) Ops() []string {
	var ops []string
	for _, c := range s.Calls() {
		ops = append(ops, c.Op)
	}
	return ops
}

// Writes are the operations of Calls that change something.
func (s *Server) Writes() []string {
	var ops []string
	for _, c := range s.Calls() {
		if c.Method != http.MethodGet {
			ops = append(ops, c.Op)
		}
	}
	return ops
}

func (s *Server) start(req *http.Request, body []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	s.calls = append(s.calls, Call{Method: req.Method, Path: req.URL.RequestURI(), Body: body, Start: s.clock})
	return s.clock
}

func (s *Server) end(start int, op string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	for i := range s.calls {
		if s.calls[i].Start == start {
			s.calls[i].Op, s.calls[i].Status, s.calls[i].End = op, status, s.clock
		}
	}
}
