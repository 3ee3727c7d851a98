package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"tagboat/image"
)

const entry = "images:\n- name: todo-api\n  newName: ghcr.io/acme/todo-api\n  newTag: v1\n"

// overlaysAt has a kustomization with an entry in each directory; "DIR=TEXT" has
// that text.
func overlaysAt(dirs ...string) fstest.MapFS {
	files := fstest.MapFS{"README.md": &fstest.MapFile{Data: []byte("config\n")}}
	for _, dir := range dirs {
		dir, content, given := strings.Cut(dir, "=")
		if !given {
			content = entry
		}
		files[path.Join(dir, "kustomization.yaml")] = &fstest.MapFile{Data: []byte(content)}
	}
	return files
}

func TestSearch(t *testing.T) {
	const other = "=images:\n- name: ghcr.io/acme/todo-web\n  newTag: v1\n"
	for name, test := range map[string]struct {
		dirs []string
		want string
		says string // of the error
	}{
		"one":                     {[]string{"overlays/staging", "overlays/production", "base=resources: []\n"}, "overlays/staging", ""},
		"word in the middle":      {[]string{"envs/staging/todo", "envs/production/todo"}, "envs/staging/todo", ""},
		"at the top":              {[]string{"staging"}, "staging", ""},
		"as deep as it goes":      {[]string{"a/b/c/d/e/staging"}, "a/b/c/d/e/staging", ""},
		"too deep":                {[]string{"a/b/c/d/e/f/staging"}, "", "no overlay with staging as an element of its path has an entry for ghcr.io/acme/todo-api: name the overlay with --path"},
		"another image there":     {[]string{"todo/overlays/staging", "web/overlays/staging" + other}, "todo/overlays/staging", ""},
		"several":                 {[]string{"eu/staging", "us/staging"}, "", "2 overlays have staging in their path and an entry for ghcr.io/acme/todo-api: eu/staging, us/staging: name the overlay with --path"},
		"base within":             {[]string{"staging", "staging/base"}, "", "2 overlays have staging"},
		"none of that word":       {[]string{"overlays/production"}, "", "no overlay with staging"},
		"another image alone":     {[]string{"web/staging" + other}, "", "there is web/staging (no entry for ghcr.io/acme/todo-api): name the overlay with --path"},
		"a part is not enough":    {[]string{"overlays/non-staging", "overlays/todo.staging"}, "", "with staging in a part of an element: overlays/non-staging, overlays/todo.staging: name"},
		"nor another case":        {[]string{"overlays/Staging"}, "", "in a part of an element: overlays/Staging"},
		"a part beside the whole": {[]string{"overlays/pre-staging", "overlays/staging"}, "overlays/staging", ""},
		"left out directories":    {[]string{".git/staging", "vendor/staging", "ui/node_modules/staging", ".github/staging"}, "", "no overlay"},
		"that cannot be edited":   {[]string{"staging=images: [\n"}, "", "there is staging ("},
		"nothing at all":          {nil, "", "no overlay"},
		"many others": {func() (dirs []string) {
			for i := range 30 {
				dirs = append(dirs, fmt.Sprintf("app%02d/staging%s", i, other))
			}
			return dirs
		}(), "", "app09/staging (no entry for ghcr.io/acme/todo-api), 20 more: name"},
		"too many overlays": {func() (dirs []string) {
			for i := range searchOverlays + 1 {
				dirs = append(dirs, fmt.Sprintf("app%02d/staging%s", i, other))
			}
			return append(dirs, "a/staging")
		}(), "", "a/staging has an entry for ghcr.io/acme/todo-api, but may not be the only one; not all were looked at: more than 60 overlays have staging in their path: name"},
		"too many directories": {func() (dirs []string) {
			for i := range searchDirs {
				dirs = append(dirs, fmt.Sprintf("zz/app%03d", i))
			}
			return append(dirs, "a/staging")
		}(), "", "a/staging has an entry for ghcr.io/acme/todo-api, but may not be the only one; not all were looked at: the repository has more than 300 directories: name"},
	} {
		got, err := Search(t.Context(), overlaysAt(test.dirs...), "staging", []image.Reference{{Repository: "ghcr.io/acme/todo-api", Tag: "v2"}})
		if got != test.want || (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, ErrMisused) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %q, %v\nwant %q, %s", name, got, err, test.want, test.says)
		}
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestSearchOfSeveralImages(t *testing.T) {
	files := overlaysAt("a/staging="+entry+"- name: ghcr.io/acme/todo-web\n  newTag: v1\n", "b/staging")
	got, err := Search(t.Context(), files, "staging", []image.Reference{{Repository: "ghcr.io/acme/todo-api"}, {Repository: "ghcr.io/acme/todo-web"}})
	if err != nil || got != "a/staging" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSearchFollowsNoSymlink: neither a directory nor a kustomization that is one.
func TestSearchFollowsNoSymlink(t *testing.T) {
	files := overlaysAt("real")
	files["staging"] = &fstest.MapFile{Data: []byte("real"), Mode: fs.ModeSymlink}
	files["b/staging/kustomization.yaml"] = &fstest.MapFile{Data: []byte("../../real/kustomization.yaml"), Mode: fs.ModeSymlink}
	if got, err := Search(t.Context(), files, "staging", []image.Reference{{Repository: "ghcr.io/acme/todo-api"}}); !errors.Is(err, ErrMisused) {
		t.Errorf("%q, %v", got, err)
	}
}

// counted counts the directories that are listed, and fails for one.
type counted struct {
	fstest.MapFS
	lists atomic.Int64
	fails string
	err   error
}

func (c *counted) ReadDir(name string) ([]fs.DirEntry, error) {
	c.lists.Add(1)
	if name == c.fails {
		return nil, c.err
	}
	return c.MapFS.ReadDir(name)
}

func TestSearchOfABrokenForge(t *testing.T) {
	limited := errors.New("rate limited")
	images := []image.Reference{{Repository: "ghcr.io/acme/todo-api"}}
	if got, err := Search(t.Context(), &counted{MapFS: overlaysAt("a/staging", "b"), fails: "b", err: limited}, "staging", images); !errors.Is(err, limited) || got != "" {
		t.Errorf("a directory that cannot be listed: %q, %v", got, err)
	}
	files := oneFails{overlaysAt("a/staging"), "a/staging/kustomization.yaml", limited}
	if got, err := Search(t.Context(), files, "staging", images); !errors.Is(err, limited) || got != "" {
		t.Errorf("a kustomization that cannot be read: %q, %v", got, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got, err := Search(ended, overlaysAt("a/staging"), "staging", images); !errors.Is(err, context.Canceled) || got != "" {
		t.Errorf("after its end: %q, %v", got, err)
	}
}

func TestSearchBounds(t *testing.T) {
	var dirs []string
	for i := range 500 {
		dirs = append(dirs, fmt.Sprintf("a%d/b%d/c%d", i%10, i%50, i))
	}
	files := &counted{MapFS: overlaysAt(dirs...)}
	if _, err := Search(t.Context(), files, "staging", nil); err == nil || files.lists.Load() > searchDirs {
		t.Errorf("%d directories were listed: %v", files.lists.Load(), err)
	}
}
