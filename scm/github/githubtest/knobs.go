package githubtest

// Answer is what a knob makes the server say.
type Answer struct {
	Status  int
	Message string
	Errors  []any // strings or objects, as GitHub mixes them
	Header  map[string]string
	Body    string // raw, instead of Message
	JSON    any    // instead of Message
}

type fault struct {
	answer *Answer
	before func()
	lose   bool // do it, then answer
}

// Fail makes the next n calls of op answer a; n < 0 is for ever.
func (s *Server) Fail(op string, n int, a Answer) { s.add(op, n, fault{answer: &a}) }

// Before runs do once before the next call of op is served: another one pushes,
// closes or merges between two calls.
func (s *Server) Before(op string, do func()) { s.add(op, 1, fault{before: do}) }

// Lose serves the next call of op and then answers a, as a proxy does that lost
// the real answer.
func (s *Server) Lose(op string, a Answer) { s.add(op, 1, fault{answer: &a, lose: true}) }

func (s *Server) add(op string, n int, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 {
		n = 1 << 10
	}
	for range n {
		s.faults[op] = append(s.faults[op], f)
	}
}

// HideNewest makes the next n lists leave out the newest pull request.
func (s *Server) HideNewest(n int) { s.mu.Lock(); s.hidden = n; s.mu.Unlock() }

// LagIssues makes the next n calls on labels, assignees and reviewers answer that
// they do not know the pull request yet.
func (s *Server) LagIssues(n int) { s.mu.Lock(); s.lag = n; s.mu.Unlock() }

func (s *Server) nextFault(op string) (fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.faults[op]
	if len(queue) == 0 {
		return fault{}, false
	}
	s.faults[op] = queue[1:]
	return queue[0], true
}
