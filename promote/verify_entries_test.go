package promote_test

import (
	"strings"
	"testing"

	"tagboat/record"
	"tagboat/scm"
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
