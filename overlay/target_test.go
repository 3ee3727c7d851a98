package overlay

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

const objectsFile = "clusters/staging/todo.yaml"

// The objects' beginnings: images go below them.
const (
	fluxHead = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: todo\nspec:\n  path: ./apps/todo\n"
	argoHead = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: todo\nspec:\n  source:\n    path: apps/todo\n    kustomize:\n"
	setHead  = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata:\n  name: todo\nspec:\n  generators:\n  - list:\n      elements: [{cluster: eu}]\n  template:\n    spec:\n      source:\n        path: apps/todo\n        kustomize:\n"
)

func objectFS(content string) fstest.MapFS {
	return fstest.MapFS{objectsFile: {Data: []byte(expand(content))}}
}

// setIn promotes the entry app of a target to v2.
func setIn(target, name string, change func(*Set)) Set {
	s := Set{Entry: Entry{Dir: target, File: objectsFile, Line: 1, Name: name}, To: image.Reference{Repository: "ghcr.io/acme/app", Tag: "v2", Digest: newDigest}}
	if change != nil {
		change(&s)
	}
	return s
}

func TestObjectEntries(t *testing.T) {
	const source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: todo\nspec:\n  url: https://git.example/acme/todo\n"
	second := strings.Replace(fluxHead, "name: todo", "name: web", 1)
	entry := func(target string, line int, name, newName, tag, digest string) Entry {
		return Entry{Dir: target, File: objectsFile, Line: line, Name: name, NewName: newName, Tag: tag, Digest: expand(digest)}
	}
	one := "  images:\n  - name: app\n    newTag: v1\n"
	for name, c := range map[string]struct {
		in     string
		target string // "" is the file
		want   []Entry
	}{
		"Flux":                        {fluxHead + one, "", []Entry{entry(objectsFile, 8, "app", "", "v1", "")}},
		"Flux, by name":               {fluxHead + one, objectsFile + "#todo", []Entry{entry(objectsFile+"#todo", 8, "app", "", "v1", "")}},
		"Flux behind its source":      {source + "---\n" + fluxHead + one, "", []Entry{entry(objectsFile, 15, "app", "", "v1", "")}},
		"the only one that has any":   {second + "---\n" + fluxHead + one, "", []Entry{entry(objectsFile, 15, "app", "", "v1", "")}},
		"the other, by name":          {second + one + "---\n" + fluxHead + one, objectsFile + "#web", []Entry{entry(objectsFile+"#web", 8, "app", "", "v1", "")}},
		"Flux without images":         {fluxHead, "", nil},
		"a comment's document before": {"# flux\n---\n" + fluxHead + one, "", []Entry{entry(objectsFile, 10, "app", "", "v1", "")}},
		"Argo CD": {argoHead + "      images:\n      - app:v1\n      - web=ghcr.io/acme/web:v3@OLD\n      - localhost:5000/db@OLD\n      - bare\n", "", []Entry{
			entry(objectsFile, 10, "app", "", "v1", ""), entry(objectsFile, 11, "web", "ghcr.io/acme/web", "v3", "OLD"),
			entry(objectsFile, 12, "localhost:5000/db", "", "", "OLD"), entry(objectsFile, 13, "bare", "", "", "")}},
		"ApplicationSet": {setHead + "          images: ['app:v1', \"{{image}}\", {{image}}]\n", "", []Entry{
			entry(objectsFile, 14, "app", "", "v1", ""), entry(objectsFile, 14, "{{image}}", "", "", ""), entry(objectsFile, 14, "{{image}}]", "", "", "")}},
		"sources": {"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: todo}\nspec:\n  sources:\n  - ref: values\n  - path: a\n    kustomize:\n      images: [app:v1]\n  - path: b\n    kustomize: {images: [web:v1]}\n", "",
			[]Entry{entry(objectsFile, 9, "app", "", "v1", ""), entry(objectsFile, 11, "web", "", "v1", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.target == "" {
				c.target = objectsFile
			}
			got, err := Entries(objectFS(c.in), c.target)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestObjectsFound holds what is said where no object is meant.
func TestObjectsFound(t *testing.T) {
	one := "  images:\n  - name: app\n"
	second := strings.Replace(fluxHead, "name: todo", "name: web", 1)
	app := func(source string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: todo\nspec:\n  source:\n    " + source + "\n"
	}
	for name, c := range map[string]struct {
		in     string
		target string
		is     error
		says   []string
	}{
		"several with images":   {fluxHead + one + "---\n" + second + one, "", ErrNoKustomization, []string{"several objects with images", objectsFile + "#todo (Kustomization)", objectsFile + "#web"}},
		"several without":       {fluxHead + "---\n" + second, "", ErrNoKustomization, []string{"several objects", "#web"}},
		"another name":          {fluxHead + one, objectsFile + "#wbe", ErrNoKustomization, []string{"no object named wbe", "#todo"}},
		"one name twice":        {fluxHead + one + "---\n" + argoHead + "      images: []\n", objectsFile + "#todo", ErrNoKustomization, []string{"2 objects named todo"}},
		"no such object":        {"kind: Deployment\n", "", ErrNoKustomization, []string{"no Flux Kustomization", "give its directory"}},
		"no such file":          {fluxHead, "clusters/staging/web.yaml", ErrNoKustomization, []string{"no file clusters/staging/web.yaml"}},
		"Helm":                  {app("helm: {values: x}"), "", ErrNoKustomization, []string{"Helm chart", "Application todo"}},
		"a chart":               {app("chart: todo"), "", ErrNoKustomization, []string{"Helm chart"}},
		"a plugin":              {app("plugin: {name: x}"), "", ErrNoKustomization, []string{"plugin"}},
		"plain manifests":       {app("directory: {recurse: true}"), "", ErrNoKustomization, []string{"plain manifests"}},
		"nothing of kustomize":  {app("path: a"), "", ErrNoKustomization, []string{"images: [] below its source"}},
		"a Helm template":       {fluxHead + "  {{- if x }}\n" + one, "", ErrUnsafe, []string{"template placeholder {{- if x }}"}},
		"another broken one":    {fluxHead + one + "---\na: [\n", "", ErrUnsafe, []string{"not YAML"}},
		"spec as an alias":      {"x: &s {images: []}\n" + strings.Split(fluxHead, "spec:")[0] + "spec: *s\n", "", ErrUnsafe, []string{"alias (*s)"}},
		"spec by a merge key":   {"x: &s {images: []}\n" + strings.Split(fluxHead, "spec:")[0] + "spec:\n  <<: *s\n", "", ErrUnsafe, []string{"merge key"}},
		"spec twice":            {fluxHead + "spec:\n  prune: true\n", "", ErrUnsafe, []string{"spec stands already on line 5"}},
		"images twice":          {fluxHead + one + one, "", ErrUnsafe, []string{"images stands already"}},
		"no spec":               {strings.Split(fluxHead, "spec:")[0], "", ErrUnsafe, []string{"has no spec"}},
		"a set without":         {"apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\nspec: {generators: []}\n", "", ErrUnsafe, []string{"no spec.template.spec"}},
		"images as a map":       {fluxHead + "  images: {a: b}\n", "", ErrUnsafe, []string{"images is not a list"}},
		"leaves the repository": {fluxHead, "../todo.yaml", ErrUnsafe, []string{"leaves the repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.target == "" {
				c.target = objectsFile
			}
			got, err := Entries(objectFS(c.in), c.target)
			if !errors.Is(err, c.is) || len(got) > 0 {
				t.Fatalf("Entries: %+v, %v; want %v", got, err, c.is)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q; want it to say %q", err, s)
				}
			}
		})
	}
	link := fstest.MapFS{objectsFile: {Data: []byte("real"), Mode: fs.ModeSymlink}, "clusters/staging/real": {Data: []byte(fluxHead)}}
	if _, err := Entries(link, objectsFile); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a link: %v", err)
	}
	dir := fstest.MapFS{"a.yaml/kustomization.yaml": {Data: []byte("images: [{name: app}]\n")}}
	if got, err := Entries(dir, "a.yaml"); err != nil || len(got) != 1 {
		t.Errorf("a directory named as a file: %+v, %v", got, err)
	}
}

// TestObjectInOneRound holds the budget: what the file is, and its bytes, at the
// same time.
func TestObjectInOneRound(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	fsys := statFS{&asked{MapFS: objectFS(fluxHead), onRead: func() { both.Done(); both.Wait() }}}
	if _, err := Entries(fsys, objectsFile); err != nil {
		t.Fatal(err)
	}
	slices.Sort(fsys.calls)
	if diff := cmp.Diff([]string{"Lstat " + objectsFile, "ReadFile " + objectsFile}, fsys.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	limit := errors.New("429 too many requests")
	for _, call := range []string{"Lstat " + objectsFile, "ReadFile " + objectsFile} {
		fsys := statFS{&asked{MapFS: objectFS(fluxHead), fail: map[string]error{call: limit}}}
		if _, err := Entries(fsys, objectsFile); !errors.Is(err, limit) || errors.Is(err, ErrNoKustomization) {
			t.Errorf("%s fails: %v; want the failure and nothing else", call, err)
		}
	}
}

type statFS struct{ *asked }

func (s statFS) ReadLink(name string) (string, error) { return s.MapFS.ReadLink(name) }

func (s statFS) Lstat(name string) (fs.FileInfo, error) {
	if s.onRead != nil {
		s.onRead()
	}
	if err := s.note("Lstat " + name); err != nil {
		return nil, err
	}
	return s.MapFS.Lstat(name)
}
