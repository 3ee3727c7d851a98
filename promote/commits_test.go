package promote_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"tagboat/promote"
	"tagboat/registry/registrytest"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

// code is a source repository beside the config repository, and what is asked of it.
type code struct {
	*world
	store    *scmtest.Store
	repo     scm.Repository
	opened   []string
	compared int
}

func newCode(w *world, forge forgeFor) *code {
	c := &code{world: w, store: scmtest.NewStore("main", map[string]string{"main.go": "package main\n"})}
	c.repo = comparing{forge.open(w.T, c.store, scm.TransportOptions{}), c}
	w.promoter.OpenSource = func(_ context.Context, name, _ string) (scm.Repository, error) {
		c.opened = append(c.opened, name)
		return c.repo, nil
	}
	return c
}

type comparing struct {
	scm.Repository
	code *code
}

func (c comparing) Compare(ctx context.Context, base, head string) (scm.Comparison, error) {
	c.code.compared++
	return c.Repository.Compare(ctx, base, head)
}

// at is a repository whose address is not that of a fake: images that name it keep
// their digests.
type at struct {
	scm.Repository
	url string
}

func (a at) About() scm.About {
	about := a.Repository.About()
	u, _ := url.Parse(a.url)
	about.URL, about.Host = a.url, u.Host
	return about
}

// commit is a commit on a branch of the source.
func (c *code) commit(branch, author, message string) string {
	c.Helper()
	return c.must(c.store.Push(branch, author, message, map[string]string{"main.go": "package main // " + message + "\n"}))
}

// built pushes an image that says of which commit it was built.
func (c *code) built(name string, day int, source, revision string) (digest string) {
	c.Helper()
	digest, err := c.images.PushImage("acme/"+name, registrytest.ImageSpec{
		Platforms: []string{"linux/amd64"}, Content: name + revision, Created: time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC),
		Labels: map[string]string{"org.opencontainers.image.revision": revision, "org.opencontainers.image.source": source},
	})
	if err != nil {
		c.Fatal(err)
	}
	return digest
}

// runs puts an image into the overlay.
func (c *code) runs(digest string) {
	old, _, _ := strings.Cut(c.at("main")[strings.Index(c.at("main"), "digest: ")+len("digest: "):], "\n")
	c.replace("main", file, old, digest)
}

// TestCommits: who is asked for the commits between two images, and what comes of it.
func TestCommits(t *testing.T) {
	for name, forge := range forges() {
		t.Run(name, func(t *testing.T) {
			c := newCode(newWorld(t, forge), forge)
			own := c.world.repo.About().URL
			one := c.commit("main", "mei", "One")
			two := c.commit("main", "mei", "Two")
			three := c.commit("main", "li", "Three")
			side := c.commit("side", "li", "Beside")
			ask := func(images string, outcome promote.Outcome, opened, compared int, options ...option) promote.Result {
				t.Helper()
				c.opened, c.compared = nil, 0
				res := c.want(outcome, images, append(options, dryRun, noProof)...)
				if len(c.opened) != opened || c.compared != compared {
					t.Errorf("%s: opened %v, compared %d times; want %d and %d", images, c.opened, c.compared, opened, compared)
				}
				return res
			}
			relation := func(res promote.Result, want promote.Relation, ahead, behind int) {
				t.Helper()
				if len(res.Commits) != 1 || res.Commits[0].Relation != want || res.Commits[0].Come.Count != ahead || res.Commits[0].Gone.Count != behind || !strings.Contains(res.Body, "**Source:**") {
					t.Errorf("commits %+v, want %s, %d and %d; body:\n%s", res.Commits, want, ahead, behind, res.Body)
				}
			}
			c.runs(c.built("todo-api:v1", 1, own, two))
			c.built("todo-api:v2", 2, own, three)
			relation(ask("todo-api:v2", promote.Planned, 1, 1), promote.Ahead, 1, 0)
			// the commits tell, although it was built later
			c.built("todo-api:old", 9, own, one)
			if res := ask("todo-api:old", promote.Outdated, 1, 1); !strings.Contains(res.Reason, "comes before") {
				t.Errorf("reason: %s", res.Reason)
			}
			relation(ask("todo-api:old", promote.Planned, 1, 1, allowOlder), promote.Behind, 0, 1)
			c.built("todo-api:side", 4, own, side)
			relation(ask("todo-api:side", promote.Planned, 1, 1), promote.Ahead, 2, 0)
			c.built("todo-api:again", 5, own, two)
			relation(ask("todo-api:again", promote.Planned, 1, 0), promote.SameCommit, 0, 0)
			// what is claimed elsewhere, or of one side alone, is not followed
			c.built("todo-api:elsewhere", 6, "https://elsewhere.example/acme/todo", three)
			c.built("todo-api:other", 7, strings.TrimSuffix(own, "config")+"other", three)
			c.built("todo-api:branch", 8, own, "main")
			c.built("todo-api:gone", 9, own, strings.Repeat("1", 40))
			for _, image := range []string{"elsewhere", "other", "branch"} {
				ask("todo-api:"+image, promote.Planned, 0, 0)
			}
			if res := ask("todo-api:gone", promote.Planned, 1, 1); len(res.Commits) != 0 || strings.Contains(res.Body, "Source:") {
				t.Errorf("a claim that leads nowhere is told: %+v", res.Commits)
			}
		})
	}
}
