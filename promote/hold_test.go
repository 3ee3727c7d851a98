package promote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
	"tagboat/scm/plaingit"
	"tagboat/scm/scmtest"
)

// holder is a config repository in which things are held.
type holder struct {
	*testing.T
	store    *scmtest.Store
	repo     scm.Repository
	promoter *promote.Promoter
	calls    *calls
	told     string // what the note says of a job's word
	vouched  bool   // the forge says whose token it is
	clock    func() time.Time
	another  func() scm.Repository // as another process opens it
}

const heldConfig = `version: 1
apps:
  todo-api: {images: [{repository: ghcr.io/acme/todo-api}]}
  todo-web: {images: [{repository: ghcr.io/acme/todo-web}], environments: [staging]}
environments:
  - {name: staging, path: "apps/{app}/staging"}
  - {name: production, path: "apps/{app}/production"}
`

// holders are the six fakes and plain git.
func holders() map[string]func(*testing.T) *holder {
	all := map[string]func(*testing.T) *holder{"git": func(t *testing.T) *holder {
		bare, err := scmtest.NewBare(t.TempDir(), map[string]string{"tagboat.yaml": heldConfig})
		if err != nil {
			t.Fatal(err)
		}
		repo, err := plaingit.New(plaingit.Options{URL: bare.URL})
		if err != nil {
			t.Fatal(err)
		}
		// one process: of two, one may take away the lock that the other just took
		return newHolder(t, bare.Store, func() scm.Repository { return repo })
	}}
	for name, forge := range forges() {
		all[name] = func(t *testing.T) *holder {
			w := &world{T: t}
			store := scmtest.NewStore("main", map[string]string{"tagboat.yaml": heldConfig})
			open := func() scm.Repository { return forge.open(t, store, w.transport()) }
			h := newHolder(t, store, open)
			h.calls, h.clock = &w.calls, store.Clock
			// an App's token without GraphQL cannot ask who it is
			h.vouched, h.told = name != "github-rest", "as told: the forge does not say whose token it is"
			return h
		}
	}
	return all
}

func newHolder(t *testing.T, store *scmtest.Store, open func() scm.Repository) *holder {
	machine := func() time.Time { return time.Date(2028, 1, 1, 12, 0, 0, 5, time.UTC) } // two years from the forges'
	return &holder{T: t, store: store, repo: open(), another: open, clock: machine, told: "as told: git vouches for nobody", promoter: &promote.Promoter{
		Sleep: func(context.Context, time.Duration) error { return nil },
		Now:   machine,
	}}
}

func (h *holder) hold(hold record.Hold, o promote.HoldOptions) (promote.HoldResult, error) {
	return h.promoter.Hold(h.Context(), h.repo, hold, o)
}

// want holds or releases and demands the outcome.
func (h *holder) want(outcome promote.HoldOutcome, hold record.Hold, o promote.HoldOptions) promote.HoldResult {
	h.Helper()
	res, err := h.hold(hold, o)
	if err != nil || res.Outcome != outcome {
		h.Fatalf("hold %+v: %s, %v; want %s", hold, res.Outcome, err, outcome)
	}
	return res
}

func (h *holder) release(outcome promote.HoldOutcome, hold record.Hold) promote.HoldResult {
	h.Helper()
	res, err := h.promoter.Release(h.Context(), h.repo, hold, promote.HoldOptions{})
	if err != nil || res.Outcome != outcome {
		h.Fatalf("release %+v: %s, %v; want %s", hold, res.Outcome, err, outcome)
	}
	return res
}

func (h *holder) holds() promote.Holds {
	h.Helper()
	holds, err := h.promoter.Holds(h.Context(), h.repo)
	if err != nil {
		h.Fatal(err)
	}
	return holds
}

// held lists what stops todo-api in production now.
func (h *holder) held(digests ...string) string {
	h.Helper()
	var out []string
	for _, hold := range h.holds().On("production", "todo-api", h.clock(), digests) {
		out = append(out, hold.String())
	}
	return strings.Join(out, "\n")
}

// write pushes a file to the hold branch, as a person would.
func (h *holder) write(path, content string) {
	h.Helper()
	if _, ok := h.store.Branch(record.HoldBranch); !ok {
		main, _ := h.store.Branch("main")
		if err := h.store.CreateBranch(record.HoldBranch, main); err != nil {
			h.Fatal(err)
		}
	}
	if _, err := h.store.Push(record.HoldBranch, "mei", "By hand", map[string]string{path: content}); err != nil {
		h.Fatal(err)
	}
}

// log is the subjects of the hold branch's own commits, newest first.
func (h *holder) log() []string {
	h.Helper()
	main, _ := h.store.Branch("main")
	tip, _ := h.store.Branch(record.HoldBranch)
	commits, err := h.store.Between(main, tip)
	if err != nil {
		h.Fatal(err)
	}
	var out []string
	for _, c := range commits {
		subject, _, _ := strings.Cut(c.Message, "\n")
		out = append(out, subject)
	}
	return out
}

func (h *holder) message() string {
	h.Helper()
	tip, _ := h.store.Branch(record.HoldBranch)
	c, ok := h.store.Commit(tip)
	if !ok {
		h.Fatalf("no commit %s", tip)
	}
	return c.Message
}

func production(reason string) record.Hold {
	return record.Hold{Environment: "production", Reason: reason}
}

func apiHold(reason string) record.Hold {
	return record.Hold{Environment: "production", App: "todo-api", Reason: reason}
}

// by is a hold of somebody for whom the forge has vouched.
func by(login string) promote.HoldOptions { return promote.HoldOptions{Actor: login} }

func job(actor string) promote.HoldOptions {
	return promote.HoldOptions{Job: promote.Job{Actor: actor}}
}

func replacing(o promote.HoldOptions) promote.HoldOptions {
	o.Replace = true
	return o
}

func holdRows() map[string]func(*holder) {
	return map[string]func(*holder){
		"hold, see, release": func(h *holder) {
			before, _ := h.store.Branch("main")
			res := h.want(promote.HoldPlaced, production("incident 12 | 磁碟滿了"), job("mei"))
			if res.Commit == nil || res.Commit.SHA == "" {
				h.Errorf("no commit: %+v", res)
			}
			if age := h.clock().Sub(res.Hold.Since); age < 0 || age > time.Minute {
				h.Errorf("since %v", res.Hold.Since)
			}
			if d := cmp.Diff([]record.Hold{res.Hold}, h.holds().All); d != "" {
				h.Errorf("(-placed +read)\n%s", d)
			}
			who := "mei (" + h.told + ")"
			if h.vouched {
				who = res.Hold.By + " (for mei, as told)"
				if res.Hold.By == "" || res.Hold.By == "mei" {
					h.Errorf("by %q, want the token's login", res.Hold.By)
				}
			}
			want := "production is held by " + who + " since " + res.Hold.Since.Format(time.RFC3339) + ": incident 12 | 磁碟滿了"
			if got := h.held(); got != want {
				h.Errorf("held:\n%s\nwant\n%s", got, want)
			}
			out := h.release(promote.HoldReleased, record.Hold{Environment: "production", By: "li", Reason: "the disk is larger"})
			if out.Hold.Reason != res.Hold.Reason {
				h.Errorf("released %+v", out.Hold)
			}
			if got := h.held(); got != "" {
				h.Errorf("still held: %s", got)
			}
			if d := cmp.Diff([]string{"Release production: the disk is larger", "Hold production: incident 12 | 磁碟滿了"}, h.log()); d != "" {
				h.Error(d)
			}
			if m := h.message(); !strings.Contains(m, "\nTagboat-Release: production\nTagboat-By: li\nTagboat-Reason: the disk is larger\nTagboat-Released: "+want+"\n") {
				h.Errorf("message:\n%s", m)
			}
			if after, _ := h.store.Branch("main"); after != before {
				h.Error("the default branch moved")
			}
			if pulls := h.store.Pulls(func(scmtest.Pull) bool { return true }); len(pulls) > 0 {
				h.Errorf("pull requests: %+v", pulls)
			}
		},
		"an app's hold and its environment's": func(h *holder) {
			h.want(promote.HoldPlaced, apiHold("one"), by("mei"))
			h.want(promote.HoldPlaced, production("two"), by("li"))
			holds := h.holds()
			for at, want := range map[string]int{"production/todo-api": 2, "production/todo-web": 1, "staging/todo-api": 0} {
				environment, app, _ := strings.Cut(at, "/")
				if got := holds.On(environment, app, h.clock(), nil); len(got) != want {
					h.Errorf("%s: %v, want %d", at, got, want)
				}
			}
			h.release(promote.HoldReleased, record.Hold{Environment: "production"})
			if got := h.held(); !strings.Contains(got, "todo-api in production is held by mei") || strings.Contains(got, "two") {
				h.Errorf("held: %s", got)
			}
			h.release(promote.HoldNone, record.Hold{Environment: "production"})
			h.release(promote.HoldReleased, record.Hold{Environment: "production", App: "todo-api"})
		},
		"held by another": func(h *holder) {
			h.want(promote.HoldPlaced, production("incident 12"), by("mei"))
			before := h.message()
			_, err := h.hold(production("freeze"), by("li"))
			if !errors.Is(err, promote.ErrHeld) {
				h.Fatalf("error %v", err)
			}
			for _, word := range []string{"production", "mei", "since 20", "incident 12", "--replace"} {
				if !strings.Contains(err.Error(), word) {
					h.Errorf("the error has no %q: %v", word, err)
				}
			}
			if h.message() != before {
				h.Error("something was committed")
			}
			res := h.want(promote.HoldReplaced, production("freeze"), replacing(by("li")))
			if res.Was == nil || res.Was.By != "mei" {
				h.Errorf("was %+v", res.Was)
			}
			if got := h.held(); !strings.Contains(got, "li") || strings.Contains(got, "mei") {
				h.Errorf("held: %s", got)
			}
			if m := h.message(); !strings.Contains(m, "Tagboat-Replaced: production is held by mei since ") {
				h.Errorf("message:\n%s", m)
			}
		},
		"the same again": func(h *holder) {
			until := h.clock().Add(time.Hour)
			hold := production("incident 12")
			hold.Until = until
			first := h.want(promote.HoldPlaced, hold, by("mei"))
			again := h.want(promote.HoldUnchanged, hold, by("mei"))
			if d := cmp.Diff(first.Hold, again.Hold); d != "" || again.Commit != nil {
				h.Errorf("%+v\n%s", again.Commit, d)
			}
			hold.Until = until.Add(time.Hour)
			longer := h.want(promote.HoldReplaced, hold, by("mei"))
			if !longer.Hold.Since.Equal(first.Hold.Since) {
				h.Errorf("since %v, then %v", first.Hold.Since, longer.Hold.Since)
			}
			hold.Until = until
			if _, err := h.hold(hold, by("mei")); !errors.Is(err, promote.ErrHeld) {
				h.Errorf("shortened: %v", err)
			}
			hold.Until = time.Time{}
			h.want(promote.HoldReplaced, hold, by("mei"))
			if _, err := h.promoter.Release(h.Context(), h.repo, production("two\nlines"), by("mei")); !errors.Is(err, promote.ErrMisused) {
				h.Errorf("released for two lines: %v", err)
			}
			if _, err := h.hold(production("another reason"), by("mei")); !errors.Is(err, promote.ErrHeld) {
				h.Errorf("another reason: %v", err)
			}
		},
		"time": func(h *holder) {
			res := h.want(promote.HoldPlaced, production("two hours"), promote.HoldOptions{Actor: "mei", For: 2 * time.Hour})
			if got := res.Hold.Until.Sub(res.Hold.Since); got != 2*time.Hour {
				h.Errorf("for %v", got)
			}
			holds := h.holds()
			for at, want := range map[time.Time]int{res.Hold.Until.Add(-time.Second): 1, res.Hold.Until: 0} {
				if got := holds.On("production", "todo-api", at, nil); len(got) != want {
					h.Errorf("at %v: %v", at, got)
				}
			}
			hold := apiHold("yesterday")
			hold.Until = h.clock().Add(-24 * time.Hour)
			if _, err := h.hold(hold, by("mei")); !errors.Is(err, promote.ErrMisused) || !strings.Contains(err.Error(), "past") {
				h.Errorf("error %v", err)
			}
		},
		"a hold whose time has passed is in nobody's way": func(h *holder) {
			h.write("holds/production.yaml", "reason: old\nby: mei\nuntil: 2020-01-01T00:00:00Z\n")
			if got := h.held(); got != "" {
				h.Errorf("held: %s", got)
			}
			h.want(promote.HoldPlaced, production("new"), by("li"))
		},
		"an allowed digest passes that hold only": func(h *holder) {
			digest, other := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
			hold := apiHold("rolled back")
			hold.Allow = []string{digest}
			h.want(promote.HoldPlaced, hold, by("mei"))
			if got := h.held(digest); got != "" {
				h.Errorf("held: %s", got)
			}
			for _, digests := range [][]string{{other}, {digest, other}, nil} {
				if got := h.held(digests...); !strings.Contains(got, "rolled back") {
					h.Errorf("%v passes", digests)
				}
			}
			h.want(promote.HoldPlaced, production("incident"), by("mei"))
			if got := h.held(digest); !strings.Contains(got, "incident") || strings.Contains(got, "rolled back") {
				h.Errorf("held: %s", got)
			}
		},
		"a file that does not parse holds": func(h *holder) {
			h.write("holds/production/todo-api.yaml", "reson: typo\n")
			got := h.held()
			if !strings.Contains(got, "todo-api in production is held") || !strings.Contains(got, "holds/production/todo-api.yaml") || !strings.Contains(got, "reson") || strings.Contains(got, "\n") {
				h.Errorf("held: %s", got)
			}
			if on := h.holds().On("production", "todo-web", h.clock(), nil); len(on) > 0 {
				h.Errorf("todo-web: %v", on)
			}
			_, err := h.hold(apiHold("mine"), by("mei"))
			if !errors.Is(err, promote.ErrHeld) || !strings.Contains(err.Error(), "reson") {
				h.Errorf("error %v", err)
			}
			h.want(promote.HoldReplaced, apiHold("mine"), replacing(by("mei")))
			h.write("holds/production/todo-api.yaml", "reson: typo\n")
			if res := h.release(promote.HoldReleased, apiHold("")); len(res.Warnings) == 0 {
				h.Error("nothing is said about the file")
			}
			if got := h.held(); got != "" {
				h.Errorf("held: %s", got)
			}
		},
		"a path that is not understood holds everything": func(h *holder) {
			h.write("holds/production.yml", "reason: wrong ending\n")
			if got := h.held(); !strings.Contains(got, "holds/production.yml") {
				h.Errorf("held: %s", got)
			}
			on := h.holds().On("staging", "todo-web", h.clock(), nil)
			if len(on) != 1 || on[0].Environment != "staging" {
				h.Errorf("staging: %v", on)
			}
		},
		"bad input": func(h *holder) {
			for name, c := range map[string]struct {
				hold record.Hold
				says string
			}{
				"no reason":   {production(" "), "no reason"},
				"two lines":   {production("a\nTagboat-Hold: b"), "U+000A"},
				"long":        {production(strings.Repeat("x", record.ReasonLimit+1)), "at most"},
				"environment": {record.Hold{Environment: "../x", Reason: "x"}, "cannot be the name"},
				"app":         {record.Hold{Environment: "production", App: "a/b", Reason: "x"}, "cannot be the name"},
				"allow":       {record.Hold{Environment: "production", Reason: "x", Allow: []string{"v1"}}, "not a digest"},
			} {
				if _, err := h.hold(c.hold, by("mei")); !errors.Is(err, promote.ErrMisused) || !strings.Contains(err.Error(), c.says) {
					h.Errorf("%s: %v", name, err)
				}
			}
			h.branches("main")
		},
		"dry run": func(h *holder) {
			res := h.want(promote.HoldPlanned, production("x"), promote.HoldOptions{Actor: "mei", DryRun: true})
			if res.Commit != nil || res.Hold.Since.IsZero() {
				h.Errorf("%+v", res)
			}
			h.branches("main")
		},
		"what must be in tagboat.yaml": func(h *holder) {
			for target, says := range map[string]string{
				"production": "", "production/todo-api": "", "staging/todo-web": "",
				"prodution": "production", "production/todo-ap": "todo-api", "production/todo-web": "todo-web is not in production",
			} {
				environment, app, _ := strings.Cut(target, "/")
				err := h.promoter.CheckHeld(h.Context(), h.repo, environment, app)
				if says == "" && err != nil || says != "" && (!errors.Is(err, promote.ErrMisused) || !strings.Contains(err.Error(), says)) {
					h.Errorf("%s: %v, want %q", target, err, says)
				}
			}
		},
		"the default branch has a directory of that name": func(h *holder) {
			if _, err := h.store.Push("main", "mei", "Ships", map[string]string{"holds/README.md": "of ships\n", "holds/production.yaml": "cargo: 12\n", "holds/a/b.yaml": "x: y\n"}); err != nil {
				h.Fatal(err)
			}
			h.want(promote.HoldPlaced, production("incident"), by("mei"))
			if holds := h.holds(); len(holds.All) != 1 || len(holds.Unread) != 0 {
				h.Errorf("%+v", holds)
			}
			main, _ := h.store.Branch("main")
			if b, _, err := h.store.ReadFile(main, "holds/production.yaml"); err != nil || string(b) != "cargo: 12\n" {
				h.Errorf("main: %q %v", b, err)
			}
		},
		"protected default branch": func(h *holder) {
			h.store.Protect("main")
			h.want(promote.HoldPlaced, production("incident"), by("mei"))
			h.release(promote.HoldReleased, production(""))
		},
	}
}

func (h *holder) branches(want ...string) {
	h.Helper()
	if d := cmp.Diff(want, h.store.Branches()); d != "" {
		h.Errorf("branches (-want +got)\n%s", d)
	}
}

func TestHolds(t *testing.T) {
	for name, open := range holders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for row, test := range holdRows() {
				t.Run(row, func(t *testing.T) { test(open(t)) })
			}
		})
	}
}

// TestHoldsAtOnce: jobs hold and release at the same time, as processes of their
// own would; every hold that was placed stands, and every one that was released is
// gone.
func TestHoldsAtOnce(t *testing.T) {
	for name, open := range holders() {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			h.promoter.Sleep = func(_ context.Context, d time.Duration) error {
				time.Sleep(d / 20)
				return nil
			}
			h.want(promote.HoldPlaced, record.Hold{Environment: "e0", Reason: "released below"}, by("mei"))
			var wait sync.WaitGroup
			errs := make([]error, 4)
			for i := range errs {
				repo := h.another()
				wait.Go(func() {
					if i == 0 {
						_, errs[i] = h.promoter.Release(h.Context(), repo, record.Hold{Environment: "e0"}, by("li"))
						return
					}
					_, errs[i] = h.promoter.Hold(h.Context(), repo, record.Hold{Environment: fmt.Sprintf("e%d", i), Reason: "at once"}, by("mei"))
				})
			}
			wait.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, hold := range h.holds().All {
				got = append(got, hold.Environment)
			}
			if d := cmp.Diff([]string{"e1", "e2", "e3"}, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestOneHoldAtOnce: of many that want to hold the same, one does, and the others
// are told who.
func TestOneHoldAtOnce(t *testing.T) {
	for name, open := range holders() {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			var wait sync.WaitGroup
			errs := make([]error, 4)
			for i := range errs {
				repo := h.another()
				wait.Go(func() {
					_, errs[i] = h.promoter.Hold(h.Context(), repo, production(fmt.Sprint("job ", i)), by(fmt.Sprint("mei", i)))
				})
			}
			wait.Wait()
			won := 0
			for i, err := range errs {
				switch {
				case err == nil:
					won++
					if got := h.held(); !strings.Contains(got, fmt.Sprint("job ", i)) {
						t.Errorf("job %d won, and there is %s", i, got)
					}
				case !errors.Is(err, promote.ErrHeld):
					t.Errorf("job %d: %v", i, err)
				}
			}
			if won != 1 {
				t.Errorf("%d hold", won)
			}
		})
	}
}

// meets is a repository on which something happens before the next commit.
type meets struct {
	scm.Repository
	before func()
}

func (m *meets) Commit(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Repository.Commit(ctx, d)
}

// TestHoldMeanwhile: what somebody does between our reading and our commit.
func TestHoldMeanwhile(t *testing.T) {
	for name, open := range holders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for row, test := range map[string]func(h *holder, m *meets){
				"released by another": func(h *holder, m *meets) {
					m.before = func() { h.write("holds/staging.yaml", "reason: theirs\n") }
					h.release(promote.HoldReleased, production(""))
					if got := h.held(); got != "" {
						h.Errorf("held: %s", got)
					}
				},
				"another hold in the place of the one to release": func(h *holder, m *meets) {
					m.before = func() { h.write("holds/production.yaml", "reason: theirs\nby: li\n") }
					_, err := h.promoter.Release(h.Context(), h.repo, production(""), by("mei"))
					if !errors.Is(err, promote.ErrHeld) || !strings.Contains(err.Error(), "meanwhile") {
						h.Errorf("error %v", err)
					}
					if got := h.held(); !strings.Contains(got, "theirs") {
						h.Errorf("held: %s", got)
					}
				},
				"another hold in the place of the one to replace": func(h *holder, m *meets) {
					m.before = func() { h.write("holds/production.yaml", "reason: theirs\nby: li\n") }
					if _, err := h.hold(production("mine"), replacing(by("mei"))); !errors.Is(err, promote.ErrHeld) {
						h.Errorf("error %v", err)
					}
					if got := h.held(); !strings.Contains(got, "theirs") {
						h.Errorf("held: %s", got)
					}
				},
				"the branch is deleted": func(h *holder, m *meets) {
					m.before = func() {
						if err := h.store.DeleteBranch(record.HoldBranch, ""); err != nil {
							h.Fatal(err)
						}
					}
					h.want(promote.HoldPlaced, apiHold("mine"), by("mei"))
					if got := h.held(); !strings.Contains(got, "mine") {
						h.Errorf("held: %s", got)
					}
				},
				"elsewhere on the branch": func(h *holder, m *meets) {
					m.before = func() { h.write("holds/staging.yaml", "reason: theirs\n") }
					h.want(promote.HoldPlaced, apiHold("mine"), by("mei"))
					if holds := h.holds(); len(holds.All) != 3 {
						h.Errorf("%+v", holds.All)
					}
				},
			} {
				t.Run(row, func(t *testing.T) {
					h := open(t)
					h.want(promote.HoldPlaced, production("first"), by("mei"))
					m := &meets{Repository: h.repo}
					h.repo = m
					test(h, m)
				})
			}
		})
	}
}

// breaks is a repository that cannot tell.
type breaks struct {
	scm.Repository
	tip error
}

func (b breaks) Tip(ctx context.Context, branch string) (scm.Tip, error) {
	if branch == record.HoldBranch {
		return scm.Tip{}, b.tip
	}
	return b.Repository.Tip(ctx, branch)
}

// TestHoldsThatCannotBeRead: what is not known is never "no hold".
func TestHoldsThatCannotBeRead(t *testing.T) {
	h := holders()["gitea"](t)
	h.want(promote.HoldPlaced, production("incident"), by("mei"))
	for _, cause := range []error{scm.ErrUnavailable, scm.ErrDenied, scm.ErrRateLimited, context.DeadlineExceeded} {
		if holds, err := h.promoter.Holds(t.Context(), breaks{h.repo, cause}); !errors.Is(err, cause) {
			t.Errorf("%v: %+v, %v", cause, holds, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if holds, err := h.promoter.Holds(ctx, h.repo); err == nil {
		t.Errorf("cancelled: %+v", holds)
	}
	if _, err := h.store.PushChanges(record.HoldBranch, "mei", "Link", []scmtest.TreeChange{{Path: "holds/staging.yaml", Mode: "120000", Content: []byte("production.yaml")}}); err != nil {
		t.Fatal(err)
	}
	on := h.holds().On("staging", "todo-api", h.clock(), nil)
	if len(on) != 1 || !strings.Contains(on[0].Reason, "no file") {
		t.Errorf("a symlink: %v", on)
	}
	for what, err := range map[string]error{
		"hold": func() error {
			_, err := h.hold(record.Hold{Environment: "staging", Reason: "x"}, replacing(by("mei")))
			return err
		}(),
		"release": func() error {
			_, err := h.promoter.Release(t.Context(), h.repo, record.Hold{Environment: "staging"}, by("mei"))
			return err
		}(),
	} {
		if !errors.Is(err, promote.ErrHeld) || !strings.Contains(err.Error(), "delete it there") {
			t.Errorf("%s of a symlink: %v", what, err)
		}
	}
}

// TestHoldsWithoutTheirDirectory: what stands in its place is not "no hold".
func TestHoldsWithoutTheirDirectory(t *testing.T) {
	for forge, open := range holders() {
		for mode, content := range map[string]string{"100644": "x", "120000": "elsewhere"} {
			t.Run(forge+" "+mode, func(t *testing.T) {
				h := open(t)
				h.want(promote.HoldPlaced, production("incident"), by("mei"))
				for _, change := range []scmtest.TreeChange{{Path: "holds/production.yaml", Delete: true}, {Path: "holds", Mode: mode, Content: []byte(content)}} {
					if _, err := h.store.PushChanges(record.HoldBranch, "mei", "Replace", []scmtest.TreeChange{change}); err != nil {
						t.Fatal(err)
					}
				}
				holds, err := h.promoter.Holds(t.Context(), h.repo)
				on := holds.On("production", "todo-api", h.clock(), nil)
				if err == nil && (len(on) != 1 || !strings.Contains(on[0].Reason, "no file")) {
					t.Errorf("nothing is held: %v", on)
				}
			})
		}
	}
}

// TestHoldsBudget counts the rounds of one reading.
func TestHoldsBudget(t *testing.T) {
	for name, open := range holders() {
		if forges()[name].rounds == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			measure := func(atMost int, holds ...record.Hold) {
				t.Helper()
				h := open(t)
				for _, hold := range holds {
					h.want(promote.HoldPlaced, hold, by("mei"))
				}
				h.repo = h.another()
				h.calls.delay = 40 * time.Millisecond
				h.calls.reset()
				h.holds()
				rounds := h.calls.rounds()
				t.Logf("%d holds: %d rounds, %d requests", len(holds), rounds, len(h.calls.tries))
				if rounds > atMost || h.calls.writes() > 0 {
					t.Errorf("%d holds: %d rounds, at most %d:\n%s", len(holds), rounds, atMost, h.calls)
				}
			}
			measure(1)
			h := open(t)
			h.want(promote.HoldPlaced, production("over"), by("mei"))
			h.release(promote.HoldReleased, production(""))
			h.calls.delay = 40 * time.Millisecond
			h.calls.reset()
			if holds := h.holds(); len(holds.All) > 0 || h.calls.rounds() > 3 {
				t.Errorf("none on a branch: %+v, %d rounds:\n%s", holds.All, h.calls.rounds(), h.calls)
			}
			measure(3, production("one"), record.Hold{Environment: "staging", Reason: "two"})
			measure(4, production("one"), apiHold("two"), record.Hold{Environment: "staging", App: "todo-web", Reason: "three"})
		})
	}
}

// TestHoldNobodyVouches: a token that may not ask who it is holds all the same,
// and says that it is only told.
func TestHoldNobodyVouches(t *testing.T) {
	h := holders()["gitea"](t)
	h.repo = nobody{h.repo}
	res := h.want(promote.HoldPlaced, production("incident"), job("mei\n<!-- x"))
	want := record.Hold{Environment: "production", By: "mei <! -- x", Note: "as told: the forge does not say whose token it is", Reason: "incident"}
	if d := cmp.Diff(want, res.Hold, cmpopts.IgnoreFields(record.Hold{}, "Since")); d != "" || len(res.Warnings) != 1 {
		t.Errorf("%v\n%s", res.Warnings, d)
	}
	res, err := h.hold(apiHold("x"), promote.HoldOptions{})
	if err != nil || res.Hold.By != "somebody" {
		t.Errorf("%+v, %v", res, err)
	}
}

type nobody struct{ scm.Repository }

func (nobody) Self(context.Context) (string, error) { return "", scm.ErrDenied }
func (nobody) Permission(context.Context, string) (scm.Permission, error) {
	return scm.PermissionNone, scm.ErrDenied
}
func (nobody) Member(context.Context, string, string) (bool, error) { return false, scm.ErrDenied }
