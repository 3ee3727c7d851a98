//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// gaps stands before the emulator and answers what that lacks and a team's rules
// need, from what the emulator says where it can: commit statuses, which are kept
// here, and the pull requests of a commit. What is missing still is GraphQL (so no
// auto-merge, no compare and swap), branch protection at the merge, and the
// repository's activity: a push has no time there, so that only what a pull request
// brought can soak.
type gaps struct {
	github *github

	mu       sync.Mutex
	posted   int                         // how many statuses
	statuses map[string][]map[string]any // by commit, newest first
}

// fillGaps gives the emulator with its gaps filled.
func (g *github) fillGaps(t *testing.T) (*github, *gaps) {
	t.Helper()
	emulator, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	filled := &gaps{github: g, statuses: map[string][]map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/acme/config/commits/{sha}/statuses", filled.list)
	mux.HandleFunc("POST /repos/acme/config/statuses/{sha}", filled.post)
	mux.HandleFunc("GET /repos/acme/config/commits/{sha}/pulls", func(w http.ResponseWriter, r *http.Request) { filled.pulls(t, w, r) })
	proxy := httputil.NewSingleHostReverseProxy(emulator)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	mux.Handle("/", proxy)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &github{url: server.URL}, filled
}

func (f *gaps) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer(w, http.StatusOK, append([]map[string]any{}, f.statuses[r.PathValue("sha")]...))
}

// post keeps a status of the bot, who alone posts in these tests.
func (f *gaps) post(w http.ResponseWriter, r *http.Request) {
	var status map[string]any
	if err := json.NewDecoder(r.Body).Decode(&status); err != nil || r.Header.Get("Authorization") != "Bearer e2e-bot-token" {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed"})
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posted++
	status["id"], status["creator"] = f.posted, map[string]any{"login": "tagboat-bot"}
	status["created_at"], status["updated_at"] = time.Now().UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339)
	sha := r.PathValue("sha")
	f.statuses[sha] = slices.Insert(f.statuses[sha], 0, status)
	answer(w, http.StatusCreated, status)
}

// pulls finds the pull requests whose merge made a commit, in the emulator.
func (f *gaps) pulls(t *testing.T, w http.ResponseWriter, r *http.Request) {
	var all, found []map[string]any
	f.github.call(t, "GET", "/pulls?per_page=100&state=all", nil, &all)
	for _, pull := range all {
		if pull["merge_commit_sha"] == r.PathValue("sha") && pull["merged_at"] != nil {
			found = append(found, pull)
		}
	}
	answer(w, http.StatusOK, append([]map[string]any{}, found...))
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}

// policyAt is the newest tagboat/policy of a commit; "" where there is none.
func (f *gaps) policyAt(commit string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.statuses[commit] {
		if s["context"] == policy {
			return strings.TrimSpace(s["state"].(string) + ": " + s["description"].(string))
		}
	}
	return ""
}
