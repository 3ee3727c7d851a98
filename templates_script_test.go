package tagboat_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComponentScripts runs the scripts in the shells of this machine, with values
// that no regex has seen, as whoever may set a pipeline's variables gives them: each
// is one argument, as it is, and nothing of it is run.
func TestComponentScripts(t *testing.T) {
	const evil = "a'b\"c $(touch injected) `touch injected`; touch injected & | > injected\n* ? ~ {x,y} \\ \\\\ $HOME ${IFS} %s ü --draft"
	options := func(evils ...string) (all []string) {
		for _, name := range evils {
			all = append(all, "--"+name+"="+evil)
		}
		return all
	}
	for name, want := range map[string][]string{
		"promote": slices.Concat([]string{"promote"},
			options("repo", "to", "path", "from", "ring", "app", "all", "base", "forge", "platform", "wait", "prove", "label", "reviewer", "auto-merge", "draft", "dry-run"),
			[]string{"--assignee", "*", "$(id)", "--", "-x:$(touch", "injected)*"}),
		"verify":  slices.Concat([]string{"verify", "--all"}, options("repo", "forge", "dry-run")),
		"chatops": {"chatops", "--speaker=tagboat-serve", "--accept=todo-ci=todo-api,web-ci=web", "--wait=2m", "--reply-host", "chat.acme.example:8443"},
	} {
		f, err := readTemplate(name)
		if err != nil {
			t.Fatal(err)
		}
		job := f.rest["$[[ inputs.job-name ]]"].(map[string]any)
		given := map[string]string{"speaker": "tagboat-serve", "accept": "todo-ci=todo-api,web-ci=web", "args": "--wait=2m --reply-host chat.acme.example:8443"}
		script := block.ReplaceAllStringFunc(job["script"].([]any)[0].(string), func(b string) string { return given[block.FindStringSubmatch(b)[1]] })
		var env []string
		for variable := range job["variables"].(map[string]any) {
			env = append(env, variable+"="+evil)
		}
		env = append(env, "TAGBOAT_COMPONENT_ARGS=--assignee  * $(id)", "TAGBOAT_COMPONENT_IMAGE=-x:$(touch,injected)*")
		for _, shell := range [][]string{{"sh"}, {"bash"}, {"busybox", "sh"}} {
			t.Run(name+" "+shell[0], func(t *testing.T) {
				if diff := cmp.Diff(want, argumentsOf(t, shell, script, env)); diff != "" {
					t.Errorf("arguments (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// argumentsOf runs a script and returns what it gives to tagboat.
func argumentsOf(t *testing.T, shell []string, script string, env []string) []string {
	t.Helper()
	path, err := exec.LookPath(shell[0])
	if err != nil || runtime.GOOS == "windows" { // the jobs run in containers of Linux
		t.Skipf("no %s here", shell[0])
	}
	bin, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "tagboat"), []byte("#!/bin/sh\nprintf '%s\\0' \"$@\" >arguments\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a-file"), nil, 0o600); err != nil { // for a * to find
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append(slices.Clone(shell[1:]), "-e", "-c", script)...)
	cmd.Dir = dir
	cmd.Env = append(env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v %v: something was run", files, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
