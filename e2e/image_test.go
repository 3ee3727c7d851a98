//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the real bases have, as far as the Dockerfile uses it. The programs and Go
// come from this machine, mounted while the image is built.
const (
	goBase = `FROM scratch
COPY . /
ENV PATH=/goroot/bin:/usr/bin:/bin GOPROXY=off GOFLAGS= GOCACHE=/cache GOMODCACHE=/modules
`
	shellBase = `FROM scratch
COPY . /
`
)

// TestImages builds the images without a network and without containers: buildah
// in a chroot, on stand-ins for the bases.
func TestImages(t *testing.T) {
	b := newBuilder(t)
	b.bases(t)
	t.Run("plain", func(t *testing.T) {
		first := b.build(t, "plain", runtime.GOARCH)
		if again := b.build(t, "plain", runtime.GOARCH); again != first {
			t.Errorf("built twice, the image is %s and %s", first, again)
		}
		b.wantConfig(t, "plain", "Tagboat")
		root := b.mount(t, "plain")
		if got := inside(t, root, "/tagboat", "version"); got != "tagboat v0.0.1\n" {
			t.Errorf("tagboat version says %q", got)
		}
		b.wantSize(t, root, 60<<20)
		for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "LICENSE"} {
			if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s is not in the image: %v", name, err)
			}
		}
		if info, err := os.Stat(filepath.Join(root, "tmp")); err != nil || info.Mode().Perm() != 0o777 {
			t.Errorf("nobody but root can write to /tmp: %v, %v", info, err)
		}
		if _, err := os.Stat(filepath.Join(root, "bin")); err == nil {
			t.Error("there is more than tagboat in the image")
		}
	})
	t.Run("shell", func(t *testing.T) {
		b.build(t, "shell", runtime.GOARCH, "--target", "shell")
		b.wantConfig(t, "shell", "Tagboat with a shell")
		if got := inside(t, b.mount(t, "shell"), "/bin/sh", "-c", "tagboat version"); got != "tagboat v0.0.1\n" {
			t.Errorf("tagboat version in a shell says %q", got)
		}
	})
	t.Run("for another processor", func(t *testing.T) {
		if os.Getenv("TAGBOAT_GORELEASER") == "" {
			t.Skip("SKIPPED: E2E_RELEASE=1 e2e/run builds for other processors")
		}
		other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
		b.build(t, "other", other)
		if got := architecture(t, "linux", filepath.Join(b.mount(t, "other"), "tagboat")); got != other {
			t.Errorf("the image for %s has a binary for %s", other, got)
		}
	})
}

// builder is a buildah with a store of its own.
type builder struct{ dir string }

func newBuilder(t *testing.T) *builder {
	t.Helper()
	for _, name := range []string{"buildah", "busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED: the images are not built here, for there is no %s (e2e/install buildah)", name)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: the images are not built here, for buildah needs root to build in a chroot")
	}
	b := &builder{dir: t.TempDir()}
	t.Cleanup(func() { b.run(t, "unmount", "--all"); b.run(t, "rm", "--all") })
	return b
}

func (b *builder) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	defer cancel()
	stores := []string{"--root", filepath.Join(b.dir, "store"), "--runroot", filepath.Join(b.dir, "run"), "--storage-driver", "vfs"}
	command := exec.CommandContext(ctx, "buildah", append(stores, args...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("buildah %s: %v\n%s%s", args[0], err, tail(string(out), 20), tail(stderr.String(), 20))
	}
	return strings.TrimSpace(string(out))
}

// bases makes the stand-ins for the images that the Dockerfile starts from.
func (b *builder) bases(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc/ssl/certs", "usr/bin", "usr/lib", "usr/lib64", "tmp", "goroot", "cache", "modules"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	certificates := "-----BEGIN CERTIFICATE-----\n" // copied, never read
	if err := os.WriteFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"), []byte(certificates), 0o600); err != nil {
		t.Fatal(err)
	}
	b.base(t, "go-base", goBase, root)

	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, busybox, filepath.Join(root, "bin/busybox"))
	if err := os.Chmod(filepath.Join(root, "bin/busybox"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("busybox", filepath.Join(root, "bin/sh")); err != nil {
		t.Fatal(err)
	}
	b.base(t, "shell-base", shellBase, root)
}

func (b *builder) base(t *testing.T, name, dockerfile, root string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(file, []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(t, "build", "--isolation", "chroot", "--pull-never", "--quiet", "--tag", "localhost/"+name, "--file", file, root)
}

// build builds the Dockerfile and returns the digest of what a registry would get.
func (b *builder) build(t *testing.T, name, processor string, options ...string) (digest string) {
	t.Helper()
	goEnv := func(name string) string { return strings.TrimSpace(output(t, "go", "env", name)) }
	args := []string{
		"build", "--isolation", "chroot", "--pull-never", "--quiet", "--timestamp", "0", "--platform", "linux/" + processor,
		"--build-arg", "BUILDPLATFORM=linux/" + runtime.GOARCH, // BuildKit tells it by itself
		"--build-arg", "GO_IMAGE=localhost/go-base", "--build-arg", "SHELL_IMAGE=localhost/shell-base",
		"--build-arg", "VERSION=v0.0.1", "--build-arg", "REVISION=" + strings.Repeat("c0ffee12", 5),
		"--build-arg", "SOURCE=https://github.com/acme/tagboat",
		"--volume", "/usr:/usr:ro", "--volume", goEnv("GOROOT") + ":/goroot:ro",
		"--volume", goEnv("GOMODCACHE") + ":/modules", "--volume", goEnv("GOCACHE") + ":/cache",
		"--tag", "localhost/" + name,
	}
	start := time.Now()
	b.run(t, append(append(args, options...), absolute(t, ".."))...)
	digest = b.run(t, "inspect", "--type", "image", "--format", "{{.FromImageDigest}}", "localhost/"+name)
	t.Logf("%s built in %d s: %s", name, int(time.Since(start).Seconds()), digest)
	return digest
}

func (b *builder) wantConfig(t *testing.T, name, title string) {
	t.Helper()
	var image struct {
		OCIv1 struct {
			Created time.Time
			Config  struct {
				User   string
				Labels map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(b.run(t, "inspect", "--type", "image", "localhost/"+name)), &image); err != nil {
		t.Fatal(err)
	}
	if got := image.OCIv1; got.Config.User != "65532:65532" || got.Created.Unix() != 0 {
		t.Errorf("%s runs as %q and was created at %s, want a numeric user without rights, and no time", name, got.Config.User, got.Created)
	}
	for label, want := range map[string]string{
		"title": title, "licenses": "Apache-2.0", "source": "https://github.com/acme/tagboat", "version": "v0.0.1", "revision": strings.Repeat("c0ffee12", 5),
	} {
		if got := image.OCIv1.Config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
}

// mount lays an image's files out and returns where they are.
func (b *builder) mount(t *testing.T, name string) string {
	t.Helper()
	return b.run(t, "mount", b.run(t, "from", "--pull-never", "localhost/"+name))
}

func (b *builder) wantSize(t *testing.T, root string, most int64) {
	t.Helper()
	var size int64
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	})
	if err != nil || size > most {
		t.Errorf("the image has %d MiB, want at most %d: %v", size>>20, most>>20, err)
	}
	t.Logf("%.1f MiB", float64(size)/(1<<20))
}

// inside runs a program with an image's files alone, as the image's user.
func inside(t *testing.T, root, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Path, command.Err, command.Dir = program, nil, "/"
	command.Env = []string{"HOME=/tmp", "PATH=/usr/local/bin:/bin"}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}
