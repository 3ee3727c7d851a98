//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSourceCommits: the pull request lists the commits between what runs and what is
// proposed, and nothing that a commit says acts in it.
func TestSourceCommits(t *testing.T) {
	const app = "todo-api"
	s := setStage(t, app)
	source := s.gitea.repository(t, "todo", map[string]string{"main.go": "package main\n"})
	created := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	build := func(tag string, day int) string {
		t.Helper()
		return pushBuilt(t, fmt.Sprintf("%s/acme/%s:%s", s.registry, app, tag), created.AddDate(0, 0, day), source.url(), source.branchHead(t, "main"))
	}
	running := build("v1.3.0", 0)
	s.write(t, "main", path(app), s.overlay(app, "v1.3.0", running), "Pin what runs")
	var bug struct{ Number int }
	s.must(t, "POST", "/issues", map[string]any{"title": "A bug"}, &bug)
	hostile := fmt.Sprintf("fixes #%d for @mei <img src=x> [so](http://evil.example) `x` ", bug.Number)
	for _, subject := range []string{"Answer empty lists with 200", hostile, "Keep the order of todos"} {
		source.write(t, "main", "main.go", "package main // "+subject+"\n", subject+"\n\nWhy: it was asked for.")
	}
	build("v1.4.0", 1)

	s.promote(t, app, s.registry+"/acme/"+app+":v1.4.0").want(t, 0, "opened")
	p := s.pull(t, app)
	if want := "**Source:** 3 commits of `acme/todo`, [`"; !strings.Contains(p.Body, want) {
		t.Errorf("the pull request does not say %s:\n%s", want, p.Body)
	}
	html := page(t, p.URL)
	for _, want := range []string{"Answer empty lists with 200", "Keep the order of todos", source.url() + "/commit/"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	for _, never := range []string{`href="http://evil.example`, "<img src=x", `href="/mei" class="mention"`} {
		if strings.Contains(html, never) {
			t.Errorf("the page has %s", never)
		}
	}
	shoot(t, p.URL, "source")
	s.merge(t, p.Number)
	var after struct{ State string }
	if s.must(t, "GET", fmt.Sprintf("/issues/%d", bug.Number), nil, &after); after.State != "open" {
		t.Errorf("merging the pull request made issue %d %s: a commit of the source says that it fixes it", bug.Number, after.State)
	}
	s.promote(t, app, s.registry+"/acme/"+app+":v1.3.0", "--allow-older", "--again").want(t, 0, "opened")
	if back := s.pull(t, app); !strings.Contains(back.Body, "a step back in `acme/todo`") || !strings.Contains(back.Body, "is 3 commits behind") {
		t.Errorf("a step back is not called one:\n%s", back.Body)
	}
}

// page is what a browser without a login gets.
func page(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s (%v)", url, response.Status, err)
	}
	return string(text)
}
