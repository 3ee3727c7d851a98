package overlay

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestShared(t *testing.T) {
	const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
	uses := func(dir, refs string) string {
		return "-- " + dir + "/kustomization.yaml --\nresources: [" + refs + "]\n"
	}
	for name, c := range map[string]struct {
		tree string
		dir  string
		want []string
	}{
		"a base beside overlays": {
			proveBase + uses("overlays/staging", "../../base") + uses("overlays/production", "../../base") + uses("overlays/other", "../../else"),
			"base", []string{"overlays/production", "overlays/staging"}},
		"a base of an app": {
			"\n" + uses("apps/todo/base", "deployment.yaml") + uses("apps/todo/overlays/staging", "../../base") + uses("apps/mail/overlays/staging", "../../base"),
			"apps/todo/base", []string{"apps/todo/overlays/staging"}},
		"environments side by side": {
			"\n" + uses("todo/base", "x.yaml") + uses("todo/dev", "../base") + uses("todo/prod", "../base"),
			"todo/base", []string{"todo/dev", "todo/prod"}},
		"a component, in envs": {
			"\n-- components/pin/kustomization.yaml --\n" + component + "-- envs/a/kustomization.yaml --\ncomponents: [../../components/pin]\n" + "-- envs/b/kustomization.yaml --\nresources: [x.yaml]\n",
			"components/pin", []string{"envs/a"}},
		"a component beside the environments": {
			"\n-- x/variants/eu/kustomization.yaml --\n" + component + "-- x/prod/kustomization.yaml --\ncomponents: [../variants/eu]\n",
			"x/variants/eu", []string{"x/prod"}},
		"over one other, a candidate or not, in deprecated words": {
			"\n" + uses("base", "x.yaml") + "-- middle/far/kustomization.yaml --\nbases: [../../base]\n" + uses("overlays/one", "../../middle/far") + uses("overlays/two", "../one"),
			"base", []string{"overlays/one"}},
		"an overlay is no base, and is not looked at": {
			proveBase + uses("overlays/staging", "../../base") + uses("overlays/production", "../staging"),
			"overlays/staging", nil},
		"nobody uses it": {proveBase + uses("overlays/staging", "x.yaml"), "base", nil},
		"the root":       {"\n-- kustomization.yaml --\nresources: [x.yaml]\n" + uses("a", "x.yaml"), ".", nil},
		"remote references and broken neighbours": {
			proveBase + uses("overlays/staging", "https://acme.example/base, /base") + "-- overlays/b/kustomization.yaml --\n{{ template }}\n" + "-- environments --\na file\n",
			"base", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Shared(proveTree(t, c.tree), c.dir)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// What Shared costs does not grow with the repository.
func TestSharedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := proveTree(t, proveBase)
		for i := range 1000 {
			maps.Copy(files, fstest.MapFS{fmt.Sprintf("overlays/r%04d/kustomization.yaml", i): {Data: fmt.Appendf(nil, "resources: [../../base, ../../m%d]\n", i)}})
		}
		counted := &followFS{MapFS: files, wait: time.Second}
		start := time.Now()
		got, err := Shared(counted, "base")
		if err != nil || len(got) != sharedAtMost {
			t.Fatalf("%d directories, %v; want the first %d", len(got), err, sharedAtMost)
		}
		read := 0
		for what := range counted.asked {
			if strings.HasSuffix(what, "kustomization.yaml") {
				read++
			}
		}
		if rounds := time.Since(start); read > 1+2*sharedAtMost || rounds != (1+3)*time.Second {
			t.Errorf("%d kustomizations in %s at a second a round, want the base's own and at most %d in 3", read, rounds, 2*sharedAtMost)
		}
	})
}

func TestSharedKeepsTheFileSystemsError(t *testing.T) {
	files := proveTree(t, proveStaging("OVERLAY\nENTRY\n"))
	tooMany := errors.New("429 Too Many Requests")
	for _, at := range []string{"base", ".", "overlays", "envs", "overlays/staging/kustomization.yaml"} {
		if got, err := Shared(&followFS{MapFS: files, fail: map[string]error{at: tooMany}}, "base"); !errors.Is(err, tooMany) {
			t.Errorf("%s fails: %v, %v", at, got, err)
		}
	}
	if _, err := Shared(files, "none"); !errors.Is(err, ErrNoKustomization) {
		t.Errorf("no such directory: %v", err)
	}
}
