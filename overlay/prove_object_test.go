package overlay

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

// objectProof is the edit of the entry app of an object, and what building shows.
type objectProof struct {
	tree       string // of clusters/todo.yaml and what it builds
	target     string // "" is clusters/todo.yaml
	entry      string // "" is ghcr.io/acme/todo-api
	with       []string
	repository []string
	status     Status
	is         error
	says       []string // in the reason, the warnings, or the error
	changed    []string // object and field
}

// The builds of apps/todo: a base's deployment.
const proveApps = proveBase + "-- apps/todo/kustomization.yaml --\nOVERLAY\n"

func fluxObject(source, rest string) string {
	return "-- clusters/todo.yaml --\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: todo}\nspec:\n  sourceRef: {" + source + "}\n" + rest
}

func argoObject(source, kustomize string) string {
	return "-- clusters/todo.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: todo}\nspec:\n  source:\n    " + source + "\n    kustomize:\n" + kustomize
}

func objectProofs() map[string]objectProof {
	const api = "Deployment todo-api spec.template.spec.containers[0].image"
	const flux = "kind: GitRepository, name: flux-system"
	const images = "  path: ./apps/todo\n  images:\n  - name: ghcr.io/acme/todo-api\n    newTag: v1\n"
	const git = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: todo}\nspec: {url: 'https://u:hunter2@git.example/acme/todo'}\n"
	const argo = "repoURL: https://git.example/acme/config\n    path: apps/todo"
	const argoImages = "      images:\n      - ghcr.io/acme/todo-api:v1\n"
	own := []string{"https://forge.example/acme/config"}
	return map[string]objectProof{
		"Flux":                               {tree: proveApps + fluxObject(flux, images), status: Proven, changed: []string{api}},
		"Flux, the repository's root":        {tree: "\n-- kustomization.yaml --\nBASE\n-- deployment.yaml --\nDEPLOYMENT\n" + fluxObject(flux, strings.Replace(images, "./apps/todo", "./", 1)), status: Proven, changed: []string{api}},
		"Flux, no path":                      {tree: "\n-- kustomization.yaml --\nBASE\n-- deployment.yaml --\nDEPLOYMENT\n" + fluxObject(flux, strings.Replace(images, "  path: ./apps/todo\n", "", 1)), status: Proven, changed: []string{api}},
		"Flux, with a namespace and a patch": {tree: proveApps + fluxObject(flux, images+"  targetNamespace: todo\n  patches:\n  - target: {kind: Deployment}\n    patch: |\n      - {op: add, path: /spec/replicas, value: 2}\n"), status: Proven, changed: []string{strings.Replace(api, "todo-api", "todo/todo-api", 1)}},
		"Flux, a component":                  {tree: proveApps + "-- apps/c/kustomization.yaml --\nkind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nnamePrefix: a-\n" + fluxObject(flux, images+"  components: [../c]\n"), status: Proven, changed: []string{strings.Replace(api, "todo-api", "a-todo-api", 1)}},
		"Flux, in the place of the directory's": {tree: proveApps + "images: [{name: ghcr.io/acme/todo-api, newName: elsewhere.example/todo, newTag: v0}]\n" + fluxObject(flux, images),
			status: Proven, changed: []string{api}},
		"Flux, two in one file": {tree: proveApps + fluxObject(flux, images) + "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\nspec:\n  images: [{name: web}]\n",
			target: "clusters/todo.yaml#todo", status: Proven, changed: []string{api}},
		"Flux, nothing runs it":        {tree: proveApps + fluxObject(flux, strings.Replace(images, "todo-api", "todo", 1)), entry: "ghcr.io/acme/todo", is: ErrNoEffect, says: []string{"entry ghcr.io/acme/todo in clusters/todo.yaml", "nothing in the build is named so"}},
		"Flux, a pattern":              {tree: proveApps + "- pod.yaml\n-- apps/todo/pod.yaml --\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: c, image: \"ghcrXio/acme/todo-api:v1\"}]}\n" + fluxObject(flux, images), is: ErrUnwanted, says: []string{"regular expression"}},
		"Flux, no such path":           {tree: proveBase + fluxObject(flux, images), status: Skipped, says: []string{"apps/todo, which is not in this repository"}},
		"Flux, no kustomization there": {tree: proveBase + "-- apps/todo/d.yaml --\nDEPLOYMENT\n" + fluxObject(flux, images), status: Skipped, says: []string{"no kustomization file"}},
		"Flux, an artifact":            {tree: proveApps + fluxObject("kind: OCIRepository, name: todo", images), status: Skipped, says: []string{"the OCIRepository todo"}},
		"Flux, a path to fill in":      {tree: proveApps + fluxObject(flux, strings.Replace(images, "apps", "${APPS}", 1)), status: Skipped, says: []string{"placeholder ${APPS}"}},
		"Flux, another repository":     {tree: proveApps + fluxObject("kind: GitRepository, name: todo", images+git), repository: own, status: Skipped, says: []string{"https://git.example/acme/todo, which is not this repository"}},
		"Flux, the same repository":    {tree: proveApps + fluxObject("kind: GitRepository, name: todo", images+git), repository: []string{"git@git.example:acme/todo.git"}, status: Proven, changed: []string{api}},
		"Flux, a repository taken for this": {tree: proveApps + fluxObject("kind: GitRepository, name: todo", images), status: Proven, changed: []string{api},
			says: []string{"proven by building apps/todo: GitRepository todo is taken for this repository"}},
		"Flux, one taken wrongly": {tree: strings.Replace(proveTreeText(proveApps), "todo-api:v1", "other:v1", 1) + fluxObject("kind: GitRepository, name: todo", images), status: Skipped,
			says: []string{"GitRepository todo is taken for this repository, and the edit changes nothing in apps/todo"}},
		"Flux, another repository, proven with": {tree: strings.ReplaceAll(proveApps, "apps/todo", "overlays/staging") + fluxObject("kind: OCIRepository, name: todo", images), with: []string{proveTarget}, status: Proven, changed: []string{api}},
		"Flux, proven with the wrong one":       {tree: strings.ReplaceAll(strings.Replace(proveTreeText(proveApps), "todo-api:v1", "other:v1", 1), "apps/todo", "overlays/staging") + fluxObject("kind: OCIRepository, name: todo", images), with: []string{proveTarget}, is: ErrNoEffect},

		"Argo CD":                           {tree: proveApps + argoObject(argo, argoImages), repository: own, status: Proven, changed: []string{api}},
		"Argo CD, another name":             {tree: strings.Replace(proveTreeText(proveApps), "ghcr.io/acme/todo-api:v1", "todo", 1) + argoObject(argo, "      images: [todo=ghcr.io/acme/todo-api:v1]\n      namespace: todo\n      nameSuffix: -a\n"), entry: "todo", repository: own, status: Proven, changed: []string{strings.Replace(api, "todo-api", "todo/todo-api-a", 1)}},
		"Argo CD, an asterisk in another":   {tree: proveApps + "images: [{name: nginx, newName: mirror.example/nginx}]\n" + argoObject(argo, argoImages+"      - nginx=*:1.28\n"), repository: own, status: Proven, changed: []string{api}},
		"Argo CD, a repository not known":   {tree: proveApps + argoObject(argo, argoImages), status: Proven, changed: []string{api}, says: []string{"its repoURL (https://git.example/acme/config) is taken for this repository"}},
		"Argo CD, another repository":       {tree: proveApps + argoObject("repoURL: git@git.example:acme/todo.git\n    path: apps/todo", argoImages), repository: own, status: Skipped, says: []string{"acme/todo.git, which is not this repository"}},
		"Argo CD, a fixed commit":           {tree: proveApps + argoObject(argo+"\n    targetRevision: 0123abc", argoImages), repository: own, status: Skipped, says: []string{"fixed at 0123abc"}},
		"Argo CD, overridden in the source": {tree: proveApps + "-- apps/todo/.argocd-source-todo.yaml --\nkustomize: {images: []}\n" + argoObject(argo, argoImages), repository: own, status: Skipped, says: []string{"apps/todo/.argocd-source-todo.yaml overrides"}},
		"Argo CD, no path":                  {tree: proveApps + argoObject("repoURL: https://git.example/acme/config", argoImages), repository: own, status: Skipped, says: []string{"no path"}},
		"Argo CD, nothing runs it":          {tree: proveApps + argoObject(argo, strings.Replace(argoImages, "todo-api", "todo", 1)), entry: "ghcr.io/acme/todo", repository: own, is: ErrNoEffect, says: []string{"clusters/todo.yaml"}},
		"Argo CD, a directory that is gone": {tree: proveBase + argoObject(argo, argoImages), repository: own, status: Skipped, says: []string{"not in this repository"}},
		"Argo CD, a tree that fetches":      {tree: proveApps + "- https://evil.example/x.yaml\n" + argoObject(argo, argoImages), repository: own, status: Skipped, says: []string{"nothing is fetched"}},
		"ApplicationSet": {tree: proveApps + "-- clusters/todo.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: todo}\nspec:\n  template:\n    spec:\n      source:\n        repoURL: '{{repo}}'\n        path: apps/todo\n        kustomize:\n          images: [ghcr.io/acme/todo-api:v1]\n",
			repository: own, status: Proven, changed: []string{api}, says: []string{"taken for this repository"}},
		"ApplicationSet, a path to fill in": {tree: proveApps + "-- clusters/todo.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: todo}\nspec:\n  template:\n    spec:\n      source:\n        repoURL: https://git.example/acme/config\n        path: 'apps/{{name}}'\n        kustomize:\n          images: [ghcr.io/acme/todo-api:v1]\n",
			repository: own, status: Skipped, says: []string{"placeholder {{name}}"}},
		"two sources, one of which runs it": {tree: proveApps + "-- apps/other/kustomization.yaml --\nresources: []\n-- clusters/todo.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: todo}\nspec:\n  sources:\n" +
			"  - {repoURL: 'https://git.example/acme/config', path: apps/todo, kustomize: {images: ['ghcr.io/acme/todo-api:v1']}}\n  - {repoURL: 'https://git.example/acme/config', path: base, kustomize: {images: ['nginx:1.26']}}\n",
			repository: own, status: Proven, changed: []string{api}},
	}
}

func TestProveObjects(t *testing.T) {
	for name, c := range objectProofs() {
		t.Run(name, func(t *testing.T) {
			if c.target == "" {
				c.target = "clusters/todo.yaml"
			}
			if c.entry == "" {
				c.entry = proveApp
			}
			files := proveTree(t, c.tree)
			entries, err := Entries(files, c.target)
			if err != nil {
				t.Fatal(err)
			}
			var sets []Set
			for _, e := range entries {
				if e.Name == c.entry {
					sets = append(sets, Set{Entry: e, To: image.Reference{Repository: e.Runs().Repository, Tag: "v2", Digest: proveNew}})
				}
			}
			e, err := Edit(files, sets)
			if err != nil || len(e.Changes) != 1 {
				t.Fatalf("Edit: %+v, %v", e, err)
			}
			got, err := Prove(context.Background(), files, append([]string{c.target}, c.with...), e, ProveAuto, c.repository...)
			if !errors.Is(err, c.is) {
				t.Fatalf("got %+v, error %v; want %v", got, err, c.is)
			}
			said := got.Reason + strings.Join(got.Warnings, "\n")
			if err != nil {
				said = err.Error()
			}
			for _, s := range c.says {
				if !strings.Contains(said, s) {
					t.Errorf("%q does not say %q", said, s)
				}
			}
			var places []string
			for _, r := range got.Changed {
				places = append(places, r.Object+" "+r.Field)
				if r.Dir != c.target {
					t.Errorf("%+v is of %s, want %s", r, r.Dir, c.target)
				}
			}
			if diff := cmp.Diff(c.changed, places); diff != "" || got.Status != c.status || strings.Contains(said, "hunter2") {
				t.Errorf("status %q, want %q; says %q; %s", got.Status, c.status, said, diff)
			}
			if len(c.says) == 0 && len(got.Warnings) > 0 {
				t.Errorf("warnings %q", got.Warnings)
			}
			required, err := Prove(context.Background(), files, append([]string{c.target}, c.with...), e, ProveRequired, c.repository...)
			if (c.status == Skipped) != errors.Is(err, ErrUnproven) {
				t.Errorf("required: %+v, %v", required, err)
			}
		})
	}
}

// TestProveObjectsTogether holds that two objects which build one directory with
// images of their own do not meddle with each other, nor with its own kustomization.
func TestProveObjectsTogether(t *testing.T) {
	one := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: eu}\nspec:\n  sourceRef: {kind: GitRepository, name: flux-system}\n  path: overlays/staging\n  images:\n  - name: ghcr.io/acme/todo-api\n    newTag: v1\n"
	two := strings.Replace(strings.Replace(one, "eu}", "us}", 1), "acme/todo-api", "acme/nothing", 1)
	files := proveTree(t, proveBase+"-- overlays/staging/kustomization.yaml --\nOVERLAY\nENTRY\n-- clusters/all.yaml --\n"+one+"---\n"+two)
	prove := func(targets ...string) (Proof, error) {
		var sets []Set
		for _, target := range targets {
			entries, err := Entries(files, target)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				sets = append(sets, Set{Entry: e, To: image.Reference{Repository: e.Runs().Repository, Tag: "v2", Digest: proveNew}})
			}
		}
		e, err := Edit(files, sets)
		if err != nil {
			t.Fatal(err)
		}
		return Prove(context.Background(), files, targets, e, ProveRequired)
	}
	if got, err := prove("clusters/all.yaml#eu", proveTarget); err != nil || len(got.Changed) != 2 {
		t.Errorf("an object and its directory: %+v, %v", got, err)
	}
	if got, err := prove("clusters/all.yaml#eu", "clusters/all.yaml#us"); !errors.Is(err, ErrNoEffect) || !strings.Contains(err.Error(), "entry ghcr.io/acme/nothing") {
		t.Errorf("one of two changes nothing: %+v, %v", got, err)
	}
}
