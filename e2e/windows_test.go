//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/registry/registrytest"
	"tagboat/scm/scmtest"
)

// drive is a directory of Windows's drive C:, with a space and letters beyond ASCII
// in its name, as Windows and as this system call it.
type drive struct{ windows, here string }

// path is below the directory, as Windows writes it.
func (d drive) path(elements ...string) string {
	return strings.Join(append([]string{d.windows}, elements...), `\`)
}

func newDrive(t *testing.T) drive {
	t.Helper()
	c := filepath.Join(tool(t, "TAGBOAT_WINE"), "drive_c")
	here, err := os.MkdirTemp(c, "Überlagen für todo ") //nolint:usetesting // it has to be on the drive
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(here) })
	return drive{`C:\` + filepath.Base(here), here}
}

// put makes files below a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// exe runs the Windows program in the directory.
func (d drive) exe(t *testing.T, args ...string) said {
	t.Helper()
	command := exec.CommandContext(t.Context(), "wine", append([]string{tool(t, "TAGBOAT_EXE")}, args...)...)
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8", "WINEDEBUG=-all",
		"WINEPREFIX=" + tool(t, "TAGBOAT_WINE"),
	}
	command.Dir = d.here
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return said{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must is exe for what has to succeed.
func (d drive) must(t *testing.T, args ...string) said {
	t.Helper()
	out := d.exe(t, args...)
	if out.exit != 0 {
		t.Fatalf("tagboat.exe %q: exit %d\n%s%s", args, out.exit, out.stdout, out.stderr)
	}
	return out
}

// The whole job on embedded parts, in a temporary directory on a drive.
func TestWindowsDemo(t *testing.T) {
	d := newDrive(t)
	out := d.must(t, "demo").stdout
	for _, want := range []string{"--repo file:///C:/users/", "opened", "up-to-date"} {
		if !strings.Contains(out, want) {
			t.Errorf("demo does not say %s:\n%s", want, out)
		}
	}
}

const windowsDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// windowsTree is a checkout, with a patch, whose lines end as git's autocrlf ends them.
func windowsTree(newTag string) map[string]string {
	files := map[string]string{
		".git/HEAD":                 "ref: refs/heads/main\n",
		".git/config":               "[remote \"origin\"]\n\turl = https://github.com/acme/config.git\n",
		"base/kustomization.yaml":   "resources:\n- deployment.yaml\n",
		"base/deployment.yaml":      "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: todo-api\nspec:\n  template:\n    spec:\n      containers:\n      - name: api\n        image: ghcr.io/acme/todo-api\n",
		"envs/staging/replicas.yml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: todo-api\nspec:\n  replicas: 2\n",
		"envs/staging/kustomization.yaml": "# grüße von staging\nresources: [../../base]\npatches:\n- path: replicas.yml\nimages:\n- name: ghcr.io/acme/todo-api # CI sets this\n  newTag: " +
			newTag,
	}
	for name, content := range files {
		if !strings.HasPrefix(name, ".git/") {
			files[name] = strings.ReplaceAll(content, "\n", "\r\n")
		}
	}
	return files
}

// A working tree is edited by any of the paths that Windows has for it; its line ends
// stay, and what is built from files proves the edit.
func TestWindowsSet(t *testing.T) {
	d := newDrive(t)
	ref := "ghcr.io/acme/todo-api:v2@" + windowsDigest
	for _, path := range []string{`.\envs\staging\`, d.path("envs", "staging"), `Z:` + strings.ReplaceAll(filepath.Join(d.here, "envs", "staging"), "/", `\`)} {
		before, after := windowsTree("v1\n"), windowsTree("v2\n  digest: "+windowsDigest+"\n")
		put(t, d.here, before)
		out := d.must(t, "set", "--offline", "--prove", "required", "--path", path, "--output", "json", ref)
		var r result
		if err := json.Unmarshal([]byte(out.stdout), &r); err != nil || len(r.Promotions) != 1 {
			t.Fatalf("%s: %v\n%s%s", path, err, out.stdout, out.stderr)
		}
		if p := r.Promotions[0]; p.Outcome != "edited" || p.Proof.Status != "proven" || len(p.Changes) != 1 || p.Changes[0].File != "envs/staging/kustomization.yaml" {
			t.Errorf("%s: %+v", path, p)
		}
		if diff := cmp.Diff(after, filesIn(t, d.here)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if again := d.must(t, "set", "--offline", "--path", "envs/staging", ref); !strings.Contains(again.stderr, "up-to-date") {
		t.Errorf("again: %s", again.stderr)
	}
	if out := d.exe(t, "set", "--offline", "--path", `envs\production`, ref); out.exit != 2 || !strings.Contains(out.stderr, `envs\production is neither a directory nor a file`) {
		t.Errorf("a directory that is not there: %+v", out)
	}
}

// filesIn reads all files below a directory.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(at)
		name, _ := filepath.Rel(dir, at) // at is below dir
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// init finds its way in a checkout on a drive, and does not write over a file whose
// line ends git has changed since.
func TestWindowsInit(t *testing.T) {
	d := newDrive(t)
	put(t, d.here, windowsTree("v1\n"))
	printed := d.must(t, "init", `envs\staging`).stdout
	if !strings.Contains(printed, "path: envs/staging") {
		t.Errorf("init prints\n%s", printed)
	}
	out := d.must(t, "init", "--write", d.path())
	written, err := os.ReadFile(filepath.Join(d.here, "tagboat.yaml"))
	if err != nil || string(written) != printed || !strings.Contains(out.stdout, "acme/config") {
		t.Errorf("%v; written:\n%s\nprinted:\n%s\nthe step:\n%s", err, written, printed, out.stdout)
	}
	put(t, d.here, map[string]string{"tagboat.yaml": strings.ReplaceAll(printed, "\n", "\r\n")})
	if again := d.must(t, "init", "--write", d.path()); !strings.Contains(again.stderr, "nothing to do") {
		t.Errorf("again: %s", again.stderr)
	}
}

// A promotion into a bare repository on a drive, with the credential of a registry
// from the place in the user's profile where Docker for Windows keeps it.
func TestWindowsPromote(t *testing.T) {
	d := newDrive(t)
	images := registrytest.New(registrytest.WithBasic("mei", "s3cret-of-mei"))
	defer images.Close()
	digest, err := images.PushImage("acme/todo-api:v2", registrytest.ImageSpec{Platforms: []string{"linux/amd64"}, Content: "v2"})
	if err != nil {
		t.Fatal(err)
	}
	app := images.Host() + "/acme/todo-api"
	if out := d.exe(t, "resolve", app+":v2"); out.exit != 1 || !strings.Contains(out.stderr, `\.docker\config.json (not there)`) {
		t.Errorf("without a credential: %+v", out)
	}
	login(t, images.Host())
	if out := d.must(t, "resolve", app+":v2"); strings.TrimSpace(out.stdout) != digest {
		t.Errorf("resolve prints %s, want %s", out.stdout, digest)
	}

	files := windowsTree("v1\n")
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, "ghcr.io/acme/todo-api", app)
	}
	delete(files, ".git/HEAD")
	delete(files, ".git/config")
	files["tagboat.yaml"] = "version: 1\r\napps:\r\n  todo-api:\r\n    images: [{repository: " + app + "}]\r\ndefaults: {prove: required}\r\nenvironments:\r\n- {name: staging, path: envs/staging}\r\n"
	bare, err := scmtest.NewBare(filepath.Join(d.here, "config.git"), files)
	if err != nil {
		t.Fatal(err)
	}
	url := "file:///" + strings.ReplaceAll(strings.ReplaceAll(d.path("config.git"), `\`, "/"), " ", "%20")
	for _, want := range []string{"opened", "unchanged"} {
		out := d.must(t, "promote", "--output", "json", "--repo", url, "--to", "staging", app+":v2")
		var r result
		if err := json.Unmarshal([]byte(out.stdout), &r); err != nil || len(r.Promotions) != 1 || r.Promotions[0].Outcome != want || want == "opened" && r.Promotions[0].Proof.Status != "proven" {
			t.Fatalf("want %s, got %v\n%s%s", want, err, out.stdout, out.stderr)
		}
	}
	sha, _ := bare.Branch("tagboat/staging/todo-api")
	got, _, err := bare.ReadFile(sha, "envs/staging/kustomization.yaml")
	want := strings.Replace(files["envs/staging/kustomization.yaml"], "newTag: v1\r\n", "newTag: v2\r\n  digest: "+digest+"\r\n", 1)
	if err != nil || string(got) != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
	if out := d.must(t, "doctor", "--repo", url); !strings.Contains(out.stdout, "windows/amd64") || !regexp.MustCompile(`ok +branch +main can be read`).MatchString(out.stdout) {
		t.Errorf("doctor:\n%s", out.stdout)
	}
}

// login keeps a registry's credential in the profile of the prefix's user.
func login(t *testing.T, host string) {
	t.Helper()
	users, err := filepath.Glob(filepath.Join(tool(t, "TAGBOAT_WINE"), "drive_c", "users", "*"))
	users = slices.DeleteFunc(users, func(at string) bool { return filepath.Base(at) == "Public" })
	if err != nil || len(users) != 1 {
		t.Fatalf("the prefix's users: %q, %v", users, err)
	}
	file := filepath.Join(users[0], ".docker", "config.json")
	t.Cleanup(func() { _ = os.Remove(file) })
	put(t, users[0], map[string]string{".docker/config.json": `{"auths": {"` + host + `": {"username": "mei", "password": "s3cret-of-mei"}}}`})
}

// What PowerShell's script asks of the program, in the way in which it asks; the
// script itself is parsed, and not run: no PowerShell can be had here.
func TestWindowsCompletion(t *testing.T) {
	d := newDrive(t)
	script := d.must(t, "completion", "powershell").stdout
	if schema := d.must(t, "schema").stdout; !json.Valid([]byte(schema)) {
		t.Errorf("schema prints no JSON: %.200s", schema)
	}
	if out := d.must(t, "version").stdout; !strings.HasPrefix(out, "tagboat ") {
		t.Errorf("version prints %s", out)
	}
	ask := regexp.MustCompile(`& \S+ completion (--words powershell -- )@rest`).FindStringSubmatch(script)
	if ask == nil {
		t.Fatalf("the script asks in another way:\n%s", script)
	}
	for _, c := range []struct {
		words, want []string
	}{
		{[]string{"pro"}, []string{"promote\tpin an image"}},
		{[]string{"promote", "--output", ":"}, []string{"text\t\n", "json\t\n"}}, // the word that is empty so far
		{[]string{"promote", "--forge=gitl"}, []string{"--forge=gitlab\t\n"}},
	} {
		out := d.must(t, slices.Concat([]string{"completion"}, strings.Fields(ask[1]), c.words)...).stdout
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q: got %q, want %q", c.words, out, want)
			}
		}
		if got := strings.Count(out, "\n"); got != len(c.want) {
			t.Errorf("%q: %d candidates, want %d:\n%s", c.words, got, len(c.want), out)
		}
	}
}

// The script is PowerShell; one that lacks a brace is not.
func TestWindowsPowerShellSyntax(t *testing.T) {
	parser := tool(t, "TAGBOAT_TREE_SITTER")
	script, err := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), "completion", "powershell").Output()
	if err != nil {
		t.Fatal(err)
	}
	for text, lawful := range map[string]bool{
		string(script): true,
		strings.Replace(string(script), "param($word, $line", "param($word $line", 1): false,
		strings.TrimSuffix(string(script), "}\n"):                                     false,
	} {
		command := exec.CommandContext(t.Context(), "node", "--liftoff-only", filepath.Join("windows", "powershell.cjs"), parser)
		command.Stdin = strings.NewReader(text)
		if out, err := command.CombinedOutput(); (err == nil) != lawful {
			t.Errorf("%v: %s\n%s", err, out, text)
		}
	}
}
