package overlay

import (
	"errors"
	"strings"
	"testing"
)

func proveStaging(kustomization string) string {
	return proveBase + "-- overlays/staging/kustomization.yaml --\n" + kustomization
}

// refusedCase is one that no mode but off lets through.
type refusedCase struct {
	proveCase
	want error
	says []string
}

func refusedCases() map[string]refusedCase {
	return map[string]refusedCase{
		"a name in other words": {
			proveCase{entries: []string{"todo-api"}, tree: proveStaging("OVERLAY\nimages: [{name: todo-api, newTag: v1}]\n")},
			ErrNoEffect, []string{"entry todo-api in overlays/staging/kustomization.yaml", "perhaps ghcr.io/acme/todo-api:v1 (Deployment todo-api spec.template.spec.containers[0].image) is meant: then name the entry ghcr.io/acme/todo-api", "the build runs ghcr.io/acme/todo-api:v1", "nginx:1.27"},
		},
		"a slip of the pen": {
			proveCase{entries: []string{"ghcr.io/acme/todo-apy"}, tree: proveStaging("OVERLAY\nimages: [{name: ghcr.io/acme/todo-apy, newTag: v1}]\n")},
			ErrNoEffect, []string{"perhaps ghcr.io/acme/todo-api:v1"},
		},
		"Docker Hub's other name": {
			proveCase{entries: []string{"docker.io/library/nginx"}, tree: proveStaging("OVERLAY\nimages: [{name: docker.io/library/nginx, newTag: v1}]\n")},
			ErrNoEffect, []string{"nginx:1.27 (Deployment todo-api spec.template.spec.containers[1].image) is the same image under another name", "name the entry nginx"},
		},
		"nothing like it": {
			proveCase{entries: []string{"quay.io/else"}, tree: proveStaging("OVERLAY\nimages: [{name: quay.io/else, newTag: v1}]\n")},
			ErrNoEffect, []string{"nothing in the build is named so"},
		},
		"a base that renames": {
			proveCase{entries: []string{"ghcr.io/acme/todo-api"}, tree: `
-- base/kustomization.yaml --
BASE
images: [{name: ghcr.io/acme/todo-api, newName: mirror.example/todo-api}]
-- base/deployment.yaml --
DEPLOYMENT
-- overlays/staging/kustomization.yaml --
OVERLAY
ENTRY
`},
			ErrNoEffect, []string{"base/kustomization.yaml renames it to mirror.example/todo-api before: name the entry mirror.example/todo-api"},
		},
		"an environment variable, an ephemeral container and a custom resource": {
			proveCase{tree: `
-- overlays/staging/kustomization.yaml --
resources: [all.yaml]
ENTRY
-- overlays/staging/all.yaml --
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: c, image: busybox, env: [{name: JOB_IMAGE, value: "ghcr.io/acme/todo-api:v1"}]}
  ephemeralContainers:
  - {name: debug, image: "ghcr.io/acme/todo-api:v1"}
---
apiVersion: acme.example/v1
kind: Widget
metadata: {name: w}
spec: {image: "ghcr.io/acme/todo-api:v1"}
`},
			ErrNoEffect, []string{
				"(Pod p spec.containers[0].env[0].value) stands in a field that kustomize does not rewrite: declare it in a file under configurations: as images: [{kind: Pod, path: spec/containers[]/env[]/value}]",
				"path: spec/ephemeralContainers[]/image}", "images: [{kind: Widget, path: spec/image}]",
			},
		},
		"a patch of another repository, which is applied first": {
			proveCase{tree: proveStaging("OVERLAY\nENTRY\npatches: [{path: p.yaml}]\n") + `-- overlays/staging/p.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: todo-api}
spec: {template: {spec: {containers: [{name: api, image: "quay.io/acme/todo-api:v9"}]}}}
`},
			ErrNoEffect, []string{"perhaps quay.io/acme/todo-api:v9"},
		},
		"a transformer that comes after": {
			proveCase{tree: proveStaging("OVERLAY\nENTRY\ntransformers: [t.yaml]\n") + `-- overlays/staging/t.yaml --
apiVersion: builtin
kind: ImageTagTransformer
metadata: {name: t}
imageTag: {name: ghcr.io/acme/todo-api, newTag: v7}
`},
			ErrNoEffect, []string{"ghcr.io/acme/todo-api:v7 (Deployment todo-api spec.template.spec.containers[0].image) is set after the entry, by overlays/staging/kustomization.yaml: transformers t.yaml"},
		},
		"a tag that kustomize does not take for one": {
			proveCase{tree: "\n-- overlays/staging/kustomization.yaml --\nresources: [p.yaml]\nENTRY\n-- overlays/staging/p.yaml --\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: 'ghcr.io/acme/todo-api:v1+build'}]}\n"},
			ErrNoEffect, []string{"ghcr.io/acme/todo-api:v1+build", "does not match the entry's name"},
		},
		"one entry of several matches nothing": {
			proveCase{tree: `
-- overlays/staging/kustomization.yaml --
resources: [p.yaml]
images:
- {name: web, newName: ghcr.io/acme/todo-api, newTag: v1}
- {name: worker, newName: ghcr.io/acme/todo-api, newTag: v1}
-- overlays/staging/p.yaml --
apiVersion: v1
kind: Pod
metadata: {name: all}
spec: {containers: [{name: a, image: web}, {name: b, image: web}]}
`},
			ErrNoEffect, []string{"entry worker"},
		},
		"nothing but a copy of the tag": {
			proveCase{tree: proveStaging("OVERLAY\nENTRY\ntransformers: [t.yaml]\n") + `-- overlays/staging/t.yaml --
apiVersion: builtin
kind: ImageTagTransformer
metadata: {name: t}
imageTag: {name: ghcr.io/acme/todo-api, newTag: v7}
`},
			ErrNoEffect, []string{"v7"},
		},
		"a component that no overlay's image answers to": {
			proveCase{dir: "components/pin", dirs: []string{proveTarget}, entries: []string{"else"}, tree: proveStaging("OVERLAY\ncomponents: [../../components/pin]\n") +
				"-- components/pin/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages: [{name: else, newTag: v1}]\n"},
			ErrNoEffect, []string{"entry else in components/pin/kustomization.yaml"},
		},
		"a name that matches another repository": {
			proveCase{tree: proveStaging("OVERLAY\n- other.yaml\nENTRY\n") + "-- overlays/staging/other.yaml --\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: c, image: \"ghcrXio/acme/todo-api:v1\"}]}\n"},
			ErrUnwanted, []string{"Pod other spec.containers[0].image: ghcrXio/acme/todo-api:v1 → ghcrXio/acme/todo-api:v2@", `regular expression, and it matches ghcrXio/acme/todo-api too`},
		},
		"a configuration's name that changes with it": {
			proveCase{tree: proveStaging(`OVERLAY
- cm.yaml
ENTRY
replacements:
- source: {kind: Deployment, fieldPath: spec.template.spec.containers.0.image}
  targets:
  - select: {kind: ConfigMap}
    fieldPaths: [metadata.name]
    options: {delimiter: "-", index: 0}
`) + "-- overlays/staging/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x-y}\n"},
			ErrUnwanted, []string{"ConfigMap ghcr.io/acme/todo-api:v2@", "is new"},
		},
		"the tag within other text": {
			proveCase{tree: proveStaging(`OVERLAY
ENTRY
replacements:
- source: {kind: Deployment, fieldPath: spec.template.spec.containers.0.image, options: {delimiter: ":", index: 1}}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [metadata.labels.app]
`)},
			ErrUnwanted, []string{"Deployment todo-api metadata.labels.app: v1 → v2@sha256"},
		},
		"a Secret": {
			proveCase{tree: proveStaging(`OVERLAY
- secret.yaml
ENTRY
replacements:
- source: {kind: Deployment, fieldPath: spec.template.spec.containers.0.image}
  targets:
  - select: {kind: Secret}
    fieldPaths: [stringData.config]
    options: {delimiter: " ", index: 1}
`) + "-- overlays/staging/secret.yaml --\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: n}\nstringData: {config: 'hunter2secret image'}\n"},
			ErrUnwanted, []string{"Secret n/s data"},
		},
	}
}

func TestProveRefuses(t *testing.T) {
	for name, c := range refusedCases() {
		t.Run(name, func(t *testing.T) {
			got, err := c.run(t, ProveAuto)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %+v, error %v; want %v", got, err, c.want)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v\ndoes not say %q", err, s)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows a secret", err)
			}
		})
	}
}
