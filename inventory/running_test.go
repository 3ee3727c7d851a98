package inventory_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"tagboat/config"
	"tagboat/inventory"
	"tagboat/overlay"
)

func TestRunning(t *testing.T) {
	two := pinned("a") + "- name: web\n  newName: " + repo + "\n  newTag: v2\n  digest: " + digest("b") + "\n"
	for name, c := range map[string]struct {
		files map[string]string // by directory
		names []string          // of entries that are meant; none: the repository
		want  string
		err   error
		says  string
	}{
		"one":                      {files: map[string]string{"x": pinned("a")}, want: repo + ":v-a@" + digest("a")},
		"two that agree":           {files: map[string]string{"x": pinned("a"), "y": tagged("a", "other")}, want: repo + ":v-a@" + digest("a")},
		"two that disagree":        {files: map[string]string{"x": pinned("a"), "y": pinned("b")}, err: inventory.ErrDisagree, says: "x/kustomization.yaml:2 " + repo + ":v-a@" + digest("a") + "; y/kustomization.yaml:2 " + repo + ":v-b@"},
		"two entries that differ":  {files: map[string]string{"x": two}, names: []string{"web"}, want: repo + ":v2@" + digest("b")},
		"an image of two entries":  {files: map[string]string{"x": pinned("a") + strings.TrimPrefix(pinned("b"), "images:\n")}, err: inventory.ErrDisagree},
		"a tag alone":              {files: map[string]string{"x": "images:\n- name: " + repo + "\n  newTag: v1\n"}, err: inventory.ErrUnpinned, says: "x/kustomization.yaml:2 runs " + repo + ":v1"},
		"a tag alone, elsewhere":   {files: map[string]string{"x": pinned("a"), "y": "images:\n- name: " + repo + "\n  newTag: v1\n"}, err: inventory.ErrUnpinned, says: "y/kustomization.yaml:2 runs " + repo + ":v1"},
		"neither tag nor digest":   {files: map[string]string{"x": "images:\n- name: " + repo + "\n"}, err: inventory.ErrUnpinned},
		"no entry":                 {files: map[string]string{"x": pinned("a"), "y": "namePrefix: a-\n"}, err: overlay.ErrNoEntry},
		"no directory":             {files: map[string]string{"x": pinned("a"), "y": ""}, err: overlay.ErrNoKustomization},
		"no directories":           {err: inventory.ErrDisagree, says: "no directory"},
		"several images, in order": {files: map[string]string{"x": two}, names: []string{"web", repo}, want: repo + ":v2@" + digest("b") + " " + repo + ":v-a@" + digest("a")},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			var dirs []string
			for _, dir := range []string{"x", "y"} {
				content, ok := c.files[dir]
				if !ok {
					continue
				}
				dirs = append(dirs, dir)
				if content != "" {
					files[dir+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte(content)}
				}
			}
			images := []config.Image{{Repository: repo}}
			if c.names != nil {
				images = nil
				for _, n := range c.names {
					images = append(images, config.Image{Repository: repo, Name: n})
				}
			}
			got, err := inventory.Running(files, dirs, images)
			var text []string
			for _, ref := range got {
				text = append(text, ref.String())
			}
			if strings.Join(text, " ") != c.want || !errors.Is(err, c.err) {
				t.Fatalf("%v, %v; want %q, %v", text, err, c.want, c.err)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v\ndoes not say %q", err, c.says)
			}
		})
	}
}
