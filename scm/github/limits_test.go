package github_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
)

// clock is a clock that only sleeping moves.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

func (c *clock) total() (d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slept {
		d += s
	}
	return d
}

func withClock(t *testing.T, s *githubtest.Server, c *clock, budget time.Duration) *github.Repository {
	t.Helper()
	o := options(s)
	o.Transport = scm.TransportOptions{Sleep: c.Sleep, Now: c.Now, Rand: func() float64 { return 0 }, Budget: budget}
	r, err := github.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const secondary = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."

// go-github v60 does not know 429, and after one secondary limit
// it refuses later calls by itself.
func TestLimitsAreWaitedFor(t *testing.T) {
	const apart = 5 * time.Second // the writes after a wait keep a second from each other
	for name, c := range map[string]struct {
		answer githubtest.Answer
		wait   time.Duration
	}{
		"429 with Retry-After":    {githubtest.Answer{Status: 429, Message: secondary, Header: map[string]string{"Retry-After": "30"}}, 30 * time.Second},
		"429 without":             {githubtest.Answer{Status: 429, Message: secondary}, time.Second},
		"403 with Retry-After":    {githubtest.Answer{Status: 403, Message: secondary, Header: map[string]string{"Retry-After": "60"}}, time.Minute},
		"403 by its words only":   {githubtest.Answer{Status: 403, Message: secondary}, time.Minute},
		"403 with a spent budget": {githubtest.Answer{Status: 403, Message: "API rate limit exceeded for installation.", Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1780315290", "Date": "Mon, 01 Jun 2026 12:00:00 GMT"}}, 90 * time.Second},
	} {
		for _, op := range []string{"GET branches/{branch}", "POST pulls"} {
			t.Run(name+", "+op, func(t *testing.T) {
				st := store(t)
				s := githubtest.New(t, st, githubtest.Options{})
				time := newClock()
				r := withClock(t, s, time, 0)
				s.Fail(op, 1, c.answer)
				pr := promote(t, r, v2)
				if pr.Number != 1 || len(st.Pulls(nil)) != 1 {
					t.Errorf("pull request %+v", pr)
				}
				if got := time.total(); got < c.wait || got > c.wait+apart {
					t.Errorf("waited %s, want %s", got, c.wait)
				}
			})
		}
	}
}

func TestLimitBeyondTheBudgetIsToldAndForgotten(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{})
	time := newClock()
	r := withClock(t, s, time, 0)
	s.Fail("GET branches/{branch}", 1, githubtest.Answer{Status: 403, Message: secondary, Header: map[string]string{"Retry-After": "3600"}})
	_, err := r.Tip(t.Context(), "main")
	wantError(t, err, scm.ErrRateLimited, "acme/config", "read branch main", "1h0m0s")
	// By the real clock the hour is not over, and go-github would refuse by itself.
	_ = time.Sleep(t.Context(), 3601e9)
	if _, err := r.Tip(t.Context(), "main"); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// The last call that a limit allows tells that none remains: go-github v60 would
// refuse the next one by itself, whatever the server says by then.
func TestSpentBudgetIsNotRemembered(t *testing.T) {
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
		_, _ = io.WriteString(w, `{"name": "main", "commit": {"sha": "1", "commit": {"message": "m"}}}`)
	}))
	defer srv.Close()
	r, err := github.New(github.Options{BaseURL: srv.URL, Owner: "acme", Name: "config", Token: "t0ken"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Tip(t.Context(), "main"); err != nil {
			t.Error(err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls came", calls)
	}
}

// GraphQL says a limit with status 200.
func TestGraphQLLimitIsToldAsSuch(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	promote(t, r, v2)
	s.Fail("GraphQL updateRefs", 1, githubtest.Answer{Status: 200, Errors: []any{map[string]any{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}}})
	_, err := r.Commit(t.Context(), onBranch(t, st, r, v3))
	wantError(t, err, scm.ErrRateLimited)
}

// Writes go one by one: GitHub counts those that overlap.
func TestWritesDoNotOverlap(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{Delay: time.Millisecond})
	r := open(t, s)
	p := committed(t, r)
	p.Labels, p.Assignees, p.Reviewers, p.AutoMerge = []string{"a"}, []string{"mei"}, []string{"mei", "sam"}, true
	propose(t, r, p)
	end := 0
	for _, c := range s.Calls() {
		if c.Method == http.MethodGet {
			continue
		}
		if c.Start < end {
			t.Errorf("%s began before the write before it had ended", c.Op)
		}
		end = c.End
	}
}

func TestReadsAreTriedAgainAndWritesAreNot(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{})
	r := open(t, s)
	bad := githubtest.Answer{Status: 502, Body: "<html><body>Bad Gateway</body></html>"}
	s.Fail("GET branches/{branch}", 2, bad)
	d := draft(t, r, v2)
	s.Fail("POST git/commits", 1, bad)
	_, err := r.Commit(t.Context(), d)
	wantError(t, err, scm.ErrUnavailable, "write the commit", "502")
	if n := count(s.Ops(), "POST git/commits"); n != 1 {
		t.Errorf("the commit was sent %d times", n)
	}
}

func TestCancelledCallIsNotUnavailable(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{})
	r := open(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Tip(ctx, "main")
	wantError(t, err, context.Canceled, "read branch main")
}

func TestAnswersThatAreNotGitHubs(t *testing.T) {
	for name, c := range map[string]struct{ body, kind string }{
		"a page":      {"<html>Sign in</html>", "text/html"},
		"nothing":     {"", "application/json"},
		"other JSON":  {`{"hello": "world"}`, "application/json"},
		"a bare list": {`[]`, "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.body)
			}))
			defer srv.Close()
			r, err := github.New(github.Options{BaseURL: srv.URL, Owner: "acme", Name: "config", Token: "t0ken", Transport: scm.TransportOptions{Sleep: noSleep}})
			if err != nil {
				t.Fatal(err)
			}
			if tip, err := r.Tip(t.Context(), "main"); err == nil {
				t.Errorf("tip %+v", tip)
			}
			if tip, err := r.Tip(t.Context(), ""); err == nil {
				t.Errorf("default tip %+v", tip)
			}
			if pr, err := r.Propose(t.Context(), scm.Proposal{Head: head, Base: "main"}); err == nil {
				t.Errorf("proposed %+v", pr)
			}
			if pr, err := r.Propose(t.Context(), scm.Proposal{Number: 3}); err == nil {
				t.Errorf("updated %+v", pr)
			}
			if c, err := r.Changes(t.Context(), "a", "b"); err == nil {
				t.Errorf("changes %+v", c)
			}
		})
	}
}

// The token goes to the API's own host, whatever a redirect says.
func TestTokenStaysAtHome(t *testing.T) {
	var leaked string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		leaked += req.Header.Get("Authorization")
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
	}))
	defer other.Close()
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, other.URL+req.URL.Path, http.StatusMovedPermanently)
	}))
	defer home.Close()
	r, err := github.New(github.Options{BaseURL: home.URL, Owner: "acme", Name: "config", Token: "ghp_secret", Transport: scm.TransportOptions{Sleep: noSleep}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tip(t.Context(), "main"); err == nil || strings.Contains(err.Error(), "ghp_secret") {
		t.Errorf("error %v", err)
	}
	// A write that became a read would look like success.
	if pr, err := r.Propose(t.Context(), scm.Proposal{Head: head, Base: "main", Title: "t"}); err == nil {
		t.Errorf("proposed %+v", pr)
	}
	if leaked != "" {
		t.Errorf("the other host was sent %q", leaked)
	}
}

func TestManyReadersAtOnce(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{})
	r := open(t, s)
	at := tipOf(t, s.Store, "main")
	g, ctx := errgroup.WithContext(t.Context())
	for range 20 {
		g.Go(func() error {
			files := r.Files(ctx, at)
			if _, err := r.Tip(ctx, ""); err != nil {
				return err
			}
			f, err := files.Open(overlay)
			if err != nil {
				return err
			}
			return f.Close()
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := count(s.Ops(), "GET git/trees/{tree_sha}"); n != 1 {
		t.Errorf("the directory was listed %d times", n)
	}
}
