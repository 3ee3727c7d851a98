package chatops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tagboat/chatops"
	"tagboat/image"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// TestComment is a command's way on every forge: one reply, edited in place by a
// repetition, signs, and one pull request.
func TestComment(t *testing.T) {
	for name, on := range forges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, on)
			e := w.say("mei", "/promote todo-api to production --reason \"@mei <!-- hunter2 -->\"\r\nplease")
			w.want("opened", e)
			bodies, signs := w.replies(e)
			if len(bodies) != 1 || len(signs) != 2 {
				t.Fatalf("replies %q, reactions %q", bodies, signs)
			}
			for _, want := range []string{"**opened**: `todo-api` to `production`", "`v1` to `v2@" + w.v2 + "`", "order passed", "Run: https://ci.example/run/1", "A person reviews and merges it."} {
				if !strings.Contains(bodies[0], want) {
					t.Errorf("no %q in\n%s", want, bodies[0])
				}
			}
			if len(w.pulls()) != 1 || !strings.Contains(bodies[0], fmt.Sprint(w.pulls()[0].Number)) {
				t.Errorf("pull requests: %v", w.pulls())
			}
			for range 3 {
				w.want("unchanged", e)
			}
			if bodies, signs = w.replies(e); len(bodies) != 1 || !strings.Contains(bodies[0], "**unchanged**") || len(signs) != 2 || len(w.pulls()) != 1 {
				t.Errorf("given again: replies %q, reactions %q, pull requests %d", bodies, signs, len(w.pulls()))
			}
			h := w.say("mei", `/hold production todo-api "it @burns"`)
			w.want("held", h)
			w.want("unchanged", h)
			w.want("released", w.say("mei", "/release production todo-api"))
			w.want("not-held", w.say("mei", "/release production todo-api"))
			w.want("help", w.say("mei", "/help"))
		})
	}
}

// TestRefused: what may not be, and what it leaves: one reply, no pull request.
func TestRefused(t *testing.T) {
	tests := []struct {
		name, author, text string
		then               func(w *world, e *chatops.Event)
		cause              error
		want               string
	}{
		{name: "no right", author: "li", text: "/promote todo-api to production", cause: chatops.ErrNoRight, want: "li may not write"},
		{name: "nobody", author: "stranger", text: "/promote todo-api to production", cause: chatops.ErrNoRight, want: "stranger"},
		{name: "a right that was removed", author: "mei", text: "/promote todo-api to production", then: func(w *world, _ *chatops.Event) {
			w.grant("mei", "none")
		}, cause: chatops.ErrNoRight, want: "mei may not write"},
		{name: "no promoter", author: "ann", text: "/promote todo-api to guarded", cause: chatops.ErrNoRight, want: "none of the promoters of guarded"},
		{name: "no promoter, back", author: "ann", text: "/rollback todo-api in guarded", cause: chatops.ErrNoRight, want: "none of the promoters of guarded"},
		{name: "no right and no grammar", author: "li", text: "/promote", cause: chatops.ErrNoRight, want: "li may not write"},
		{name: "edited", author: "mei", text: "/promote todo-api to production", then: func(w *world, e *chatops.Event) {
			w.edit(e, "/promote todo-api to guarded")
		}, cause: chatops.ErrEdited, want: "edited"},
		{name: "edited into nothing", author: "mei", text: "/promote todo-api to production", then: func(w *world, e *chatops.Event) {
			w.edit(e, "never mind")
		}, cause: chatops.ErrEdited, want: "edited"},
		{name: "another author than the event says", author: "mei", text: "/promote todo-api to production", then: func(_ *world, e *chatops.Event) {
			e.Author = "ann"
		}, cause: chatops.ErrEdited, want: "edited"},
		{name: "another line than the event says", author: "mei", text: "/promote todo-api to production", then: func(_ *world, e *chatops.Event) {
			e.Line = "/promote todo-api to guarded"
		}, cause: chatops.ErrEdited, want: "edited"},
		{name: "staging changed", author: "mei", text: "/promote todo-api to production", then: func(w *world, _ *chatops.Event) {
			w.stage("v3", w.v3)
		}, cause: chatops.ErrChanged, want: "it came after the promotion was asked for: staging runs"},
		{name: "an old one", author: "mei", text: "/release production", then: func(w *world, _ *chatops.Event) {
			w.store.Advance(2 * time.Hour)
		}, cause: chatops.ErrStale, want: "2h0m0s ago"},
		{name: "another digest", author: "mei", text: "/promote todo-api@V1 to production", cause: chatops.ErrChanged, want: "staging runs"},
		{name: "digest of two images", author: "mei", text: "/promote pair@V1 to production", want: "image"},
		{name: "unknown app", author: "mei", text: "/promote todo-ap to production", want: "did you mean todo-api"},
		{name: "no grammar", author: "mei", text: "/promote todo-api", cause: chatops.ErrSyntax, want: "write to ENV"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, onGitHub)
			e := w.say(tt.author, strings.ReplaceAll(tt.text, "V1", w.v1))
			if tt.then != nil {
				tt.then(w, &e)
			}
			a, err := w.answer(e)
			if err != nil || a.Good() || tt.cause != nil && !errors.Is(a.Err, tt.cause) {
				t.Fatalf("%v, %v; want %v", a.Err, err, tt.cause)
			}
			bodies, signs := w.replies(e)
			if len(bodies) != 1 || !strings.Contains(bodies[0], tt.want) || len(w.pulls()) != 0 {
				t.Errorf("replies %q, %d pull requests; want %q", bodies, len(w.pulls()), tt.want)
			}
			if strings.Join(signs, " ") != "eyes -1" {
				t.Errorf("reactions %q", signs)
			}
		})
	}
}

func (w *world) edit(e *chatops.Event, text string) {
	w.Helper()
	if _, err := w.store.EditComment(int(e.ID), text); err != nil {
		w.Fatal(err)
	}
}

// TestSilent: what gets neither a reply nor a reaction.
func TestSilent(t *testing.T) {
	w := newWorld(t, onGitHub)
	gone := w.say("mei", "/promote todo-api to production")
	if err := w.store.DeleteComment(int(gone.ID)); err != nil {
		t.Fatal(err)
	}
	w.grant("robot[bot]", "write")
	for name, e := range map[string]chatops.Event{
		"deleted": gone, "bot": w.say("robot[bot]", "/promote todo-api to production"), "no command": w.say("mei", "I would /promote it"),
	} {
		a, err := w.answer(e)
		bodies, signs := w.replies(e)
		if !errors.Is(err, chatops.ErrIgnored) && !errors.Is(err, chatops.ErrNotCommand) || len(bodies)+len(signs) > 0 {
			t.Errorf("%s: %+v, %v, %q %q", name, a, err, bodies, signs)
		}
	}
}

// TestForkedPullRequest: whose head a pull request has does not matter, for nothing
// of it is read; what its author may do does.
func TestForkedPullRequest(t *testing.T) {
	w := newWorld(t, onGitHub)
	p, err := w.store.OpenForkPull(scmtest.NewPull{Fork: "stranger/config", Head: "fix", Base: "main", Title: "Fix", Author: "stranger"}, map[string]string{
		"tagboat.yaml": "version: 1\nenvironments: [{name: production, path: evil}]\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.issue = p.Number
	for author, want := range map[string]string{"stranger": "refused", "mei": "opened"} {
		e := w.say(author, "/promote todo-api to production")
		e.PullRequest = true
		if a, err := w.answer(e); err != nil || a.Word() != want {
			t.Errorf("%s: %s, %v, %v", author, a.Word(), a.Err, err)
		}
	}
}

// TestLocked: an answer that cannot be given is the job's fault, with the reason.
func TestLocked(t *testing.T) {
	w := newWorld(t, onGitHub)
	e := w.say("mei", "/promote todo-api to production")
	if err := w.store.Lock(w.issue); err != nil {
		t.Fatal(err)
	}
	w.store.SetPermission("tagboat[bot]", "read")
	if _, err := w.answer(e); !errors.Is(err, scm.ErrRefused) || !strings.Contains(err.Error(), "outcome: opened") {
		t.Errorf("%v", err)
	}
}

// TestTwoDigests: two people promote different digests of one app at the same time.
// Each is bound to what staging runs, so that at most one of them comes through.
func TestTwoDigests(t *testing.T) {
	w := newWorld(t, onGitea)
	old, fresh := w.say("mei", "/promote todo-api@"+w.v2+" to production"), w.say("ann", "/promote todo-api@"+w.v3+" to production")
	answers := make([]chatops.Answer, 2)
	var both sync.WaitGroup
	for i, e := range []chatops.Event{old, fresh} {
		both.Go(func() {
			var err error
			if answers[i], err = w.answer(e); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if !answers[0].Good() || !errors.Is(answers[1].Err, chatops.ErrChanged) || len(w.pulls()) != 1 {
		t.Errorf("%s (%v) and %s (%v), %d pull requests", answers[0].Word(), answers[0].Err, answers[1].Word(), answers[1].Err, len(w.pulls()))
	}
}

// TestTogether: the same event in five jobs at once is one promotion.
func TestTogether(t *testing.T) {
	w := newWorld(t, onGitea)
	e := w.say("mei", "/promote todo-api to production")
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if a, err := w.answer(e); err != nil || !a.Good() {
				t.Errorf("%s: %v %v, %v", a.Word(), a.Err, a.Errors, err)
			}
		})
	}
	all.Wait()
	if len(w.pulls()) != 1 {
		t.Errorf("%d pull requests", len(w.pulls()))
	}
}

// TestStopped: a job that is stopped still says what it did not do, and the next one
// completes it.
func TestStopped(t *testing.T) {
	w := newWorld(t, onGitea)
	e := w.say("mei", "/promote todo-api to production")
	ctx, stop := context.WithCancel(t.Context())
	w.bot.Promoter.Progress = func(string) { stop() }
	a, err := w.bot.Comment(ctx, w.forge, e, teller())
	if err != nil || a.Good() {
		t.Fatalf("%s, %v", a.Word(), err)
	}
	if bodies, _ := w.replies(e); len(bodies) != 1 {
		t.Errorf("replies %q", bodies)
	}
	w.bot.Promoter.Progress = nil
	w.want("opened", e)
	if bodies, _ := w.replies(e); len(bodies) != 1 || !strings.Contains(bodies[0], "**opened**") {
		t.Errorf("replies %q", bodies)
	}
}

func TestAsk(t *testing.T) {
	w := newWorld(t, onGitea)
	ref, err := image.Parse(w.images.Host() + "/acme/todo-api:v3@" + w.v3)
	if err != nil {
		t.Fatal(err)
	}
	accept := chatops.Accept{Speakers: []string{"tagboat"}, Requesters: map[string][]string{"todo-ci": {"todo-api"}, "web-ci": {"todo-web"}}}
	tests := []struct {
		name    string
		ask     chatops.Ask
		starter string
		want    string
		says    string
	}{
		{"image", chatops.Ask{Image: ref, To: "staging"}, "todo-ci", "opened", ""},
		{"image, nobody's", chatops.Ask{Image: ref, To: "staging"}, "mei", "refused", "takes nothing from mei"},
		{"image, another's app", chatops.Ask{Image: ref, To: "staging"}, "web-ci", "refused", "not for todo-api"},
		{"image, past staging", chatops.Ask{Image: ref, To: "production"}, "todo-ci", "refused", "is promoted from staging"},
		{"image, unknown", chatops.Ask{Image: ref, To: "stagin"}, "todo-ci", "refused", "did you mean staging"},
		{"chat", chatops.Ask{Command: "/promote todo-api to production", User: "slack:T1/U1"}, "tagboat", "opened", ""},
		{"chat, by nobody", chatops.Ask{Command: "/promote todo-api to production", User: "slack:T1/U1"}, "mei", "refused", "mei may not speak"},
		{"chat, unmapped", chatops.Ask{Command: "/promote todo-api to production", User: "slack:T2/U1"}, "tagboat", "refused", "T2/U1: LOGIN"},
		{"chat, no right", chatops.Ask{Command: "/promote todo-api to production", User: "slack:T9/U2"}, "tagboat", "refused", "li may not write"},
		{"by hand", chatops.Ask{Command: "/hold staging x"}, "ann", "held", ""},
		{"by hand, no right", chatops.Ask{Command: "/hold staging x"}, "li", "refused", "li may not write"},
		{"no command", chatops.Ask{Command: "dance"}, "mei", "refused", "none of the commands"},
		{"a pipeline with a right to write gives a command", chatops.Ask{Command: "/release staging"}, "todo-ci", "refused", "commands are for people"},
		{"the server for itself", chatops.Ask{Command: "/release staging"}, "tagboat", "refused", "commands are for people"},
	}
	w.grant("todo-ci", "write")
	w.grant("tagboat", "write")
	for _, tt := range tests {
		starter := func(context.Context) (scm.Starter, error) {
			return scm.Starter{Login: tt.starter, Event: "workflow_dispatch"}, nil
		}
		a, err := w.bot.Ask(t.Context(), tt.ask, chatops.Job{Starter: starter, Accept: accept, Teller: teller()})
		if err != nil || a.Word() != tt.want || !strings.Contains(fmt.Sprint(a.Err), tt.says) {
			t.Errorf("%s: %s, %v %v, %v; want %s, %q", tt.name, a.Word(), a.Err, a.Errors, err, tt.want, tt.says)
		}
	}
}

// TestNobodyBehindIt: a trigger, another project's job and a program act in the name
// of an account that may write, and whose person has asked for nothing.
func TestNobodyBehindIt(t *testing.T) {
	w := newWorld(t, onGitLab)
	for _, starter := range []scm.Starter{
		{Login: "mei", Event: "trigger"}, {Login: "mei", Event: "pipeline"}, {Login: "mei", Event: "schedule"}, {Login: "mei", Event: "push"}, {Login: "mei"},
		{Login: "ann", Event: "api", Kind: scm.AuthorBot},
	} {
		job := chatops.Job{Starter: func(context.Context) (scm.Starter, error) { return starter, nil }, Teller: teller()}
		a, err := w.bot.Ask(t.Context(), chatops.Ask{Command: "/hold production x"}, job)
		if err != nil || !errors.Is(a.Err, chatops.ErrNoRight) {
			t.Errorf("%+v: %s, %v, %v", starter, a.Word(), a.Err, err)
		}
	}
}

// TestTold: what a comment was when it was made is the server's word. Who may only
// start the workflow could have edited it within the second that forges tell.
func TestTold(t *testing.T) {
	w := newWorld(t, onGitHub)
	e := w.say("mei", "/promote todo-api to guarded")
	ask := chatops.Ask{Comment: e.CommentAt, LineHash: chatops.LineHash(e.Line)}
	by := func(login string) chatops.Job {
		return chatops.Job{
			Starter: func(context.Context) (scm.Starter, error) {
				return scm.Starter{Login: login, Event: "workflow_dispatch"}, nil
			},
			Forum:  func(context.Context, string) (scm.Conversation, error) { return w.forge, nil },
			Accept: chatops.Accept{Speakers: []string{"tagboat"}}, Teller: teller(),
		}
	}
	a, err := w.bot.Ask(t.Context(), ask, by("ann"))
	if bodies, signs := w.replies(e); !errors.Is(err, chatops.ErrNoRight) || len(w.pulls())+len(bodies)+len(signs) > 0 {
		t.Errorf("%s, %v, %q %q", a.Word(), err, bodies, signs)
	}
	if a, err = w.bot.Ask(t.Context(), ask, by("tagboat")); err != nil || a.Word() != "opened" {
		t.Errorf("%s, %v %v, %v", a.Word(), a.Err, a.Errors, err)
	}
}

// TestChangedMeanwhile: the source changes between two looks at it, long after the
// comment was checked. What came is not what was meant.
func TestChangedMeanwhile(t *testing.T) {
	for _, at := range []int{1, 2, 3} {
		w := newWorld(t, onGitHub)
		e := w.say("mei", "/promote todo-api to production")
		opened, open := 0, w.bot.Promoter.Open
		w.bot.Promoter.Open = func(ctx context.Context, name, forge string) (scm.Repository, error) {
			if opened++; opened == at {
				w.stage("v3", w.v3)
			}
			return open(ctx, name, forge)
		}
		a, err := w.answer(e)
		if opened < at { // fewer looks: nothing changed
			continue
		}
		if err != nil || !errors.Is(a.Err, chatops.ErrChanged) || len(w.pulls()) != 0 {
			t.Errorf("changed at look %d: %s, %v %v, %v, %d pull requests", at, a.Word(), a.Err, a.Errors, err, len(w.pulls()))
		}
	}
}

// TestChangedBeforeTheJob: what came to the source while a dispatched job waited is
// not what was meant, as with comments.
func TestChangedBeforeTheJob(t *testing.T) {
	for name, on := range forges() {
		w := newWorld(t, on)
		job := func(login string) chatops.Job {
			asked := w.say(login, "/help") // tells the forge's time
			c, err := w.forge.Comment(t.Context(), asked.CommentRef)
			if err != nil {
				t.Fatal(err)
			}
			return chatops.Job{Teller: teller(), Starter: func(context.Context) (scm.Starter, error) {
				return scm.Starter{Login: login, Event: "api", Since: c.Created}, nil
			}}
		}
		early, ask := job("mei"), chatops.Ask{Command: "/promote todo-api to production"}
		w.stage("v3", w.v3)
		if a, err := w.bot.Ask(t.Context(), ask, early); err != nil || !errors.Is(a.Err, chatops.ErrChanged) || len(w.pulls()) != 0 {
			t.Errorf("%s: %s, %v %v, %v", name, a.Word(), a.Err, a.Errors, err)
		}
		if a, err := w.bot.Ask(t.Context(), ask, job("mei")); err != nil || a.Word() != "opened" {
			t.Errorf("%s: %s, %v %v, %v", name, a.Word(), a.Err, a.Errors, err)
		}
	}
}

// TestLongError: what a forge says at length stays inside of its code span.
func TestLongError(t *testing.T) {
	tell := teller()
	tell.Markdown = true
	text := tell.Text(chatops.Answer{Err: errors.New(strings.Repeat("@mei <b>|", 20000) + "hunter2")})
	if len(text) > 10000 || strings.Count(text, "`") != 2 || !strings.Contains(text, "Giving the command again does no harm.") {
		t.Errorf("%d bytes, %d marks of code: %.80s", len(text), strings.Count(text, "`"), text)
	}
}
