package promote_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tagboat/inventory"
	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// TestSoak: since this digest is in the source, however it came there, by the
// forge's clock alone. This machine's is a quarter of a century off.
func TestSoak(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTeam(t, forge, "gates: {soak: 24h}")
			w.promoter.Now = func() time.Time { return time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) }
			for i, how := range []string{"merge", "squash", "rebase", "push"} {
				tag := fmt.Sprintf("v%d", i+2)
				w.v(i + 2)
				w.stage("todo-api:"+tag, how)
				w.store.Advance(23 * time.Hour)
				w.wantOnward(promote.Blocked, "soak pending: in staging since 20")
				w.store.Advance(2 * time.Hour)
				res := w.wantOnward(promote.Planned, "soak passed", dryRun)
				if res.Changes[0].To.Tag != tag {
					t.Errorf("%s promotes %s", how, res.Changes[0].To)
				}
			}
			w.setTo(file, "v4") // it was there before, left, and is back
			w.wantOnward(promote.Blocked, "soak pending")
			w.replace("main", file, "# staging", "# the staging") // another line of the file
			w.store.Advance(25 * time.Hour)
			w.wantOnward(promote.Opened, "soak passed")
		})
	}
}

// TestSourceWentBack: an open pull request for what the source no longer runs is made
// to say what it runs, though that is older.
func TestSourceWentBack(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, forge)
			w.setTo(file, "v3")
			w.wantOnward(promote.Opened, "")
			w.setTo(file, "v2")
			res := w.wantOnward(promote.Updated, "order passed")
			if got := w.fileAt(res.HeadBranch, productionFile); !strings.Contains(got, w.v(2)) {
				t.Errorf("%s runs:\n%s", res.HeadBranch, got)
			}
			w.wantOnward(promote.Unchanged, "")
		})
	}
}

// TestSoakCannotBeAsked: plain git has neither times nor statuses: no answer is no pass.
func TestSoakCannotBeAsked(t *testing.T) {
	w := newTeam(t, forges()["gitea"], "gates: {soak: 1h, checks: [argocd/x], approvals: 1}")
	w.setTo(file, "v2")
	for what, c := range map[string]struct {
		bare  scm.Repository
		cause error
	}{
		"no statuses, no times": {plain{w.repo}, inventory.ErrUntold},
	} {
		t.Run(what, func(t *testing.T) {
			w.repo = c.bare
			w.wantLeft(func() {
				if _, err := w.onward(); !errors.Is(err, c.cause) {
					t.Errorf("%v, want %v", err, c.cause)
				}
			})
		})
	}
}

// plain is a repository that can do what every git remote can, and no more.
type plain struct{ scm.Repository }

// TestChecks: all that matches at the newest commit that carries it, since the
// digest is there.
func TestChecks(t *testing.T) {
	words := map[string][3]string{ // pending, failed, passed in the words of each forge
		"github": {"pending", "failure", "success"}, "gitlab": {"running", "failed", "success"}, "gitea": {"pending", "error", "success"},
	}
	for name, said := range words {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, forges()[name], `gates: {checks: ["argocd/*"]}`)
			post := func(commit, context, state string, checkRun bool) {
				t.Helper()
				if _, err := w.store.PostStatus(commit, scmtest.Status{Context: context, State: state, CheckRun: checkRun, Creator: "argocd", Description: "says\n" + state}); err != nil {
					t.Fatal(err)
				}
			}
			post(w.tip("main"), "argocd/todo", said[2], false) // of what was there before
			w.v(2)
			w.stage("todo-api:v2", "merge")
			res := w.wantOnward(promote.Blocked, "check argocd/* pending: no status of that name since the digest is there")
			post(w.tip("main"), "argo/todo", said[2], false)
			post(w.tip("main"), "argocd/todo/deep", said[2], false)
			w.wantOnward(promote.Blocked, "check argocd/* pending: no status of that name since the digest is there")
			if !strings.Contains(res.Reason, "check argocd/*") {
				t.Errorf("reason: %s", res.Reason)
			}
			arrived := w.tip("main")
			post(arrived, "argocd/todo", said[0], false)
			w.wantOnward(promote.Blocked, "check argocd/* pending: argocd/todo is "+said[0])
			post(arrived, "argocd/todo", said[1], false)
			w.wantOnward(promote.Blocked, "check argocd/* failed: argocd/todo is "+said[1])
			post(arrived, "argocd/todo", said[2], false)
			w.must(w.store.Push("main", "mei", "Elsewhere", map[string]string{"README.md": "new\n"}))
			w.wantOnward(promote.Planned, "check argocd/* passed: argocd/todo is "+said[2]+" at "+arrived[:7]+": says", dryRun)
			for n := range 120 { // more than a page has
				post(w.tip("main"), fmt.Sprintf("unit/%d", n), said[2], false)
			}
			post(w.tip("main"), "argocd/todo", said[1], false)
			w.wantOnward(promote.Blocked, "check argocd/* failed")
			post(w.tip("main"), "argocd/todo", said[2], false)
			post(w.tip("main"), "argocd/web", said[0], false)
			w.wantOnward(promote.Blocked, "check argocd/* pending: argocd/web")
			post(w.tip("main"), "argocd/web", said[2], false)
			if name == "github" { // a commit status and a check run of one name are two
				post(w.tip("main"), "argocd/todo", "completed/failure", true)
				w.wantOnward(promote.Blocked, "check argocd/* failed: argocd/todo is failure")
				post(w.tip("main"), "argocd/todo", "completed/success", true)
			}
			w.wantOnward(promote.Opened, "check argocd/* passed: argocd/web")
		})
	}
}

// TestApprovals: who has approved what brought the digest, and may.
func TestApprovals(t *testing.T) {
	type row struct {
		approve func(w *world, number int)
		option  option
		gate    string
	}
	by := func(login string) func(*world, int) {
		return func(w *world, number int) { w.review(number, login, "approved") }
	}
	asked := func(login string) option { return func(q *promote.Request) { q.Job.Actor = login } }
	none := func(*promote.Request) {}
	rows := map[string]row{
		"nobody":                    {func(*world, int) {}, none, "approvals pending: 0 of 1"},
		"who may write":             {by("mei"), none, "approvals passed: 1 of 1 approvals of"},
		"who merged it":             {by("a-person"), none, "approvals passed: 1 of 1"},
		"who may read":              {by("li"), none, "approvals pending: 0 of 1"},
		"who asks, the forge says":  {by("mei"), as("Mei"), "approvals pending: 0 of 1"},
		"who asks, a job says":      {by("mei"), asked("mei"), "approvals pending: 0 of 1"},
		"who is said to have asked": {by("anna"), none, "approvals pending: 0 of 1"},
		"an earlier commit's": {func(w *world, n int) {
			by("mei")(w, n)
			w.must(w.store.Push(branch, "tomas", "More", map[string]string{"README.md": "more\n"}))
		}, none, "approvals pending: 0 of 1"},
		"who committed to it": {func(w *world, n int) {
			w.must(w.store.Push(branch, "mei", "More", map[string]string{"README.md": "more\n"}))
			by("mei")(w, n)
		}, none, "approvals pending: 0 of 1"},
		"one that was taken back":      {func(w *world, n int) { by("mei")(w, n); w.review(n, "mei", "changes_requested") }, none, "approvals pending: 0 of 1"},
		"another's beside what counts": {func(w *world, n int) { by("li")(w, n); by("mei")(w, n); by("anna")(w, n) }, none, "approvals passed: 1 of 1"},
	}
	for _, name := range []string{"github", "gitlab", "gitea"} {
		for what, c := range rows {
			if name == "gitlab" && (what == "one that was taken back" || what == "an earlier commit's") {
				continue // GitLab's approvals are taken back by their giver and reset on a push, by its own
			}
			t.Run(name+", "+what, func(t *testing.T) {
				w := newTeam(t, forges()[name], "gates: {approvals: 1}")
				for _, login := range []string{"mei", "anna", "tomas", "a-person"} {
					w.store.SetPermission(login, write(name))
				}
				w.store.SetPermission("li", read(name))
				w.v(2)
				number := w.stage("todo-api:v2", "", asked("anna"))
				c.approve(w, number)
				w.must(w.store.MergePullRequest(number, "merge"))
				res, err := w.onward(c.option, dryRun)
				if err != nil || !strings.Contains(gatesSay(res.Gates), c.gate) {
					t.Errorf("%v, want %q:\n%s", err, c.gate, gatesSay(res.Gates))
				}
			})
		}
	}
	t.Run("without a pull request", func(t *testing.T) {
		w := newTeam(t, forges()["gitea"], "gates: {approvals: 1}")
		w.setTo(file, "v2")
		w.wantOnward(promote.Blocked, "approvals failed: commit "+w.tip("main")[:7]+" brought it to staging without a pull request")
	})
}

func (w *world) review(number int, login, state string) {
	w.Helper()
	if _, err := w.store.Review(number, login, state); err != nil {
		w.Fatal(err)
	}
}

// TestFreeze: by the forge's clock, while this machine's is two hours off.
func TestFreeze(t *testing.T) {
	w := newTeam(t, forges()["gitea"], `freeze: [{cron: "0 18 * * *", duration: 1h, reason: dinner}]`)
	w.promoter.Now = func() time.Time { return w.store.Clock().Add(2 * time.Hour) }
	w.setTo(file, "v2")
	at := func(hour, minute int) {
		now := w.store.Clock().UTC()
		w.store.Advance(time.Date(now.Year(), now.Month(), now.Day()+1, hour, minute, 0, 0, time.UTC).Sub(now))
	}
	at(17, 0)
	w.wantOnward(promote.Planned, "freeze passed", dryRun)
	at(18, 1)
	res := w.wantOnward(promote.Blocked, "freeze pending: frozen from ")
	if !strings.Contains(res.Reason, "18:00 UTC until") || !strings.Contains(res.Reason, "by the clock of 127.0.0.1") || !strings.HasSuffix(res.Reason, ": dinner") {
		t.Errorf("reason: %s", res.Reason)
	}
	at(19, 1)
	w.wantOnward(promote.Opened, "freeze passed")
}

// TestHoldsStop: whose they are, and that a file which is not understood holds.
func TestHoldsStop(t *testing.T) {
	for name, c := range map[string]struct {
		file, content, says string
	}{
		"environment": {record.HoldPath("production", ""), string(record.Hold{Environment: "production", By: "li", Reason: "incident 12", Since: time.Unix(1.7e9, 0)}.Bytes()), "hold failed: production is held by li since 2023-11-14 22:13 UTC: incident 12"},
		"app":         {record.HoldPath("production", "todo-api"), string(record.Hold{Environment: "production", App: "todo-api", By: "li", Reason: "broken", Since: time.Unix(1.7e9, 0)}.Bytes()), "hold failed: todo-api in production is held by li"},
		"unparsable":  {record.HoldPath("production", ""), "reason: [", "hold failed: production is held: "},
		"nonsense":    {record.HoldDir + "/README", "about", "hold failed: production is held: "},
		"another app": {record.HoldPath("production", "todo-web"), string(record.Hold{Environment: "production", App: "todo-web", By: "li", Reason: "broken", Since: time.Unix(1.7e9, 0)}.Bytes()), ""},
		"source":      {record.HoldPath("staging", ""), string(record.Hold{Environment: "staging", By: "li", Reason: "broken", Since: time.Unix(1.7e9, 0)}.Bytes()), ""},
		"passed":      {record.HoldPath("production", ""), string(record.Hold{Environment: "production", By: "li", Reason: "night", Since: time.Unix(1.6e9, 0), Until: time.Unix(1.6e9+60, 0)}.Bytes()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, forges()["gitea"])
			w.setTo(file, "v2")
			w.must(w.store.Push(record.HoldBranch, "li", "Hold", map[string]string{c.file: c.content}))
			if c.says == "" {
				w.wantOnward(promote.Opened, "order passed")
				return
			}
			w.wantLeft(func() { w.wantOnward(promote.Blocked, c.says) })
		})
	}
}

// TestPeople: who may promote and who may override, as the forge vouches.
func TestPeople(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "gitea"} {
		forge := forges()[name]
		people := func(t *testing.T, rules ...string) *world {
			w := newTeam(t, forge, rules...)
			for _, login := range []string{"mei", "li", "eve"} {
				w.store.SetPermission(login, write(name))
			}
			w.store.SetTeam("release", "", "li", "ida?")
			w.setTo(file, "v2")
			return w
		}
		team := map[string]string{"gitlab": "team:acme/release"}[name]
		if team == "" {
			team = "team:release"
		}
		t.Run(name+" promoters", func(t *testing.T) {
			w := people(t, "promoters: [\"user:Mei\", \""+team+"\"]")
			w.wantLeft(func() { w.wantOnward(promote.Blocked, "promoters failed: eve is not among user:Mei, team:", as("eve")) })
			w.wantLeft(func() {
				w.wantOnward(promote.Blocked, "promoters failed: ", func(q *promote.Request) { q.Job.Actor = "mei" })
			})
			w.wantOnward(promote.Planned, "promoters passed: mei may promote to production", as("mei"), dryRun)
			w.wantOnward(promote.Opened, "promoters passed: li may promote to production", as("li"))
		})
		t.Run(name+" a team that is not there", func(t *testing.T) {
			w := people(t, "promoters: [\""+team+"s\"]")
			w.wantLeft(func() {
				if _, err := w.onward(as("mei")); !errors.Is(err, scm.ErrNotFound) || !strings.Contains(err.Error(), "releases") {
					t.Errorf("%v", err)
				}
			})
		})
		t.Run(name+" override", func(t *testing.T) {
			w := people(t, "gates: {soak: 24h}", "overriders: [\""+team+"\"]")
			hold := record.Hold{Environment: "production", By: "mei", Reason: "incident", Since: time.Unix(1.7e9, 0)}
			w.must(w.store.Push(record.HoldBranch, "mei", "Hold", map[string]string{hold.Path(): string(hold.Bytes())}))
			w.wantLeft(func() {
				res := w.wantOnward(promote.Blocked, "soak pending", as("mei"), override("now"))
				if len(res.Warnings) == 0 || !strings.Contains(res.Warnings[0], "mei is not among the overriders of production") {
					t.Errorf("warnings %q", res.Warnings)
				}
			})
			res := w.wantOnward(promote.Opened, "soak overridden", as("li"), override("customers\ncannot `log` in"))
			if !strings.Contains(gatesSay(res.Gates), "hold overridden") || res.OverriddenBy != "li" {
				t.Errorf("by %q\n%s", res.OverriddenBy, gatesSay(res.Gates))
			}
			message := w.messageAt("tagboat/production/todo-api")
			trailers, _ := record.ParseTrailers(message)
			if trailers.Override != "customers cannot `log` in" || trailers.OverriddenBy != "li" {
				t.Errorf("commit:\n%s", message)
			}
			if !strings.Contains(res.Body, "by `li`: `` customers cannot `log` in ``") {
				t.Errorf("body:\n%s", res.Body)
			}
			w.wantOnward(promote.Unchanged, "") // nothing is asked again of what is proposed
		})
	}
	t.Run("nobody may override", func(t *testing.T) {
		w := newTeam(t, forges()["gitea"], "gates: {soak: 24h}")
		w.setTo(file, "v2")
		res := w.wantOnward(promote.Blocked, "soak pending", override("now"))
		if !slices.ContainsFunc(res.Warnings, func(s string) bool { return strings.Contains(s, "names no overriders of production") }) {
			t.Errorf("warnings %q", res.Warnings)
		}
	})
	t.Run("nobody can be asked for", func(t *testing.T) {
		w := newTeam(t, forges()["gitea"], "promoters: [user:mei]")
		w.setTo(file, "v2")
		w.repo = plain{w.repo}
		w.wantLeft(func() {
			if _, err := w.onward(); !errors.Is(err, promote.ErrCannotAsk) {
				t.Errorf("%v", err)
			}
		})
	})
}

func (w *world) messageAt(branch string) string {
	w.Helper()
	sha, _ := w.store.Branch(branch)
	for c, err := range w.repo.Log(context.Background(), sha, "") {
		if err != nil {
			w.Fatal(err)
		}
		return c.Message
	}
	return ""
}

// TestOrderGate: an image that is given by hand must run in the source.
func TestOrderGate(t *testing.T) {
	w := newTeam(t, forges()["gitea"])
	w.v(2)
	give := func(image string, want promote.Outcome, gate string) {
		t.Helper()
		results, errs := w.ask(promote.Environments{To: []string{"production"}}, image)
		if errs[0] != nil || results[0].Outcome != want || !strings.Contains(gatesSay(results[0].Gates), gate) {
			t.Errorf("%s: %s, %v\n%s", image, results[0].Outcome, errs[0], gatesSay(results[0].Gates))
		}
	}
	w.wantLeft(func() { give("todo-api:v2", promote.Blocked, "order failed: staging runs ") })
	w.setTo(file, "v2")
	give("todo-api:v2", promote.Opened, "order passed: staging runs it at commit "+w.tip("main")[:7])
}

// TestWait polls for what time or somebody else may open, and not for what nobody
// but a person can.
func TestWait(t *testing.T) {
	wait := func(d time.Duration) option { return func(q *promote.Request) { q.Wait = d } }
	w := newTeam(t, forges()["gitea"], "gates: {checks: [argocd/todo]}")
	w.setTo(file, "v2")
	slept := time.Duration(0)
	w.promoter.Sleep = func(_ context.Context, d time.Duration) error {
		w.store.Advance(d)
		if slept += d; slept == 90*time.Second {
			if _, err := w.store.PostStatus(w.tip("main"), scmtest.Status{Context: "argocd/todo", State: "success"}); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	w.wantLeft(func() { w.wantOnward(promote.Blocked, "check argocd/todo pending", wait(45*time.Second)) })
	if slept != 45*time.Second {
		t.Errorf("slept %s", slept)
	}
	slept = 0
	w.wantOnward(promote.Opened, "check argocd/todo passed", wait(10*time.Minute))
	if slept != 90*time.Second {
		t.Errorf("slept %s", slept)
	}
	slept = 0
	hold := record.Hold{Environment: "production", By: "mei", Reason: "incident", Since: w.store.Clock()}
	w.must(w.store.Push(record.HoldBranch, "mei", "Hold", map[string]string{hold.Path(): string(hold.Bytes())}))
	w.setTo(file, "v3")
	w.wantOnward(promote.Blocked, "hold failed", wait(10*time.Minute))
	if slept != 0 {
		t.Errorf("slept %s for a hold", slept)
	}
}
