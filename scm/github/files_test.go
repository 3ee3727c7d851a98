package github_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

// Names that another URL, or go-github's own check, would spoil.
func TestFilesOfAnyName(t *testing.T) {
	names := []string{
		"apps/a..b/k.yaml", "apps/..x/k.yaml", "apps/a b/k#1?.yaml", "apps/100%/k%2Fx.yaml", "apps/a:b/k.yaml", "apps/ü/k+k&k.yaml", "apps/a;b/k=k.yaml",
	}
	files := map[string]string{}
	for _, n := range names {
		files[n] = "# " + n + "\n"
	}
	st := scmtest.NewStore("main", files)
	at := tipOf(t, st, "main")
	for mode, opts := range map[string]githubtest.Options{"by path": {}, "by walking": {NoTreePaths: true}} {
		r := open(t, githubtest.New(t, st, opts))
		for _, n := range names {
			got, err := fs.ReadFile(r.Files(t.Context(), at), n)
			if err != nil || string(got) != files[n] {
				t.Errorf("%s: %s is %q, %v", mode, n, got, err)
			}
			if log, err := first(r.Log(t.Context(), at, n)); err != nil || log.SHA != at {
				t.Errorf("%s: log of %s: %+v, %v", mode, n, log, err)
			}
		}
	}
}

func first(log func(func(scm.Commit, error) bool)) (c scm.Commit, err error) {
	for c, err = range log {
		break
	}
	return c, err
}

func TestFilesThatTheContentsAPIDoesNotBring(t *testing.T) {
	big := strings.Repeat("0123456789abcde\n", 70_000)
	st := store(t)
	if _, err := st.PushChanges("main", "mei", "Odd ones", []scmtest.TreeChange{
		{Path: "odd/big.yaml", Content: []byte(big)},
		{Path: "odd/link.yaml", Mode: "120000", Content: []byte("../README.md")},
		{Path: "odd/away.yaml", Mode: "120000", Content: []byte("../../etc/passwd")},
		{Path: "odd/module", Mode: "160000", SHA: strings.Repeat("1", 40)},
		{Path: "odd/empty.yaml", Content: []byte{}},
	}); err != nil {
		t.Fatal(err)
	}
	at := tipOf(t, st, "main")
	s := githubtest.New(t, st, githubtest.Options{})
	for name, c := range map[string]struct {
		path, content, refusal string
	}{
		"over 1 MB":             {path: "odd/big.yaml", content: big},
		"empty":                 {path: "odd/empty.yaml"},
		"a symlink to a file":   {path: "odd/link.yaml", refusal: "symlink"},
		"a symlink to nowhere":  {path: "odd/away.yaml", refusal: "symlink"},
		"a submodule":           {path: "odd/module", refusal: "submodule"},
		"below a symlink":       {path: "odd/link.yaml/x", refusal: "not exist"},
		"a directory":           {path: "odd", refusal: "directory"},
		"a file's directory":    {path: "README.md/x", refusal: "not exist"},
		"a directory of nobody": {path: "nope/nope/x", refusal: "not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fs.ReadFile(open(t, s).Files(t.Context(), at), c.path)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("error %v, want one that says %q", err, c.refusal)
				}
				return
			}
			if err != nil || !bytes.Equal(got, []byte(c.content)) {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(c.content))
			}
		})
	}
	files := open(t, s).Files(t.Context(), at)
	if _, err := fs.ReadFile(files, "odd/link.yaml"); err == nil {
		t.Error("a symlink was read")
	}
	if target, err := fs.ReadLink(files, "odd/link.yaml"); err != nil || target != "../README.md" {
		t.Errorf("after an attempt to read it, a link to %q, %v", target, err)
	}
	if target, err := fs.ReadLink(open(t, s).Files(t.Context(), at), "odd/link.yaml"); err != nil || target != "../README.md" {
		t.Errorf("link to %q, %v", target, err)
	}
}

// A failure is never "not there", and is forgotten.
func TestFailedReadingIsNoMissingFile(t *testing.T) {
	for name, c := range map[string]struct {
		answer githubtest.Answer
		tries  int
		kind   error
	}{
		"denied":      {githubtest.Answer{Status: 403, Message: "Resource not accessible by integration"}, 1, scm.ErrDenied},
		"unavailable": {githubtest.Answer{Status: 500, Message: "Server Error"}, 6, scm.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			st := store(t)
			s := githubtest.New(t, st, githubtest.Options{})
			r := open(t, s)
			at := tipOf(t, st, "main")
			s.Fail("GET git/trees/{tree_sha}", c.tries, c.answer)
			_, err := fs.ReadFile(r.Files(t.Context(), at), overlay)
			wantError(t, err, c.kind, overlay)
			if errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v reads as if the file were not there", err)
			}
			if _, err = fs.ReadFile(r.Files(t.Context(), at), overlay); err != nil {
				t.Errorf("the next reading: %v", err)
			}
		})
	}
}

func TestTruncatedListingIsAnError(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{Truncate: 1})
	files := open(t, s).Files(t.Context(), tipOf(t, st, "main"))
	if _, err := fs.Stat(files, "nope.yaml"); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "does not show all") {
		t.Errorf("error %v", err)
	}
}

// A proxy that answers other bytes than the blob's is found out.
func TestBytesThatAreNotTheBlobs(t *testing.T) {
	st := store(t)
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	files := r.Files(t.Context(), tipOf(t, st, "main"))
	if _, err := fs.ReadDir(files, "."); err != nil {
		t.Fatal(err)
	}
	s.Fail("GET git/blobs/{file_sha}", 1, githubtest.Answer{Status: 200, JSON: map[string]any{
		"sha": strings.Repeat("1", 40), "node_id": "x", "size": 1, "url": "https://x.example/", "content": "eA==", "encoding": "base64"}})
	_, err := fs.ReadFile(files, "README.md")
	wantError(t, err, scm.ErrUnavailable, "README.md", "not those of blob")
}

func TestChangesOfManyFilesAndCommits(t *testing.T) {
	st := store(t)
	base := tipOf(t, st, "main")
	var files []scmtest.TreeChange
	var want []string
	for i := range 320 {
		p := fmt.Sprintf("apps/app-%03d/k.yaml", i)
		files = append(files, scmtest.TreeChange{Path: p, Content: []byte(p)})
		want = append(want, p)
	}
	files = append(files, scmtest.TreeChange{Path: "README.md", Delete: true}, scmtest.TreeChange{Path: "README.md/x", Content: []byte("x")})
	want = append([]string{"README.md", "README.md/x"}, want...)
	if _, err := st.PushChanges("side", "mei", "Many", files); err != nil {
		t.Fatal(err)
	}
	for i := range 204 {
		if _, err := st.Push("side", "mei", "More", map[string]string{"apps/app-000/k.yaml": fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	head := tipOf(t, st, "side")
	r := open(t, githubtest.New(t, st, githubtest.Options{}))
	c, err := r.Changes(t.Context(), base, head)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, c.Paths); d != "" {
		t.Errorf("paths (-want +got):\n%s", d)
	}
	log, err := st.Between(base, head)
	if err != nil {
		t.Fatal(err)
	}
	var shas, got []string
	for _, x := range log {
		shas = append(shas, x.SHA)
	}
	for _, x := range c.Commits {
		got = append(got, x.SHA)
	}
	if d := cmp.Diff(shas, got); d != "" {
		t.Errorf("commits (-want +got):\n%s", d)
	}
}

// Pages of a log are asked for as they are consumed.
func TestLogIsLazy(t *testing.T) {
	st := store(t)
	for i := range 130 {
		if _, err := st.Push("main", "mei", "More", map[string]string{"n.txt": fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	s := githubtest.New(t, st, githubtest.Options{})
	r := open(t, s)
	for _, want := range []struct{ commits, calls int }{{1, 1}, {100, 1}, {101, 2}, {1000, 2}} {
		s.Reset()
		n := 0
		for _, err := range r.Log(t.Context(), tipOf(t, st, "main"), "") {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == want.commits {
				break
			}
		}
		if got := len(s.Calls()); got != want.calls || n != min(want.commits, 131) {
			t.Errorf("%d commits took %d calls, want %d by %d", n, got, want.commits, want.calls)
		}
	}
}

// An unrelated history has no merge base.
func TestChangesWithoutACommonAncestor(t *testing.T) {
	st := store(t)
	tree, err := st.WriteTree("", []scmtest.TreeChange{{Path: "x", Content: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	lone, err := st.WriteCommit(tree, nil, "Alone", "mei", st.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, err = open(t, githubtest.New(t, st, githubtest.Options{})).Changes(t.Context(), tipOf(t, st, "main"), lone)
	wantError(t, err, scm.ErrNotFound, "No common ancestor")
}
