package gitea_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

// said opens an issue on which author says a command.
func said(t *testing.T, st *scmtest.Store, author string) scm.CommentRef {
	t.Helper()
	number, opened := st.OpenIssue("Release", "mei")
	c, err := st.Say(number, author, "/promote todo-api to production")
	if err := errors.Join(opened, err); err != nil {
		t.Fatal(err)
	}
	return scm.CommentRef{ID: int64(c.ID), Number: number}
}

// An imported comment has the importer as its user: it is nobody's.
func TestKindOfAuthor(t *testing.T) {
	r, _, st := fake(t, giteatest.Options{Imported: map[string]bool{"old-mei": true}})
	for author, want := range map[string]scm.Comment{
		"mei": {Author: "mei"}, "gitea-actions": {Author: "gitea-actions", Kind: scm.AuthorBot}, "old-mei": {},
	} {
		c, err := r.Comment(t.Context(), said(t, st, author))
		if err != nil || c.Kind != want.Kind || c.Author != want.Author {
			t.Errorf("%s: %q by %q, %v; want %q by %q", author, c.Kind, c.Author, err, want.Kind, want.Author)
		}
	}
}

func TestReplyWhoseAnswerWasLost(t *testing.T) {
	for _, applied := range []bool{true, false} {
		r, s, st := fake(t, giteatest.Options{})
		ref := said(t, st, "mei")
		s.Fail(giteatest.Fault{Method: http.MethodPost, Path: "/comments", Times: 1, Status: 502, Applied: applied})
		c, err := r.Reply(t.Context(), scm.Comment{CommentRef: ref}, "Done.")
		if applied != (err == nil && c.ID != 0) || !applied && !errors.Is(err, scm.ErrUnavailable) {
			t.Errorf("applied %v: %+v, %v", applied, c, err)
		}
		all, _, _ := st.Thread(ref.Number)
		if want := map[bool]int{true: 2, false: 1}[applied]; len(all) != want {
			t.Errorf("applied %v: %d comments, want %d", applied, len(all), want)
		}
	}
}

func TestConversationRefusals(t *testing.T) {
	reply := func(t *testing.T, r *gitea.Repository, ref scm.CommentRef) error {
		_, err := r.Reply(t.Context(), scm.Comment{CommentRef: ref}, "Done.")
		return err
	}
	eyes := func(t *testing.T, r *gitea.Repository, ref scm.CommentRef) error {
		return r.React(t.Context(), ref, scm.ReactionEyes)
	}
	for name, c := range map[string]struct {
		opts   giteatest.Options
		locked bool
		fault  *giteatest.Fault
		do     func(*testing.T, *gitea.Repository, scm.CommentRef) error
		want   error
		says   string
	}{
		"locked":                {locked: true, do: reply, want: scm.ErrRefused, says: "the conversation is locked"},
		"locked for a reaction": {locked: true, do: eyes, want: scm.ErrRefused, says: "the conversation is locked"},
		"no scope to write":     {opts: giteatest.Options{Scopes: []string{"read:repository", "read:issue"}}, do: eyes, want: scm.ErrDenied, says: "scope"},
		"whose token it is is not told": {
			opts: giteatest.Options{Scopes: []string{"write:repository", "write:issue"}}, do: reply, want: scm.ErrDenied, says: "ask whose token it is"},
		"reaction not allowed": {
			fault: &giteatest.Fault{Method: http.MethodPost, Path: "/reactions", Times: 1, Status: 403, Body: `{"message": "'eyes' is not an allowed reaction"}`},
			do:    eyes, want: scm.ErrRefused, says: "not an allowed reaction"},
		"archived": {opts: giteatest.Options{Archived: true}, do: reply, want: scm.ErrRefused, says: "archived"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, st := fake(t, c.opts)
			st.SetPermission("tagboat", "read")
			ref := said(t, st, "mei")
			if c.locked {
				if err := st.Lock(ref.Number); err != nil {
					t.Fatal(err)
				}
			}
			if c.fault != nil {
				s.Fail(*c.fault)
			}
			err := c.do(t, r, ref)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) || !strings.Contains(fmt.Sprint(err), "acme/config") {
				t.Errorf("error %v, want %v that says %q", err, c.want, c.says)
			}
		})
	}
}

const receiving = "run-name: promote ${{ inputs.request }}\non:\n  workflow_dispatch:\n    inputs:\n      request: {required: true, default: none}\n      app: {required: true}\n"

func asked() scm.Dispatch {
	return scm.Dispatch{Workflow: "promote.yml", Mark: "req-1", Inputs: map[string]any{"request": "req-1", "app": "todo-api"}}
}

func receiver(t *testing.T, o giteatest.Options, files map[string]string) (*gitea.Repository, *giteatest.Server, *scmtest.Store) {
	t.Helper()
	r, s, st := fake(t, o)
	if files == nil {
		files = map[string]string{".gitea/workflows/promote.yml": receiving}
	}
	if _, err := st.Push("main", "mei", "Receive", files); err != nil {
		t.Fatal(err)
	}
	return r, s, st
}

// What Gitea itself would run all the same, and what it refuses.
func TestDispatchRefusals(t *testing.T) {
	file := func(on string) map[string]string { return map[string]string{".gitea/workflows/promote.yml": on} }
	for name, c := range map[string]struct {
		opts  giteatest.Options
		files map[string]string
		with  func(*scm.Dispatch)
		want  error
		says  string
	}{
		"trigger: another event":    {files: file("on: push\n"), want: scm.ErrRefused, says: "'workflow_dispatch'"},
		"trigger: a list without":   {files: file("on: [push, pull_request]\n"), want: scm.ErrRefused, says: "'workflow_dispatch'"},
		"trigger: a map without":    {files: file("on: {push: {branches: [main]}}\n"), want: scm.ErrRefused, says: "'workflow_dispatch'"},
		"trigger: none":             {files: file("jobs: {}\n"), want: scm.ErrRefused, says: "'workflow_dispatch'"},
		"inputs: an event alone":    {files: file("on: workflow_dispatch\n"), want: scm.ErrRefused, says: "declares no input app; it has none"},
		"inputs: a list":            {files: file("on: [workflow_dispatch]\n"), want: scm.ErrRefused, says: "declares no input app; it has none"},
		"inputs: an event with nil": {files: file("on:\n  workflow_dispatch:\n"), want: scm.ErrRefused, says: "declares no input app; it has none"},
		"inputs: malformed":         {files: file("on: {workflow_dispatch: {inputs: [app]}}\n"), want: scm.ErrRefused, says: "declares no input app"},
		"no YAML":                   {files: file("on: [\n"), want: scm.ErrRefused, says: "is no YAML"},
		"inputs: unknown":           {with: func(d *scm.Dispatch) { d.Inputs["to"] = "x" }, want: scm.ErrRefused, says: "declares no input to; it has app, request"},
		"inputs: missing":           {with: func(d *scm.Dispatch) { delete(d.Inputs, "app") }, want: scm.ErrRefused, says: "requires input app"},
		"disabled":                  {opts: giteatest.Options{DisabledWorkflows: []string{"promote.yml"}}, want: scm.ErrRefused, says: "enable it"},
		"Actions is off":            {opts: giteatest.Options{NoActions: true}, want: scm.ErrNotFound, says: "Actions turned on"},
		"no such call":              {opts: giteatest.Options{Version: giteatest.V123}, want: scm.ErrUnsupported, says: "Gitea 1.25 or later"},
		"no call about runs":        {opts: giteatest.Options{Version: giteatest.V124}, want: scm.ErrUnsupported, says: `this server says "1.24.0"`},
		"a Forgejo":                 {opts: giteatest.Options{Version: giteatest.Forgejo}, want: scm.ErrUnsupported, says: "Gitea 1.25 or later"},
		"old and hidden":            {opts: giteatest.Options{Version: giteatest.V123, HideVersion: true}, want: scm.ErrNotFound, says: "Gitea 1.25 or later"},
		"no scope":                  {opts: giteatest.Options{Scopes: []string{"read:repository", "read:issue"}}, want: scm.ErrDenied, says: "scope"},
		"no such workflow":          {with: func(d *scm.Dispatch) { d.Workflow = "deploy.yml" }, want: scm.ErrNotFound, says: `"deploy.yml" doesn't exist`},
		"a path as a name":          {with: func(d *scm.Dispatch) { d.Workflow = "a/b.yml" }, says: "no file name"},
	} {
		r, _, st := receiver(t, c.opts, c.files)
		d := asked()
		if c.with != nil {
			c.with(&d)
		}
		_, err := r.Dispatch(t.Context(), d)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %v that says %q", name, err, c.want, c.says)
		}
		if n := len(st.Runs()); n != 0 {
			t.Errorf("%s: %d runs", name, n)
		}
	}
}

func TestDispatchWithADefault(t *testing.T) {
	r, _, st := receiver(t, giteatest.Options{}, nil)
	d := asked()
	delete(d.Inputs, "request")
	run, err := r.Dispatch(t.Context(), d)
	if err != nil || run.ID == 0 || len(st.Runs()) != 1 {
		t.Errorf("%+v, %v", run, err)
	}
}

// Gitea up to 1.25 does not answer the run: it is found by its name, or not.
func TestDispatchWithoutRunDetails(t *testing.T) {
	r, _, st := receiver(t, giteatest.Options{Version: giteatest.V125}, nil)
	st.StartRun(scmtest.Run{Workflow: "promote.yml", Branch: "main", Event: "workflow_dispatch", Title: "promote req-0", Actor: "li"})
	run, err := r.Dispatch(t.Context(), asked())
	if err != nil || run.Title != "promote req-1" {
		t.Errorf("%+v, %v", run, err)
	}
	d := asked()
	d.Mark = ""
	run, err = r.Dispatch(t.Context(), d)
	if err != nil || run.ID != 0 || run.State != scm.RunQueued || !strings.HasSuffix(run.URL, "/acme/config/actions?workflow=promote.yml") {
		t.Errorf("without a mark: %+v, %v", run, err)
	}
}

func TestDispatchWhoseAnswerWasLost(t *testing.T) {
	for _, applied := range []bool{true, false} {
		r, s, st := receiver(t, giteatest.Options{}, nil)
		s.Fail(giteatest.Fault{Method: http.MethodPost, Path: "/dispatches", Times: 1, Status: 502, Applied: applied})
		run, err := r.Dispatch(t.Context(), asked())
		if applied != (err == nil && run.ID != 0) || !applied && !errors.Is(err, scm.ErrUnavailable) {
			t.Errorf("applied %v: %+v, %v", applied, run, err)
		}
		if want := map[bool]int{true: 1, false: 0}[applied]; len(st.Runs()) != want {
			t.Errorf("applied %v: %d runs, want %d", applied, len(st.Runs()), want)
		}
	}
}

func TestStarter(t *testing.T) {
	for name, c := range map[string]struct {
		run  scmtest.Run
		want scm.Starter
		says string
	}{
		"in progress": {run: scmtest.Run{State: "running", Actor: "mei", Event: "issue_comment"}, want: scm.Starter{Login: "mei", Event: "issue_comment"}},
		"by Gitea":    {run: scmtest.Run{State: "running", Actor: "gitea-actions", Event: "push"}, want: scm.Starter{Login: "gitea-actions", Kind: scm.AuthorBot, Event: "push"}},
		"ended":       {run: scmtest.Run{State: "success", Actor: "mei"}, says: "completed, not in progress"},
		"nobody":      {run: scmtest.Run{State: "running"}, says: "does not tell who"},
		"again":       {run: scmtest.Run{State: "running", Actor: "mei", Again: "ann"}, says: "it was started again, and Gitea does not tell by whom"},
	} {
		r, _, st := receiver(t, giteatest.Options{}, nil)
		run := st.StartRun(c.run)
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
	r, _, _ := receiver(t, giteatest.Options{}, nil)
	if _, err := r.Starter(t.Context(), scm.JobRef{Run: 1}); !errors.Is(err, scm.ErrDenied) {
		t.Errorf("a run of another repository: %v", err)
	}
}
