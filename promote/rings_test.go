package promote_test

import (
	"errors"
	"strings"
	"testing"

	"tagboat/config"
	"tagboat/promote"
)

const ringed = `- {name: staging, path: overlays/staging, prove: off}
- name: production
  from: [staging]
  prove: off
  rings:
  - {name: canary, paths: [rings/canary]}
  - {name: rest, paths: ["rings/*"]}
`

// TestNextRing goes through what rings run: each case is staging, canary, and the
// two clusters of the rest, by day; "" is a tag without a digest.
func TestNextRing(t *testing.T) {
	for name, c := range map[string]struct {
		runs [4]string
		want string // ring and outcome, or an error's words
	}{
		"nothing new":                    {[4]string{"v1", "v1", "v1", "v1"}, "rest up-to-date"},
		"the first ring first":           {[4]string{"v2", "v1", "v1", "v1"}, "canary opened"},
		"then the next":                  {[4]string{"v2", "v2", "v1", "v1"}, "rest opened"},
		"half of the next":               {[4]string{"v2", "v2", "v2", "v1"}, "rest opened"},
		"all of them":                    {[4]string{"v2", "v2", "v2", "v2"}, "rest up-to-date"},
		"newer before the rest is there": {[4]string{"v3", "v2", "v1", "v1"}, "canary opened"},
		"the rest is ahead":              {[4]string{"v2", "v1", "v2", "v2"}, "canary opened"},
		"a canary without a digest":      {[4]string{"v2", "", "v1", "v1"}, "canary opened"},
		"a rest without a digest":        {[4]string{"v2", "v2", "", "v1"}, "rest opened"},
		"a source without a digest":      {[4]string{"", "v1", "v1", "v1"}, "pin it first with: tagboat promote"},
		"somebody changed the canary":    {[4]string{"v1", "v2", "v1", "v1"}, "canary outdated"},
		"the rest runs something of old": {[4]string{"v2", "v2", "v1", "v3"}, "rest outdated"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, forges()["gitea"])
			w.govern(ringed)
			for day := 1; day <= 3; day++ {
				w.v(day)
			}
			files := map[string]string{}
			for i, dir := range []string{"overlays/staging", "rings/canary", "rings/us", "rings/eu"} {
				pin := "newTag: v1"
				if tag := c.runs[i]; tag != "" {
					pin = "newTag: " + tag + "\n  digest: " + w.v(int(tag[1]-'0'))
				}
				files[dir+"/kustomization.yaml"] = "images:\n- name: todo-api\n  newName: " + w.ref("todo-api") + "\n  " + pin + "\n"
			}
			w.must(w.store.Push("main", "mei", "Rings", files))
			res, err := w.onward()
			got := res.Ring + " " + string(res.Outcome)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s (%s), want %s", got, res.Reason, c.want)
			}
			for _, change := range res.Changes {
				if strings.Contains(change.Dir, "canary") != (res.Ring == "canary") {
					t.Errorf("ring %s changes %s", res.Ring, change.Dir)
				}
			}
		})
	}
}

// TestRingsOfBuilds: where builds come to rings, each is compared with the same
// digest, and the next ring takes what the one before runs.
func TestRingsOfBuilds(t *testing.T) {
	w := newWorld(t, forges()["gitea"])
	w.govern("- name: dev\n  prove: off\n  rings:\n  - {name: one, paths: [rings/one]}\n  - {name: two, paths: [rings/two]}\n")
	w.v(2)
	w.must(w.store.Push("main", "mei", "Rings", map[string]string{"rings/one/kustomization.yaml": w.at("main"), "rings/two/kustomization.yaml": w.at("main")}))
	promoted := func(ring string, want promote.Outcome) promote.Result {
		t.Helper()
		results, errs := w.ask(promote.Environments{To: []string{"dev"}}, "todo-api:v2")
		if errs[0] != nil || results[0].Ring != ring || results[0].Outcome != want {
			t.Fatalf("%s %s (%s), %v; want %s %s", results[0].Ring, results[0].Outcome, results[0].Reason, errs[0], ring, want)
		}
		return results[0]
	}
	w.must(w.store.MergePullRequest(promoted("one", promote.Opened).PullRequest.Number, "squash"))
	w.must(w.store.MergePullRequest(promoted("two", promote.Opened).PullRequest.Number, "squash"))
	promoted("two", promote.UpToDate)
}

// TestRingNamed: a ring that is named waits for the one before it, and one that is
// not there is an error of its own.
func TestRingNamed(t *testing.T) {
	w := newWorld(t, forges()["gitea"])
	w.govern(strings.Replace(ringed, "  prove: off\n  rings", "  prove: off\n  gates: {soak: 24h}\n  rings", 1))
	w.must(w.store.Push("main", "mei", "Rings", map[string]string{"rings/canary/kustomization.yaml": w.at("main"), "rings/us/kustomization.yaml": w.at("main")}))
	w.setTo(file, "v2")
	w.store.Advance(25 * 3600e9)
	rest := promote.Environments{From: "staging", To: []string{"production"}, Ring: "rest", Apps: []string{"todo-api"}}
	if results, errs := w.ask(rest, ""); errs[0] != nil || results[0].Outcome != promote.UpToDate {
		t.Errorf("%s (%s), %v", results[0].Outcome, results[0].Reason, errs[0])
	}
	w.setTo("rings/canary/kustomization.yaml", "v2")
	if results, errs := w.ask(rest, ""); errs[0] != nil || results[0].Outcome != promote.Blocked || !strings.Contains(results[0].Reason, "soak: in production.canary since") {
		t.Errorf("%s (%s), %v", results[0].Outcome, results[0].Reason, errs[0])
	}
	rest.Ring = "canry"
	if _, errs := w.ask(rest, ""); !errors.Is(errs[0], config.ErrUnknown) || !strings.Contains(errs[0].Error(), "canary") {
		t.Errorf("%v", errs[0])
	}
}
