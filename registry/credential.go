package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/authn"
)

// errNothing: a source that was asked has no credential for the registry.
var errNothing = errors.New("no credential there")

// login is a user with a password, or one of the two kinds of token that
// Docker's configuration knows; the zero value is nobody.
type login = authn.AuthConfig

// candidate is a credential, or a source that can be asked for one.
type candidate struct {
	source string // for people, e.g. `GITHUB_TOKEN`
	prefix string // of the repository's path, whole elements; "" covers all
	fetch  func(context.Context) (login, error)
	asked  bool // whether fetch goes somewhere, so that asking again may help

	secrets *secrets
	good    atomic.Bool // the registry took it once
	mu      sync.Mutex
	known   bool
	renewed bool
	value   login
	err     error
}

// covers says whether the credential is meant for a repository.
func (c *candidate) covers(repository string) bool {
	return c.prefix == "" || repository == c.prefix || strings.HasPrefix(repository, c.prefix+"/")
}

// get fetches the credential once; an ended context is no answer and not kept.
func (c *candidate) get(ctx context.Context) (login, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.ask(ctx)
	}
	return c.value, c.err
}

func (c *candidate) ask(ctx context.Context) {
	c.value, c.err = c.fetch(ctx)
	c.known = c.err == nil || ctx.Err() == nil
	for _, secret := range []string{c.value.Password, c.value.IdentityToken, c.value.RegistryToken} {
		c.secrets.add(secret)
	}
	if c.value.Password != "" {
		c.secrets.add(strings.TrimPrefix(basic(c.value), "Basic "))
	}
}

// renew asks the source once more after a refusal, and says whether that brought
// another credential. A second caller gets what the first one brought.
func (c *candidate) renew(ctx context.Context, refused login) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked && !c.renewed {
		c.renewed = true
		c.ask(ctx)
	}
	return c.err == nil && c.value != refused
}

// kill notes that the registry refused the credential as such.
func (c *candidate) kill(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.err = true, err
}

// keychain knows where credentials may be. The order of its sources is from the
// most explicit to the most general:
//
//  1. TAGBOAT_REGISTRY_HOST with TAGBOAT_REGISTRY_USER and
//     TAGBOAT_REGISTRY_PASSWORD (or …_PASSWORD_FILE); for more registries
//     TAGBOAT_REGISTRY_2_HOST and so on. The host may be followed by a path.
//  2. What CI gives for its own registry: GITHUB_TOKEN for ghcr.io (or for
//     containers.HOST of a GitHub Enterprise Server), CI_REGISTRY_USER and
//     CI_REGISTRY_PASSWORD, then CI_JOB_TOKEN, for CI_REGISTRY.
//  3. DOCKER_AUTH_CONFIG.
//  4. Docker's config.json (credHelpers, auths by the longest path, credsStore),
//     and the files of Podman.
//  5. In process: Google (gcr.io, pkg.dev) and Amazon ECR.
//
// A credential that is refused gives way to the next one, and at last to none.
type keychain struct {
	options Options
	secrets *secrets
	named   []named
	files   func() []*dockerConfig // read once, at the first look-up
	helper  func(ctx context.Context, program, server string) (login, error)
	clouds  []cloud
}

// named is a credential of the TAGBOAT_REGISTRY_* variables.
type named struct {
	host, prefix, variable string
	value                  login
}

func newKeychain(o Options, s *secrets) (*keychain, error) {
	k := &keychain{options: o, secrets: s, helper: runHelper, clouds: clouds()}
	k.files = sync.OnceValue(func() []*dockerConfig { return readDockerConfigs(o) })
	for i := 1; ; i++ {
		variable := "TAGBOAT_REGISTRY"
		if i > 1 {
			variable = fmt.Sprintf("TAGBOAT_REGISTRY_%d", i)
		}
		n, err := readNamed(o.Env, variable)
		if err != nil {
			return nil, err
		}
		if n.host == "" && i > 1 {
			return k, nil
		}
		if n.host != "" {
			s.add(n.value.Password)
			k.named = append(k.named, n)
		}
	}
}

// readNamed reads one set of variables; a password without a host is an error, as
// it must not go to whichever registry is asked first.
func readNamed(env func(string) string, variable string) (named, error) {
	host, user, password := env(variable+"_HOST"), env(variable+"_USER"), env(variable+"_PASSWORD")
	if file := env(variable + "_PASSWORD_FILE"); password == "" && file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return named{}, fmt.Errorf("read %s_PASSWORD_FILE: %w", variable, err)
		}
		password = strings.TrimRight(string(content), "\r\n")
	}
	switch {
	case host == "" && user == "" && password == "":
		return named{}, nil
	case host == "":
		return named{}, fmt.Errorf("%s_USER or %s_PASSWORD is set without %s_HOST: say which registry it is for", variable, variable, variable)
	case password == "":
		return named{}, fmt.Errorf("%s_HOST is set without %s_PASSWORD or %s_PASSWORD_FILE", variable, variable, variable)
	}
	key, prefix := splitKey(host)
	return named{key, prefix, variable + "_PASSWORD", login{Username: user, Password: password}}, nil
}

// lookup lists the candidates for a registry, and the sources that have none.
func (k *keychain) lookup(host string) (candidates []*candidate, absent []string) {
	add := func(found []*candidate, source string) {
		candidates = append(candidates, found...)
		if len(found) == 0 {
			absent = append(absent, source)
		}
	}
	add(k.fromNamed(host), "TAGBOAT_REGISTRY_HOST")
	add(k.fromGitHub(host), "GITHUB_TOKEN")
	add(k.fromGitLab(host), "CI_REGISTRY")
	for _, file := range k.files() {
		add(file.candidates(k, host), file.String())
	}
	for _, cloud := range k.clouds {
		if cloud.covers(host) {
			add([]*candidate{k.candidate(cloud.name, "", true, func(ctx context.Context) (login, error) { return cloud.get(ctx, host) })}, "")
		}
	}
	return candidates, absent
}

func (k *keychain) candidate(source, prefix string, asked bool, fetch func(context.Context) (login, error)) *candidate {
	return &candidate{source: source, prefix: prefix, asked: asked, fetch: fetch, secrets: k.secrets}
}

// static is a credential that is already there.
func (k *keychain) static(source, prefix string, value login) *candidate {
	return k.candidate(source, prefix, false, func(context.Context) (login, error) { return value, nil })
}

func (k *keychain) fromNamed(host string) (found []*candidate) {
	for _, n := range k.named {
		if n.host == host {
			found = append(found, k.static(n.variable, n.prefix, n.value))
		}
	}
	return longestFirst(found)
}

// fromGitHub gives the job's token to the container registry of the server that
// issued it, and to no other: a token of an Enterprise Server is not ghcr.io's.
func (k *keychain) fromGitHub(host string) []*candidate {
	token, user := k.options.Env("GITHUB_TOKEN"), k.options.Env("GITHUB_ACTOR")
	registry := "ghcr.io"
	if server := hostname(strings.TrimPrefix(k.options.Env("GITHUB_SERVER_URL"), "https://")); server != "" && server != "github.com" {
		registry = "containers." + server
	}
	if token == "" || host != registry {
		return nil
	}
	if user == "" {
		user = "tagboat" // ghcr.io wants a name and looks at the token alone
	}
	return []*candidate{k.static("GITHUB_TOKEN", "", login{Username: user, Password: token})}
}

func (k *keychain) fromGitLab(host string) (found []*candidate) {
	env := k.options.Env
	if own := env("CI_REGISTRY"); own == "" || canonicalHost(own) != host {
		return nil
	}
	if user, password := env("CI_REGISTRY_USER"), env("CI_REGISTRY_PASSWORD"); user != "" && password != "" {
		found = append(found, k.static("CI_REGISTRY_PASSWORD", "", login{Username: user, Password: password}))
	}
	if token := env("CI_JOB_TOKEN"); token != "" && token != env("CI_REGISTRY_PASSWORD") {
		found = append(found, k.static("CI_JOB_TOKEN", "", login{Username: "gitlab-ci-token", Password: token}))
	}
	return found
}
