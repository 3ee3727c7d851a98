package github_test

import (
	"context"
	"testing"
	"time"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func options(s *githubtest.Server) github.Options {
	return github.Options{
		BaseURL: s.URL(), Owner: s.Owner(), Name: s.Name(), Token: s.Token(),
		Transport: scm.TransportOptions{Sleep: noSleep},
	}
}

func open(t *testing.T, s *githubtest.Server) *github.Repository {
	t.Helper()
	r, err := github.New(options(s))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func seeded() *scmtest.Store {
	return scmtest.NewStore("main", map[string]string{"README.md": "# config\n"})
}

func everything() scmtest.Can {
	return scmtest.Can{
		PullRequests: true, CompareAndSwap: true, Rebuild: true, Protection: true, Forks: true,
		Draft: true, AutoMerge: true, Labels: true, Reviewers: true, UpdatesPR: true, MergesNow: true, Workflows: true, Dispatch: true, Runs: true,
	}
}

func TestConform(t *testing.T) {
	for name, c := range map[string]struct {
		opts githubtest.Options
		can  func(*scmtest.Can)
	}{
		"github.com": {},
		"enterprise": {opts: githubtest.Options{Enterprise: true}},
		// As on emulators: REST only, no COMMIT:PATH.
		"rest": {
			opts: githubtest.Options{NoGraphQL: true, NoTreePaths: true, Login: "tagboat", Token: "ghp_fake"},
			can:  func(c *scmtest.Can) { c.CompareAndSwap, c.AutoMerge = false, false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
				store := seeded()
				can := everything()
				if c.can != nil {
					c.can(&can)
				}
				person := &scmtest.StorePerson{Store: store, Group: "acme/"}
				return scmtest.Harness{Repo: open(t, githubtest.New(t, store, c.opts)), Person: person, Can: can, Reviewer: "mei", Ghost: "ghost"}
			})
		})
	}
}
