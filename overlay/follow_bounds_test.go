package overlay

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestProveIsBounded(t *testing.T) {
	doubled := proveBase + "-- overlays/staging/kustomization.yaml --\nresources: [../../base, ../l0/a, ../l0/b]\nENTRY\n"
	for level := range 16 {
		for _, side := range []string{"a", "b"} {
			content := fmt.Sprintf("namePrefix: %s%d-\nresources: [../../l%d/a, ../../l%d/b]\n", side, level, level+1, level+1)
			if level == 15 {
				content = "namePrefix: x-\nconfigMapGenerator: [{name: c}]\n"
			}
			doubled += fmt.Sprintf("-- overlays/l%d/%s/kustomization.yaml --\n%s", level, side, content)
		}
	}
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1)
	}
	many := "resources: ["
	for i := range 2100 {
		many += fmt.Sprintf("f%d.yaml, ", i)
	}
	many = proveStaging("OVERLAY\n- ../many\nENTRY\n") + "-- overlays/many/kustomization.yaml --\n" + many + "]\n"
	for name, c := range map[string]struct {
		tree string
		more fstest.MapFS
		says string
	}{
		"directories that double at each level": {doubled, nil, "builds more than 5000 directories"},
		"aliases of aliases":                    {proveStaging("OVERLAY\n- cm.yaml\nENTRY\n") + "-- overlays/staging/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: laugh}\n" + laughs, nil, "overlays/staging/cm.yaml: its YAML aliases expand to more than"},
		"an alias in its own anchor":            {proveStaging("OVERLAY\n- cm.yaml\nENTRY\n") + "-- overlays/staging/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: loop}\ndata: &d {a: *d}\n", nil, "its YAML aliases"},
		"aliases in an inline patch":            {proveStaging("OVERLAY\nENTRY\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: laugh}\n    " + strings.ReplaceAll(strings.TrimSpace(laughs), "\n", "\n    ") + "\n"), nil, "overlays/staging/kustomization.yaml: its YAML aliases"},
		"a large file":                          {proveStaging("OVERLAY\n- big.yaml\nENTRY\n"), fstest.MapFS{"overlays/staging/big.yaml": {Data: make([]byte, 10<<20+1)}}, "big.yaml has more than the 10 MB"},
		"a large kustomization":                 {proveStaging("OVERLAY\n- ../big\nENTRY\n"), fstest.MapFS{"overlays/big/kustomization.yaml": {Data: make([]byte, 10<<20+1)}}, "overlays/big/kustomization.yaml has more than the 10 MB"},
		"many large files": {proveStaging("OVERLAY\n- ../many\nENTRY\n") + "-- overlays/many/kustomization.yaml --\nconfigMapGenerator: [{name: c, files: [a1, a2, a3, a4]}]\n",
			func() fstest.MapFS {
				m := fstest.MapFS{}
				for i := 1; i <= 4; i++ {
					m[fmt.Sprintf("overlays/many/a%d", i)] = &fstest.MapFile{Data: make([]byte, 9<<20)}
				}
				return m
			}(), "more than 32 MB"},
		"many files": {many, func() fstest.MapFS {
			m := fstest.MapFS{}
			for i := range 2100 {
				m[fmt.Sprintf("overlays/many/f%d.yaml", i)] = &fstest.MapFile{}
			}
			return m
		}(), "more than 2000 files"},
	} {
		t.Run(name, func(t *testing.T) {
			files := proveTree(t, c.tree)
			for name, f := range c.more {
				files[name] = f
			}
			e := proveEdit(t, files, proveTarget)
			got, err := Prove(t.Context(), files, []string{proveTarget}, e, ProveAuto)
			if err != nil || got.Status != Skipped || !strings.Contains(got.Reason, c.says) {
				t.Errorf("got %+v, error %v; want it skipped: %s", got, err, c.says)
			}
		})
	}
}

// Aliases as people write them are no bomb.
func TestProveExpandsAliases(t *testing.T) {
	c := proveCase{tree: `
-- overlays/staging/kustomization.yaml --
resources: [p.yaml]
ENTRY
-- overlays/staging/p.yaml --
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - &c {name: a, image: ghcr.io/acme/todo-api}
  - {<<: *c, name: b}
`}
	got, err := c.run(t, ProveRequired)
	if err != nil || len(got.Changed) != 2 {
		t.Errorf("%+v, %v; want both containers changed", got, err)
	}
}
