package gitea_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

// fake starts a fake server, with a path before the API as behind a proxy, and
// opens its repository.
func fake(t *testing.T, o giteatest.Options) (*gitea.Repository, *giteatest.Server, *scmtest.Store) {
	t.Helper()
	if o.Store == nil {
		o.Store = scmtest.NewStore("main", map[string]string{"README.md": "# config\n"})
	}
	o.Report = t.Errorf
	server := giteatest.New(o)
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	repo, err := gitea.New(gitea.Options{
		BaseURL: listener.URL + "/git/", Owner: "acme", Name: "config", Token: "token",
		HTTP: scm.TransportOptions{Sleep: func(context.Context, time.Duration) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return repo, server, o.Store
}

func TestConform(t *testing.T) {
	servers := map[string]giteatest.Options{
		"1.26":                        {Version: giteatest.V126, Admin: true},
		"1.26 of a plain user, gogit": {Version: giteatest.V126, NoTreePath: true},
		"1.26 that hides its version": {Version: giteatest.V126, HideVersion: true},
		"1.25":                        {Version: giteatest.V125, MaxItems: 20, TreePage: 2},
		"1.22":                        {Version: giteatest.V122},
		"Forgejo":                     {Version: giteatest.Forgejo},
	}
	for name, o := range servers {
		t.Run(name, func(t *testing.T) {
			scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
				o.Users, o.Store = []string{"mei"}, nil
				repo, _, store := fake(t, o)
				return scmtest.Harness{
					Repo: repo, Person: store, Reviewer: "mei", Ghost: "nobody-here",
					Can: scmtest.Can{
						PullRequests: true, CompareAndSwap: o.Version == giteatest.V126, Rebuild: o.Version == giteatest.V126,
						Protection: true, Forks: true, Draft: true, AutoMerge: true, Labels: true, Reviewers: true, UpdatesPR: true,
					},
				}
			})
		})
	}
}
