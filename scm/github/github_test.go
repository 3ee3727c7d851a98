package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
)

// GraphQL of an Enterprise server is beside /api/v3.
func TestAddresses(t *testing.T) {
	for base, want := range map[string]struct{ host, url string }{
		"":                                 {"github.com", "https://github.com/acme/config"},
		"https://api.github.com":           {"github.com", "https://github.com/acme/config"},
		"https://api.github.com/":          {"github.com", "https://github.com/acme/config"},
		"https://github.com":               {"github.com", "https://github.com/acme/config"},
		"https://ghe.example/api/v3":       {"ghe.example", "https://ghe.example/acme/config"},
		"https://ghe.example:8443/api/v3/": {"ghe.example:8443", "https://ghe.example:8443/acme/config"},
		"https://api.acme.ghe.com":         {"acme.ghe.com", "https://acme.ghe.com/acme/config"},
		"https://acme.ghe.com":             {"acme.ghe.com", "https://acme.ghe.com/acme/config"},
		"http://127.0.0.1:4000":            {"127.0.0.1:4000", "http://127.0.0.1:4000/acme/config"},
	} {
		t.Run(base, func(t *testing.T) {
			r, err := github.New(github.Options{BaseURL: base, Owner: "acme", Name: "config", Token: "t0ken"})
			if err != nil {
				t.Fatal(err)
			}
			if a := r.About(); a.Host != want.host || a.URL != want.url || a.Name != "acme/config" || a.Forge != "github" {
				t.Errorf("about %+v, want %+v", a, want)
			}
		})
	}
}

func TestAPIURL(t *testing.T) {
	for host, want := range map[string]string{
		"": "https://api.github.com", "github.com": "https://api.github.com", "GitHub.com": "https://api.github.com",
		"acme.ghe.com": "https://api.acme.ghe.com", "api.acme.ghe.com": "https://api.acme.ghe.com", "git.example:8443": "https://git.example:8443/api/v3",
	} {
		if got := github.APIURL(host); got != want {
			t.Errorf("APIURL(%q) is %s, want %s", host, got, want)
		}
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	for name, o := range map[string]github.Options{
		"no owner":              {Name: "config"},
		"no name":               {Owner: "acme"},
		"path in name":          {Owner: "acme", Name: "config/../other"},
		"dots":                  {Owner: "..", Name: "config"},
		"no scheme":             {Owner: "acme", Name: "config", BaseURL: "ghe.example/api/v3"},
		"credential":            {Owner: "acme", Name: "config", BaseURL: "https://mei:hunter2@ghe.example/api/v3"},
		"broken":                {Owner: "acme", Name: "config", BaseURL: "https://mei:hunter2@ghe.example:port/"},
		"token with a line end": {Owner: "acme", Name: "config", Token: "hunter2\n"},
		"CA file not there":     {Owner: "acme", Name: "config", Transport: scm.TransportOptions{CAFiles: []string{"testdata/nope.pem"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := github.New(o)
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What a token's kind means is told before any call, by its
// prefix and nothing else.
func TestWarningsOfACredential(t *testing.T) {
	long := strings.Repeat("x", 400)
	for name, c := range map[string]struct {
		o     github.Options
		words string
	}{
		"GITHUB_TOKEN":    {github.Options{Token: "ghs_1_" + long, ActionsToken: true}, "holds back the checks"},
		"installation":    {github.Options{Token: "ghs_1_eyJ." + long}, ""},
		"classic":         {github.Options{Token: "ghp_x"}, "that person cannot approve it"},
		"fine-grained":    {github.Options{Token: "github_pat_x"}, "that person cannot approve it"},
		"none":            {github.Options{}, "nothing can be written"},
		"of another kind": {github.Options{Token: "0123456789abcdef"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Owner, c.o.Name = "acme", "config"
			r, err := github.New(c.o)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(r.About().Warnings, "\n")
			if (c.words == "") != (got == "") || !strings.Contains(got, c.words) {
				t.Errorf("warnings %q, want %q", got, c.words)
			}
		})
	}
}

func TestPrivateAuthorityIsAdded(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{TLS: true, Enterprise: true})
	o := options(s)
	bare, err := github.New(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = bare.Tip(t.Context(), "main")
	wantError(t, err, scm.ErrUnavailable, "CA file")
	o.Transport.CAFiles = []string{s.CAFile()}
	r, err := github.New(o)
	if err != nil {
		t.Fatal(err)
	}
	promote(t, r, v2)
	promote(t, r, v3)
	if n := count(s.Ops(), "GraphQL updateRefs"); n != 1 {
		t.Errorf("GraphQL was called %d times: %v", n, s.Ops())
	}
}

func TestCredentialsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		token, name string
		kind        error
		words       string
	}{
		"wrong token":        {"ghp_wrong", "config", scm.ErrDenied, "missing, wrong or expired"},
		"no token":           {"", "config", scm.ErrNotFound, "the token cannot see it"},
		"another repository": {"ghs_fake", "other", scm.ErrNotFound, "the token cannot see it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := githubtest.New(t, store(t), githubtest.Options{})
			o := options(s)
			o.Token, o.Name = c.token, c.name
			r, err := github.New(o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Tip(t.Context(), "")
			wantError(t, err, c.kind, c.words, "acme/"+c.name)
			if c.token != "" && strings.Contains(err.Error(), c.token) {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
}

func TestBranchThatWasRenamed(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{})
	r := open(t, s)
	s.Fail("GET branches/{branch}", 1, githubtest.Answer{Status: 301, Message: "Moved Permanently", Header: map[string]string{"Location": s.URL() + "/repos/acme/config/branches/main"}})
	_, err := r.Tip(t.Context(), "master")
	wantError(t, err, scm.ErrNotFound, `renamed to "main"`)
}

func TestEmptyRepository(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	s.Fail("GET commits/{ref}", 1, githubtest.Answer{Status: 409, Message: "Git Repository is empty."})
	_, err := open(t, s).Tip(t.Context(), "")
	wantError(t, err, scm.ErrNotFound, "is empty")
}

func TestProtectedBranchIsTold(t *testing.T) {
	st := store(t)
	st.Protect("main")
	r := open(t, githubtest.New(t, st, githubtest.Options{}))
	for _, name := range []string{"", "main"} {
		tip, err := r.Tip(t.Context(), name)
		if err != nil || !tip.Protected || tip.Branch != "main" {
			t.Errorf("tip of %q: %+v, %v", name, tip, err)
		}
	}
}

// Every operation that the driver can call is called, and the fake has no other.
func TestEveryOperationIsCalled(t *testing.T) {
	st := store(t)
	key := newKey(t)
	s := githubtest.New(t, st, githubtest.Options{App: &githubtest.FakeApp{ID: "1", Key: &key.PublicKey, InstallationID: 7}})
	o := options(s)
	o.App = &github.App{ID: "1", PrivateKey: pkcs1(key)}
	r, err := github.New(o)
	if err != nil {
		t.Fatal(err)
	}
	promote(t, r, "a: \xff\n")
	s.Fail("GraphQL updateRefs", 1, githubtest.Answer{Status: 404, Message: "Not Found"})
	promote(t, r, v2)
	pr := promote(t, r, v3)
	if _, err := st.Review(pr.Number, "mei", "approved"); err != nil {
		t.Fatal(err)
	}
	p := scm.Proposal{Number: pr.Number, Head: head, Base: "main", HeadCommit: pr.HeadCommit, Title: "t", Labels: []string{"l"}, Assignees: []string{"mei"}, Reviewers: []string{"sam"}, AutoMerge: true}
	lagging := p
	lagging.Assignees = nil // the labels alone meet the lag
	s.LagIssues(1)
	propose(t, r, lagging)
	propose(t, r, p)
	p.AutoMerge, p.Renewed = false, true
	propose(t, r, p)
	_, _ = r.Tip(t.Context(), "")
	for _, err := range r.Log(t.Context(), pr.HeadCommit, "") {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Changes(t.Context(), tipOf(t, st, "main"), pr.HeadCommit); err != nil {
		t.Fatal(err)
	}
	d := draft(t, r, v2)
	d.Branch = head + "/below"
	if _, err := r.Commit(t.Context(), d); !errors.Is(err, scm.ErrRefused) {
		t.Errorf("error %v", err)
	}
	d.Branch = "tagboat"
	if _, err := r.Commit(t.Context(), d); !errors.Is(err, scm.ErrRefused) {
		t.Errorf("error %v", err)
	}
	fresh := open(t, s)
	d.Branch, d.From = "other", scm.Tip{Commit: scm.Commit{SHA: tipOf(t, st, "main")}}
	if _, err := fresh.Commit(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context(), pr, "done"); err != nil {
		t.Fatal(err)
	}
	askAll(t, s, r, pr)
	talkAll(t, s, r)
	for _, op := range s.Operations() {
		if count(s.Ops(), op) == 0 {
			t.Errorf("%s was not called", op)
		}
	}
}

// askAll makes the calls of scm.Evidence and scm.Rights.
func askAll(t *testing.T, s *githubtest.Server, r *github.Repository, pr scm.PullRequest) {
	t.Helper()
	s.Store.SetPermission("mei", "write")
	s.Store.SetTeam("ops", "", "mei")
	sha := pr.HeadCommit
	_, statuses := r.Statuses(t.Context(), sha)
	_, permission := r.Permission(t.Context(), "mei")
	_, member := r.Member(t.Context(), "ops", "tomas")
	_, self := r.Self(t.Context())
	set := r.SetStatus(t.Context(), sha, scm.Status{Context: "tagboat/policy", State: scm.StatusSuccess})
	s.Fail("GraphQL viewer", 1, githubtest.Answer{Status: 404, Message: "Not Found"})
	if _, err := r.Self(t.Context()); !errors.Is(err, scm.ErrDenied) {
		t.Errorf("error %v, want GET user to refuse an App", err)
	}
	if err := errors.Join(statuses, permission, member, self, set); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Merge(t.Context(), pr, pr.HeadCommit); !errors.Is(err, scm.ErrRefused) {
		t.Errorf("error %v, want a closed one refused", err)
	}
	if _, err := r.Merged(t.Context(), sha); !errors.Is(err, scm.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if at, err := r.Pushed(t.Context(), "main", tipOf(t, s.Store, "main")); err != nil || at.IsZero() {
		t.Errorf("pushed %v, %v", at, err)
	}
}

// An emulator's branch tells no more of its commit than the SHA.
func TestBranchThatTellsTooLittle(t *testing.T) {
	sha := strings.Repeat("a", 40)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/branches/main") {
			_, _ = fmt.Fprintf(w, `{"name": "main", "commit": {"sha": %q}, "protected": true}`, sha)
			return
		}
		_, _ = fmt.Fprintf(w, `{"sha": %q, "commit": {"message": "Seed", "tree": {"sha": %q}}, "parents": []}`, sha, sha)
	}))
	defer srv.Close()
	r, err := github.New(github.Options{BaseURL: srv.URL, Owner: "acme", Name: "config", Token: "t0ken"})
	if err != nil {
		t.Fatal(err)
	}
	tip, err := r.Tip(t.Context(), "main")
	if err != nil || tip.Commit.SHA != sha || tip.Commit.Message != "Seed" || !tip.Protected {
		t.Errorf("tip %+v, %v", tip, err)
	}
}
