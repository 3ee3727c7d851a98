package githubtest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

// witness is a test that only remembers that it was failed.
type witness struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (w *witness) Errorf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

func (w *witness) Error(args ...any) { w.Errorf("%s", fmt.Sprint(args...)) }

func (w *witness) words() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.said, "\n")
}

type exchange struct {
	method, path, body string
	header             map[string]string
}

func send(t *testing.T, s *githubtest.Server, e exchange) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), e.method, strings.TrimSuffix(s.URL(), "/")+e.path, strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token())
	req.Header.Set("User-Agent", "test")
	if e.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range e.header {
		req.Header.Set(k, v)
	}
	resp, err := s.Transport().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func seeded(t *testing.T) *scmtest.Store {
	t.Helper()
	st := scmtest.NewStore("main", map[string]string{"README.md": "# config\n", "apps/a/k.yaml": "a\n"})
	for i := range 35 {
		head := fmt.Sprintf("side-%d", i)
		if _, err := st.Push(head, "mei", "Side", map[string]string{"n.txt": head}); err != nil {
			t.Fatal(err)
		}
		if _, err := st.OpenPull(scmtest.NewPull{Head: head, Base: "main", Title: head, Author: "mei"}); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

const repo = "/repos/acme/config"

// What GitHub would let pass, or the driver must not do: the test fails.
func TestRequestsThatFailTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		exchange
		words string
	}{
		"no such call":           {exchange{method: "GET", path: repo + "/releases"}, "no call that the driver may make"},
		"another method":         {exchange{method: "DELETE", path: repo + "/git/refs/heads/side-1"}, "no call that the driver may make"},
		"unknown field":          {exchange{method: "POST", path: repo + "/pulls", body: `{"title":"t","head":"side-1","base":"main","reviewers":["mei"]}`}, "reviewers"},
		"field left out":         {exchange{method: "POST", path: repo + "/pulls", body: `{"title":"t","head":"side-1"}`}, "base"},
		"wrong type":             {exchange{method: "PATCH", path: repo + "/pulls/1", body: `{"title":7}`}, "title"},
		"wrong value":            {exchange{method: "GET", path: repo + "/pulls?state=bogus"}, "state"},
		"unknown query":          {exchange{method: "GET", path: repo + "/pulls?author=mei"}, "author"},
		"labels as a bare list":  {exchange{method: "POST", path: repo + "/issues/1/labels", body: `["a"]`}, "object"},
		"a whole tree":           {exchange{method: "GET", path: repo + "/git/trees/main?recursive=1"}, "lists a whole tree"},
		"a file by branch":       {exchange{method: "GET", path: repo + "/contents/README.md?ref=main"}, "something else than a commit's SHA"},
		"GraphQL, no such field": {exchange{method: "POST", path: "/graphql", body: `{"query":"mutation { updateRefs(input: {repositoryId: \"x\", refUpdates: []}) { bogus } }"}`}, "bogus"},
		"GraphQL, wrong input":   {exchange{method: "POST", path: "/graphql", body: `{"query":"mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }","variables":{"input":{"repositoryId":"x"}}}`}, "refUpdates"},
		"GraphQL, no comparison": {exchange{method: "POST", path: "/graphql", body: `{"query":"mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }","variables":{"input":{"repositoryId":"R_kgDOfake","refUpdates":[{"name":"refs/heads/side-1","afterOid":"1111111111111111111111111111111111111111","force":true}]}}}`}, "compares nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{TB: t}
			send(t, githubtest.New(w, seeded(t), githubtest.Options{InProcess: true}), c.exchange)
			if got := w.words(); !strings.Contains(got, c.words) {
				t.Errorf("the test was told %q, want %q", got, c.words)
			}
		})
	}
}

// What GitHub refuses, in its words.
func TestRefusals(t *testing.T) {
	st := seeded(t)
	st.Protect("locked/*")
	main, _ := st.Branch("main")
	side, _ := st.Branch("side-1")
	ref := func(branch, sha string) string { return fmt.Sprintf(`{"ref":"refs/heads/%s","sha":"%s"}`, branch, sha) }
	c, _ := st.Commit(main)
	for name, c := range map[string]struct {
		exchange
		status int
		words  string
	}{
		"no user agent":     {exchange{method: "GET", path: repo, header: map[string]string{"User-Agent": ""}}, 403, "User-Agent"},
		"old API version":   {exchange{method: "GET", path: repo, header: map[string]string{"X-GitHub-Api-Version": "2019-01-01"}}, 400, "not supported"},
		"wrong token":       {exchange{method: "GET", path: repo, header: map[string]string{"Authorization": "Bearer nope"}}, 401, "Bad credentials"},
		"no token":          {exchange{method: "POST", path: repo + "/git/refs", body: ref("x", main), header: map[string]string{"Authorization": ""}}, 401, "Requires authentication"},
		"other repository":  {exchange{method: "GET", path: "/repos/acme/other"}, 404, "Not Found"},
		"no branch":         {exchange{method: "GET", path: repo + "/branches/nope"}, 404, "Branch not found"},
		"ref exists":        {exchange{method: "POST", path: repo + "/git/refs", body: ref("side-1", main)}, 422, "Reference already exists"},
		"ref below another": {exchange{method: "POST", path: repo + "/git/refs", body: ref("side-1/x", main)}, 422, "Reference update failed"},
		"ref of nothing":    {exchange{method: "POST", path: repo + "/git/refs", body: ref("x", strings.Repeat("1", 40))}, 422, "Object does not exist"},
		"ref that is ruled": {exchange{method: "POST", path: repo + "/git/refs", body: ref("locked/x", main)}, 422, "Repository rule violations found"},
		"move of nothing":   {exchange{method: "PATCH", path: repo + "/git/refs/heads/nope", body: `{"sha":"` + main + `","force":true}`}, 422, "Reference does not exist"},
		"not forward":       {exchange{method: "PATCH", path: repo + "/git/refs/heads/side-1", body: `{"sha":"` + main + `"}`}, 422, "not a fast forward"},
		"base is a commit":  {exchange{method: "POST", path: repo + "/git/trees", body: `{"base_tree":"` + main + `","tree":[{"path":"x","mode":"100644","type":"blob","content":"x"}]}`}, 422, "not a valid tree"},
		"delete of nothing": {exchange{method: "POST", path: repo + "/git/trees", body: `{"base_tree":"` + c.Tree + `","tree":[{"path":"nope","mode":"100644","type":"blob","sha":null}]}`}, 422, "BadObjectState"},
		"path that leaves":  {exchange{method: "POST", path: repo + "/git/trees", body: `{"base_tree":"` + c.Tree + `","tree":[{"path":"../x","mode":"100644","type":"blob","content":"x"}]}`}, 422, "malformed path"},
		"second pull":       {exchange{method: "POST", path: repo + "/pulls", body: `{"title":"t","head":"side-1","base":"main"}`}, 422, "A pull request already exists for acme:side-1."},
		"pull of nothing":   {exchange{method: "POST", path: repo + "/pulls", body: `{"title":"t","head":"nope","base":"main"}`}, 422, "invalid"},
		"pull of the base":  {exchange{method: "POST", path: repo + "/pulls", body: `{"title":"t","head":"main","base":"side-1"}`}, 422, "No commits between side-1 and main"},
		"own review":        {exchange{method: "POST", path: repo + "/pulls/1/requested_reviewers", body: `{"reviewers":["MEI"]}`}, 422, "from pull request author"},
		"one bad reviewer":  {exchange{method: "POST", path: repo + "/pulls/1/requested_reviewers", body: `{"reviewers":["sam","ghost"]}`}, 422, "from collaborators"},
		"unknown team":      {exchange{method: "POST", path: repo + "/pulls/1/requested_reviewers", body: `{"team_reviewers":["nobody"]}`}, 422, "Could not resolve to a node"},
		"unknown pull":      {exchange{method: "PATCH", path: repo + "/pulls/99", body: `{"title":"t"}`}, 404, "Not Found"},
		"GraphQL, stale":    {exchange{method: "POST", path: "/graphql", body: fmt.Sprintf(`{"query":"mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }","variables":{"input":{"repositoryId":"R_kgDOfake","refUpdates":[{"name":"refs/heads/side-1","beforeOid":"%s","afterOid":"%s","force":true}]}}}`, main, main)}, 200, `"errors"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := githubtest.New(t, st, githubtest.Options{InProcess: true})
			status, body, _ := send(t, s, c.exchange)
			if status != c.status || !strings.Contains(body, c.words) {
				t.Errorf("%d %s, want %d %s", status, body, c.status, c.words)
			}
		})
	}
	if at, _ := st.Branch("side-1"); at != side {
		t.Errorf("side-1 moved to %s", at)
	}
}

// Thirty a page unless told, a hundred at most; a head that is no
// OWNER:BRANCH filters nothing.
func TestListsAreAsTreacherousAsGitHubs(t *testing.T) {
	s := githubtest.New(t, seeded(t), githubtest.Options{InProcess: true})
	for query, c := range map[string]struct {
		pulls int
		more  bool
	}{
		"":                           {30, true},
		"?per_page=500":              {35, false},
		"?per_page=20&page=2":        {15, false},
		"?head=side-1&per_page=100":  {35, false},
		"?head=acme:side-1":          {1, false},
		"?head=eve:side-1":           {0, false},
		"?base=other&per_page=100":   {0, false},
		"?state=closed&per_page=100": {0, false},
	} {
		_, body, header := send(t, s, exchange{method: "GET", path: repo + "/pulls" + query})
		if n := strings.Count(body, `"node_id":"PR_`); n != c.pulls || (header.Get("Link") != "") != c.more {
			t.Errorf("%q: %d pull requests, Link %q; want %d", query, n, header.Get("Link"), c.pulls)
		}
	}
}
