package gitea_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

// fake makes a server without a network and opens its repository, below a path as
// behind a proxy.
func fake(t *testing.T, o giteatest.Options) (*gitea.Repository, *giteatest.Server, *scmtest.Store) {
	t.Helper()
	if o.Store == nil {
		o.Store = scmtest.NewStore("main", map[string]string{"README.md": "# config\n"})
	}
	o.Report = t.Errorf
	server := giteatest.New(o)
	return open(t, "https://git.acme.example/git/", "token", server), server, o.Store
}

// open opens the fake's repository; base nil is a network.
func open(t *testing.T, url, token string, base http.RoundTripper) *gitea.Repository {
	t.Helper()
	repo, err := gitea.New(gitea.Options{
		BaseURL: url, Owner: "acme", Name: "config", Token: token,
		HTTP: scm.TransportOptions{Base: base, Sleep: func(context.Context, time.Duration) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func TestConform(t *testing.T) {
	servers := map[string]giteatest.Options{
		"1.26 over HTTP":              {Version: giteatest.V126, Admin: true},
		"1.26 of a plain user, gogit": {Version: giteatest.V126, NoTreePath: true},
		"1.26 that hides its version": {Version: giteatest.V126, HideVersion: true},
		"1.27":                        {Version: giteatest.V127},
		"1.25":                        {Version: giteatest.V125, MaxItems: 20, TreePage: 2},
		"1.23":                        {Version: giteatest.V123, Admin: true},
		"Forgejo":                     {Version: giteatest.Forgejo},
	}
	for name, o := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
				o.Users, o.Teams = []string{"mei"}, []string{}
				repo, server, store := fake(t, o)
				swap := o.Version == giteatest.V126 || o.Version == giteatest.V127
				if strings.HasSuffix(name, "HTTP") {
					listener := httptest.NewServer(server)
					t.Cleanup(listener.Close)
					repo = open(t, listener.URL, "token", nil)
				}
				return scmtest.Harness{
					Repo: repo, Person: &scmtest.StorePerson{Store: store, Group: "acme/"}, Reviewer: "mei", Ghost: "nobody-here",
					Can: scmtest.Can{
						PullRequests: true, CompareAndSwap: swap, Rebuild: swap,
						Protection: true, Forks: true, Draft: true, AutoMerge: true, Labels: true, Reviewers: true, UpdatesPR: true, MergesNow: true,
						Dispatch: swap || o.Version == giteatest.V125, Workflows: true, Runs: true,
					},
				}
			})
		})
	}
}
