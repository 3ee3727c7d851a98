package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

func testApp() *cli.App {
	return (&tool{stdout: io.Discard, stderr: io.Discard, env: func(string) string { return "" }}).app()
}

func TestComplete(t *testing.T) {
	for _, c := range []struct {
		name   string
		words  []string
		parted bool
		want   []string
	}{
		{"commands", []string{"pro"}, false, []string{"promote"}},
		{"help of a command", []string{"help", "pro"}, false, []string{"promote"}},
		{"options", []string{"promote", "--pin"}, false, []string{"--pin"}},
		{"options of another", []string{"schema", "--pin"}, false, nil},
		{"a hidden option", []string{"completion", "--w"}, false, nil},
		{"values", []string{"promote", "--forge", "gi"}, false, []string{"github", "gitlab", "gitea", "git"}},
		{"values after =", []string{"promote", "--forge=gitl"}, false, []string{"--forge=gitlab"}},
		{"values after = in bash", []string{"promote", "--forge", "=", "gitl"}, true, []string{"gitlab"}},
		{"= in bash", []string{"promote", "--output", "="}, true, []string{"text", "json"}},
		{"a value that may be any text", []string{"promote", "--repo", ""}, false, nil},
		{"after a value", []string{"promote", "--repo", "acme/config", "--dry"}, false, []string{"--dry-run"}},
		{"after an option without value", []string{"promote", "--dry-run", "--draf"}, false, []string{"--draft"}},
		{"an argument", []string{"promote", "ghcr.io"}, false, nil},
		{"after --", []string{"promote", "--", "--dr"}, false, nil},
		{"shells", []string{"completion", "z"}, false, []string{"zsh"}},
		{"an unknown command", []string{"promot", "--"}, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, w := range complete(testApp(), c.words, c.parted) {
				got = append(got, w.text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestShells has each shell that is here source its script and complete.
func TestShells(t *testing.T) {
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "tagboat")); err != nil { // see TestMain
		t.Fatal(err)
	}
	for shell, c := range map[string]struct {
		args []string
		run  string
	}{
		"bash": {[]string{"--norc"}, `source <(tagboat completion bash)
try() { COMP_WORDS=("$@") COMP_CWORD=$(($#-1)) COMPREPLY=(); _tagboat; echo "${COMPREPLY[*]}"; }
complete -p tagboat
try tagboat resol; try tagboat promote --dry; try tagboat promote --output ''; try tagboat promote --forge = gitl; try tagboat promote --path x`},
		"zsh": {[]string{"-f"}, `compdef() { echo "complete $1 $2"; }; _describe() { print -l -- "${(P@)2}" | sed 's/:.*//'; }; _files() { echo files; }
source <(tagboat completion zsh)
try() { words=("$@") CURRENT=$#; _tagboat | tr '\n' ' '; echo; }
try tagboat resol; try tagboat promote --dry; try tagboat promote --output ''; try tagboat promote --forge=gitl; try tagboat promote --path x`},
		"fish": {[]string{"--no-config"}, `tagboat completion fish | source
complete | grep -q __tagboat_words; and echo complete -F _tagboat tagboat
function try; complete -C "$argv" | string replace -r '\t.*' '' | string join ' '; end
try 'tagboat resol'; try 'tagboat promote --dry'; try 'tagboat promote --output '; try 'tagboat promote --forge=gitl'; mkdir empty; cd empty; try 'tagboat promote --path x'; true`},
	} {
		t.Run(shell, func(t *testing.T) {
			at, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("NOT TESTED: %s is not installed", shell)
			}
			home := t.TempDir()
			cmd := exec.CommandContext(t.Context(), at, append(c.args, "-c", c.run)...)
			cmd.Dir = home
			cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "LC_ALL=C"}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, stderr.String())
			}
			lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
			for i := range lines {
				lines[i] = strings.TrimSpace(lines[i])
			}
			last := map[string]string{"bash": "", "zsh": "files", "fish": ""}[shell]
			value := map[string]string{"bash": "gitlab"}[shell]
			if value == "" {
				value = "--forge=gitlab"
			}
			want := []string{"resolve", "--dry-run", "text json", value}
			if last != "" {
				want = append(want, last)
			}
			if len(lines) < 2 || !strings.Contains(lines[0], "complete") || !strings.Contains(lines[0], "_tagboat") {
				t.Fatalf("the script registers nothing: %q\n%s", lines, stderr.String())
			}
			got := lines[1:]
			if last == "" && len(got) == len(want)+1 && got[len(got)-1] == "" {
				got = got[:len(want)]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s", diff, stderr.String())
			}
		})
	}
}
