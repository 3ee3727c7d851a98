//go:build e2e

package overlay

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// oracle is kustomize's own binary, v5.8.2.
type oracle struct{ program, dir string }

func newOracle(t *testing.T, files fstest.MapFS) oracle {
	t.Helper()
	o := oracle{program: os.Getenv("TAGBOAT_KUSTOMIZE"), dir: t.TempDir()}
	if o.program == "" {
		t.Skip("NOT COMPARED WITH KUSTOMIZE: TAGBOAT_KUSTOMIZE names no kustomize v5.8.2")
	}
	for name, f := range files {
		o.write(t, name, f.Data)
	}
	return o
}

func (o oracle) write(t *testing.T, name string, content []byte) {
	t.Helper()
	at := filepath.Join(o.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, content, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// build gives each scalar of each object, by object and field.
func (o oracle) build(t *testing.T, dir string) (map[string]string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), o.program, "build", filepath.Join(o.dir, filepath.FromSlash(dir)))
	cmd.Env = []string{"PATH=", "HOME=" + o.dir, "HTTP_PROXY=127.0.0.1:1", "HTTPS_PROXY=127.0.0.1:1"}
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(out)))
	all := map[string]string{}
	for {
		var object map[string]any
		if decoder.Decode(&object) != nil {
			return all, nil
		}
		meta, _ := object["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		if ns, _ := meta["namespace"].(string); ns != "" {
			name = ns + "/" + name
		}
		kind, _ := object["kind"].(string)
		oracleFlatten(all, kind+" "+name+" ", "", object)
	}
}

func oracleFlatten(all map[string]string, object, field string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			oracleFlatten(all, object, joinField(field, key), item)
		}
	case []any:
		for i, item := range v {
			oracleFlatten(all, object, field+"["+strconv.Itoa(i)+"]", item)
		}
	default:
		raw, _ := yaml.Marshal(v)
		all[object+field] = strings.TrimSuffix(string(raw), "\n")
		if s, ok := v.(string); ok {
			all[object+field] = s
		}
	}
}

// oracleChange is one difference between two builds of the binary.
type oracleChange struct{ Dir, Place, From, To string }

// compare builds dirs before and after the edit. A build that fails is in broken.
func (o oracle) compare(t *testing.T, dirs []string, e Edited) (changes []oracleChange, broken []string) {
	t.Helper()
	befores := map[string]map[string]string{}
	for _, dir := range dirs {
		built, err := o.build(t, dir)
		if err != nil {
			broken = append(broken, dir)
		}
		befores[dir] = built
	}
	for _, f := range e.Files {
		o.write(t, f.Path, f.After)
	}
	for _, dir := range dirs {
		after, err := o.build(t, dir)
		if err != nil || slices.Contains(broken, dir) {
			continue
		}
		places := maps.Clone(after)
		maps.Copy(places, befores[dir])
		for place := range places {
			if from, to := befores[dir][place], after[place]; from != to {
				changes = append(changes, oracleChange{dir, place, from, to})
			}
		}
	}
	return changes, broken
}

func oracleSort(c []oracleChange) []oracleChange {
	slices.SortFunc(c, func(a, b oracleChange) int { return strings.Compare(a.Dir+a.Place, b.Dir+b.Place) })
	return c
}

// agree holds a proof, or its error, against what the binary builds.
func (o oracle) agree(t *testing.T, files fs.FS, dirs []string, e Edited) (Proof, error) {
	t.Helper()
	proof, err := Prove(context.Background(), files, dirs, e, ProveAuto)
	if strings.Contains(proof.Reason, "nothing is fetched") || strings.Contains(proof.Reason, "run helm") {
		return proof, err // the binary would go out
	}
	changes, broken := o.compare(t, dirs, e)
	var unwanted []oracleChange
	for _, c := range changes {
		if !strings.HasSuffix(c.To, proveNew) {
			unwanted = append(unwanted, c)
		}
	}
	switch {
	case errors.Is(err, ErrNoEffect):
		if len(changes) > 0 && len(e.Changes) == 1 {
			t.Errorf("%v\nbut kustomize changes %+v", err, changes)
		}
	case errors.Is(err, ErrUnwanted):
		if len(changes) == 0 {
			t.Errorf("%v\nbut kustomize changes nothing", err)
		}
	case err != nil:
		t.Error(err)
	case proof.Status == Proven:
		var said []oracleChange
		for _, r := range proof.Changed {
			said = append(said, oracleChange{r.Dir, r.Object + " " + r.Field, r.From, r.To})
		}
		if diff := cmp.Diff(oracleSort(changes), oracleSort(said)); diff != "" {
			t.Error("kustomize (-) and the proof (+) differ:\n" + diff)
		}
		if len(unwanted) > 0 && len(proof.Warnings) == 0 {
			t.Logf("copies: %+v", unwanted)
		}
	case len(broken) == 0 && strings.Contains(proof.Reason, "broken before"):
		t.Errorf("%s\nbut kustomize builds it", proof.Reason)
	}
	if len(broken) > 0 && err == nil && proof.Status == Proven && len(proof.Changed) > 0 && !slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(d, "components/") }) {
		t.Errorf("proven, but kustomize does not build %q", broken)
	}
	return proof, err
}

func (c proveCase) compared(t *testing.T) (Proof, error) {
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
	return newOracle(t, files).agree(t, files, dirs, proveEdit(t, files, dir, c.entries...))
}

// The binary agrees with each case of the proof's own tests.
func TestOracleCases(t *testing.T) {
	for name, c := range provenCases() {
		t.Run(name, func(t *testing.T) {
			if proof, err := c.compared(t); err != nil || proof.Status != Proven {
				t.Errorf("%+v, %v", proof, err)
			}
		})
	}
	for name, c := range refusedCases() {
		t.Run(name, func(t *testing.T) {
			if _, err := c.compared(t); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
