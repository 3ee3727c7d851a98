package gitlabtest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// recorder keeps what a Server reports.
type recorder struct{ faults []string }

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

const project = "/api/v4/projects/acme%2Fplatform%2Fconfig"

// The fake is only worth something if it refuses what GitLab refuses, and tells
// what GitLab would ignore.
func TestRefusals(t *testing.T) {
	const action = `{"action":"create","file_path":"x","content":"y"}`
	cases := []struct {
		name, method, path, body string
		token                    string // "" is the bot's
		status                   int
		says                     string // in the answer
		fault                    string // reported to the test; "": none
	}{
		{name: "fine", method: "GET", path: project + "/repository/branches/main", status: 200, says: `"name":"main"`},
		{name: "unknown route", method: "GET", path: project + "/pipelines", status: 404, says: "404 Not Found", fault: "unknown request"},
		{name: "outside the API", method: "GET", path: "/acme/platform/config", status: 404, fault: "outside"},
		{name: "unknown query", method: "GET", path: project + "/repository/tree?branch=main", status: 400, fault: "branch is no parameter"},
		{name: "missing query", method: "GET", path: project + "/repository/files/a", status: 400, fault: "ref is missing"},
		{name: "unknown value", method: "GET", path: project + "/merge_requests?state=open", status: 400, fault: "state is invalid"},
		{name: "unknown field", method: "POST", path: project + "/merge_requests", body: `{"title":"t","source_branch":"a","target_branch":"b","reviewers":["mei"]}`, status: 400, fault: "reviewers is no parameter"},
		{name: "wrong type", method: "POST", path: project + "/merge_requests", body: `{"title":"t","source_branch":"a","target_branch":"b","labels":["x"]}`, status: 400, fault: "labels is invalid"},
		{name: "update of nothing", method: "PUT", path: project + "/merge_requests/1", body: `{}`, status: 400, fault: "no field given"},
		{name: "action without a path", method: "POST", path: project + "/repository/commits", body: `{"branch":"x","commit_message":"m","actions":[{"action":"create"}]}`, status: 400, fault: "file_path is missing"},
		{name: "both starts", method: "POST", path: project + "/repository/commits", body: `{"branch":"x","commit_message":"m","start_branch":"main","start_sha":"SHA","actions":[` + action + `]}`, status: 400, says: "You can't pass both start_branch and start_sha"},
		{name: "short start", method: "POST", path: project + "/repository/commits", body: `{"branch":"x","commit_message":"m","start_sha":"abc","actions":[` + action + `]}`, status: 400, says: "Invalid start_sha 'abc'"},
		{name: "no start", method: "POST", path: project + "/repository/commits", body: `{"branch":"x","commit_message":"m","actions":[` + action + `]}`, status: 400, says: "You can only create or edit files when you are on a branch"},
		{name: "author's e-mail", method: "POST", path: project + "/repository/commits", body: `{"branch":"x","commit_message":"m","start_sha":"SHA","author_email":"a@b.example","actions":[` + action + `]}`, status: 400, says: "is not a member of team"},
		{name: "no commit below a branch", method: "POST", path: project + "/repository/commits", body: `{"branch":"main/x","commit_message":"m","start_sha":"SHA","actions":[` + action + `]}`, status: 400, says: "Please refresh and try again"},
		{name: "wrong token", method: "GET", path: project, token: "glpat-other", status: 401},
		{name: "scope", method: "PUT", path: project + "/merge_requests/1", body: `{"title":"t"}`, token: gitlabtest.ReadToken, status: 403, says: "insufficient_scope"},
		{name: "another project", method: "GET", path: "/api/v4/projects/acme%2Fother", status: 404, says: "404 Project Not Found"},
		{name: "title too long", method: "POST", path: project + "/merge_requests", body: `{"source_branch":"a","target_branch":"b","title":"` + strings.Repeat("x", 256) + `"}`, status: 400, says: "is too long (maximum is 255 characters)"},
		{name: "no such branch", method: "POST", path: project + "/merge_requests", body: `{"title":"t","source_branch":"a","target_branch":"main"}`, status: 422, says: "Source branch does not exist"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{}
			store := scmtest.NewStore("main", map[string]string{"a": "b"})
			sha, _ := store.Branch("main")
			s := gitlabtest.New(r, store)
			if c.token == "" {
				c.token = gitlabtest.Token
			}
			status, body := ask(t, s, c.method, c.path, strings.ReplaceAll(c.body, "SHA", sha), http.Header{"Private-Token": {c.token}})
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("answered %d %s", status, body)
			}
			if all := strings.Join(r.faults, "\n"); (c.fault == "") != (all == "") || !strings.Contains(all, c.fault) {
				t.Errorf("reported %q", all)
			}
		})
	}
}

// A CI_JOB_TOKEN counts as no credential on these routes.
func TestJobToken(t *testing.T) {
	s := gitlabtest.New(t, scmtest.NewStore("main", map[string]string{"a": "b"}))
	job := http.Header{"Job-Token": {"64_x"}}
	if status, body := ask(t, s, "GET", project, "", job); status != 404 {
		t.Errorf("read: %d %s", status, body)
	}
	if status, body := ask(t, s, "PUT", project+"/merge_requests/1", `{"title":"t"}`, job); status != 401 {
		t.Errorf("write: %d %s", status, body)
	}
}

func TestPagesAreAtMostAHundred(t *testing.T) {
	files := map[string]string{}
	for i := range 120 {
		files[fmt.Sprintf("f%d", i)] = "x"
	}
	s := gitlabtest.New(t, scmtest.NewStore("main", files))
	token := http.Header{"Private-Token": {gitlabtest.Token}}
	for query, want := range map[string]int{"": 20, "?per_page=500": 100, "?per_page=500&page=2": 20} {
		if _, body := ask(t, s, "GET", project+"/repository/tree"+query, "", token); strings.Count(body, `"mode"`) != want {
			t.Errorf("%q: %d entries, want %d", query, strings.Count(body, `"mode"`), want)
		}
	}
}

func ask(t *testing.T, s *gitlabtest.Server, method, path, body string, h http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://gitlab.example"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.Transport().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}
