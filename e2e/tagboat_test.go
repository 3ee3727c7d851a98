//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// result is what --output json says, as far as the tests look at it.
type result struct {
	exit   int
	stderr string

	SchemaVersion int
	Promotions    []struct {
		Outcome     string
		Reason      string
		Ring        string
		Proof       struct{ Status, Reason string }
		Gates       []gate
		Commit      string
		PullRequest struct {
			Number                      int
			URL, HeadBranch, BaseBranch string
		}
		Changes []struct {
			File     string
			Line     int
			From, To struct{ Tag, Digest string }
		}
		Warnings []string
		Error    struct{ Code, Message string }
	}
}

// gate is how a rule stands, and on what evidence.
type gate struct{ Name, Status, Evidence string }

// forge is where and as whom tagboat promotes.
type forge struct {
	args []string
	env  []string
}

func (r *repository) forge() forge { return r.as(r.gitea.bot) }

// as is the repository with a user's token.
func (r *repository) as(token string) forge {
	return forge{args: []string{"--forge", "gitea", "--repo", r.url()}, env: []string{"GITEA_TOKEN=" + token}}
}

// promote runs the built command and reads its result; the environment is the
// test's own, so that the CI that runs the test is not taken for a job.
func (f forge) promote(t *testing.T, args ...string) result {
	t.Helper()
	r, err := f.run(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f forge) run(t *testing.T, args ...string) (result, error) {
	out, err := f.exec(t, append([]string{"promote", "--output", "json"}, args...)...)
	if err != nil {
		return result{}, err
	}
	r := result{exit: out.exit, stderr: out.stderr}
	if err := json.Unmarshal([]byte(out.stdout), &r); err != nil {
		return r, errors.New("the result is no JSON: " + err.Error() + "\n" + out.stdout + out.stderr)
	}
	if len(r.Promotions) != 1 {
		return r, errors.New("want one promotion in the result:\n" + out.stdout)
	}
	return r, nil
}

// said is how a run of the built command ended.
type said struct {
	exit           int
	stdout, stderr string
}

// exec runs a command of tagboat on the forge, whose token nobody may see.
func (f forge) exec(t *testing.T, args ...string) (said, error) {
	command := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), slices.Concat(args[:1], f.args, args[1:])...)
	home := t.TempDir()
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}, f.env...)
	command.Dir = home
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	start := time.Now()
	err := command.Run()
	if command.ProcessState == nil {
		return said{}, err
	}
	out := said{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	t.Logf("tagboat %s: exit %d, %d ms\n%s", strings.Join(args, " "), out.exit, time.Since(start).Milliseconds(), out.stderr)
	for _, variable := range f.env {
		name, value, _ := strings.Cut(variable, "=")
		for line := range strings.Lines(value) { // of TAGBOAT_TOKENS several, each with its token last
			words := strings.Fields(line)
			if strings.Contains(name, "TOKEN") && strings.Contains(out.stdout+out.stderr, words[len(words)-1]) {
				t.Errorf("the token is in what tagboat printed:\n%s%s", out.stdout, out.stderr)
			}
		}
	}
	return out, nil
}

// must runs a command that has to succeed, and answers what it printed.
func (f forge) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := f.exec(t, args...)
	if err != nil || out.exit != 0 {
		t.Fatalf("tagboat %s: exit %d, %v\n%s", strings.Join(args, " "), out.exit, err, out.stderr)
	}
	return out.stdout
}

// want checks how the one promotion ended.
func (r result) want(t *testing.T, exit int, outcome string) result {
	t.Helper()
	if got := r.Promotions[0]; r.exit != exit || got.Outcome != outcome {
		t.Fatalf("got %s (%s) with exit code %d, want %s with %d\n%s", got.Outcome, got.Reason, r.exit, outcome, exit, r.stderr)
	}
	return r
}
