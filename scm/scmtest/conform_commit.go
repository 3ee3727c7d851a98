package scmtest

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"tagboat/scm"
)

func commitCases() map[string]func(*suite) {
	return map[string]func(*suite){
		"commit makes a branch":                                         commitNew,
		"commit adds, changes and deletes":                              commitAllKinds,
		"commit keeps a file's mode":                                    commitMode,
		"commit updates a branch":                                       commitUpdate,
		"commit rebuilds a branch when asked":                           commitRebuild,
		"commit on a branch that moved keeps the person's commit":       commitStale,
		"commit on a branch whose file moved keeps the person's commit": commitStaleFile,
		"commit for a branch that somebody made is moved":               commitExists,
		"commit on a branch that was deleted is moved":                  commitGone,
		"commit on a base that moved never has an unread parent":        commitBaseMoved,
		"commit on a base whose file moved writes nothing unread":       commitBaseFileMoved,
		"commit below another branch is refused":                        commitNameConflict,
		"commit on a protected branch is refused":                       commitProtected,
		"commits at once: one wins":                                     commitRace,
	}
}

// draft moves kFile from kOld to content, on the default branch as it is.
func (s *suite) draft(content string) scm.Draft {
	s.t.Helper()
	return scm.Draft{
		Branch: kHead, From: s.tip(""), Message: "Promote todo-api\n\nTagboat-App: todo-api\n",
		Files: []scm.File{{Path: kFile, Old: []byte(kOld), New: []byte(content)}},
	}
}

// onHead makes a draft an update of the head branch, whose file holds old.
func onHead(d scm.Draft, expect, old string) scm.Draft {
	d.Expect = expect
	d.OnHead = []scm.File{{Path: kFile, Old: []byte(old), New: d.Files[0].New}}
	return d
}

func (s *suite) commit(d scm.Draft) scm.Commit {
	s.t.Helper()
	c := must(s, tried(s.Repo.Commit(s.t.Context(), d)))
	if at := s.branch(d.Branch); at != c.SHA {
		s.t.Fatalf("commit says %s, branch %s is at %s", c.SHA, d.Branch, at)
	}
	return c
}

func (s *suite) at(sha, path string) string {
	s.t.Helper()
	b, _, err := s.Person.ReadFile(sha, path)
	if err != nil {
		s.t.Errorf("read %s at %s: %v", path, sha, err)
	}
	return string(b)
}

func commitNew(s *suite) {
	d := s.draft(kNew)
	c := s.commit(d)
	info, _ := s.Person.Commit(c.SHA)
	s.diff("parents", []string{d.From.Commit.SHA}, info.Parents)
	s.diff("told parents", info.Parents, c.Parents)
	s.diff("message", strings.TrimSpace(d.Message), strings.TrimSpace(info.Message))
	s.diff("file", kNew, s.at(c.SHA, kFile))
	s.diff("another file", "# config\n", s.at(c.SHA, "README.md"))
	s.diff("paths", []string{kFile}, s.changes(d.From.Commit.SHA, c.SHA).Paths)
	s.diff("the base branch", d.From.Commit.SHA, s.branch(s.main))
}

func commitAllKinds(s *suite) {
	d := s.draft(kNew)
	d.Files = append(d.Files,
		scm.File{Path: "apps/todo-api/overlays/new/kustomization.yaml", New: []byte("resources: []\n")},
		scm.File{Path: "README.md", Old: []byte("# config\n")},
		scm.File{Path: "apps/todo-api/overlays/staging/ünï cödé+.yaml", Old: []byte("a: ü\n"), New: []byte("a: \x00\xff\r\n")})
	c := s.commit(d)
	s.diff("a new file", "resources: []\n", s.at(c.SHA, "apps/todo-api/overlays/new/kustomization.yaml"))
	s.diff("bytes", "a: \x00\xff\r\n", s.at(c.SHA, "apps/todo-api/overlays/staging/ünï cödé+.yaml"))
	if _, _, err := s.Person.ReadFile(c.SHA, "README.md"); !errors.Is(err, fs.ErrNotExist) {
		s.t.Errorf("the deleted file: %v", err)
	}
	info, _ := s.Person.Commit(c.SHA)
	s.diff("one commit", []string{d.From.Commit.SHA}, info.Parents)
}

func commitMode(s *suite) {
	d := s.draft(kNew)
	d.Files = []scm.File{{Path: kRun, Old: []byte("#!/bin/sh\n"), New: []byte("#!/bin/sh\nexit\n")}}
	c := s.commit(d)
	content, mode, err := s.Person.ReadFile(c.SHA, kRun)
	if err != nil || mode != "100755" || string(content) != "#!/bin/sh\nexit\n" {
		s.t.Errorf("%q, mode %s, %v; want 100755", content, mode, err)
	}
}

func commitUpdate(s *suite) {
	first := s.commit(s.draft(kNew))
	main := s.push(s.main, "README.md", "moved on")
	d := onHead(s.draft("v3\n"), first.SHA, kNew)
	second := s.commit(d)
	s.diff("file", "v3\n", s.at(second.SHA, kFile))
	s.diff("paths", []string{kFile}, s.changes(main, second.SHA).Paths)
	want := []string{first.SHA}
	if s.Can.Rebuild {
		want = []string{main}
	}
	info, _ := s.Person.Commit(second.SHA)
	s.diff("parents", want, info.Parents)
}

func commitRebuild(s *suite) {
	first := s.commit(s.draft(kNew))
	main := s.push(s.main, kFile, "v2 on main\n")
	d := s.draft("v3\n")
	d.Files[0].Old = []byte("v2 on main\n")
	d = onHead(d, first.SHA, kNew)
	d.Rebuild = true
	c, err := s.Repo.Commit(s.t.Context(), d)
	if errors.Is(err, scm.ErrUnsupported) {
		s.diff("the branch", first.SHA, s.branch(kHead))
		s.t.Skip(err)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	info, _ := s.Person.Commit(c.SHA)
	s.diff("parents", []string{main}, info.Parents)
	s.diff("file", "v3\n", s.at(s.branch(kHead), kFile))
}

// refusedAs commits and demands an error and the branch as it was ("": none).
func (s *suite) refusedAs(d scm.Draft, want error, branchAt string) {
	s.t.Helper()
	c, err := s.Repo.Commit(s.t.Context(), d)
	if err == nil {
		s.t.Errorf("commit went through: %+v", c)
	}
	s.wantErr(err, want)
	s.diff("branch "+d.Branch, branchAt, s.branch(d.Branch))
}

func commitStale(s *suite) {
	s.need(s.Can.CompareAndSwap, "compare and swap of a branch")
	first := s.commit(s.draft(kNew))
	person := s.push(kHead, "README.md", "a person was here")
	s.refusedAs(onHead(s.draft("v3\n"), first.SHA, kNew), scm.ErrMoved, person)
	d := onHead(s.draft("v3\n"), first.SHA, kNew)
	d.Rebuild = true
	s.refusedAs(d, scm.ErrMoved, person)
}

func commitStaleFile(s *suite) {
	first := s.commit(s.draft(kNew))
	person := s.push(kHead, kFile, "a person was here")
	s.refusedAs(onHead(s.draft("v3\n"), first.SHA, kNew), scm.ErrMoved, person)
}

func commitExists(s *suite) {
	d := s.draft(kNew)
	person := s.push(kHead, "README.md", "a person was here")
	s.refusedAs(d, scm.ErrMoved, person)
}

func commitGone(s *suite) {
	first := s.commit(s.draft(kNew))
	if err := s.Person.DeleteBranch(kHead, ""); err != nil {
		s.t.Fatal(err)
	}
	s.refusedAs(onHead(s.draft("v3\n"), first.SHA, kNew), scm.ErrMoved, "")
}

func commitBaseMoved(s *suite) {
	d := s.draft(kNew)
	main := s.push(s.main, "README.md", "moved on")
	c, err := s.Repo.Commit(s.t.Context(), d)
	if err != nil {
		s.wantErr(err, scm.ErrMoved)
		s.diff("the branch", "", s.branch(kHead))
		return
	}
	info, _ := s.Person.Commit(c.SHA)
	s.diff("told parents", info.Parents, c.Parents)
	if !slices.Equal(info.Parents, []string{d.From.Commit.SHA}) && !slices.Equal(info.Parents, []string{main}) {
		s.t.Errorf("parents %v", info.Parents)
	}
}

func commitBaseFileMoved(s *suite) {
	d := s.draft(kNew)
	s.push(s.main, kFile, "a person was here")
	c, err := s.Repo.Commit(s.t.Context(), d)
	if err != nil {
		s.wantErr(err, scm.ErrMoved)
		s.diff("the branch", "", s.branch(kHead))
		return
	}
	info, _ := s.Person.Commit(c.SHA)
	s.diff("parents", []string{d.From.Commit.SHA}, info.Parents)
}

func commitNameConflict(s *suite) {
	s.push("tagboat/staging", "README.md", "in the way")
	d := s.draft(kNew)
	c, err := s.Repo.Commit(s.t.Context(), d)
	if err == nil || errors.Is(err, scm.ErrMoved) {
		s.t.Errorf("commit below another branch: %+v, %v; want an error that no retry mends", c, err)
	}
	s.diff("the branch", "", s.branch(kHead))
}

func commitProtected(s *suite) {
	s.need(s.Can.Protection, "protected branches")
	s.Person.Protect("tagboat/*")
	s.refusedAs(s.draft(kNew), scm.ErrRefused, "")
}

func commitRace(s *suite) {
	s.need(s.Can.CompareAndSwap, "compare and swap of a branch")
	first := s.commit(s.draft(kNew))
	const hands = 6
	var wg sync.WaitGroup
	errs := make([]error, hands)
	for i := range hands {
		d := onHead(s.draft("v3 by "+string(rune('a'+i))+"\n"), first.SHA, kNew)
		wg.Go(func() { _, errs[i] = s.Repo.Commit(s.t.Context(), d) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		s.wantErr(err, scm.ErrMoved)
	}
	s.diff("commits that went through", 1, won)
}
