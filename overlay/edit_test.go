package overlay

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

const (
	stagingFile = "apps/todo/overlays/staging/kustomization.yaml"
	stagingDir  = "apps/todo/overlays/staging"
)

var (
	oldDigest = "sha256:" + strings.Repeat("a", 64)
	newDigest = "sha256:" + strings.Repeat("b", 64)
)

// expand writes the digests where a fixture has OLD and NEW.
func expand(s string) string {
	return strings.NewReplacer("OLD", oldDigest, "NEW", newDigest).Replace(s)
}

func oneFile(content string) fstest.MapFS {
	return fstest.MapFS{stagingFile: {Data: []byte(expand(content))}}
}

// setApp is the usual promotion: the entry app to v2.
func setApp(change func(*Set)) Set {
	s := Set{Entry: Entry{Dir: stagingDir, File: stagingFile, Line: 1, Name: "app"}, To: image.Reference{Repository: "app", Tag: "v2", Digest: newDigest}}
	if change != nil {
		change(&s)
	}
	return s
}

func digestOnly(s *Set) { s.Pin = PinDigest }

// runEdit gives the file after the edit, as it was where nothing changed.
func runEdit(t *testing.T, content string, sets ...Set) (string, Edited) {
	t.Helper()
	e, err := Edit(oneFile(content), sets)
	if err != nil {
		t.Fatalf("Edit: %v\nof:\n%s", err, expand(content))
	}
	if len(e.Files) == 0 {
		return expand(content), e
	}
	again, err := Edit(fstest.MapFS{stagingFile: {Data: e.Files[0].After}}, sets)
	if err != nil || len(again.Files) > 0 || len(again.Changes) > 0 {
		t.Errorf("a second run: %v, %+v; want no change", err, again)
	}
	return string(e.Files[0].After), e
}

func TestEdit(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		set      func(*Set)
	}{
		"canonical": {
			in:   "resources:\n- ../base\nimages:\n- name: app\n  newTag: v1\n",
			want: "resources:\n- ../base\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n",
		},
		"digest alone takes the tag's place": {
			in: "images:\n- name: app\n  newTag: v1\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n",
		},
		"json": {
			in:   "{\n  \"images\": [\n    {\n      \"name\": \"app\",\n      \"newTag\": \"v1\"\n    }\n  ]\n}\n",
			want: "{\n  \"images\": [\n    {\n      \"name\": \"app\",\n      \"newTag\": \"v2\",\n      \"digest\": \"NEW\"\n    }\n  ]\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := runEdit(t, c.in, setApp(c.set))
			if diff := cmp.Diff(expand(c.want), got); diff != "" {
				t.Errorf("after the edit (-want +got):\n%s", diff)
			}
		})
	}
}

