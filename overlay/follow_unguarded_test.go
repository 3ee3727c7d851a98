package overlay

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Without the scan, kustomize fetches from each position that
// TestProveNeverLeavesTheProcess tries: that test could fail.
func TestProveWatchSeesWhatKustomizeDoes(t *testing.T) {
	outside := followWatch(t)
	fetched := func(tree string) bool {
		before := len(outside.calls())
		m := filesys.MakeFsInMemory()
		for name, f := range proveTree(t, tree) {
			if err := m.WriteFile("/"+name, f.Data); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(m, "/"+proveTarget); err == nil {
			t.Error("kustomize builds what does not exist")
		}
		return len(outside.calls()) > before
	}
	trees := followEverywhere(outside.url + "/acme/base")
	for _, position := range slices.Sorted(maps.Keys(trees)) {
		if !strings.HasPrefix(position, "generators") && strings.Contains(position, " ConfigMapGenerator ") || strings.Contains(position, " SecretGenerator ") {
			continue // kustomize refuses it: not a transformer
		}
		if !fetched(trees[position]) {
			t.Errorf("kustomize does not fetch from %s", position)
		}
	}
}
