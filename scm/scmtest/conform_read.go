package scmtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"tagboat/scm"
)

func readCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"about names the repository":                    aboutNames,
		"evidence and rights are what forges have":      evidenceThere,
		"tip of the default and of a named branch":      tipReads,
		"tip of a missing branch is not found":          tipMissing,
		"a cancelled context ends every call":           cancelled,
		"files pass TestFS":                             filesPassTestFS,
		"files tell symlinks and modes":                 filesModes,
		"files that are not there do not exist":         filesMissing,
		"files of a missing commit are no empty tree":   filesNoCommit,
		"files are those of the commit":                 filesPinned,
		"glob finds overlays":                           filesGlob,
		"log is newest first and follows a path":        logReads,
		"log of a page reads no more than it is asked":  logStops,
		"changes are against the merge base":            changesReads,
		"compare tells both sides":                      compareReads,
		"compare gives the newest of many":              compareMany,
		"changes tell both names of a rename":           changesRename,
		"changes after a merge of the base are its own": changesAfterUpdate,
	}
}

func aboutNames(s *suite) {
	a := s.Repo.About()
	if a.Forge == "" || a.Name == "" || a.URL == "" || a.PullRequestWord == "" || a.BodyLimit <= 0 || a.PullRequests != s.Can.PullRequests {
		s.t.Errorf("about: %+v", a)
	}
	if strings.Contains(a.URL, "@") && !strings.HasPrefix(a.URL, "ssh://") {
		s.t.Errorf("URL %q may hold a credential", a.URL)
	}
}

func tipReads(s *suite) {
	want := s.push(s.main, "a.txt", "a")
	for _, name := range []string{"", s.main} {
		tip := s.tip(name)
		info, _ := s.Person.Commit(want)
		if tip.Branch != s.main || tip.Commit.SHA != want || !tip.Commit.Time.Equal(info.Time) {
			s.t.Errorf("tip of %q: %+v, want %s of %s at %v", name, tip, want, s.main, info.Time)
		}
		s.diff("message", "Change a.txt", strings.TrimSpace(tip.Commit.Message))
	}
	side := s.push("team/side", "b.txt", "b")
	if tip := s.tip("team/side"); tip.Commit.SHA != side || tip.Protected {
		s.t.Errorf("tip of team/side: %+v, want %s", tip, side)
	}
}

func tipMissing(s *suite) {
	_, err := s.Repo.Tip(s.t.Context(), "no/such")
	s.wantErr(err, scm.ErrNotFound)
	if err != nil && !strings.Contains(err.Error(), "no/such") {
		s.t.Errorf("error %q does not name the branch", err)
	}
	s.push("team/side", "b.txt", "b")
	_, err = s.Repo.Tip(s.t.Context(), "team")
	s.wantErr(err, scm.ErrNotFound)
}

func cancelled(s *suite) {
	d := s.draft(kNew)
	ctx, cancel := context.WithCancel(s.t.Context())
	files := s.Repo.Files(ctx, d.From.Commit.SHA)
	cancel()
	_, tip := s.Repo.Tip(ctx, s.main)
	_, read := fs.ReadFile(files, kFile)
	_, changes := s.Repo.Changes(ctx, d.From.Commit.SHA, d.From.Commit.SHA)
	_, list := s.Repo.PullRequests(ctx, kHead, s.main)
	_, commit := s.Repo.Commit(ctx, d)
	for what, err := range map[string]error{"tip": tip, "read": read, "pull requests": list, "commit": commit} {
		if !errors.Is(err, context.Canceled) {
			s.t.Errorf("%s: %v, want context.Canceled", what, err)
		}
	}
	if changes != nil && !errors.Is(changes, context.Canceled) { // nothing to ask for
		s.t.Errorf("changes: %v, want context.Canceled", changes)
	}
	s.diff("the branch", "", s.branch(kHead))
}

func filesPassTestFS(s *suite) {
	files := s.Repo.Files(s.t.Context(), s.tip("").Commit.SHA)
	var want []string
	for _, c := range seed() {
		want = append(want, c.Path)
	}
	if err := fstest.TestFS(files, want...); err != nil {
		s.t.Error(err)
	}
	for _, c := range seed() {
		if c.Mode == "120000" {
			continue
		}
		s.diff(c.Path, string(c.Content), string(must(s, tried(fs.ReadFile(files, c.Path)))))
	}
}

func filesModes(s *suite) {
	files := s.Repo.Files(s.t.Context(), s.tip("").Commit.SHA)
	for path, want := range map[string]fs.FileMode{
		kFile: 0o644, kRun: 0o755, "current": fs.ModeSymlink | 0o777, "apps": fs.ModeDir | 0o755,
	} {
		info := must(s, tried(fs.Lstat(files, path)))
		if info.Mode() != want {
			s.t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
		}
	}
	s.diff("target", "apps/todo-api", must(s, tried(fs.ReadLink(files, "current"))))
	if b, err := fs.ReadFile(files, "current"); err == nil || errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("reading a symlink gave %q, %v: want an error that it is one", b, err)
	}
	sub := must(s, tried(fs.Sub(files, "apps/todo-api")))
	s.diff("below a sub tree", kOld, string(must(s, tried(fs.ReadFile(sub, "overlays/staging/kustomization.yaml")))))
}

func filesMissing(s *suite) {
	files := s.Repo.Files(s.t.Context(), s.tip("").Commit.SHA)
	for _, path := range []string{"nope", "nope/nope.yaml", "README.md/x", "apps/nope/kustomization.yaml", "current/overlays"} {
		if _, err := fs.ReadFile(files, path); !errors.Is(err, fs.ErrNotExist) {
			s.t.Errorf("read %s: %v, want fs.ErrNotExist", path, err)
		}
		if _, err := fs.Stat(files, path); !errors.Is(err, fs.ErrNotExist) {
			s.t.Errorf("stat %s: %v, want fs.ErrNotExist", path, err)
		}
	}
	if list, err := fs.ReadDir(files, "apps/nope"); !errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("list: %v %v, want fs.ErrNotExist", list, err)
	}
	if _, err := fs.ReadFile(files, "apps"); err == nil || errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("read a directory: %v, want another error than fs.ErrNotExist", err)
	}
}

func filesNoCommit(s *suite) {
	files := s.Repo.Files(s.t.Context(), "1234567890123456789012345678901234567890")
	if _, err := fs.ReadFile(files, kFile); err == nil || errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("read: %v, want an error that is not fs.ErrNotExist", err)
	}
	if list, err := fs.ReadDir(files, "."); err == nil || errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("list: %v, %v, want an error that is not fs.ErrNotExist", list, err)
	}
}

func filesPinned(s *suite) {
	before := s.tip("").Commit.SHA
	s.push(s.main, kFile, kNew)
	s.diff("before", kOld, string(must(s, tried(fs.ReadFile(s.Repo.Files(s.t.Context(), before), kFile)))))
	after := s.tip("").Commit.SHA
	s.diff("after", kNew, string(must(s, tried(fs.ReadFile(s.Repo.Files(s.t.Context(), after), kFile)))))
}

func filesGlob(s *suite) {
	files := s.Repo.Files(s.t.Context(), s.tip("").Commit.SHA)
	got := must(s, tried(fs.Glob(files, "apps/*/overlays/*/kustomization.yaml")))
	s.diff("glob", []string{"apps/todo-api/overlays/production/kustomization.yaml", kFile}, got)
}

func (s *suite) log(commit, path string, most int) (shas []string) {
	s.t.Helper()
	for c, err := range s.Repo.Log(s.t.Context(), commit, path) {
		if err != nil {
			s.t.Fatal(err)
		}
		if shas = append(shas, c.SHA); len(shas) == most {
			break
		}
	}
	return shas
}

func logReads(s *suite) {
	start := s.tip("").Commit.SHA
	one := s.push(s.main, kFile, kNew)
	two := s.push(s.main, "other.txt", "x")
	three := s.push(s.main, kFile, kOld)
	s.diff("all", []string{three, two, one, start}, s.log(three, "", 4))
	s.diff("of a file", []string{three, one, start}, s.log(three, kFile, 0))
	s.diff("of a directory", []string{three, one, start}, s.log(three, "apps/todo-api", 0))
	s.diff("of nothing", []string(nil), s.log(three, "nope.txt", 0))
	for c, err := range s.Repo.Log(s.t.Context(), three, "") {
		if err != nil {
			s.t.Fatal(err)
		}
		s.diff("parents", []string{two}, c.Parents)
		break
	}
	for _, err := range s.Repo.Log(s.t.Context(), "1234567890123456789012345678901234567890", "") {
		if err == nil {
			s.t.Error("a commit that is not there has a log")
		}
	}
}

func logStops(s *suite) {
	last := ""
	for i := range 5 {
		last = s.push(s.main, "n.txt", strings.Repeat("x", i+1))
	}
	s.diff("two of them", 2, len(s.log(last, "n.txt", 2)))
}

func (s *suite) changes(base, head string) scm.Changes {
	s.t.Helper()
	return must(s, tried(s.Repo.Changes(s.t.Context(), base, head)))
}

func commitSHAs(list []scm.Commit) (shas []string) {
	for _, c := range list {
		shas = append(shas, c.SHA)
	}
	return shas
}

func changesReads(s *suite) {
	base := s.tip("").Commit.SHA
	one := s.push("side", kFile, kNew)
	two := s.push("side", "new.txt", "x")
	main := s.push(s.main, "README.md", "moved on")
	c := s.changes(main, two)
	s.diff("merge base", base, c.MergeBase)
	s.diff("paths", []string{kFile, "new.txt"}, slices.Sorted(slices.Values(c.Paths)))
	s.diff("commits", []string{two, one}, commitSHAs(c.Commits))
	c = s.changes(main, base)
	if c.MergeBase != base || len(c.Paths) != 0 || len(c.Commits) != 0 {
		s.t.Errorf("changes of what is in the base: %+v", c)
	}
}

func (s *suite) compare(base, head string) scm.Comparison {
	s.t.Helper()
	return must(s, tried(s.Repo.Compare(s.t.Context(), base, head)))
}

func (s *suite) span(what string, got scm.Span, want ...string) {
	s.t.Helper()
	s.diff(what, want, commitSHAs(got.Commits))
	if got.Count != len(want) || got.AtLeast {
		s.t.Errorf("%s: %d commits (more: %v), want %d", what, got.Count, got.AtLeast, len(want))
	}
}

func compareReads(s *suite) {
	base := s.tip("").Commit.SHA
	one := s.push("side", kFile, kNew)
	two := s.push("side", "new.txt", "x")
	c := s.compare(base, two)
	s.span("what comes", c.Ahead, two, one)
	s.span("what goes", c.Behind)
	c = s.compare(two, base)
	s.span("back: what comes", c.Ahead)
	s.span("back: what goes", c.Behind, two, one)
	main := s.push(s.main, "README.md", "moved on")
	c = s.compare(main, two)
	s.span("diverged: what comes", c.Ahead, two, one)
	s.span("diverged: what goes", c.Behind, main)
	merge := must(s, tried(s.Person.MergeBranch("side", s.main)))
	c = s.compare(main, merge)
	s.diff("the merge is among them, first", merge, c.Ahead.Commits[0].SHA)
	s.diff("its parents", 2, len(c.Ahead.Commits[0].Parents))
	for _, sides := range [][2]string{{one, "1234567890123456789012345678901234567890"}, {"1234567890123456789012345678901234567890", one}} {
		_, err := s.Repo.Compare(s.t.Context(), sides[0], sides[1])
		s.wantErr(err, scm.ErrNotFound)
	}
}

// compareMany is more than two pages of GitHub, and ends in the middle of one.
func compareMany(s *suite) {
	base := s.tip("").Commit.SHA
	const many = 230
	var shas []string
	for i := range many {
		shas = append(shas, s.push("side", "n.txt", fmt.Sprint(i)))
	}
	slices.Reverse(shas)
	for what, span := range map[string]scm.Span{"ahead": s.compare(base, shas[0]).Ahead, "behind": s.compare(shas[0], base).Behind} {
		if n := len(span.Commits); n < 20 || n > scm.ComparedCommits || span.Count != many || span.AtLeast {
			s.t.Errorf("%s: %d commits of %d (more: %v), want 20 to %d of %d", what, n, span.Count, span.AtLeast, scm.ComparedCommits, many)
		}
		s.diff(what, shas[:len(span.Commits)], commitSHAs(span.Commits))
	}
}

func changesRename(s *suite) {
	base := s.tip("").Commit.SHA
	head := must(s, tried(s.Person.PushChanges("side", "mei", "Rename", []TreeChange{
		{Path: "README.md", Delete: true}, {Path: "READ.md", Content: []byte("# config\n")},
	})))
	s.diff("paths", []string{"READ.md", "README.md"}, slices.Sorted(slices.Values(s.changes(base, head).Paths)))
}

func changesAfterUpdate(s *suite) {
	one := s.push("side", kFile, kNew)
	main := s.push(s.main, "README.md", "moved on")
	merge := must(s, tried(s.Person.MergeBranch(s.main, "side")))
	c := s.changes(main, merge)
	s.diff("merge base", main, c.MergeBase)
	s.diff("paths", []string{kFile}, c.Paths)
	s.diff("commits", []string{merge, one}, commitSHAs(c.Commits))
	if n := len(c.Commits); n > 0 && len(c.Commits[0].Parents) != 2 {
		s.t.Errorf("the merge has parents %v", c.Commits[0].Parents)
	}
	if now := s.tip("side").Commit.Time; now.After(time.Now().Add(24 * time.Hour)) {
		s.t.Errorf("time %v", now)
	}
}
