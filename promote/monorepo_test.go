package promote

import (
	"context"
	"errors"
	"iter"
	"net/http/httptest"
	"strings"
	"testing"

	"tagboat/image"
	"tagboat/record"
	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/gitea/giteatest"
	"tagboat/scm/scmtest"
)

// mono is a repository with source and overlays.
type mono struct {
	*testing.T
	store *scmtest.Store
	repo  scm.Repository
}

func newMono(t *testing.T) *mono {
	m := &mono{T: t, store: scmtest.NewStore("main", map[string]string{"main.go": "1", "deploy/dev/kustomization.yaml": pins("0"), "deploy/staging/kustomization.yaml": pins("0"), "deploy/production/kustomization.yaml": pins("0")})}
	fake := httptest.NewServer(giteatest.New(giteatest.Options{Store: m.store, Version: giteatest.V126, Report: t.Errorf}))
	t.Cleanup(fake.Close)
	var err error
	if m.repo, err = gitea.New(gitea.Options{BaseURL: fake.URL, Owner: "acme", Name: "config", Token: "token"}); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mono) must(sha string, err error) string {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
	return sha
}

// pins is an overlay's file that runs images of a commit.
func pins(revision string) string {
	return "images:\n- name: todo\n  newTag: \"" + revision + "\"\n- name: web\n  newTag: \"" + revision + "\"\n"
}

// source changes the source.
func (m *mono) source(content string) string {
	m.Helper()
	return m.must(m.store.Push("main", "mei", "Change the source", map[string]string{"main.go": content}))
}

// promotion is the message of a promotion of an image that revision was built from.
func promotion(app, environment, revision string) string {
	file := "deploy/" + environment + "/kustomization.yaml"
	return "Promote " + app + "\n\n" + record.Trailers{App: app, Environment: environment, Base: "main", Paths: []string{"deploy/" + environment}, Revision: revision,
		Edits: []record.Edit{{File: file, Entry: app, Image: image.Reference{Repository: "acme/" + app, Digest: "sha256:" + strings.Repeat("0", 64)}}},
	}.String()
}

// direct promotes with a commit on the base branch.
func (m *mono) direct(app, environment, revision string) string {
	m.Helper()
	return m.must(m.store.Push("main", "tagboat", promotion(app, environment, revision), map[string]string{"deploy/" + environment + "/kustomization.yaml": pins(app + revision)}))
}

// merged promotes with a pull request that a person merges.
func (m *mono) merged(how, app, environment, revision string) string {
	m.Helper()
	head := "tagboat/" + environment + "/" + app
	tip, _ := m.store.Branch("main")
	if err := m.store.CreateBranch(head, tip); err != nil {
		m.Fatal(err)
	}
	m.must(m.store.Push(head, "tagboat", promotion(app, environment, revision), map[string]string{"deploy/" + environment + "/kustomization.yaml": pins(app + revision)}))
	pull, err := m.store.OpenPull(scmtest.NewPull{Head: head, Base: "main", Title: "Promote " + app, Author: "tagboat"})
	if err != nil {
		m.Fatal(err)
	}
	return m.must(m.store.MergePullRequest(pull.Number, how))
}

func TestOwnMerge(t *testing.T) {
	for name, test := range map[string]struct {
		build func(m *mono) string // gives the commit that CI builds
		own   bool
	}{
		"a change of the source":       {func(m *mono) string { return m.source("2") }, false},
		"the first build":              {func(m *mono) string { sha, _ := m.store.Branch("main"); return sha }, false},
		"its direct commit":            {func(m *mono) string { return m.direct("todo", "dev", m.source("2")) }, true},
		"its merge":                    {func(m *mono) string { return m.merged("merge", "todo", "dev", m.source("2")) }, true},
		"its squash, without trailers": {func(m *mono) string { return m.merged("squash", "todo", "dev", m.source("2")) }, true},
		"its rebase":                   {func(m *mono) string { return m.merged("rebase", "todo", "dev", m.source("2")) }, true},
		"its head branch": {func(m *mono) string {
			m.merged("merge", "todo", "dev", m.source("2"))
			sha, _ := m.store.Branch("tagboat/dev/todo")
			return sha
		}, true},
		"a source change after it": {func(m *mono) string {
			m.direct("todo", "dev", m.source("2"))
			return m.source("3")
		}, false},
		"a source change between, whose build was cancelled": {func(m *mono) string {
			first := m.source("2")
			m.source("3")
			return m.direct("todo", "dev", first)
		}, false},
		"another app's promotion on top": {func(m *mono) string {
			first := m.source("2")
			m.direct("todo", "dev", first)
			return m.direct("web", "staging", first)
		}, true},
		"another app's alone": {func(m *mono) string { return m.direct("web", "dev", m.source("2")) }, false},
		"another environment's of this app": {func(m *mono) string {
			return m.merged("merge", "todo", "staging", m.source("2"))
		}, true},
		"one that does not tell of builds": {func(m *mono) string {
			return m.merged("merge", "todo", "production", m.source("2"))
		}, false},
		"a person's revert of it": {func(m *mono) string {
			sha := m.direct("todo", "dev", m.source("2"))
			return m.must(m.store.Revert("main", sha))
		}, true},
		"a person's edit of the overlay beside it": {func(m *mono) string {
			m.direct("todo", "dev", m.source("2"))
			return m.must(m.store.Push("main", "mei", "Scale", map[string]string{"deploy/dev/replicas.yaml": "2"}))
		}, false},
		"source that a trailer hides": {func(m *mono) string {
			sha := m.source("2")
			message := strings.ReplaceAll(promotion("todo", "dev", sha), "deploy/dev/kustomization.yaml", "main.go")
			return m.must(m.store.Push("main", "li", message, map[string]string{"main.go": "3"}))
		}, false},
		"source in a file that could hold images": {func(m *mono) string {
			sha := m.source("2")
			message := strings.ReplaceAll(promotion("todo", "dev", sha), "deploy/dev/kustomization.yaml", "package.json")
			return m.must(m.store.Push("main", "li", message, map[string]string{"package.json": `{"dependencies": {}}`}))
		}, false},
		"source in an overlay's directory": {func(m *mono) string {
			sha := m.source("2")
			message := strings.ReplaceAll(promotion("todo", "dev", sha), "deploy/dev/kustomization.yaml", "deploy/dev/settings.yaml")
			return m.must(m.store.Push("main", "li", message, map[string]string{"deploy/dev/settings.yaml": "debug: true\n"}))
		}, false},
		"a revision that nobody knows": {func(m *mono) string { return m.direct("todo", "dev", strings.Repeat("1", 40)) }, false},
		"no revision":                  {func(m *mono) string { return m.direct("todo", "dev", "") }, false},
		"a commit that nobody knows":   {func(*mono) string { return strings.Repeat("2", 40) }, false},
		"no commit":                    {func(*mono) string { return "" }, false},
		"a revision of another branch": {func(m *mono) string {
			m.source("2")
			tip, _ := m.store.Branch("main")
			if err := m.store.CreateBranch("feature", tip); err != nil {
				m.Fatal(err)
			}
			other := m.must(m.store.Push("feature", "li", "Change", map[string]string{"main.go": "x"}))
			return m.direct("todo", "dev", other)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMono(t)
			revision := test.build(m)
			why, err := (&Promoter{}).ownMerge(t.Context(), m.repo, "todo", []string{"dev", "staging"}, revision)
			if err != nil || (why != "") != test.own {
				t.Errorf("%q, %v", why, err)
			}
			if test.own && !strings.Contains(why, "commit "+short(revision)+" differs from ") {
				t.Errorf("it says %q", why)
			}
		})
	}
}

// TestMergesEnd: whatever a build makes of the commit before, promoting and merging
// come to an end.
func TestMergesEnd(t *testing.T) {
	for _, how := range []string{"merge", "squash", "rebase"} {
		m := newMono(t)
		commit, merges := m.source("2"), 0
		for range 5 {
			why, err := (&Promoter{}).ownMerge(t.Context(), m.repo, "todo", nil, commit)
			if err != nil {
				t.Fatal(err)
			}
			if why != "" {
				break
			}
			commit = m.merged(how, "todo", "dev", commit)
			if err := m.store.DeleteBranch("tagboat/dev/todo", ""); err != nil {
				t.Fatal(err)
			}
			merges++
		}
		if merges != 1 {
			t.Errorf("%s: %d promotions of one change", how, merges)
		}
	}
}

// failingLog tells an error instead of commits.
type failingLog struct {
	scm.Repository
	err error
}

func (f failingLog) Log(context.Context, string, string) iter.Seq2[scm.Commit, error] {
	return func(yield func(scm.Commit, error) bool) { yield(scm.Commit{}, f.err) }
}

func TestOwnMergeOfABrokenForge(t *testing.T) {
	for _, test := range []struct{ err, want error }{{scm.ErrRateLimited, scm.ErrRateLimited}, {scm.ErrNotFound, nil}} {
		why, err := (&Promoter{}).ownMerge(t.Context(), failingLog{err: test.err}, "todo", nil, "abc")
		if why != "" || !errors.Is(err, test.want) {
			t.Errorf("%v: %q, %v", test.err, why, err)
		}
	}
}
