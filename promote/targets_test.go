package promote_test

import (
	"strings"
	"testing"
	"time"

	"tagboat/overlay"
	"tagboat/promote"
)

// TestObjectTargets promotes into objects in a file: opened, unchanged, updated,
// then merged and up to date. Each says from its commit alone that it is ours.
func TestObjectTargets(t *testing.T) {
	const source = "  path: overlays/staging\n"
	for name, c := range map[string]struct{ path, content, pinned string }{
		"Flux": {"clusters/staging/todo.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: todo}\nspec:\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + source + "  images:\n  - name: todo-api\n    newName: REPO\n    newTag: v1\n",
			"newTag: v2\n    digest: NEW"},
		"Flux, added": {"clusters/staging/todo.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: todo}\nspec:\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + source,
			"images:\n  - name: todo-api\n    newName: REPO\n    newTag: v2\n    digest: NEW"},
		"Argo CD": {"clusters/staging/all.yaml#todo", "kind: ConfigMap\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: todo}\nspec:\n  source:\n    repoURL: 'https://github.example/acme/config.git'\n  " + source + "    kustomize:\n      images:\n      - todo-api=REPO:v1\n",
			"- todo-api=REPO:v2@NEW"},
	} {
		for forgeName, forge := range forges() {
			t.Run(name+" on "+forgeName, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, forge)
				v2 := w.push("todo-api:v2", 2)
				v3 := w.push("todo-api:v3", 3)
				at, _, _ := overlay.FileOf(c.path)
				w.must(w.store.Push("main", "mei", "Objects", map[string]string{at: strings.ReplaceAll(c.content, "REPO", w.ref("todo-api")), "overlays/staging/kustomization.yaml": "resources: [../../base]\n"}))
				object := func(q *promote.Request) {
					q.Path, q.Prove = c.path, overlay.ProveAuto
					if strings.Contains(name, "added") {
						q.Add, q.Entry = true, "todo-api"
					}
				}
				res := w.want(promote.Opened, "todo-api:v2", object)
				if res.Environment != "staging" || len(res.Changes) != 1 || res.Changes[0].File != at {
					t.Errorf("%+v", res)
				}
				if name != "Argo CD" && res.Proof.Status != overlay.Proven {
					t.Errorf("proof %+v", res.Proof)
				}
				w.want(promote.Unchanged, "todo-api:v2", object)
				w.want(promote.Updated, "todo-api:v3", object)
				sha, _ := w.store.Branch(branch)
				b, _, err := w.store.ReadFile(sha, at)
				want := strings.NewReplacer("REPO", w.ref("todo-api"), "NEW", v3, "v2", "v3").Replace(c.pinned)
				if err != nil || !strings.Contains(string(b), want) || strings.Contains(string(b), v2) {
					t.Errorf("%s\nhas not %s: %v", b, want, err)
				}
				w.must(w.store.Push("main", "mei", "Take", map[string]string{at: string(b)}))
				w.want(promote.UpToDate, "todo-api:v3", object)
			})
		}
	}
}

// TestObjectBudget counts the rounds for an object: those of a directory.
func TestObjectBudget(t *testing.T) {
	for name, forge := range forges() {
		if forge.rounds == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, forge)
			w.push("todo-api:v2", 2)
			w.must(w.store.Push("main", "mei", "Objects", map[string]string{"clusters/staging/todo.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: todo}\nspec: {source: {kustomize: {images: ['" + w.ref("todo-api") + ":v1']}}}\n"}))
			w.calls.delay = 40 * time.Millisecond
			w.repo = forge.open(t, w.store, w.transport())
			w.calls.reset()
			w.want(promote.Opened, "todo-api:v2", noProof, func(q *promote.Request) { q.Path = "clusters/staging/todo.yaml" })
			if rounds := w.calls.rounds(); rounds > forge.rounds {
				t.Errorf("%d rounds, at most %d:\n%s", rounds, forge.rounds, &w.calls)
			}
		})
	}
}
