package overlay

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tagboat/image"
)

const (
	proveApp    = "ghcr.io/acme/todo-api"
	proveOld    = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	proveNew    = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	proveTarget = "overlays/staging"
)

// proveTree is a tree as text: "-- path --" before each file. DEPLOYMENT is a
// deployment of two containers, BASE a kustomization that lists it, OVERLAY the
// beginning of an overlay of base.
func proveTree(t *testing.T, text string) fstest.MapFS {
	t.Helper()
	words := strings.NewReplacer(
		"BASE\n", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- deployment.yaml\n",
		"OVERLAY\n", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- ../../base\n",
		"DEPLOYMENT\n", `apiVersion: apps/v1
kind: Deployment
metadata:
  name: todo-api
  labels: {app: todo-api}
spec:
  template:
    spec:
      containers:
      - name: api
        image: ghcr.io/acme/todo-api:v1
      - name: proxy
        image: nginx:1.27
`, "ENTRY\n", "images:\n- name: ghcr.io/acme/todo-api\n  newTag: v1\n", "OLD", proveOld, "NEW", proveNew)
	files := fstest.MapFS{}
	for _, part := range strings.Split("\n"+text, "\n-- ")[1:] {
		name, content, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("no file in %q", part)
		}
		files[name] = &fstest.MapFile{Data: []byte(words.Replace(content + "\n")), Mode: 0o644}
	}
	return files
}

// proveEdit promotes every entry of dir that is named, or else runs the image, to
// v2 with its digest.
func proveEdit(t *testing.T, files fstest.MapFS, dir string, names ...string) Edited {
	t.Helper()
	entries, err := Entries(files, dir)
	if err != nil {
		t.Fatal(err)
	}
	var sets []Set
	for _, e := range entries {
		if slices.Contains(names, e.Name) || len(names) == 0 && e.Runs().Repository == proveApp {
			sets = append(sets, Set{Entry: e, To: image.Reference{Repository: e.Runs().Repository, Tag: "v2", Digest: proveNew}})
		}
	}
	if len(sets) == 0 {
		t.Fatalf("no entry %q in %+v", names, entries)
	}
	e, err := Edit(files, sets)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// proveCase is a tree in which the overlay's entry is promoted.
type proveCase struct {
	tree    string
	dir     string   // of the entry; "" is overlays/staging
	dirs    []string // to prove; nil is dir
	entries []string // names; nil is the one that runs the image
}

func (c proveCase) run(t *testing.T, mode Mode) (Proof, error) {
	t.Helper()
	files := proveTree(t, c.tree)
	dir := c.dir
	if dir == "" {
		dir = proveTarget
	}
	dirs := c.dirs
	if dirs == nil {
		dirs = []string{dir}
	}
	return Prove(context.Background(), files, dirs, proveEdit(t, files, dir, c.entries...), mode)
}

const proveBase = `
-- base/kustomization.yaml --
BASE
-- base/deployment.yaml --
DEPLOYMENT
`

// provenCase is one that is proven, whatever the mode.
type provenCase struct {
	proveCase
	want     []string // object and field of each image that changes
	warnings int
}

func provenCases() map[string]provenCase {
	const api = "Deployment todo-api spec.template.spec.containers[0].image"
	return map[string]provenCase{
		"base and overlay": {
			proveCase{tree: proveBase + "-- overlays/staging/kustomization.yaml --\nOVERLAY\nENTRY\n"},
			[]string{api}, 0},
		"the repository's root": {
			proveCase{dir: ".", tree: "\n-- kustomization.yaml --\nBASE\nENTRY\n-- deployment.yaml --\nDEPLOYMENT\n"},
			[]string{api}, 0},
		"kustomization.yml": {
			proveCase{tree: "\n-- base/kustomization.yml --\nBASE\n-- base/deployment.yaml --\nDEPLOYMENT\n-- overlays/staging/kustomization.yml --\nOVERLAY\nENTRY\n"},
			[]string{api}, 0},
		"Kustomization, no kind, bases": {
			proveCase{tree: proveBase + "-- overlays/staging/Kustomization --\nbases: [../../base]\nENTRY\n"},
			[]string{api}, 0},
		"digest alone": {
			proveCase{tree: proveBase + "-- overlays/staging/kustomization.yaml --\nOVERLAY\nimages:\n- name: ghcr.io/acme/todo-api\n  digest: OLD\n"},
			[]string{api}, 0},
		"newName over a placeholder": {
			proveCase{tree: strings.Replace(proveTreeText(proveBase), "ghcr.io/acme/todo-api:v1", "controller:latest", 1) +
				"-- overlays/staging/kustomization.yaml --\nOVERLAY\nimages:\n- name: controller\n  newName: ghcr.io/acme/todo-api\n  newTag: v1\n"},
			[]string{api}, 0},
		"prefix, namespace, labels": {
			proveCase{tree: proveBase + "-- overlays/staging/kustomization.yaml --\nOVERLAY\nnamePrefix: stg-\nnamespace: todo\ncommonLabels: {env: staging}\nENTRY\n"},
			[]string{"Deployment todo/stg-todo-api spec.template.spec.containers[0].image"}, 0},
		"one image in several places": {
			proveCase{tree: proveBase + `-- overlays/staging/kustomization.yaml --
OVERLAY
- cron.yaml
ENTRY
-- overlays/staging/cron.yaml --
apiVersion: batch/v1
kind: CronJob
metadata: {name: tidy}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          initContainers:
          - {name: wait, image: ghcr.io/acme/todo-api}
          containers:
          - {name: tidy, image: "ghcr.io/acme/todo-api:v0@OLD"}
`},
			[]string{api, "CronJob tidy spec.jobTemplate.spec.template.spec.initContainers[0].image", "CronJob tidy spec.jobTemplate.spec.template.spec.containers[0].image"}, 0},
		"several entries of one repository": {
			proveCase{tree: `
-- overlays/staging/kustomization.yaml --
resources: [all.yaml]
images:
- {name: web, newName: ghcr.io/acme/todo-api, newTag: v1}
- {name: worker, newName: ghcr.io/acme/todo-api, newTag: v1}
-- overlays/staging/all.yaml --
apiVersion: v1
kind: Pod
metadata: {name: all}
spec:
  containers:
  - {name: a, image: web}
  - {name: b, image: worker}
`},
			[]string{"Pod all spec.containers[0].image", "Pod all spec.containers[1].image"}, 0},
		"a component, through the overlay that uses it": {
			proveCase{dir: "components/pin", dirs: []string{"components/pin", proveTarget}, tree: proveBase + `-- components/pin/kustomization.yaml --
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
ENTRY
-- overlays/staging/kustomization.yaml --
OVERLAY
components: [../../components/pin]
`},
			[]string{api}, 0},
		"a custom resource that configurations declare": {
			proveCase{tree: `
-- overlays/staging/kustomization.yaml --
resources: [rollout.yaml]
configurations: [config/images.yaml]
ENTRY
-- overlays/staging/config/images.yaml --
images:
- {kind: Widget, path: spec/image}
-- overlays/staging/rollout.yaml --
apiVersion: acme.example/v1
kind: Widget
metadata: {name: w}
spec: {image: "ghcr.io/acme/todo-api:v1"}
`},
			[]string{"Widget w spec.image"}, 0},
		"a custom resource with containers": {
			proveCase{tree: `
-- overlays/staging/kustomization.yaml --
resources: [rollout.yaml]
ENTRY
-- overlays/staging/rollout.yaml --
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: w}
spec: {template: {spec: {containers: [{name: c, image: "ghcr.io/acme/todo-api:v1"}]}}}
`},
			[]string{"Rollout w spec.template.spec.containers[0].image"}, 0},
		"replacements that copy the image, the tag and the digest": {
			proveCase{tree: proveBase + `-- overlays/staging/kustomization.yaml --
OVERLAY
replacements: [{path: copy.yaml}]
images:
- name: ghcr.io/acme/todo-api
  newTag: v1
  digest: OLD
-- overlays/staging/copy.yaml --
- source: {kind: Deployment, fieldPath: spec.template.spec.containers.0.image}
  targets:
  - select: {kind: Deployment}
    options: {create: true}
    fieldPaths: [metadata.annotations.runs]
`},
			[]string{"Deployment todo-api metadata.annotations.runs", api}, 0},
		"a mirror that a transformer writes in": {
			proveCase{tree: proveBase + `-- overlays/staging/kustomization.yaml --
OVERLAY
ENTRY
transformers:
- |
  apiVersion: builtin
  kind: ImageTagTransformer
  metadata: {name: mirror}
  imageTag: {name: ghcr.io/acme/todo-api, newName: mirror.example/todo-api}
`},
			[]string{api}, 1},
		"a name that is a pattern": {
			proveCase{tree: proveBase + `-- overlays/staging/kustomization.yaml --
OVERLAY
- other.yaml
images:
- name: ghcr.io/acme/todo-api
  newName: ghcr.io/acme/todo-api
  newTag: v1
-- overlays/staging/other.yaml --
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {containers: [{name: c, image: "ghcrXio/acme/todo-api:v1"}]}
`},
			[]string{api, "Pod other spec.containers[0].image"}, 1},
		"generators, patches and the rest": {
			proveCase{tree: proveBase + `-- overlays/staging/kustomization.yaml --
OVERLAY
ENTRY
configMapGenerator:
- {name: settings, files: [app.ini, k=other.ini], envs: [app.env], literals: [a=b]}
secretGenerator:
- {name: keys, env: secret.env}
patches:
- path: patch.yaml
- target: {kind: Deployment}
  patch: |
    - {op: add, path: /spec/replicas, value: 3}
patchesStrategicMerge:
- |
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: todo-api, annotations: {a: https://acme.example}}
patchesJson6902:
- {path: ops.json, target: {group: apps, version: v1, kind: Deployment, name: todo-api}}
generators: [generator.yaml]
transformers: [plugins]
validators: []
-- overlays/staging/app.ini --
url=https://acme.example
-- overlays/staging/other.ini --
x=y
-- overlays/staging/app.env --
A=https://acme.example
-- overlays/staging/secret.env --
PASSWORD=hunter22
-- overlays/staging/patch.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: todo-api}
spec: {paused: true}
-- overlays/staging/ops.json --
[{"op": "add", "path": "/metadata/annotations/x", "value": "https://acme.example"}]
-- overlays/staging/generator.yaml --
apiVersion: builtin
kind: ConfigMapGenerator
metadata: {name: generated}
name: generated
files: [app.ini]
-- overlays/staging/plugins/kustomization.yaml --
resources: [label.yaml]
-- overlays/staging/plugins/label.yaml --
apiVersion: builtin
kind: PatchTransformer
metadata: {name: more}
path: patch.yaml
`},
			[]string{api}, 0},
	}
}

func TestProveProven(t *testing.T) {
	for name, c := range provenCases() {
		t.Run(name, func(t *testing.T) {
			got, err := c.run(t, ProveRequired)
			if err != nil {
				t.Fatal(err)
			}
			var places []string
			for _, r := range got.Changed {
				places = append(places, r.Object+" "+r.Field)
				if !strings.HasSuffix(r.To, proveNew) {
					t.Errorf("%s %s becomes %s, want the new digest", r.Object, r.Field, r.To)
				}
			}
			if diff := cmp.Diff(c.want, places, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Error(diff)
			}
			if got.Status != Proven || got.Reason != "" || len(got.Warnings) != c.warnings {
				t.Errorf("status %q, reason %q, warnings %q", got.Status, got.Reason, got.Warnings)
			}
		})
	}
}

// proveTreeText writes the words of proveTree out, for a text that changes them.
func proveTreeText(text string) string {
	return strings.ReplaceAll(text, "DEPLOYMENT\n", `apiVersion: apps/v1
kind: Deployment
metadata: {name: todo-api}
spec:
  template:
    spec:
      containers:
      - name: api
        image: ghcr.io/acme/todo-api:v1
`)
}

func TestProveShowsEachImage(t *testing.T) {
	c := proveCase{tree: proveBase + "-- overlays/staging/kustomization.yaml --\nOVERLAY\nnamespace: todo\nENTRY\n"}
	got, err := c.run(t, ProveAuto)
	if err != nil {
		t.Fatal(err)
	}
	want := Proof{Status: Proven, Changed: []Rendered{{
		Dir: proveTarget, Object: "Deployment todo/todo-api", Field: "spec.template.spec.containers[0].image", Container: "api",
		From: proveApp + ":v1", To: proveApp + ":v2@" + proveNew}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
