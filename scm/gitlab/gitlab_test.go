package gitlab_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"tagboat/scm"
	"tagboat/scm/gitlab"
	"tagboat/scm/gitlab/gitlabtest"
	"tagboat/scm/scmtest"
)

const overlay = "overlays/staging/kustomization.yaml"

func seed() map[string]string {
	return map[string]string{
		overlay:          "images:\n- name: app\n  newTag: v1\n",
		"base/app.yaml":  "kind: Deployment\n",
		"base/other.txt": "x\n",
	}
}

// world is a repository against a fake GitLab.
type world struct {
	t     *testing.T
	store *scmtest.Store
	fake  *gitlabtest.Server
	url   string
	repo  *gitlab.Repository
}

func start(t *testing.T, set ...func(*gitlabtest.Server, *gitlab.Options)) *world {
	t.Helper()
	w := &world{t: t, store: scmtest.NewStore("main", seed())}
	w.fake = gitlabtest.New(t, w.store)
	o := gitlab.Options{Project: gitlabtest.Project, Token: gitlabtest.Token}
	o.Transport.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	for _, f := range set {
		f(w.fake, &o)
	}
	w.url = o.BaseURL
	if o.Transport.Base == nil {
		var stop func()
		w.url, stop = w.fake.Start()
		t.Cleanup(stop)
	}
	o.BaseURL = w.url
	var err error
	if w.repo, err = gitlab.New(o); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) tip(branch string) scm.Tip {
	w.t.Helper()
	tip, err := w.repo.Tip(w.t.Context(), branch)
	if err != nil {
		w.t.Fatal(err)
	}
	return tip
}

// draft promotes to another tag, on a new branch, with the file read as promote
// does.
func (w *world) draft(from scm.Tip, tag string) scm.Draft {
	w.t.Helper()
	old, err := fs.ReadFile(w.repo.Files(w.t.Context(), from.Commit.SHA), overlay)
	if err != nil {
		w.t.Fatal(err)
	}
	return scm.Draft{
		Branch: "tagboat/staging/app", From: from, Message: "Promote app to " + tag + "\n\nTagboat-App: app\n",
		Files: []scm.File{{Path: overlay, Old: old, New: []byte("images:\n- name: app\n  newTag: " + tag + "\n")}},
	}
}

func (w *world) commit(d scm.Draft) scm.Commit {
	w.t.Helper()
	c, err := w.repo.Commit(w.t.Context(), d)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) propose(p scm.Proposal) scm.PullRequest {
	w.t.Helper()
	pr, err := w.repo.Propose(w.t.Context(), p)
	if err != nil {
		w.t.Fatal(err)
	}
	return pr
}

func proposal(c scm.Commit) scm.Proposal {
	return scm.Proposal{Head: "tagboat/staging/app", Base: "main", HeadCommit: c.SHA, Title: "Promote app", Body: "Body\n"}
}

func TestPromoteOnce(t *testing.T) {
	w := start(t)
	base := w.tip("main")
	c := w.commit(w.draft(base, "v2"))
	if len(c.Parents) != 1 || c.Parents[0] != base.Commit.SHA {
		t.Errorf("parents %v, want %s", c.Parents, base.Commit.SHA)
	}
	pr := w.propose(proposal(c))
	all, err := w.repo.PullRequests(t.Context(), "tagboat/staging/app", "main")
	if err != nil || len(all) != 1 || all[0].Number != pr.Number || all[0].HeadCommit != c.SHA {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestFilesIsAnFS(t *testing.T) {
	w := start(t)
	if err := fstest.TestFS(w.repo.Files(t.Context(), w.tip("").Commit.SHA), overlay, "base/app.yaml"); err != nil {
		t.Error(err)
	}
}
