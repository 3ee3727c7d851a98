// Package giteatest is a fake Gitea or Forgejo for tests: an http.Handler over a
// scmtest.Store, with the statuses and texts of Gitea's source (1.22.6, 1.25.0,
// 1.26.0) and the faults that were measured on a real one. It is stricter: a
// request, query parameter or JSON field that Gitea would ignore is reported, and
// so is an update of a file without its blob id.
package giteatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tagboat/scm/scmtest"
)

// The versions that the fake can be.
const (
	V122    = "1.22.6"
	V125    = "1.25.0"
	V126    = "1.26.0"
	Forgejo = "11.0.1+gitea-1.22.0"
)

// Options say what server it is.
type Options struct {
	Store   *scmtest.Store
	Version string // one of the constants; "" is V126
	Owner   string // "" is acme
	Name    string // "" is config
	Token   string // "" is "token"; that of User
	User    string // login of the token; "" is tagboat
	Users   []string
	// Teams of the organisation that owns the repository; nil: a person owns it.
	Teams []string
	// Labels that exist before the first request.
	Labels []string
	// Report is told what no Gitea would have been asked: a test's Errorf.
	Report func(format string, args ...any)

	Admin          bool          // the token may dismiss reviews, and reads the reason of a 500
	ReadOnly       bool          // the token has the scope read:repository only
	HideVersion    bool          // GET version is refused
	NoTreePath     bool          // "SHA:path" is no tree: a server built with -tags gogit
	Archived       bool          // nothing can be written
	ChecksPass     bool          // auto-merge merges at once
	Checking       int           // answers 405 to that many merges: it is still looking
	MaxItems       int           // of a page; 0 is 50
	TreePage       int           // entries of a tree; 0 is 1000
	MaxBlob        int           // bytes of a file that is handed out; 0 is 10 MiB
	Latency        time.Duration // of every answer
	BeforeCommit   func()        // runs once after POST contents has read its branch
	BeforeSwapPush func()        // runs once after PUT branches has compared
}

// Server is the fake. New makes one.
type Server struct {
	o      Options
	routes []route

	mu       sync.Mutex
	requests []Request
	faults   []*Fault
	before   func(*http.Request)
	labels   []label
	checking int
}

// Request is one request that was answered.
type Request struct {
	Method, Route  string // the route is its pattern
	Path           string // as sent, with the query
	Status         int
	Started, Ended time.Time
}

// Fault makes the next Times requests of a method whose path contains Path fail.
type Fault struct {
	Method, Path string
	Times        int
	Status       int  // 0 closes the connection without an answer
	Applied      bool // the request is done all the same
	Body         string
	Header       http.Header
}

// New makes a fake.
func New(o Options) *Server {
	for _, d := range []struct{ field, value *string }{
		{&o.Version, ptr(V126)}, {&o.Owner, ptr("acme")}, {&o.Name, ptr("config")}, {&o.Token, ptr("token")}, {&o.User, ptr("tagboat")},
	} {
		if *d.field == "" {
			*d.field = *d.value
		}
	}
	for _, d := range []struct{ field, value *int }{{&o.MaxItems, ptr(50)}, {&o.TreePage, ptr(1000)}, {&o.MaxBlob, ptr(10 << 20)}} {
		if *d.field == 0 {
			*d.field = *d.value
		}
	}
	if o.Report == nil {
		o.Report = func(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
	}
	s := &Server{o: o, checking: o.Checking}
	for _, name := range o.Labels {
		s.addLabel(name)
	}
	s.routes = routes()
	return s
}

func ptr[T any](v T) *T { return &v }

// newer tells whether the server is Gitea of at least 1.minor. Forgejo is 1.22.
func (s *Server) newer(minor int) bool {
	if strings.Contains(s.o.Version, "+gitea-") {
		return minor <= 22
	}
	have, _ := strconv.Atoi(strings.Split(s.o.Version, ".")[1])
	return have >= minor
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Before is called ahead of every request, to let somebody act in between.
func (s *Server) Before(f func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Requests are those answered since the last Forget, in the order of their end.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Forget forgets the requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Rounds is the longest chain of requests of which each began after the one
// before it had ended. It needs a Latency that is longer than a goroutine takes
// to start.
func (s *Server) Rounds() int {
	list := s.Requests()
	slices.SortFunc(list, func(a, b Request) int { return a.Ended.Compare(b.Ended) })
	depth := make([]int, len(list))
	most := 0
	for i, r := range list {
		depth[i] = 1
		for j := range i {
			if !list[j].Ended.After(r.Started) {
				depth[i] = max(depth[i], depth[j]+1)
			}
		}
		most = max(most, depth[i])
	}
	return most
}

// Count counts the requests whose "METHOD route" is the given one.
func (s *Server) Count(what string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Method+" "+r.Route == what {
			n++
		}
	}
	return n
}

type route struct {
	method, name string
	pattern      *regexp.Regexp
	query        []string
	handle       func(*call)
}

// at makes a route below the repository: {x} is one segment, * the rest.
func at(method, name, query string, handle func(*call)) route {
	p := regexp.QuoteMeta(name)
	p = regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(p, `([^/]+)`)
	p = strings.ReplaceAll(p, `\*`, `(.+)`)
	return route{method: method, name: name, pattern: regexp.MustCompile("^" + p + "$"), query: strings.Fields(query), handle: handle}
}

func routes() []route {
	return []route{
		at("GET", "/version", "", (*call).version),
		at("GET", "", "", (*call).repo),
		at("GET", "/branches/*", "", (*call).getBranch),
		at("PUT", "/branches/*", "", (*call).putBranch),
		at("DELETE", "/branches/*", "", (*call).deleteBranch),
		at("GET", "/contents/*", "ref", (*call).getContents),
		at("POST", "/contents", "", (*call).changeFiles),
		at("GET", "/git/trees/{sha}", "page per_page", (*call).getTree),
		at("GET", "/git/commits/{sha}.diff", "", (*call).getDiff),
		at("GET", "/git/commits/{sha}", "stat verification files", (*call).getCommit),
		at("GET", "/git/refs/*", "", (*call).getRef),
		at("GET", "/commits", "sha path not stat verification files page limit", (*call).listCommits),
		at("GET", "/pulls", "state sort base_branch page limit", (*call).listPulls),
		at("POST", "/pulls", "", (*call).openPull),
		at("GET", "/pulls/{index}", "", (*call).getPull),
		at("PATCH", "/pulls/{index}", "", (*call).editPull),
		at("POST", "/pulls/{index}/merge", "", (*call).mergePull),
		at("DELETE", "/pulls/{index}/merge", "", (*call).cancelMerge),
		at("GET", "/pulls/{index}/reviews", "page limit", (*call).listReviews),
		at("POST", "/pulls/{index}/reviews/{id}/dismissals", "", (*call).dismissReview),
		at("POST", "/pulls/{index}/requested_reviewers", "", (*call).requestReview),
		at("GET", "/pulls/{base}/*", "", (*call).pullByBranches),
		at("GET", "/labels", "page limit", (*call).listLabels),
		at("POST", "/labels", "", (*call).createLabel),
		at("GET", "/orgs/labels", "page limit", (*call).orgLabels),
		at("POST", "/issues/{index}/labels", "", (*call).addLabels),
		at("POST", "/issues/{index}/comments", "", (*call).comment),
	}
}

// call is one request on its way.
type call struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	query url.Values
	args  []string
	body  []byte
	route string
}

// ServeHTTP implements http.Handler. The API is below /api/v1, as deep as the
// test's base URL is.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	rec := &recorder{ResponseWriter: w}
	c := &call{Server: s, w: rec, r: r, query: r.URL.Query()}
	defer func() {
		s.mu.Lock()
		s.requests = append(s.requests, Request{r.Method, c.route, r.URL.RequestURI(), rec.status, started, time.Now()})
		s.mu.Unlock()
	}()
	c.body, _ = io.ReadAll(r.Body)
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	time.Sleep(s.o.Latency)
	c.serve(rec)
}

type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader keeps the status.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (c *call) serve(rec *recorder) {
	fault := c.takeFault()
	if fault != nil && !fault.Applied {
		c.answer(fault)
		return
	}
	client := rec.ResponseWriter
	if fault != nil {
		rec.ResponseWriter = discard{http.Header{}}
	}
	c.dispatch()
	if fault != nil {
		rec.ResponseWriter = client
		c.answer(fault)
	}
}

// discard takes an answer that the client never gets.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func (c *call) answer(f *Fault) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	for k, v := range f.Header {
		c.w.Header()[k] = v
	}
	c.w.WriteHeader(f.Status)
	_, _ = io.WriteString(c.w, f.Body)
}

func (c *call) takeFault() *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		if f.Times > 0 && f.Method == c.r.Method && strings.Contains(c.r.URL.RequestURI(), f.Path) {
			f.Times--
			return f
		}
	}
	return nil
}

// dispatch finds the route, as chi does: on the escaped path.
func (c *call) dispatch() {
	path, ok := c.apiPath()
	if !ok {
		c.noRoute()
		return
	}
	other := false
	for _, rt := range c.routes {
		m := rt.pattern.FindStringSubmatch(path)
		if m == nil {
			continue
		}
		if rt.method != c.r.Method {
			other = true
			continue
		}
		c.route = rt.name
		for _, arg := range m[1:] {
			plain, err := url.PathUnescape(arg)
			if err != nil {
				c.o.Report("giteatest: %s: %v", c.r.URL, err)
			}
			c.args = append(c.args, plain)
		}
		c.checkQuery(rt.query)
		if c.allowed() {
			rt.handle(c)
		}
		return
	}
	if other && c.r.Method == http.MethodPut && !c.newer(26) {
		c.w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	c.noRoute()
}

func (c *call) noRoute() {
	c.o.Report("giteatest: unknown request %s %s", c.r.Method, c.r.URL.RequestURI())
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(c.w, "404 page not found\n")
}

// apiPath is the path below the repository, "/version" or "/orgs/labels".
func (c *call) apiPath() (string, bool) {
	_, path, ok := strings.Cut(c.r.URL.EscapedPath(), "/api/v1")
	repo := "/repos/" + c.o.Owner + "/" + c.o.Name
	switch {
	case !ok:
		return "", false
	case path == "/version":
		return path, true
	case path == "/orgs/"+c.o.Owner+"/labels":
		return "/orgs/labels", true
	case path == repo || strings.HasPrefix(path, repo+"/"):
		return strings.TrimPrefix(path, repo), true
	case strings.HasPrefix(path, "/repos/"):
		return "/no-such-repository", true
	}
	return "", false
}

func (c *call) checkQuery(known []string) {
	for k := range c.query {
		if !slices.Contains(known, k) {
			c.o.Report("giteatest: %s %s: Gitea ignores the parameter %q", c.r.Method, c.route, k)
		}
	}
}

// allowed checks the token.
func (c *call) allowed() bool {
	auth := c.r.Header.Get("Authorization")
	write := c.r.Method != http.MethodGet
	switch {
	case c.route == "/version" && c.o.HideVersion:
		c.fail(http.StatusForbidden, "Only signed in user is allowed to call APIs.")
	case auth == "" && write:
		c.fail(http.StatusUnauthorized, "token is required")
	case auth != "" && auth != "token "+c.o.Token:
		c.fail(http.StatusUnauthorized, "invalid username, password or token")
	case write && c.o.ReadOnly:
		c.fail(http.StatusForbidden, "token does not have at least one of required scope(s), required=[write:repository], token scope=read:repository")
	case write && c.o.Archived:
		c.fail(http.StatusLocked, "Repo is archived.")
	default:
		return true
	}
	return false
}

func (c *call) json(status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	c.w.Header().Set("Content-Type", "application/json;charset=utf-8")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(b, '\n'))
}

func (c *call) fail(status int, format string, args ...any) {
	c.json(status, map[string]any{"message": fmt.Sprintf(format, args...), "url": "http://gitea.example/api/swagger"})
}

// broken is a 500; only administrators are told why.
func (c *call) broken(why string) {
	if !c.o.Admin {
		why = ""
	}
	c.fail(http.StatusInternalServerError, "%s", why)
}

func (c *call) notFound(message string, errs ...string) {
	if message == "" {
		message = "not found"
		if !c.newer(25) {
			message = "The target couldn't be found."
		}
	}
	c.json(http.StatusNotFound, map[string]any{"message": message, "url": "http://gitea.example/api/swagger", "errors": errs})
}

// decode reads the body strictly; required names the fields that must be there.
func (c *call) decode(into any) bool {
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		c.o.Report("giteatest: %s %s: body %s: %v", c.r.Method, c.route, c.body, err)
		c.fail(http.StatusUnprocessableEntity, "%v", err)
		return false
	}
	return true
}

// page cuts a list as Gitea's page and limit say, and sets its headers.
func page[T any](c *call, list []T) []T {
	limit, _ := strconv.Atoi(c.query.Get("limit"))
	if limit <= 0 {
		limit = 30
	}
	limit = min(limit, c.o.MaxItems)
	n, _ := strconv.Atoi(c.query.Get("page"))
	n = max(n, 1)
	c.w.Header().Set("X-Total-Count", strconv.Itoa(len(list)))
	c.w.Header().Set("X-HasMore", strconv.FormatBool(n*limit < len(list)))
	from := min((n-1)*limit, len(list))
	return append([]T{}, list[from:min(from+limit, len(list))]...)
}

func (c *call) version() { c.json(http.StatusOK, map[string]string{"version": c.o.Version}) }
