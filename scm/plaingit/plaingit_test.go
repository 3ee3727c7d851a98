package plaingit_test

import (
	"path/filepath"
	"testing"

	"tagboat/scm/plaingit"
	"tagboat/scm/scmtest"
)

func newBare(t *testing.T) *scmtest.Bare {
	t.Helper()
	bare, err := scmtest.NewBare(filepath.Join(t.TempDir(), "config.git"), map[string]string{"README.md": "first\n"})
	if err != nil {
		t.Fatal(err)
	}
	return bare
}

func open(t *testing.T, o plaingit.Options) *plaingit.Repository {
	t.Helper()
	r, err := plaingit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConformOnDisk(t *testing.T) {
	scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
		bare := newBare(t)
		return scmtest.Harness{
			Repo: open(t, plaingit.Options{URL: bare.URL}), Person: bare,
			Can: scmtest.Can{CompareAndSwap: true, Rebuild: true},
		}
	})
}
