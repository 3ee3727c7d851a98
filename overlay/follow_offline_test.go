package overlay

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
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
		if runtime.GOOS == "windows" {
			script = "@echo " + program + " %* >>" + log + "\r\n@exit 1\r\n"
			program += ".bat"
		}
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
