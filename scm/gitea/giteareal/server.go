// Package giteareal runs a real Gitea server for end-to-end tests, and plays the
// person who works beside Tagboat on it. Nothing of the product imports it.
package giteareal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Options say what to start.
type Options struct {
	// Binary is a Gitea of any version, built with -tags 'sqlite sqlite_unlock_notify'
	// and -ldflags -X main.Version=VERSION.
	Binary string
	Dir    string // an empty directory of its own
	// Static is the directory with the templates, options and public files of that
	// version; "" asks `go mod download` for the module that the binary says it is of.
	Static string
}

// Server is a running Gitea with one administrator.
type Server struct {
	URL   string // http://127.0.0.1:PORT
	Admin string // login of the administrator
	Token string // of the administrator, with all scopes
	// Version is what the running server says of itself: 1.26.0.
	Version string

	options Options
	config  string
	process *exec.Cmd
	log     *os.File
}

// Password is that of every user whom the package makes.
const Password = "correct-horse-battery"

// Start writes a configuration, makes the database and the administrator, starts
// the server on a free port of 127.0.0.1 and waits until it answers.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Static == "" {
		var err error
		if o.Static, err = moduleDir(ctx, o); err != nil {
			return nil, err
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Admin: "tagboat-admin", options: o}
	if err := s.configure(port); err != nil {
		return nil, err
	}
	if _, err := s.command(ctx, "migrate"); err != nil {
		return nil, err
	}
	_, err = s.command(ctx, "admin", "user", "create", "--admin", "--username", s.Admin, "--password", Password,
		"--email", s.Admin+"@acme.example", "--must-change-password=false")
	if err != nil {
		return nil, err
	}
	out, err := s.command(ctx, "admin", "user", "generate-access-token", "--username", s.Admin, "--scopes", "all", "--raw")
	if err != nil {
		return nil, err
	}
	words := strings.Fields(out)
	s.Token = words[len(words)-1]
	return s, s.serve(ctx)
}

// saysVersion is what gitea --version begins with.
var saysVersion = regexp.MustCompile(`(?i)^gitea version v?(\S+)`)

// moduleDir is where the module lies that the binary was built from.
func moduleDir(ctx context.Context, o Options) (string, error) {
	out, err := exec.CommandContext(ctx, o.Binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", o.Binary, err)
	}
	version := saysVersion.FindSubmatch(out)
	if version == nil {
		return "", fmt.Errorf("ask %s for its version: it says %q", o.Binary, out)
	}
	module := "code.gitea.io/gitea@v" + string(version[1])
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Dir = o.Dir // no module's: its go.sum stays as it is
	if out, err = download.Output(); err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil || m.Dir == "" {
		return "", fmt.Errorf("download %s: no directory in %q", module, out)
	}
	return m.Dir, nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) configure(port int) error {
	user := os.Getenv("USER")
	if os.Geteuid() == 0 {
		user = "root"
	}
	conf := fmt.Sprintf(`I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
RUN_USER = %s
RUN_MODE = prod
[database]
DB_TYPE = sqlite3
PATH = %s
SQLITE_JOURNAL_MODE = WAL
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %d
ROOT_URL = %s/
STATIC_ROOT_PATH = %s
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = false
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_v1
ALLOWED_HOST_LIST = loopback
[service]
DISABLE_REGISTRATION = true
[actions]
ENABLED = true
[webhook]
ALLOWED_HOST_LIST = loopback
DELIVER_TIMEOUT = 5
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
LEVEL = warn
`, user, filepath.Join(s.options.Dir, "gitea.db"), port, s.URL, s.options.Static)
	s.config = filepath.Join(s.options.Dir, "app.ini")
	if err := os.WriteFile(s.config, []byte(conf), 0o600); err != nil {
		return fmt.Errorf("configure Gitea: %w", err)
	}
	return nil
}

// command runs one of Gitea's own commands to its end.
func (s *Server) command(ctx context.Context, args ...string) (string, error) {
	cmd := s.gitea(ctx, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("gitea %s: %w: %s %s", args[0], err, out.String(), errOut.String())
	}
	return out.String(), nil
}

func (s *Server) gitea(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.options.Binary, append([]string{"--work-path", s.options.Dir, "--config", s.config}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+s.options.Dir, "GIT_CONFIG_NOSYSTEM=1")
	return cmd
}

func (s *Server) serve(ctx context.Context) error {
	log, err := os.Create(filepath.Join(s.options.Dir, "web.log"))
	if err != nil {
		return fmt.Errorf("start Gitea: %w", err)
	}
	s.log = log
	s.process = s.gitea(context.WithoutCancel(ctx), "web")
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start Gitea: %w", err)
	}
	for range 300 {
		var answer struct{ Version string }
		if status, err := s.Call(ctx, "", http.MethodGet, "/version", nil, &answer); status == http.StatusOK && err == nil {
			s.Version = answer.Version
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.Stop())
		case <-time.After(200 * time.Millisecond):
		}
	}
	return errors.Join(fmt.Errorf("start Gitea: it does not answer, see %s", log.Name()), s.Stop())
}

// AtLeast tells whether the server is Gitea 1.minor or newer.
func (s *Server) AtLeast(minor int) bool {
	var major, have int
	_, err := fmt.Sscanf(s.Version, "%d.%d", &major, &have)
	return err == nil && (major > 1 || major == 1 && have >= minor)
}

// Stop ends the server and waits until it has ended.
func (s *Server) Stop() error {
	if s.process == nil || s.process.Process == nil {
		return nil
	}
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop Gitea: %w", err)
	}
	timer := time.AfterFunc(20*time.Second, func() { _ = s.process.Process.Kill() })
	defer timer.Stop()
	_ = s.process.Wait() // its status after a signal says nothing
	return s.log.Close()
}
