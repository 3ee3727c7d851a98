//go:build e2e

package overlay

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"tagboat/image"
)

const oraclePatch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: stub-0, annotations: {a: b}}\n"

const oracleTarget = "a/b/c/overlay"

// oracleTree puts a real kustomization into a tree that is made for it: a
// deployment of all its images for each resource, a patch for each path, the
// objects that its inline patches name.
func oracleTree(raw []byte) fstest.MapFS {
	files := fstest.MapFS{oracleTarget + "/kustomization.yaml": {Data: raw}}
	var k types.Kustomization
	if k.Unmarshal(raw) != nil {
		return files
	}
	k.FixKustomization()
	stub := func(name, content string) {
		if at := path.Join(oracleTarget, name); oracleInside(at) && !remote(name) {
			files[at] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	for i, r := range k.Resources {
		object := oracleDeployment(fmt.Sprintf("stub-%d", i), "apps/v1", "Deployment", k.Images)
		if i == 0 {
			object += oracleNamed(&k)
		}
		if ext := path.Ext(r); ext == ".yaml" || ext == ".yml" || ext == ".json" {
			stub(r, object)
			continue
		}
		stub(r+"/kustomization.yaml", "resources: [stub.yaml]\n")
		stub(r+"/stub.yaml", object)
	}
	for _, c := range k.Components {
		stub(c+"/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {a: b}\n")
	}
	for _, p := range append(k.Patches, k.PatchesJson6902...) {
		if p.Path != "" && p.Target != nil {
			stub(p.Path, `[{"op": "add", "path": "/metadata/annotations/patched", "value": "stub"}]`)
		} else if p.Path != "" {
			stub(p.Path, oraclePatch)
		}
	}
	for _, p := range k.PatchesStrategicMerge {
		if !strings.Contains(string(p), "\n") {
			stub(string(p), oraclePatch)
		}
	}
	for _, c := range k.Configurations {
		stub(c, "namespace: []\n")
	}
	var sources []types.KvPairSources
	for _, g := range k.ConfigMapGenerator {
		sources = append(sources, g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		sources = append(sources, g.KvPairSources)
	}
	for _, s := range sources {
		for _, f := range s.FileSources {
			stub(f[strings.LastIndex(f, "=")+1:], "x\n")
		}
		for _, f := range s.EnvSources {
			stub(f, "A=b\n")
		}
	}
	return files
}

func oracleInside(name string) bool { return !strings.HasPrefix(name, "../") }

func oracleDeployment(name, apiVersion, kind string, images []types.Image) string {
	out := fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %q, labels: {app: stub}, annotations: {stub: stub}}\nspec:\n  replicas: 1\n  template:\n    metadata: {labels: {app: stub}, annotations: {stub: stub}}\n    spec:\n      containers:\n", apiVersion, kind, name)
	for i, entry := range images {
		out += fmt.Sprintf("      - {name: c%d, image: %q, args: [x], env: [{name: A, value: b}], resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: 1Gi}}}\n", i, entry.Name+":stub")
	}
	return out + "      - {name: other, image: other.example/app}\n"
}

// oracleNamed makes the objects that a kustomization's inline patches and merging
// generators name.
func oracleNamed(k *types.Kustomization) string {
	out, made := "", map[string]bool{}
	add := func(apiVersion, kind, name string) {
		if key := kind + name; apiVersion != "" && kind != "" && name != "" && !made[key] {
			made[key] = true
			out += oracleDeployment(name, apiVersion, kind, k.Images)
		}
	}
	texts := []string{}
	for _, p := range k.PatchesStrategicMerge {
		texts = append(texts, string(p))
	}
	for _, p := range k.Patches {
		if p.Target == nil {
			texts = append(texts, p.Patch)
		}
	}
	for _, text := range texts {
		var object struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct{ Name string }
		}
		if yaml.Unmarshal([]byte(text), &object) == nil {
			add(object.APIVersion, object.Kind, object.Metadata.Name)
		}
	}
	for _, r := range k.Replicas {
		add("apps/v1", "Deployment", r.Name)
	}
	for _, g := range k.ConfigMapGenerator {
		if g.Behavior == "merge" || g.Behavior == "replace" {
			add("v1", "ConfigMap", g.Name)
		}
	}
	return out
}

// Real kustomizations, each in a tree made for it: all entries that can be edited
// are promoted at once, and the binary agrees with the proof.
func TestOracleCorpus(t *testing.T) {
	names, _ := filepath.Glob("../../shared/corpus/*.yaml")
	if len(names) == 0 {
		t.Skip("THE CORPUS IS NOT HERE: ../../shared/corpus/*.yaml has no files")
	}
	outcomes := map[string]int{}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			outcomes[oracleOutcome(t, oracleTree(raw))]++
		})
	}
	t.Logf("%d files: %v", len(names), outcomes)
}

func oracleOutcome(t *testing.T, files fstest.MapFS) string {
	entries, err := Entries(files, oracleTarget)
	if err != nil {
		return "not read"
	}
	var sets []Set
	for _, entry := range entries {
		sets = append(sets, Set{Entry: entry, To: image.Reference{Repository: entry.Runs().Repository, Tag: "v2", Digest: proveNew}})
	}
	e, err := Edit(files, sets)
	if err != nil {
		return "not edited"
	}
	proof, err := newOracle(t, files).agree(t, files, []string{oracleTarget}, e)
	switch {
	case err != nil:
		t.Log(err)
		return "refused"
	case proof.Status == Skipped:
		t.Log(proof.Reason)
		if strings.Contains(proof.Reason, "broken before") {
			return "broken before"
		}
		return "skipped"
	}
	return string(proof.Status)
}
