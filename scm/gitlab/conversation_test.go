package gitlab_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

// said opens an issue on which author says a command.
func (w *world) said(author string) scm.CommentRef {
	w.t.Helper()
	number, opened := w.store.OpenIssue("Release", "mei")
	c, err := w.store.Say(number, author, "/promote todo-api to production")
	if err := errors.Join(opened, err); err != nil {
		w.t.Fatal(err)
	}
	return scm.CommentRef{ID: int64(c.ID), Number: number}
}

func TestKindOfAuthor(t *testing.T) {
	w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) { s.Users["service_account_ops"] = 77 })
	for author, want := range map[string]scm.AuthorKind{
		"mei": scm.AuthorPerson, gitlabtest.BotLogin: scm.AuthorBot, "service_account_ops": scm.AuthorBot, "gone": scm.AuthorUnknown,
	} {
		c, err := w.repo.Comment(t.Context(), w.said(author))
		if err != nil || c.Kind != want || c.Author != author {
			t.Errorf("%s: %q by %q, %v; want %q", author, c.Kind, c.Author, err, want)
		}
	}
}

// A reaction moves updated_at: without GraphQL that cannot be told from an edit.
func TestEditedWithoutGraphQL(t *testing.T) {
	for name, set := range map[string]func(*world){
		"an older GitLab":   func(w *world) { w.fake.NoGraphQLNotes = true },
		"GraphQL is closed": func(w *world) { w.fake.Fail("graphql", 9, 404, nil) },
	} {
		w := start(t)
		set(w)
		ref := w.said("mei")
		before, err := w.repo.Comment(t.Context(), ref)
		if err != nil || before.Edited {
			t.Errorf("%s: %+v, %v", name, before, err)
		}
		if err := w.repo.React(t.Context(), ref, scm.ReactionEyes); err != nil {
			t.Fatal(err)
		}
		after, err := w.repo.Comment(t.Context(), ref)
		if err != nil || !after.Edited {
			t.Errorf("%s, after a reaction: %+v, %v", name, after, err)
		}
	}
}

// What the public does not see is not answered where it does.
func TestReplyToAnInternalNote(t *testing.T) {
	for _, internal := range []bool{true, false} {
		w := start(t)
		ref := w.said("mei")
		w.fake.Internal = map[int]bool{int(ref.ID): internal}
		c, err := w.repo.Comment(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if reply, err := w.repo.Reply(t.Context(), c, "Refused"); err != nil || w.fake.Internal[int(reply.ID)] != internal {
				t.Errorf("answer to a note that is internal %v: %+v, %v", internal, reply, err)
			}
		}
	}
}

// What GitLab would run in the bot's name is shown instead.
func TestReplyRunsNoQuickAction(t *testing.T) {
	w := start(t)
	ref := w.said("mei")
	body := "Refused:\n/merge\n  /approve\nnot /close"
	if _, err := w.repo.Reply(t.Context(), scm.Comment{CommentRef: ref}, body); err != nil {
		t.Fatal(err)
	}
	all, _, _ := w.store.Thread(ref.Number)
	if got := all[len(all)-1].Body; !strings.HasSuffix(got, "\nRefused:\n\\/merge\n  \\/approve\nnot /close") {
		t.Errorf("said %q", got)
	}
}

func TestReplyWhoseAnswerWasLost(t *testing.T) {
	w := start(t)
	ref := w.said("mei")
	w.fake.FailAfter("createNote", 502)
	c, err := w.repo.Reply(t.Context(), scm.Comment{CommentRef: ref}, "Done.")
	if err != nil || c.ID == 0 || w.fake.Count("createNote") != 1 {
		t.Errorf("done: %+v, %v", c, err)
	}
	w.fake.Fail("createNote", 1, 502, nil)
	if _, err := w.repo.Reply(t.Context(), scm.Comment{CommentRef: w.said("mei")}, "Done."); !errors.Is(err, scm.ErrUnavailable) {
		t.Errorf("not done: %v", err)
	}
}

func TestConversationRefusals(t *testing.T) {
	reply := func(w *world, ref scm.CommentRef) error {
		_, err := w.repo.Reply(w.t.Context(), scm.Comment{CommentRef: ref}, "Done.")
		return err
	}
	read := func(w *world, ref scm.CommentRef) error {
		_, err := w.repo.Comment(w.t.Context(), ref)
		return err
	}
	for name, c := range map[string]struct {
		set  func(*world, scm.CommentRef)
		opts func(*gitlabtest.Server, *gitlab.Options)
		do   func(*world, scm.CommentRef) error
		want error
		says string
	}{
		"locked":            {set: func(w *world, ref scm.CommentRef) { _ = w.store.Lock(ref.Number) }, do: reply, want: scm.ErrRefused, says: "locked"},
		"a token to read":   {opts: func(_ *gitlabtest.Server, o *gitlab.Options) { o.Token = gitlabtest.ReadToken }, do: reply, want: scm.ErrDenied, says: "scope api"},
		"no token":          {opts: func(_ *gitlabtest.Server, o *gitlab.Options) { o.Token = "" }, do: read, want: scm.ErrNotFound, says: "cannot see it"},
		"the forge is down": {set: func(w *world, _ scm.CommentRef) { w.fake.Fail("getNote", 99, 503, nil) }, do: read, want: scm.ErrUnavailable, says: "read comment"},
		"the issue side of a merge request": {do: func(w *world, ref scm.CommentRef) error {
			ref.PullRequest = true
			return read(w, ref)
		}, want: scm.ErrNotFound, says: "on !"},
	} {
		t.Run(name, func(t *testing.T) {
			var set []func(*gitlabtest.Server, *gitlab.Options)
			if c.opts != nil {
				set = append(set, c.opts)
			}
			w := start(t, set...)
			ref := w.said("mei")
			if c.set != nil {
				c.set(w, ref)
			}
			err := c.do(w, ref)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) || strings.Contains(fmt.Sprint(err), "glpat") {
				t.Errorf("error %v, want %v that says %q", err, c.want, c.says)
			}
		})
	}
}

const receiving = "spec:\n  inputs:\n    app:\n    wait: {type: boolean, default: false}\n---\npromote: {script: tagboat version}\n"

func receiver(t *testing.T, set ...func(*gitlabtest.Server, *gitlab.Options)) *world {
	t.Helper()
	w := start(t, set...)
	if _, err := w.store.Push("main", "mei", "Receive", map[string]string{".gitlab-ci.yml": receiving}); err != nil {
		t.Fatal(err)
	}
	return w
}

// A trigger token, or a job's, starts a pipeline and can do nothing else.
func TestDispatchWithATriggerToken(t *testing.T) {
	for token, who := range map[string]string{gitlabtest.TriggerToken: "tomas", gitlabtest.JobToken: "mei"} {
		w := receiver(t, func(s *gitlabtest.Server, o *gitlab.Options) {
			s.Job = gitlabtest.Job{User: "mei"}
			o.Token, o.TriggerToken = "", token
		})
		run, err := w.repo.Dispatch(t.Context(), scm.Dispatch{Branch: "main", Inputs: map[string]any{"app": "todo-api", "wait": true}})
		if err != nil || run.ID == 0 || run.State != scm.RunQueued || run.Word != "created" {
			t.Fatalf("%s: %+v, %v", who, run, err)
		}
		if started := w.store.Runs()[0]; started.Actor != who || started.Inputs["wait"] != true {
			t.Errorf("%s: started %+v", who, started)
		}
		if _, err := w.repo.Dispatch(t.Context(), scm.Dispatch{}); !errors.Is(err, scm.ErrNotFound) || !strings.Contains(err.Error(), "name the branch") {
			t.Errorf("%s, no branch: %v", who, err)
		}
	}
}

func TestDispatchRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*gitlabtest.Server, *gitlab.Options)
		branch string
		inputs map[string]any
		want   error
		says   string
	}{
		"no branch":               {branch: "nope", want: scm.ErrNotFound, says: "Reference not found"},
		"no file":                 {branch: "bare", want: scm.ErrNotFound, says: "has no .gitlab-ci.yml"},
		"no right":                {set: func(s *gitlabtest.Server, _ *gitlab.Options) { s.NoPipelineRights = true }, want: scm.ErrDenied, says: "role Developer"},
		"unknown input":           {inputs: map[string]any{"app": "x", "to": "y"}, want: scm.ErrRefused, says: "unknown input arguments: to; compare with spec:inputs"},
		"another type":            {inputs: map[string]any{"app": "x", "wait": "true"}, want: scm.ErrRefused, says: "is not a boolean"},
		"a wrong trigger token":   {set: func(_ *gitlabtest.Server, o *gitlab.Options) { o.TriggerToken = "glptt-other" }, want: scm.ErrNotFound, says: "trigger token is wrong"},
		"a token that only reads": {set: func(_ *gitlabtest.Server, o *gitlab.Options) { o.Token = gitlabtest.ReadToken }, want: scm.ErrDenied, says: "scope api"},
	} {
		var set []func(*gitlabtest.Server, *gitlab.Options)
		if c.set != nil {
			set = append(set, c.set)
		}
		w := start(t, set...)
		_, bare := w.store.Push("bare", "mei", "Bare", map[string]string{"x": "x"})
		_, main := w.store.Push("main", "mei", "Receive", map[string]string{".gitlab-ci.yml": receiving})
		if err := errors.Join(bare, main); err != nil {
			t.Fatal(err)
		}
		if c.inputs == nil {
			c.inputs = map[string]any{"app": "x"}
		}
		_, err := w.repo.Dispatch(t.Context(), scm.Dispatch{Branch: c.branch, Inputs: c.inputs})
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) || strings.Contains(fmt.Sprint(err), "glptt") {
			t.Errorf("%s: error %v, want %v that says %q", name, err, c.want, c.says)
		}
		if n := len(w.store.Runs()); n != 0 {
			t.Errorf("%s: %d pipelines", name, n)
		}
	}
}

// Every word of app/models/concerns/ci/has_status.rb.
func TestStatesOfPipelines(t *testing.T) {
	for word, want := range map[string]scm.RunState{
		"created": scm.RunQueued, "waiting_for_resource": scm.RunQueued, "preparing": scm.RunQueued, "pending": scm.RunQueued, "manual": scm.RunQueued,
		"scheduled": scm.RunQueued, "running": scm.RunRunning, "canceling": scm.RunRunning, "success": scm.RunSuccess,
		"failed": scm.RunFailure, "canceled": scm.RunFailure, "skipped": scm.RunFailure,
	} {
		w := start(t)
		run := w.store.StartRun(scmtest.Run{State: word})
		got, err := w.repo.Run(t.Context(), run.ID)
		if err != nil || got.State != want || got.Word != word {
			t.Errorf("%s: %+v, %v; want %s", word, got, err, want)
		}
	}
}

func TestStarter(t *testing.T) {
	for name, c := range map[string]struct {
		job   gitlabtest.Job
		token string
		want  scm.Starter
		says  string
	}{
		"from a chat":           {job: gitlabtest.Job{User: "mei", Source: "chat"}, want: scm.Starter{Login: "mei", Kind: scm.AuthorPerson, Event: "chat"}},
		"by a bot":              {job: gitlabtest.Job{User: gitlabtest.BotLogin, Source: "trigger"}, want: scm.Starter{Login: gitlabtest.BotLogin, Kind: scm.AuthorBot, Event: "trigger"}},
		"of another project":    {job: gitlabtest.Job{User: "mei", Project: 1}, says: "another project"},
		"that has ended":        {job: gitlabtest.Job{User: "mei", Status: "success"}, says: "not running"},
		"without a token":       {job: gitlabtest.Job{User: "mei"}, token: "-", says: "no CI_JOB_TOKEN"},
		"with a wrong token":    {job: gitlabtest.Job{User: "mei"}, token: "glcbt-other", says: "not that of a running job"},
		"with a person's token": {job: gitlabtest.Job{User: "mei"}, token: gitlabtest.UserToken, says: "not that of a running job"},
	} {
		w := start(t, func(s *gitlabtest.Server, _ *gitlab.Options) { s.Job = c.job })
		token := gitlabtest.JobToken
		if c.token != "" {
			token = strings.TrimPrefix(c.token, "-")
		}
		got, err := w.repo.Starter(t.Context(), scm.JobRef{Run: 1, Token: token})
		if got.URL != "" {
			if c.want.URL, c.want.Since = got.URL, got.Since; got.Since.IsZero() {
				t.Errorf("%s: not since when", name)
			}
		}
		if got != c.want || (err != nil) != (c.says != "") {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
		if err != nil && (!errors.Is(err, scm.ErrDenied) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "glcbt")) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
	}
}

// A job token is sent for that one call, and is no part of what is printed.
func TestJobTokenStaysInItsCall(t *testing.T) {
	w := start(t, func(s *gitlabtest.Server, o *gitlab.Options) {
		s.Job = gitlabtest.Job{User: "mei"}
		handler := s
		o.Transport.Base = roundTrip(func(req *http.Request) (*http.Response, error) {
			if job := req.Header.Get("JOB-TOKEN") != ""; job != strings.HasSuffix(req.URL.Path, "/api/v4/job") || job == (req.Header.Get("PRIVATE-TOKEN") != "") {
				t.Errorf("%s: headers %v", req.URL.Path, req.Header)
			}
			return handler.Transport().RoundTrip(req)
		})
		o.BaseURL = "https://gitlab.example"
	})
	if _, err := w.repo.Starter(t.Context(), scm.JobRef{Token: gitlabtest.JobToken}); err != nil {
		t.Fatal(err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
