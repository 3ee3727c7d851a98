package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
	"tagboat/scm/scmtest"
)

// said opens an issue on which author says a command.
func said(t *testing.T, st *scmtest.Store, author string) scm.CommentRef {
	t.Helper()
	number, err := st.OpenIssue("Release", "mei")
	if err != nil {
		t.Fatal(err)
	}
	c, err := st.Say(number, author, "/promote todo-api to production")
	if err != nil {
		t.Fatal(err)
	}
	return scm.CommentRef{ID: int64(c.ID), Number: number}
}

func TestKindOfAuthor(t *testing.T) {
	st := seeded()
	r := open(t, githubtest.New(t, st, githubtest.Options{ViaApp: map[string]bool{"li": true, "helper[bot]": true}}))
	for author, want := range map[string]scm.AuthorKind{
		"mei": scm.AuthorPerson, "renovate[bot]": scm.AuthorBot, "github-actions[bot]": scm.AuthorBot, "li": scm.AuthorApp, "helper[bot]": scm.AuthorBot,
	} {
		c, err := r.Comment(t.Context(), said(t, st, author))
		if err != nil || c.Kind != want || c.Author != author {
			t.Errorf("%s: %q by %q, %v; want %q", author, c.Kind, c.Author, err, want)
		}
	}
}

// A proxy lost the answer: what was said is found, and not said twice.
func TestReplyWhoseAnswerWasLost(t *testing.T) {
	for name, applied := range map[string]bool{"it was made": true, "it was not": false} {
		st := seeded()
		s := githubtest.New(t, st, githubtest.Options{})
		r, ref := open(t, s), said(t, st, "mei")
		const op = "POST issues/{issue_number}/comments"
		if applied {
			s.Lose(op, githubtest.Answer{Status: 502, Body: "<html>"})
		} else {
			s.Fail(op, 1, githubtest.Answer{Status: 502, Body: "<html>"})
		}
		c, err := r.Reply(t.Context(), scm.Comment{CommentRef: ref}, "Done.")
		switch {
		case applied && (err != nil || c.ID == 0):
			t.Errorf("%s: %+v, %v", name, c, err)
		case !applied && !errors.Is(err, scm.ErrUnavailable):
			t.Errorf("%s: error %v", name, err)
		}
		all, _, _ := st.Thread(ref.Number)
		if want := map[bool]int{true: 2, false: 1}[applied]; len(all) != want || count(s.Ops(), op) != 1 {
			t.Errorf("%s: %d comments, want %d", name, len(all), want)
		}
	}
}

func TestConversationRefusals(t *testing.T) {
	type answers = map[string]githubtest.Answer
	const (
		post  = "POST issues/{issue_number}/comments"
		list  = "GET issues/{issue_number}/comments"
		react = "POST issues/comments/{comment_id}/reactions"
	)
	integration := githubtest.Answer{Status: 403, Message: "Resource not accessible by integration"}
	for name, c := range map[string]struct {
		lacks   []string
		locked  bool
		answers answers
		do      func(*testing.T, *github.Repository, scm.CommentRef) error
		want    error
		says    string
	}{
		"locked":                {locked: true, do: reply, want: scm.ErrRefused, says: "issue is locked"},
		"locked for a reaction": {locked: true, do: eyes, want: scm.ErrRefused, says: "conversation is locked"},
		"no right to comment":   {answers: answers{post: integration}, do: reply, want: scm.ErrDenied, says: "lacks issues:write"},
		"no right to react":     {answers: answers{react: integration}, do: eyes, want: scm.ErrDenied, says: "lacks issues:write"},
		"no right to read":      {lacks: []string{"issues"}, do: read, want: scm.ErrDenied, says: "issues:read"},
		"issues are off":        {answers: answers{list: {Status: 410, Message: "Issues has been disabled in this repository."}}, do: reply, want: scm.ErrNotFound, says: "disabled"},
		"forge is down":         {answers: answers{react: {Status: 503, Body: "<html>"}}, do: eyes, want: scm.ErrUnavailable, says: "react to comment"},
		"whose token cannot be told": {
			answers: answers{"GraphQL viewer": {Status: 401, Message: "Bad credentials"}}, do: reply, want: scm.ErrDenied, says: "whose credential",
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := seeded()
			s := githubtest.New(t, st, githubtest.Options{Lacks: c.lacks, Login: "tagboat", Token: "ghp_fake"})
			st.SetPermission("tagboat", "read")
			ref := said(t, st, "mei")
			if c.locked {
				if err := st.Lock(ref.Number); err != nil {
					t.Fatal(err)
				}
			}
			for op, a := range c.answers {
				s.Fail(op, -1, a)
			}
			err := c.do(t, open(t, s), ref)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) || !strings.Contains(fmt.Sprint(err), "acme/config") || strings.Contains(fmt.Sprint(err), "ghp_") {
				t.Errorf("error %v, want %v that says %q", err, c.want, c.says)
			}
		})
	}
}

func reply(t *testing.T, r *github.Repository, ref scm.CommentRef) error {
	_, err := r.Reply(t.Context(), scm.Comment{CommentRef: ref}, "Done.")
	return err
}

func eyes(t *testing.T, r *github.Repository, ref scm.CommentRef) error {
	return r.React(t.Context(), ref, scm.ReactionEyes)
}

func read(t *testing.T, r *github.Repository, ref scm.CommentRef) error {
	_, err := r.Comment(t.Context(), ref)
	return err
}

func asked() scm.Dispatch {
	return scm.Dispatch{Workflow: "promote.yml", Mark: "req-1", Inputs: map[string]any{"request": "req-1", "wait": true}}
}

const receiving = "run-name: promote ${{ inputs.request }}\non:\n  workflow_dispatch:\n    inputs:\n      request: {}\n      wait: {type: boolean}\n"

func receiver(t *testing.T, o githubtest.Options) (*githubtest.Server, *github.Repository) {
	t.Helper()
	st := seeded()
	if _, err := st.Push("main", "mei", "Receive", map[string]string{".github/workflows/promote.yml": receiving}); err != nil {
		t.Fatal(err)
	}
	s := githubtest.New(t, st, o)
	return s, open(t, s)
}

// GitHub Enterprise Server up to 3.19 tells no run: it is found by its name.
func TestDispatchWithoutRunDetails(t *testing.T) {
	for _, how := range []string{"ignores", "refuses"} {
		s, r := receiver(t, githubtest.Options{NoRunDetails: how, Enterprise: true})
		s.Store.StartRun(scmtest.Run{Workflow: "promote.yml", Branch: "main", Event: "workflow_dispatch", Title: "promote req-0", Actor: "li"})
		s.HideNewest(2)
		run, err := r.Dispatch(t.Context(), asked())
		if err != nil || run.Title != "promote req-1" || run.State != scm.RunQueued {
			t.Errorf("%s: %+v, %v", how, run, err)
		}
		if n := len(s.Store.Runs()); n != 2 {
			t.Errorf("%s: %d runs, want one more", how, n)
		}
	}
}

func TestDispatchWhoseRunIsNotFound(t *testing.T) {
	for name, change := range map[string]func(*githubtest.Server, *scm.Dispatch){
		"never listed": func(s *githubtest.Server, _ *scm.Dispatch) { s.HideNewest(100) },
		"no mark":      func(_ *githubtest.Server, d *scm.Dispatch) { d.Mark = "" },
		"runs may not be listed": func(s *githubtest.Server, _ *scm.Dispatch) {
			s.Fail("GET actions/workflows/{workflow_id}/runs", -1, githubtest.Answer{Status: 403, Message: "no"})
		},
		"the mark is not in it": func(_ *githubtest.Server, d *scm.Dispatch) { d.Mark = "another" },
	} {
		s, r := receiver(t, githubtest.Options{NoRunDetails: "ignores"})
		d := asked()
		change(s, &d)
		run, err := r.Dispatch(t.Context(), d)
		if err != nil || run.ID != 0 || run.State != scm.RunQueued || !strings.HasSuffix(run.URL, "/acme/config/actions/workflows/promote.yml") {
			t.Errorf("%s: %+v, %v", name, run, err)
		}
	}
}

// A lost answer is looked up, and never asked for twice.
func TestDispatchWhoseAnswerWasLost(t *testing.T) {
	const op = "POST actions/workflows/{workflow_id}/dispatches"
	s, r := receiver(t, githubtest.Options{})
	s.Lose(op, githubtest.Answer{Status: 502, Body: "<html>"})
	run, err := r.Dispatch(t.Context(), asked())
	if err != nil || run.ID == 0 || count(s.Ops(), op) != 1 {
		t.Errorf("done: %+v, %v", run, err)
	}
	s.Fail(op, 1, githubtest.Answer{Status: 502, Body: "<html>"})
	d := asked()
	d.Mark = "req-2"
	if run, err = r.Dispatch(t.Context(), d); !errors.Is(err, scm.ErrUnavailable) {
		t.Errorf("not done: %+v, %v", run, err)
	}
}

func TestDispatchRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		opts githubtest.Options
		with func(*scm.Dispatch)
		want error
		says string
	}{
		"disabled":         {opts: githubtest.Options{DisabledWorkflows: []string{"promote.yml"}}, want: scm.ErrRefused, says: "enable it"},
		"no right":         {opts: githubtest.Options{Lacks: []string{"actions"}}, want: scm.ErrDenied, says: "actions:write"},
		"unknown input":    {with: func(d *scm.Dispatch) { d.Inputs["to"] = "x" }, want: scm.ErrRefused, says: `["to"]; compare with workflow_dispatch.inputs of .github/workflows/promote.yml on main`},
		"no workflow":      {with: func(d *scm.Dispatch) { d.Workflow = "deploy.yml" }, want: scm.ErrNotFound, says: "there is no .github/workflows/deploy.yml on the default branch"},
		"no branch":        {with: func(d *scm.Dispatch) { d.Branch = "nope" }, want: scm.ErrNotFound, says: "No ref found for: nope"},
		"a path as a name": {with: func(d *scm.Dispatch) { d.Workflow = "../promote.yml" }, says: "no file name"},
	} {
		_, r := receiver(t, c.opts)
		d := asked()
		if c.with != nil {
			c.with(&d)
		}
		_, err := r.Dispatch(t.Context(), d)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %v that says %q", name, err, c.want, c.says)
		}
	}
}

// A log comes some seconds after its job has ended; one that does not is an error.
func TestOutputThatIsNotThereYet(t *testing.T) {
	s, r := receiver(t, githubtest.Options{})
	run := s.Store.StartRun(scmtest.Run{Workflow: "promote.yml", State: "running", Actor: "mei", Log: "done\n"})
	if _, err := r.Output(t.Context(), run.ID); !errors.Is(err, scm.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	s.Before("GET actions/jobs/{job_id}/logs", func() {})
	s.Before("GET actions/jobs/{job_id}/logs", func() { _ = s.Store.SetRun(run.ID, "success", "done\n") })
	if text, err := r.Output(t.Context(), run.ID); err != nil || !strings.HasSuffix(text, "done\n") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestStarter(t *testing.T) {
	for name, c := range map[string]struct {
		run  scmtest.Run
		want scm.Starter
		says string
	}{
		"in progress":   {run: scmtest.Run{State: "running", Actor: "mei", Event: "issue_comment"}, want: scm.Starter{Login: "mei", Kind: scm.AuthorPerson, Event: "issue_comment"}},
		"started again": {run: scmtest.Run{State: "running", Actor: "mei", Again: "li", Event: "push"}, want: scm.Starter{Login: "li", Kind: scm.AuthorPerson, Event: "push"}},
		"by a bot":      {run: scmtest.Run{State: "running", Actor: "ci[bot]", Event: "push"}, want: scm.Starter{Login: "ci[bot]", Kind: scm.AuthorBot, Event: "push"}},
		"ended":         {run: scmtest.Run{State: "success", Actor: "mei"}, says: "completed, not in progress"},
		"queued":        {run: scmtest.Run{Actor: "mei"}, says: "queued, not in progress"},
	} {
		s, r := receiver(t, githubtest.Options{})
		run := s.Store.StartRun(c.run)
		got, err := r.Starter(t.Context(), scm.JobRef{Run: run.ID})
		if got.URL != "" {
			if c.want.URL, c.want.Since = got.URL, got.Since; got.Since.IsZero() {
				t.Errorf("%s: not since when", name)
			}
		}
		if got != c.want || (err != nil) != (c.says != "") || err != nil && (!errors.Is(err, scm.ErrDenied) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	_, r := receiver(t, githubtest.Options{})
	if _, err := r.Starter(t.Context(), scm.JobRef{Run: 1}); !errors.Is(err, scm.ErrDenied) {
		t.Errorf("a run of another repository: %v", err)
	}
}

// talkAll makes the calls of scm.Conversation, scm.Dispatcher and scm.Job.
func talkAll(t *testing.T, s *githubtest.Server, r *github.Repository) {
	t.Helper()
	ref := said(t, s.Store, "mei")
	c, err := r.Comment(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Comment(t.Context(), sayOnPull(t, s.Store)); err != nil {
		t.Fatal(err)
	}
	_, made := r.Reply(t.Context(), c, "At work.")
	_, edited := r.Reply(t.Context(), c, "Done.")
	_, pushed := s.Store.Push("main", "mei", "Receive", map[string]string{".github/workflows/promote.yml": receiving})
	s.Fail("POST actions/workflows/{workflow_id}/dispatches", 1, githubtest.Answer{Status: http.StatusBadGateway, Body: "<html>"})
	_, lost := r.Dispatch(t.Context(), asked())
	if !errors.Is(lost, scm.ErrUnavailable) {
		t.Errorf("error %v", lost)
	}
	run, dispatched := r.Dispatch(t.Context(), asked())
	ended := s.Store.SetRun(run.ID, "success", "done\n")
	_, read := r.Output(t.Context(), run.ID)
	if err := errors.Join(made, edited, r.React(t.Context(), ref, scm.ReactionEyes), pushed, dispatched, ended, read); err != nil {
		t.Fatal(err)
	}
}

// sayOnPull comments on a fresh pull request.
func sayOnPull(t *testing.T, st *scmtest.Store) scm.CommentRef {
	t.Helper()
	_, pushed := st.Push("talk", "mei", "Talk", map[string]string{"talk.txt": "x"})
	p, opened := st.OpenPull(scmtest.NewPull{Head: "talk", Base: "main", Title: "Talk", Author: "mei"})
	c, said := st.Say(p.Number, "mei", "/promote todo-api to production")
	if err := errors.Join(pushed, opened, said); err != nil {
		t.Fatal(err)
	}
	return scm.CommentRef{ID: int64(c.ID), Number: p.Number, PullRequest: true}
}
