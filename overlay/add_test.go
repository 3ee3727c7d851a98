package overlay

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEditAdds adds the entry new to files of every style; nothing else changes.
func TestEditAdds(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		set      func(*Set)
	}{
		"compact": {in: "images:\n- name: web\n  newTag: w1\n",
			want: "images:\n- name: web\n  newTag: w1\n- name: new\n  newTag: v2\n  digest: NEW\n"},
		"wide": {in: "resources:\n- a\nimages:\n  - name: web\n    newTag: w1\nnamePrefix: x-\n",
			want: "resources:\n- a\nimages:\n  - name: web\n    newTag: w1\n  - name: new\n    newTag: v2\n    digest: NEW\nnamePrefix: x-\n"},
		"wide by four": {in: "images:\n    - name: web\n",
			want: "images:\n    - name: web\n    - name: new\n      newTag: v2\n      digest: NEW\n"},
		"spaces behind the dash": {in: "images:\n-   name: web\n    newTag: w1\n",
			want: "images:\n-   name: web\n    newTag: w1\n-   name: new\n    newTag: v2\n    digest: NEW\n"},
		"dash on its own line": {in: "images:\n  -\n    name: web\n",
			want: "images:\n  -\n    name: web\n  -\n    name: new\n    newTag: v2\n    digest: NEW\n"},
		"aligned": {in: "images:\n- name:    web\n  newName: r/web\n  newTag:  w1\n",
			want: "images:\n- name:    web\n  newName: r/web\n  newTag:  w1\n- name:    new\n  newTag:  v2\n  digest:  NEW\n"},
		"quoted": {in: "images:\n- name: \"web\"\n  newTag: \"w1\"\n",
			want: "images:\n- name: \"web\"\n  newTag: \"w1\"\n- name: \"new\"\n  newTag: \"v2\"\n  digest: \"NEW\"\n"},
		"only the tag quoted": {in: "images:\n- name: web\n  newTag: 'w1'\n",
			want: "images:\n- name: web\n  newTag: 'w1'\n- name: new\n  newTag: 'v2'\n  digest: NEW\n"},
		"CRLF": {in: "images:\r\n- name: web\r\n", want: "images:\r\n- name: web\r\n- name: new\r\n  newTag: v2\r\n  digest: NEW\r\n"},
		"no final newline": {in: "images:\n- name: web\n  newTag: w1",
			want: "images:\n- name: web\n  newTag: w1\n- name: new\n  newTag: v2\n  digest: NEW"},
		"behind the entry's own comments": {in: "images:\n- name: web\n  newTag: w1 # bot\n  # pinned for a reason\n\n# next\nresources: []\n",
			want: "images:\n- name: web\n  newTag: w1 # bot\n  # pinned for a reason\n- name: new\n  newTag: v2\n  digest: NEW\n\n# next\nresources: []\n"},
		"behind a comment at column 0 inside the entry": {in: "images:\n- name: web\n# why\n\n  newTag: w1\n# - name: off\n  # end\nresources: []\n",
			want: "images:\n- name: web\n# why\n\n  newTag: w1\n- name: new\n  newTag: v2\n  digest: NEW\n# - name: off\n  # end\nresources: []\n"},
		"before a commented-out entry": {in: "images:\n- name: web\n# - name: off\n",
			want: "images:\n- name: web\n- name: new\n  newTag: v2\n  digest: NEW\n# - name: off\n"},
		"behind a block scalar": {in: "images:\n- name: web\n  newTag: |\n    w1\n\n    w2\nresources: []\n",
			want: "images:\n- name: web\n  newTag: |\n    w1\n\n    w2\n- name: new\n  newTag: v2\n  digest: NEW\nresources: []\n"},
		"behind an alias": {in: "x: &x {name: web}\nimages:\n  - *x\n",
			want: "x: &x {name: web}\nimages:\n  - *x\n  - name: new\n    newTag: v2\n    digest: NEW\n"},
		"flow entry in a block list": {in: "images:\n  - { name: web, newTag: w1 }\n",
			want: "images:\n  - { name: web, newTag: w1 }\n  - { name: new, newTag: v2, digest: NEW }\n"},
		"flow list": {in: "images: [{name: web, newTag: w1}]\n", want: "images: [{name: web, newTag: w1}, {name: new, newTag: v2, digest: NEW}]\n"},
		"flow list over lines": {in: "images: [\n  {name: web},\n  {name: api},\n]\n",
			want: "images: [\n  {name: web},\n  {name: api},\n  {name: new, newTag: v2, digest: NEW},\n]\n"},
		"JSON": {in: "{\n  \"images\": [\n    {\n      \"name\": \"web\",\n      \"newTag\": \"w1\"\n    }\n  ]\n}\n",
			want: "{\n  \"images\": [\n    {\n      \"name\": \"web\",\n      \"newTag\": \"w1\"\n    },\n    {\n      \"name\": \"new\",\n      \"newTag\": \"v2\",\n      \"digest\": \"NEW\"\n    }\n  ]\n}\n"},
		"JSON without blanks": {in: `{"images":[{"name":"web","newTag":"w1"}]}`,
			want: `{"images":[{"name":"web","newTag":"w1"},{"name":"new","newTag":"v2","digest":"NEW"}]}`},

		"empty list": {in: "resources:\n  - a\nimages: [] # none yet\nnamePrefix: x-\n",
			want: "resources:\n  - a\nimages: # none yet\n  - name: new\n    newTag: v2\n    digest: NEW\nnamePrefix: x-\n"},
		"empty list at the end": {in: "images: []", want: "images:\n- name: new\n  newTag: v2\n  digest: NEW"},
		"empty list with a blank": {in: "images: [ ]\r\nnamePrefix: x-\r\n",
			want: "images:\r\n- name: new\r\n  newTag: v2\r\n  digest: NEW\r\nnamePrefix: x-\r\n"},
		"null":                 {in: "images:\nresources:\n    - a\n", want: "images:\n    - name: new\n      newTag: v2\n      digest: NEW\nresources:\n    - a\n"},
		"null, with a comment": {in: "images: # none\n\nresources: []\n", want: "images: # none\n- name: new\n  newTag: v2\n  digest: NEW\n\nresources: []\n"},
		"written null":         {in: "images: null\n", want: "images:\n- name: new\n  newTag: v2\n  digest: NEW\n"},
		"tilde":                {in: "images: ~ # none\n", want: "images: # none\n- name: new\n  newTag: v2\n  digest: NEW\n"},
		"JSON, empty list":     {in: `{"images": [], "resources": ["a"]}`, want: `{"images": [{"name": "new", "newTag": "v2", "digest": "NEW"}], "resources": ["a"]}`},
		"JSON, null":           {in: `{"images":null}`, want: `{"images":[{"name": "new", "newTag": "v2", "digest": "NEW"}]}`},

		"missing": {in: "resources:\n- a\n", want: "resources:\n- a\nimages:\n- name: new\n  newTag: v2\n  digest: NEW\n"},
		"missing, wide": {in: "resources:\n  - a\nnamePrefix: x-\n",
			want: "resources:\n  - a\nnamePrefix: x-\nimages:\n  - name: new\n    newTag: v2\n    digest: NEW\n"},
		"missing, sections apart": {in: "kind: Kustomization\n\nresources:\n  - a\n\n# why\npatches:\n  - path: p.yaml\n",
			want: "kind: Kustomization\n\nresources:\n  - a\n\n# why\npatches:\n  - path: p.yaml\n\nimages:\n  - name: new\n    newTag: v2\n    digest: NEW\n"},
		"missing, no final newline": {in: "resources:\n- a", want: "resources:\n- a\nimages:\n- name: new\n  newTag: v2\n  digest: NEW"},
		"missing, CRLF":             {in: "resources:\r\n- a\r\n", want: "resources:\r\n- a\r\nimages:\r\n- name: new\r\n  newTag: v2\r\n  digest: NEW\r\n"},
		"missing, blanks at the end": {in: "resources:\n- a\n# end\n\n\n",
			want: "resources:\n- a\n# end\nimages:\n- name: new\n  newTag: v2\n  digest: NEW\n\n\n"},
		"missing, ... at the end": {in: "resources:\n- a\n...\n", want: "resources:\n- a\nimages:\n- name: new\n  newTag: v2\n  digest: NEW\n...\n"},
		"missing, --- at both ends": {in: "---\nresources:\n- a\n---\n# nothing\n",
			want: "---\nresources:\n- a\nimages:\n- name: new\n  newTag: v2\n  digest: NEW\n---\n# nothing\n"},
		"missing, behind a block": {in: "patches:\n- patch: |\n    a: b\n",
			want: "patches:\n- patch: |\n    a: b\nimages:\n- name: new\n  newTag: v2\n  digest: NEW\n"},
		"missing, behind a block that keeps its blanks": {in: "namePrefix: |+\n  x\n\n\n",
			want: "namePrefix: |+\n  x\n\n\nimages:\n- name: new\n  newTag: v2\n  digest: NEW\n"},
		"missing, a block that ends without a newline": {in: "resources:\n  - a\n\n# why\npatches:\n  - patch: |-\n      a: b",
			want: "resources:\n  - a\n\nimages:\n  - name: new\n    newTag: v2\n    digest: NEW\n\n# why\npatches:\n  - patch: |-\n      a: b"},
		"missing, such a block alone": {in: "namePrefix: |\n  x",
			want: "images:\n- name: new\n  newTag: v2\n  digest: NEW\nnamePrefix: |\n  x"},
		"missing, keys indented": {in: "  kind: Kustomization\n  resources:\n  - a\n",
			want: "  kind: Kustomization\n  resources:\n  - a\n  images:\n  - name: new\n    newTag: v2\n    digest: NEW\n"},
		"missing, JSON": {in: "{\n  \"resources\": [\n    \"a\"\n  ]\n}\n",
			want: "{\n  \"resources\": [\n    \"a\"\n  ],\n  \"images\": [{\"name\": \"new\", \"newTag\": \"v2\", \"digest\": \"NEW\"}]\n}\n"},
		"missing, JSON on one line": {in: `{"resources": ["a"]}`, want: `{"resources": ["a"], "images": [{"name": "new", "newTag": "v2", "digest": "NEW"}]}`},
		"missing, flow":             {in: "{resources: [a]}\n", want: "{resources: [a], images: [{name: new, newTag: v2, digest: NEW}]}\n"},
		"missing, empty flow":       {in: "{}\n", want: "{ images: [{name: new, newTag: v2, digest: NEW}]}\n"},

		"under a name of its own": {in: "images:\n- name: web\n", set: func(s *Set) { s.Entry.NewName = "r.example/new" },
			want: "images:\n- name: web\n- name: new\n  newName: r.example/new\n  newTag: v2\n  digest: NEW\n"},
		"renamed": {in: "images:\n- name: web\n", set: func(s *Set) { s.Rename, s.To.Repository = true, "r.example/new" },
			want: "images:\n- name: web\n- name: new\n  newName: r.example/new\n  newTag: v2\n  digest: NEW\n"},
		"digest alone": {in: "images:\n- name: web\n", set: digestOnly,
			want: "images:\n- name: web\n- name: new\n  digest: NEW\n"},
		"a number as the tag": {in: "images:\n- name: web\n  newTag: '1'\n", set: func(s *Set) { s.To.Tag = "1.10" },
			want: "images:\n- name: web\n  newTag: '1'\n- name: new\n  newTag: '1.10'\n  digest: NEW\n"},
		"an opaque name": {in: "images:\n- name: web\n", set: func(s *Set) { s.Entry.Name = "PROJECT IMAGE: #1" },
			want: "images:\n- name: web\n- name: \"PROJECT IMAGE: #1\"\n  newTag: v2\n  digest: NEW\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := setApp(func(s *Set) { s.Entry.Name, s.Entry.Line, s.Entry.File = "new", 0, "" })
			if c.set != nil {
				c.set(&s)
			}
			for _, mark := range []string{"", bom} {
				got, e := runEdit(t, mark+c.in, s)
				if diff := cmp.Diff(mark+expand(c.want), got); diff != "" {
					t.Errorf("after the edit (-want +got):\n%s", diff)
				}
				if len(e.Changes) != 1 || !e.Changes[0].Added || e.Changes[0].From.String() != "" || e.Changes[0].File != stagingFile {
					t.Errorf("changes %+v; want one that was added", e.Changes)
				}
			}
		})
	}
}

// TestEditAddsSeveral holds that several are added in the order given, beside a change.
func TestEditAddsSeveral(t *testing.T) {
	add := func(name string) Set {
		return setApp(func(s *Set) { s.Entry.Name, s.Entry.Line = name, 0 })
	}
	for in, want := range map[string]string{
		"images:\n- name: app\n  newTag: v1\n": "images:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: one\n  newTag: v2\n  digest: NEW\n- name: two\n  newTag: v2\n  digest: NEW\n",
		"images: [{name: app, newTag: v1}]\n":  "images: [{name: app, newTag: v2, digest: NEW}, {name: one, newTag: v2, digest: NEW}, {name: two, newTag: v2, digest: NEW}]\n",
		"images: [{name: app}]\n":              "images: [{name: app, newTag: v2, digest: NEW}, {name: one, newTag: v2, digest: NEW}, {name: two, newTag: v2, digest: NEW}]\n",
		"images:\n- name: app":                 "images:\n- name: app\n  newTag: v2\n  digest: NEW\n- name: one\n  newTag: v2\n  digest: NEW\n- name: two\n  newTag: v2\n  digest: NEW",
	} {
		got, e := runEdit(t, in, add("one"), setApp(nil), add("two"))
		if diff := cmp.Diff(expand(want), got); diff != "" {
			t.Errorf("after the edit (-want +got):\n%s", diff)
		}
		if len(e.Changes) != 3 || e.Changes[0].Entry != "one" || e.Changes[2].Entry != "two" {
			t.Errorf("changes %+v; want one, app, two", e.Changes)
		}
	}
	for _, in := range []string{"resources: []\n", "images: []\n", "images:\n", "{}\n", `{"images":[]}`} {
		got, _ := runEdit(t, in, add("one"), add("two"))
		if strings.Count(got, "name") != 2 {
			t.Errorf("two added to %q:\n%s", in, got)
		}
	}
}

// TestEditRefusesToAdd holds what an added entry must not be.
func TestEditRefusesToAdd(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		set  func(*Set)
		says string
	}{
		"one that is there and runs something else": {"images:\n- name: app\n  newName: r/app\n", nil, "is there already and runs r/app, not app"},
		"a pattern":                                    {"images: []\n", named("app.*"), "regular expression"},
		"a digest in its name":                         {"images: []\n", named("app@" + oldDigest), "carries a digest"},
		"to a shared list":                             {"images: &i\n- name: web\nx: *i\n", nil, "shared by an anchor"},
		"to an alias":                                  {"x: &i\n- name: web\nimages: *i\n", nil, "shared by an anchor"},
		"to an empty list with a note":                 {"images: [\n  # none\n]\n", nil, "comment inside"},
		"behind a comment in flow":                     {"images: [{name: web, # c\n  newTag: w1 # d\n}]\n", nil, "cannot be told"},
		"behind a literal that ends without a newline": {"images:\n- name: web\n  newTag: |\n    w1", nil, "another entry"},
		"a brace behind a comment":                     {"{resources: [a] # c\n}\n", nil, "would leave 0 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			s := setApp(func(s *Set) { s.Entry.Line = 0 })
			if c.set != nil {
				c.set(&s)
			}
			e, err := Edit(oneFile(c.in), []Set{s})
			if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), c.says) || len(e.Files) > 0 {
				t.Errorf("Edit: %v, %d files; want ErrUnsafe that says %q", err, len(e.Files), c.says)
			}
		})
	}
}

// TestEditWhereAnotherHasAdded holds that an entry which came in between, and
// runs the same repository, is edited and not added again.
func TestEditWhereAnotherHasAdded(t *testing.T) {
	got, e := runEdit(t, "images:\n- name: app\n  newTag: v1\n", setApp(func(s *Set) { s.Entry.Line = 0 }))
	if want := expand("images:\n- name: app\n  newTag: v2\n  digest: NEW\n"); got != want || e.Changes[0].Added {
		t.Errorf("got %+v\n%s", e.Changes, got)
	}
	if _, err := Edit(oneFile("images:\n- name: web\n"), []Set{setApp(nil)}); !errors.Is(err, ErrNoEntry) {
		t.Errorf("an entry that went away: %v; want ErrNoEntry", err)
	}
}
