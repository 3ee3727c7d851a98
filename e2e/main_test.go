//go:build e2e

// Package e2e tells the story of a promotion on real parts: a Gitea, the
// distribution registry, GitHub's emulator, a browser, and the built command.
// e2e/run builds them and says where they are.
package e2e

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tool returns the path in the variable that e2e/run sets; "-" is a tool that this
// machine could not install.
func tool(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "-" {
		t.Skipf("SKIPPED: what %s names could not be installed here", variable)
	}
	if path == "" {
		t.Fatalf("%s is not set: run these tests with e2e/run", variable)
	}
	return path
}

// server starts a program that serves on a free port of 127.0.0.1, waits until
// ready answers 200, and stops it by its own process id when the test ends. Its
// log is shown when the test failed.
func server(t *testing.T, ready string, command *exec.Cmd) {
	t.Helper()
	name := filepath.Base(command.Path)
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // a server that was told to stop has no news
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = command.Process.Kill()
			<-ended
		}
		log.Close()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s said last:\n%s", name, tail(string(text), 30))
		}
	})
	waitFor(t, name+" at "+ready, 90*time.Second, func() bool {
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s ended by itself:\n%s", name, tail(string(text), 30))
		default:
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ready, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// waitFor polls what a server does in the background.
func waitFor(t *testing.T, what string, limit time.Duration, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not there after %s", what, limit)
		}
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
