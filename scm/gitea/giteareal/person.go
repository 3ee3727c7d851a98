package giteareal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"

	"tagboat/scm/scmtest"
)

// Person works on a repository of the administrator's with git and the API. It
// implements scmtest.Person.
type Person struct {
	ctx    context.Context // a test's
	server *Server
	name   string
}

var _ scmtest.Person = (*Person)(nil)

// Person works beside Tagboat on the administrator's repository of that name.
func (s *Server) Person(ctx context.Context, name string) *Person {
	return &Person{ctx: ctx, server: s, name: name}
}

func (p *Person) repo() string { return "/repos/" + p.server.Admin + "/" + p.name }

func (p *Person) call(user, method, path string, in, out any) error {
	_, err := p.server.Call(p.ctx, user, method, p.repo()+path, in, out)
	return err
}

// clone is the repository with all its branches in memory.
func (p *Person) clone(owner string) (*git.Remote, *scmtest.Store, error) {
	storage := memory.NewStorage()
	remote := git.NewRemote(storage, &config.RemoteConfig{Name: "origin", URLs: []string{p.server.URL + "/" + owner + "/" + p.name + ".git"}})
	err := remote.FetchContext(p.ctx, &git.FetchOptions{
		RefSpecs: []config.RefSpec{"+refs/heads/*:refs/heads/*", "+refs/pull/*:refs/pull/*"}, Auth: p.auth(owner), Tags: git.NoTags,
	})
	if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
		return nil, nil, fmt.Errorf("fetch %s: %w", p.name, err)
	}
	store, err := scmtest.OpenStore(storage, "main")
	if err == nil {
		store.SetClock(time.Now)
	}
	return remote, store, err
}

func (p *Person) auth(user string) *githttp.BasicAuth {
	return &githttp.BasicAuth{Username: user, Password: Password}
}

// work changes the clone and pushes one branch of it.
func (p *Person) work(owner, branch string, change func(*scmtest.Store) (string, error)) (string, error) {
	remote, store, err := p.clone(owner)
	if err != nil {
		return "", err
	}
	sha, err := change(store)
	if err != nil {
		return "", err
	}
	ref := config.RefSpec("refs/heads/" + branch + ":refs/heads/" + branch)
	if err := remote.PushContext(p.ctx, &git.PushOptions{RefSpecs: []config.RefSpec{ref}, Auth: p.auth(owner)}); err != nil {
		return "", fmt.Errorf("push %s: %w", branch, err)
	}
	return sha, nil
}

// DefaultBranch implements scmtest.Person.
func (p *Person) DefaultBranch() string { return "main" }

// Branch implements scmtest.Person.
func (p *Person) Branch(name string) (string, bool) {
	_, store, err := p.clone(p.server.Admin)
	if err != nil {
		return err.Error(), false
	}
	return store.Branch(name)
}

// Commit implements scmtest.Person.
func (p *Person) Commit(sha string) (scmtest.CommitInfo, bool) {
	_, store, err := p.clone(p.server.Admin)
	if err != nil {
		return scmtest.CommitInfo{Message: err.Error()}, false
	}
	return store.Commit(sha)
}

// ReadFile implements scmtest.Person.
func (p *Person) ReadFile(sha, path string) ([]byte, string, error) {
	_, store, err := p.clone(p.server.Admin)
	if err != nil {
		return nil, "", err
	}
	return store.ReadFile(sha, path)
}

// Push implements scmtest.Person.
func (p *Person) Push(branch, author, message string, files map[string]string) (string, error) {
	return p.work(p.server.Admin, branch, func(s *scmtest.Store) (string, error) { return s.Push(branch, author, message, files) })
}

// PushChanges implements scmtest.Person.
func (p *Person) PushChanges(branch, author, message string, changes []scmtest.TreeChange) (string, error) {
	return p.work(p.server.Admin, branch, func(s *scmtest.Store) (string, error) { return s.PushChanges(branch, author, message, changes) })
}

// MergeBranch implements scmtest.Person.
func (p *Person) MergeBranch(from, into string) (string, error) {
	return p.work(p.server.Admin, into, func(s *scmtest.Store) (string, error) { return s.MergeBranch(from, into) })
}

// DeleteBranch implements scmtest.Person.
func (p *Person) DeleteBranch(name, _ string) error {
	return p.call("", http.MethodDelete, "/branches/"+escape(name), nil, nil)
}

func escape(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// Protect implements scmtest.Person: nobody may push.
func (p *Person) Protect(pattern string) {
	in := map[string]any{"rule_name": strings.ReplaceAll(pattern, "*", "**"), "enable_push": false}
	if p.call("", http.MethodPost, "/branch_protections", in, nil) == nil {
		return
	}
	if err := p.protectAgain(in); err != nil {
		panic(err)
	}
}

type user struct{ Login string }

type apiPull struct {
	Number                    int
	Title, Body, State        string
	Draft, Merged             bool
	User                      user
	Labels                    []struct{ Name string }
	Assignees                 []user
	Requested_Reviewers       []user //nolint:revive // the JSON key
	Requested_Reviewers_Teams []struct{ Name string }
	Merge_Commit_SHA          string
	Head, Base                struct{ Label, Ref, SHA string }
	Created_At, Updated_At    time.Time
}

// Pull implements scmtest.Person.
func (p *Person) Pull(number int) (scmtest.Pull, error) {
	path := fmt.Sprintf("/pulls/%d", number)
	var a apiPull
	if err := p.call("", http.MethodGet, path, nil, &a); err != nil {
		return scmtest.Pull{}, err
	}
	out := scmtest.Pull{
		Number: a.Number, Title: a.Title, Body: a.Body, Author: a.User.Login, Head: a.Head.Label, Base: a.Base.Ref,
		HeadSHA: a.Head.SHA, State: a.State, Draft: a.Draft, MergeSHA: a.Merge_Commit_SHA, Created: a.Created_At, Updated: a.Updated_At,
	}
	if a.Merged {
		out.State = "merged"
	}
	for _, l := range a.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	for _, u := range a.Requested_Reviewers {
		out.Reviewers = append(out.Reviewers, u.Login)
	}
	for _, t := range a.Requested_Reviewers_Teams {
		out.TeamReviewers = append(out.TeamReviewers, t.Name)
	}
	for _, u := range a.Assignees {
		out.Assignees = append(out.Assignees, u.Login)
	}
	return out, p.details(number, &out)
}

// details adds what Gitea tells elsewhere.
func (p *Person) details(number int, out *scmtest.Pull) error {
	var timeline []struct {
		ID         int
		Type, Body string
		User       user
	}
	if err := p.call("", http.MethodGet, fmt.Sprintf("/issues/%d/timeline", number), nil, &timeline); err != nil {
		return err
	}
	for _, e := range timeline {
		switch e.Type {
		case "comment":
			out.Comments = append(out.Comments, scmtest.Comment{ID: e.ID, Author: e.User.Login, Body: e.Body})
		case "pull_scheduled_merge":
			out.AutoMerge, out.AutoMergeBy = true, e.User.Login
		case "pull_cancel_scheduled_merge", "merge_pull":
			out.AutoMerge, out.AutoMergeBy = false, ""
		}
	}
	var reviews []struct {
		ID        int
		State     string
		Dismissed bool
		User      user
		Commit_ID string //nolint:revive // the JSON key
	}
	if err := p.call("", http.MethodGet, fmt.Sprintf("/pulls/%d/reviews", number), nil, &reviews); err != nil {
		return err
	}
	for _, r := range reviews {
		state := strings.ToLower(r.State)
		if r.Dismissed {
			state = "dismissed"
		}
		out.Reviews = append(out.Reviews, scmtest.Review{ID: r.ID, Author: r.User.Login, State: state, SHA: r.Commit_ID})
	}
	return nil
}

// OpenPull implements scmtest.Person.
func (p *Person) OpenPull(n scmtest.NewPull) (scmtest.Pull, error) {
	head := n.Head
	if n.Fork != "" {
		owner, _, _ := strings.Cut(n.Fork, "/")
		head = owner + ":" + n.Head
	}
	var a apiPull
	in := map[string]any{"head": head, "base": n.Base, "title": n.Title, "body": n.Body}
	if err := p.call("", http.MethodPost, "/pulls", in, &a); err != nil {
		return scmtest.Pull{}, err
	}
	return p.Pull(a.Number)
}

// OpenForkPull implements scmtest.Person. The fork has the repository's name.
func (p *Person) OpenForkPull(n scmtest.NewPull, files map[string]string) (scmtest.Pull, error) {
	owner, _, _ := strings.Cut(n.Fork, "/")
	if err := p.server.AddUser(p.ctx, owner); err != nil {
		return scmtest.Pull{}, err
	}
	if err := p.call(owner, http.MethodPost, "/forks", map[string]any{}, nil); err != nil {
		return scmtest.Pull{}, err
	}
	_, err := p.work(owner, n.Head, func(s *scmtest.Store) (string, error) { return s.Push(n.Head, owner, n.Title, files) })
	if err != nil {
		return scmtest.Pull{}, err
	}
	return p.OpenPull(n)
}

// EditPull implements scmtest.Person for title, body and labels that are added.
func (p *Person) EditPull(number int, edit func(*scmtest.Pull) error) (scmtest.Pull, error) {
	now, err := p.Pull(number)
	if err != nil {
		return now, err
	}
	want := now
	want.Labels = slices.Clone(now.Labels)
	if err := edit(&want); err != nil {
		return now, err
	}
	if want.AutoMerge != now.AutoMerge || want.Draft != now.Draft {
		return now, fmt.Errorf("edit a pull request's auto-merge or draft: %w", errors.ErrUnsupported)
	}
	for _, name := range want.Labels {
		if slices.Contains(now.Labels, name) {
			continue
		}
		if err := p.label(number, name); err != nil {
			return now, err
		}
	}
	in := map[string]any{"title": want.Title, "body": want.Body}
	if err := p.call("", http.MethodPatch, fmt.Sprintf("/pulls/%d", number), in, nil); err != nil {
		return now, err
	}
	return p.Pull(number)
}

func (p *Person) label(number int, name string) error {
	var made struct{ ID int }
	if err := p.call("", http.MethodPost, "/labels", map[string]any{"name": name, "color": "#00aabb"}, &made); err != nil {
		return err
	}
	return p.call("", http.MethodPost, fmt.Sprintf("/issues/%d/labels", number), map[string]any{"labels": []int{made.ID}}, nil)
}

// Review implements scmtest.Person.
func (p *Person) Review(number int, author, state string) (scmtest.Review, error) {
	events := map[string]string{"approved": "APPROVED", "changes_requested": "REQUEST_CHANGES", "commented": "COMMENT"}
	var made struct{ ID int }
	in := map[string]any{"event": events[state], "body": state}
	err := p.call(author, http.MethodPost, fmt.Sprintf("/pulls/%d/reviews", number), in, &made)
	return scmtest.Review{ID: made.ID, Author: author, State: state}, err
}

// MergePullRequest implements scmtest.Person.
func (p *Person) MergePullRequest(number int, how string) (string, error) {
	var err error
	for range 40 { // 405 while Gitea still looks whether it can be merged
		var status int
		status, err = p.server.Call(p.ctx, "", http.MethodPost, p.repo()+fmt.Sprintf("/pulls/%d/merge", number), map[string]any{"Do": how, "force_merge": true}, nil)
		if err == nil {
			pull, err := p.Pull(number)
			return pull.MergeSHA, err
		}
		if status != http.StatusMethodNotAllowed {
			return "", err
		}
		time.Sleep(250 * time.Millisecond)
	}
	return "", err
}

// ClosePullRequest implements scmtest.Person.
func (p *Person) ClosePullRequest(number int, _ string) error {
	return p.call("", http.MethodPatch, fmt.Sprintf("/pulls/%d", number), map[string]any{"state": "closed"}, nil)
}

// UpdateBranch implements scmtest.Person.
func (p *Person) UpdateBranch(number int) (string, error) {
	if err := p.call("", http.MethodPost, fmt.Sprintf("/pulls/%d/update?style=merge", number), nil, nil); err != nil {
		return "", err
	}
	pull, err := p.Pull(number)
	return pull.HeadSHA, err
}
