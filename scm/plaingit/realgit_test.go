//go:build e2e

package plaingit_test

import (
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tagboat/scm/plaingit"
	"tagboat/scm/scmtest"
)

// serveRealGit serves a bare repository with git's own http-backend.
func serveRealGit(t *testing.T, bare *scmtest.Bare) (url string) {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("no git on this machine: the in-process server stands for it")
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(bare.Dir), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=mei",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}})
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(bare.Dir)
}

func TestConformOnRealGit(t *testing.T) {
	scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
		bare := newBare(t)
		return scmtest.Harness{
			Repo: open(t, plaingit.Options{URL: serveRealGit(t, bare), Depth: 2}), Person: bare,
			Can: scmtest.Can{CompareAndSwap: true, Rebuild: true},
		}
	})
}
