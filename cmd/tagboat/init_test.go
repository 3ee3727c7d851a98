package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"tagboat/config"
	"tagboat/registry/registrytest"
	"tagboat/scm/scmtest"
)

// tried is one promotion that a sample repository must let be tried: where it
// must lead, or the code that says why it leads nowhere.
type tried struct{ environment, ring, image, file, code string }

// repositorySample is a repository of layout/testdata. Its comment has the lines
// "dry-run ENVIRONMENT[.RING] IMAGE -> FILE" or "… -> CODE: …", and "branches NAME…".
type repositorySample struct {
	files    map[string]string
	branches []string
	tries    []tried
}

// readSample also puts the test's registry in the place of the public ones.
func readSample(t *testing.T, name, registry string) repositorySample {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("ghcr.io/", registry+"/", "quay.io/", registry+"/", "docker.io/", registry+"/", "mirror.acme.example/", registry+"/mirror/")
	s := repositorySample{files: map[string]string{}}
	for _, f := range archive.Files {
		s.files[f.Name] = here.Replace(string(f.Data))
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if rest, ok := strings.CutPrefix(line, "branches "); ok {
			s.branches = strings.Fields(rest)
		}
		rest, ok := strings.CutPrefix(line, "dry-run ")
		if !ok {
			continue
		}
		asked, want, _ := strings.Cut(strings.TrimSpace(rest), " -> ")
		at, image, _ := strings.Cut(asked, " ")
		try := tried{image: here.Replace(image), file: want}
		try.environment, try.ring, _ = strings.Cut(at, ".")
		if code, _, ok := strings.Cut(want, ":"); ok {
			try.file, try.code = "", code
		}
		s.tries = append(s.tries, try)
	}
	if len(s.tries) == 0 {
		t.Fatalf("%s: no dry-run line", name)
	}
	return s
}

// tagboatRun runs a command line in this process, outside of any CI.
func tagboatRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(context.Background(), append([]string{"tagboat"}, args...), &out, &errOut, func(string) string { return "" })
	return code, out.String(), errOut.String()
}

// checkout writes files into a directory.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestInitThenPromote: what init writes for each sample repository lets promote
// find the right target, or say why there is none.
func TestInitThenPromote(t *testing.T) {
	samples, err := filepath.Glob("../../layout/testdata/*.txtar")
	if err != nil || len(samples) < 10 {
		t.Fatal(samples, err)
	}
	registry := registrytest.New()
	defer registry.Close()
	for _, name := range samples {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			s := readSample(t, name, registry.Host())
			files := map[string]string{}
			for name, content := range s.files {
				files[name] = content
			}
			for _, b := range s.branches {
				files[".git/refs/heads/"+b] = strings.Repeat("1", 40) + "\n"
			}
			dir := checkout(t, files)
			if code, _, stderr := tagboatRun(t, "init", "--write", dir); code != 0 {
				t.Fatalf("init: exit %d\n%s", code, stderr)
			}
			written, err := os.ReadFile(filepath.Join(dir, "tagboat.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			s.files["tagboat.yaml"] = string(written)
			bare, err := scmtest.NewBare(filepath.Join(t.TempDir(), "config.git"), s.files)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range s.branches {
				if _, err := bare.Push(b, "mei", "Make an environment", map[string]string{"README.md": b}); err != nil {
					t.Fatal(err)
				}
			}
			for _, try := range s.tries {
				pushBoth(t, registry, try.image)
				walk(t, bare, try)
				tryPromotion(t, bare.URL, try, string(written))
			}
		})
	}
}

// pushBoth pushes an image to where the build pushes and to the mirror.
func pushBoth(t *testing.T, registry *registrytest.Registry, image string) {
	t.Helper()
	name := strings.TrimPrefix(image, registry.Host()+"/")
	for _, at := range []string{name, "mirror/" + strings.TrimPrefix(name, "acme/")} {
		if _, err := registry.PushImage(at, registrytest.ImageSpec{Platforms: []string{"linux/amd64"}, Content: name}); err != nil {
			t.Fatal(err)
		}
	}
}

// walk promotes and merges an image through the environments before the one that
// is tried, as far as that goes.
func walk(t *testing.T, bare *scmtest.Bare, try tried) {
	t.Helper()
	tip, _ := bare.Branch(bare.DefaultBranch())
	content, _, err := bare.ReadFile(tip, config.FileName)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(fstest.MapFS{config.FileName: {Data: content}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Environment(try.environment)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range e.From {
		before := try
		before.environment, before.ring = name, ""
		walk(t, bare, before)
		_, head, _ := tagboatRun(t, "promote", "--repo", bare.URL, "--forge", "git", "--to", name, try.image)
		from, err := c.Environment(name)
		if err != nil {
			t.Fatal(err)
		}
		if head = strings.TrimSpace(head); head == "" {
			continue // there already, or refused, which the trial will say
		}
		if _, err := bare.MergeBranch(head, cmp.Or(from.Branch, bare.DefaultBranch())); err != nil {
			t.Fatal(err)
		}
	}
}

func tryPromotion(t *testing.T, url string, try tried, written string) {
	t.Helper()
	args := []string{"promote", "--dry-run", "--output", "json", "--repo", url, "--forge", "git", "--to", try.environment}
	if try.ring != "" {
		args = append(args, "--ring", try.ring)
	}
	code, stdout, stderr := tagboatRun(t, append(args, try.image)...)
	var got report
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Promotions) != 1 {
		t.Fatalf("%v: exit %d, %v\n%s%s", try, code, err, stdout, stderr)
	}
	p := got.Promotions[0]
	if try.code != "" {
		if p.Error == nil || p.Error.Code != try.code || p.Error.Message == "" {
			t.Errorf("%v: got %+v, want the code %s\n%s\n%s", try, p.Error, try.code, stderr, written)
		}
		return
	}
	found := slices.ContainsFunc(p.Changes, func(c change) bool { return c.File == try.file })
	if code != 0 || p.Outcome != "planned" || !found {
		t.Errorf("%v: exit %d, %s, changes %+v\n%s\n%s", try, code, p.Outcome, p.Changes, stderr, written)
	}
}

// TestInitLeavesAlone: an existing tagboat.yaml, a link among it, is never
// written over, and a second run changes nothing.
func TestInitLeavesAlone(t *testing.T) {
	files := map[string]string{"envs/staging/kustomization.yaml": "images:\n- {name: ghcr.io/acme/todo-api, newTag: v1}\n"}
	at := func(dir string) string { return filepath.Join(dir, "tagboat.yaml") }

	dir := checkout(t, files)
	for i, want := range []string{"written: ", "nothing to do"} {
		if code, _, stderr := tagboatRun(t, "init", "--write", dir); code != 0 || !strings.Contains(stderr, want) {
			t.Errorf("run %d: exit %d\n%s", i+1, code, stderr)
		}
	}

	written, err := os.ReadFile(at(dir))
	if err == nil {
		err = os.WriteFile(at(dir), bytes.ReplaceAll(written, []byte("\n"), []byte("\r\n")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := tagboatRun(t, "init", "--write", dir); code != 0 || !strings.Contains(stderr, "nothing to do") {
		t.Errorf("checked out with CRLF: exit %d\n%s", code, stderr)
	}

	for name, make := range map[string]func(dir string) error{
		"a file":            func(dir string) error { return os.WriteFile(at(dir), []byte("version: 1\n"), 0o600) },
		"an empty file":     func(dir string) error { return os.WriteFile(at(dir), nil, 0o600) },
		"a link to nowhere": func(dir string) error { return os.Symlink("elsewhere", at(dir)) },
		"a link out of it":  func(dir string) error { return os.Symlink("../../escaped", at(dir)) },
		"a directory":       func(dir string) error { return os.Mkdir(at(dir), 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := checkout(t, files)
			if err := make(dir); err != nil {
				t.Fatal(err)
			}
			before := stateOf(t, dir)
			code, _, stderr := tagboatRun(t, "init", "--write", dir)
			if code != 2 || !strings.Contains(stderr, "is there already") {
				t.Errorf("exit %d\n%s", code, stderr)
			}
			if after := stateOf(t, dir); after != before {
				t.Errorf("changed:\n%s\n%s", before, after)
			}
		})
	}
}

// stateOf lists a directory with modes and contents.
func stateOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		content, _ := os.ReadFile(filepath.Join(dir, e.Name())) // a directory has none
		fmt.Fprintf(&b, "%s %s %q\n", e.Type(), e.Name(), content)
	}
	return b.String()
}
