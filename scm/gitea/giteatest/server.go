// Package giteatest is a fake Gitea or Forgejo for tests: an http.Handler over a
// scmtest.Store, with the statuses and texts of Gitea's source (1.22.6 to 1.27.3) and
// the faults that were measured on real ones. It is stricter: a
// request, query parameter or JSON field that Gitea would ignore is reported, and
// so is an update of a file without its blob id.
package giteatest

import (
	"fmt"
	"net/http"
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
	V123    = "1.23.1"
	V124    = "1.24.0"
	V125    = "1.25.0"
	V126    = "1.26.0"
	V127    = "1.27.3"
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

	Imported          map[string]bool // logins whose comments were imported from elsewhere
	DisabledWorkflows []string        // file names
	NoActions         bool            // Actions is off for the repository

	Admin          bool          // the token may dismiss reviews, and reads the reason of a 500
	NotRepoAdmin   bool          // the token's user may not ask what others may do
	NoOrgMember    bool          // the token's user is no member of the organisation
	NoTeamMember   bool          // the token's user is in no team, and no owner
	Scopes         []string      // of the token; nil is all
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
