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
	"strings"
	"syscall"
	"time"
)

// module is what the binary is built from; its templates are served from there.
const module = "code.gitea.io/gitea@v1.26.0"

// Options say what to start.
type Options struct {
	Binary string // built with -tags 'sqlite sqlite_unlock_notify'
	Dir    string // an empty directory of its own
	// Static is the directory with the module's templates, options and public
	// files; "" asks `go mod download` for it.
	Static string
}

// Server is a running Gitea with one administrator.
type Server struct {
	URL   string // http://127.0.0.1:PORT
	Admin string // login of the administrator
	Token string // of the administrator, with all scopes

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
		if o.Static, err = moduleDir(ctx); err != nil {
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
	out, err := s.command(ctx, "admin", "user", "create", "--admin", "--username", s.Admin, "--password", Password,
		"--email", s.Admin+"@acme.example", "--must-change-password=false", "--access-token", "--access-token-scopes", "all")
	if err != nil {
		return nil, err
	}
	words := strings.Fields(out)
	s.Token = words[len(words)-1]
	return s, s.serve(ctx)
}

func moduleDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	if err != nil {
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
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/version", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.Stop())
		case <-time.After(200 * time.Millisecond):
		}
	}
	return errors.Join(fmt.Errorf("start Gitea: it does not answer, see %s", log.Name()), s.Stop())
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
