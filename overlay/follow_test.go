package overlay

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
