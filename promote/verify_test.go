package promote_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

const productionBranch = "tagboat/production/todo-api"

// verify verifies pull requests and gives the result of one.
func (w *world) verify(number int) promote.Verified {
	w.Helper()
	found, err := w.verifyAll(promote.Verify{Number: number})
	if err != nil || len(found) != 1 {
		w.Fatalf("%d verified, %v", len(found), err)
	}
	return found[0]
}

func (w *world) verifyAll(v promote.Verify) ([]promote.Verified, error) {
	w.Helper()
	found, errs, err := w.promoter.Verify(context.Background(), promote.Request{Repository: "acme/config"}, v)
	return found, errors.Join(append(errs, err)...)
}

// wantVerified demands what verify says of a pull request, and that the same is
// posted on its head commit.
func (w *world) wantVerified(number int, state scm.StatusState, words string) promote.Verified {
	w.Helper()
	v := w.verify(number)
	if v.State != state || !strings.Contains(v.Summary, words) {
		w.Fatalf("%s: %s; want %s with %q\n%s", v.State, v.Summary, state, words, gatesSay(v.Gates))
	}
	p, err := w.store.Pull(number)
	if err != nil {
		w.Fatal(err)
	}
	posted := w.store.Statuses(p.HeadSHA)
	if len(posted) == 0 || posted[len(posted)-1].Context != promote.PolicyContext || !strings.HasPrefix(posted[len(posted)-1].Description, v.Summary[:min(len(v.Summary), 20)]) {
		w.Fatalf("posted %+v", posted)
	}
	return v
}

// proposed is a team with an open promotion of v2 to production.
func proposed(t *testing.T, forge forgeFor, rules ...string) *world {
	t.Helper()
	w := newTeam(t, forge, rules...)
	w.v(3)
	w.setTo(file, "v2")
	w.wantOnward(promote.Opened, "")
	return w
}

// forged makes a person's commit on the head branch that changes files and says of
// itself what t says.
func (w *world) forged(t record.Trailers, files map[string]string) {
	w.Helper()
	w.must(w.store.Push(productionBranch, "eve", "Promote todo-api\n\n"+t.String(), files))
}

func (w *world) trailersOf(branch string) record.Trailers {
	w.Helper()
	t, ok := record.ParseTrailers(w.messageAt(branch))
	if !ok {
		w.Fatalf("no trailers on %s:\n%s", branch, w.messageAt(branch))
	}
	return t
}

// TestVerifyForged: the change must be exactly what its trailers say, and they are
// worth what the rules say of it.
func TestVerifyForged(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(w *world, t record.Trailers, overlay string)
		words string
	}{
		"another digest": {func(w *world, t record.Trailers, overlay string) {
			w.forged(t, map[string]string{productionFile: strings.ReplaceAll(overlay, w.v(2), w.v(3))})
		}, "diff: it changes something else than its trailers say: commits of"},
		"another digest, and says so": {func(w *world, t record.Trailers, overlay string) {
			t.Edits[0].Image.Digest = w.v(3)
			w.forged(t, map[string]string{productionFile: strings.ReplaceAll(overlay, w.v(2), w.v(3))})
		}, "order: staging runs"},
		"another file": {func(w *world, t record.Trailers, overlay string) {
			t.Paths = []string{target}
			t.Edits[0].File = file
			w.forged(t, map[string]string{productionFile: w.fileAt("main", productionFile), file: strings.Replace(w.at("main"), "# staging", "# eve", 1)})
		}, "diff: it changes overlays/staging, which is not in production"},
		"another app's entry": {func(w *world, t record.Trailers, overlay string) {
			t.Edits[0].Entry, t.Edits[0].Image.Repository = "todo-web", w.ref("todo-web")
			web := strings.Replace(w.fileAt("main", productionFile), digestOf(w.fileAt("main", productionFile), "todo-web"), w.v(2), 1)
			web = web[:strings.LastIndex(web, "newTag: v1")] + strings.Replace(web[strings.LastIndex(web, "newTag: v1"):], "v1", "v2", 1)
			w.forged(t, map[string]string{productionFile: web})
		}, "diff: entry todo-web in overlays/production/kustomization.yaml is no image of todo-api"},
		"a file more": {func(w *world, t record.Trailers, _ string) {
			w.forged(t, map[string]string{"README.md": "eve\n"})
		}, "diff: it changes something else"},
		"a person's commit on top": {func(w *world, _ record.Trailers, overlay string) {
			w.must(w.store.Push(productionBranch, "mei", "Replicas", map[string]string{productionFile: overlay + "replicas: [{name: todo-api, count: 3}]\n"}))
		}, "diff: it changes something else than its trailers say: commits of mei"},
		"a rollback to what never ran": {func(w *world, t record.Trailers, overlay string) {
			t.Undoes, t.Edits[0].Image.Digest = w.tip("main"), w.v(3)
			w.forged(t, map[string]string{productionFile: strings.ReplaceAll(overlay, w.v(2), w.v(3))})
		}, "history: it says that it is a rollback, but production never ran this"},
		"another promotion's branch": {func(w *world, t record.Trailers, _ string) {
			t.App = "todo-apis"
			w.forged(t, map[string]string{})
		}, "trailers: "},
		"an environment that is not there": {func(w *world, t record.Trailers, _ string) {
			t.Environment = "productio"
			w.forged(t, map[string]string{})
		}, "trailers: "},
		"an override by nobody": {func(w *world, t record.Trailers, overlay string) {
			t.Override, t.OverriddenBy, t.Edits[0].Image.Digest = "hurry", "mei", w.v(3)
			w.forged(t, map[string]string{productionFile: strings.ReplaceAll(overlay, w.v(2), w.v(3))})
		}, "override: tagboat is not among the overriders of production"},
	} {
		t.Run(name, func(t *testing.T) {
			w := proposed(t, forges()["gitea"], "overriders: [user:mei]")
			w.wantVerified(1, scm.StatusSuccess, "diff, order")
			c.forge(w, w.trailersOf(productionBranch), w.fileAt(productionBranch, productionFile))
			w.wantVerified(1, scm.StatusFailure, c.words)
		})
	}
}

// digestOf is what an entry of an overlay pins.
func digestOf(overlay, entry string) string {
	return digestIn(overlay[strings.Index(overlay, "- name: "+entry):])
}

// TestVerifyByHand: who changes an image of an environment with rules by hand goes
// around them; anything else is nobody's business.
func TestVerifyByHand(t *testing.T) {
	overlay := func(w *world) string { return w.fileAt("main", productionFile) }
	for name, c := range map[string]struct {
		change func(w *world) map[string]string
		branch string
		words  string // "": it passes
	}{
		"an image of ours": {func(w *world) map[string]string {
			return map[string]string{productionFile: strings.Replace(overlay(w), w.v(1), w.v(2), 1)}
		}, "hotfix", "by hand: it changes entry todo-api in overlays/production/kustomization.yaml"},
		"the entry taken out": {func(w *world) map[string]string {
			return map[string]string{productionFile: "resources: [../../base]\n"}
		}, "hotfix", "by hand: it changes entry todo-api"},
		"on a branch like ours": {func(w *world) map[string]string {
			return map[string]string{productionFile: strings.Replace(overlay(w), w.v(1), w.v(2), 1)}
		}, productionBranch, "by hand: it changes entry todo-api"},
		"broken": {func(w *world) map[string]string { return map[string]string{productionFile: "images: ["} }, "hotfix", "by hand: it changes overlays/production"},
		"an image of nobody's": {func(w *world) map[string]string {
			return map[string]string{productionFile: strings.Replace(overlay(w), digestOf(overlay(w), "todo-web"), w.v(2), 1)}
		}, "hotfix", ""},
		"another line": {func(w *world) map[string]string {
			return map[string]string{productionFile: overlay(w) + "namePrefix: x-\n"}
		}, "hotfix", ""},
		"another file": {func(*world) map[string]string { return map[string]string{"README.md": "more\n"} }, "hotfix", ""},
		"without rules": {func(w *world) map[string]string {
			return map[string]string{file: strings.Replace(w.at("main"), w.v(1), w.v(2), 1)}
		}, "hotfix", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, forges()["gitea"], "overriders: [user:mei]")
			w.must(w.store.Push(c.branch, "li", "By hand", c.change(w)))
			p, err := w.store.OpenPull(scmtest.NewPull{Head: c.branch, Base: "main", Title: "By hand", Author: "li"})
			if err != nil {
				t.Fatal(err)
			}
			if c.words == "" {
				w.wantVerified(p.Number, scm.StatusSuccess, "no promotion")
				return
			}
			w.wantVerified(p.Number, scm.StatusFailure, c.words)
			w.review(p.Number, "li2", "approved")
			w.wantVerified(p.Number, scm.StatusFailure, c.words)
			w.review(p.Number, "mei", "approved")
			w.wantVerified(p.Number, scm.StatusSuccess, "by hand (overridden)")
		})
	}
}

// TestVerifyOthers: a fork's pull request gets its status too, and a branch of
// somebody's that carries promotions is no promotion.
func TestVerifyOthers(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		t.Run(name, func(t *testing.T) {
			w := proposed(t, forges()[name])
			fork, err := w.store.OpenForkPull(scmtest.NewPull{Head: productionBranch, Base: "main", Title: w.messageAt(productionBranch), Author: "eve", Fork: "eve/config"},
				map[string]string{productionFile: w.fileAt(productionBranch, productionFile)})
			if err != nil {
				t.Fatal(err)
			}
			w.wantVerified(fork.Number, scm.StatusFailure, "by hand: it changes entry todo-api")
			harmless, err := w.store.OpenForkPull(scmtest.NewPull{Head: "docs", Base: "main", Title: "Docs", Author: "eve", Fork: "eve/config"}, map[string]string{"README.md": "better\n"})
			if err != nil {
				t.Fatal(err)
			}
			w.wantVerified(harmless.Number, scm.StatusSuccess, "no promotion")

			if err := w.store.CreateBranch("release", w.tip("main")); err != nil {
				t.Fatal(err)
			}
			w.must(w.store.MergeBranch(productionBranch, "release"))
			p, err := w.store.OpenPull(scmtest.NewPull{Head: "release", Base: "main", Title: "Release", Author: "mei"})
			if err != nil {
				t.Fatal(err)
			}
			w.wantVerified(p.Number, scm.StatusFailure, "by hand: it changes entry todo-api")
			w.must(w.store.Push("elsewhere", "mei", "x", map[string]string{"x": "x"}))
			if err := w.store.CreateBranch("playground", w.tip("main")); err != nil {
				t.Fatal(err)
			}
			other, err := w.store.OpenPull(scmtest.NewPull{Head: "elsewhere", Base: "playground", Title: "x", Author: "mei"})
			if err != nil {
				t.Fatal(err)
			}
			if found, err := w.verifyAll(promote.Verify{Number: other.Number}); err != nil || len(found) != 0 {
				t.Errorf("into a branch without rules: %+v, %v", found, err)
			}
			w.wantVerified(1, scm.StatusSuccess, "diff, order")
			found, err := w.verifyAll(promote.Verify{})
			if err != nil || len(found) != 4 || slices.ContainsFunc(found, func(v promote.Verified) bool { return v.Posted }) {
				t.Errorf("all, again: %d, %v", len(found), err)
			}
		})
	}
}

// TestVerifyApprovals: an approval is for what was proposed then. "Update branch"
// proposes nothing new.
func TestVerifyApprovals(t *testing.T) {
	for _, name := range []string{"github", "gitea"} { // GitLab resets approvals by itself, or tells nothing of what they were for
		t.Run(name, func(t *testing.T) {
			w := proposed(t, forges()[name])
			w.review(1, "mei", "approved")
			w.wantVerified(1, scm.StatusSuccess, "diff")
			w.must(w.store.Push("main", "li", "Elsewhere", map[string]string{"README.md": "new\n"}))
			w.must(w.store.UpdateBranch(1))
			w.wantVerified(1, scm.StatusSuccess, "diff")
			w.setTo(file, "v3")
			w.repo = keepsApprovals{w.repo}
			w.wantOnward(promote.Updated, "")
			w.wantVerified(1, scm.StatusFailure, "renewed approvals: approved for another commit by mei")
			w.review(1, "mei", "approved")
			w.wantVerified(1, scm.StatusSuccess, "diff")
		})
	}
}

// keepsApprovals is a forge that dismisses no approvals.
type keepsApprovals struct{ scm.Repository }

func (k keepsApprovals) Propose(ctx context.Context, p scm.Proposal) (scm.PullRequest, error) {
	p.Renewed = false
	return k.Repository.Propose(ctx, p)
}

func (k keepsApprovals) evidence() scm.Evidence { return k.Repository.(scm.Evidence) }

func (k keepsApprovals) Statuses(ctx context.Context, commit string) ([]scm.Status, error) {
	return k.evidence().Statuses(ctx, commit)
}
func (k keepsApprovals) Merged(ctx context.Context, commit string) (scm.PullRequest, error) {
	return k.evidence().Merged(ctx, commit)
}
func (k keepsApprovals) Pushed(ctx context.Context, branch, commit string) (time.Time, error) {
	return k.evidence().Pushed(ctx, branch, commit)
}
func (k keepsApprovals) Approvals(ctx context.Context, pr scm.PullRequest) ([]scm.Approval, error) {
	return k.evidence().Approvals(ctx, pr)
}
func (k keepsApprovals) SetStatus(ctx context.Context, commit string, s scm.Status) error {
	return k.evidence().SetStatus(ctx, commit, s)
}

// TestVerifyPeople: promoters and overriders count as the pull request's author or
// who approves what is proposed, by no word of its trailers.
func TestVerifyPeople(t *testing.T) {
	w := newTeam(t, forges()["gitea"], "promoters: [user:li]", "overriders: [user:mei]", "gates: {soak: 24h}")
	w.setTo(file, "v2")
	w.store.Advance(25 * time.Hour)
	w.wantOnward(promote.Opened, "promoters passed: li", as("li"))
	w.wantVerified(1, scm.StatusFailure, "promoters: tagboat is not among user:li")
	w.review(1, "eve", "approved")
	w.wantVerified(1, scm.StatusFailure, "promoters: tagboat, eve is not among user:li")
	w.review(1, "li", "approved")
	w.wantVerified(1, scm.StatusSuccess, "promoters, order, soak")
	w.must(w.store.MergePullRequest(1, "merge"))

	w.setTo(file, "v3")
	w.wantOnward(promote.Opened, "soak overridden", as("mei"), override("customers cannot log in"))
	w.wantVerified(2, scm.StatusFailure, "override: tagboat is not among the overriders of production: user:mei; an approval by one of them counts")
	w.review(2, "mei", "approved")
	v := w.wantVerified(2, scm.StatusSuccess, "soak (overridden)")
	if !strings.Contains(gatesSay(v.Gates), "override passed: mei: customers cannot log in") {
		t.Errorf("gates:\n%s", gatesSay(v.Gates))
	}
}

// TestVerifyRollback: what did run passes, whatever gates say; not what an earlier
// rollback's hold keeps out.
func TestVerifyRollback(t *testing.T) {
	w := grown(t, forges()["gitea"], "gates: {soak: 24h, platforms: [linux/amd64]}")
	res, err := w.rollBack(promote.Rollback{})
	if err != nil {
		t.Fatal(err)
	}
	w.wantVerified(res.PullRequest.Number, scm.StatusSuccess, "diff, history, platforms")
	trailers := w.trailersOf(productionBranch)
	trailers.Edits[0].Image.Digest, trailers.Edits[0].Image.Tag = w.v(1), "v1"
	overlay := strings.Replace(w.fileAt("main", productionFile), "newTag: v3\n  digest: "+w.v(3), "newTag: v1\n  digest: "+w.v(1), 1)
	w.forged(trailers, map[string]string{productionFile: overlay})
	w.wantVerified(res.PullRequest.Number, scm.StatusFailure, "hold: todo-api in production is held by tagboat")
}

// TestVerifyPosts: only what is new, on the merge queue's commit too, and no success
// is left standing over a fault.
func TestVerifyPosts(t *testing.T) {
	w := proposed(t, forges()["github"])
	head, _ := w.store.Branch(productionBranch)
	queued := w.must(w.store.Push("gh-readonly-queue/main/pr-1", "github", "Merge", map[string]string{"x": "x"}))
	for n, want := range []bool{true, false} {
		found, err := w.verifyAll(promote.Verify{Number: 1, Commit: queued})
		if err != nil || len(found) != 1 || found[0].Posted != want {
			t.Fatalf("run %d: %+v, %v", n, found, err)
		}
	}
	for _, commit := range []string{head, queued} {
		if list := w.store.Statuses(commit); len(list) != 1 || list[0].State != "success" {
			t.Errorf("on %s: %+v", commit, list)
		}
	}
	w.replace("main", "tagboat.yaml", "from: [staging]\n", "from: [staging]\n  promoters: [team:nobody]\n")
	found, err := w.verifyAll(promote.Verify{Number: 1})
	if !errors.Is(err, scm.ErrNotFound) || len(found) != 1 || found[0].State != scm.StatusFailure || !found[0].Posted {
		t.Errorf("with a team that is not there: %+v, %v", found, err)
	}
	if list := w.store.Statuses(head); len(list) != 2 || list[1].State != "failure" || !strings.Contains(list[1].Description, "not verified: ") {
		t.Errorf("posted %+v", list)
	}
	w.must(w.store.Push("main", "mei", "Broken", map[string]string{"tagboat.yaml": "version: ["}))
	if _, err := w.verifyAll(promote.Verify{Number: 1}); err == nil {
		t.Error("a broken file passes")
	}
}

// down is a repository that cannot tell what a head changes.
type down struct{ keepsApprovals }

func (d down) Changes(context.Context, string, string) (scm.Changes, error) {
	return scm.Changes{}, scm.ErrUnavailable
}

// TestVerifyOutage: a forge that is down for a moment turns nothing red.
func TestVerifyOutage(t *testing.T) {
	w := proposed(t, forges()["gitea"])
	w.wantVerified(1, scm.StatusSuccess, "diff")
	w.repo = down{keepsApprovals{w.repo}}
	head, _ := w.store.Branch(productionBranch)
	if _, err := w.verifyAll(promote.Verify{Number: 1}); !errors.Is(err, scm.ErrUnavailable) || len(w.store.Statuses(head)) != 1 {
		t.Errorf("%v, %+v", err, w.store.Statuses(head))
	}
}
