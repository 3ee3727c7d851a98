package layout_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"tagboat/config"
	"tagboat/layout"
)

var update = flag.Bool("update", false, "rewrite the golden files") //nolint:gochecknoglobals // flags of a test are

// sample is a repository of testdata, and the branches that it has.
func sample(t *testing.T, file string) (fstest.MapFS, []string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	var branches []string
	for line := range strings.Lines(string(archive.Comment)) {
		if rest, ok := strings.CutPrefix(line, "branches "); ok {
			branches = strings.Fields(rest)
		}
	}
	return files, branches
}

// TestSamples: each sample repository is recognised as its golden file says, and
// what is written loads.
func TestSamples(t *testing.T) {
	samples, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(samples) < 10 {
		t.Fatal(samples, err)
	}
	for _, file := range samples {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			files, branches := sample(t, file)
			l, err := layout.Look(t.Context(), files, layout.Options{Branch: func(_ context.Context, name string) (bool, error) {
				return slices.Contains(branches, name), nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			got := l.YAML([]string{"Written by tagboat init."})
			golden := strings.TrimSuffix(file, "txtar") + "yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
			if _, err := config.Load(fstest.MapFS{config.FileName: {Data: got}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHostile: a repository that somebody made to be read badly is bounded, and
// what is written loads and holds no text of it that could be YAML.
func TestHostile(t *testing.T) {
	overlay := []byte("resources: [pod.yaml]\nimages:\n- {name: todo-api, newName: ghcr.io/acme/todo-api, newTag: v1}\n")
	file := func(b []byte) *fstest.MapFile { return &fstest.MapFile{Data: b} }
	wide := fstest.MapFS{"envs/staging/kustomization.yaml": file(overlay)}
	for i := range 3000 {
		wide["z/"+strings.Repeat("d", 1+i%50)+"/"+strings.Repeat("e", 1+i/50)+"/x.yaml"] = file([]byte("a: 1\n"))
	}
	deep := fstest.MapFS{"envs/staging/kustomization.yaml": file(overlay), strings.Repeat("d/", 200) + "kustomization.yaml": file(overlay)}
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		want  []string // in what is said
		not   []string
	}{
		{"many directories", wide, []string{"many directories: 100 were looked at, what lies further down was not; in a clone, tagboat init looks further"}, nil},
		{"deep", deep, []string{"more than 12 below the top"}, nil},
		{"names of paths", fstest.MapFS{
			"envs/staging/kustomization.yaml":          file(overlay),
			"envs/pro{app}d/kustomization.yaml":        file(overlay),
			"envs/a\nversion: 2/kustomization.yaml":    file(overlay),
			"envs/-- rm/kustomization.yaml":            file(overlay),
			"envs/*/kustomization.yaml":                file(overlay),
			"apps/todo\u2028x/prod/kustomization.yaml": file(overlay),
			"envs/___/kustomization.yaml":              file(overlay),
		}, []string{`"envs/pro{app}d" is left out`, `"envs/*" is left out`}, []string{"\nversion: 2", "{app}d\n", "path: envs/*"}},
		{"names of images", fstest.MapFS{
			"envs/staging/kustomization.yaml": file([]byte("images:\n- {name: 'a\n\n  b: [', newTag: v1}\n- {name: UPPER, newTag: v1}\n- {name: 'x # y', newTag: v1}\n- {name: ghcr.io/acme/ok, newTag: v1}\n")),
		}, []string{"is left out: no registry has such an image", "repository: ghcr.io/acme/ok"}, []string{"\nb: [", "repository: UPPER"}},
		{"symlinks", fstest.MapFS{
			"envs/staging/kustomization.yaml": file(overlay),
			"envs/prod":                       {Data: []byte("../../../etc"), Mode: os.ModeSymlink},
			"envs/qa/kustomization.yaml":      {Data: []byte("/etc/passwd"), Mode: os.ModeSymlink},
		}, []string{"envs/prod is a symbolic link", "envs/qa/kustomization.yaml is a symbolic link"}, []string{"name: prod", "name: qa"}},
		{"not YAML", fstest.MapFS{
			"envs/staging/kustomization.yaml": file(overlay),
			"envs/prod/kustomization.yaml":    file([]byte("a: &a [*a, *a]\nb: {{ x }}\n\t")),
			"envs/qa/kustomization.yaml":      file([]byte{0, 1, 2, 0xff}),
			"envs/uat/kustomization.yaml":     file(nil),
		}, []string{"envs/qa/kustomization.yaml is left out"}, []string{"name: qa"}},
		{"bomb", fstest.MapFS{
			"envs/staging/kustomization.yaml": file(overlay),
			"clusters/bomb.yaml":              file([]byte("# argoproj.io/\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n")),
			"clusters/large.yaml":             file([]byte("argoproj.io/" + strings.Repeat(" ", 2<<20))),
		}, []string{"clusters/large.yaml is no plain file, or too large"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := layout.Look(t.Context(), c.files, layout.Options{Dirs: 100, Files: 200})
			if err != nil {
				t.Fatal(err)
			}
			if l.Dirs > 100 || l.Files > 200 {
				t.Errorf("listed %d directories and read %d files", l.Dirs, l.Files)
			}
			text := l.YAML(nil)
			if _, err := config.Load(fstest.MapFS{config.FileName: {Data: text}}); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			said := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "#", "")), " ")
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("does not say %q:\n%s", want, text)
				}
			}
			for _, not := range c.not {
				if strings.Contains(string(text), not) {
					t.Errorf("says %q:\n%s", not, text)
				}
			}
		})
	}
}

// TestNothing: a repository without anything of kustomize is said to be one.
func TestNothing(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"empty":  {},
		"source": {"main.go": {Data: []byte("package main\n")}, ".github/workflows/ci.yaml": {Data: []byte("on: push\n")}},
	} {
		if l, err := layout.Look(t.Context(), files, layout.Options{}); !errors.Is(err, layout.ErrNothing) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

// TestRefused: what cannot be listed is an error, never an empty layout.
func TestRefused(t *testing.T) {
	if _, err := layout.Look(t.Context(), broken{}, layout.Options{}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

var errBroken = errors.New("the forge is away")

type broken struct{}

func (broken) Open(string) (fs.File, error) { return nil, errBroken }
