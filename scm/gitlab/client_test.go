package gitlab_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
)

func TestNewRefuses(t *testing.T) {
	cases := []struct {
		name string
		o    gitlab.Options
		kind error
		says string
	}{
		{"job token by kind", gitlab.Options{Project: "a/b", Token: "64_x", TokenKind: gitlab.JobToken}, scm.ErrDenied, "project or group access token with the scope api and the role Developer"},
		{"job token by prefix", gitlab.Options{Project: "a/b", Token: "glcbt-64_x"}, scm.ErrDenied, "CI_JOB_TOKEN"},
		{"deploy token", gitlab.Options{Project: "a/b", Token: "gldt-x"}, scm.ErrDenied, "deploy token"},
		{"token with a line end", gitlab.Options{Project: "a/b", Token: "glpat-x\n"}, scm.ErrDenied, "line end"},
		{"no project", gitlab.Options{}, nil, "group[/sub]/name"},
		{"no group", gitlab.Options{Project: "config"}, nil, "group[/sub]/name"},
		{"path out", gitlab.Options{Project: "acme/../config"}, nil, `".."`},
		{"scheme", gitlab.Options{Project: "a/b", BaseURL: "ssh://git@gitlab.example"}, nil, "https://HOST"},
		{"credential in the address", gitlab.Options{Project: "a/b", BaseURL: "https://u:secret@gitlab.example"}, nil, "must not hold a credential"},
		{"malformed", gitlab.Options{Project: "a/b", BaseURL: "https://u:secret@gitlab.example:port"}, nil, "malformed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := gitlab.New(c.o)
			if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "secret") || c.o.Token != "" && strings.Contains(err.Error(), c.o.Token) {
				t.Errorf("tells a secret: %v", err)
			}
		})
	}
}

func TestAbout(t *testing.T) {
	cases := []struct {
		o    gitlab.Options
		want scm.About
	}{
		{gitlab.Options{Project: "/acme/sub/config/", Token: "t"}, scm.About{Host: "gitlab.com", Name: "acme/sub/config", URL: "https://gitlab.com/acme/sub/config", CompareURL: "https://gitlab.com/acme/sub/config/-/compare/"}},
		{gitlab.Options{BaseURL: "https://git.acme.example:8443/gitlab/", Project: "acme/config", Token: "t"},
			scm.About{Host: "git.acme.example:8443", Name: "acme/config", URL: "https://git.acme.example:8443/gitlab/acme/config",
				CompareURL: "https://git.acme.example:8443/gitlab/acme/config/-/compare/"}},
		{gitlab.Options{BaseURL: "https://git.acme.example/api/v4", Project: "4711"},
			scm.About{Host: "git.acme.example", Name: "4711", URL: "https://git.acme.example/projects/4711",
				Warnings: []string{"no GitLab token: only what is public can be read, and nothing proposed"}}},
	}
	for _, c := range cases {
		r, err := gitlab.New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		c.want.Forge, c.want.PullRequestWord, c.want.PullRequestMark, c.want.BodyLimit = "gitlab", "merge request", "!", 1_048_576
		c.want.PullRequests, c.want.TellsAutoMerge = true, true
		if d := cmp.Diff(c.want, r.About()); d != "" {
			t.Error(d)
		}
	}
}

func TestAddresses(t *testing.T) {
	cases := map[string]func(*gitlabtest.Server, *gitlab.Options){
		"sub-path":   func(s *gitlabtest.Server, _ *gitlab.Options) { s.BasePath = "/gitlab" },
		"numeric id": func(_ *gitlabtest.Server, o *gitlab.Options) { o.Project = strconv.Itoa(gitlabtest.ProjectID) },
		"bearer":     func(_ *gitlabtest.Server, o *gitlab.Options) { o.TokenKind = gitlab.OAuthToken },
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			w, pr := opened(t, set)
			if got := w.pull(pr.Number); got.HeadSHA != pr.HeadCommit {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestProxyThatDecodesSlashes(t *testing.T) {
	w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) { s.DecodesSlash = true })
	_, err := w.repo.Tip(t.Context(), "main")
	if !errors.Is(err, scm.ErrNotFound) || !strings.Contains(err.Error(), "decodes %2F") || !strings.Contains(err.Error(), "numeric id") {
		t.Errorf("got %v", err)
	}
}

func TestDenied(t *testing.T) {
	cases := map[string]struct {
		token string
		kind  error
		says  string
	}{
		"wrong token": {"glpat-wrong-one", scm.ErrDenied, "expired or revoked"},
		"no token":    {"", scm.ErrNotFound, "token cannot see it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t, func(_ *gitlabtest.Server, o *gitlab.Options) { o.Token = c.token })
			_, err := w.repo.Tip(t.Context(), "main")
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if c.token != "" && strings.Contains(err.Error(), c.token) {
				t.Errorf("tells the token: %v", err)
			}
		})
	}
}

// 429 on a commit means that it was not made: it is waited for and sent again.
func TestRateLimitIsWaitedFor(t *testing.T) {
	var slept atomic.Int64
	w := start(t, func(_ *gitlabtest.Server, o *gitlab.Options) {
		o.Transport.Sleep = func(_ context.Context, d time.Duration) error { slept.Add(int64(d)); return nil }
	})
	d := w.draft(w.tip("main"), "v2")
	w.fake.Throttle("createCommit", 2, 7)
	w.commit(d)
	if got := time.Duration(slept.Load()); got < 14*time.Second || w.fake.Count("createCommit") != 3 {
		t.Errorf("slept %s, %d calls", got, w.fake.Count("createCommit"))
	}
}

// go-gitlab sets a limiter from the first answer's RateLimit-Limit, here 60 a
// minute, and would make the second half of these take a minute.
func TestNoLimiterOfTheSDK(t *testing.T) {
	w := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 60 {
		if _, err := w.repo.Tip(ctx, "main"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeadServer(t *testing.T) {
	w := start(t)
	d := w.draft(w.tip("main"), "v2")
	o := gitlab.Options{BaseURL: "http://127.0.0.1:1", Project: gitlabtest.Project, Token: gitlabtest.Token}
	o.Transport.Sleep = func(context.Context, time.Duration) error { return nil }
	dead, err := gitlab.New(o)
	if err != nil {
		t.Fatal(err)
	}
	d.Files[0].Old = nil
	if _, err := dead.Commit(t.Context(), d); !errors.Is(err, scm.ErrUnavailable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("commit: %v", err)
	}
	if _, err := dead.Tip(t.Context(), "main"); !errors.Is(err, scm.ErrUnavailable) {
		t.Errorf("tip: %v", err)
	}
}

func TestSignInPageInsteadOfAnAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>Sign in</html>"))
	}))
	defer srv.Close()
	r, err := gitlab.New(gitlab.Options{BaseURL: srv.URL, Project: gitlabtest.Project, Token: gitlabtest.Token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tip(t.Context(), "main"); !errors.Is(err, scm.ErrUnavailable) || !strings.Contains(err.Error(), "sign-in page") {
		t.Errorf("got %v", err)
	}
}

// net/http forwards PRIVATE-TOKEN to whatever host a redirect names.
func TestTokenStaysHome(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("PRIVATE-TOKEN") != "" || r.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
	}))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	}))
	defer srv.Close()
	r, err := gitlab.New(gitlab.Options{BaseURL: srv.URL, Project: gitlabtest.Project, Token: gitlabtest.Token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tip(t.Context(), "main"); err == nil || leaked.Load() {
		t.Errorf("leaked %v, %v", leaked.Load(), err)
	}
}
