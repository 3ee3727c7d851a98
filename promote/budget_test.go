package promote_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tagboat/overlay"
	"tagboat/promote"
	"tagboat/registry/registrytest"
	"tagboat/scm"
)

// calls are the requests to a forge since the last reset.
type calls struct {
	mu    sync.Mutex
	tries []scm.Try
	delay time.Duration // before each answer: makes what waits for what visible
}

func (w *world) transport() scm.TransportOptions {
	return scm.TransportOptions{
		Base:  slow{w},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, // the transport's clock moves with it
		Observe: func(try scm.Try) {
			w.calls.mu.Lock()
			defer w.calls.mu.Unlock()
			if !decoration.MatchString(try.Path) {
				w.calls.tries = append(w.calls.tries, try)
			}
		},
	}
}

type slow struct{ w *world }

func (s slow) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(s.w.calls.delay)
	return http.DefaultTransport.RoundTrip(req)
}

func (c *calls) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries = nil
}

func (c *calls) writes() int {
	n := 0
	for _, try := range c.tries {
		if try.Write {
			n++
		}
	}
	return n
}

// rounds is the longest chain of requests of which each began after the one
// before had ended.
func (c *calls) rounds() int {
	slices.SortFunc(c.tries, func(a, b scm.Try) int { return a.Ended.Compare(b.Ended) })
	longest := make([]int, len(c.tries))
	most := 0
	for i, try := range c.tries {
		longest[i] = 1
		for j := range i {
			if !c.tries[j].Ended.After(try.Started) {
				longest[i] = max(longest[i], longest[j]+1)
			}
		}
		most = max(most, longest[i])
	}
	return most
}

func (c *calls) String() string {
	var b strings.Builder
	for _, try := range c.tries {
		fmt.Fprintf(&b, "  %s %s %d\n", try.Method, try.Path, try.Status)
	}
	return b.String()
}

func noProof(q *promote.Request) { q.Prove = overlay.ProveOff }

// decoration are the requests that the budget leaves out: best effort, after the
// pull request says what it moves.
var decoration = regexp.MustCompile(`/(labels|reset_approvals|requested_reviewers|reviews)(/|$)`)

// TestBudget counts the sequential rounds (docs/forges.md), with base and path named,
// without proof and decoration.
func TestBudget(t *testing.T) {
	for name, forge := range forges() {
		if forge.rounds == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, forge)
			w.calls.delay = 40 * time.Millisecond
			measure := func(what string, atMost, writes int, outcome promote.Outcome, images string) {
				t.Helper()
				w.repo = forge.open(t, w.store, w.transport()) // a job's process remembers nothing
				w.calls.reset()
				w.want(outcome, images, noProof)
				rounds := w.calls.rounds()
				t.Logf("%s: %d rounds, %d requests, %d writes", what, rounds, len(w.calls.tries), w.calls.writes())
				if rounds > atMost || writes >= 0 && w.calls.writes() != writes {
					t.Errorf("%s: %d rounds (at most %d), %d writes:\n%s", what, rounds, atMost, w.calls.writes(), &w.calls)
				}
			}
			w.push("todo-api:v2", 2)
			w.push("todo-api:v3", 3)
			measure("up to date", 2, 0, promote.UpToDate, "todo-api:v1")
			measure("opened", forge.rounds, -1, promote.Opened, "todo-api:v2")
			measure("unchanged", 2, 0, promote.Unchanged, "todo-api:v2")
			measure("updated", forge.rounds+1, -1, promote.Updated, "todo-api:v3")
			measure("outdated", 2, 0, promote.Outdated, "todo-api:v2")
			if err := w.store.ClosePullRequest(1, "mei"); err != nil {
				t.Fatal(err)
			}
			// Gitea tells the head of a closed pull request only by its ref: a round more
			closed := forge.closed
			measure("declined", 2+closed, 0, promote.Declined, "todo-api:v3")
			w.push("todo-api:v4", 4)
			measure("opened again", forge.rounds+1+closed, -1, promote.Opened, "todo-api:v4")
		})
	}
}

// TestHundredImages: one commit, one pull request, the calls of one image.
func TestHundredImages(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := func(n int) int {
				w := newWorld(t, forge)
				var kustomization, names strings.Builder
				kustomization.WriteString("images:\n")
				for i := range n {
					fmt.Fprintf(&kustomization, "- name: app-%d\n  newName: %s\n  newTag: v0\n", i, w.ref(fmt.Sprintf("app-%d", i)))
					fmt.Fprintf(&names, "app-%d:v1 ", i)
					w.push(fmt.Sprintf("app-%d:v1", i), 1)
				}
				w.must(w.store.Push("main", "mei", "Many", map[string]string{file: kustomization.String()}))
				w.calls.reset()
				res := w.want(promote.Opened, names.String(), noProof)
				if len(res.Changes) != n {
					t.Errorf("%d changes, want %d", len(res.Changes), n)
				}
				w.wantPulls("1 open")
				if p, err := w.store.Pull(1); err != nil || len([]rune(p.Body)) > w.repo.About().BodyLimit {
					t.Errorf("body of %d characters: %v", len([]rune(p.Body)), err)
				}
				commits, err := w.store.Between(w.tip("main"), w.head())
				if err != nil || len(commits) != 1 {
					t.Errorf("%d commits, %v", len(commits), err)
				}
				return len(w.calls.tries)
			}
			// what is asked at the same time may be asked once or twice
			if one, hundred := count(1), count(100); hundred > one+2 {
				t.Errorf("%d requests for one image, %d for a hundred", one, hundred)
			}
		})
	}
}

func (w *world) tip(branch string) string {
	sha, _ := w.store.Branch(branch)
	return sha
}

// TestLargeRepository: a repository of 50,000 files costs what one of 50 costs.
func TestLargeRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a large repository")
	}
	large := map[string]string{}
	for i := range 50_000 {
		large[fmt.Sprintf("apps/%03d/overlays/%d/kustomization.yaml", i/50, i%50)] = "namePrefix: a-\n"
	}
	small := map[string]string{}
	for path, content := range large {
		if small[path] = content; len(small) == 50 {
			break
		}
	}
	for _, name := range []string{"github", "gitlab", "gitea"} {
		forge := forges()[name]
		t.Run(name, func(t *testing.T) {
			count := func(files map[string]string) (requests int, grown int64) {
				w := newWorld(t, forge)
				w.must(w.store.Push("main", "mei", "Many", files))
				w.push("todo-api:v2", 2)
				w.calls.reset()
				before := heap()
				w.want(promote.Opened, "todo-api:v2")
				return len(w.calls.tries), heap() - before
			}
			few, _ := count(small)
			many, grown := count(large)
			t.Logf("%d requests with 50 files, %d with 50,000; heap grew by %d KiB", few, many, grown/1024)
			if few != many {
				t.Errorf("%d requests with 50 files, %d with 50,000", few, many)
			}
			if grown > 100<<20 {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

// heap is what is in use after a collection, the fake forge's part included.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestRegistryAndForgeOverlap: the registry is asked while the forge is read.
func TestRegistryAndForgeOverlap(t *testing.T) {
	w := newWorld(t, forges()["github"])
	w.push("todo-api:v2", 2)
	const wait = 150 * time.Millisecond
	w.images.Delay(registrytest.Match{}, wait)
	w.calls.delay = wait
	begin := time.Now()
	w.want(promote.UpToDate, "todo-api:v1", noProof)
	forge := time.Duration(w.calls.rounds()) * wait
	registry := time.Duration(len(w.images.Requests())) * wait
	if took := time.Since(begin); took > forge+registry-wait {
		t.Errorf("took %v; forge %v and registry %v did not overlap", took, forge, registry)
	}
}
