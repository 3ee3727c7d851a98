// Package gitlabtest is a GitLab with one project, for tests: an http.Handler on a
// scmtest.Store that answers as GitLab's REST API does (word for word where its
// source was read), and is stricter: a request that GitLab does not describe, or
// that names a parameter it does not know, fails the test.
package gitlabtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"tagboat/scm/scmtest"
)

// The project and credentials of a Server.
const (
	Project   = "acme/platform/config" // in a subgroup
	ProjectID = 4711
	Token     = "glpat-fake-of-a-project-bot" // Developer, scope api
	ReadToken = "glpat-fake-that-only-reads"  // Reporter, scope read_api
	UserToken = "glpat-fake-of-a-person"      // Developer, no bot
	BotLogin  = "project_4711_bot_5f2"
)

// T is what a Server reports to; *testing.T is one.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Server is one GitLab. Set its fields before the first request; the methods may
// be called at any time.
type Server struct {
	Store *scmtest.Store

	BasePath     string        // of a relative URL root, for instance /gitlab
	Latency      time.Duration // before each answer
	DecodesSlash bool          // a proxy in front decodes %2F
	Free         bool          // one reviewer and assignee, no reset of approvals
	AutoCRLF     bool          // Gitaly up to 17.x: CRLF is stored as LF
	Before15     bool          // no detailed_merge_status, no draft
	DiffLimit    int           // files that a comparison shows
	OldPushText  bool          // refuses a protected branch with 400 and a text, not with 403

	BranchRule, MessageRule string // push rules: a part that names and messages must have
	HookSays                string // a pre-receive hook refuses with this

	Internal map[int]bool // comments by their number that the public does not see

	NoApprovalTimes bool // approvals without approved_at, as older GitLabs
	NoApprovalNotes bool // nor a note that says so

	CanMerge        bool // the token's user may merge into the base
	RequirePipeline bool // "Pipelines must succeed"
	RequireApproval bool
	CheckingLooks   int // merge requests read before GitLab has judged one
	PipelineLooks   int // merge requests read before the pipeline is there; -1: never

	NoGraphQLNotes   bool // a GitLab before 15.9
	NoPipelineRights bool // the token's user may start no pipeline

	Scopes       []string // of Token; nil is api
	Role         int      // of Token's user, an access level; 0 is 30, Developer
	HiddenGroups bool     // Token's user sees no group
	Expires      string   // of Token, a date; "" is never
	NoTokenInfo  bool     // a token that is no access token of GitLab's own: OAuth
	Job          Job      // that of JobToken; without a user there is none

	Users map[string]int // login to id; members of the project

	t     T
	mu    sync.Mutex
	calls []Call
	clock int
	plans []*plan
	looks map[int]int    // by merge request: how often it was read
	state map[int]string // by merge request: the pipeline's status
	reset map[int]int    // by merge request: how often approvals were reset
}

// New makes a Server that reports what GitLab would not accept to t.
func New(t T, store *scmtest.Store) *Server {
	return &Server{
		Store: store, t: t, CanMerge: true, DiffLimit: 1000,
		Users: map[string]int{"mei": 11, "tomas": 12, BotLogin: 99},
		looks: map[int]int{}, state: map[int]string{}, reset: map[int]int{},
	}
}

// Start serves on 127.0.0.1 and returns the base URL and what stops it.
func (s *Server) Start() (baseURL string, stop func()) {
	srv := httptest.NewServer(s)
	return srv.URL + s.BasePath, srv.Close
}

// Transport answers in process, without a socket: within testing/synctest the
// requests of a round are under way together for sure.
func (s *Server) Transport() http.RoundTripper { return inProcess{s} }

type inProcess struct{ s *Server }

// RoundTrip answers a request.
func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	in := req.Clone(req.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out := httptest.NewRecorder()
	p.s.ServeHTTP(out, in)
	resp := out.Result()
	resp.Request = req
	return resp, nil
}

// answer is what an operation says.
type answer struct {
	status int
	body   any    // nil: no body
	text   string // instead of body
	header http.Header
}

func say(status int, message any) answer {
	return answer{status: status, body: map[string]any{"message": message}}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.clock++
	n := len(s.calls)
	s.calls = append(s.calls, Call{start: s.clock, end: int(^uint(0) >> 1), Query: r.URL.Query()})
	s.mu.Unlock()
	time.Sleep(s.Latency)

	q := s.parse(r)
	a := s.answer(q)

	s.mu.Lock()
	s.clock++
	if n < len(s.calls) {
		c := &s.calls[n]
		c.Op, c.Status, c.end, c.Body = q.op, a.status, s.clock, q.body
	}
	s.mu.Unlock()
	w.Header().Set("Date", s.Store.Clock().UTC().Format(http.TimeFormat))
	write(w, r, a)
}

func (s *Server) answer(q *request) answer {
	p := s.next(q.op)
	if p.do != nil {
		p.do()
	}
	if p.status != 0 && !p.applied {
		return answer{status: p.status, header: p.header, body: wrapped(p.body)}
	}
	if a, ok := s.admit(q); !ok {
		return a
	}
	a := q.serve(s, q)
	if p.applied {
		return answer{status: p.status}
	}
	return a
}

func wrapped(body any) any {
	if text, ok := body.(string); ok {
		return map[string]any{"message": text}
	}
	return body
}

func write(w http.ResponseWriter, r *http.Request, a answer) {
	h := w.Header()
	h.Set("RateLimit-Limit", "60")
	h.Set("RateLimit-Remaining", "59")
	for k, v := range a.header {
		h[k] = v
	}
	if a.text != "" {
		h.Set("Content-Type", "text/plain")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.text)
		return
	}
	if a.body == nil {
		if a.status >= 500 {
			h.Set("Content-Type", "text/html")
			w.WriteHeader(a.status)
			_, _ = io.WriteString(w, "<html><body>Whoops, GitLab is taking too much time to respond.</body></html>")
			return
		}
		w.WriteHeader(a.status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(a.body) // the client has gone
	}
}

// admit checks the credential and the project, as GitLab does before anything else.
func (s *Server) admit(q *request) (answer, bool) {
	if q.refused != nil {
		return *q.refused, false
	}
	writes := q.method != http.MethodGet && q.op != "graphql"
	if q.op == "getJob" || q.op == "triggerPipeline" { // they know their own tokens
		return answer{}, true
	}
	switch q.token {
	case Token, UserToken, ReadToken:
		if a, ok := s.admitScope(q, writes); !ok {
			return a, false
		}
	case "": // also a JOB-TOKEN: these routes do not take one
		if writes {
			return say(401, "401 Unauthorized"), false
		}
		return say(404, "404 Project Not Found"), false
	default:
		return say(401, "401 Unauthorized"), false
	}
	if q.project != "" && q.project != Project && q.project != strconv.Itoa(ProjectID) {
		return say(404, "404 Project Not Found"), false
	}
	if q.project != "" && s.role(q) < needsRole(q.op, q.method) {
		return lacksRole(q.op), false
	}
	return answer{}, true
}

func (s *Server) fault(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("gitlabtest: "+format, args...)
}

func ref[T any](v T) *T { return &v }

// page cuts a list and says where it goes on; GitLab gives at most 100.
func page[E any](q *request, all []E) ([]E, http.Header) {
	size, number := 20, 1
	if n, err := strconv.Atoi(q.query.Get("per_page")); err == nil && n > 0 {
		size = min(n, 100)
	}
	if n, err := strconv.Atoi(q.query.Get("page")); err == nil && n > 0 {
		number = n
	}
	from, to := min((number-1)*size, len(all)), min(number*size, len(all))
	h := http.Header{}
	h.Set("X-Page", strconv.Itoa(number))
	h.Set("X-Per-Page", strconv.Itoa(size))
	h.Set("X-Next-Page", "")
	if to < len(all) {
		h.Set("X-Next-Page", strconv.Itoa(number+1))
	}
	return all[from:to], h
}
