package promote_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"tagboat/promote"
	"tagboat/scm"
)

// fleet adds a tagboat.yaml and a production beside the world's staging.
func (w *world) fleet(clusters int) {
	w.Helper()
	files := map[string]string{"tagboat.yaml": "version: 1\napps:\n  todo-api:\n    images: [{repository: " + w.ref("todo-api") + "}]\n" +
		"environments:\n- {name: staging, path: overlays/staging}\n- {name: production, from: [staging], path: \"clusters/*/production\"}\n"}
	for i := range clusters {
		files[fmt.Sprintf("clusters/c%02d/production/kustomization.yaml", i)] = strings.ReplaceAll(w.at("main"), "../../base", "../../../base")
	}
	w.must(w.store.Push("main", "mei", "Many clusters", files))
}

func (w *world) toProduction(options ...option) (promote.Result, error) {
	w.Helper()
	q := promote.Request{Repository: "acme/config"}
	for _, o := range options {
		o(&q)
	}
	results, errs, err := w.promoter.RunEnvironments(context.Background(), q, promote.Environments{From: "staging", To: []string{"production"}, Apps: []string{"todo-api"}})
	if err != nil || len(results) != 1 {
		w.Fatalf("%d results, %v", len(results), err)
	}
	return results[0], errs[0]
}

// TestFortyClusters: one commit, one pull request, and calls side by side.
func TestFortyClusters(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, forge)
			v2 := w.push("todo-api:v2", 2)
			w.fleet(40)
			w.replace("main", file, "newTag: v1\n  digest: "+digestIn(w.at("main")), "newTag: v2\n  digest: "+v2)
			w.calls.reset()
			res, err := w.toProduction(noProof)
			if err != nil || res.Outcome != promote.Opened || len(res.Changes) != 40 {
				t.Fatalf("%s, %d changes, %v", res.Outcome, len(res.Changes), err)
			}
			w.wantPulls("1 open")
			sha, _ := w.store.Branch("tagboat/production/todo-api")
			commits, err := w.store.Between(w.tip("main"), sha)
			if err != nil || len(commits) != 1 {
				t.Errorf("%d commits, %v", len(commits), err)
			}
			t.Logf("%d requests, %d writes", len(w.calls.tries), w.calls.writes())
		})
	}
}

// movesSource pushes to the source once, after a run has read it.
type movesSource struct {
	scm.Repository
	push func()
	once *sync.Once
}

func (m movesSource) PullRequests(ctx context.Context, head, base string) ([]scm.PullRequest, error) {
	m.once.Do(m.push)
	return m.Repository.PullRequests(ctx, head, base)
}

// TestSourceMoves: what is promoted is what the source ran at S and runs still.
func TestSourceMoves(t *testing.T) {
	w := newWorld(t, forges()["gitea"])
	v2, v3 := w.push("todo-api:v2", 2), w.push("todo-api:v3", 3)
	w.fleet(1)
	w.replace("main", file, digestIn(w.at("main")), v2)
	plain := w.repo
	w.repo = movesSource{plain, func() { w.replace("main", file, v2, v3) }, new(sync.Once)}
	res, err := w.toProduction()
	if !errors.Is(err, promote.ErrSource) || !strings.Contains(err.Error(), v2) || !strings.Contains(err.Error(), v3) {
		t.Fatalf("%s, %v; want both digests", res.Outcome, err)
	}
	w.wantPulls("")
	w.repo = plain
	if res, err = w.toProduction(); err != nil || res.Outcome != promote.Opened || res.Changes[0].To.Digest != v3 {
		t.Errorf("the next run: %s %+v, %v", res.Outcome, res.Changes, err)
	}
}

// TestNeverMovesWhatTheSourceDoesNotRun drives random pushes to the source around
// promotions: whatever a promotion proposes, the source ran it at some commit that
// the run could read.
func TestNeverMovesWhatTheSourceDoesNotRun(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	w := newWorld(t, forges()["github"])
	w.fleet(2)
	ran := map[string]bool{digestIn(w.at("main")): true}
	for day := 2; day < 12; day++ {
		digest := w.push(fmt.Sprintf("todo-api:v%d", day), day)
		plain := w.repo
		if random.IntN(2) == 0 {
			w.replace("main", file, digestIn(w.at("main")), digest)
			ran[digest] = true
		} else {
			w.repo = movesSource{plain, func() {
				w.replace("main", file, digestIn(w.at("main")), digest)
				ran[digest] = true
			}, new(sync.Once)}
		}
		res, err := w.toProduction(noProof, allowOlder)
		w.repo = plain
		if err != nil && !errors.Is(err, promote.ErrSource) {
			t.Fatal(err)
		}
		for _, c := range res.Changes {
			if !ran[c.To.Digest] {
				t.Fatalf("day %d: promoted %s, which staging never ran", day, c.To.Digest)
			}
			wrote := res.Outcome == promote.Opened || res.Outcome == promote.Updated
			if err == nil && wrote && c.To.Digest != digestIn(w.at("main")) {
				t.Fatalf("day %d: promoted %s, staging runs %s", day, c.To.Digest, digestIn(w.at("main")))
			}
		}
	}
}
