package gitlab_test

import (
	"errors"
	"strings"
	"testing"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

func TestAutoMerge(t *testing.T) {
	cases := []struct {
		name string
		set  func(*gitlabtest.Server)
		want scm.State
		auto bool
	}{
		{"the pipeline is there", func(*gitlabtest.Server) {}, scm.Open, true},
		{"the pipeline appears late", func(s *gitlabtest.Server) { s.PipelineLooks, s.CheckingLooks = 3, 2 }, scm.Open, true},
		{"the pipeline must succeed", func(s *gitlabtest.Server) { s.RequirePipeline, s.PipelineLooks = true, 2 }, scm.Open, true},
		{"approval is needed", func(s *gitlabtest.Server) { s.RequireApproval = true }, scm.Open, true},
		{"no pipeline at all and none wanted", func(s *gitlabtest.Server) { s.PipelineLooks = -1 }, scm.Merged, false},
		{"405 at first", func(s *gitlabtest.Server) { s.Fail("acceptMergeRequest", 2, 405, "405 Method Not Allowed") }, scm.Open, true},
		{"422 at first", func(s *gitlabtest.Server) { s.Fail("acceptMergeRequest", 1, 422, "Branch cannot be merged") }, scm.Open, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) { c.set(s) })
			p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
			p.AutoMerge = true
			pr := w.propose(p)
			if pr.State != c.want || pr.AutoMerge != c.auto {
				t.Errorf("got %+v", pr)
			}
			for _, call := range w.fake.Calls() {
				if call.Op == "acceptMergeRequest" && call.Body["sha"] != p.HeadCommit {
					t.Errorf("not bound to %s: %v", p.HeadCommit, call.Body)
				}
			}
			if c.auto {
				if err := w.fake.FinishPipeline(pr.Number, "success"); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.pull(pr.Number); got.State != "merged" {
				t.Errorf("after the pipeline: %s", got.State)
			}
		})
	}
}

func TestAutoMergeRefused(t *testing.T) {
	cases := []struct {
		name string
		set  func(*world)
		kind error
		says string
	}{
		{"may not merge", func(w *world) { w.fake.CanMerge = false }, scm.ErrDenied, "allowed to merge"},
		{"no pipeline though one must succeed", func(w *world) { w.fake.RequirePipeline, w.fake.PipelineLooks = true, -1 },
			scm.ErrRefused, "ci_must_pass; a pipeline must succeed first, and it failed or was not made; no pipeline appeared"},
		{"conflict", func(w *world) { w.push("main", overlay, "theirs") }, scm.ErrRefused, "conflict"},
		{"draft", func(w *world) {
			w.fake.Before("getMergeRequest", func() {
				if _, err := w.store.EditPull(1, func(p *scmtest.Pull) error { p.Title, p.Draft = "Draft: x", true; return nil }); err != nil {
					w.t.Error(err)
				}
			})
		}, scm.ErrRefused, "draft_status; it is a draft"},
		{"head moved", func(w *world) { w.fake.Before("getMergeRequest", func() { w.push(head, "x", "1") }) }, scm.ErrMoved, "the head branch moved"},
		{"closed meanwhile", func(w *world) {
			w.fake.Before("getMergeRequest", func() {
				if err := w.store.ClosePullRequest(1, "mei"); err != nil {
					w.t.Error(err)
				}
			})
		}, scm.ErrMoved, "it is closed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
			c.set(w)
			p.AutoMerge = true
			pr, err := w.repo.Propose(t.Context(), p)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if pr.Number != 1 || pr.URL == "" || pr.AutoMerge {
				t.Errorf("the merge request is not beside the error: %+v", pr)
			}
			if got := w.pull(1); got.State == "merged" {
				t.Error("it was merged")
			}
		})
	}
}

// A second run finds it set and leaves it; a merge at our head meanwhile is what
// was wanted.
func TestAutoMergeIsThere(t *testing.T) {
	w, pr := opened(t)
	p := renewed(pr)
	p.Renewed, p.AutoMerge = false, true
	w.propose(p)
	w.propose(p)
	if n := w.fake.Count("acceptMergeRequest"); n != 1 {
		t.Errorf("set %d times", n)
	}
	w.fake.Before("getMergeRequest", func() {
		if err := w.fake.FinishPipeline(pr.Number, "success"); err != nil {
			t.Error(err)
		}
	})
	if _, err := w.repo.PullRequests(t.Context(), head, "main"); err != nil {
		t.Fatal(err)
	}
	if got := w.propose(p); got.State != scm.Merged {
		t.Errorf("got %+v", got)
	}
}

// GitLab before 15.6 has no detailed_merge_status.
func TestAutoMergeOfAnOldGitLab(t *testing.T) {
	for looks, want := range map[int]scm.State{0: scm.Open, -1: scm.Merged} {
		w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) {
			s.Before15, s.PipelineLooks, s.CheckingLooks = true, looks, 2
		})
		p := proposal(w.commit(w.draft(w.tip("main"), "v2")))
		p.AutoMerge = true
		if pr := w.propose(p); pr.State != want {
			t.Errorf("pipeline after %d looks: %+v", looks, pr)
		}
	}
}

// Auto-merge that was set for another digest is bound anew.
func TestAutoMergeRenewed(t *testing.T) {
	w, pr := opened(t)
	p := renewed(pr)
	p.AutoMerge = true
	w.propose(p)
	d := w.update("v3")
	p.HeadCommit = w.commit(d).SHA
	got := w.propose(p)
	if !got.AutoMerge || w.fake.Count("cancelAutoMerge") != 1 {
		t.Errorf("got %+v, %d cancelled", got, w.fake.Count("cancelAutoMerge"))
	}
}
