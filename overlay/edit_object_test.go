package overlay

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tagboat/image"
)

// objectCase is an edit of the entry app, of which the shown bytes change.
type objectCase struct {
	in       string
	target   string // "" is the file
	name     string // "" is app
	set      func(*Set)
	from, to string
}

func objectCases() map[string]objectCase {
	const flux = fluxHead + "  images:\n  - name: app\n    newTag: v1\n"
	const app = argoHead + "      images:\n      - app:v1\n"
	other := strings.Replace(fluxHead, "name: todo", "name: web", 1) + "  images:\n  - name: app\n    newTag: v0\n"
	const status = "status:\n  conditions: []\n"
	rename := func(s *Set) { s.Rename = true }
	add := func(s *Set) { s.Entry.Line, s.Entry.Name, s.To.Repository = 0, "ghcr.io/acme/new", "ghcr.io/acme/new" }
	addNamed := func(s *Set) { s.Entry.Line, s.Entry.Name, s.Entry.NewName = 0, "new", "ghcr.io/acme/new" }
	return map[string]objectCase{
		"Flux":                            {in: flux, from: "newTag: v1", to: "newTag: v2\n    digest: NEW"},
		"Flux, by name":                   {in: flux, target: objectsFile + "#todo", from: "newTag: v1", to: "newTag: v2\n    digest: NEW"},
		"Flux, among others":              {in: "# clusters\n" + other + "---\n" + flux + "---\nkind: ConfigMap\ndata: {tag: 'v1 é'}\n---\n# end\n", target: objectsFile + "#todo", from: "newTag: v1", to: "newTag: v2\n    digest: NEW"},
		"Flux, the first":                 {in: flux + status + "---\n" + other, target: objectsFile + "#todo", from: "newTag: v1", to: "newTag: v2\n    digest: NEW"},
		"Flux, digest alone":              {in: flux, set: digestOnly, from: "newTag: v1", to: "digest: NEW"},
		"Flux, keys behind images":        {in: flux + "  prune: true\n  patches:\n  - patch: |\n      - op: test # v1\n", from: "newTag: v1\n", to: "newTag: v2\n    digest: NEW\n"},
		"Flux, a mark":                    {in: strings.Replace(flux, "v1\n  path", "v1\n  path", 1) + "    # {\"$imagepolicy\": \"x\"}\n", from: "newTag: v1", to: "newTag: v2\n    digest: NEW"},
		"Flux, in braces":                 {in: fluxHead + "  images: [{name: app, newTag: v1}]\n", from: "newTag: v1}", to: "newTag: v2, digest: NEW}"},
		"Flux, in JSON":                   {in: `{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "todo"}, "spec": {"images": [{"name": "app", "newTag": "v1"}]}}`, from: `"v1"}`, to: `"v2", "digest": "NEW"}`},
		"Flux, another name":              {in: flux, set: rename, from: "newTag: v1", to: "newName: ghcr.io/acme/app\n    newTag: v2\n    digest: NEW"},
		"Flux, one more":                  {in: flux + status, set: add, from: "newTag: v1\n", to: "newTag: v1\n  - name: ghcr.io/acme/new\n    newTag: v2\n    digest: NEW\n"},
		"Flux, the first of all":          {in: fluxHead + "  prune: true\n" + status, set: add, from: "prune: true\n", to: "prune: true\n  images:\n  - name: ghcr.io/acme/new\n    newTag: v2\n    digest: NEW\n"},
		"Flux, the first, as other lists": {in: fluxHead + "  dependsOn:\n    - name: db\n  prune: true\n", set: add, from: "prune: true\n", to: "prune: true\n  images:\n    - name: ghcr.io/acme/new\n      newTag: v2\n      digest: NEW\n"},
		"Flux, the first, above a block":  {in: fluxHead + "  x: |\n    a\n\n" + status, set: add, from: "  x: |\n", to: "  images:\n  - name: ghcr.io/acme/new\n    newTag: v2\n    digest: NEW\n  x: |\n"},
		"Flux, the first of []":           {in: fluxHead + "  images: []\n  prune: true\n", set: add, from: "images: []", to: "images:\n  - name: ghcr.io/acme/new\n    newTag: v2\n    digest: NEW"},
		"Argo CD":                         {in: app, from: "app:v1", to: "app:v2@NEW"},
		"Argo CD, its name kept":          {in: argoHead + "      images:\n        - app=ghcr.io/acme/app:v1@OLD # todo\n        - web:v1\n", from: "app:v1@OLD", to: "app:v2@NEW"},
		"Argo CD, digest alone":           {in: argoHead + "      images: ['app=localhost:5000/app:v1']\n", set: digestOnly, from: "app:v1", to: "app@NEW"},
		"Argo CD, from a digest":          {in: argoHead + "      images:\n      - \"app@OLD\"\n", from: "app@OLD", to: "app:v2@NEW"},
		"Argo CD, without a tag":          {in: argoHead + "      images:\n      - app=ghcr.io/acme/app\n", from: "acme/app", to: "acme/app:v2@NEW"},
		"Argo CD, another name":           {in: app, set: rename, from: "app:v1", to: "app=ghcr.io/acme/app:v2@NEW"},
		"Argo CD, another one's":          {in: argoHead + "      images:\n      - {{image}}\n      - app:v1\n", from: "app:v1", to: "app:v2@NEW"},
		"Argo CD, one more":               {in: argoHead + "      images:\n      - 'app:v1'\n    targetRevision: main\n", set: addNamed, from: "'app:v1'\n", to: "'app:v1'\n      - 'new=ghcr.io/acme/new:v2@NEW'\n"},
		"Argo CD, one more in []":         {in: argoHead + "      images: [app:v1]\n", set: add, from: "v1]", to: "v1, ghcr.io/acme/new:v2@NEW]"},
		"Argo CD, the first of all":       {in: argoHead + "      namePrefix: a-\n  project: todo\n", set: add, from: "namePrefix: a-\n", to: "namePrefix: a-\n      images:\n      - ghcr.io/acme/new:v2@NEW\n"},
		"Argo CD, the first of []":        {in: argoHead + "      images: []\n", set: add, from: " []\n", to: "\n      - ghcr.io/acme/new:v2@NEW\n"},
		"ApplicationSet":                  {in: setHead + "          images:\n          - app:v1\n", from: "app:v1", to: "app:v2@NEW"},
		"one of two sources":              {in: argoSources("web:v1", "app:v1"), from: "app:v1", to: "app:v2@NEW"},
		"JSON's empty list":               {in: `{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "todo"}, "spec": {"source": {"kustomize": {"images": []}}}}`, set: add, from: "[]", to: `["ghcr.io/acme/new:v2@NEW"]`},
	}
}

func argoSources(first, second string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: todo}\nspec:\n  sources:\n  - path: a\n    kustomize:\n      images:\n      - " + first +
		"\n  - path: b\n    kustomize:\n      images:\n      - " + second + "\n"
}

// TestEditObjects edits one entry of an object in a file, in each variant, and
// demands that nothing but the shown bytes changes.
func TestEditObjects(t *testing.T) {
	for name, c := range objectCases() {
		t.Run(name, func(t *testing.T) {
			if c.target == "" {
				c.target = objectsFile
			}
			if c.name == "" {
				c.name = "app"
			}
			if n := strings.Count(c.in, c.from); n != 1 {
				t.Fatalf("the fixture has %q %d times", c.from, n)
			}
			for _, v := range variants() {
				in, want := v.of(expand(c.in)), v.of(expand(strings.Replace(c.in, c.from, c.to, 1)))
				s := setIn(c.target, c.name, c.set)
				e, err := Edit(fstest.MapFS{objectsFile: {Data: []byte(in)}}, []Set{s})
				if err != nil {
					t.Fatalf("%s: Edit: %v", v.name, err)
				}
				if len(e.Files) != 1 || len(e.Changes) != 1 {
					t.Fatalf("%s: %+v; want one change", v.name, e)
				}
				if diff := cmp.Diff(want, string(e.Files[0].After)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", v.name, diff)
				}
				line := strings.Split(string(e.Files[0].After), "\n")[e.Changes[0].Line-1]
				if e.Changes[0].Dir != c.target || e.Changes[0].File != objectsFile || !strings.Contains(line, s.Entry.Name) {
					t.Errorf("%s: change %+v; on its line is %q", v.name, e.Changes[0], line)
				}
				again, err := Edit(fstest.MapFS{objectsFile: {Data: e.Files[0].After}}, []Set{s})
				if err != nil || len(again.Files)+len(again.Changes) > 0 {
					t.Errorf("%s: a second run: %v, %+v; want no change", v.name, err, again)
				}
			}
		})
	}
}

// TestEditObjectsTogether holds that the objects of one file are edited in one
// go, and that an entry of one name in two sources is both.
func TestEditObjectsTogether(t *testing.T) {
	web := strings.Replace(fluxHead, "name: todo", "name: web", 1)
	in := fluxHead + "  images:\n  - name: app\n    newTag: v1\n---\n" + web + "  images:\n  - name: app\n    newTag: v0\n"
	e, err := Edit(objectFS(in), []Set{setIn(objectsFile+"#todo", "app", nil), setIn(objectsFile+"#web", "app", nil)})
	if err != nil || len(e.Files) != 1 || len(e.Changes) != 2 {
		t.Fatalf("Edit: %+v, %v", e, err)
	}
	want := strings.NewReplacer("newTag: v1", "newTag: v2\n    digest: NEW", "newTag: v0", "newTag: v2\n    digest: NEW").Replace(in)
	if diff := cmp.Diff(expand(want), string(e.Files[0].After)); diff != "" {
		t.Error(diff)
	}
	if e.Changes[0].From.Tag != "v1" || e.Changes[1].From.Tag != "v0" || e.Changes[1].Dir != objectsFile+"#web" {
		t.Errorf("changes %+v", e.Changes)
	}

	e, err = Edit(objectFS(argoSources("app:v1", "app:v0")), []Set{setIn(objectsFile, "app", nil), setIn(objectsFile, "app", nil)})
	if err != nil || len(e.Changes) != 2 || strings.Count(string(e.Files[0].After), "app:v2@"+newDigest) != 2 {
		t.Errorf("two sources: %+v, %v", e, err)
	}

	e, err = Edit(objectFS(fluxHead+"  images:\n  - name: app\n    newTag: v1\n"), []Set{setIn(objectsFile+"#todo", "app", nil), setIn(objectsFile, "app", nil)})
	if err != nil || len(e.Changes) != 1 {
		t.Errorf("one list under two names: %+v, %v", e, err)
	}
}

// TestEditFromRecord holds that an edit can be made again from what a commit
// message records: the file, the entry's name, the image.
func TestEditFromRecord(t *testing.T) {
	s := Set{Entry: Entry{File: objectsFile, Name: "app"}, To: image.Reference{Repository: "app", Tag: "v2", Digest: newDigest}}
	e, err := Edit(objectFS(argoHead+"      images: [app:v1]\n"), []Set{s})
	if err != nil || len(e.Changes) != 1 || e.Changes[0].File != objectsFile {
		t.Errorf("Edit: %+v, %v", e, err)
	}
	for _, c := range []struct {
		target, file string
		want         bool
	}{
		{objectsFile, objectsFile, true}, {objectsFile + "#todo", objectsFile, true}, {"a/b", "a/b/kustomization.yaml", true},
		{"a/b", "a/c/kustomization.yaml", false}, {objectsFile, "clusters/staging/web.yaml", false}, {".", "kustomization.yaml", true},
	} {
		if got := Holds(c.target, c.file); got != c.want {
			t.Errorf("Holds(%s, %s) = %v", c.target, c.file, got)
		}
	}
}

func TestEditRefusesObjects(t *testing.T) {
	add := func(s *Set) { s.Entry.Line, s.Entry.Name, s.To.Repository = 0, "new", "new" }
	list := argoHead + "      images:\n"
	for name, c := range map[string]struct {
		in   string
		name string
		set  func(*Set)
		is   error
		says []string
	}{
		"a placeholder":         {in: list + "      - 'app:{{tag}}'\n", is: ErrUnsafe, says: []string{":10:", "placeholder {{tag}}"}},
		"a generator's":         {in: setHead + "          images:\n          - app:{{.tag}}\n", is: ErrUnsafe, says: []string{"placeholder {{.tag}}", "generator"}},
		"a placeholder as map":  {in: setHead + "          images:\n          - {{image}}\n", name: "{{image}}", is: ErrUnsafe, says: []string{"placeholder"}},
		"a mapping":             {in: list + "      - name: app\n", name: "name: app", is: ErrUnsafe, says: []string{"not a string"}},
		"an asterisk":           {in: list + "      - app=*:v1\n", is: ErrUnsafe, says: []string{"(*)", "write that part out"}},
		"another form":          {in: list + "      - app=:v1\n", is: ErrUnsafe, says: []string{"[name=]repository"}},
		"a digest in the name":  {in: list + "      - app@OLD=app:v1\n", name: "app@" + oldDigest, is: ErrUnsafe, says: []string{"carries a digest"}},
		"a block scalar":        {in: list + "      - |-\n        app:v1\n", is: ErrUnsafe, says: []string{"block scalar"}},
		"an alias":              {in: list + "      - *a\n", is: ErrUnsafe, says: []string{"not YAML"}},
		"an anchored string":    {in: list + "      - &a app:v1\n      - *a\n", is: ErrUnsafe, says: []string{"stands already"}},
		"an anchored source":    {in: strings.Replace(list, "source:", "source: &s", 1) + "      - app:v1\n  x: *s\n", is: ErrUnsafe, says: []string{"&s"}},
		"an anchored kustomize": {in: strings.Replace(argoHead, "kustomize:", "kustomize: &s", 1) + "      namePrefix: a\n  x: *s\n", set: add, is: ErrUnsafe, says: []string{"&s"}},
		"one name twice":        {in: list + "      - app:v1\n      - app=web:v1\n", is: ErrUnsafe, says: []string{"app stands already on line 10"}},
		"a pattern":             {in: list + "      - '.*:v1'\n", name: ".*", is: ErrUnsafe, says: []string{"regular expression"}},
		"a key in another case": {in: fluxHead + "  images:\n  - name: app\n    newtag: v1\n", is: ErrUnsafe, says: []string{"newtag is spelled newTag"}},
		"gone":                  {in: list + "      - web:v1\n", is: ErrNoEntry, says: []string{"named app"}},
		"gone from all sources": {in: argoSources("a:v1", "b:v1"), is: ErrNoEntry, says: []string{"named app"}},
		"which of the sources":  {in: argoSources("a:v1", "b:v1"), set: add, is: ErrUnsafe, says: []string{"several sources", "by hand"}},
		"added to braces":       {in: strings.Replace(argoHead, "kustomize:", "kustomize: {namePrefix: a}", 1), set: add, is: ErrUnsafe, says: []string{"images: [] into them"}},
		"added below a block":   {in: argoHead + "      x: |\n        a\n", set: add, is: ErrUnsafe, says: []string{"images: [] above it"}},
		"two images for one":    {in: list + "      - app=web:v1@OLD@OLD\n", is: ErrUnsafe, says: []string{"[name=]repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.name == "" {
				c.name = "app"
			}
			got, err := Edit(objectFS(c.in), []Set{setIn(objectsFile, expand(c.name), c.set)})
			if !errors.Is(err, c.is) || len(got.Files) > 0 {
				t.Fatalf("Edit: %+v, %v; want %v", got, err, c.is)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q; want it to say %q", err, s)
				}
			}
		})
	}
}

// TestAddFromPick holds that an entry which Pick gives for an object without
// images is added to that object, and has its file's name from the start.
func TestAddFromPick(t *testing.T) {
	fsys := objectFS(fluxHead)
	entries, err := Entries(fsys, objectsFile)
	if err != nil {
		t.Fatal(err)
	}
	picked, err := Pick(entries, Want{Dir: objectsFile, Repository: "ghcr.io/acme/app", Add: true})
	if err != nil || len(picked) != 1 || picked[0].File != objectsFile {
		t.Fatalf("Pick: %+v, %v", picked, err)
	}
	e, err := Edit(fsys, []Set{{Entry: picked[0], To: image.Reference{Repository: "ghcr.io/acme/app", Tag: "v2", Digest: newDigest}}})
	if err != nil || len(e.Changes) != 1 || !e.Changes[0].Added {
		t.Errorf("Edit: %+v, %v", e, err)
	}
}
