//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stage is a config repository on a real Gitea and a real registry. Each app
// has an overlay of its own, so that the tests do not meet.
type stage struct {
	*repository
	registry string
}

const fleet = 20

func setStage(t *testing.T, apps ...string) *stage {
	t.Helper()
	s := &stage{registry: startRegistry(t)}
	files := map[string]string{}
	for _, app := range apps {
		files["apps/"+app+"/base/kustomization.yaml"] = "resources:\n  - deployment.yaml\n"
		files["apps/"+app+"/base/deployment.yaml"] = fmt.Sprintf(deployment, app)
		files[path(app)] = s.overlay(app, "v1.3.0", "")
	}
	s.repository = startGitea(t).repository(t, "config", files)
	return s
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      containers:
        - name: app
          image: %[1]s
          ports: [{containerPort: 8080}]
`

func path(app string) string { return "apps/" + app + "/overlays/staging/kustomization.yaml" }

// overlay is an overlay as people write it: comments, its own quotes, a line
// end in the middle of nowhere.
func (s *stage) overlay(app, tag, digest string) string {
	pin := fmt.Sprintf("    newTag: %s # moved by CI\n", tag)
	if digest != "" {
		pin += "    digest: " + digest + "\n"
	}
	return fmt.Sprintf("# Staging of %s. Ask #platform before you change the name prefix.\n"+
		"resources: [../../base]\n\nnamePrefix:   staging-\nimages:\n  - name: %s\n    newName: %s/acme/%s\n%s\nreplicas:\n- {name: %s, count: 2}\n",
		app, app, s.registry, app, pin, app)
}

// build pushes version 1.N of an app: a higher N is built an hour later.
func (s *stage) build(t *testing.T, app string, n int) (image, digest string) {
	t.Helper()
	image = fmt.Sprintf("%s/acme/%s:v1.%d.0", s.registry, app, n)
	return image, push(t, image, time.Date(2026, 3, 1, n, 0, 0, 0, time.UTC))
}

func (s *stage) promote(t *testing.T, app, image string, args ...string) result {
	t.Helper()
	return s.forge().promote(t, append([]string{"--path", "apps/" + app + "/overlays/staging", image}, args...)...)
}

// wantPull checks that the app's one open pull request moves its image to this
// tag and digest, and nothing else.
func (s *stage) wantPull(t *testing.T, app, tag, digest string) pull {
	t.Helper()
	p := s.pull(t, app)
	if p.Head.Ref != "tagboat/staging/"+app || p.Base.Ref != "main" {
		t.Errorf("pull request from %s into %s", p.Head.Ref, p.Base.Ref)
	}
	for _, want := range []string{tag, digest, "staging", app} {
		if !strings.Contains(p.Title+p.Body, want) {
			t.Errorf("the pull request does not say %s:\n%s\n\n%s", want, p.Title, p.Body)
		}
	}
	files, lines := s.diff(t, p.Number)
	if diff := cmp.Diff([]string{"--- a/" + path(app), "+++ b/" + path(app)}, files); diff != "" {
		t.Errorf("changed files (-want +got):\n%s", diff)
	}
	want := []string{
		"-    newTag: v1.3.0 # moved by CI",
		"+    newTag: " + tag + " # moved by CI",
		"+    digest: " + digest,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("changed lines (-want +got):\n%s", diff)
	}
	if got, want := s.file(t, p.Head.Ref, path(app)), s.overlay(app, tag, digest); got != want {
		t.Errorf("the file on the head branch (-want +got):\n%s", cmp.Diff(want, got))
	}
	return p
}

func TestStory(t *testing.T) {
	apps := []string{"todo-api", "closed", "back", "person", "noop"}
	for n := range fleet {
		apps = append(apps, fleetApp(n))
	}
	s := setStage(t, apps...)
	t.Run("opened, updated in place, outdated, merged", s.lifeOfAPromotion)
	t.Run("nothing to do", s.nothingToDo)
	t.Run("closed by a person", s.closedByAPerson)
	t.Run("taken back", s.takenBack)
	t.Run("a person's commit", s.personsCommit)
	t.Run("twenty at once", s.twentyAtOnce)
}

func (s *stage) lifeOfAPromotion(t *testing.T) {
	const app = "todo-api"
	v4, digest4 := s.build(t, app, 4)
	v5, digest5 := s.build(t, app, 5)

	opened := s.promote(t, app, v4).want(t, 0, "opened").Promotions[0]
	first := s.wantPull(t, app, "v1.4.0", digest4)
	if opened.PullRequest.URL != first.URL || opened.PullRequest.Number != first.Number || opened.Proof.Status != "proven" {
		t.Errorf("result %+v does not tell pull request %s, proven", opened, first.URL)
	}
	shoot(t, first.URL, "1-opened")

	s.promote(t, app, v4).want(t, 0, "unchanged")
	if again := s.wantPull(t, app, "v1.4.0", digest4); again.Head.SHA != first.Head.SHA || again.Body != first.Body {
		t.Errorf("a second run changed the pull request: head %s became %s", first.Head.SHA, again.Head.SHA)
	}

	s.promote(t, app, v5).want(t, 0, "updated")
	updated := s.wantPull(t, app, "v1.5.0", digest5)
	if updated.Number != first.Number || strings.Contains(updated.Title, "v1.4.0") {
		t.Errorf("pull request %d became %d (%s), want an update in place", first.Number, updated.Number, updated.Title)
	}
	if all := s.pulls(t, "all", app); len(all) != 1 {
		t.Errorf("%d pull requests in all, want 1", len(all))
	}
	shoot(t, updated.URL, "2-updated")
	shoot(t, updated.URL+"/files", "3-files")

	s.promote(t, app, v4).want(t, 0, "outdated")
	if after := s.wantPull(t, app, "v1.5.0", digest5); after.Head.SHA != updated.Head.SHA || after.Body != updated.Body {
		t.Errorf("an older job changed the pull request: head %s became %s", updated.Head.SHA, after.Head.SHA)
	}

	s.merge(t, updated.Number)
	s.promote(t, app, v5).want(t, 0, "up-to-date")
	s.promote(t, app, v4).want(t, 0, "outdated")
	if open := s.pulls(t, "open", app); len(open) != 0 {
		t.Errorf("%d open pull requests after the merge, want none", len(open))
	}
	if got, want := s.file(t, "main", path(app)), s.overlay(app, "v1.5.0", digest5); got != want {
		t.Errorf("the file on main (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func (s *stage) nothingToDo(t *testing.T) {
	const app = "noop"
	v3, digest3 := s.build(t, app, 3)
	s.write(t, "main", path(app), s.overlay(app, "v1.3.0", digest3), "Pin noop by hand")
	head := s.branchHead(t, "main")
	s.promote(t, app, v3).want(t, 0, "up-to-date")
	if slices.Contains(s.branches(t), "tagboat/staging/"+app) || len(s.pulls(t, "all", app)) > 0 || s.branchHead(t, "main") != head {
		t.Error("a promotion with nothing to do left something behind")
	}
}

func (s *stage) closedByAPerson(t *testing.T) {
	const app = "closed"
	v4, digest4 := s.build(t, app, 4)
	v5, digest5 := s.build(t, app, 5)
	s.promote(t, app, v4).want(t, 0, "opened")
	refused := s.wantPull(t, app, "v1.4.0", digest4)
	s.close(t, refused.Number)

	declined := s.promote(t, app, v4).want(t, 0, "declined").Promotions[0]
	if declined.PullRequest.URL != refused.URL {
		t.Errorf("declined without the link to %s: %+v", refused.URL, declined)
	}
	if open := s.pulls(t, "open", app); len(open) != 0 {
		t.Fatalf("%d open pull requests after a person's no", len(open))
	}
	s.promote(t, app, v5).want(t, 0, "opened")
	newer := s.wantPull(t, app, "v1.5.0", digest5)
	s.close(t, newer.Number)
	s.promote(t, app, v5, "--again").want(t, 0, "opened")
	s.wantPull(t, app, "v1.5.0", digest5)
}

func (s *stage) takenBack(t *testing.T) {
	const app = "back"
	v4, digest4 := s.build(t, app, 4)
	v5, digest5 := s.build(t, app, 5)
	s.promote(t, app, v4).want(t, 0, "opened")
	merged := s.wantPull(t, app, "v1.4.0", digest4)
	s.merge(t, merged.Number)
	s.write(t, "main", path(app), s.overlay(app, "v1.3.0", ""), "Take v1.4.0 back")

	declined := s.promote(t, app, v4).want(t, 0, "declined").Promotions[0]
	if declined.PullRequest.URL != merged.URL {
		t.Errorf("declined without the link to %s: %+v", merged.URL, declined)
	}
	if open := s.pulls(t, "open", app); len(open) != 0 {
		t.Fatalf("%d open pull requests after a revert", len(open))
	}
	s.promote(t, app, v5).want(t, 0, "opened")
	s.wantPull(t, app, "v1.5.0", digest5)
}

func (s *stage) personsCommit(t *testing.T) {
	const app = "person"
	v4, digest4 := s.build(t, app, 4)
	v5, _ := s.build(t, app, 5)
	s.promote(t, app, v4).want(t, 0, "opened")
	p := s.wantPull(t, app, "v1.4.0", digest4)
	more := strings.Replace(s.overlay(app, "v1.4.0", digest4), "count: 2", "count: 5", 1)
	s.write(t, p.Head.Ref, path(app), more, "Five replicas for the load test")
	head := s.branchHead(t, p.Head.Ref)

	for _, image := range []string{v4, v5} {
		r := s.promote(t, app, image)
		if r.exit != 1 || r.Promotions[0].Error.Code != "foreign-commits" || !strings.Contains(r.Promotions[0].Error.Message, "mei") {
			t.Errorf("%s: exit %d, error %+v; want 1, foreign-commits by mei", image, r.exit, r.Promotions[0].Error)
		}
	}
	if got := s.branchHead(t, p.Head.Ref); got != head || s.file(t, got, path(app)) != more {
		t.Errorf("the person's commit %s is gone: the branch is at %s", head, got)
	}
}

// promoteLikeCI runs the job again when the forge was too busy to answer, as a
// team would: what the first run left must be completed, not doubled.
func (s *stage) promoteLikeCI(t *testing.T, app, image string) error {
	for try := 1; ; try++ {
		r, err := s.forge().run(t, "--path", "apps/"+app+"/overlays/staging", image)
		switch {
		case err != nil:
			return err
		case r.exit == 0 && slices.Contains([]string{"opened", "unchanged"}, r.Promotions[0].Outcome):
			return nil
		case r.Promotions[0].Error.Code != "forge-unavailable" || try == 3:
			return fmt.Errorf("exit %d after %d tries: %+v", r.exit, try, r.Promotions[0])
		}
	}
}

func fleetApp(n int) string { return fmt.Sprintf("fleet-%02d", n) }

// twentyAtOnce promotes twenty apps in one repository at the same moment, as a
// mono-repo's pipeline does, then merges some: none may be lost, doubled or mixed
// up, and no merge may take another's lines back.
func (s *stage) twentyAtOnce(t *testing.T) {
	images, digests := make([]string, fleet), make([]string, fleet)
	for n := range fleet {
		images[n], digests[n] = s.build(t, fleetApp(n), 4)
	}
	var all sync.WaitGroup
	for n := range fleet {
		all.Go(func() {
			if err := s.promoteLikeCI(t, fleetApp(n), images[n]); err != nil {
				t.Errorf("%s: %v", fleetApp(n), err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	var numbers []int
	for n := range fleet {
		numbers = append(numbers, s.wantPull(t, fleetApp(n), "v1.4.0", digests[n]).Number)
	}
	const merged = 3 // each merge makes Gitea check all other pull requests again
	for n := range merged {
		s.merge(t, numbers[n])
	}
	for n := range merged {
		if got, want := s.file(t, "main", path(fleetApp(n))), s.overlay(fleetApp(n), "v1.4.0", digests[n]); got != want {
			t.Errorf("%s on main (-want +got):\n%s", fleetApp(n), cmp.Diff(want, got))
		}
	}
}
