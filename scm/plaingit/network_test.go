package plaingit_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/plaingit"
	"tagboat/scm/scmtest"
)

const token = "s3cr3t-t0ken"

// serve makes a repository in memory and serves it over HTTP to a token.
func serve(t *testing.T) (*scmtest.GitServer, string) {
	t.Helper()
	g := &scmtest.GitServer{Store: scmtest.NewStore("main", map[string]string{"README.md": "first\n", "k.yaml": "v1\n"}), Token: token}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, server.URL + "/acme/config.git"
}

func quick(url string) plaingit.Options {
	return plaingit.Options{URL: url, Token: token, Transport: scm.TransportOptions{
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}}
}

func TestConformOverHTTP(t *testing.T) {
	for _, depth := range []int{1, 50} {
		t.Run(fmt.Sprint("depth ", depth), func(t *testing.T) {
			scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
				g, url := serve(t)
				o := quick(url)
				o.Depth = depth
				return scmtest.Harness{
					Repo: open(t, o), Person: g.Store,
					Can: scmtest.Can{CompareAndSwap: true, Rebuild: true},
				}
			})
		})
	}
}

func draft(t *testing.T, r *plaingit.Repository) scm.Draft {
	t.Helper()
	tip, err := r.Tip(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return scm.Draft{Branch: "tagboat/staging/app", From: tip, Message: "Promote",
		Files: []scm.File{{Path: "k.yaml", Old: []byte("v1\n"), New: []byte("v2\n")}}}
}

func TestAPushThatLosesTheRaceIsMoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		update bool
		person func(*scmtest.Store) error
	}{
		{"somebody makes the branch", false, func(s *scmtest.Store) error {
			_, err := s.Push("tagboat/staging/app", "mei", "Mine", map[string]string{"x": "1"})
			return err
		}},
		{"somebody moves the branch", true, func(s *scmtest.Store) error {
			_, err := s.Push("tagboat/staging/app", "mei", "Mine", map[string]string{"x": "1"})
			return err
		}},
		{"somebody deletes the branch", true, func(s *scmtest.Store) error { return s.DeleteBranch("tagboat/staging/app", "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, url := serve(t)
			r := open(t, quick(url))
			d := draft(t, r)
			if c.update {
				first, err := r.Commit(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				d.Expect = first.SHA
			}
			g.BeforePush(func() {
				if err := c.person(g.Store); err != nil {
					t.Error(err)
				}
			})
			if _, err := r.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
				t.Errorf("got %v, want ErrMoved", err)
			}
			if at, ok := g.Store.Branch(d.Branch); ok {
				if info, _ := g.Store.Commit(at); info.Message != "Mine" {
					t.Errorf("the person's commit was lost: the branch is at %q", info.Message)
				}
			}
		})
	}
}

func TestAPushWhoseAnswerIsLostSucceeded(t *testing.T) {
	g, url := serve(t)
	r := open(t, quick(url))
	g.LoseAnswer()
	c, err := r.Commit(t.Context(), draft(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if at, _ := g.Store.Branch("tagboat/staging/app"); at != c.SHA {
		t.Errorf("branch at %s, told %s", at, c.SHA)
	}
}

func TestAPushThatAHookDeclinesIsRefused(t *testing.T) {
	g, url := serve(t)
	g.Store.Protect("tagboat/*")
	r := open(t, quick(url))
	_, err := r.Commit(t.Context(), draft(t, r))
	if !errors.Is(err, scm.ErrRefused) || !strings.Contains(err.Error(), "protected branch hook declined") {
		t.Errorf("got %v", err)
	}
}

func TestAWrongTokenIsDeniedAndNotTold(t *testing.T) {
	_, url := serve(t)
	o := quick(url)
	o.Token = "wr0ng-t0ken"
	_, err := open(t, o).Tip(t.Context(), "")
	if !errors.Is(err, scm.ErrDenied) || strings.Contains(err.Error(), o.Token) || !strings.Contains(err.Error(), "/acme/config.git") {
		t.Errorf("got %v", err)
	}
}

func TestNoServerIsUnavailable(t *testing.T) {
	server := httptest.NewServer(nil)
	url := server.URL
	server.Close()
	if _, err := open(t, quick(url+"/acme/config.git")).Tip(t.Context(), ""); !errors.Is(err, scm.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestFetchIsBoundedAndDeepensWhenAsked(t *testing.T) {
	g, url := serve(t)
	last := ""
	for i := range 30 {
		sha, err := g.Store.Push("main", "mei", fmt.Sprint("Commit ", i), map[string]string{"README.md": fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		last = sha
	}
	o := quick(url)
	o.Depth = 5
	r := open(t, o)
	if _, err := r.Tip(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if n := g.Sent(); n != 5 {
		t.Errorf("%d commits were sent for a tip, want 5", n)
	}
	var messages []string
	for c, err := range r.Log(t.Context(), last, "") {
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, c.Message)
	}
	want := []string{"Seed"}
	for i := range 30 {
		want = append([]string{fmt.Sprint("Commit ", i)}, want...)
	}
	if d := cmp.Diff(want, messages); d != "" {
		t.Error(d)
	}
	sent := g.Sent()
	if _, err := r.Tip(t.Context(), ""); err != nil || g.Sent() != sent {
		t.Errorf("a tip that is here was sent again: %d commits, %v", g.Sent()-sent, err)
	}
}

func TestACommitThatNoBranchIsAtIsStillRead(t *testing.T) {
	g, url := serve(t)
	first, _ := g.Store.Branch("main")
	if _, err := g.Store.Push("main", "mei", "Second", map[string]string{"k.yaml": "v2\n"}); err != nil {
		t.Fatal(err)
	}
	o := quick(url)
	o.Depth = 1
	r := open(t, o)
	if _, err := r.Tip(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	b, err := fs.ReadFile(r.Files(t.Context(), first), "k.yaml")
	if err != nil || string(b) != "v1\n" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	cases := []struct {
		name string
		o    plaingit.Options
		want error
		text string
	}{
		{"a token over plain http", plaingit.Options{URL: "http://git.example/acme/config.git", Token: token}, scm.ErrRefused, "use https://"},
		{"ssh without key and agent", plaingit.Options{URL: "ssh://git@git.example/acme/config.git"}, scm.ErrDenied, "SSH agent"},
		{"a key that is not there", plaingit.Options{URL: "git@git.example:acme/config.git", SSHKeyFile: "/nonexistent/key"}, scm.ErrDenied, "/nonexistent/key"},
		{"a folder that is no repository", plaingit.Options{URL: "file://" + t.TempDir()}, scm.ErrNotFound, "no git repository"},
		{"a CA file that is not there", plaingit.Options{URL: "https://git.example/acme/config.git", CAFiles: []string{"/nonexistent/ca"}}, nil, "/nonexistent/ca"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := plaingit.New(c.o)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
			if err != nil && strings.Contains(err.Error(), token) {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
}
