package overlay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

// TestEditFields holds which fields are written for which pin, and what is told.
func TestEditFields(t *testing.T) {
	const mark = `# {"$imagepolicy": "flux-system:app:tag"}`
	rename := func(s *Set) { s.Rename, s.To.Repository = true, "mirror.example/acme/app" }
	untagged := func(s *Set) { s.To.Tag = "" }
	for name, c := range map[string]struct {
		in, want string
		set      func(*Set)
		warning  string // a part of the only one
	}{
		"digest alone takes the tag's place": {in: "images:\n- name: app\n  newTag: v1\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n", warning: "newTag v1 is removed"},
		"an image without a tag does the same": {in: "images:\n- name: app\n  newTag: v1\n", set: untagged,
			want: "images:\n- name: app\n  digest: NEW\n", warning: "newTag v1 is removed"},
		"digest alone keeps the comment": {in: "images:\n- name: app\n  newTag: \"v1\" # bot\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: \"NEW\" # bot\n", warning: "newTag v1 is removed"},
		"digest alone takes the Flux mark of the tag away": {in: "images:\n- name: app\n  newTag: v1 " + mark + "\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n", warning: "newTag v1 is removed"},
		"digest alone beside a digest": {in: "images:\n- name: app\n  newTag: v1\n  digest: OLD\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n", warning: "newTag v1 is removed"},
		"its comment stays as a line": {in: "images:\n- name: app\n  newTag: v1 # bot\n  digest: OLD\n", set: digestOnly,
			want: "images:\n- name: app\n  # bot\n  digest: NEW\n", warning: "newTag v1 is removed"},
		"its Flux mark goes": {in: "images:\n- name: app\n  newTag: v1 " + mark + "\n  digest: OLD\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n", warning: "newTag v1 is removed"},
		"tag last, no final newline": {in: "images:\n- name: app\n  digest: OLD\n  newTag: v1", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW", warning: "newTag v1 is removed"},
		"tag last, CRLF": {in: "images:\r\n- name: app\r\n  digest: OLD\r\n  newTag: v1\r\n", set: digestOnly,
			want: "images:\r\n- name: app\r\n  digest: NEW\r\n", warning: "newTag v1 is removed"},
		"tag beside the dash": {in: "images:\n- newTag: v1\n  name: app\n  digest: OLD\n", set: digestOnly,
			want: "images:\n- digest: NEW\n  name: app\n", warning: "newTag v1 is removed"},
		"null tag": {in: "images:\n- name: app\n  newTag:\n  digest: OLD\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n"},
		"in flow, last": {in: "images: [{name: app, digest: OLD, newTag: v1}]\n", set: digestOnly,
			want: "images: [{name: app, digest: NEW}]\n", warning: "newTag v1 is removed"},
		"in flow, first": {in: "images: [{newTag: v1, name: app, digest: OLD}]\n", set: digestOnly,
			want: "images: [{name: app, digest: NEW}]\n", warning: "newTag v1 is removed"},
		"in JSON": {in: "{\n  \"images\": [{\n    \"name\": \"app\",\n    \"newTag\": \"v1\",\n    \"digest\": \"OLD\"\n  }]\n}\n", set: digestOnly,
			want: "{\n  \"images\": [{\n    \"name\": \"app\",\n    \"digest\": \"NEW\"\n  }]\n}\n", warning: "newTag v1 is removed"},
		"in JSON, without a digest": {in: `{"images":[{"name":"app","newTag":"v1"}]}`, set: digestOnly,
			want: `{"images":[{"name":"app","digest":"NEW"}]}`, warning: "newTag v1 is removed"},
		"tag@digest becomes the digest alone": {in: "images:\n- name: app\n  newTag: v1@OLD\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n", warning: "newTag v1@OLD is removed"},
		"no tag was there": {in: "images:\n- name: app\n  newName: r.example/app\n", set: digestOnly,
			want: "images:\n- name: app\n  newName: r.example/app\n  digest: NEW\n"},
		"a digest that is none is mended": {in: "images:\n- name: app\n  digest: 0123456789\n", set: digestOnly,
			want: "images:\n- name: app\n  digest: NEW\n"},

		"same digest, other tag": {in: "images:\n- name: app\n  newTag: v1\n  digest: NEW\n",
			want: "images:\n- name: app\n  newTag: v1\n  digest: NEW\n"},
		"same digest, digest alone": {in: "images:\n- name: app\n  newTag: v1\n  digest: NEW\n", set: digestOnly,
			want: "images:\n- name: app\n  newTag: v1\n  digest: NEW\n"},
		"same digest inside newTag": {in: "images:\n- name: app\n  newTag: v1@NEW\n",
			want: "images:\n- name: app\n  newTag: v1@NEW\n"},
		"same digest, a tag that kustomize cannot read": {in: "images:\n- name: app\n  newTag: 1.10\n  digest: NEW\n",
			set:  func(s *Set) { s.To.Tag = "1.10" },
			want: "images:\n- name: app\n  newTag: \"1.10\"\n  digest: NEW\n"},
		"same tag, digest missing": {in: "images:\n- name: app\n  newTag: v2\n",
			want: "images:\n- name: app\n  newTag: v2\n  digest: NEW\n"},

		"rename writes newName": {in: "images:\n- name: app\n  newName: r.example/app\n  newTag: v1\n", set: rename,
			want: "images:\n- name: app\n  newName: mirror.example/acme/app\n  newTag: v2\n  digest: NEW\n"},
		"rename adds newName below name": {in: "images:\n- name: app\n  newTag: v1\n", set: rename,
			want: "images:\n- name: app\n  newName: mirror.example/acme/app\n  newTag: v2\n  digest: NEW\n"},
		"rename with the same digest": {in: "images:\n- name: app\n  newTag: v1\n  digest: NEW\n", set: rename,
			want: "images:\n- name: app\n  newName: mirror.example/acme/app\n  newTag: v2\n  digest: NEW\n"},
		"rename to what runs, same digest": {in: "images:\n- name: app\n  newName: mirror.example/acme/app\n  newTag: v1\n  digest: NEW\n", set: rename,
			want: "images:\n- name: app\n  newName: mirror.example/acme/app\n  newTag: v1\n  digest: NEW\n"},
		"rename to its own name writes none": {in: "images:\n- name: app\n  newTag: v1\n", set: func(s *Set) { s.Rename = true },
			want: "images:\n- name: app\n  newTag: v2\n  digest: NEW\n"},
		"rename takes a tag out of newName": {in: "images:\n- name: app\n  newName: r.example/app:v1\n", set: rename,
			want: "images:\n- name: app\n  newName: mirror.example/acme/app\n  newTag: v2\n  digest: NEW\n"},
		"rename in flow": {in: "images: [{name: app}]\n", set: rename,
			want: "images: [{name: app, newName: mirror.example/acme/app, newTag: v2, digest: NEW}]\n"},
		"rename to a host that needs quotes": {in: "images:\n- name: app\n  newTag: v1\n",
			set:  func(s *Set) { s.Rename, s.To.Repository = true, "[::1]:5000/app" },
			want: "images:\n- name: app\n  newName: \"[::1]:5000/app\"\n  newTag: v2\n  digest: NEW\n"},

		"the old tag elsewhere is told": {in: "resources:\n- https://git.example/acme/base?ref=1.4.2\n- 1.4.2-rc1\nimages:\n- name: app\n  newTag: 1.4.2\n- name: web\n  newTag: 1.4.2\ncommonLabels: {version: 1.4.2}\n",
			want:    "resources:\n- https://git.example/acme/base?ref=1.4.2\n- 1.4.2-rc1\nimages:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: web\n  newTag: 1.4.2\ncommonLabels: {version: 1.4.2}\n",
			warning: "old tag 1.4.2 also stands on line 2, 9,"},
		"tagSuffix is told": {in: "images:\n- name: app\n  tagSuffix: -alpine\n", want: "images:\n- name: app\n  newTag: v2\n  digest: NEW\n  tagSuffix: -alpine\n",
			warning: "tagSuffix -alpine has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			got, e := runEdit(t, c.in, setApp(c.set))
			if diff := cmp.Diff(expand(c.want), got); diff != "" {
				t.Errorf("after the edit (-want +got):\n%s", diff)
			}
			if told := strings.Join(e.Warnings, "\n"); c.warning == "" && told != "" || !strings.Contains(told, expand(c.warning)) {
				t.Errorf("warnings %q; want one of %q", told, c.warning)
			}
			if changed := got != expand(c.in); changed != (len(e.Changes) == 1) || changed != (len(e.Files) == 1) {
				t.Errorf("changed is %t, but files %d and changes %+v", changed, len(e.Files), e.Changes)
			}
		})
	}
}

// TestEditRecords holds what a commit message is made from.
func TestEditRecords(t *testing.T) {
	in := "images:\n- name: app\n  newName: r.example/acme/app\n  newTag: v1\n- name: web\n  newTag: w1\n  digest: OLD\n- name: app:latest\n- name: job\n  newTag: j1@OLD\n"
	named := func(name, tag string) Set {
		return setApp(func(s *Set) { s.Entry.Name, s.To.Tag = name, tag })
	}
	_, e := runEdit(t, in, named("app", "v2"), named("web", ""), named("app:latest", "v3"), named("job", "j2"),
		setApp(func(s *Set) {
			s.Entry = Entry{Dir: stagingDir, File: stagingFile, Name: "new", NewName: "r.example/new"}
		}))
	ref := func(repository, tag, digest string) image.Reference {
		return image.Reference{Repository: repository, Tag: tag, Digest: digest}
	}
	want := []Change{
		{Line: 2, Entry: "app", From: ref("r.example/acme/app", "v1", ""), To: ref("r.example/acme/app", "v2", newDigest)},
		{Line: 6, Entry: "web", From: ref("web", "w1", oldDigest), To: ref("web", "", newDigest)},
		{Line: 8, Entry: "app:latest", From: ref("app", "", ""), To: ref("app", "v3", newDigest)},
		{Line: 11, Entry: "job", From: ref("job", "j1", oldDigest), To: ref("job", "j2", newDigest)},
		{Line: 13, Entry: "new", To: ref("r.example/new", "v2", newDigest), Added: true},
	}
	for i := range want {
		want[i].Dir, want[i].File = stagingDir, stagingFile
	}
	if diff := cmp.Diff(want, e.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if len(e.Warnings) != 2 || !strings.Contains(e.Warnings[1], "the name carries a tag") {
		t.Errorf("warnings %q; want the removed tag and the tag in a name", e.Warnings)
	}
}
