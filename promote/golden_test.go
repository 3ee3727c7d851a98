package promote_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/overlay"
	"tagboat/promote"
	"tagboat/registry/registrytest"
)

var content = regexp.MustCompile(`"content":"[0-9a-f]{16}"`)

var server = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/`) // of the source: the config repository's has its name

var update = flag.Bool("update", false, "rewrite golden files") //nolint:gochecknoglobals // flags of a test are

// golden compares a text with testdata/NAME.golden. The registry's port is made
// one, for it differs from run to run.
func (w *world) golden(text string) {
	w.Helper()
	text = strings.ReplaceAll(text, w.images.Host(), "registry.acme.example")
	text = content.ReplaceAllString(text, `"content":"…"`) // it names the registry too
	if _, after, found := strings.Cut(w.repo.About().URL, "://"); found {
		host, _, _ := strings.Cut(after, "/")
		text = strings.ReplaceAll(text, "http://"+host, "https://git.acme.example")
	}
	text = server.ReplaceAllString(text, "https://code.acme.example/")
	path := filepath.Join("testdata", strings.ReplaceAll(w.Name(), "/", "_")+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		w.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestText holds what a reviewer reads: title, body and commit message.
func TestText(t *testing.T) {
	hostile := registrytest.ImageSpec{
		Platforms: []string{"linux/amd64"}, Content: "hostile", Created: time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC),
		Labels: map[string]string{
			"org.opencontainers.image.revision": "`@mei` | <!-- tagboat: {\"app\":\"x\"} --> \n\n# Approved",
			"org.opencontainers.image.source":   "https://evil.example/)[click](javascript:alert(1))",
		},
	}
	job := func(q *promote.Request) {
		q.Job = promote.Job{Actor: "mei", RunURL: "https://ci.acme.example/runs/7", Revision: strings.Repeat("1", 40)}
	}
	for name, test := range map[string]func(w *world) promote.Result{
		"one": func(w *world) promote.Result {
			w.push("todo-api:v2", 2)
			return w.want(promote.Opened, "todo-api:v2", job)
		},
		"renewed": func(w *world) promote.Result {
			w.push("todo-api:v2", 2)
			w.want(promote.Opened, "todo-api:v2")
			w.push("todo-api:v3", 3)
			return w.want(promote.Updated, "todo-api:v3", func(q *promote.Request) { q.Platforms = []string{"linux/arm64"} })
		},
		"several": func(w *world) promote.Result {
			w.push("todo-api:v2", 2)
			w.push("todo-web:v5", 2)
			return w.want(promote.Opened, "todo-api:v2 todo-web:v5", job)
		},
		"digest alone": func(w *world) promote.Result {
			w.push("todo-api:v2", 2)
			digestAlone := func(q *promote.Request) { q.Pin = overlay.PinDigest }
			w.want(promote.Opened, "todo-api:v2", digestAlone)
			w.want(promote.Unchanged, "todo-api:v2", digestAlone)
			w.push("todo-api:v3", 3)
			return w.want(promote.Updated, "todo-api:v3", digestAlone)
		},
		"commits": func(w *world) promote.Result {
			const own = "https://git.acme.example/acme/config"
			w.repo = at{w.repo, own}
			c := newCode(w, forges()["gitea"])
			one := c.commit("main", "mei", "Start")
			c.commit("main", "<b>@team</b>", "Close #12: thanks @mei, see [this](https://evil.example) | <!-- tagboat: {} -->\n\nMore.")
			c.commit("main", "li", "Read `a` and ``b``")
			c.runs(c.built("todo-api:v1", 1, own, one))
			c.built("todo-api:v2", 2, own, c.commit("main", "mei", "Answer in JSON"))
			return w.want(promote.Opened, "todo-api:v2")
		},
		"not proven": func(w *world) promote.Result {
			w.push("todo-api:v2", 2)
			w.replace("main", file, "- ../../base", "- https://git.acme.example/base")
			return w.want(promote.Opened, "todo-api:v2", func(q *promote.Request) { q.Prove = overlay.ProveAuto })
		},
		"hostile": func(w *world) promote.Result {
			if _, err := w.images.PushImage("acme/todo-api:v2", hostile); err != nil {
				w.Fatal(err)
			}
			return w.want(promote.Opened, "todo-api:v2", func(q *promote.Request) {
				q.Job.Actor, q.Job.RunURL = "<img src=x onerror=alert(1)>@team\nTagboat-App: forged", "javascript:alert(1)"
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, forges()["gitea"])
			res := test(w)
			commit, ok := w.store.Commit(w.head())
			if !ok {
				t.Fatal("no head")
			}
			w.golden(res.Title + "\n\n" + res.Body + "\n---- commit message ----\n" + commit.Message)
		})
	}
}
