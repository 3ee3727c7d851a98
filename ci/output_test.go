package ci

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestWriteOutputsActions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(path, []byte("earlier=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := Detect(environ(map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": path}))
	left, err := job.WriteOutputs([]Output{{"outcome", "opened"}, {"result", "{\n  \"a\": 1\n}\nEOF\nchanged<<EOF"}})
	if err != nil || left != nil {
		t.Fatalf("left %q, error %v", left, err)
	}
	delimiters := regexp.MustCompile(`<<([A-Z2-7]{26})\n`).FindAllStringSubmatch(read(t, path), -1)
	if len(delimiters) != 2 {
		t.Fatalf("got %d random delimiters, want 2:\n%s", len(delimiters), read(t, path))
	}
	want := "earlier=1\noutcome<<D\nopened\nD\nresult<<D\n{\n  \"a\": 1\n}\nEOF\nchanged<<EOF\nD\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(read(t, path), delimiters[0][1], "D")); diff != "" {
		t.Errorf("output file (-want +got):\n%s", diff)
	}
}

func TestActionsOutputRefuses(t *testing.T) {
	for _, o := range []Output{{"a\nb", "x"}, {"a=b", "x"}, {"a<<b", "x"}, {"", "x"}, {"a", "x D y"}} {
		if text, err := actionsOutput([]Output{o}, "D"); err == nil {
			t.Errorf("%q: got %q, want an error", o, text)
		}
	}
}

func TestWriteOutputsDotenv(t *testing.T) {
	dir := t.TempDir()
	job := Detect(environ(map[string]string{"GITLAB_CI": "true", "CI_PROJECT_DIR": dir}))
	write := func(outputs ...Output) []string {
		t.Helper()
		left, err := job.WriteOutputs(outputs)
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	write(Output{"outcome", "opened"}, Output{"pull-request-url", "https://gitlab.example/mr/1"}, Output{"result", "{}"})
	left := write(Output{"outcome", "updated"}, Output{"result", "two\nlines"}, Output{"big", strings.Repeat("x", maxDotenv)})
	if diff := cmp.Diff([]string{"result", "big"}, left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	want := "TAGBOAT_PULL_REQUEST_URL=https://gitlab.example/mr/1\nTAGBOAT_OUTCOME=updated\n"
	if diff := cmp.Diff(want, read(t, filepath.Join(dir, "tagboat.env"))); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestDotenvPath(t *testing.T) {
	outside := "/tmp/x.env"
	if runtime.GOOS == "windows" { // where that is no absolute path: it has no drive
		outside = "D:/tmp/x.env"
	}
	tests := []struct{ name, dir, dotenv, want string }{
		{"default", "/builds/acme", "", "/builds/acme/tagboat.env"},
		{"relative", "/builds/acme", "out/x.env", "/builds/acme/out/x.env"},
		{"absolute", "/builds/acme", outside, outside},
		{"no project", "", "", "tagboat.env"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := dotenvPath(environ(map[string]string{"CI_PROJECT_DIR": tt.dir, "TAGBOAT_DOTENV": tt.dotenv}))
			if filepath.ToSlash(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestDotenvVariableLimit(t *testing.T) {
	old := strings.Repeat("OTHER=1\n", maxDotenvVariables)
	text, left := mergeDotenv(old, []Output{{"outcome", "opened"}})
	if text != old || len(left) != 1 {
		t.Errorf("got %d bytes, left %q; want the %d bytes of before, left outcome", len(text), left, len(old))
	}
}

func TestOutsideCI(t *testing.T) {
	var job Job
	left, err := job.WriteOutputs([]Output{{"outcome", "opened"}})
	if err != nil || left != nil {
		t.Errorf("outputs: left %q, error %v", left, err)
	}
	if err := job.AppendSummary("# hello"); err != nil {
		t.Errorf("summary: %v", err)
	}
}

func TestAppendSummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	job := Detect(environ(map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": path}))
	for _, text := range []string{"# first", strings.Repeat("é", maxSummary/2), "lost"} {
		if err := job.AppendSummary(text); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, path)
	if len(got) > maxSummary || len(got) < maxSummary-2 {
		t.Errorf("summary has %d bytes, want at most %d and nearly that", len(got), maxSummary)
	}
	if !utf8.ValidString(got) || !strings.HasPrefix(got, "# first\né") || !strings.HasSuffix(got, "é\n\n(cut: the job summary is full)\n") {
		t.Errorf("summary is not cut at a character with a note: …%q", got[len(got)-40:])
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
