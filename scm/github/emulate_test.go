//go:build e2e

package github_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gh "github.com/google/go-github/v60/github"

	"tagboat/scm/github"
	"tagboat/scm/scmtest"
)

const emulateSeed = `tokens:
  bot-token: {login: tagboat-bot, scopes: [repo]}
  mei-token: {login: mei, scopes: [repo]}
github:
  users: [{login: tagboat-bot}, {login: mei}]
  orgs:
    - login: acme
      members: [{login: mei, role: admin}, {login: tagboat-bot, role: admin}]
`

// startEmulator starts the emulator of GitHub's REST API that TAGBOAT_EMULATE
// names (e2e/run sets it), and stops it with the test.
func startEmulator(t *testing.T) (url string) {
	t.Helper()
	program := os.Getenv("TAGBOAT_EMULATE")
	if program == "" {
		t.Fatal("TAGBOAT_EMULATE is not set: run this with e2e/run")
	}
	seed := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(seed, []byte(emulateSeed), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := strings.Cut(address, ":")
	url = "http://" + address
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "node", "--require", filepath.Join("..", "..", "e2e", "loopback.cjs"), program,
		"start", "--service", "github", "--port", port, "--base-url", url, "--seed", seed)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A relative path of --require would be looked up as a module.
	if cmd.Args[2], err = filepath.Abs(cmd.Args[2]); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	waitForEmulator(t, url+"/users/mei")
	return url
}

func waitForEmulator(t *testing.T, url string) {
	t.Helper()
	for range 600 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not answer", url)
}

// laxer are the cases in which emulate 0.11.2 lets through what GitHub refuses, or
// refuses what GitHub does.
func laxer() map[string]string {
	return map[string]string{
		"commit below another branch is refused":      "it keeps a branch and another one below it",
		"propose adopts what somebody opened":         "it opens a second pull request of the same head and base",
		"propose without a head branch opens nothing": "it makes the branches of a pull request that are not there",
		"propose with labels and people":              "it assigns nobody to a pull request (404)",
		"propose with people who are nobody warns":    "it asks people who are not there for a review",
		"approvals: none":                             "it takes no review without a body",
		"approvals: for an older head are stale":      "a pull request keeps the head that it was opened with",
	}
}

// TestConformOnEmulate runs the suite against the emulator, which knows REST only:
// neither compare and swap nor auto-merge.
func TestConformOnEmulate(t *testing.T) {
	url := startEmulator(t)
	var n atomic.Int64
	scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
		_, which, _ := strings.Cut(t.Name(), "/")
		if why := laxer()[strings.ReplaceAll(which, "_", " ")]; why != "" {
			t.Skip("emulate: " + why)
		}
		name := fmt.Sprintf("config-%d", n.Add(1))
		p := newPerson(t, url, name)
		r, err := github.New(github.Options{BaseURL: url, Owner: "acme", Name: name, Token: "bot-token"})
		if err != nil {
			t.Fatal(err)
		}
		return scmtest.Harness{
			Repo: r, Person: p, Reviewer: "mei", Ghost: "ghost",
			Can: scmtest.Can{PullRequests: true, Rebuild: true, Draft: true, Labels: true, Reviewers: true, Slow: true},
		}
	})
}

// person is mei, who works on a repository of the emulator by its API.
type person struct {
	t      *testing.T
	client *gh.Client
	name   string
}

func newPerson(t *testing.T, url, name string) *person {
	t.Helper()
	client := gh.NewClient(nil).WithAuthToken("mei-token")
	base, err := client.BaseURL.Parse(url + "/")
	if err != nil {
		t.Fatal(err)
	}
	client.BaseURL = base
	init, branch := true, "main"
	if _, _, err := client.Repositories.Create(t.Context(), "acme", &gh.Repository{Name: &name, AutoInit: &init, DefaultBranch: &branch}); err != nil {
		t.Fatal(err)
	}
	return &person{t: t, client: client, name: name}
}

func (p *person) DefaultBranch() string { return "main" }
func (p *person) Protect(string)        {}

func (p *person) Branch(name string) (string, bool) {
	ref, _, err := p.client.Git.GetRef(p.t.Context(), "acme", p.name, "heads/"+name)
	return ref.GetObject().GetSHA(), err == nil
}

func (p *person) Commit(sha string) (scmtest.CommitInfo, bool) {
	c, _, err := p.client.Git.GetCommit(p.t.Context(), "acme", p.name, sha)
	if err != nil {
		return scmtest.CommitInfo{}, false
	}
	out := scmtest.CommitInfo{SHA: c.GetSHA(), Tree: c.GetTree().GetSHA(), Message: c.GetMessage(), Time: c.GetCommitter().GetDate().Time}
	for _, parent := range c.Parents {
		out.Parents = append(out.Parents, parent.GetSHA())
	}
	return out, true
}

func (p *person) ReadFile(sha, path string) ([]byte, string, error) {
	c, _ := p.Commit(sha)
	tree, _, err := p.client.Git.GetTree(p.t.Context(), "acme", p.name, c.Tree, true)
	if err != nil {
		return nil, "", err
	}
	for _, e := range tree.Entries {
		if e.GetPath() == path {
			b, _, err := p.client.Git.GetBlob(p.t.Context(), "acme", p.name, e.GetSHA())
			if err != nil {
				return nil, "", err
			}
			content, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(b.GetContent(), "\n", ""))
			return content, e.GetMode(), err
		}
	}
	return nil, "", os.ErrNotExist
}

func (p *person) Push(branch, author, message string, files map[string]string) (string, error) {
	var changes []scmtest.TreeChange
	for path, content := range files {
		changes = append(changes, scmtest.TreeChange{Path: path, Content: []byte(content)})
	}
	return p.PushChanges(branch, author, message, changes)
}

func (p *person) PushChanges(branch, _, message string, changes []scmtest.TreeChange) (string, error) {
	at, exists := p.Branch(branch)
	if !exists {
		at, _ = p.Branch("main")
	}
	c, _ := p.Commit(at)
	var entries []*gh.TreeEntry
	for _, ch := range changes {
		e := &gh.TreeEntry{Path: gh.String(ch.Path), Mode: gh.String("100644"), Type: gh.String("blob")}
		if ch.Mode != "" {
			e.Mode = gh.String(ch.Mode)
		}
		if !ch.Delete {
			e.Content = gh.String(string(ch.Content))
		}
		entries = append(entries, e)
	}
	ctx := p.t.Context()
	tree, _, err := p.client.Git.CreateTree(ctx, "acme", p.name, c.Tree, entries)
	if err != nil {
		return "", err
	}
	made, _, err := p.client.Git.CreateCommit(ctx, "acme", p.name, &gh.Commit{Message: &message, Tree: tree, Parents: []*gh.Commit{{SHA: &at}}}, nil)
	if err != nil {
		return "", err
	}
	ref := &gh.Reference{Ref: gh.String("refs/heads/" + branch), Object: &gh.GitObject{SHA: made.SHA}}
	if exists {
		_, _, err = p.client.Git.UpdateRef(ctx, "acme", p.name, ref, false)
	} else {
		_, _, err = p.client.Git.CreateRef(ctx, "acme", p.name, ref)
	}
	return made.GetSHA(), err
}

func (p *person) DeleteBranch(name, _ string) error {
	_, err := p.client.Git.DeleteRef(p.t.Context(), "acme", p.name, "heads/"+name)
	return err
}

func (p *person) Pull(number int) (scmtest.Pull, error) {
	ctx := p.t.Context()
	pr, _, err := p.client.PullRequests.Get(ctx, "acme", p.name, number)
	if err != nil {
		return scmtest.Pull{}, err
	}
	out := pullOf(pr)
	comments, _, err := p.client.Issues.ListComments(ctx, "acme", p.name, number, nil)
	if err != nil {
		return out, err
	}
	for _, c := range comments {
		out.Comments = append(out.Comments, scmtest.Comment{Author: c.GetUser().GetLogin(), Body: c.GetBody()})
	}
	reviews, _, err := p.client.PullRequests.ListReviews(ctx, "acme", p.name, number, nil)
	for _, v := range reviews {
		out.Reviews = append(out.Reviews, scmtest.Review{ID: int(v.GetID()), Author: v.GetUser().GetLogin(), State: strings.ToLower(v.GetState())})
	}
	return out, err
}

func pullOf(pr *gh.PullRequest) scmtest.Pull {
	out := scmtest.Pull{
		Number: pr.GetNumber(), Title: pr.GetTitle(), Body: pr.GetBody(), Author: pr.GetUser().GetLogin(),
		Head: pr.GetHead().GetRef(), Base: pr.GetBase().GetRef(), HeadSHA: pr.GetHead().GetSHA(), State: pr.GetState(), Draft: pr.GetDraft(),
	}
	if pr.GetMerged() {
		out.State = "merged"
	}
	for _, l := range pr.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	for _, u := range pr.RequestedReviewers {
		out.Reviewers = append(out.Reviewers, u.GetLogin())
	}
	for _, u := range pr.Assignees {
		out.Assignees = append(out.Assignees, u.GetLogin())
	}
	return out
}

func (p *person) OpenPull(n scmtest.NewPull) (scmtest.Pull, error) {
	pr, _, err := p.client.PullRequests.Create(p.t.Context(), "acme", p.name, &gh.NewPullRequest{Title: &n.Title, Head: &n.Head, Base: &n.Base, Body: &n.Body})
	if err != nil {
		return scmtest.Pull{}, err
	}
	return pullOf(pr), nil
}

func (p *person) Review(number int, _, state string) (scmtest.Review, error) {
	event := map[string]string{"approved": "APPROVE", "changes_requested": "REQUEST_CHANGES"}[state]
	v, _, err := p.client.PullRequests.CreateReview(p.t.Context(), "acme", p.name, number, &gh.PullRequestReviewRequest{Event: &event})
	return scmtest.Review{ID: int(v.GetID()), Author: "mei", State: state}, err
}

func (p *person) MergePullRequest(number int, how string) (string, error) {
	res, _, err := p.client.PullRequests.Merge(p.t.Context(), "acme", p.name, number, "", &gh.PullRequestOptions{MergeMethod: how})
	return res.GetSHA(), err
}

func (p *person) ClosePullRequest(number int, _ string) error {
	_, _, err := p.client.PullRequests.Edit(p.t.Context(), "acme", p.name, number, &gh.PullRequest{State: gh.String("closed")})
	return err
}

func (p *person) MergeBranch(string, string) (string, error) { return "", errors.ErrUnsupported }
func (p *person) UpdateBranch(int) (string, error)           { return "", errors.ErrUnsupported }

func (p *person) OpenForkPull(scmtest.NewPull, map[string]string) (scmtest.Pull, error) {
	return scmtest.Pull{}, errors.ErrUnsupported
}

func (p *person) EditPull(int, func(*scmtest.Pull) error) (scmtest.Pull, error) {
	return scmtest.Pull{}, errors.ErrUnsupported
}
