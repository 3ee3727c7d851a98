package gitea_test

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

const (
	file = "apps/todo-api/overlays/staging/kustomization.yaml"
	head = "tagboat/staging/todo-api"
	old  = "images:\n- name: todo-api\n  newTag: v1\n"
)

// latency is of every answer, in synctest's time.
const latency = time.Second

func seeded(files int) *scmtest.Store {
	all := map[string]string{file: old}
	for i := range files {
		all[fmt.Sprintf("apps/app-%d/overlays/staging/kustomization.yaml", i)] = "x"
	}
	return scmtest.NewStore("main", all)
}

// together runs calls as promote does: at the same time, all without an error.
func together(t *testing.T, calls ...func() error) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(calls))
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read does what a promotion reads: round one the tips and the pull requests,
// round two the file and, if there is a branch, what it changes.
func read(t *testing.T, repo scm.Repository, exists bool) (base, branch scm.Tip) {
	t.Helper()
	ctx := t.Context()
	first := []func() error{
		func() (err error) { base, err = repo.Tip(ctx, "main"); return err },
		func() error { _, err := repo.PullRequests(ctx, head, "main"); return err },
	}
	if exists {
		first = append(first, func() (err error) { branch, err = repo.Tip(ctx, head); return err })
	}
	together(t, first...)
	second := []func() error{
		func() error { _, err := fs.ReadFile(repo.Files(ctx, base.Commit.SHA), file); return err },
	}
	if exists {
		second = append(second, func() error { _, err := repo.Changes(ctx, base.Commit.SHA, branch.Commit.SHA); return err })
	}
	together(t, second...)
	return base, branch
}

func draftOf(base scm.Tip, content string) scm.Draft {
	return scm.Draft{
		Branch: head, From: base, Message: "Promote todo-api\n\nTagboat-App: todo-api",
		Files: []scm.File{{Path: file, Old: []byte(old), New: []byte(content)}},
	}
}

func TestBudget(t *testing.T) {
	cases := map[string]struct {
		version        string
		create, update int // sequential rounds
		writes         []string
	}{
		"1.26": {giteatest.V126, 4, 5, []string{
			"DELETE /branches/*", "PATCH /pulls/{index}", "POST /contents", "PUT /branches/*",
		}},
		"1.25":    {giteatest.V125, 4, 5, []string{"PATCH /pulls/{index}", "POST /contents"}},
		"Forgejo": {giteatest.Forgejo, 4, 5, []string{"PATCH /pulls/{index}", "POST /contents"}},
	}
	for name, tc := range cases {
		synctest.Test(t, func(t *testing.T) {
			t.Log(name)
			repo, server, _ := fake(t, giteatest.Options{Version: tc.version, Store: seeded(3), Latency: latency})
			base, _ := read(t, repo, false)
			first, err := repo.Commit(t.Context(), draftOf(base, "v2\n"))
			if err != nil {
				t.Fatal(err)
			}
			p := scm.Proposal{Head: head, Base: "main", HeadCommit: first.SHA, Title: "Promote", Body: "b"}
			pr, err := repo.Propose(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if got := server.Rounds(); got > tc.create {
				t.Errorf("a new pull request took %d rounds, want at most %d:\n%s", got, tc.create, list(server))
			}
			if got := len(server.Requests()); got > 9 {
				t.Errorf("a new pull request took %d requests, want at most 9:\n%s", got, list(server))
			}

			server.Forget()
			base, branch := read(t, repo, true)
			d := draftOf(base, "v3\n")
			d.Expect, d.OnHead = branch.Commit.SHA, []scm.File{{Path: file, Old: []byte("v2\n"), New: []byte("v3\n")}}
			second, err := repo.Commit(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			p.Number, p.HeadCommit = pr.Number, second.SHA
			if _, err := repo.Propose(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if got := server.Rounds(); got > tc.update {
				t.Errorf("an update took %d rounds, want at most %d:\n%s", got, tc.update, list(server))
			}
			if diff := cmp.Diff(tc.writes, writes(server)); diff != "" {
				t.Errorf("writes of an update (-want +got):\n%s", diff)
			}
		})
	}
}

func list(s *giteatest.Server) (out string) {
	for _, r := range s.Requests() {
		out += fmt.Sprintf("%s %s %d\n", r.Method, r.Path, r.Status)
	}
	return out
}

func writes(s *giteatest.Server) []string {
	var list []string
	for _, r := range s.Requests() {
		if r.Method != "GET" {
			list = append(list, r.Method+" "+r.Route)
		}
	}
	slices.Sort(list)
	return list
}

func TestNothingToDoWritesNothing(t *testing.T) { synctest.Test(t, nothingToDoWritesNothing) }

func nothingToDoWritesNothing(t *testing.T) {
	repo, server, _ := fake(t, giteatest.Options{Store: seeded(3), Latency: latency})
	read(t, repo, false)
	if got := server.Rounds(); got > 2 {
		t.Errorf("%d rounds, want at most 2:\n%s", got, list(server))
	}
	if got := writes(server); got != nil {
		t.Errorf("writes %v", got)
	}
}

func TestVersionIsAskedOnce(t *testing.T) {
	repo, server, _ := fake(t, giteatest.Options{Store: seeded(0)})
	for range 3 {
		read(t, repo, false)
	}
	if got := server.Count("GET /version"); got != 1 {
		t.Errorf("asked for the version %d times", got)
	}
}

func TestCallsDoNotGrowWithTheRepository(t *testing.T) {
	count := func(files int) int {
		repo, server, _ := fake(t, giteatest.Options{Store: seeded(files)})
		base, _ := read(t, repo, false)
		fsys := repo.Files(t.Context(), base.Commit.SHA)
		if _, err := fs.ReadDir(fsys, "apps/todo-api/overlays/staging"); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Stat(fsys, file); err != nil {
			t.Fatal(err)
		}
		return len(server.Requests())
	}
	if few, many := count(5), count(3000); few != many {
		t.Errorf("%d requests with 5 files, %d with 3000", few, many)
	}
}
