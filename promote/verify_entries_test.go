package promote_test

import (
	"strings"
	"testing"

	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// TestVerifyEntries: a digest of the app's that the source runs may go to the app's
// own entries alone.
func TestVerifyEntries(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(w *world, t record.Trailers)
		words string
	}{
		"another app's entry": {func(w *world, t record.Trailers) {
			t.Edits[0].Entry = "todo-web"
			web := w.fileAt("main", productionFile)
			web = strings.Replace(web, digestOf(web, "todo-web"), w.v(2), 1)
			at := strings.LastIndex(web, "newTag: v1")
			w.forged(t, map[string]string{productionFile: web[:at] + "newTag: v2" + web[at+len("newTag: v1"):]})
		}, "diff: entry todo-web in overlays/production/kustomization.yaml is no image of todo-api"},
		"another app's entry, renamed": {func(w *world, t record.Trailers) {
			t.Edits[0].Entry, t.Edits[0].Rename = "todo-web", true
			web := w.fileAt("main", productionFile)
			web = strings.Replace(web, digestOf(web, "todo-web"), w.v(2), 1)
			web = strings.Replace(web, w.ref("todo-web"), w.ref("todo-api"), 1)
			at := strings.LastIndex(web, "newTag: v1")
			w.forged(t, map[string]string{productionFile: web[:at] + "newTag: v2" + web[at+len("newTag: v1"):]})
		}, "diff: entry todo-web in overlays/production/kustomization.yaml is no image of todo-api"},
		"an entry of nobody's, added": {func(w *world, t record.Trailers) {
			t.Edits[0].Entry, t.Edits[0].Add = "postgres", true
			w.forged(t, map[string]string{productionFile: w.fileAt("main", productionFile) +
				"- name: postgres\n  newName: " + w.ref("todo-api") + "\n  newTag: v2\n  digest: " + w.v(2) + "\n"})
		}, "diff: entry postgres in overlays/production/kustomization.yaml is no image of todo-api"},
	} {
		t.Run(name, func(t *testing.T) {
			w := proposed(t, forges()["gitea"])
			c.forge(w, w.trailersOf(productionBranch))
			w.wantVerified(1, scm.StatusFailure, c.words)
		})
	}
}

// TestVerifyStaleApproval: who approved something harmless has not approved what was
// pushed after it, whatever both commits say of themselves.
func TestVerifyStaleApproval(t *testing.T) {
	for _, forge := range []string{"github", "gitlab", "gitea"} {
		t.Run(forge+", by hand", func(t *testing.T) {
			w := newTeam(t, forges()[forge], "overriders: [user:mei]")
			empty := "Typo\n\n" + record.Trailers{App: "todo-api", Environment: "production"}.String()
			w.must(w.store.Push("hotfix", "eve", empty, map[string]string{"README.md": "the config\n"}))
			p, err := w.store.OpenPull(scmtest.NewPull{Head: "hotfix", Base: "main", Title: "Typo", Author: "eve"})
			if err != nil {
				t.Fatal(err)
			}
			w.review(p.Number, "mei", "approved")
			w.wantVerified(p.Number, scm.StatusSuccess, "no promotion")
			w.must(w.store.Push("hotfix", "eve", "More", map[string]string{productionFile: strings.Replace(w.fileAt("main", productionFile), w.v(1), w.v(3), 1)}))
			w.wantVerified(p.Number, scm.StatusFailure, "by hand: it changes entry todo-api")
		})
		t.Run(forge+", of a promotion", func(t *testing.T) {
			w := proposed(t, forges()[forge], "overriders: [user:mei]")
			says, overlay := w.trailersOf(productionBranch), w.fileAt(productionBranch, productionFile)
			says.Override, says.OverriddenBy, says.Edits[0].Image.Digest = "hurry", "mei", w.v(3)
			w.forged(says, map[string]string{"README.md": "the config\n"})
			w.review(1, "mei", "approved")
			w.wantVerified(1, scm.StatusFailure, "diff: it changes something else")
			w.forged(says, map[string]string{"README.md": w.fileAt("main", "README.md"), productionFile: strings.ReplaceAll(overlay, w.v(2), w.v(3))})
			w.wantVerified(1, scm.StatusFailure, "override: ")
		})
		t.Run(forge+", of a promotion that was no override", func(t *testing.T) {
			w := proposed(t, forges()[forge], "overriders: [user:mei]")
			if err := w.store.CreateBranch(record.HoldBranch, w.tip("main")); err != nil {
				t.Fatal(err)
			}
			w.must(w.store.Push(record.HoldBranch, "li", "Hold", map[string]string{"holds/production.yaml": "reason: incident\n"}))
			w.review(1, "mei", "approved")
			w.wantVerified(1, scm.StatusFailure, "hold: ")
			says := w.trailersOf(productionBranch)
			says.Override, says.OverriddenBy = "hurry", "mei"
			w.forged(says, map[string]string{})
			w.wantVerified(1, scm.StatusFailure, "override: ")
		})
	}
}

// TestVerifyPatterns: to kustomize an entry's name is a pattern, and entries work one
// after the other.
func TestVerifyPatterns(t *testing.T) {
	for _, name := range []string{"todo-ap.", ".*", "(todo)-api", "todo-api|x", "todo-api:v9", "todo.api.v9", "[a-z0-9.:/]*/acme/todo-ap[i]"} {
		w := newTeam(t, forges()["gitea"])
		w.must(w.store.Push("hotfix", "eve", "By hand", map[string]string{
			productionFile: w.fileAt("main", productionFile) + "- name: '" + name + "'\n  newName: registry.example/eve/todo\n  newTag: v1\n",
		}))
		p, err := w.store.OpenPull(scmtest.NewPull{Head: "hotfix", Base: "main", Title: "By hand", Author: "eve"})
		if err != nil {
			t.Fatal(err)
		}
		w.wantVerified(p.Number, scm.StatusFailure, "by hand: it changes entry "+name+" in "+productionFile)
	}
}

// TestVerifyBranch: an environment without branch is on the default branch alone. What
// builds may push there may not go to another environment's branch at the same path.
func TestVerifyBranch(t *testing.T) {
	w := newWorld(t, forges()["gitea"])
	w.govern("- {name: dev, path: overlays/staging, prove: off}\n- {name: production, from: [dev], path: overlays/staging, branch: live, prove: off}\n")
	if err := w.store.CreateBranch("live", w.tip("main")); err != nil {
		t.Fatal(err)
	}
	w.v(3)
	results, errs := w.ask(promote.Environments{To: []string{"dev"}}, "todo-api:v3")
	if errs[0] != nil || results[0].Outcome != promote.Opened {
		t.Fatalf("%+v, %v", results[0], errs[0])
	}
	w.wantVerified(1, scm.StatusSuccess, "diff")
	p, err := w.store.OpenPull(scmtest.NewPull{Head: "tagboat/dev/todo-api", Base: "live", Title: "Promote", Author: "eve"})
	if err != nil {
		t.Fatal(err)
	}
	w.wantVerified(p.Number, scm.StatusFailure, "trailers: dev is promoted to on branch main, not on live")
}
