//go:build bench

package bench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tagboat/scm/gitea/giteareal"
)

const bot = "tagboat-bot"

// stand is a Gitea and a registry, each behind a proxy.
type stand struct {
	gitea           *giteareal.Server
	token           string // the bot's
	meter           *meter
	forge, registry *proxy
}

func start(t *testing.T, rtt time.Duration) *stand {
	t.Helper()
	server, err := giteareal.Start(t.Context(), giteareal.Options{
		Binary: os.Getenv("TAGBOAT_GITEA"), Static: os.Getenv("TAGBOAT_GITEA_STATIC"), Dir: t.TempDir(),
	})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	must(t, server.AddUser(t.Context(), bot))
	var made struct{ SHA1 string }
	in := map[string]any{"name": "bench", "scopes": []string{"write:repository", "write:issue", "read:user"}}
	_, err = server.Call(t.Context(), bot, http.MethodPost, "/users/"+bot+"/tokens", in, &made)
	must(t, err)
	s := &stand{gitea: server, token: made.SHA1, meter: &meter{}}
	s.forge = newProxy(t, strings.TrimPrefix(server.URL, "http://"), rtt, s.meter)
	s.registry = newProxy(t, startRegistry(t), rtt, s.meter)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const registryConfig = `version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: %s}
http:
  addr: %s
`

// startRegistry starts the distribution registry and waits until it listens.
func startRegistry(t *testing.T) string {
	t.Helper()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	shut(free)
	config := filepath.Join(t.TempDir(), "registry.yml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, registryConfig, t.TempDir(), address), 0o600))
	serve := exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_REGISTRY"), "serve", config)
	serve.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	serve.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, serve.Start())
	t.Cleanup(func() { _ = serve.Wait() }) // the context of the test has ended it
	for range 300 {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			shut(connection)
			return address
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the registry does not listen")
	return ""
}

// push pushes an image for two platforms and returns the digest of its index.
func (s *stand) push(t *testing.T, image, tag string, created time.Time) string {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, architecture := range []string{"amd64", "arm64"} {
		built, err := random.Image(256, 1)
		must(t, err)
		built, err = mutate.CreatedAt(built, v1.Time{Time: created})
		must(t, err)
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: platform}})
	}
	reference, err := name.NewTag(s.registry.server + "/" + image + ":" + tag)
	must(t, err)
	must(t, remote.WriteIndex(reference, index, remote.WithContext(t.Context())))
	digest, err := index.Digest()
	must(t, err)
	return digest.String()
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  labels: {app.kubernetes.io/name: %[1]s, app.kubernetes.io/part-of: %[2]s}
spec:
  selector:
    matchLabels: {app.kubernetes.io/name: %[1]s}
  template:
    metadata:
      labels: {app.kubernetes.io/name: %[1]s}
    spec:
      containers:
        - name: %[1]s
          image: %[3]s
          ports: [{containerPort: 8080}]
          readinessProbe: {httpGet: {path: /healthz, port: 8080}}
          resources:
            requests: {cpu: 50m, memory: 64Mi}
`

// written is an overlay as people write it, generated as kustomize leaves it; the
// third value is the digest's line, or nothing.
const written = `# Staging of %[1]s. Ask in #todo before you change the replicas.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: "todo"

images:
# Pinned by CI: leave this to the bot.
- %[3]sname: "%[2]s" # the API
  newTag: "v0"
- name: redis
  newTag: "7.2" # with the module, see the wiki

replicas:
- name: %[1]s
  count: 3
resources:
- ../../base # the same everywhere
`

const generated = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
images:
- %[3]sname: %[2]s
  newTag: v0
resources:
- ../../base
namePrefix: %[1]s-
`

// addConfig makes a config repository with about so many files, with an app for
// each of the pins (image to digest, "" for a tag alone), and lets the bot write to it.
func (s *stand) addConfig(t *testing.T, repo string, files int, pins map[string]string) {
	t.Helper()
	must(t, s.gitea.AddRepo(t.Context(), repo, bot))
	at := t.TempDir()
	git(t, nil, "init", "--quiet", "--bare", at)
	read, write := io.Pipe()
	go func() { write.CloseWithError(s.fastImport(write, files, pins)) }()
	git(t, read, "-C", at, "fast-import", "--quiet")
	git(t, nil, "-C", at, "push", "--quiet", "--force",
		"http://"+s.gitea.Admin+":"+giteareal.Password+"@"+s.forge.server+"/"+s.gitea.Admin+"/"+repo+".git", "main")
}

// fastImport writes one commit: each app is four files in a team's directory.
func (s *stand) fastImport(to io.Writer, files int, pins map[string]string) error {
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "commit refs/heads/main\ncommitter mei <mei@acme.example> %d +0000\ndata 13\nAdd the apps\n\n", time.Now().Unix())
	file := func(path, text string) {
		fmt.Fprintf(out, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
	}
	app := func(dir, team, app, image, digest string) {
		if digest != "" {
			digest = "digest: " + digest + "\n  "
		}
		file(dir+"/base/deployment.yaml", fmt.Sprintf(deployment, app, team, image))
		file(dir+"/base/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [deployment.yaml]\n")
		file(dir+"/overlays/staging/kustomization.yaml", fmt.Sprintf(written, app, image, digest))
		file(dir+"/overlays/production/kustomization.yaml", fmt.Sprintf(generated, app, image, digest))
	}
	for image, digest := range pins {
		app("apps/"+filepath.Base(image), "todo", filepath.Base(image), s.registry.address+"/"+image, digest)
	}
	for i := range max(0, files/4-len(pins)) {
		team, name := fmt.Sprintf("team-%03d", i/100), fmt.Sprintf("app-%05d", i)
		app("teams/"+team+"/"+name, team, name, "registry.acme.example/"+team+"/"+name, fmt.Sprintf("sha256:%064x", i*7919))
	}
	return out.Flush()
}

func git(t *testing.T, in io.Reader, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Stdin = in
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", args, err, out)
	}
}
