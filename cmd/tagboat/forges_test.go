package main

import (
	"net/http/httptest"
	"testing"

	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// serveForge starts a fake forge on a store and gives the environment in which
// tagboat finds it: REPO for --repo, FORGE for --forge, and the credential.
type serveForge func(t testing.TB, store *scmtest.Store, after func(func())) map[string]string

func forges() map[string]serveForge {
	return map[string]serveForge{
		"github":      serveGitHub(githubtest.Options{}),
		"github-rest": serveGitHub(githubtest.Options{NoGraphQL: true, NoTreePaths: true}),
		"gitlab":      serveGitLab,
		"gitea":       serveGitea(giteatest.V126),
		"forgejo":     serveGitea(giteatest.Forgejo),
	}
}

func serveGitHub(o githubtest.Options) serveForge {
	return func(t testing.TB, store *scmtest.Store, _ func(func())) map[string]string {
		fake := githubtest.New(t, store, o)
		return map[string]string{
			"REPO": fake.URL() + "/" + fake.Owner() + "/" + fake.Name(), "FORGE": "github",
			"GITHUB_API_URL": fake.URL(), "TAGBOAT_TOKEN": fake.Token(),
		}
	}
}

func serveGitLab(t testing.TB, store *scmtest.Store, after func(func())) map[string]string {
	fake := gitlabtest.New(t, store)
	url, stop := fake.Start()
	after(stop)
	return map[string]string{"REPO": url + "/" + gitlabtest.Project, "FORGE": "gitlab", "TAGBOAT_TOKEN": gitlabtest.Token}
}

func serveGitea(version string) serveForge {
	return func(t testing.TB, store *scmtest.Store, after func(func())) map[string]string {
		fake := httptest.NewServer(giteatest.New(giteatest.Options{Store: store, Version: version, Report: t.Errorf}))
		after(fake.Close)
		return map[string]string{"REPO": fake.URL + "/acme/config", "FORGE": "gitea", "GITEA_TOKEN": "token"}
	}
}
