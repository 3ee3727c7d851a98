//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	releaseWorkflow = ".github/workflows/release.yml"
	releaseToken    = "ghs-rehearsal-token"
)

// What stands in for docker, gh and cosign. Each refuses what it does not know.
const (
	dockerStandIn = `#!/usr/bin/env bash
set -euo pipefail
case "$1 ${2-}" in
"login ghcr.io") [ "$*" = "login ghcr.io --username $GITHUB_ACTOR --password-stdin" ] && [ "$(cat)" = "$REHEARSAL_TOKEN" ] ;;
"buildx create") [ "$*" = "buildx create --use" ] ;;
"buildx build")
	shift 2
	given="$*"
	while [ $# -gt 1 ]; do
		case $1 in
		--metadata-file) file=$2 && shift 2 ;;
		--platform | --build-arg | --output | --target) shift 2 ;;
		--provenance=false) shift ;;
		*) echo "docker: unknown option $1" >&2 && exit 1 ;;
		esac
	done
	[ "$*" = . ] && [ "$SOURCE_DATE_EPOCH" = 0 ]
	[[ $given != *"${REHEARSAL_BREAK:-no such build}"* ]] || exit 1
	printf '{"containerimage.digest":"sha256:%s"}' "$(sha256sum <<<"$given" | cut -d ' ' -f 1)" >"$file"
	;;
*) echo "docker: unknown command $*" >&2 && exit 1 ;;
esac
`
	ghStandIn = `#!/usr/bin/env bash
set -euo pipefail
[ "$GH_TOKEN" = "$REHEARSAL_TOKEN" ]
published=$REHEARSAL/releases/$VERSION
case $* in
"api repos/$GITHUB_REPOSITORY/commits/main --jq .sha") git --git-dir "$REHEARSAL/tagboat" rev-parse main ;;
"release create $VERSION --draft --verify-tag --title $VERSION --notes-file notes.md "*)
	git --git-dir "$REHEARSAL/tagboat" rev-parse -q --verify "refs/tags/$VERSION"
	mkdir "$REHEARSAL/draft" && cp "${@:9}" "$REHEARSAL/draft"
	;;
"release edit $VERSION --draft=false") mv "$REHEARSAL/draft" "$published" ;;
"api repos/$GITHUB_REPOSITORY/releases/tags/$VERSION --jq .immutable") [ -d "$published" ] && echo true ;;
*) echo "gh: unknown command $*" >&2 && exit 1 ;;
esac
`
	// A certificate would need GitHub's word for who signs: a key instead, the rest as it is given.
	cosignStandIn = `#!/usr/bin/env bash
set -euo pipefail
export COSIGN_PASSWORD=
case $1 in
sign-blob) exec "$REHEARSAL_COSIGN" "$@" --key "$REHEARSAL/cosign.key" --use-signing-config=false --tlog-upload=false ;;
sign) [ "$2" = --yes ] && printf '%s\n' "${@:3}" >"$REHEARSAL/signed" ;;
*) echo "cosign: unknown command $*" >&2 && exit 1 ;;
esac
`
	emptyAction = `name: stand-in
inputs: {subject-path: {}, subject-name: {}, subject-digest: {}, push-to-registry: {}, go-version: {}, cache: {}}
runs:
  using: composite
  steps:
    - run: echo "$GITHUB_ACTION_REPOSITORY ${{ inputs.subject-path }}${{ inputs.subject-name }}@${{ inputs.subject-digest }}" >>"$REHEARSAL/actions"
      shell: bash
`
)

// rehearsal is a GitHub on this machine for the release workflow: clone is what the
// runner checks out, dir has the repository "tagboat" that it pushes to.
type rehearsal struct {
	clone, dir, home, url string
}

func newRehearsal(t *testing.T) rehearsal {
	t.Helper()
	r := rehearsal{dir: t.TempDir(), home: t.TempDir()}
	bare := filepath.Join(r.dir, "tagboat")
	git(t, "..", "init", "-q", "--bare", "-b", "main", bare)
	git(t, "..", "push", "-q", bare, "HEAD:refs/heads/main")
	git(t, bare, "config", "http.receivepack", "true")
	r.clone = filepath.Join(t.TempDir(), "tagboat")
	git(t, bare, "clone", "-q", "--no-hardlinks", bare, r.clone)
	git(t, r.clone, "remote", "set-url", "origin", "https://github.com/Acme/tagboat.git")
	r.url = r.serve(t)

	// The installed tools, where the workflow's step finds them installed, but for cosign.
	tools, bin := filepath.Dir(tool(t, "TAGBOAT_GORELEASER")), filepath.Join(r.home, ".cache/tagboat-e2e/bin")
	versioned, err := filepath.Glob(filepath.Join(tools, "*-v*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{bin, filepath.Join(r.home, "bin"), filepath.Join(r.home, "action"), filepath.Join(r.dir, "releases")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range versioned {
		to := filepath.Join(bin, filepath.Base(from))
		if strings.HasPrefix(filepath.Base(from), "cosign-") {
			writeFile(t, to, cosignStandIn, 0o755)
		} else if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(r.home, "bin/docker"), dockerStandIn, 0o755)
	writeFile(t, filepath.Join(r.home, "bin/gh"), ghStandIn, 0o755)
	writeFile(t, filepath.Join(r.home, "action/action.yml"), emptyAction, 0o600)
	r.cosign(t, "generate-key-pair")
	return r
}

// serve is github.com: its git over HTTP for who has the token, and its releases for everybody.
func (r rehearsal) serve(t *testing.T) string {
	t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(output(t, "git", "--exec-path")), "git-http-backend"), Root: "/Acme",
		Env: []string{"GIT_PROJECT_ROOT=" + r.dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/Acme/tagboat/", func(w http.ResponseWriter, request *http.Request) {
		if user, password, _ := request.BasicAuth(); user != "x-access-token" || password != releaseToken {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, request)
	})
	const downloads = "/Acme/tagboat/releases/download/"
	mux.Handle(downloads, http.StripPrefix(downloads, http.FileServer(http.Dir(filepath.Join(r.dir, "releases")))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func (r rehearsal) cosign(t *testing.T, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(tool(t, "TAGBOAT_GORELEASER")), "cosign"), args...)
	command.Dir, command.Env = r.dir, append(os.Environ(), "COSIGN_PASSWORD=")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("cosign %s: %v\n%s", args[0], err, out)
	}
}

func (r rehearsal) env() []string {
	return []string{
		"PATH=" + filepath.Join(r.home, "bin") + ":" + os.Getenv("PATH"),
		"REHEARSAL=" + r.dir, "REHEARSAL_TOKEN=" + releaseToken, "GITHUB_TOKEN=" + releaseToken,
		"REHEARSAL_COSIGN=" + filepath.Join(filepath.Dir(os.Getenv("TAGBOAT_GORELEASER")), "cosign"),
	}
}

// run is the workflow as a person starts it.
func (r rehearsal) run(t *testing.T, version string) (log string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Minute)
	defer cancel()
	workflow, err := os.ReadFile(filepath.Join(r.clone, releaseWorkflow))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"workflow_dispatch", "-W", releaseWorkflow, "-P", "ubuntu-24.04=-self-hosted", "--actor", "mei",
		"--input", "version=" + version, "--env", "GITHUB_SERVER_URL=" + r.url, "--secret", "GITHUB_TOKEN",
	}
	for _, action := range regexp.MustCompile(`actions/(?:setup-go|attest-build-provenance)@\w+`).FindAllString(string(workflow), -1) {
		args = append(args, "--local-repository", action+"="+filepath.Join(r.home, "action"))
	}
	return act(ctx, t, actRun{clone: r.clone, home: r.home, env: r.env(), args: args})
}

// step runs one step's script alone.
func (r rehearsal) step(t *testing.T, name string, env ...string) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", releaseWorkflow))
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs struct {
			Release struct{ Steps []struct{ Name, Run string } }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	for _, step := range workflow.Jobs.Release.Steps {
		if step.Name == name {
			command := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", step.Run)
			command.Dir, command.Env = r.clone, append(r.env(), env...)
			out, err := command.CombinedOutput()
			t.Logf("%s", out)
			return err
		}
	}
	t.Fatalf("there is no step %q", name)
	return nil
}

// wantRefused starts the workflow when it must not release.
func wantRefused(t *testing.T, r rehearsal, bare, version string) {
	tests := []struct{ name, version, does, undo, says string }{
		{"no version", "1.2.3", "", "", "The version is not vMAJOR.MINOR.PATCH"},
		{"a version of its own", "v01.2.3", "", "", "The version is not vMAJOR.MINOR.PATCH"},
		{"a tag that is there", version, "git tag v0.1.0 main^", "git tag -d v0.1.0", "v0.1.0 is taken"},
		{"main has moved on", version, "git push -q $BARE main^:main -f", "git push -q $BARE main:main", "main has moved on"},
		{"another branch", version, "git checkout -q -b other", "git checkout -q main && git branch -q -D other", ""},
	}
	shell := func(script string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
		command.Dir, command.Env = r.clone, append(os.Environ(), "BARE="+bare)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shell(tt.does)
			log, err := r.run(t, tt.version)
			shell(tt.undo)
			if (err != nil) != (tt.says != "") || !strings.Contains(log, tt.says) || strings.Contains(log, "e2e/install") {
				t.Errorf("%v, want %q:\n%s", err, tt.says, tail(log, 30))
			}
		})
	}
	for _, image := range []string{":v0.1.0,", ":v0.1.0-shell,"} {
		t.Run("no image "+image, func(t *testing.T) {
			temp := t.TempDir()
			err := r.step(t, "Build and push the images", "REHEARSAL_BREAK="+image, "RUNNER_TEMP="+temp, "GITHUB_OUTPUT="+filepath.Join(temp, "output"),
				"GITHUB_ACTOR=mei", "GITHUB_REPOSITORY=Acme/tagboat", "GITHUB_SHA=c0ffee", "VERSION="+version, "SOURCE_DATE_EPOCH=0")
			if err == nil {
				t.Error("the step went on without the image")
			}
		})
	}
	if got := git(t, bare, "tag"); got != "" {
		t.Errorf("refused, it pushed the tag %s", got)
	}
}

// wantImages asks that the same two images were built, signed, attested and named.
func wantImages(t *testing.T, r rehearsal, published string) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	signed, attested, notes := read(filepath.Join(r.dir, "signed")), read(filepath.Join(r.dir, "actions")), read(filepath.Join(published, "notes.md"))
	images := strings.Fields(signed)
	if len(images) != 2 || images[0] == images[1] {
		t.Fatalf("signed are %q", images)
	}
	for _, image := range images {
		if !regexp.MustCompile(`^ghcr\.io/acme/tagboat@sha256:[0-9a-f]{64}$`).MatchString(image) || !strings.Contains(attested, " "+image+"\n") || !strings.Contains(notes, "`"+image+"`") {
			t.Errorf("%s is signed, attested are\n%s, the notes say\n%s", image, attested, notes)
		}
	}
	if !strings.Contains(attested, " dist/*.tar.gz@\n") {
		t.Errorf("attested are\n%s", attested)
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
