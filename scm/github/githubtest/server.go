// Package githubtest is a fake GitHub for one repository: an http.Handler on
// scmtest.Store that is stricter than the real one. Every request and answer is
// checked against GitHub's own OpenAPI description, every GraphQL document
// against its schema; a request that is not in them fails the test.
package githubtest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tagboat/scm/scmtest"
)

// Options says how the fake behaves. The zero value is a github.com repository
// acme/config that takes the token "ghs_fake" of an App that may do everything.
type Options struct {
	Owner, Name string
	Token       string // "" is ghs_fake
	Login       string // whose token it is; "" is tagboat[bot]
	Enterprise  bool   // REST below /api/v3, GraphQL at /api/graphql

	NoGraphQL   bool // POST /graphql is 404, as on emulators
	NoTreePaths bool // git/trees takes no COMMIT:PATH
	Truncate    int  // git/trees shows so many entries at most; 0 is all
	NoDrafts    bool // drafts are refused with 422

	ActionsMayNotOpen bool     // POST pulls is 403, the setting is off
	NoAutoMerge       bool     // "Allow auto-merge" is off
	MergeBlocked      string   // merging at once is 405 with this
	Clean             bool     // a pull request has nothing to wait for
	SquashOnly        bool     // merge commits are off
	Collaborators     []string // who can be asked for a review or assigned; nil is anybody but ghosts
	Teams             []string // slugs that can be asked for a review

	ViaApp            map[string]bool // logins in whose name an App writes
	NoRunDetails      string          // a server without return_run_details: "ignores" or "refuses" it
	DisabledWorkflows []string        // file names

	// Lacks are permissions that the token lacks: statuses, checks, members,
	// administration (without which nobody else's permission may be asked).
	Lacks []string
	// Grants are the permissions of the token, each read or write: no others. nil:
	// all but what Lacks names.
	Grants map[string]string
	// Scopes are those of a classic token, which every answer tells; nil: it is none.
	// They are told, not enforced.
	Scopes  []string
	Expires time.Time // of the token, which every answer tells; zero: never

	App *FakeApp // serves the App endpoints

	// InProcess starts no listener: requests come through Transport. In a bubble of
	// testing/synctest, with a Delay, Rounds is then exact.
	InProcess bool
	Delay     time.Duration // every answer takes so long
	TLS       bool          // serve https with a certificate of its own, see CAFile
}

// Server is a running fake.
type Server struct {
	Store *scmtest.Store
	opts  Options
	t     testing.TB
	http  *httptest.Server // nil in process
	base  string           // scheme and host
	spec  *spec

	mu     sync.Mutex
	clock  int
	calls  []Call
	faults map[string][]fault
	tokens map[string]string            // token to login
	rights map[string]map[string]string // minted token to its permissions
	hidden int                          // list calls that do not see the newest pull request
	lag    int                          // calls on the issue side that do not know it yet
}

// New starts a fake on store; it ends with the test.
func New(t testing.TB, store *scmtest.Store, opts Options) *Server {
	t.Helper()
	if opts.Owner == "" {
		opts.Owner, opts.Name = "acme", "config"
	}
	if opts.Token == "" {
		opts.Token = "ghs_fake"
	}
	if opts.Login == "" {
		opts.Login = "tagboat[bot]"
	}
	spec, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Store: store, opts: opts, t: t, spec: spec, faults: map[string][]fault{}, tokens: map[string]string{opts.Token: opts.Login}, rights: map[string]map[string]string{}}
	switch {
	case opts.InProcess:
		s.base = "https://github.example"
		return s
	case opts.TLS:
		s.http = httptest.NewTLSServer(s)
	default:
		s.http = httptest.NewServer(s)
	}
	s.base = s.http.URL
	t.Cleanup(s.http.Close)
	return s
}

// Transport serves requests without a listener.
func (s *Server) Transport() http.RoundTripper { return inProcess{s} }

type inProcess struct{ s *Server }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(req.URL.String(), p.s.base+"/") {
		return nil, fmt.Errorf("fake GitHub: %s is not this server", req.URL.Host)
	}
	in := req.Clone(req.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	p.s.ServeHTTP(rec, in)
	resp := rec.Result()
	resp.Request = req
	return resp, req.Context().Err()
}

// CAFile writes the certificate of a TLS fake to a file.
func (s *Server) CAFile() string {
	file := filepath.Join(s.t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// URL is the REST address, as the driver's BaseURL.
func (s *Server) URL() string { return s.base + s.prefix() }

// Owner is the repository's owner.
func (s *Server) Owner() string { return s.opts.Owner }

// Name is the repository's name.
func (s *Server) Name() string { return s.opts.Name }

// Token is the token that is accepted.
func (s *Server) Token() string { return s.opts.Token }

func (s *Server) prefix() string {
	if s.opts.Enterprise {
		return "/api/v3"
	}
	return ""
}

func (s *Server) graphqlPath() string {
	if s.opts.Enterprise {
		return "/api/graphql"
	}
	return "/graphql"
}

// ServeHTTP serves one request, checked on the way in and out.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		s.t.Errorf("fake GitHub: read %s %s: %v", req.Method, req.URL, err)
		return
	}
	rec := httptest.NewRecorder()
	call := s.start(req, body)
	time.Sleep(s.opts.Delay)
	op := s.serve(rec, req, body)
	s.end(call, op, rec.Code)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func (s *Server) serve(w *httptest.ResponseRecorder, req *http.Request, body []byte) (op string) {
	now := s.Store.Clock()
	if s.opts.App != nil {
		now = s.opts.App.now()
	}
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if strings.HasPrefix(req.URL.Path, logsPath) {
		s.serveLog(w, req)
		return "log"
	}
	if req.URL.Path == s.graphqlPath() {
		return s.serveGraphQL(w, req, body)
	}
	raw, ok := strings.CutPrefix(req.URL.EscapedPath(), s.prefix())
	r, params, found := s.spec.find(req.Method, raw)
	if !ok || !found {
		s.t.Errorf("fake GitHub: %s %s is no call that the driver may make", req.Method, req.URL.EscapedPath())
		write(w, Answer{Status: http.StatusNotFound, Message: "Not Found"})
		return req.Method + " " + raw
	}
	if err := s.spec.checkRequest(r, req, params, body); err != nil {
		s.t.Errorf("fake GitHub: request %s %s does not fit GitHub's description: %v\n%s", req.Method, req.URL, err, body)
	}
	s.handle(w, &request{Request: req, s: s, params: params, body: body, op: r.op, query: req.URL.Query()})
	if err := s.spec.checkResponse(r, req, params, w.Code, w.Header(), w.Body.Bytes()); err != nil {
		s.t.Errorf("fake GitHub: answer %d to %s %s does not fit GitHub's description: %v\n%s", w.Code, req.Method, req.URL, err, w.Body)
	}
	return r.op
}

func (s *Server) handle(w *httptest.ResponseRecorder, r *request) {
	f, ok := s.nextFault(r.op)
	if ok && f.before != nil {
		f.before()
	}
	if ok && f.answer != nil && !f.lose {
		write(w, *f.answer)
		return
	}
	if refusal := s.authorize(w, r); refusal != nil {
		write(w, *refusal)
		return
	}
	h, known := handlers()[r.op]
	if !known {
		s.t.Errorf("fake GitHub: %s is described but not served", r.op)
		write(w, Answer{Status: http.StatusNotFound, Message: "Not Found"})
		return
	}
	status, out := h(s, w, r)
	if ok && f.lose {
		write(w, *f.answer)
		return
	}
	if refused, isRefusal := out.(Answer); isRefusal {
		write(w, refused)
		return
	}
	w.WriteHeader(status)
	if out == nil { // no body
		return
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.t.Errorf("fake GitHub: %s: %v", r.op, err)
	}
}

// request is one request with what was found in its path.
type request struct {
	*http.Request
	s      *Server
	params map[string]string
	query  map[string][]string
	body   []byte
	op     string
	login  string
}

func (r *request) q(name string) string {
	if v := r.query[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

type handler func(*Server, http.ResponseWriter, *request) (status int, body any)

// authorize refuses what GitHub refuses before it looks at anything else.
func (s *Server) authorize(w http.ResponseWriter, r *request) *Answer {
	if r.Header.Get("User-Agent") == "" {
		return &Answer{Status: http.StatusForbidden, Message: "Request forbidden by administrative rules. Please make sure your request has a User-Agent header."}
	}
	if v := r.Header.Get("X-Github-Api-Version"); v != "" && v != "2022-11-28" && v != "2026-03-10" {
		return &Answer{Status: http.StatusBadRequest, Message: "The API version " + v + " is not supported."}
	}
	if strings.HasPrefix(r.op, "POST app/") || r.op == "GET installation" {
		return s.authorizeApp(r)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	login, known := s.tokens[token]
	s.mu.Unlock()
	switch {
	case !ok && r.Method != http.MethodGet:
		return &Answer{Status: http.StatusUnauthorized, Message: "Requires authentication"}
	case !ok, s.elsewhere(r):
		return &Answer{Status: http.StatusNotFound, Message: "Not Found"}
	case !known:
		return &Answer{Status: http.StatusUnauthorized, Message: "Bad credentials"}
	}
	r.login = login
	s.tellToken(w)
	return s.lacking(r, token)
}

// elsewhere tells a request for what is not served here.
func (s *Server) elsewhere(r *request) bool {
	if org, ok := r.params["org"]; ok {
		return !strings.EqualFold(org, s.opts.Owner)
	}
	return r.op != "GET user" && (!strings.EqualFold(r.params["owner"], s.opts.Owner) || !strings.EqualFold(r.params["repo"], s.opts.Name))
}

// write says a as GitHub says a refusal.
func write(w http.ResponseWriter, a Answer) {
	for k, v := range a.Header {
		w.Header().Set(k, v)
	}
	if a.Body != "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body)
		return
	}
	w.WriteHeader(a.Status)
	if a.JSON != nil {
		_ = json.NewEncoder(w).Encode(a.JSON)
		return
	}
	out := map[string]any{"message": a.Message, "documentation_url": "https://docs.github.com/rest", "status": fmt.Sprint(a.Status)}
	if len(a.Errors) > 0 {
		out["errors"] = a.Errors
	}
	_ = json.NewEncoder(w).Encode(out)
}

func decode(body []byte, into any) error { return json.Unmarshal(body, into) }

func refuse(status int, message string, errors ...any) (int, any) {
	return status, Answer{Status: status, Message: message, Errors: errors}
}

// custom is the nested error that carries a sentence.
func custom(resource, message string) any {
	return map[string]any{"resource": resource, "code": "custom", "message": message}
}
