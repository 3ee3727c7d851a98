package promote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tagboat/promote"
	"tagboat/record"
	"tagboat/registry"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// rollBack rolls todo-api back and gives the only place's result.
func (w *world) rollBack(b promote.Rollback, options ...option) (promote.Result, error) {
	w.Helper()
	results, errs := w.rollBackAll(b, options...)
	return results[0], errs[0]
}

func (w *world) rollBackAll(b promote.Rollback, options ...option) ([]promote.Result, []error) {
	w.Helper()
	q := promote.Request{Repository: "acme/config"}
	for _, o := range options {
		o(&q)
	}
	if b.Environment == "" {
		b.Environment = "production"
	}
	if b.App == "" {
		b.App = "todo-api"
	}
	results, errs, err := w.promoter.RollBack(context.Background(), q, b)
	if err != nil {
		return []promote.Result{{Outcome: promote.Failed}}, []error{err}
	}
	return results, errs
}

// held tells the digests that the hold of todo-api in production allows, as tags;
// "-" where there is no hold.
func (w *world) held() string {
	w.Helper()
	holds, err := w.promoter.Holds(context.Background(), w.repo)
	if err != nil {
		w.Fatal(err)
	}
	for _, h := range holds.All {
		if h.App == "todo-api" && h.Environment == "production" {
			var tags []string
			for day := 1; day <= 5; day++ {
				if strings.Contains(strings.Join(h.Allow, " "), w.v(day)) {
					tags = append(tags, fmt.Sprintf("v%d", day))
				}
			}
			return strings.Join(tags, " ")
		}
	}
	return "-"
}

// grown is a team whose production ran v1, v2 and v3 in this order.
func grown(t *testing.T, forge forgeFor, rules ...string) *world {
	w := newTeam(t, forge, rules...)
	w.setTo(productionFile, "v2")
	w.store.Advance(time.Hour)
	w.setTo(productionFile, "v3")
	w.store.Advance(time.Hour)
	return w
}

// TestRollback: the digest that ran before, as a pull request that says what it
// undoes, with the hold placed first.
func TestRollback(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := grown(t, forge, "gates: {soak: 24h}", `freeze: [{cron: "0 0 * * *", duration: 23h}]`)
			undone := w.tip("main")
			res, err := w.rollBack(promote.Rollback{Reason: "errors since\nv3"})
			if err != nil || res.Outcome != promote.Opened || res.Changes[0].To.Tag != "v2" || res.Changes[0].To.Digest != w.v(2) {
				t.Fatalf("%s (%s) %+v, %v", res.Outcome, res.Reason, res.Changes, err)
			}
			if !strings.Contains(res.Body, " --environment production --app todo-api --to "+w.v(3)+"\n") {
				t.Errorf("no way back:\n%s", res.Body)
			}
			if res.Title != "Roll back todo-api in production: v3 → v2" || !strings.Contains(res.Body, "Reason: `errors since v3`") {
				t.Errorf("%s\n%s", res.Title, res.Body)
			}
			trailers, _ := record.ParseTrailers(w.messageAt("tagboat/production/todo-api"))
			if trailers.Undoes != undone || trailers.Reason != "errors since v3" {
				t.Errorf("trailers %+v", trailers)
			}
			if got := w.held(); got != "v2" {
				t.Errorf("the hold allows %q", got)
			}
			w.wantLeft(func() { // twice before the merge
				if res, err = w.rollBack(promote.Rollback{Reason: "errors since v3"}); err != nil || res.Outcome != promote.Unchanged {
					t.Errorf("twice: %s (%s), %v", res.Outcome, res.Reason, err)
				}
			})
			w.must(w.store.MergePullRequest(res.PullRequest.Number, "merge"))
			w.wantLeft(func() { // and after it: v3 must not come back by itself
				if res, err = w.rollBack(promote.Rollback{}); err != nil || res.Outcome != promote.UpToDate || !strings.Contains(res.Reason, "runs v2@") || !strings.Contains(res.Reason, "--to") {
					t.Errorf("after the merge: %s (%s), %v", res.Outcome, res.Reason, err)
				}
			})
			res, err = w.rollBack(promote.Rollback{To: "v1"})
			if err != nil || res.Outcome != promote.Opened || res.Changes[0].To.Tag != "v1" || w.held() != "v1" {
				t.Errorf("further back: %s (%s), %v, the hold allows %q", res.Outcome, res.Reason, err, w.held())
			}
		})
	}
}

// below is a commit of main, so many before its newest.
func (w *world) below(n int) string {
	w.Helper()
	for c, err := range w.repo.Log(context.Background(), w.tip("main"), "") {
		if err != nil {
			w.Fatal(err)
		}
		if n--; n < 0 {
			return c.SHA
		}
	}
	return ""
}

// TestRollbackTo finds a stay of the history by what people call it.
func TestRollbackTo(t *testing.T) {
	for name, c := range map[string]struct {
		to   func(w *world) string
		want string // tag, outcome or error
	}{
		"digest":                 {func(w *world) string { return w.v(1) }, "v1"},
		"tag":                    {func(*world) string { return "v1" }, "v1"},
		"commit that brought it": {func(w *world) string { return w.below(2) }, "v1"},
		"short commit":           {func(w *world) string { return w.below(1)[:9] }, "v2"},
		"commit amid a stay": {func(w *world) string {
			w.replace("main", "README.md", "config", "more")
			w.setTo(productionFile, "v4")
			return w.below(1)
		}, "v3"},
		"what runs":           {func(*world) string { return "v3" }, string(promote.UpToDate)},
		"what never ran":      {func(w *world) string { w.v(5); return "v5" }, "its history has no v5; it ran v3@"},
		"a commit of nothing": {func(*world) string { return strings.Repeat("ab", 20) }, "its history has no abab"},
		"another branch's commit": {func(w *world) string {
			return w.must(w.store.Push("other", "mei", "x", map[string]string{productionFile: strings.ReplaceAll(w.fileAt("main", productionFile), w.v(3), w.v(5))}))
		}, "its history has no "},
	} {
		t.Run(name, func(t *testing.T) {
			w := grown(t, forges()["gitea"])
			to := c.to(w)
			before := w.all()
			res, err := w.rollBack(promote.Rollback{To: to})
			switch {
			case strings.HasPrefix(c.want, "v"):
				if err != nil || len(res.Changes) != 1 || res.Changes[0].To.Tag != c.want {
					t.Errorf("%+v (%s), %v", res.Changes, res.Reason, err)
				}
				return
			case string(res.Outcome) == c.want:
			case !errors.Is(err, promote.ErrNoPast) || !strings.Contains(err.Error(), c.want):
				t.Errorf("%s (%s), %v", res.Outcome, res.Reason, err)
			}
			if w.all() != before {
				t.Error("something is written")
			}
		})
	}
}

// TestRollbackOfNothing: where there is nothing to go back to, nothing is held.
func TestRollbackOfNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world)
		cause   error
		words   string
	}{
		"no history": {func(*world) {}, promote.ErrNoPast, "nothing pinned before v1@"},
		"gone":       {func(w *world) { w.setTo(productionFile, "v2"); w.gone(1) }, registry.ErrNotFound, ""},
		"foreign branch": {func(w *world) {
			w.setTo(productionFile, "v2")
			w.must(w.store.Push("tagboat/production/todo-api", "mei", "mine", map[string]string{"README.md": "mine\n"}))
		}, promote.ErrForeign, "mei"},
		"may not": {func(w *world) {
			w.setTo(productionFile, "v2")
			w.must(w.store.Push("main", "mei", "Rules", map[string]string{"tagboat.yaml": w.fileAt("main", "tagboat.yaml") + "  promoters: [user:li]\n"}))
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, forges()["gitea"])
			c.prepare(w)
			w.wantLeft(func() {
				res, err := w.rollBack(promote.Rollback{})
				switch {
				case name == "may not":
					if err != nil || res.Outcome != promote.Blocked || res.Planned || !strings.Contains(res.Reason, "promoters: tagboat is not among user:li") {
						t.Errorf("%s (%s), %v", res.Outcome, res.Reason, err)
					}
				case !errors.Is(err, c.cause) || !strings.Contains(err.Error(), c.words):
					t.Errorf("%s, %v", res.Outcome, err)
				}
			})
		})
	}
}

// TestRollbackPastUnpinned: what was not pinned is passed over, now and before.
func TestRollbackPastUnpinned(t *testing.T) {
	w := newTeam(t, forges()["gitea"])
	w.replace("main", productionFile, "newTag: v1\n  digest: "+w.v(1), "newTag: v2")
	res, err := w.rollBack(promote.Rollback{}, dryRun)
	if err != nil || res.Outcome != promote.Planned || res.Changes[0].To.Tag != "v1" || !strings.Contains(res.Body, "takes back what [commit") {
		t.Errorf("%s (%s), %v\n%s", res.Outcome, res.Reason, err, res.Body)
	}
	w.replace("main", productionFile, "newTag: v2", "newTag: v3\n  digest: "+w.v(3))
	if res, err = w.rollBack(promote.Rollback{}, dryRun); err != nil || res.Changes[0].To.Tag != "v1" {
		t.Errorf("%s (%s), %v", res.Outcome, res.Reason, err)
	}
}

// gone deletes an image from the registry.
func (w *world) gone(day int) {
	w.Helper()
	err := errors.Join(w.images.Delete("acme/todo-api", w.v(day)), w.images.Untag("acme/todo-api", fmt.Sprintf("v%d", day)))
	if err != nil {
		w.Fatal(err)
	}
}

// TestRollbackHolds: whose hold stands, and what each lets through.
func TestRollbackHolds(t *testing.T) {
	w := grown(t, forges()["gitea"])
	if res, err := w.rollBack(promote.Rollback{NoHold: true}, dryRun); err != nil || !res.Planned || res.Diff == "" || len(res.Warnings) != 0 {
		t.Errorf("dry run: %+v, %v", res, err)
	}
	w.wantLeft(func() {
		res, err := w.rollBack(promote.Rollback{}, dryRun)
		if err != nil || !res.Planned || !strings.Contains(strings.Join(res.Warnings, "\n"), "would hold todo-api in production") {
			t.Errorf("dry run: %+v, %v", res, err)
		}
	})
	hold := record.Hold{Environment: "production", By: "li", Reason: "incident 12", Since: w.store.Clock()}
	w.must(w.store.Push(record.HoldBranch, "li", "Hold", map[string]string{hold.Path(): string(hold.Bytes())}))
	res, err := w.rollBack(promote.Rollback{})
	if err != nil || res.Outcome != promote.Opened || w.held() != "-" || !strings.Contains(strings.Join(res.Warnings, "\n"), "production is held by li") {
		t.Errorf("under somebody's hold: %s (%s) %q, %v, own %s", res.Outcome, res.Reason, res.Warnings, err, w.held())
	}
	w.must(w.store.MergePullRequest(res.PullRequest.Number, "merge"))
	w.must(w.store.PushChanges(record.HoldBranch, "li", "Release", deletion(hold.Path())))
	if res, err = w.rollBack(promote.Rollback{To: "v1", NoHold: true}); err != nil || res.Outcome != promote.Opened || w.held() != "-" {
		t.Errorf("without a hold: %s (%s), %v, %s", res.Outcome, res.Reason, err, w.held())
	}
	own := record.Hold{Environment: "production", App: "todo-api", By: "li", Reason: "rolled back", Since: w.store.Clock(), Allow: []string{w.v(2)}}
	w.must(w.store.Push(record.HoldBranch, "li", "Hold", map[string]string{own.Path(): string(own.Bytes())}))
	if err := w.store.ClosePullRequest(res.PullRequest.Number, "mei"); err != nil {
		t.Fatal(err)
	}
	w.wantLeft(func() { // it is for v2, and stays
		if res, err = w.rollBack(promote.Rollback{To: "v1", NoHold: true}); err != nil || res.Outcome != promote.Blocked || !strings.Contains(res.Reason, "todo-api in production is held by li") {
			t.Errorf("against a rollback's hold: %s (%s), %v", res.Outcome, res.Reason, err)
		}
	})
	if res, err = w.rollBack(promote.Rollback{To: "v1"}); err != nil || res.Outcome != promote.Opened || w.held() != "v1" {
		t.Errorf("in the place of a rollback's hold: %s (%s), %v, %s", res.Outcome, res.Reason, err, w.held())
	}
}

func deletion(path string) []scmtest.TreeChange {
	return []scmtest.TreeChange{{Path: path, Delete: true}}
}

// TestRollbackOverPromotion: an open promotion of something newer becomes the
// rollback, and says so.
func TestRollbackOverPromotion(t *testing.T) {
	w := grown(t, forges()["gitea"])
	w.setTo(file, "v4")
	res := w.wantOnward(promote.Opened, "")
	back, err := w.rollBack(promote.Rollback{})
	if err != nil || back.Outcome != promote.Updated || back.PullRequest.Number != res.PullRequest.Number || back.Changes[0].To.Tag != "v2" {
		t.Fatalf("%s (%s), %v", back.Outcome, back.Reason, err)
	}
	p, err := w.store.Pull(back.PullRequest.Number)
	if err != nil || !strings.HasPrefix(p.Title, "Roll back") || strings.Contains(p.Body, "v4") {
		t.Errorf("%s\n%s", p.Title, p.Body)
	}
	w.wantOnward(promote.Blocked, "hold failed: todo-api in production is held by tagboat")
}

// TestRollbackRings: each ring goes back to its own past, under one hold.
func TestRollbackRings(t *testing.T) {
	w := newWorld(t, forges()["gitea"])
	w.govern(ringed)
	w.must(w.store.Push("main", "mei", "Rings", map[string]string{"rings/canary/kustomization.yaml": w.at("main"), "rings/us/kustomization.yaml": w.at("main")}))
	w.setTo("rings/canary/kustomization.yaml", "v2")
	w.setTo("rings/us/kustomization.yaml", "v2")
	w.setTo("rings/canary/kustomization.yaml", "v3")
	results, errs := w.rollBackAll(promote.Rollback{})
	if len(results) != 2 || errs[0] != nil || errs[1] != nil || results[0].Changes[0].To.Tag != "v2" || results[1].Changes[0].To.Tag != "v1" {
		t.Fatalf("%+v, %v", results, errs)
	}
	if got := w.held(); got != "v1 v2" {
		t.Errorf("the hold allows %s", got)
	}
	w.wantPulls("1 open, 2 open")
}

// TestRollbackDirect: a commit, and a second run does not bring the fault back.
func TestRollbackDirect(t *testing.T) {
	w := grown(t, forges()["gitea"], "merge: direct")
	res, err := w.rollBack(promote.Rollback{})
	if err != nil || res.Outcome != promote.Committed || !strings.Contains(w.fileAt("main", productionFile), w.v(2)) || w.held() != "v2" {
		t.Fatalf("%s (%s), %v, %s", res.Outcome, res.Reason, err, w.held())
	}
	w.wantLeft(func() {
		if res, err = w.rollBack(promote.Rollback{}); err != nil || res.Outcome != promote.UpToDate {
			t.Errorf("again: %s (%s), %v", res.Outcome, res.Reason, err)
		}
	})
}

// diesAt is a repository on which a run dies at its nth write.
type diesAt struct {
	scm.Repository
	left *int
}

func (d diesAt) Commit(ctx context.Context, draft scm.Draft) (scm.Commit, error) {
	if *d.left--; *d.left < 0 {
		return scm.Commit{}, errDied
	}
	return d.Repository.Commit(ctx, draft)
}

func (d diesAt) Propose(ctx context.Context, p scm.Proposal) (scm.PullRequest, error) {
	if *d.left--; *d.left < 0 {
		return scm.PullRequest{}, errDied
	}
	return d.Repository.Propose(ctx, p)
}

// TestRollbackKilled: whichever write a run dies at, the next one ends it.
func TestRollbackKilled(t *testing.T) {
	for writes := range 3 {
		w := grown(t, forges()["gitea"])
		plain, left := w.repo, writes
		w.repo = diesAt{plain, &left}
		if _, err := w.rollBack(promote.Rollback{}); !errors.Is(err, errDied) {
			t.Fatalf("write %d: %v", writes, err)
		}
		if strings.Contains(w.fileAt("main", productionFile), w.v(2)) || writes > 0 && w.held() != "v2" {
			t.Errorf("write %d: proposed before it is held", writes)
		}
		w.repo = plain
		res, err := w.rollBack(promote.Rollback{})
		if err != nil || res.Outcome != promote.Opened || w.held() != "v2" {
			t.Errorf("write %d: %s (%s), %v, %s", writes, res.Outcome, res.Reason, err, w.held())
		}
		w.wantPulls("1 open")
	}
}

// TestRollbackOfMirror: production runs from another registry than the build pushes
// to, from another one before that, and its tags have moved on.
func TestRollbackOfMirror(t *testing.T) {
	w := newTeam(t, forges()["gitea"])
	mirror := func(day int) string { return w.push(fmt.Sprintf("mirror-api:v%d", day), day) }
	old, new := mirror(1), mirror(2)
	w.replace("main", "tagboat.yaml", "}]", ", name: todo-api}]")
	w.replace("main", productionFile, "newName: "+w.ref("todo-api"), "newName: "+w.ref("mirror-api"))
	w.replace("main", productionFile, w.v(1), old)
	w.replace("main", productionFile, "newTag: v1\n  digest: "+old, "newTag: v2\n  digest: "+new)
	w.images.Reset()
	w.push("mirror-api:v1", 5) // the tag is another image now
	res, err := w.rollBack(promote.Rollback{})
	if err != nil || res.Outcome != promote.Opened || len(res.Changes) != 1 || res.Changes[0].To.Digest != old || res.Changes[0].To.Tag != "v1" {
		t.Errorf("%s (%s) %+v, %v", res.Outcome, res.Reason, res.Changes, err)
	}
}
