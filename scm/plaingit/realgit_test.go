//go:build e2e

package plaingit_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"tagboat/scm"
	"tagboat/scm/plaingit"
	"tagboat/scm/scmtest"
)

// realGit runs git in a repository, without this machine's configuration.
func realGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = gitEnv()
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("SKIPPED: no git on this machine; nothing was tested against it")
	}
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}
}

// overHTTP serves a bare repository with git's own http-backend.
func overHTTP(t *testing.T, bare *scmtest.Bare) (url string) {
	t.Helper()
	backend := filepath.Join(realGit(t, bare.Dir, "--exec-path"), "git-http-backend")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: append(gitEnv(),
		"GIT_PROJECT_ROOT="+filepath.Dir(bare.Dir), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=mei")})
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(bare.Dir)
}

func conformsOnGit(t *testing.T, o func(*testing.T, *scmtest.Bare) plaingit.Options) {
	t.Helper()
	scmtest.Conform(t, func(t *testing.T) scmtest.Harness {
		bare := newBare(t)
		t.Cleanup(func() { realGit(t, bare.Dir, "fsck", "--strict", "--full") })
		return scmtest.Harness{
			Repo: open(t, o(t, bare)), Person: bare, Can: scmtest.Can{CompareAndSwap: true, Rebuild: true},
		}
	})
}

func TestConformOnGitOverHTTP(t *testing.T) {
	conformsOnGit(t, func(t *testing.T, bare *scmtest.Bare) plaingit.Options {
		return plaingit.Options{URL: overHTTP(t, bare), Depth: 2}
	})
}

func TestConformOnGitOverSSH(t *testing.T) {
	conformsOnGit(t, func(t *testing.T, bare *scmtest.Bare) plaingit.Options {
		addr, key := overSSH(t)
		return plaingit.Options{URL: "ssh://git@" + addr + bare.Dir, SSHKeyFile: key, Depth: 2}
	})
}

func TestUnknownSSHHostIsRefused(t *testing.T) {
	bare := newBare(t)
	addr, key := overSSH(t)
	empty := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_KNOWN_HOSTS", empty)
	_, err := open(t, plaingit.Options{URL: "ssh://git@" + addr + bare.Dir, SSHKeyFile: key}).Tip(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "known_hosts") && !strings.Contains(err.Error(), "key is unknown") {
		t.Errorf("got %v", err)
	}
}

func TestWrongSSHKeyIsDenied(t *testing.T) {
	bare := newBare(t)
	addr, _ := overSSH(t)
	other, _ := sshKey(t)
	_, err := open(t, plaingit.Options{URL: "ssh://git@" + addr + bare.Dir, SSHKeyFile: other}).Tip(t.Context(), "")
	if !errors.Is(err, scm.ErrDenied) {
		t.Errorf("got %v, want ErrDenied", err)
	}
}

func TestMissingSSHRepositoryIsNotFound(t *testing.T) {
	addr, key := overSSH(t)
	_, err := open(t, plaingit.Options{URL: "ssh://git@" + addr + "/nonexistent/config.git", SSHKeyFile: key}).Tip(t.Context(), "")
	if !errors.Is(err, scm.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// TestLogIsGits compares the log of a path through merges with git's own.
func TestLogIsGits(t *testing.T) {
	bare := newBare(t)
	for i := range 6 {
		side := fmt.Sprint("side-", i)
		for _, push := range []struct{ branch, path string }{{side, "a.txt"}, {"main", "b.txt"}, {side, "c.txt"}} {
			if _, err := bare.Push(push.branch, "mei", "Change", map[string]string{push.path: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := bare.Merge(side); err != nil {
			t.Fatal(err)
		}
	}
	tip, _ := bare.Branch("main")
	r := open(t, plaingit.Options{URL: bare.URL})
	for _, path := range []string{"", "a.txt", "b.txt", "README.md", "nope"} {
		args := []string{"log", "--format=%H", "--date-order", tip}
		if path != "" {
			args = append(args, "--", path)
		}
		var got []string
		for c, err := range r.Log(t.Context(), tip, path) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, c.SHA)
		}
		if d := cmp.Diff(strings.Fields(realGit(t, bare.Dir, args...)), got); d != "" && len(got) > 0 {
			t.Errorf("log of %q (-git +ours):\n%s", path, d)
		}
	}
}

// sshKey makes a key pair and answers the private one's file.
func sshKey(t *testing.T) (file string, signer ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	return file, signer
}

// overSSH runs an SSH server that lets one key run git's two services, and makes
// its host key known.
func overSSH(t *testing.T) (addr, keyFile string) {
	t.Helper()
	_, host := sshKey(t)
	keyFile, client := sshKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	known := filepath.Join(t.TempDir(), "known_hosts")
	line := knownhosts.Line([]string{knownhosts.Normalize(listener.Addr().String())}, host.PublicKey())
	if err := os.WriteFile(known, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_KNOWN_HOSTS", known)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config)
		}
	}()
	return listener.Addr().String(), keyFile
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				if r.Type != "exec" || len(r.Payload) < 4 {
					_ = r.Reply(r.Type == "env", nil)
					continue
				}
				_ = r.Reply(true, nil)
				status := make([]byte, 4)
				binary.BigEndian.PutUint32(status, runGitService(channel, string(r.Payload[4:])))
				_, _ = channel.SendRequest("exit-status", false, status)
				_ = channel.Close()
			}
		}()
	}
}

// runGitService runs git-upload-pack '/path' or git-receive-pack '/path'.
func runGitService(channel ssh.Channel, command string) (status uint32) {
	service, path, _ := strings.Cut(command, " ")
	if service != "git-upload-pack" && service != "git-receive-pack" {
		return 126
	}
	cmd := exec.Command("git", strings.TrimPrefix(service, "git-"), strings.Trim(path, "'")) //nolint:noctx // ends with its channel
	cmd.Env, cmd.Stdout, cmd.Stderr = gitEnv(), channel, channel.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 127
	}
	go func() {
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	}()
	if cmd.Wait() != nil {
		return 128
	}
	return 0
}
