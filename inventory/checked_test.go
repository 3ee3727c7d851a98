package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/inventory"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// says are the checks as "pattern context state word commit", commits by the name
// that the test gave them.
func says(checks []inventory.Check, names map[string]string) string {
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintln(&b, strings.Join(strings.Fields(strings.Join([]string{c.Pattern, c.Context, string(c.State), c.Word, names[c.Commit]}, " ")), " "))
	}
	return strings.TrimSpace(b.String())
}

func (w *world) post(sha, name, state string) {
	w.Helper()
	if _, err := w.store.PostStatus(sha, scmtest.Status{Context: name, State: state, Creator: "argocd", URL: "https://argocd.example/" + name}); err != nil {
		w.Fatal(err)
	}
}

// TestChecked: the line is old (before staging ran b), arrival, two others, tip.
func TestChecked(t *testing.T) {
	for name, c := range map[string]struct {
		posts    string // commit context=state …
		patterns string
		want     string
	}{
		"success at the arrival":              {"arrival argocd/todo=success", "argocd/*", "argocd/* argocd/todo success success arrival"},
		"success later":                       {"between argocd/todo=success", "argocd/*", "argocd/* argocd/todo success success between"},
		"the newest that carries it":          {"arrival argocd/todo=success between argocd/todo=pending", "argocd/*", "argocd/* argocd/todo pending pending between"},
		"the latest of a context":             {"tip argocd/todo=pending argocd/todo=success", "argocd/*", "argocd/* argocd/todo success success tip"},
		"before the arrival":                  {"old argocd/todo=success", "argocd/*", "argocd/* pending missing"},
		"another context":                     {"tip ci=success", "argocd/*", "argocd/* pending missing"},
		"a deeper context":                    {"tip argocd/eu/todo=success", "argocd/*", "argocd/* pending missing"},
		"all that match at one commit":        {"tip argocd/a=success argocd/b=pending", "argocd/*", "argocd/* argocd/a success success tip\nargocd/* argocd/b pending pending tip"},
		"each context at its own commit":      {"tip argocd/a=success between argocd/b=pending argocd/a=pending arrival argocd/b=success", "argocd/*", "argocd/* argocd/a success success tip\nargocd/* argocd/b pending pending between"},
		"each pattern at its own commit":      {"tip ci=success arrival argocd/a=success", "argocd/* ci smoke", "argocd/* argocd/a success success arrival\nci ci success success tip\nsmoke pending missing"},
		"on a side branch's commit":           {"side argocd/todo=success", "argocd/*", "argocd/* pending missing"},
		"a name with signs that are patterns": {"tip a[1]=success", `a\[1\] a[1]`, `a\[1\] a[1] success success tip` + "\na[1] pending missing"},
	} {
		for forge, open := range forges() {
			t.Run(name+" on "+forge, func(t *testing.T) {
				w := newWorld(t, open)
				shas := map[string]string{"old": w.push("main", "other", "old")}
				shas["side"] = w.push("tagboat/b", file, pinned("b"))
				shas["arrival"] = w.merge("tagboat/b", "merge")
				shas["between"] = w.push("main", "other", "1")
				shas["tip"] = w.push("main", "other", "2")
				names, at := map[string]string{}, ""
				for n, sha := range shas {
					names[sha] = n
				}
				for _, word := range strings.Fields(c.posts) {
					if sha, ok := shas[word]; ok {
						at = sha
						continue
					}
					context, state, _ := strings.Cut(word, "=")
					w.post(at, context, state)
				}
				ctx := context.Background()
				a, err := inventory.Arrived(ctx, w.target(), w.tip())
				if err != nil {
					t.Fatal(err)
				}
				got, err := inventory.Checked(ctx, w.target(), w.tip(), a, strings.Fields(c.patterns))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(c.want, says(got, names)); d != "" {
					t.Errorf("(-want +got)\n%s", d)
				}
			})
		}
	}
}

// TestCheckedAfterAChange: what was said before the files last changed is of other
// files, although the digest has stayed.
func TestCheckedAfterAChange(t *testing.T) {
	for forge, open := range forges() {
		t.Run(forge, func(t *testing.T) {
			w := newWorld(t, open)
			w.push("tagboat/b", file, pinned("b"))
			arrival := w.merge("tagboat/b", "squash")
			w.post(arrival, "argocd/todo", "success")
			w.push("main", file, "namePrefix: x-\n"+pinned("b"))
			w.push("main", "other", "1")
			check := func(want string) {
				t.Helper()
				got, err := inventory.Checked(context.Background(), w.target(), w.tip(), inventory.Arrival{Commit: scm.Commit{SHA: arrival}}, []string{"argocd/*"})
				if err != nil || says(got, nil) != want {
					t.Errorf("%q, %v, want %q", says(got, nil), err, want)
				}
			}
			check("argocd/* pending missing")
			w.post(w.tip(), "argocd/todo", "success")
			check("argocd/* argocd/todo success success")
		})
	}
}

// TestCheckRunAndStatus: a status and a check run of one name are two checks, and
// what was skipped is no success.
func TestCheckRunAndStatus(t *testing.T) {
	w := newWorld(t, openGitHub)
	w.post(w.tip(), "smoke", "success")
	if _, err := w.store.PostStatus(w.tip(), scmtest.Status{Context: "smoke", State: "completed/skipped", Creator: "actions", CheckRun: true}); err != nil {
		t.Fatal(err)
	}
	got, err := inventory.Checked(context.Background(), w.target(), w.tip(), inventory.Arrival{}, []string{"smoke"})
	if want := "smoke smoke pending skipped\nsmoke smoke success success"; err != nil || says(got, nil) != want {
		t.Errorf("%q, %v, want %q", says(got, nil), err, want)
	}
}

// TestCheckedIsBounded: three hundred commits are looked at, and no more; of two
// targets on one line the second asks for no statuses until they are forgotten.
func TestCheckedIsBounded(t *testing.T) {
	w := newWorld(t, openGitea)
	first := w.push("main", "other", "first")
	for i := range 299 {
		w.push("main", "other", fmt.Sprint(i))
	}
	w.post(first, "seen", "success")
	line := inventory.NewLine(w.target().Repo, w.tip())
	check := func(want string, atMost int64) {
		t.Helper()
		w.calls.Store(0)
		target := w.target()
		target.Line = line
		got, err := inventory.Checked(context.Background(), target, w.tip(), inventory.Arrival{}, []string{"seen"})
		if err != nil || says(got, nil) != want {
			t.Errorf("%q, %v, want %q", says(got, nil), err, want)
		}
		if n := w.calls.Load(); n > atMost {
			t.Errorf("%d calls, want at most %d", n, atMost)
		}
	}
	check("seen seen success success", 620)
	w.post(first, "seen", "failure")
	check("seen seen success success", 10)
	line.Forget()
	check("seen seen failure failure", 620)
	w.push("main", "other", "one more")
	line = inventory.NewLine(w.target().Repo, w.tip())
	check("seen pending missing", 620)
}

func TestBadPattern(t *testing.T) {
	w := newWorld(t, openGitea)
	_, err := inventory.Checked(context.Background(), w.target(), w.tip(), inventory.Arrival{}, []string{"ci", "[a"})
	if !errors.Is(err, path.ErrBadPattern) || !strings.Contains(err.Error(), `"[a"`) {
		t.Error(err)
	}
	if n := w.calls.Load(); n != 0 {
		t.Errorf("%d calls for a pattern that does not read", n)
	}
}
