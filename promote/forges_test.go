package promote_test

import (
	"net/http/httptest"
	"testing"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// forgeFor opens a store through one forge's driver and its fake.
type forgeFor struct {
	open   func(*testing.T, *scmtest.Store, scm.TransportOptions) scm.Repository
	rounds int  // that a new pull request may take
	fixed  bool // a watched branch that conflicts cannot be rebuilt
	closed int  // more of them where a closed pull request is looked into
}

func forges() map[string]forgeFor {
	return map[string]forgeFor{
		"github":      {open: openGitHub(githubtest.Options{}), rounds: 6},
		"github-rest": {open: openGitHub(githubtest.Options{NoGraphQL: true, NoTreePaths: true})},
		"gitlab":      {open: openGitLab, rounds: 4},
		"gitea":       {open: openGitea(giteatest.V126), rounds: 4, closed: 1},
		"gitea-1.22":  {open: openGitea(giteatest.V122), fixed: true},
		"forgejo":     {open: openGitea(giteatest.Forgejo), fixed: true},
	}
}

func openGitHub(o githubtest.Options) func(*testing.T, *scmtest.Store, scm.TransportOptions) scm.Repository {
	return func(t *testing.T, store *scmtest.Store, transport scm.TransportOptions) scm.Repository {
		fake := githubtest.New(t, store, o)
		repo, err := github.New(github.Options{BaseURL: fake.URL(), Owner: fake.Owner(), Name: fake.Name(), Token: fake.Token(), Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		return repo
	}
}

func openGitLab(t *testing.T, store *scmtest.Store, transport scm.TransportOptions) scm.Repository {
	fake := gitlabtest.New(t, store)
	url, stop := fake.Start()
	t.Cleanup(stop)
	repo, err := gitlab.New(gitlab.Options{BaseURL: url, Project: gitlabtest.Project, Token: gitlabtest.Token, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func openGitea(version string) func(*testing.T, *scmtest.Store, scm.TransportOptions) scm.Repository {
	return func(t *testing.T, store *scmtest.Store, transport scm.TransportOptions) scm.Repository {
		fake := httptest.NewServer(giteatest.New(giteatest.Options{Store: store, Version: version, Teams: []string{"release"}, Report: t.Errorf}))
		t.Cleanup(fake.Close)
		repo, err := gitea.New(gitea.Options{BaseURL: fake.URL, Owner: "acme", Name: "config", Token: "token", HTTP: transport})
		if err != nil {
			t.Fatal(err)
		}
		return repo
	}
}
