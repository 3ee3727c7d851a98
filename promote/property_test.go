package promote_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"tagboat/promote"
	"tagboat/scm/scmtest"
)

// orderYAML is a repository with two sources, an environment of three rings that takes
// what both agree on, and two apps of one group beside one that goes alone.
const orderYAML = `environments:
- {name: staging, path: "staging/{app}"}
- {name: perf, path: "perf/{app}"}
- name: production
  from: [staging, perf]
  rings:
  - {name: one, paths: ["production/one/{app}"]}
  - {name: two, paths: ["production/two/*/{app}"]}
  - {name: three, paths: ["production/*/{app}"]}
`

// orderSources are the directories that each ring takes its digests from.
func orderSources() map[string][]string {
	return map[string][]string{
		"one": {"staging/%s", "perf/%s"}, "two": {"production/one/%s"}, "three": {"production/two/a/%s", "production/two/b/%s"},
	}
}

// TestOnlyWhatTheSourceRuns drives random pushes, unpinned tags, merges and races
// around promotions of apps and groups through rings: what a promotion writes is what
// every one of its sources runs, whoever pushed
// meanwhile; where they disagree or are not pinned, it writes nothing.
func TestOnlyWhatTheSourceRuns(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := newOrder(t, seed)
			for range 60 {
				o.step()
			}
			if o.wrote < 3 || o.refused < 2 {
				t.Errorf("wrote %d times, was refused %d times: nothing is shown", o.wrote, o.refused)
			}
		})
	}
}

type orderWorld struct {
	*world
	random         *rand.Rand
	apps           []string
	dirs           []string
	wrote, refused int
}

func newOrder(t *testing.T, seed uint64) *orderWorld {
	o := &orderWorld{world: newWorld(t, forges()["gitea"]), random: rand.New(rand.NewPCG(seed, seed)), apps: []string{"api", "web", "job"}}
	files := map[string]string{}
	yaml := "version: 1\ndefaults: {prove: off}\napps:\n"
	for i, app := range o.apps {
		group := ", group: both"
		if i == 2 {
			group = ""
		}
		yaml += fmt.Sprintf("  %s: {images: [{repository: %s}]%s}\n", app, o.ref(app), group)
		for _, dir := range []string{"staging", "perf", "production/one", "production/two/a", "production/two/b", "production/three"} {
			files[path.Join(dir, app, "kustomization.yaml")] = o.overlay(app, 1)
			o.dirs = append(o.dirs, path.Join(dir, app))
		}
	}
	files["tagboat.yaml"] = yaml + orderYAML
	o.must(o.store.Push("main", "mei", "Order", files))
	return o
}

func (o *orderWorld) overlay(app string, day int) string {
	pin := fmt.Sprintf("\n  newTag: v%d", day)
	if day%9 != 6 { // one in nine is not pinned
		pin += "\n  digest: " + o.push(fmt.Sprintf("%s:v%d", app, day), day)
	}
	return fmt.Sprintf("images:\n- name: %s\n  newName: %s%s\n", app, o.ref(app), pin)
}

// runs is the digest in a directory; "" is none.
func (o *orderWorld) runs(dir string) string {
	_, digest, _ := strings.Cut(o.fileAt("main", dir+"/kustomization.yaml"), "digest: ")
	return strings.TrimSpace(digest)
}

// change has somebody push to a source: to both, or to one alone.
func (o *orderWorld) change() {
	app, day := o.apps[o.random.IntN(3)], 2+o.random.IntN(20)
	files := map[string]string{}
	for _, dir := range []string{"staging", "perf"} {
		if o.random.IntN(6) > 0 {
			files[path.Join(dir, app, "kustomization.yaml")] = o.overlay(app, day)
		}
	}
	if len(files) > 0 {
		o.must(o.store.Push("main", "mei", "Change "+app, files))
	}
}

func (o *orderWorld) mergeOne() {
	for _, p := range o.store.Pulls(func(p scmtest.Pull) bool { return p.State == "open" }) {
		if o.random.IntN(2) == 0 {
			if _, err := o.store.MergePullRequest(p.Number, []string{"merge", "squash", "rebase"}[o.random.IntN(3)]); err != nil && !errors.Is(err, scmtest.ErrConflict) {
				o.Fatal(err)
			}
		}
	}
}

func (o *orderWorld) step() {
	switch o.random.IntN(5) {
	case 0:
		o.mergeOne()
	case 1, 2:
		o.change()
	default:
		o.promote()
	}
}

func (o *orderWorld) promote() {
	plain := o.repo
	if o.random.IntN(2) == 0 {
		o.repo = movesSource{plain, o.change, new(sync.Once)}
	}
	ring := []string{"", "", "one", "two", "three"}[o.random.IntN(5)]
	results, errs := o.ask(promote.Environments{From: "staging", To: []string{"production"}, Ring: ring}, "", allowOlder, again)
	o.repo = plain
	for i, res := range results {
		switch {
		case errs[i] != nil && !errors.Is(errs[i], promote.ErrSource):
			o.Fatalf("%s to %s: %v", res.App, res.Ring, errs[i])
		case errs[i] != nil:
			o.refused++
		case res.Outcome == promote.Opened || res.Outcome == promote.Updated:
			o.wrote++
			o.judge(res)
		}
	}
}

// judge holds a promotion against what its sources run now: nothing but it has been
// written since it wrote.
func (o *orderWorld) judge(res promote.Result) {
	for _, c := range res.Changes {
		app := path.Base(c.Dir)
		if !slices.Contains(o.dirs, c.Dir) || !strings.HasPrefix(c.Dir, "production/"+res.Ring+"/") {
			o.Errorf("%s to %s changes %s", res.App, res.Ring, c.Dir)
		}
		for _, source := range orderSources()[res.Ring] {
			if dir := fmt.Sprintf(source, app); o.runs(dir) != c.To.Digest {
				o.Errorf("%s gets %s, but %s runs %q", c.Dir, c.To.Digest, dir, o.runs(dir))
			}
		}
		branch := fmt.Sprintf("tagboat/production.%s/%s", res.Ring, res.App)
		if got := o.fileAt(branch, c.File); !strings.Contains(got, c.To.Digest) {
			o.Errorf("%s has not %s:\n%s", branch, c.To.Digest, got)
		}
	}
}
