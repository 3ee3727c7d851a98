package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tagboat/ci"
	"tagboat/scm"
)

func TestPaces(t *testing.T) {
	var p paces
	one := p.of("github.com", "a")
	if p.of("GitHub.com", "a") != one {
		t.Error("one host and one credential have two paces")
	}
	if p.of("github.com", "b") == one || p.of("git.acme.example", "a") == one {
		t.Error("two hosts or credentials have one pace")
	}
	if (*paces)(nil).of("github.com", "a") != nil {
		t.Error("no paces give one")
	}
}

// TestOpenedRepositoriesWriteOneByOne: whichever repositories a run opens on a host,
// their writes are never at once.
func TestOpenedRepositoriesWriteOneByOne(t *testing.T) {
	for _, forge := range []string{scm.GitHub, scm.GitLab, scm.Gitea} {
		t.Run(forge, func(t *testing.T) {
			var now, most atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method != http.MethodGet {
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					time.Sleep(20 * time.Millisecond)
				}
				http.Error(w, `{"message": "no"}`, http.StatusForbidden)
			}))
			defer srv.Close()
			env := map[string]string{"TAGBOAT_TOKEN": "t0ken-of-" + forge, "GITHUB_API_URL": srv.URL}
			tool := &tool{env: func(name string) string { return env[name] }, redactor: ci.NewRedactor(), commands: ci.Job{}.Commands(io.Discard), paces: &paces{}}
			var g sync.WaitGroup
			for i := range 6 {
				at, err := scm.Locate(fmt.Sprintf("%s/acme/config-%d", srv.URL, i), scm.LocateOptions{Forge: forge})
				if err != nil {
					t.Fatal(err)
				}
				repo, err := tool.open(at, nil)
				if err != nil {
					t.Fatal(err)
				}
				g.Go(func() {
					err := repo.(scm.Evidence).SetStatus(context.Background(), strings.Repeat("a", 40), scm.Status{Context: "x", State: scm.StatusSuccess})
					if err == nil || errors.Is(err, scm.ErrUnavailable) {
						t.Errorf("error %v, want the server's refusal", err)
					}
				})
			}
			g.Wait()
			if most.Load() != 1 {
				t.Errorf("%d writes at once, want one", most.Load())
			}
		})
	}
}
