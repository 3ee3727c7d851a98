package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker-credential-helpers/client"
	"github.com/docker/docker-credential-helpers/credentials"
)

const (
	hubServer     = "https://index.docker.io/v1/" // the key under which Docker keeps Docker Hub's credential
	helperTimeout = 30 * time.Second
)

// helperName keeps a configuration file from naming a program elsewhere.
var helperName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// dockerConfig is one file of Docker's form, or the variable that holds one. A
// file that cannot be read is no reason to stop before a registry has refused us.
type dockerConfig struct {
	source  string
	absent  bool
	problem error
	Auths   map[string]json.RawMessage `json:"auths"`
	Helpers map[string]string          `json:"credHelpers"`
	Store   string                     `json:"credsStore"`
}

// String is the source, and why it gave nothing.
func (d *dockerConfig) String() string {
	switch {
	case d.absent:
		return d.source + " (not there)"
	case d.problem != nil:
		return fmt.Sprintf("%s (%v)", d.source, d.problem)
	}
	return d.source
}

// readDockerConfigs reads the variable, Docker's file and Podman's files.
func readDockerConfigs(o Options) []*dockerConfig {
	var all []*dockerConfig
	if inline := o.Env("DOCKER_AUTH_CONFIG"); inline != "" {
		all = append(all, parseDockerConfig("DOCKER_AUTH_CONFIG", []byte(inline)))
	}
	files := []string{dockerConfigFile(o)}
	if file := o.Env("REGISTRY_AUTH_FILE"); file != "" {
		files = append(files, file)
	} else if dir := o.Env("XDG_RUNTIME_DIR"); dir != "" {
		files = append(files, filepath.Join(dir, "containers", "auth.json"))
	}
	for i, file := range files {
		content, err := os.ReadFile(file)
		switch {
		case file == "" || (i > 0 && errors.Is(err, fs.ErrNotExist)):
			continue
		case errors.Is(err, fs.ErrNotExist):
			all = append(all, &dockerConfig{source: file, absent: true})
		case err != nil:
			all = append(all, &dockerConfig{source: file, problem: errors.New("cannot be read")})
		default:
			all = append(all, parseDockerConfig(file, content))
		}
	}
	return all
}

func dockerConfigFile(o Options) string {
	if dir := cmp.Or(o.ConfigDir, o.Env("DOCKER_CONFIG")); dir != "" {
		return filepath.Join(dir, "config.json")
	}
	names := []string{"HOME", "USERPROFILE"}
	if runtime.GOOS == "windows" { // Docker asks there for no HOME, which Git's bash sets
		slices.Reverse(names)
	}
	if home := cmp.Or(o.Env(names[0]), o.Env(names[1])); home != "" {
		return filepath.Join(home, ".docker", "config.json")
	}
	return ""
}

// parseDockerConfig never repeats the content in an error: it holds secrets.
func parseDockerConfig(source string, content []byte) *dockerConfig {
	d := &dockerConfig{source: source}
	if err := json.Unmarshal(content, d); err != nil {
		return &dockerConfig{source: source, problem: errors.New("is not valid JSON of Docker's form")}
	}
	return d
}

// candidates lists what the file has for a registry: its helper, its entries by
// the longest path, the store.
func (d *dockerConfig) candidates(k *keychain, host string) (found []*candidate) {
	if d.problem != nil {
		problem := d.problem
		return []*candidate{k.candidate(d.source, "", false, func(context.Context) (login, error) { return login{}, problem })}
	}
	for key, program := range d.Helpers {
		if own, prefix := splitKey(key); own == host {
			found = append(found, d.helper(k, program, key, prefix))
		}
	}
	found = longestFirst(found)
	var entries []*candidate
	for key, raw := range d.Auths {
		if own, prefix := splitKey(key); own == host && !emptyEntry(raw) {
			entries = append(entries, k.candidate(fmt.Sprintf("%s (auths, %s)", d.source, key), prefix, false, func(context.Context) (login, error) { return readEntry(raw) }))
		}
	}
	found = append(found, longestFirst(entries)...)
	if d.Store != "" {
		server := host
		if host == canonicalHost("docker.io") {
			server = hubServer
		}
		found = append(found, d.helper(k, d.Store, server, ""))
	}
	return found
}

func (d *dockerConfig) helper(k *keychain, program, server, prefix string) *candidate {
	source := fmt.Sprintf("docker-credential-%s (named in %s)", program, d.source)
	return k.candidate(source, prefix, true, func(ctx context.Context) (login, error) { return k.helper(ctx, program, server) })
}

// emptyEntry: with a store, Docker leaves {} behind as a mark.
func emptyEntry(raw json.RawMessage) bool {
	var entry map[string]any
	return json.Unmarshal(raw, &entry) == nil && len(entry) == 0
}

// readEntry reads auth, username and password, identitytoken or registrytoken.
func readEntry(raw json.RawMessage) (login, error) {
	var value login
	if err := json.Unmarshal(raw, &value); err != nil {
		return login{}, errors.New("its auth is not base64 of user:password")
	}
	value.Auth = ""
	value.Password = strings.TrimRight(value.Password, "\x00")
	if value == (login{}) {
		return value, errNothing
	}
	return value, nil
}

// longestFirst orders the candidates of one source by their path, so that the
// choice among several of one host is the closest and never random.
func longestFirst(found []*candidate) []*candidate {
	slices.SortStableFunc(found, func(a, b *candidate) int {
		return cmp.Or(len(b.prefix)-len(a.prefix), strings.Compare(a.source, b.source))
	})
	return found
}

// splitKey reads the key of an entry: a host, a URL (of which /v1/ and /v2/ are
// no path of a repository) or a host with a path.
func splitKey(key string) (host, prefix string) {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, prefix, _ = strings.Cut(key, "/")
	prefix = strings.Trim(prefix, "/")
	if prefix == "v1" || prefix == "v2" {
		prefix = ""
	}
	return canonicalHost(host), prefix
}

// canonicalHost takes Docker Hub's spellings for one.
func canonicalHost(host string) string {
	switch host = strings.ToLower(host); host {
	case "docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		return "index.docker.io"
	}
	return host
}

// runHelper asks a docker-credential program, as Docker does.
func runHelper(ctx context.Context, program, server string) (login, error) {
	if !helperName.MatchString(program) {
		return login{}, errors.New("that is no name of a helper")
	}
	path, err := exec.LookPath("docker-credential-" + program)
	if err != nil {
		return login{}, errors.New("that program is not installed here")
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	got, err := client.Get(func(args ...string) client.Program { return &helperRun{cmd: exec.CommandContext(ctx, path, args...)} }, server)
	switch {
	case ctx.Err() != nil:
		return login{}, fmt.Errorf("it did not answer within %s", helperTimeout)
	case credentials.IsErrCredentialsNotFound(err):
		return login{}, errNothing
	case err != nil:
		return login{}, errors.New("it failed; run it by hand to see why")
	case got.Username == "" && got.Secret == "":
		return login{}, errNothing
	case got.Username == "<token>":
		return login{IdentityToken: got.Secret}, nil
	}
	return login{Username: got.Username, Password: got.Secret}, nil
}

// helperRun keeps a helper's standard error, which may hold anything, away from ours.
type helperRun struct{ cmd *exec.Cmd }

func (h *helperRun) Input(in io.Reader) { h.cmd.Stdin = in }

func (h *helperRun) Output() ([]byte, error) {
	var out bytes.Buffer
	h.cmd.Stdout, h.cmd.WaitDelay = &out, time.Second
	err := h.cmd.Run()
	return out.Bytes(), err
}
