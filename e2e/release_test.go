//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestRelease runs the release workflow on this machine, as far as this is no GitHub,
// and uses what it published. It builds for six platforms twice, so it is run when it
// is asked for.
func TestRelease(t *testing.T) {
	if os.Getenv("TAGBOAT_GORELEASER") == "" {
		t.Skip("SKIPPED: no release is built here; E2E_RELEASE=1 e2e/run builds one")
	}
	const version = "v0.1.0"
	r := newRehearsal(t)
	bare, published := filepath.Join(r.dir, "tagboat"), filepath.Join(r.dir, "releases", version)
	t.Run("refused", func(t *testing.T) { wantRefused(t, r, bare, version) })
	if log, err := r.run(t, version); err != nil || strings.Contains(log, releaseToken) {
		t.Fatalf("%v, or the token is in the log:\n%s", err, tail(log, 60))
	}
	if got := git(t, bare, "diff", "--name-only", "main", version); got != "action/checksums.txt\naction/release\n" {
		t.Errorf("the tag differs from main in\n%s", got)
	}
	t.Run("binaries", func(t *testing.T) { wantBinaries(t, published) })
	t.Run("bills of materials", func(t *testing.T) { wantBills(t, published, version) })
	t.Run("signature", func(t *testing.T) {
		sums := filepath.Join(published, "checksums.txt")
		r.cosign(t, "verify-blob", "--key", "cosign.pub", "--insecure-ignore-tlog", "--bundle", sums+".sigstore.json", sums)
		check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "checksums.txt")
		check.Dir = published
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("images", func(t *testing.T) { wantImages(t, r, published) })

	action := filepath.Join(t.TempDir(), "tagboat") // as a workflow gets it that names the commit
	git(t, bare, "clone", "-q", "--branch", version, bare, action)
	t.Run("install", func(t *testing.T) {
		i := installer{action: filepath.Join(action, "action"), temp: t.TempDir()}
		i.want(t, 0, "")
		if got := output(t, filepath.Join(i.temp, "tagboat", "tagboat"), "version"); got != "tagboat "+version+"\n" {
			t.Errorf("the installed binary says %q", got)
		}
	})
	t.Run("built again", func(t *testing.T) { wantSameBytes(t, action) })
}

// wantSameBytes builds a released commit again.
func wantSameBytes(t *testing.T, released string) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, tool(t, "TAGBOAT_GORELEASER"), "release", "--clean", "--skip=publish,sign,sbom")
	build.Dir, build.Env = released, append(os.Environ(), "SOURCE_DATE_EPOCH=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("goreleaser: %v\n%s", err, tail(string(out), 40))
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "../action/checksums.txt")
	check.Dir = filepath.Join(released, "dist")
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 6 {
		t.Errorf("%v\n%s", err, out)
	}
}

// wantBinaries looks into each binary: it is for the system and processor that its
// archive is named after.
func wantBinaries(t *testing.T, dist string) {
	unpack := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		for _, system := range []string{"linux", "darwin", "windows"} {
			name := "tagboat_" + system + "_" + arch
			archive := filepath.Join(dist, name+".tar.gz")
			to := filepath.Join(unpack, name)
			if err := os.Mkdir(to, 0o755); err != nil {
				t.Fatal(err)
			}
			output(t, "tar", "-xzf", archive, "-C", to)
			binary := filepath.Join(to, "tagboat")
			if system == "windows" {
				binary += ".exe"
			}
			if got := architecture(t, system, binary); got != arch {
				t.Errorf("%s holds a binary for %s", archive, got)
			}
			packed, err := os.Stat(archive)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := os.Stat(binary)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %.1f MiB, packed %.1f MiB", name, float64(plain.Size())/(1<<20), float64(packed.Size())/(1<<20))
		}
	}
}

func architecture(t *testing.T, system, binary string) string {
	t.Helper()
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	reader := bytes.NewReader(text)
	switch system {
	case "linux":
		file, err := elf.NewFile(reader)
		if err != nil {
			t.Fatal(err)
		}
		return map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[file.Machine]
	case "darwin":
		file, err := macho.NewFile(reader)
		if err != nil {
			t.Fatal(err)
		}
		return map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[file.Cpu]
	}
	file, err := pe.NewFile(reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[file.Machine]
}

func wantBills(t *testing.T, dist, version string) {
	bills, err := filepath.Glob(filepath.Join(dist, "*.cdx.json"))
	if err != nil || len(bills) != 6 {
		t.Fatalf("%d bills of materials, want 6: %v", len(bills), err)
	}
	for _, name := range bills {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			Metadata   struct{ Component struct{ Version string } }
			Components []struct{ Name string }
		}
		if err := json.Unmarshal(text, &bill); err != nil || len(bill.Components) < 20 || bill.Metadata.Component.Version != version {
			t.Errorf("%s lists %d components of %q: %v", name, len(bill.Components), bill.Metadata.Component.Version, err)
		}
	}
}

// installer runs the Action's install script as a runner does.
type installer struct {
	action, temp string
	env          []string
}

// want runs the script and checks its exit code and what it says.
func (i installer) want(t *testing.T, exit int, says string) {
	t.Helper()
	install := exec.CommandContext(t.Context(), "bash", filepath.Join(i.action, "install"))
	install.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + i.temp, "RUNNER_TEMP=" + i.temp}, i.env...)
	out, err := install.CombinedOutput()
	if install.ProcessState == nil {
		t.Fatal(err)
	}
	if got := install.ProcessState.ExitCode(); got != exit || !strings.Contains(string(out), says) {
		t.Errorf("exit %d, want %d and %q:\n%s", got, exit, says, out)
	}
}

// fakeRelease is an Action whose release has one archive, for this machine, with a
// program that says which it is.
func fakeRelease(t *testing.T, program string) (action, mirror string) {
	t.Helper()
	action, mirror = t.TempDir(), t.TempDir()
	copyFile(t, "../action/install", filepath.Join(action, "install"))
	if err := os.WriteFile(filepath.Join(mirror, "tagboat"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	archive := "tagboat_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	output(t, "tar", "-czf", filepath.Join(mirror, archive), "-C", mirror, "tagboat")
	sum, _, _ := strings.Cut(output(t, "sha256sum", filepath.Join(mirror, archive)), " ")
	for name, text := range map[string]string{"checksums.txt": sum + "  " + archive + "\r\n", "release": "https://releases.invalid/v0.0.1\n"} {
		if err := os.WriteFile(filepath.Join(action, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return action, mirror
}

func TestInstallChecksWhatItDownloads(t *testing.T) {
	const first, other = "#!/bin/sh\necho first\n", "#!/bin/sh\necho other\n"
	action, mirror := fakeRelease(t, first)
	_, stranger := fakeRelease(t, other)
	installed := func(temp string) string {
		text, err := os.ReadFile(filepath.Join(temp, "tagboat", "tagboat"))
		if err != nil {
			return ""
		}
		return string(text)
	}
	tests := []struct {
		name    string
		env     []string
		exit    int
		says    string
		program string
	}{
		{"from a mirror", []string{"DOWNLOAD_URL=file://" + mirror + "/"}, 0, "", first},
		{"on a runner that tells its system", []string{"DOWNLOAD_URL=file://" + mirror, "RUNNER_OS=Linux", "RUNNER_ARCH=X64"}, 0, "", first},
		{"other bytes", []string{"DOWNLOAD_URL=file://" + stranger}, 2, "is not what was released: its SHA-256 is", ""},
		{"no such file", []string{"DOWNLOAD_URL=file://" + t.TempDir()}, 2, "set download-url to a mirror", ""},
		{"a system without a binary", []string{"DOWNLOAD_URL=file://" + mirror, "RUNNER_OS=Linux", "RUNNER_ARCH=ARM"}, 2, "no binary for Linux on ARM", ""},
		{"a platform without a checksum", []string{"DOWNLOAD_URL=file://" + mirror, "RUNNER_OS=Windows", "RUNNER_ARCH=ARM64"}, 2, "no checksum for tagboat_windows_arm64.tar.gz", ""},
		{"a word for a switch", []string{"BUILD_FROM_SOURCE=yes"}, 2, "neither true nor false", ""},
		{"no Go to build with", []string{"BUILD_FROM_SOURCE=true", "PATH=/usr/bin:/bin"}, 2, "add a step with actions/setup-go", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := installer{action: action, temp: t.TempDir(), env: tt.env}
			i.want(t, tt.exit, tt.says)
			if got := installed(i.temp); got != tt.program {
				t.Errorf("installed %q, want %q", got, tt.program)
			}
		})
	}
	t.Run("a second time without a download", func(t *testing.T) {
		i := installer{action: action, temp: t.TempDir(), env: []string{"DOWNLOAD_URL=file://" + mirror}}
		i.want(t, 0, "")
		i.env = []string{"DOWNLOAD_URL=file://" + t.TempDir()}
		i.want(t, 0, "")
	})
	t.Run("a file that was changed since", func(t *testing.T) {
		i := installer{action: action, temp: t.TempDir(), env: []string{"DOWNLOAD_URL=file://" + mirror}}
		i.want(t, 0, "")
		files, err := filepath.Glob(filepath.Join(i.temp, "tagboat", "*.tar.gz"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v: %v", files, err)
		}
		copyFile(t, strings.Replace(files[0], filepath.Join(i.temp, "tagboat"), stranger, 1), files[0])
		i.want(t, 0, "")
		if got := installed(i.temp); got != first {
			t.Errorf("installed %q", got)
		}
	})
	t.Run("no release", func(t *testing.T) {
		bare := t.TempDir()
		copyFile(t, "../action/install", filepath.Join(bare, "install"))
		installer{action: bare, temp: t.TempDir(), env: []string{"BUILD_FROM_SOURCE=false"}}.want(t, 2, "This commit is not a release")
	})
}

// TestRunPassesInputsOn gives the script what nobody should have to quote.
func TestRunPassesInputsOn(t *testing.T) {
	temp := t.TempDir()
	show := "#!/bin/bash\n" + `printf '<%s>\n' "$@"` + "\n"
	if err := os.MkdirAll(filepath.Join(temp, "tagboat"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp, "tagboat", "tagboat"), []byte(show), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		env  []string
		want []string
	}{
		{"nothing", nil, []string{"promote", "--"}},
		{"values", []string{"TAGBOAT_INPUT_PATH= overlays/staging\n", "TAGBOAT_INPUT_ALLOW_MOVED_TAG=true", "TAGBOAT_INPUT_BASE="}, []string{"promote", "--allow-moved-tag=true", "--path=overlays/staging", "--"}},
		{"lists", []string{"TAGBOAT_INPUT_LABEL=a b\r\n\n  c,d\n", "TAGBOAT_ACTION_IMAGE=x:1, y:2\nz:3"}, []string{"promote", "--label=a b", "--label=c,d", "--", "x:1", "y:2", "z:3"}},
		{"what a shell would run", []string{`TAGBOAT_INPUT_BASE=$(touch pwned) "; touch pwned`, "TAGBOAT_ACTION_ARGS=--reason=it's `late` *\n-x"}, []string{"promote", `--base=$(touch pwned) "; touch pwned`, "--reason=it's `late` *", "-x", "--"}},
		{"another command", []string{"TAGBOAT_ACTION_COMMAND=hold", "TAGBOAT_ACTION_ARGS=production"}, []string{"hold", "production", "--"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), "bash", absolute(t, "../action/run"))
			run.Dir = t.TempDir()
			run.Env = append([]string{"PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + temp}, tt.env...)
			out, err := run.Output()
			if err != nil {
				t.Fatal(err)
			}
			if want := "<" + strings.Join(tt.want, ">\n<") + ">\n"; string(out) != want {
				t.Errorf("got\n%swant\n%s", out, want)
			}
			if left, err := os.ReadDir(run.Dir); err != nil || len(left) > 0 {
				t.Errorf("the script left %v: %v", left, err)
			}
		})
	}
}
