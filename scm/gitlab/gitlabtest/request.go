package gitlabtest

import (
	"net/http"
	"net/url"
	"strings"
)

// request is a request that was taken apart.
type request struct {
	method, op string
	path       string // the route's
	project    string
	args       []string // the decoded variable parts of the path after the project
	query      url.Values
	body       map[string]any
	token      string
	jobToken   string
	refused    *answer
	serve      func(*Server, *request) answer
}

func (s *Server) parse(r *http.Request) *request {
	q := &request{method: r.Method, query: r.URL.Query(), op: "unknown"}
	q.token = r.Header.Get("PRIVATE-TOKEN")
	if _, sent := r.Header["Private-Token"]; sent && q.token == "" {
		s.fault("%s %s has an empty PRIVATE-TOKEN", r.Method, r.URL.Path)
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		q.token = bearer
	}
	if q.jobToken = r.Header.Get("JOB-TOKEN"); q.jobToken != "" && q.token != "" {
		s.fault("%s %s has a job token and another one", r.Method, r.URL.Path)
	}
	path := strings.Replace(r.URL.EscapedPath(), "/api/graphql", "/api/v4/graphql", 1)
	if s.DecodesSlash {
		path = strings.ReplaceAll(path, "%2F", "/")
	}
	rest, ok := strings.CutPrefix(path, s.BasePath+"/api/v4/")
	if !ok {
		s.fault("%s %s is outside %s/api/v4", r.Method, path, s.BasePath)
		q.refused = ref(answer{status: 404, body: map[string]any{"error": "404 Not Found"}})
		return q
	}
	rt, args := route(r.Method, rest)
	if rt == nil {
		if !s.DecodesSlash {
			s.fault("unknown request %s %s", r.Method, path)
		}
		q.refused = ref(answer{status: 404, body: map[string]any{"error": "404 Not Found"}})
		return q
	}
	q.op, q.serve, q.args, q.path = rt.op, rt.serve, args, rt.path
	if strings.HasPrefix(rt.path, "projects/:") {
		q.project, q.args = args[0], args[1:]
	}
	q.refused = s.lint(rt, q, r)
	return q
}

// route finds the route of a path; the parts stay escaped until they are apart.
func route(method, path string) (*rule, []string) {
	parts := strings.Split(path, "/")
	for _, rt := range rules() {
		want := strings.Split(rt.path, "/")
		if rt.method != method || len(want) != len(parts) {
			continue
		}
		var args []string
		match := true
		for i, w := range want {
			part, err := url.PathUnescape(parts[i])
			if strings.HasPrefix(w, ":") && err == nil {
				args = append(args, part)
			} else if w != part {
				match = false
				break
			}
		}
		if match {
			return &rt, args
		}
	}
	return nil, nil
}
