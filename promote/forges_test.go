package promote_test

import (
	"testing"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// forgeFor opens a store through one forge's driver and its fake.
type forgeFor struct {
	open    func(*testing.T, *scmtest.Store, scm.TransportOptions) scm.Repository
	appends bool
	rounds  int // that a new pull request may take, DESIGN §4
}

func forges() map[string]forgeFor {
	return map[string]forgeFor{
		"github":      {open: openGitHub(githubtest.Options{}), rounds: 6},
		"github-rest": {open: openGitHub(githubtest.Options{NoGraphQL: true, NoTreePaths: true})},
		"gitlab":      {open: openGitLab, appends: true, rounds: 4},
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
