package inventory_test

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

// open opens a store through one forge's driver and its fake.
type open func(*testing.T, *scmtest.Store, scm.TransportOptions) scm.Repository

func forges() map[string]open {
	return map[string]open{"github": openGitHub, "gitlab": openGitLab, "gitea": openGitea}
}

func openGitHub(t *testing.T, store *scmtest.Store, transport scm.TransportOptions) scm.Repository {
	fake := githubtest.New(t, store, githubtest.Options{})
	repo, err := github.New(github.Options{BaseURL: fake.URL(), Owner: fake.Owner(), Name: fake.Name(), Token: fake.Token(), Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return repo
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

func openGitea(t *testing.T, store *scmtest.Store, transport scm.TransportOptions) scm.Repository {
	fake := httptest.NewServer(giteatest.New(giteatest.Options{Store: store, Version: giteatest.V126, Report: t.Errorf}))
	t.Cleanup(fake.Close)
	repo, err := gitea.New(gitea.Options{BaseURL: fake.URL, Owner: "acme", Name: "config", Token: "token", HTTP: transport})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}
