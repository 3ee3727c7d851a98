package github_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

func draft(t *testing.T, r *github.Repository, content string) scm.Draft {
	t.Helper()
	base, err := r.Tip(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return scm.Draft{
		Branch: head, From: base, Message: "Promote todo-api\n\nTagboat-App: todo-api\n",
		Files: []scm.File{{Path: overlay, Old: []byte(v1), New: []byte(content)}},
	}
}

// onBranch is a draft for the branch as it stands.
func onBranch(t *testing.T, st *scmtest.Store, r *github.Repository, content string) scm.Draft {
	t.Helper()
	d := draft(t, r, content)
	d.Expect = tipOf(t, st, head)
	return d
}

func wantError(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v, want %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// An author or a committer takes the signature away.
func TestCommitNamesNeitherAuthorNorCommitter(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	if _, err := r.Commit(t.Context(), draft(t, r, v2)); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Calls() {
		if c.Op != "POST git/commits" {
			continue
		}
		var body map[string]any
		if err := json.Unmarshal(c.Body, &body); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"author", "committer", "signature"} {
			if body[field] != nil {
				t.Errorf("the commit carries %s: %s", field, c.Body)
			}
		}
	}
}

// An unsigned commit of a bot is told with the pull request.
func TestUnsignedCommitIsTold(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{Login: "not-a-bot"})
	pr := promote(t, open(t, s), v2)
	if !strings.Contains(strings.Join(pr.Warnings, "\n"), "not signed") {
		t.Errorf("warnings %q", pr.Warnings)
	}
}

// What happens between the reading and the move.
func TestMoveOfABranchThatIsNotAsRead(t *testing.T) {
	type between func(*testing.T, *scmtest.Store) string
	push := func(t *testing.T, st *scmtest.Store) string {
		sha, err := st.Push(head, "mei", "A person", map[string]string{"README.md": "mine\n"})
		if err != nil {
			t.Error(err)
		}
		return sha
	}
	gone := func(t *testing.T, st *scmtest.Store) string {
		if err := st.DeleteBranch(head, ""); err != nil {
			t.Error(err)
		}
		return ""
	}
	for name, c := range map[string]struct {
		rest bool
		op   string
		do   between
	}{
		"pushed":                           {op: "GraphQL updateRefs", do: push},
		"deleted":                          {op: "GraphQL updateRefs", do: gone},
		"pushed, without GraphQL":          {rest: true, op: "GET git/ref/{ref}", do: push},
		"deleted, without GraphQL":         {rest: true, op: "GET git/ref/{ref}", do: gone},
		"deleted right before REST's move": {rest: true, op: "PATCH git/refs/{ref}", do: gone},
	} {
		t.Run(name, func(t *testing.T) {
			st := store(t)
			s := githubtest.New(t, st, githubtest.Options{NoGraphQL: c.rest})
			r := open(t, s)
			promote(t, r, v2)
			d := onBranch(t, st, r, v3)
			want := ""
			s.Before(c.op, func() { want = c.do(t, st) })
			_, err := r.Commit(t.Context(), d)
			wantError(t, err, scm.ErrMoved, "acme/config", head)
			if got, _ := st.Branch(head); got != want {
				t.Errorf("the branch is at %q, want %q", got, want)
			}
		})
	}
}

// The answer is lost, the work is done.
func TestLostAnswersAreReadAgain(t *testing.T) {
	for _, op := range []string{"POST git/refs", "GraphQL updateRefs", "PATCH git/refs/{ref}", "POST pulls"} {
		t.Run(op, func(t *testing.T) {
			st := store(t)
			s := githubtest.New(t, st, githubtest.Options{NoGraphQL: strings.HasPrefix(op, "PATCH")})
			r := open(t, s)
			if !strings.HasPrefix(op, "POST") {
				promote(t, r, v2)
			}
			s.Reset()
			s.Lose(op, githubtest.Answer{Status: http.StatusBadGateway, Body: "<html>bad gateway</html>"})
			pr := promote(t, r, v3)
			if got := tipOf(t, st, head); got != pr.HeadCommit {
				t.Errorf("the branch is at %s, the pull request at %s", got, pr.HeadCommit)
			}
			if n := len(st.Pulls(nil)); n != 1 {
				t.Errorf("%d pull requests", n)
			}
			sent := 0
			for _, o := range s.Ops() {
				if o == op {
					sent++
				}
			}
			if sent != 1 {
				t.Errorf("%s was sent %d times", op, sent)
			}
		})
	}
}

func TestRefusalsOfAMove(t *testing.T) {
	refused := func(text string) githubtest.Answer {
		return githubtest.Answer{Status: http.StatusOK, Errors: []any{map[string]any{"type": "UNPROCESSABLE", "message": text}}}
	}
	for name, c := range map[string]struct {
		answer githubtest.Answer
		kind   error
		words  string
	}{
		"rule set":    {refused("Repository rule violations found\n\nCommits must have verified signatures."), scm.ErrRefused, "verified signatures"},
		"stale":       {refused("Reference 'x' does not match beforeOid"), scm.ErrMoved, "does not match"},
		"denied":      {githubtest.Answer{Status: http.StatusOK, Errors: []any{map[string]any{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}}}, scm.ErrDenied, "not accessible"},
		"unavailable": {githubtest.Answer{Status: http.StatusBadGateway, Body: "<html>"}, scm.ErrUnavailable, "502"},
	} {
		t.Run(name, func(t *testing.T) {
			st := store(t)
			s := githubtest.New(t, st, githubtest.Options{})
			r := open(t, s)
			promote(t, r, v2)
			d := onBranch(t, st, r, v3)
			s.Fail("GraphQL updateRefs", 1, c.answer)
			_, err := r.Commit(t.Context(), d)
			wantError(t, err, c.kind, c.words, "acme/config", head)
			if got := tipOf(t, st, head); got != d.Expect {
				t.Errorf("the branch moved to %s", got)
			}
		})
	}
}

// An older GitHub Enterprise Server has GraphQL, but no updateRefs.
func TestUpdateRefsThatIsNotDefinedFallsBack(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{Enterprise: true})
	r := open(t, s)
	promote(t, r, v2)
	s.Fail("GraphQL updateRefs", 1, githubtest.Answer{Status: http.StatusOK, Errors: []any{map[string]any{
		"message": "Field 'updateRefs' doesn't exist on type 'Mutation'", "extensions": map[string]any{"code": "undefinedField"}}}})
	pr := promote(t, r, v3)
	if got := tipOf(t, st, head); got != pr.HeadCommit {
		t.Errorf("the branch is at %s, want %s", got, pr.HeadCommit)
	}
	if !strings.Contains(strings.Join(pr.Warnings, "\n"), "no GraphQL updateRefs") || !strings.Contains(strings.Join(r.About().Warnings, "\n"), "no GraphQL updateRefs") {
		t.Errorf("nothing says that there is no compare and swap: %q, %q", pr.Warnings, r.About().Warnings)
	}
}

func TestBranchThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		other string
		fail  *githubtest.Answer
		kind  error
		words string
	}{
		"a branch is its folder":    {other: "tagboat/staging", kind: scm.ErrRefused, words: "branch tagboat/staging is in its way"},
		"it is a branch's folder":   {other: head + "/v2", kind: scm.ErrRefused, words: "branch " + head + "/v2 is in its way"},
		"only a few words":          {fail: &githubtest.Answer{Status: 422, Message: "Reference update failed"}, kind: scm.ErrRefused, words: "rule set"},
		"a rule with nested errors": {fail: &githubtest.Answer{Status: 422, Message: "Repository rule violations found", Errors: []any{"Branch name must match a pattern."}}, kind: scm.ErrRefused, words: "must match a pattern"},
		"an App without the right":  {fail: &githubtest.Answer{Status: 403, Message: "Resource not accessible by integration", Header: map[string]string{"X-Accepted-GitHub-Permissions": "contents:write"}}, kind: scm.ErrDenied, words: "contents:write"},
		"a token without the right": {fail: &githubtest.Answer{Status: 404, Message: "Not Found"}, kind: scm.ErrDenied, words: "may not write to it"},
	} {
		t.Run(name, func(t *testing.T) {
			st := store(t)
			s := githubtest.New(t, st, githubtest.Options{})
			r := open(t, s)
			if c.other != "" {
				if _, err := st.Push(c.other, "mei", "In the way", map[string]string{"x": "x"}); err != nil {
					t.Fatal(err)
				}
			}
			if c.fail != nil {
				s.Fail("POST git/refs", 1, *c.fail)
			}
			_, err := r.Commit(t.Context(), draft(t, r, v2))
			wantError(t, err, c.kind, c.words, "acme/config", head)
			if _, ok := st.Branch(head); ok {
				t.Error("the branch is there")
			}
		})
	}
}

func TestNamesThatAreNotLawfulMakeNoCall(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{})
	r := open(t, s)
	d := draft(t, r, v2)
	s.Reset()
	for _, branch := range []string{"", "/x", "x/", "a//b", "a..b", "../../other", ".hidden/x", "x.lock", "a b", "a\nb", "a~1", "a:b", "a?b", "a[b"} {
		d.Branch = branch
		if _, err := r.Commit(t.Context(), d); err == nil {
			t.Errorf("a commit on branch %q went through", branch)
		}
		if branch == "" {
			continue
		}
		if _, err := r.Tip(t.Context(), branch); err == nil {
			t.Errorf("branch %q was read", branch)
		}
	}
	d.Branch = head
	for _, path := range []string{"", ".", "/etc/passwd", "../x", "a/../b", "a//b"} {
		d.Files = []scm.File{{Path: path, New: []byte("x")}}
		if _, err := r.Commit(t.Context(), d); err == nil {
			t.Errorf("file %q was written", path)
		}
	}
	if ops := s.Ops(); len(ops) > 0 {
		t.Errorf("calls were made: %v", ops)
	}
}

// What was read must be what is there: the blob's id is compared without a call
// when the directory has been listed.
func TestOldBytesAreCompared(t *testing.T) {
	st := store(t)
	if _, err := st.PushChanges("main", "mei", "Link", []scmtest.TreeChange{{Path: "link.yaml", Mode: "120000", Content: []byte("README.md")}}); err != nil {
		t.Fatal(err)
	}
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	for name, f := range map[string]scm.File{
		"other bytes":  {Path: overlay, Old: []byte(v2), New: []byte(v3)},
		"not there":    {Path: "nope.yaml", Old: []byte(v1), New: []byte(v2)},
		"there":        {Path: overlay, New: []byte(v2)},
		"a symlink":    {Path: "link.yaml", Old: []byte("README.md"), New: []byte("x")},
		"a directory":  {Path: "apps", Old: []byte("x"), New: []byte("x")},
		"no directory": {Path: "nope/nope.yaml", Old: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			d := draft(t, r, v2)
			d.Files = []scm.File{f}
			_, err := r.Commit(t.Context(), d)
			wantError(t, err, scm.ErrMoved, f.Path)
		})
	}
	if w := s.Writes(); len(w) > 0 {
		t.Errorf("written: %v", w)
	}
}

func TestSameFilesAreNoCommit(t *testing.T) {
	s := githubtest.New(t, store(t), githubtest.Options{})
	r := open(t, s)
	if _, err := r.Commit(t.Context(), draft(t, r, v1)); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff([]string{"POST git/trees"}, s.Writes()); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
}

// JSON cannot carry every byte: those files travel as blobs.
func TestFilesKeepTheirBytes(t *testing.T) {
	for name, content := range map[string]string{
		"text": "a: ü\r\n", "BOM": "\ufeffa: b", "Latin-1": "a: \xfc\n", "zero": "a\x00b", "empty": "", "HTML": "<a>&\u2028</a>", "replacement": "a\ufffdb",
	} {
		t.Run(name, func(t *testing.T) {
			st := store(t)
			s := githubtest.New(t, st, githubtest.Options{})
			r := open(t, s)
			c, err := r.Commit(t.Context(), draft(t, r, content))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := st.ReadFile(c.SHA, overlay)
			if err != nil || string(got) != content {
				t.Errorf("%q, %v; want %q", got, err, content)
			}
			read, err := fs.ReadFile(r.Files(t.Context(), c.SHA), overlay)
			if err != nil || string(read) != content {
				t.Errorf("read %q, %v; want %q", read, err, content)
			}
		})
	}
}
