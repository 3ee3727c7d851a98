package gitlab_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

const head = "tagboat/staging/app"

// update drafts the next tag on a branch that is there.
func (w *world) update(tag string) scm.Draft {
	w.t.Helper()
	base, at := w.tip("main"), w.tip(head)
	d := w.draft(base, tag)
	old, err := fs.ReadFile(w.repo.Files(w.t.Context(), at.Commit.SHA), overlay)
	if err != nil {
		w.t.Fatal(err)
	}
	d.Expect = at.Commit.SHA
	d.OnHead = []scm.File{{Path: overlay, Old: old, New: d.Files[0].New}}
	return d
}

func (w *world) at(branch string) string {
	w.t.Helper()
	sha, ok := w.store.Branch(branch)
	if !ok {
		w.t.Fatalf("no branch %s", branch)
	}
	return sha
}

func (w *world) read(branch, path string) string {
	w.t.Helper()
	b, _, err := w.store.ReadFile(w.at(branch), path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) push(branch, path, content string) string {
	w.t.Helper()
	sha, err := w.store.Push(branch, "mei", "Mei's work", map[string]string{path: content})
	if err != nil {
		w.t.Fatal(err)
	}
	return sha
}

func TestUpdateAppends(t *testing.T) {
	w := start(t)
	first := w.commit(w.draft(w.tip("main"), "v2"))
	d := w.update("v3")
	second := w.commit(d)
	if diff := cmp.Diff([]string{first.SHA}, second.Parents); diff != "" {
		t.Error(diff)
	}
	if w.at(head) != second.SHA || !strings.Contains(w.read(head, overlay), "v3") {
		t.Errorf("branch at %s: %s", w.at(head), w.read(head, overlay))
	}
	last := w.fake.Calls()[len(w.fake.Calls())-1]
	action := last.Body["actions"].([]any)[0].(map[string]any)
	if last.Body["start_sha"] != nil || last.Body["force"] != nil || action["last_commit_id"] != first.SHA {
		t.Errorf("sent %v", last.Body)
	}
}

func TestRebuildStartsAtTheBase(t *testing.T) {
	w := start(t)
	w.commit(w.draft(w.tip("main"), "v2"))
	w.push("main", "base/other.txt", "y\n")
	d := w.update("v3")
	d.Rebuild = true
	c := w.commit(d)
	if diff := cmp.Diff([]string{w.at("main")}, c.Parents); diff != "" {
		t.Error(diff)
	}
	if w.at(head) != c.SHA || w.read(head, "base/other.txt") != "y\n" {
		t.Error("the branch is not base plus one commit")
	}
}

// The base is no default branch, and the file's last commit is not on the default
// branch: GitLab would compare last_commit_id with the wrong branch.
func TestNewBranchOfAnotherBase(t *testing.T) {
	w := start(t)
	w.push("release", overlay, "images:\n- name: app\n  newTag: v0\n")
	w.push("main", overlay, "images:\n- name: app\n  newTag: v1.1\n")
	c := w.commit(w.draft(w.tip("release"), "v2"))
	if diff := cmp.Diff([]string{w.at("release")}, c.Parents); diff != "" {
		t.Error(diff)
	}
}

func TestCommitOnTheBaseItself(t *testing.T) {
	w := start(t)
	d := w.draft(w.tip("main"), "v2")
	d.Branch, d.Expect = "main", d.From.Commit.SHA
	c := w.commit(d)
	if w.at("main") != c.SHA {
		t.Error("not on main")
	}
}

func TestActionsKeepModes(t *testing.T) {
	w := start(t)
	_, err := w.store.PushChanges("main", "mei", "Add", []scmtest.TreeChange{{Path: "run.sh", Mode: "100755", Content: []byte("a")}})
	if err != nil {
		t.Fatal(err)
	}
	d := w.draft(w.tip("main"), "v2")
	d.Files = append(d.Files,
		scm.File{Path: "run.sh", Old: []byte("a"), New: []byte("b")},
		scm.File{Path: "new.txt", New: []byte("n")},
		scm.File{Path: "empty.txt", New: []byte{}},
		scm.File{Path: "base/other.txt", Old: []byte("x\n")})
	c := w.commit(d)
	e, err := w.store.Entry(c.SHA, "run.sh")
	if err != nil || e.Mode != "100755" {
		t.Errorf("run.sh: %+v %v", e, err)
	}
	if w.read(head, "new.txt") != "n" || w.read(head, "empty.txt") != "" {
		t.Error("new files")
	}
	if _, err := w.store.Entry(c.SHA, "base/other.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted file: %v", err)
	}
}

// Each is what somebody does between our reading and the moment given; nothing
// may be lost, and the branch must be as they left it.
func TestCommitMoved(t *testing.T) {
	cases := []struct {
		name   string
		exists bool
		change func(w *world, d *scm.Draft)
		before func(w *world) // right before the commit is applied
	}{
		{name: "head moved", exists: true, change: func(w *world, _ *scm.Draft) { w.push(head, "base/other.txt", "theirs") }},
		{name: "head deleted", exists: true, change: func(w *world, _ *scm.Draft) {
			if err := w.store.DeleteBranch(head, ""); err != nil {
				w.t.Fatal(err)
			}
		}},
		{name: "head moved before a rebuild", exists: true, change: func(w *world, d *scm.Draft) {
			d.Rebuild = true
			w.push(head, "base/other.txt", "theirs")
		}},
		{name: "branch made meanwhile", change: func(w *world, _ *scm.Draft) { w.push(head, "base/other.txt", "theirs") }},
		{name: "branch made at that moment", before: func(w *world) { w.push(head, "base/other.txt", "theirs") }},
		{name: "file changed at that moment", exists: true, before: func(w *world) { w.push(head, overlay, "theirs") }},
		{name: "other bytes than at the commit", change: func(_ *world, d *scm.Draft) { d.Files[0].Old = []byte("stale") }},
		{name: "file not at the commit", change: func(_ *world, d *scm.Draft) { d.Files[0].Path = "overlays/none" }},
		{name: "new file is there", change: func(_ *world, d *scm.Draft) { d.Files[0].Old = nil }},
		{name: "base commit unknown", change: func(_ *world, d *scm.Draft) {
			d.Files[0].Old, d.Files[0].Path = nil, "n"
			d.From.Commit.SHA = strings.Repeat("ab", 20)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			d := w.draft(w.tip("main"), "v2")
			if c.exists {
				w.commit(d)
				d = w.update("v3")
			}
			if c.change != nil {
				c.change(w, &d)
			}
			var theirs string
			note := func() { theirs, _ = w.store.Branch(head) }
			note()
			if c.before != nil {
				w.fake.Before("createCommit", func() { c.before(w); note() })
			}
			got, err := w.repo.Commit(t.Context(), d)
			if !errors.Is(err, scm.ErrMoved) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if now, _ := w.store.Branch(head); now != theirs {
				t.Errorf("the branch is at %s, they left it at %s (%v)", now, theirs, err)
			}
		})
	}
}

// Another file was pushed at that moment: GitLab appends to whatever is there.
func TestCommitLandsOnTop(t *testing.T) {
	w := start(t)
	w.commit(w.draft(w.tip("main"), "v2"))
	d := w.update("v3")
	var theirs string
	w.fake.Before("createCommit", func() { theirs = w.push(head, "base/other.txt", "theirs") })
	c, err := w.repo.Commit(t.Context(), d)
	if !errors.Is(err, scm.ErrMoved) || !strings.Contains(err.Error(), "somebody pushed in between") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{theirs}, c.Parents); diff != "" || w.at(head) != c.SHA {
		t.Error(diff)
	}
	if w.read(head, "base/other.txt") != "theirs" || !strings.Contains(w.read(head, overlay), "v3") {
		t.Error("something was lost")
	}
}

// go-gitlab would send the POST again and get "already exists" or a second commit.
func TestLostAnswerIsNotSentAgain(t *testing.T) {
	cases := []struct {
		name            string
		exists, rebuild bool
	}{{"new branch", false, false}, {"append", true, false}, {"rebuild", true, true}}
	for _, c := range cases {
		for _, applied := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				w := start(t)
				d := w.draft(w.tip("main"), "v2")
				if c.exists {
					w.commit(d)
					w.push("main", "base/other.txt", "moved on")
					d = w.update("v3")
					d.Rebuild = c.rebuild
				}
				before, _ := w.store.Branch(head)
				w.fake.Forget()
				if applied {
					w.fake.FailAfter("createCommit", 502)
				} else {
					w.fake.Fail("createCommit", 1, 502, nil)
				}
				got, err := w.repo.Commit(t.Context(), d)
				now, _ := w.store.Branch(head)
				if n := w.fake.Count("createCommit"); n != 1 {
					t.Errorf("sent %d times", n)
				}
				if applied && (err != nil || got.SHA != now || now == before) {
					t.Errorf("applied: %v, %v, branch %s", got.SHA, err, now)
				}
				if !applied && (!errors.Is(err, scm.ErrUnavailable) || now != before || !strings.Contains(err.Error(), "was not made")) {
					t.Errorf("not applied: %v, %v", got.SHA, err)
				}
			})
		}
	}
}

func TestLostAnswerAndSomebodyElse(t *testing.T) {
	w := start(t)
	d := w.draft(w.tip("main"), "v2")
	w.fake.Before("createCommit", func() { w.push(head, "base/other.txt", "theirs") })
	w.fake.Fail("createCommit", 1, 502, nil)
	// Before takes the first call's turn, so that the refusal is the 400's; the
	// second attempt meets the 502.
	if _, err := w.repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) {
		t.Errorf("first: %v", err)
	}
	if _, err := w.repo.Commit(t.Context(), d); !errors.Is(err, scm.ErrMoved) || !strings.Contains(err.Error(), "which is not this commit") {
		t.Errorf("second: %v", err)
	}
}

func TestLostAnswerAndNoBranchToRead(t *testing.T) {
	w := start(t)
	d := w.draft(w.tip("main"), "v2")
	w.fake.FailAfter("createCommit", 504)
	w.fake.Fail("getBranch", 100, 503, nil)
	_, err := w.repo.Commit(t.Context(), d)
	if !errors.Is(err, scm.ErrUnavailable) || !strings.Contains(err.Error(), "is not known") {
		t.Errorf("got %v", err)
	}
}

func TestCommitRefusals(t *testing.T) {
	protect := func(s *gitlabtest.Server, _ *gitlab.Options) { s.Store.Protect("tagboat/*") }
	cases := []struct {
		name string
		set  func(*gitlabtest.Server, *gitlab.Options)
		kind error
		says []string
	}{
		{"protected pattern", protect, scm.ErrRefused, []string{"403", "protected branch pattern"}},
		{"protected pattern, older text", func(s *gitlabtest.Server, o *gitlab.Options) { protect(s, o); s.OldPushText = true },
			scm.ErrRefused, []string{"You are not allowed to push into this branch", "role is below Developer"}},
		{"branch name rule", func(s *gitlabtest.Server, _ *gitlab.Options) { s.BranchRule = "feature/" },
			scm.ErrRefused, []string{"does not follow the pattern 'feature/'", "push rule"}},
		{"message rule", func(s *gitlabtest.Server, _ *gitlab.Options) { s.MessageRule = "JIRA-" },
			scm.ErrRefused, []string{"Commit message does not follow the pattern 'JIRA-'"}},
		{"member rule", func(s *gitlabtest.Server, _ *gitlab.Options) {
			s.HookSays = "GitLab: Author 'project_4711_bot@noreply.gitlab.example' is not a member of team"
		}, scm.ErrRefused, []string{"is not a member of team", "e-mail"}},
		{"hook", func(s *gitlabtest.Server, _ *gitlab.Options) { s.HookSays = "GL-HOOK-ERR: no promotions on Friday" },
			scm.ErrRefused, []string{"GL-HOOK-ERR: no promotions on Friday", "server hook"}},
		{"scope", func(_ *gitlabtest.Server, o *gitlab.Options) { o.Token = gitlabtest.ReadToken },
			scm.ErrDenied, []string{"insufficient_scope", "scope api"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, c.set)
			_, err := w.repo.Commit(t.Context(), w.draft(w.tip("main"), "v2"))
			if !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
			for _, part := range append(c.says, "tagboat/staging/app", gitlabtest.Project) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if _, ok := w.store.Branch(head); ok {
				t.Error("the branch is there")
			}
		})
	}
}

// The texts that the fake does not come to by itself.
func TestCommitTexts(t *testing.T) {
	cases := []struct {
		text string
		kind error
	}{
		{"You are attempting to update a file `k.yaml` that has changed since you started editing it.", scm.ErrMoved},
		{"The file has changed since you started editing it: k.yaml", scm.ErrMoved},
		{"You can only create or edit files when you are on a branch", scm.ErrMoved},
		{"Your changes could not be committed because a file with the name `k.yaml` already exists.", scm.ErrMoved},
		{"File to be updated `k.yaml` does not exist.", scm.ErrMoved},
		{"Could not update refs/heads/x. Please refresh and try again.", scm.ErrMoved},
		{"Something went wrong when we tried to create 'x' for you: Branch name is invalid", scm.ErrRefused},
		{"what no version has said so far", scm.ErrRefused},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			w := start(t)
			d := w.draft(w.tip("main"), "v2")
			w.fake.Fail("createCommit", 1, 400, c.text)
			if _, err := w.repo.Commit(t.Context(), d); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
		})
	}
}

func TestCRLF(t *testing.T) {
	const old, changed = "images:\r\n- name: app\r\n  newTag: v1\r\n", "images:\r\n- name: app\r\n  newTag: v2\r\n"
	for _, turns := range []bool{false, true} {
		w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) { s.AutoCRLF = turns })
		w.push("main", overlay, old)
		d := w.draft(w.tip("main"), "v2")
		d.Files[0].New = []byte(changed)
		_, err := w.repo.Commit(t.Context(), d)
		_, exists := w.store.Branch(head)
		if !turns && (err != nil || w.read(head, overlay) != changed) {
			t.Errorf("kept: %v", err)
		}
		if turns && (!errors.Is(err, scm.ErrUnsupported) || exists || !strings.Contains(err.Error(), "CRLF")) {
			t.Errorf("turned: %v, branch there: %v", err, exists)
		}
	}
}

func TestUnlawfulBranchNames(t *testing.T) {
	w := start(t)
	d := w.draft(w.tip("main"), "v2")
	w.fake.Forget()
	for _, name := range []string{"", "a b", "a..b", "a\n", "-a", "a/", "a.lock", "a~1", "@{a"} {
		d.Branch = name
		if _, err := w.repo.Commit(t.Context(), d); err == nil || !strings.Contains(err.Error(), "no name for a branch") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := len(w.fake.Calls()); n != 0 {
		t.Errorf("%d calls", n)
	}
}
