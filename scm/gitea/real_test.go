//go:build e2e

package gitea_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteareal"
	"tagboat/scm/scmtest"
)

// realServer starts the Gitea whose binary TAGBOAT_GITEA names, of whatever version.
func realServer(t *testing.T) *giteareal.Server {
	t.Helper()
	binary := os.Getenv("TAGBOAT_GITEA")
	if binary == "" {
		t.Skip("SKIPPED: TAGBOAT_GITEA does not name a Gitea binary; nothing was tested against a real server")
	}
	s, err := giteareal.Start(t.Context(), giteareal.Options{Binary: binary, Dir: t.TempDir(), Static: os.Getenv("TAGBOAT_GITEA_STATIC")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("Gitea %s", s.Version)
	if err := s.AddUser(t.Context(), "mei"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformReal(t *testing.T) {
	server := realServer(t)
	var n atomic.Int64
	scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
		name := fmt.Sprintf("config-%d", n.Add(1))
		if err := server.AddRepo(t.Context(), name, "mei"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(t.Name(), "/merge:") {
			if err := server.RequireCheck(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		return realHarness(t, t.Context(), server, name)
	})
}

func realHarness(t *testing.T, ctx context.Context, server *giteareal.Server, name string) scmtest.Harness {
	t.Helper()
	repo, err := gitea.New(gitea.Options{BaseURL: server.URL, Owner: server.Admin, Name: name, Token: server.Token})
	if err != nil {
		t.Fatal(err)
	}
	return scmtest.Harness{
		Repo: repo, Person: server.Person(ctx, name), Reviewer: "mei", Ghost: "nobody-here",
		Can: scmtest.Can{
			PullRequests: true, CompareAndSwap: server.AtLeast(26), Rebuild: server.AtLeast(26), Protection: true, Forks: true, Draft: true,
			AutoMerge: true, Labels: true, Reviewers: true, UpdatesPR: true, MergesNow: true, Dispatch: server.AtLeast(25), Workflows: true, Slow: true,
		},
	}
}
