//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
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
		Proof       struct{ Status, Reason string }
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

// forge is where and as whom tagboat promotes.
type forge struct {
	args []string
	env  []string
}

func (r *repository) forge() forge {
	return forge{args: []string{"--forge", "gitea", "--repo", r.url()}, env: []string{"GITEA_TOKEN=" + r.gitea.bot}}
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
	command := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), append([]string{"promote", "--output", "json"}, append(f.args, args...)...)...)
	home := t.TempDir()
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}, f.env...)
	command.Dir = home
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	start := time.Now()
	err := command.Run()
	if command.ProcessState == nil {
		return result{}, err
	}
	r := result{exit: command.ProcessState.ExitCode(), stderr: stderr.String()}
	t.Logf("tagboat promote %s: exit %d, %d ms\n%s", strings.Join(args, " "), r.exit, time.Since(start).Milliseconds(), stderr.String())
	for _, variable := range f.env {
		if _, secret, _ := strings.Cut(variable, "="); strings.Contains(stdout.String()+stderr.String(), secret) && strings.Contains(variable, "TOKEN") {
			t.Errorf("the token is in what tagboat printed:\n%s%s", stdout.String(), stderr.String())
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		return r, errors.New("the result is no JSON: " + err.Error() + "\n" + stdout.String() + stderr.String())
	}
	if len(r.Promotions) != 1 {
		return r, errors.New("want one promotion in the result:\n" + stdout.String())
	}
	return r, nil
}

// want checks how the one promotion ended.
func (r result) want(t *testing.T, exit int, outcome string) result {
	t.Helper()
	if got := r.Promotions[0]; r.exit != exit || got.Outcome != outcome {
		t.Fatalf("got %s (%s) with exit code %d, want %s with %d\n%s", got.Outcome, got.Reason, r.exit, outcome, exit, r.stderr)
	}
	return r
}
