package giteatest

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

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
		at("GET", "/no-such-organisation", "page limit", func(c *call) { c.notFound("GetOrgByName", "org does not exist") }),
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
		at("GET", "/commits/{sha}/status", "page limit", (*call).combinedStatus),
		at("GET", "/commits/{sha}/pull", "", (*call).pullOfCommit),
		at("GET", "/activities/feeds", "date page limit", (*call).listFeed),
		at("POST", "/statuses/{sha}", "", (*call).createStatus),
		at("GET", "/collaborators/{user}/permission", "", (*call).getPermission),
		at("GET", "/orgs/teams", "page limit", (*call).listTeams),
		at("GET", "/teams/{id}/members/{user}", "", (*call).getTeamMember),
		at("GET", "/user", "", (*call).getUser),
		at("GET", "/notifications/new", "", (*call).newNotifications),
		at("GET", "/labels", "page limit", (*call).listLabels),
		at("POST", "/labels", "", (*call).createLabel),
		at("GET", "/orgs/labels", "page limit", (*call).orgLabels),
		at("POST", "/issues/{index}/labels", "", (*call).addLabels),
		at("POST", "/issues/{index}/comments", "", (*call).addComment),
		at("GET", "/issues/{index}/comments", "since before", (*call).listComments),
		at("GET", "/issues/comments/{id}", "", (*call).getComment),
		at("PATCH", "/issues/comments/{id}", "", (*call).editComment),
		at("POST", "/issues/comments/{id}/reactions", "", (*call).addReaction),
		at("GET", "/issues/{index}", "", (*call).getIssue),
		at("POST", "/actions/workflows/{file}/dispatches", "return_run_details", (*call).dispatchWorkflow),
		at("GET", "/actions/runs", "event branch page limit", (*call).listRuns),
		at("GET", "/actions/runs/{id}", "", (*call).getRun),
		at("GET", "/actions/runs/{id}/jobs", "page limit", (*call).listJobs),
		at("GET", "/actions/jobs/{id}/logs", "", (*call).getLogs),
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
	w.Header().Set("Date", s.o.Store.Clock().UTC().Format(http.TimeFormat))
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

// apiPath is the path below the repository, or one of the few elsewhere; below
// the owner's organisation it is without its name.
func (c *call) apiPath() (string, bool) {
	_, path, ok := strings.Cut(c.r.URL.EscapedPath(), "/api/v1")
	repo := "/repos/" + c.o.Owner + "/" + c.o.Name
	switch {
	case !ok:
		return "", false
	case path == "/version":
		return path, true
	case path == "/orgs/"+c.o.Owner+"/labels", path == "/orgs/"+c.o.Owner+"/teams":
		return strings.Replace(path, c.o.Owner+"/", "", 1), true
	case path == "/user", path == "/notifications/new", strings.HasPrefix(path, "/teams/"):
		return path, true
	case strings.HasPrefix(path, "/orgs/"):
		return "/no-such-organisation", true
	case path == repo || strings.HasPrefix(path, repo+"/"):
		return strings.TrimPrefix(path, repo), true
	case strings.HasPrefix(path, "/repos/"):
		return "/no-such-repository", true
	}
	return "", false
}
