package promote_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tagboat/promote"
	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

// manyApps gives a world n apps a00, a01, … in staging and production, of which
// staging runs v2; groups names the group of some.
func manyApps(t *testing.T, forge forgeFor, n int, groups map[string]string) *world {
	t.Helper()
	w := newWorld(t, forge)
	files := map[string]string{}
	var yaml strings.Builder
	yaml.WriteString("version: 1\ndefaults: {prove: off}\napps:\n")
	for i := range n {
		app := fmt.Sprintf("a%02d", i)
		group := ""
		if groups[app] != "" {
			group = ", group: " + groups[app]
		}
		fmt.Fprintf(&yaml, "  %s: {images: [{repository: %s, name: %s}]%s}\n", app, w.ref(app), app, group)
		for env, pin := range map[string]string{"staging": "newTag: v2\n  digest: " + w.push(app+":v2", 2), "production": "newTag: v1\n  digest: " + w.push(app+":v1", 1)} {
			files[fmt.Sprintf("apps/%s/%s/kustomization.yaml", app, env)] = fmt.Sprintf("resources: [../../../base]\nimages:\n- name: %s\n  newName: %s\n  %s\n", app, w.ref(app), pin)
		}
	}
	yaml.WriteString("environments:\n- {name: staging, path: \"apps/{app}/staging\"}\n- {name: production, from: [staging], path: \"apps/{app}/production\"}\n")
	files["tagboat.yaml"] = yaml.String()
	w.must(w.store.Push("main", "mei", "Many apps", files))
	return w
}

func (w *world) all40(options ...option) ([]promote.Result, []error) {
	w.Helper()
	return w.ask(promote.Environments{From: "staging", To: []string{"production"}}, "", options...)
}

// TestFortyApps: read side by side, written one after the other in the order of the
// apps, with four writes each at most; a second run writes nothing.
func TestFortyApps(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := manyApps(t, forges()[name], 40, nil)
			w.calls.reset()
			results, errs := w.all40()
			var heads []string
			for i, res := range results {
				if errs[i] != nil || res.Outcome != promote.Opened {
					t.Fatalf("%s: %s (%s), %v", res.App, res.Outcome, res.Reason, errs[i])
				}
			}
			pulls := w.store.Pulls(func(scmtest.Pull) bool { return true })
			slices.SortFunc(pulls, func(a, b scmtest.Pull) int { return a.Number - b.Number })
			for _, p := range pulls {
				heads = append(heads, strings.TrimPrefix(p.Head, "tagboat/production/"))
			}
			if len(heads) != 40 || !slices.IsSorted(heads) {
				t.Errorf("pull requests of %v", heads)
			}
			reads, writes := len(w.calls.tries)-w.calls.writes(), w.calls.writes()
			t.Logf("%d reads, at most %d at once, and %d writes", reads, w.calls.atOnce(), writes)
			if writes > 4*40 || w.calls.atOnce() < 4 || w.calls.writesAtOnce() > 1 || reads > 16*40 {
				t.Errorf("%d reads, at most %d at once; %d writes, at most %d at once", reads, w.calls.atOnce(), writes, w.calls.writesAtOnce())
			}
			w.calls.reset()
			w.wantLeft(func() {
				for i, res := range second(w.all40()) {
					if res.Outcome != promote.Unchanged {
						t.Errorf("again: %s %d", res.Outcome, i)
					}
				}
			})
			if w.calls.writes() != 0 {
				t.Errorf("%d writes though nothing is new", w.calls.writes())
			}
		})
	}
}

func second(results []promote.Result, _ []error) []promote.Result { return results }

// atOnce is how many requests were under way at the same time at most.
func (c *calls) atOnce() int { return overlap(c.tries) }

func (c *calls) writesAtOnce() int {
	return overlap(slices.DeleteFunc(slices.Clone(c.tries), func(try scm.Try) bool { return !try.Write }))
}

func overlap(tries []scm.Try) (most int) {
	for _, a := range tries {
		n := 0
		for _, b := range tries {
			if !b.Started.After(a.Started) && b.Ended.After(a.Started) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestOneFailsAlone: an app that cannot be promoted stops none of the others.
func TestOneFailsAlone(t *testing.T) {
	w := manyApps(t, forges()["gitea"], 4, nil)
	w.must(w.store.Push("main", "mei", "Break", map[string]string{"apps/a01/staging/kustomization.yaml": "images: [", "apps/a02/production/kustomization.yaml": "resources: []\n"}))
	results, errs := w.all40()
	for i, failed := range []bool{false, true, true, false} {
		if (errs[i] != nil) != failed || (results[i].Outcome == promote.Opened) == failed || results[i].App != fmt.Sprintf("a%02d", i) {
			t.Errorf("%d: %s %s, %v", i, results[i].App, results[i].Outcome, errs[i])
		}
	}
	w.wantPulls("1 open, 2 open")
}

// TestGroup: apps of one group are one commit and one pull request, each image in its
// own directory alone.
func TestGroup(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := manyApps(t, forges()[name], 4, map[string]string{"a00": "web", "a02": "web"})
			results, errs := w.all40()
			var did []string
			for i, res := range results {
				did = append(did, fmt.Sprintf("%s %s %d %v", res.App, res.Outcome, len(res.Changes), errs[i]))
			}
			if got := strings.Join(did, ", "); got != "web opened 2 <nil>, a01 opened 1 <nil>, a03 opened 1 <nil>" {
				t.Fatal(got)
			}
			for _, app := range []string{"a00", "a02"} {
				if got := w.fileAt("tagboat/production/web", "apps/"+app+"/production/kustomization.yaml"); strings.Count(got, "digest: ") != 1 || !strings.Contains(got, w.push(app+":v2", 2)) {
					t.Errorf("%s:\n%s", app, got)
				}
			}
			if v := w.verify(1); v.State != scm.StatusSuccess || v.App != "web" {
				t.Errorf("verify: %s %s", v.State, v.Summary)
			}
			w.must(w.store.MergePullRequest(1, "squash"))
			if res := second(w.all40())[0]; res.Outcome != promote.UpToDate {
				t.Errorf("after the merge: %s (%s)", res.Outcome, res.Reason)
			}
		})
	}
}

// TestDirectTogether: many commits to one branch in one request do not get into each
// other's way.
func TestDirectTogether(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := manyApps(t, forges()[name], 12, nil)
			w.replace("main", "tagboat.yaml", "prove: off", "prove: off, merge: direct")
			results, errs := w.all40()
			for i, res := range results {
				if errs[i] != nil || res.Outcome != promote.Committed {
					t.Errorf("%s: %s (%s), %v", res.App, res.Outcome, res.Reason, errs[i])
				}
			}
		})
	}
}

// TestSecondaryLimit: where GitHub asks to wait, all promotions of the token do, and
// each is made once.
func TestSecondaryLimit(t *testing.T) {
	var fake *githubtest.Server
	var mu sync.Mutex
	now, waited := time.Now(), time.Duration(0)
	forge := forgeFor{open: func(t *testing.T, store *scmtest.Store, transport scm.TransportOptions) scm.Repository {
		fake = githubtest.New(t, store, githubtest.Options{})
		transport.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		transport.Sleep = func(ctx context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			now, waited = now.Add(d), waited+d
			return ctx.Err()
		}
		repo, err := github.New(github.Options{BaseURL: fake.URL(), Owner: fake.Owner(), Name: fake.Name(), Token: fake.Token(), Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		return repo
	}}
	w := manyApps(t, forge, 10, nil)
	limit := githubtest.Answer{Status: 403, Message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", Header: map[string]string{"Retry-After": "60"}}
	fake.Fail("POST pulls", 2, limit)
	w.calls.reset()
	results, errs := w.all40()
	for i, res := range results {
		if errs[i] != nil || res.Outcome != promote.Opened {
			t.Errorf("%s: %s (%s), %v", res.App, res.Outcome, res.Reason, errs[i])
		}
	}
	if pulls := w.store.Pulls(func(scmtest.Pull) bool { return true }); len(pulls) != 10 {
		t.Errorf("%d pull requests", len(pulls))
	}
	refused := 0
	for _, try := range w.calls.tries {
		if try.Status == 403 {
			refused++
		}
	}
	if refused != 2 || waited < 2*time.Minute {
		t.Errorf("refused %d times, waited %s", refused, waited)
	}
}
