package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// followEverywhere gives a tree for each position in which a kustomization can
// refer to something, with the reference written in.
func followEverywhere(reference string) map[string]string {
	quoted := fmt.Sprintf("%q", reference)
	kustomization := map[string]string{
		"resources":                   "resources: [../../base, REF]",
		"bases":                       "bases: [../../base, REF]",
		"components":                  "components: [REF]",
		"crds":                        "crds: [REF]",
		"configurations":              "configurations: [REF]",
		"openapi":                     "openapi: {path: REF}",
		"patches":                     "patches: [{path: REF}]",
		"patchesStrategicMerge":       "patchesStrategicMerge: [REF]",
		"patchesJson6902":             "patchesJson6902: [{path: REF, target: {version: v1, kind: Pod, name: p}}]",
		"replacements":                "replacements: [{path: REF}]",
		"configMapGenerator files":    "configMapGenerator: [{name: c, files: [REF]}]",
		"configMapGenerator key":      "configMapGenerator: [{name: c, files: [KEYREF]}]",
		"configMapGenerator envs":     "configMapGenerator: [{name: c, envs: [REF]}]",
		"configMapGenerator env":      "configMapGenerator: [{name: c, env: REF}]",
		"secretGenerator files":       "secretGenerator: [{name: c, files: [REF]}]",
		"secretGenerator envs":        "secretGenerator: [{name: c, envs: [REF]}]",
		"generators":                  "generators: [REF]",
		"transformers":                "transformers: [REF]",
		"validators":                  "validators: [REF]",
		"resources with a key's case": "Resources: [../../base, REF]",
	}
	plugin := map[string]string{
		"ConfigMapGenerator files":       "kind: ConfigMapGenerator\nname: g\nfiles: [REF]",
		"ConfigMapGenerator key":         "kind: ConfigMapGenerator\nname: g\nfiles: [KEYREF]",
		"ConfigMapGenerator envs":        "kind: ConfigMapGenerator\nname: g\nenvs: [REF]",
		"ConfigMapGenerator Files":       "kind: ConfigMapGenerator\nname: g\nFILES: [REF]",
		"SecretGenerator files":          "kind: SecretGenerator\nname: g\nfiles: [REF]",
		"PatchTransformer":               "kind: PatchTransformer\npath: REF",
		"PatchJson6902Transformer":       "kind: PatchJson6902Transformer\ntarget: {kind: Pod, name: p}\npath: REF",
		"PatchStrategicMergeTransformer": "kind: PatchStrategicMergeTransformer\npaths: [REF]",
		"ReplacementTransformer":         "kind: ReplacementTransformer\nreplacements: [{path: REF}]",
		"ValueAddTransformer":            "kind: ValueAddTransformer\nvalue: v\ntargetFilePath: REF",
	}
	fill := strings.NewReplacer("KEYREF", fmt.Sprintf("%q", "k="+reference), "REF", quoted)
	out := map[string]string{}
	add := func(name, kustomization, more string) {
		if !strings.Contains(kustomization, "/base") {
			kustomization = "resources: [../../base]\n" + kustomization
		}
		out[name] = proveBase + "-- overlays/staging/kustomization.yaml --\nENTRY\n" + fill.Replace(kustomization) + "\n" + fill.Replace(more)
	}
	for name, k := range kustomization {
		add(name, k, "")
	}
	for name, p := range plugin {
		p = "apiVersion: builtin\n" + strings.Replace(p, "\n", "\nmetadata: {name: plugin}\n", 1) + "\n"
		for _, field := range []string{"generators", "transformers", "validators"} {
			add(field+" file "+name, field+": [plugin.yaml]", "-- overlays/staging/plugin.yaml --\n"+p)
			add(field+" directory "+name, field+": [plugins]", "-- overlays/staging/plugins/kustomization.yaml --\nresources: [plugin.yaml]\n-- overlays/staging/plugins/plugin.yaml --\n"+p)
			add(field+" inline "+name, field+":\n- |\n  "+strings.ReplaceAll(p, "\n", "\n  "), "")
		}
	}
	return out
}

// followOutside counts what leaves the process: connections to a listener, and
// calls of the programs that kustomize knows.
type followOutside struct {
	url   string
	calls func() []string
}

func followWatch(t *testing.T) followOutside {
	t.Helper()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	for _, program := range []string{"git", "helm", "docker", "sh", "ssh"} {
		script := "#!/bin/sh\necho " + program + " \"$@\" >>" + log + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	return followOutside{url: server.URL, calls: func() []string {
		raw, _ := os.ReadFile(log)
		calls := slices.Collect(strings.Lines(string(raw)))
		for range connections.Load() {
			calls = append(calls, "a connection")
		}
		return calls
	}}
}

func TestProveNeverLeavesTheProcess(t *testing.T) {
	outside := followWatch(t)
	host := strings.TrimPrefix(outside.url, "http://")
	everywhere := []string{outside.url + "/acme/base?ref=v1", "git@" + host + ":acme/base.git", "github.com/acme/base"}
	for _, reference := range append(everywhere,
		outside.url+"/deployment.yaml", outside.url+"/acme/base.git", strings.Replace(outside.url, "http", "HTTP", 1)+"/x.yaml",
		"git::"+outside.url+"/acme/base//x", "ssh://git@"+host+"/acme/base", "file:///etc/acme", "GitHub.com:acme/base",
		"acme@host.example:base", "https://"+host+"/acme/base", "http:"+host) {
		trees := followEverywhere(reference)
		if !slices.Contains(everywhere, reference) {
			maps.DeleteFunc(trees, func(position, _ string) bool {
				return !slices.Contains([]string{"resources", "components", "patches", "generators"}, position)
			})
		}
		for _, position := range slices.Sorted(maps.Keys(trees)) {
			c := proveCase{tree: trees[position]}
			got, err := c.run(t, ProveAuto)
			if err != nil {
				t.Errorf("%s in %s: %v", reference, position, err)
			}
			if got.Status != Skipped || !strings.Contains(got.Reason, "overlays/staging/") || !strings.Contains(got.Reason, reference) {
				t.Errorf("%s in %s: %q, %q; want it skipped, with file and reference", reference, position, got.Status, got.Reason)
			}
		}
		if calls := outside.calls(); len(calls) > 0 {
			t.Fatalf("%s: outside of the process: %q", reference, calls)
		}
	}
}

// A file or directory of a remote reference's name does not make it a local one:
// kustomize fetches and clones before it looks.
func TestProveRemoteWinsOverAFile(t *testing.T) {
	outside := followWatch(t)
	for reference, path := range map[string]string{
		"github.com/acme/base": "overlays/staging/github.com/acme/base/kustomization.yaml",
		"me@home/base":         "overlays/staging/me@home/base/kustomization.yaml",
		"http:x.yaml":          "overlays/staging/http:x.yaml",
	} {
		c := proveCase{tree: proveStaging("OVERLAY\n- "+reference+"\nENTRY\n") + "-- " + path + " --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"}
		got, err := c.run(t, ProveAuto)
		if err != nil || got.Status != Skipped {
			t.Errorf("%s: %+v, %v; want it skipped", reference, got, err)
		}
	}
	if calls := outside.calls(); len(calls) > 0 {
		t.Errorf("outside of the process: %q", calls)
	}
}

func TestProveSkips(t *testing.T) {
	outside := followWatch(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: ghcr.io/acme/todo-api}]}\n"
	for name, c := range map[string]struct {
		proveCase
		says string
	}{
		"missing":               {proveCase{tree: proveStaging("OVERLAY\n- no.yaml\nENTRY\n")}, "overlays/staging/kustomization.yaml: resources: no.yaml does not exist"},
		"missing base":          {proveCase{tree: proveStaging("OVERLAY\n- ../../more\nENTRY\n")}, "resources: ../../more does not exist"},
		"leaves":                {proveCase{tree: proveStaging("OVERLAY\n- ../../../else\nENTRY\n")}, "resources: ../../../else leaves the repository"},
		"absolute":              {proveCase{tree: proveStaging("OVERLAY\n- /etc/passwd\nENTRY\n")}, "is an absolute path"},
		"a file above":          {proveCase{tree: proveStaging("OVERLAY\n- ../pod.yaml\nENTRY\n") + "-- overlays/pod.yaml --\n" + pod}, "kustomize reads it only with --load-restrictor LoadRestrictionsNone"},
		"no kustomization":      {proveCase{tree: proveStaging("OVERLAY\n- ../../more\nENTRY\n") + "-- more/pod.yaml --\n" + pod}, "../../more has no kustomization file"},
		"helm":                  {proveCase{tree: proveStaging("OVERLAY\nENTRY\nhelmCharts: [{name: c, repo: 'https://acme.example'}]\n")}, "helmCharts: kustomize would run helm"},
		"helm in a base":        {proveCase{tree: proveBase + "-- overlays/staging/kustomization.yaml --\nOVERLAY\n- ../h\nENTRY\n-- overlays/h/kustomization.yaml --\nhelmChartInflationGenerator: [{chartName: c}]\n"}, "overlays/h/kustomization.yaml: helmCharts"},
		"helm as a generator":   {proveCase{tree: proveStaging("OVERLAY\nENTRY\ngenerators: [g.yaml]\n") + "-- overlays/staging/g.yaml --\napiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: h}\nname: c\n"}, "kustomize would run helm"},
		"a plugin":              {proveCase{tree: proveStaging("OVERLAY\nENTRY\ntransformers: [g.yaml]\n") + "-- overlays/staging/g.yaml --\napiVersion: acme.example/v1\nkind: Shell\nmetadata: {name: h, annotations: {config.kubernetes.io/function: '{exec: {path: ./sh}}'}}\n"}, "acme.example/v1 Shell is a plugin"},
		"plugins made by build": {proveCase{tree: proveStaging("OVERLAY\nENTRY\ntransformers: [t]\n") + "-- overlays/staging/t/kustomization.yaml --\nresources: [g.yaml]\npatches: [{patch: '[{op: replace, path: /path, value: \"" + outside.url + "\"}]', target: {kind: PatchTransformer}}]\n-- overlays/staging/t/g.yaml --\napiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: h}\npath: p.yaml\n"}, "more than a list of resources"},
		"a component alone":     {proveCase{tree: "\n-- overlays/staging/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nENTRY\n"}, "overlays/staging: a Component is proven through the overlays that use it"},
		"a component that is needed, and a tree that cannot be built": {
			proveCase{dir: "components/pin", dirs: []string{"components/pin", proveTarget},
				tree: proveStaging("OVERLAY\n- no.yaml\ncomponents: [../../components/pin]\n") + "-- components/pin/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nENTRY\n"},
			"overlays/staging: overlays/staging/kustomization.yaml: resources: no.yaml does not exist"},
		"broken before":                {proveCase{tree: proveStaging("OVERLAY\nENTRY\npatches: [{patch: 'no: patch', target: {kind: Deployment}}]\n")}, "was broken before: "},
		"two kustomizations in a base": {proveCase{tree: proveStaging("OVERLAY\nENTRY\n") + "-- base/Kustomization --\nBASE\n"}, "was broken before: base has two kustomization files"},
		"a base that includes itself":  {proveCase{tree: proveStaging("OVERLAY\n- ../a\nENTRY\n") + "-- overlays/a/kustomization.yaml --\nresources: [../b]\n-- overlays/b/kustomization.yaml --\nresources: [../a]\n"}, "includes itself"},
		"secrets in what broke":        {proveCase{tree: proveStaging("OVERLAY\nENTRY\nsecretGenerator: [{name: s, literals: [hunter2-no-equals-sign], files: ['a=b=hunter2']}, {name: k, envs: [e.env]}]\n") + "-- overlays/staging/e.env --\nhunter2 x=y\n-- overlays/staging/hunter2 --\nx\n"}, "***"},
		"a repair":                     {proveCase{tree: proveBase + "-- overlays/staging/kustomization.yaml --\nOVERLAY\nimages:\n- name: ghcr.io/acme/todo-api\n  newTag: 1.10\n"}, "the edit repairs it, and it runs ghcr.io/acme/todo-api:v2@" + proveNew + " (Deployment todo-api"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.run(t, ProveAuto)
			if err != nil || got.Status != Skipped || !strings.Contains(got.Reason, c.says) {
				t.Errorf("got %+v, error %v; want it skipped: %s", got, err, c.says)
			}
			if strings.Contains(got.Reason, "hunter2") {
				t.Errorf("%s shows a secret", got.Reason)
			}
			_, err = c.run(t, ProveRequired)
			if !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("required: %v; want ErrUnproven: %s", err, c.says)
			}
			got, err = c.run(t, ProveOff)
			if diff := cmp.Diff(Proof{Status: Off}, got); err != nil || diff != "" {
				t.Errorf("off: %v %s", err, diff)
			}
		})
	}
	if calls := outside.calls(); len(calls) > 0 {
		t.Errorf("outside of the process: %q", calls)
	}
}

func TestProveFailsInEveryMode(t *testing.T) {
	files := proveTree(t, proveStaging("OVERLAY\nENTRY\n"))
	good := proveEdit(t, files, proveTarget)
	breaks := good
	breaks.Files = []File{{Path: good.Files[0].Path, Before: good.Files[0].Before, After: []byte(string(good.Files[0].After) + "patches: [{patch: 'no: patch'}]\n")}}
	for _, mode := range []Mode{ProveAuto, ProveRequired} {
		if _, err := Prove(t.Context(), files, []string{proveTarget}, breaks, mode); !errors.Is(err, ErrUnwanted) || !strings.Contains(err.Error(), "no longer is") {
			t.Errorf("%s, broken by the edit: %v", mode, err)
		}
		if _, err := Prove(t.Context(), files, []string{proveTarget, "overlays/none"}, good, mode); !errors.Is(err, ErrNoKustomization) || !strings.Contains(err.Error(), "overlays/none") {
			t.Errorf("%s, no such directory: %v", mode, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Prove(ctx, files, []string{proveTarget}, good, mode); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", mode, err)
		}
	}
}

// followFS is a file system that counts, waits and fails.
type followFS struct {
	fstest.MapFS
	mu    sync.Mutex
	asked map[string]int
	wait  time.Duration
	fail  map[string]error
}

func (f *followFS) ask(op, name string) error {
	f.mu.Lock()
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[op+" "+name]++
	err := f.fail[name]
	f.mu.Unlock()
	time.Sleep(f.wait)
	return err
}

func (f *followFS) ReadFile(name string) ([]byte, error) {
	if err := f.ask("read", name); err != nil {
		return nil, err
	}
	return f.MapFS.ReadFile(name)
}

func (f *followFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.ask("list", name); err != nil {
		return nil, err
	}
	return f.MapFS.ReadDir(name)
}

func (f *followFS) Lstat(name string) (fs.FileInfo, error) {
	if err := f.ask("stat", name); err != nil {
		return nil, err
	}
	return f.MapFS.Lstat(name)
}

func (f *followFS) Open(name string) (fs.File, error) {
	return nil, fmt.Errorf("open %s: not to be asked", name)
}

const followLevels = `
-- base/kustomization.yaml --
BASE
-- base/deployment.yaml --
DEPLOYMENT
-- apps/kustomization.yaml --
resources: [../base, ../db]
-- db/kustomization.yaml --
resources: [db.yaml]
-- db/db.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: db}
-- overlays/staging/kustomization.yaml --
resources: [../../apps, own.yaml]
patches: [{path: patches/p.yaml}]
ENTRY
-- overlays/staging/own.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: own}
-- overlays/staging/patches/p.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: own, labels: {a: b}}
`

// The reads of a proof take the levels of bases + 1 rounds beside the target's
// own listing and kustomization, which find has read; and each path is asked for
// once, although the tree is built twice.
func TestProveReadsInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := proveTree(t, followLevels)
		e := proveEdit(t, files, proveTarget)
		counted := &followFS{MapFS: files, wait: time.Second}
		start := time.Now()
		got, err := Prove(t.Context(), counted, []string{proveTarget}, e, ProveRequired)
		if err != nil || got.Status != Proven {
			t.Fatalf("%+v, %v", got, err)
		}
		const levelsOfBases = 2
		if rounds := time.Since(start); rounds != (1+levelsOfBases+1)*time.Second {
			t.Errorf("%s at a second a round, want the target's and %d more", rounds, levelsOfBases+1)
		}
		want := []string{}
		for _, dir := range []string{proveTarget, "apps", "base", "db"} {
			want = append(want, "list "+dir)
			if dir != proveTarget {
				want = append(want, "read "+dir+"/kustomization.yaml")
			}
		}
		want = append(want, "read overlays/staging/own.yaml", "read overlays/staging/patches/p.yaml", "read base/deployment.yaml", "read db/db.yaml")
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(counted.asked))); diff != "" {
			t.Error(diff)
		}
		for what, times := range counted.asked {
			if times > 1 {
				t.Errorf("%s: asked %d times", what, times)
			}
		}
	})
}

// Forty overlays cost the rounds of one.
func TestProveManyDirectoriesInTheRoundsOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := proveTree(t, proveBase)
		var dirs []string
		var all Edited
		for i := range 40 {
			dir := fmt.Sprintf("overlays/r%d", i)
			maps.Copy(files, proveTree(t, "\n-- "+dir+"/kustomization.yaml --\nOVERLAY\nENTRY\n"))
			e := proveEdit(t, files, dir)
			all.Files, all.Changes = append(all.Files, e.Files...), append(all.Changes, e.Changes...)
			dirs = append(dirs, dir)
		}
		start := time.Now()
		got, err := Prove(t.Context(), &followFS{MapFS: files, wait: time.Second}, dirs, all, ProveRequired)
		if err != nil || len(got.Changed) != 40 {
			t.Fatalf("%d images changed, %v", len(got.Changed), err)
		}
		if rounds := time.Since(start); rounds != 3*time.Second {
			t.Errorf("%s at a second a round, want 3", rounds)
		}
	})
}

// What the file system fails with is the outcome: never a skip, never a proof.
func TestProveKeepsTheFileSystemsError(t *testing.T) {
	files := proveTree(t, followLevels)
	e := proveEdit(t, files, proveTarget)
	tooMany := errors.New("429 Too Many Requests")
	for name := range files {
		if name == "overlays/staging/kustomization.yaml" {
			continue // its bytes come with the edit
		}
		for _, at := range []string{name, filepath.Dir(name)} {
			for _, mode := range []Mode{ProveAuto, ProveRequired} {
				got, err := Prove(t.Context(), &followFS{MapFS: files, fail: map[string]error{at: tooMany}}, []string{proveTarget}, e, mode)
				if at == "overlays/staging/patches" && err == nil {
					continue // not asked for
				}
				if !errors.Is(err, tooMany) || !strings.Contains(err.Error(), at) {
					t.Errorf("%s fails: %+v, %v; want that error", at, got, err)
				}
			}
		}
	}
}
