package promote_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"tagboat/promote"
)

// cut is a network that fails for good once so many requests have been served; the
// answer of the last one is lost.
type cut struct {
	left atomic.Int64
	on   atomic.Bool
}

func (c *cut) RoundTrip(req *http.Request) (*http.Response, error) {
	if !c.on.Load() {
		return http.DefaultTransport.RoundTrip(req)
	}
	left := c.left.Add(-1)
	if left < 0 {
		return nil, errDied
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if left == 0 && err == nil {
		_ = resp.Body.Close()
		return nil, errDied
	}
	return resp, err
}

// TestKilledAtEveryRequest: whichever request of a promotion is the last one, the next
// run ends it: one pull request, that says what its branch does.
func TestKilledAtEveryRequest(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killed := 0
			for n := int64(1); ; n++ {
				network := &cut{}
				forge := forges()[name]
				w := newTeam(t, forge)
				transport := w.transport()
				transport.Base = network
				w.repo = forge.open(t, w.store, transport)
				w.setTo(file, "v2")
				network.left.Store(n)
				network.on.Store(true)
				res, err := w.onward()
				network.on.Store(false)
				if err != nil {
					killed++
				}
				finished := w.wantOnwardAny(promote.Opened, promote.Updated, promote.Unchanged)
				w.wantOnward(promote.Unchanged, "")
				w.wantPulls("1 open")
				p, pullErr := w.store.Pull(1)
				if pullErr != nil || !strings.Contains(p.Body, w.v(2)) || !strings.Contains(w.fileAt(productionBranch, productionFile), w.v(2)) {
					t.Fatalf("after %d requests (%v): %s, %v\n%s", n, err, finished.Outcome, pullErr, p.Body)
				}
				if err == nil && res.Outcome == promote.Opened && network.left.Load() > 0 {
					break
				}
				if n > 100 {
					t.Fatal("it never gets through")
				}
			}
			if killed < 5 {
				t.Errorf("killed %d times", killed)
			}
		})
	}
}

// wantOnwardAny is wantOnward for one of several outcomes.
func (w *world) wantOnwardAny(outcomes ...promote.Outcome) promote.Result {
	w.Helper()
	res, err := w.onward()
	for _, o := range outcomes {
		if err == nil && res.Outcome == o {
			return res
		}
	}
	w.Fatalf("%s (%s), %v; want one of %v", res.Outcome, res.Reason, err, outcomes)
	return res
}

// TestDirectKilled: a direct commit whose answer is lost is found by the next run.
func TestDirectKilled(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := int64(1); n < 30; n++ {
				network := &cut{}
				forge := forges()[name]
				w := newWorld(t, forge)
				transport := w.transport()
				transport.Base = network
				w.repo = forge.open(t, w.store, transport)
				w.govern(directStaging)
				v2 := w.v(2)
				before := w.tip("main")
				network.left.Store(n)
				network.on.Store(true)
				_, errs := w.ask(promote.Environments{To: []string{"staging"}}, "todo-api:v2")
				network.on.Store(false)
				w.direct("todo-api:v2")
				commits, err := w.store.Between(before, w.tip("main"))
				if err != nil || len(commits) != 1 || !strings.Contains(w.at("main"), v2) {
					t.Fatalf("after %d requests (%v): %d commits, %v", n, errs[0], len(commits), err)
				}
				if errs[0] == nil && network.left.Load() > 0 {
					return
				}
			}
			t.Error("it never gets through")
		})
	}
}
