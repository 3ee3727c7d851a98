package promote_test

import (
	"context"
	"strings"
	"testing"

	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
)

const directStaging = "- {name: staging, path: overlays/staging, merge: direct}\n"

func (w *world) direct(images string, options ...option) promote.Result {
	w.Helper()
	results, errs := w.ask(promote.Environments{To: []string{"staging"}}, images, options...)
	if errs[0] != nil {
		w.Fatalf("%s: %v", images, errs[0])
	}
	return results[0]
}

// TestDirect: a commit on the base branch, without a pull request, and a person's no
// to it.
func TestDirect(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, forge)
			w.govern(directStaging)
			before := w.tip("main")
			v2 := w.v(2)
			res := w.direct("todo-api:v2", dryRun)
			if res.Outcome != promote.Planned || !strings.Contains(res.Reason, "would commit to main") || w.tip("main") != before {
				t.Errorf("dry run: %s %s", res.Outcome, res.Reason)
			}
			res = w.direct("todo-api:v2")
			if res.Outcome != promote.Committed || res.Commit == nil || res.Commit.SHA != w.tip("main") || res.PullRequest != nil || res.HeadBranch != "main" {
				t.Fatalf("%s: %+v", res.Outcome, res)
			}
			trailers, ours := record.ParseTrailers(w.messageAt("main"))
			if !ours || trailers.App != "todo-api" || !strings.Contains(w.at("main"), v2) {
				t.Errorf("%s\n%s", w.messageAt("main"), w.at("main"))
			}
			if names := strings.Join(w.store.Branches(), " "); names != "main" {
				t.Errorf("branches %s", names)
			}
			if res = w.direct("todo-api:v2"); res.Outcome != promote.UpToDate {
				t.Errorf("again: %s", res.Outcome)
			}
			w.must(w.store.Revert("main", w.tip("main")))
			if res = w.direct("todo-api:v2"); res.Outcome != promote.Declined || !strings.Contains(res.Reason, "a-person took it back") {
				t.Errorf("taken back: %s (%s)", res.Outcome, res.Reason)
			}
			w.v(3)
			if res = w.direct("todo-api:v3"); res.Outcome != promote.Committed {
				t.Errorf("another digest: %s (%s)", res.Outcome, res.Reason)
			}
			if res = w.direct("todo-api:v2", allowOlder, again); res.Outcome != promote.Committed {
				t.Errorf("again: %s (%s)", res.Outcome, res.Reason)
			}
		})
	}
}

// pushes has a person push to main between a run's reading and its commit, the first
// times.
type pushes struct {
	scm.Repository
	w     *world
	times int
	edit  func(n int)
}

func (p *pushes) Commit(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	if p.times > 0 {
		p.edit(p.times)
		p.times--
	}
	return p.Repository.Commit(ctx, d)
}

// TestDirectRace: what somebody pushes meanwhile is kept, in the same file too.
func TestDirectRace(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, forge)
			w.govern(directStaging)
			v2 := w.v(2)
			w.repo = &pushes{w.repo, w, 3, func(n int) {
				w.replace("main", file, "\nresources", ", edited\nresources")
				w.must(w.store.Push("main", "mei", "Elsewhere", map[string]string{"README.md": strings.Repeat("new\n", n)}))
			}}
			res := w.direct("todo-api:v2")
			got := w.at("main")
			if res.Outcome != promote.Committed || !strings.Contains(got, v2) || strings.Count(got, ", edited") != 3 || w.fileAt("main", "README.md") != "new\n" {
				t.Errorf("%s:\n%s", res.Outcome, got)
			}
		})
	}
}

// TestDirectNeverEnds: a branch that moves at every attempt is left with an error.
func TestDirectNeverEnds(t *testing.T) {
	w := newWorld(t, forges()["gitea"])
	w.govern(directStaging)
	v2 := w.v(2)
	w.repo = &pushes{w.repo, w, 100, func(int) { w.replace("main", file, "\nresources", ", edited\nresources") }}
	results, errs := w.ask(promote.Environments{To: []string{"staging"}}, "todo-api:v2")
	if errs[0] == nil || !strings.Contains(errs[0].Error(), promote.ErrContended.Error()) || results[0].Outcome != promote.Failed {
		t.Errorf("%s, %v", results[0].Outcome, errs[0])
	}
	if strings.Contains(w.at("main"), v2) {
		t.Error("it is committed nevertheless")
	}
}

// TestDirectBlocked: gates and holds stop a direct commit too.
func TestDirectBlocked(t *testing.T) {
	w := newTeam(t, forges()["gitea"], "merge: direct", "gates: {soak: 24h}", "overriders: [user:mei]")
	w.setTo(file, "v2")
	w.wantLeft(func() { w.wantOnward(promote.Blocked, "soak pending") })
	res := w.wantOnward(promote.Committed, "soak overridden", as("mei"), override("now"))
	trailers, _ := record.ParseTrailers(w.messageAt("main"))
	if trailers.Override != "now" || trailers.OverriddenBy != "mei" || res.Override != "now" {
		t.Errorf("commit:\n%s", w.messageAt("main"))
	}
}

// late holds production while the source is read again, right before the commit.
type late struct {
	scm.Repository
	w     *world
	asked int
}

func (l *late) Tip(ctx context.Context, branch string) (scm.Tip, error) {
	if branch == "main" {
		l.asked++
	}
	if branch == "main" && l.asked == 2 { // for the edit, and before the commit
		if _, there := l.w.store.Branch(record.HoldBranch); !there {
			l.w.must("", l.w.store.CreateBranch(record.HoldBranch, l.w.tip("main")))
			l.w.must(l.w.store.Push(record.HoldBranch, "mei", "Hold", map[string]string{"holds/production.yaml": "reason: incident\n"}))
		}
	}
	return l.Repository.Tip(ctx, branch)
}

// TestDirectHeld: a hold that is placed while the edit is made and proven stops it.
func TestDirectHeld(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		w := newTeam(t, forges()[name], "merge: direct")
		w.setTo(file, "v2")
		before := w.tip("main")
		w.repo = &late{Repository: w.repo, w: w}
		if res, err := w.onward(); err != nil || res.Outcome != promote.Blocked || !strings.Contains(res.Reason, "incident") || w.tip("main") != before {
			t.Errorf("%s: %s (%s), %v", name, res.Outcome, res.Reason, err)
		}
	}
}
