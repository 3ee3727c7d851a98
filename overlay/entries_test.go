package overlay

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestEntries(t *testing.T) {
	entry := func(line int, name, newName, tag, digest string) Entry {
		return Entry{Dir: stagingDir, File: stagingFile, Line: line, Name: name, NewName: newName, Tag: tag, Digest: expand(digest)}
	}
	for name, c := range map[string]struct {
		in   string
		want []Entry
	}{
		"all shapes": {"images:\n- name: a\n- name: b\n  newName: r/b\n  newTag: v1\n- name: c\n  digest: OLD\n- digest: OLD\n  newTag: v1\n  name: d\n- name: e\n  newTag: v1@OLD\n",
			[]Entry{entry(2, "a", "", "", ""), entry(3, "b", "r/b", "v1", ""), entry(6, "c", "", "", "OLD"), entry(8, "d", "", "v1", "OLD"), entry(11, "e", "", "v1", "OLD")}},
		"no images":             {"resources: [a]\n", nil},
		"null images":           {"images:\n", nil},
		"empty images":          {"images: []\n", nil},
		"numbers as written":    {"images:\n- name: a\n  newTag: 1.10\n- name: b\n  newTag: 0123\n", []Entry{entry(2, "a", "", "1.10", ""), entry(4, "b", "", "0123", "")}},
		"nulls are nothing":     {"images:\n- name: a\n  newTag:\n  newName: ~\n  digest: null\n", []Entry{entry(2, "a", "", "", "")}},
		"keys in any case":      {"IMAGES:\n- Name: a\n  nEwTAG: v1\n", []Entry{entry(2, "a", "", "v1", "")}},
		"flow and JSON":         {`{"images": [{"name": "a", "newTag": "v1"}]}`, []Entry{entry(1, "a", "", "v1", "")}},
		"aliases and merges":    {"x: &x {newTag: v1, name: z}\nimages:\n- *x\n- <<: *x\n  name: b\n- <<: [*x]\n", []Entry{entry(3, "z", "", "v1", ""), entry(4, "b", "", "v1", ""), entry(6, "z", "", "v1", "")}},
		"alias values and list": {"t: &t v1\nl: &l\n- name: a\n  newTag: *t\nimages: *l\n", []Entry{entry(3, "a", "", "v1", "")}},
		"placeholders":          {"images:\n- name: a\n  newTag: {{ .Tag }}\n- name: b\n  newTag: ${TAG}@x\n", []Entry{entry(2, "a", "", "{{ .Tag }}", ""), entry(4, "b", "", "${TAG}@x", "")}},
		"opaque names":          {"images:\n- name: PROJECT/IMAGE\n  newTag: v1\n- name: reg/(.*)\n- name: app:latest\n", []Entry{entry(2, "PROJECT/IMAGE", "", "v1", ""), entry(4, "reg/(.*)", "", "", ""), entry(5, "app:latest", "", "", "")}},
		"no name":               {"images:\n- newTag: v1\n", []Entry{entry(2, "", "", "v1", "")}},
		"component":             {"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages:\n- name: a\n", []Entry{entry(4, "a", "", "", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Entries(oneFile(c.in), stagingDir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEntriesFinds holds which file of a directory is taken, and what is said
// of those that are not.
func TestEntriesFinds(t *testing.T) {
	one := &fstest.MapFile{Data: []byte("images:\n- name: app\n")}
	link := &fstest.MapFile{Data: []byte("../base/kustomization.yaml"), Mode: fs.ModeSymlink}
	flux := &fstest.MapFile{Data: []byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec:\n  images:\n  - name: app\n")}
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		dir  string
		file string // "" for an error
		is   error
		says []string
	}{
		"kustomization.yaml": {fsys: fstest.MapFS{"a/kustomization.yaml": one}, dir: "a", file: "a/kustomization.yaml"},
		"kustomization.yml":  {fsys: fstest.MapFS{"a/kustomization.yml": one}, dir: "a", file: "a/kustomization.yml"},
		"Kustomization":      {fsys: fstest.MapFS{"a/Kustomization": one}, dir: "a", file: "a/Kustomization"},
		"at the root":        {fsys: fstest.MapFS{"kustomization.yaml": one}, dir: ".", file: "kustomization.yaml"},
		"no directory":       {fsys: fstest.MapFS{"kustomization.yaml": one}, dir: "", file: "kustomization.yaml"},
		"./ and a last /":    {fsys: fstest.MapFS{"a/kustomization.yaml": one}, dir: "./a/", file: "a/kustomization.yaml"},
		"none":               {fsys: fstest.MapFS{"a/deployment.yaml": one}, dir: "a", is: ErrNoKustomization, says: []string{"a has none of kustomization.yaml"}},
		"another spelling":   {fsys: fstest.MapFS{"a/Kustomization.yaml": one}, dir: "a", is: ErrNoKustomization, says: []string{"Kustomization.yaml", "name it kustomization.yaml"}},
		"two": {fsys: fstest.MapFS{"a/kustomization.yaml": one, "a/kustomization.yml": one}, dir: "a", is: ErrNoKustomization,
			says: []string{"kustomization.yaml and kustomization.yml", "remove one"}},
		"no such directory": {fsys: fstest.MapFS{"a/kustomization.yaml": one}, dir: "b", is: ErrNoKustomization, says: []string{"no directory b: file does not exist; the top has a"}},
		"no such directory further down": {fsys: fstest.MapFS{"a/production/kustomization.yaml": one, "a/staging/kustomization.yaml": one}, dir: "a/stagign", is: ErrNoKustomization,
			says: []string{"no directory a/stagign: file does not exist; a has production, staging"}},
		"a file as the directory": {fsys: fstest.MapFS{"a/kustomization.yaml": one}, dir: "a/kustomization.yaml", is: ErrNoKustomization,
			says: []string{"give the directory, a"}},
		"a link":         {fsys: fstest.MapFS{"a/kustomization.yaml": link, "base/kustomization.yaml": one}, dir: "a", is: ErrUnsafe, says: []string{"a/kustomization.yaml is a symbolic link"}},
		"a dangling one": {fsys: fstest.MapFS{"a/kustomization.yaml": link}, dir: "a", is: ErrUnsafe, says: []string{"symbolic link"}},
		"a directory of that name": {fsys: fstest.MapFS{"a/kustomization.yaml/x": one}, dir: "a", is: ErrNoKustomization,
			says: []string{"not a regular file"}},
		"../":               {fsys: fstest.MapFS{"a/kustomization.yaml": one}, dir: "../a", is: ErrUnsafe, says: []string{`"../a" leaves the repository`}},
		"../ in the middle": {fsys: fstest.MapFS{"a/kustomization.yaml": one}, dir: "a/../../a", is: ErrUnsafe, says: []string{"leaves the repository"}},
		"absolute":          {fsys: fstest.MapFS{"a/kustomization.yaml": one}, dir: "/a", is: ErrUnsafe, says: []string{"absolute"}},
		"backslashes":       {fsys: fstest.MapFS{"a/b/kustomization.yaml": one}, dir: `a\b`, is: ErrUnsafe, says: []string{"write it with /"}},
		"Flux's":            {fsys: fstest.MapFS{"a/kustomization.yaml": flux}, dir: "a", is: ErrNoKustomization, says: []string{"Flux", "spec.path"}},
		"another kind": {fsys: fstest.MapFS{"a/kustomization.yaml": {Data: []byte("kind: Deployment\n")}}, dir: "a", is: ErrNoKustomization,
			says: []string{"kind is Deployment"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Entries(c.fsys, c.dir)
			if c.file != "" {
				if err != nil || len(got) != 1 || got[0].File != c.file {
					t.Errorf("Entries: %+v, %v; want those of %s", got, err, c.file)
				}
				return
			}
			if !errors.Is(err, c.is) || len(got) > 0 {
				t.Fatalf("Entries: %+v, %v; want %v", got, err, c.is)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q; want it to say %q", err, want)
				}
			}
		})
	}
}

// TestEntriesInADirectory holds the same on a real one, where Open would follow a link.
func TestEntriesInADirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real.yaml"), []byte("images:\n- name: app\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	symlink(t, "../real.yaml", filepath.Join(dir, "a", "kustomization.yaml"))
	if got, err := Entries(os.DirFS(dir), "a"); !errors.Is(err, ErrUnsafe) {
		t.Errorf("Entries through a link: %+v, %v; want ErrUnsafe", got, err)
	}
}

// symlink makes a link, or skips the test where there are none: Windows may forbid
// them, and Wine says that it has made one.
func symlink(t *testing.T, to, at string) {
	t.Helper()
	err := os.Symlink(to, at)
	if _, missing := os.Lstat(at); err != nil || missing != nil {
		t.Skipf("NOT TESTED: no symbolic link can be made here: %v", err)
	}
}

// asked records what is read, and can fail or hold a name back.
type asked struct {
	fstest.MapFS
	mu     sync.Mutex
	calls  []string
	fail   map[string]error
	onRead func()
}

func (a *asked) note(call string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
	return a.fail[call]
}

func (a *asked) ReadFile(name string) ([]byte, error) {
	if a.onRead != nil {
		a.onRead()
	}
	if err := a.note("ReadFile " + name); err != nil {
		return nil, err
	}
	return a.MapFS.ReadFile(name)
}

func (a *asked) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := a.note("ReadDir " + name); err != nil {
		return nil, err
	}
	if a.onRead != nil {
		a.onRead()
	}
	return a.MapFS.ReadDir(name)
}

// TestEntriesAsksInOneRound holds the budget: the listing and the usual name at
// the same time, and nothing else.
func TestEntriesAsksInOneRound(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := func() { both.Done(); both.Wait() } // returns only when both calls are under way
	fsys := &asked{MapFS: oneFile("images:\n- name: app\n"), onRead: meet}
	if _, err := Entries(fsys, stagingDir); err != nil {
		t.Fatal(err)
	}
	slices.Sort(fsys.calls)
	if diff := cmp.Diff([]string{"ReadDir " + stagingDir, "ReadFile " + stagingFile}, fsys.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestEntriesKeepsFailures holds that a look-up which failed is no "not there".
func TestEntriesKeepsFailures(t *testing.T) {
	limit := errors.New("429 too many requests")
	for _, call := range []string{"ReadDir " + stagingDir, "ReadFile " + stagingFile} {
		fsys := &asked{MapFS: oneFile("images:\n- name: app\n"), fail: map[string]error{call: limit}}
		if _, err := Entries(fsys, stagingDir); !errors.Is(err, limit) || errors.Is(err, ErrNoKustomization) {
			t.Errorf("%s fails: %v; want the failure and nothing else", call, err)
		}
	}
	other := fstest.MapFS{stagingDir + "/kustomization.yml": {Data: []byte("images:\n- name: app\n")}}
	fsys := &asked{MapFS: other, fail: map[string]error{"ReadFile " + stagingFile: limit}}
	if got, err := Entries(fsys, stagingDir); err != nil || len(got) != 1 {
		t.Errorf("the guess fails, and the file has another name: %+v, %v; want its entry", got, err)
	}
}
