//go:build bench

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// stand is a Gitea and a registry, each with a proxy before it.
type stand struct {
	gitea           *giteareal.Server
	token           string // the bot's
	meter           *meter
	forge, registry *proxy
	stopRegistry    func()
}

func start(ctx context.Context, dir string, rtt time.Duration) (*stand, error) {
	at := filepath.Join(dir, "gitea")
	if err := os.Mkdir(at, 0o700); err != nil {
		return nil, err
	}
	s := &stand{meter: &meter{}, stopRegistry: func() {}}
	var err error
	s.gitea, err = giteareal.Start(ctx, giteareal.Options{Binary: os.Getenv("TAGBOAT_GITEA"), Static: os.Getenv("TAGBOAT_GITEA_STATIC"), Dir: at})
	if err != nil {
		return nil, err
	}
	return s, s.setUp(ctx, dir, rtt)
}

func (s *stand) stop() {
	s.stopRegistry()
	_ = s.gitea.Stop() // the figures are there
}

func (s *stand) setUp(ctx context.Context, dir string, rtt time.Duration) error {
	if err := s.gitea.AddUser(ctx, bot); err != nil {
		return err
	}
	var made struct{ SHA1 string }
	in := map[string]any{"name": "bench", "scopes": []string{"write:repository", "write:issue", "read:user"}}
	if _, err := s.gitea.Call(ctx, bot, http.MethodPost, "/users/"+bot+"/tokens", in, &made); err != nil {
		return err
	}
	s.token = made.SHA1
	address, err := s.startRegistry(ctx, dir)
	if err != nil {
		return err
	}
	server, err := url.Parse(s.gitea.URL)
	if err != nil {
		return err
	}
	if s.forge, err = newProxy(ctx, server.Host, rtt, s.meter); err != nil {
		return err
	}
	s.registry, err = newProxy(ctx, address, rtt, s.meter)
	return err
}

const registryConfig = `version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: %s}
http:
  addr: %s
`

// startRegistry starts the distribution registry and waits until it listens.
func (s *stand) startRegistry(ctx context.Context, dir string) (address string, err error) {
	free, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address = free.Addr().String()
	free.Close()
	config := filepath.Join(dir, "registry.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, registryConfig, filepath.Join(dir, "registry"), address), 0o600); err != nil {
		return "", err
	}
	serve := exec.CommandContext(ctx, os.Getenv("TAGBOAT_REGISTRY"), "serve", config)
	serve.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	serve.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := serve.Start(); err != nil {
		return "", fmt.Errorf("start the registry: %w", err)
	}
	s.stopRegistry = func() { _, _ = serve.Process.Kill(), serve.Wait() }
	for range 300 {
		var connection net.Conn
		if connection, err = new(net.Dialer).DialContext(ctx, "tcp", address); err == nil {
			return address, connection.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", fmt.Errorf("start the registry: %w", err)
}

// push pushes an image for two platforms and returns the digest of its index.
func (s *stand) push(ctx context.Context, image, tag string, created time.Time) (string, error) {
	var index v1.ImageIndex = empty.Index
	for _, architecture := range []string{"amd64", "arm64"} {
		built, err := random.Image(256, 1)
		if err != nil {
			return "", err
		}
		if built, err = mutate.CreatedAt(built, v1.Time{Time: created}); err != nil {
			return "", err
		}
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: platform}})
	}
	reference, err := name.NewTag(s.registry.server + "/" + image + ":" + tag)
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	digest, err := index.Digest()
	return digest.String(), err
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

// written is an overlay as people write it, generated as kustomize leaves it.
const written = `# Staging of %[1]s. Ask in #todo before you change the replicas.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: "todo"

images:
# Pinned by CI: leave this to the bot.
- name: "%[2]s" # the API
  newTag: "v0"
  digest: %[3]s
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
- digest: %[3]s
  name: %[2]s
  newTag: v0
resources:
- ../../base
`

// addConfig makes a config repository with about so many files, with an app for
// each of the pins (image to digest, "" for a tag alone), and lets the bot write to it.
func (s *stand) addConfig(ctx context.Context, dir, repo string, files int, pins map[string]string) error {
	if err := s.gitea.AddRepo(ctx, repo, bot); err != nil {
		return err
	}
	at := filepath.Join(dir, repo+".git")
	if err := git(ctx, nil, "init", "--quiet", "--bare", at); err != nil {
		return err
	}
	read, write := io.Pipe()
	go func() { write.CloseWithError(s.fastImport(write, files, pins)) }()
	if err := git(ctx, read, "-C", at, "fast-import", "--quiet"); err != nil {
		return err
	}
	admin := url.UserPassword(s.gitea.Admin, giteareal.Password).String()
	remote := "http://" + admin + "@" + s.forge.server + "/" + s.gitea.Admin + "/" + repo + ".git"
	return git(ctx, nil, "-C", at, "push", "--quiet", "--force", remote, "main")
}

// fastImport writes one commit: each app is four files in a team's directory.
func (s *stand) fastImport(to io.Writer, files int, pins map[string]string) error {
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "commit refs/heads/main\ncommitter mei <mei@acme.example> %d +0000\ndata 13\nAdd the apps\n\n", time.Now().Unix())
	file := func(path, text string) {
		fmt.Fprintf(out, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
	}
	app := func(dir, team, app, image, digest string) {
		file(dir+"/base/deployment.yaml", fmt.Sprintf(deployment, app, team, image))
		file(dir+"/base/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [deployment.yaml]\n")
		production := fmt.Sprintf(generated, app, image, digest)
		if digest == "" {
			production = strings.Replace(production, "- digest: \n  name", "- name", 1)
		}
		file(dir+"/overlays/staging/kustomization.yaml", strings.Replace(fmt.Sprintf(written, app, image, digest), "  digest: \n", "", 1))
		file(dir+"/overlays/production/kustomization.yaml", production)
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

func git(ctx context.Context, in io.Reader, args ...string) error {
	command := exec.CommandContext(ctx, "git", args...)
	command.Stdin = in
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}
