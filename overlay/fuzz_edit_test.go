package overlay

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"tagboat/image"
)

// FuzzEdit holds the law of the edit on any file: decoded, it differs only in
// the target; bytes outside the target's lines are equal; a second run changes
// nothing. What is refused changes nothing at all.
func FuzzEdit(f *testing.F) {
	for _, seed := range []string{
		"images:\n- name: app\n  newTag: v1\n",
		"# é\r\nimages:\r\n  - name: app\r\n    newTag: v1 # c\r\n    digest: " + oldDigest + "\r\n",
		bom + "---\nimages: [{name: app, newTag: 'v1'}, {name: web, newTag: 1.10}]\n...\n",
		`{"images":[{"name":"app","newTag":"v1"}]}`,
		"{\n  \"images\": [\n    {\n      \"name\": \"app\",\n      \"newTag\": \"v1\"\n    }\n  ]\n}\n",
		"images:\n-\n  newTag: v1@" + oldDigest + "\n  name: app\nconfigMapGenerator:\n- literals:\n  - |+\n    a\n\n\n",
		"x: &x {newTag: v1}\nimages:\n- <<: *x\n  name: app\n- *x\n",
		"images:\n- name: app\n  newTag: &t v1\n- name: web\n  newTag: *t\n",
		"images: [] # none\nresources:\n    - a\n", "images:\nresources: [a]\n", "resources:\n  - a\n\npatches:\n  - path: p\n", "{}",
		"images:\n- ? name\n  : app\n  ? newTag\n  : v1\n", "images:\n- name:    app\n  newName: r/app\n  newTag:\n", "images:\n- name: app\n  newTag: |\n    v1\n",
		"images:\n- {name: app, # c\n   newTag: v1}\n", "a: &a\n- *a\nimages: *a\n", "x: &x {<<: *x}\nimages:\n- *x\n", "images:\n- name: !!str app\n  newTag: ! 1\n",
	} {
		for pin := range uint8(4) {
			f.Add([]byte(seed), uint8(0), pin)
		}
		f.Add([]byte(seed), uint8(1), uint8(8))
	}
	f.Fuzz(func(t *testing.T, raw []byte, which, how uint8) {
		fsys := fstest.MapFS{stagingFile: {Data: raw}}
		entries, err := Entries(fsys, stagingDir)
		if err != nil {
			return
		}
		s := fuzzedSet(entries, which, how)
		edited, err := Edit(fsys, []Set{s})
		if err != nil {
			if len(edited.Files)+len(edited.Changes) > 0 {
				t.Fatalf("refused (%v), but %+v", err, edited)
			}
			return
		}
		if len(edited.Files) == 0 {
			return
		}
		at := len(entries) // an added one comes last
		if s.Entry.Line > 0 {
			at = int(which) % len(entries)
		}
		checkLaw(t, raw, edited.Files[0].After, s, at)
	})
}

// FuzzEditObjects holds the same law on any file with objects; every other
// document is a part of what must not differ.
func FuzzEditObjects(f *testing.F) {
	const flux, argo = fluxHead + "  images:\n  - name: app\n    newTag: v1\n", argoHead + "      images:\n      - app=r.example/app:v1@" + oldDigest + " # c\n      - 'web:v1'\n"
	for _, seed := range []string{
		flux, argo, "# é\n---\n" + flux + "---\n" + argo + "...\n", bom + crlf(flux+"status: {a: b}\n"), setHead + "          images: [app:v1, \"{{image}}\"]\n", argoSources("app:v1", "app"),
		fluxHead, fluxHead + "  x: |+\n    a\n\n", fluxHead + "  images: []\n", argoHead + "      images:\n", argoHead + "      namePrefix: a\n  project: x\n", fluxHead + "  dependsOn:\n    - name: a\n\n# c\n",
		`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"a"},"spec":{"source":{"kustomize":{"images":["app:v1"]}}}}`, "x: &x {images: []}\n" + fluxHead + "  <<: *x\n", strings.Replace(argo, "app=", "&a app=", 1) + "x: *a\n",
	} {
		for how := range uint8(4) {
			f.Add([]byte(seed), uint8(0), how)
		}
		f.Add([]byte(seed), uint8(1), uint8(8))
	}
	f.Fuzz(func(t *testing.T, raw []byte, which, how uint8) {
		fsys := fstest.MapFS{objectsFile: {Data: raw}}
		entries, err := Entries(fsys, objectsFile)
		if err != nil {
			return
		}
		s := fuzzedSet(entries, which, how)
		if s.Entry.Line == 0 {
			s.Entry.Dir = objectsFile
		}
		edited, err := Edit(fsys, []Set{s})
		if err != nil || len(edited.Files) == 0 {
			if len(edited.Files)+len(edited.Changes) > 0 {
				t.Fatalf("refused (%v), but %+v", err, edited)
			}
			return
		}
		checkObjectLaw(t, raw, edited, s)
	})
}

// checkObjectLaw looks at the entries and at the text around the changed lines.
func checkObjectLaw(t *testing.T, before []byte, e Edited, s Set) {
	t.Helper()
	after := e.Files[0].After
	again, err := Edit(fstest.MapFS{objectsFile: {Data: after}}, []Set{s})
	if err != nil || len(again.Files) > 0 {
		t.Fatalf("a second run: %v, %d files\nbefore: %q\nafter: %q", err, len(again.Files), before, after)
	}
	was, errWas := Entries(fstest.MapFS{objectsFile: {Data: before}}, objectsFile)
	is, errIs := Entries(fstest.MapFS{objectsFile: {Data: after}}, objectsFile)
	if errWas != nil || errIs != nil {
		t.Fatalf("Entries: %v, %v", errWas, errIs)
	}
	other := func(entries []Entry) (rest []Entry) {
		for _, e := range entries {
			if e.Name != s.Entry.Name {
				e.Line = 0
				rest = append(rest, e)
			}
		}
		return rest
	}
	if !slices.Equal(other(was), other(is)) {
		t.Fatalf("other entries differ\nbefore: %q\nafter: %q", before, after)
	}
	for _, entry := range is {
		if entry.Name == s.Entry.Name && entry.Digest != newDigest {
			t.Fatalf("%+v is not pinned\nbefore: %q\nafter: %q", entry, before, after)
		}
	}
	if !bytes.Equal(unpinned(before, s, slices.Concat(was, is)), unpinned(after, s, slices.Concat(was, is))) {
		t.Fatalf("the text around the entry differs\nbefore: %q\nafter: %q", before, after)
	}
}

// unpinned is a text without the lines that may be the entry's: that have its name,
// or its tag or digest before or after, or a key of entries or of their list.
func unpinned(raw []byte, s Set, entries []Entry) []byte {
	words := []string{newDigest, "newTag", "digest", "newName", "images", s.Entry.Name, quoteAs(s.Entry.Name, '\'', 0), strings.Trim(quoteAs(s.Entry.Name, '"', 0), `"`)}
	for _, e := range entries {
		if e.Name == s.Entry.Name {
			words = append(words, e.Tag, e.Digest)
		}
	}
	var out []byte
	for line := range bytes.Lines(raw) {
		if len(bytes.Trim(line, " \t\r\n-?:[]{},")) > 0 && !slices.ContainsFunc(words, func(w string) bool { return w != "" && bytes.Contains(line, []byte(w)) }) {
			out = append(out, bytes.TrimRight(line, "\r\n")...)
			out = append(out, '\n')
		}
	}
	return out
}

// fuzzedSet takes an entry, or adds one, and each pin, tag and newName in turn.
func fuzzedSet(entries []Entry, which, how uint8) Set {
	s := Set{To: image.Reference{Repository: "r.example/acme/app", Tag: "v2", Digest: newDigest}}
	s.Entry = Entry{Dir: stagingDir, Name: "added by fuzz"}
	if len(entries) > 0 && how&8 == 0 {
		s.Entry = entries[int(which)%len(entries)]
	}
	if how&1 != 0 {
		s.Pin = PinDigest
	}
	s.Rename = how&2 != 0
	if how&4 != 0 {
		s.To.Tag = "1.10"
	}
	return s
}

func checkLaw(t *testing.T, before, after []byte, s Set, at int) {
	t.Helper()
	again, err := Edit(fstest.MapFS{stagingFile: {Data: after}}, []Set{s})
	if err != nil || len(again.Files) > 0 {
		t.Fatalf("a second run: %v, %d files\nbefore: %q\nafter: %q", err, len(again.Files), before, after)
	}
	was, is := generic(before), generic(after)
	if was != nil && !reflect.DeepEqual(without(was, at), without(is, at)) {
		t.Fatalf("decoded, more than the target differs\nbefore: %q\nafter: %q", before, after)
	}
	if s.Entry.Line == 0 {
		return
	}
	old, now := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	if head < s.Entry.Line-1 {
		t.Fatalf("line %d changed, the entry starts on %d\nbefore: %q\nafter: %q", head+1, s.Entry.Line, before, after)
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	changed := strings.Join(old[head:len(old)-tail], "")
	if strings.Count(changed, "\n") > 60 {
		t.Fatalf("%q is more than an entry's lines\nbefore: %q\nafter: %q", changed, before, after)
	}
}

// generic decodes by kyaml; nil where it is no map of strings.
func generic(raw []byte) map[string]any {
	var m map[string]any
	if err := yaml.Unmarshal(raw, &m); err != nil {
		return nil
	}
	return m
}

// without drops the images entry at a place, and an images list that is then empty.
func without(m map[string]any, at int) map[string]any {
	rest := map[string]any{}
	for key, value := range m {
		if !strings.EqualFold(key, "images") {
			rest[key] = value
			continue
		}
		list, _ := value.([]any)
		if at < len(list) {
			list = slices.Delete(slices.Clone(list), at, at+1)
		}
		if len(list) > 0 {
			rest["images"] = list
		}
	}
	return rest
}
