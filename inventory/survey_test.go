package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/config"
	"tagboat/inventory"
	"tagboat/scm"
	"tagboat/scm/scmtest"
)

const places = `version: 1
apps:
  todo-api: {images: [{repository: ` + repo + `}]}
  todo-web: {images: [{repository: ghcr.io/acme/todo-web}], environments: [staging], group: todo}
environments:
- {name: staging, path: "{app}/staging"}
- {name: branch, path: "{app}", branch: live}
- {name: elsewhere, path: "{app}", repository: acme/other}
- {name: gone, path: "{app}", repository: acme/gone}
- {name: nobranch, path: "{app}", branch: missing}
`

// surveyed is a survey of a repository and of another one that it names.
func surveyed(t *testing.T, forge string) (*inventory.Survey, *world) {
	w := &world{T: t, store: scmtest.NewStore("main", map[string]string{"tagboat.yaml": places, "todo-api/staging/kustomization.yaml": pinned("a")})}
	w.push("live", "todo-api/kustomization.yaml", pinned("b"))
	w.repo = forges()[forge](t, w.store, scm.TransportOptions{Observe: func(scm.Try) { w.calls.Add(1) }})
	other := forges()[forge](t, scmtest.NewStore("trunk", map[string]string{"todo-api/kustomization.yaml": pinned("c")}), scm.TransportOptions{})
	s, err := inventory.NewSurvey(context.Background(), w.repo, func(_ context.Context, name, _ string) (scm.Repository, error) {
		if name == "acme/gone" {
			return nil, fmt.Errorf("%w: acme/gone", scm.ErrNotFound)
		}
		return other, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// TestLook: each place has its branch and repository, and what fails at one does
// not stop the others.
func TestLook(t *testing.T) {
	for forge := range forges() {
		t.Run(forge, func(t *testing.T) {
			s, w := surveyed(t, forge)
			w.push("tagboat/staging/todo-api", "todo-api/staging/kustomization.yaml", pinned("d"))
			w.push("tagboat/staging/todo", "todo-web/staging/kustomization.yaml", pinned("d"))
			for _, head := range []string{"tagboat/staging/todo-api", "tagboat/staging/todo"} {
				if _, err := w.store.OpenPull(scmtest.NewPull{Head: head, Base: "main", Title: head, Author: "mei"}); err != nil {
					t.Fatal(err)
				}
			}
			all, err := s.Places("", "", "")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range s.Look(context.Background(), all, false) {
				line := fmt.Sprintf("%s %s %s:", f.App, f.At, f.Branch)
				for _, ref := range f.Images {
					line += " " + ref.Tag
				}
				for _, pr := range f.Open {
					line += fmt.Sprintf(" #%d", pr.Number)
				}
				if f.Err() != nil {
					line += fmt.Sprint(" missing=", errors.Is(f.Err(), scm.ErrNotFound) || errors.Is(f.Err(), fs.ErrNotExist))
				}
				got = append(got, line)
			}
			want := []string{
				"todo-api staging main: v-a #1", "todo-api branch live: v-b", "todo-api elsewhere trunk: v-c", "todo-api gone : missing=true",
				"todo-api nobranch : missing=true", "todo-web staging main: #2 missing=true",
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	s, _ := surveyed(t, "gitea")
	for _, c := range []struct {
		environment, ring, app, want string
		err                          error
	}{
		{"staging", "", "", "todo-api staging, todo-web staging", nil},
		{"", "", "todo-web", "todo-web staging", nil},
		{"branch", "", "todo-web", "in staging", config.ErrNoTarget},
		{"staging", "one", "", "no rings", config.ErrNoTarget},
		{"stagin", "", "", "staging", config.ErrUnknown},
		{"", "", "todo-wep", "todo-web", config.ErrUnknown},
	} {
		found, err := s.Places(c.environment, c.ring, c.app)
		var got []string
		for _, p := range found {
			got = append(got, p.App+" "+p.At.String())
		}
		text := strings.Join(got, ", ")
		if err != nil {
			text = err.Error()
		}
		if !errors.Is(err, c.err) || !strings.Contains(text, c.want) {
			t.Errorf("%+v: %s", c, text)
		}
	}
}

// TestNoConfiguration: a repository without tagboat.yaml says so.
func TestNoConfiguration(t *testing.T) {
	w := newWorld(t, openGitea)
	_, err := inventory.NewSurvey(context.Background(), w.repo, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestLookShares: forty apps of one branch are one tip, one list of pull requests,
// and two calls for each file.
func TestLookShares(t *testing.T) {
	files := map[string]string{}
	var apps strings.Builder
	for i := range 40 {
		fmt.Fprintf(&apps, "  app-%02d: {images: [{repository: %s%02d}]}\n", i, repo, i)
		files[fmt.Sprintf("app-%02d/kustomization.yaml", i)] = strings.ReplaceAll(pinned("a"), repo, fmt.Sprintf("%s%02d", repo, i))
	}
	files["tagboat.yaml"] = "version: 1\napps:\n" + apps.String() + "environments: [{name: staging, path: \"{app}\"}]\n"
	w := &world{T: t, store: scmtest.NewStore("main", files)}
	w.repo = openGitea(t, w.store, scm.TransportOptions{Observe: func(scm.Try) { w.calls.Add(1) }})
	s, err := inventory.NewSurvey(context.Background(), w.repo, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Places("staging", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Look(context.Background(), all, false) {
		if f.Err() != nil || len(f.Images) != 1 {
			t.Errorf("%s: %v, %v", f.App, f.Images, f.Err())
		}
	}
	if n := w.calls.Load(); n > 90 {
		t.Errorf("%d calls for forty apps", n)
	}
}
