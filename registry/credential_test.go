package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func auth(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// Who is used for a repository: the first of each line's credentials.
func TestCredentialSources(t *testing.T) {
	const ghe = "https://github.acme.example"
	for name, test := range map[string]struct {
		repository string
		env        map[string]string
		config     string
		podman     string
		want       []string // user, in order
	}{
		"none":                            {repository: "ghcr.io/acme/app"},
		"named":                           {repository: "ghcr.io/acme/app", env: named1("ghcr.io"), want: []string{"acme"}},
		"named, other host":               {repository: "ghcr.io/acme/app", env: named1("quay.io")},
		"named, by path":                  {repository: "ghcr.io/acme/app", env: named1("ghcr.io/acme"), want: []string{"acme"}},
		"named, other path":               {repository: "ghcr.io/acmeco/app", env: named1("ghcr.io/acme")},
		"second named":                    {repository: "quay.io/acme/app", env: with(named1("ghcr.io"), "TAGBOAT_REGISTRY_2_HOST", "quay.io", "TAGBOAT_REGISTRY_2_USER", "second", "TAGBOAT_REGISTRY_2_PASSWORD", "x"), want: []string{"second"}},
		"Docker Hub, named":               {repository: "nginx", env: named1("docker.io"), want: []string{"acme"}},
		"GITHUB_TOKEN":                    {repository: "ghcr.io/acme/app", env: vars("GITHUB_TOKEN", "t", "GITHUB_ACTOR", "mei"), want: []string{"mei"}},
		"GITHUB_TOKEN, no actor":          {repository: "ghcr.io/acme/app", env: vars("GITHUB_TOKEN", "t"), want: []string{"tagboat"}},
		"GITHUB_TOKEN elsewhere":          {repository: "quay.io/acme/app", env: vars("GITHUB_TOKEN", "t")},
		"GITHUB_TOKEN look-alike":         {repository: "ghcr.io.evil.example/acme/app", env: vars("GITHUB_TOKEN", "t")},
		"a GHES token is not ghcr.io's":   {repository: "ghcr.io/acme/app", env: vars("GITHUB_TOKEN", "t", "GITHUB_SERVER_URL", ghe)},
		"a GHES token is its registry's":  {repository: "containers.github.acme.example/acme/app", env: vars("GITHUB_TOKEN", "t", "GITHUB_SERVER_URL", ghe, "GITHUB_ACTOR", "mei"), want: []string{"mei"}},
		"github.com's token is not GHES'": {repository: "containers.github.acme.example/acme/app", env: vars("GITHUB_TOKEN", "t", "GITHUB_SERVER_URL", "https://github.com")},
		"GitLab":                          {repository: "registry.acme.example/g/app", env: vars("CI_REGISTRY", "registry.acme.example", "CI_REGISTRY_USER", "u", "CI_REGISTRY_PASSWORD", "p", "CI_JOB_TOKEN", "j"), want: []string{"u", "gitlab-ci-token"}},
		"GitLab, one token":               {repository: "registry.acme.example/g/app", env: vars("CI_REGISTRY", "registry.acme.example", "CI_REGISTRY_USER", "u", "CI_REGISTRY_PASSWORD", "j", "CI_JOB_TOKEN", "j"), want: []string{"u"}},
		"GitLab, job token alone":         {repository: "registry.acme.example:5050/g/app", env: vars("CI_REGISTRY", "registry.acme.example:5050", "CI_JOB_TOKEN", "j"), want: []string{"gitlab-ci-token"}},
		"GitLab, other registry":          {repository: "quay.io/g/app", env: vars("CI_REGISTRY", "registry.acme.example", "CI_JOB_TOKEN", "j")},
		"GitLab, other port":              {repository: "registry.acme.example:5051/g/app", env: vars("CI_REGISTRY", "registry.acme.example:5050", "CI_JOB_TOKEN", "j")},
		"DOCKER_AUTH_CONFIG alone":        {repository: "quay.io/acme/app", env: vars("DOCKER_AUTH_CONFIG", auths("quay.io", "inline")), want: []string{"inline"}},
		"variable before file":            {repository: "quay.io/acme/app", env: vars("DOCKER_AUTH_CONFIG", auths("quay.io", "inline")), config: auths("quay.io", "file"), want: []string{"inline", "file"}},
		"variable for another host":       {repository: "quay.io/acme/app", env: vars("DOCKER_AUTH_CONFIG", auths("ghcr.io", "inline")), config: auths("quay.io", "file"), want: []string{"file"}},
		"variable that is broken":         {repository: "quay.io/acme/app", env: vars("DOCKER_AUTH_CONFIG", "{"), config: auths("quay.io", "file"), want: []string{"!is not valid JSON of Docker's form", "file"}},
		"named before all":                {repository: "ghcr.io/acme/app", env: with(named1("ghcr.io"), "GITHUB_TOKEN", "t", "GITHUB_ACTOR", "mei", "DOCKER_AUTH_CONFIG", auths("ghcr.io", "inline")), config: auths("ghcr.io", "file"), want: []string{"acme", "mei", "inline", "file"}},
		"user and password":               {repository: "quay.io/acme/app", config: `{"auths":{"quay.io":{"username":"u","password":"p"}}}`, want: []string{"u"}},
		"key is a URL":                    {repository: "quay.io/acme/app", config: auths("https://quay.io/v2/", "url"), want: []string{"url"}},
		"key has a port":                  {repository: "quay.io:8443/acme/app", config: auths("quay.io:8443", "port"), want: []string{"port"}},
		"key has another port":            {repository: "quay.io:8443/acme/app", config: auths("quay.io", "port")},
		"empty entry":                     {repository: "quay.io/acme/app", config: `{"auths":{"quay.io":{}}}`},
		"longest path": {repository: "reg.example/teamb/app", config: `{"auths":{"reg.example":{"auth":"` + auth("a", "x") + `"},"reg.example/teamb":{"auth":"` + auth("b", "x") + `"},"reg.example/teamb/app":{"auth":"` + auth("c", "x") + `"},"reg.example/team":{"auth":"` + auth("d", "x") + `"}}}`,
			want: []string{"c", "b", "a"}},
		"Hub: official key":  {repository: "nginx", config: auths("https://index.docker.io/v1/", "hub"), want: []string{"hub"}},
		"Hub: docker.io":     {repository: "docker.io/acme/app", config: auths("docker.io", "hub"), want: []string{"hub"}},
		"Hub: index":         {repository: "acme/app", config: auths("index.docker.io", "hub"), want: []string{"hub"}},
		"Hub: registry-1":    {repository: "registry-1.docker.io/acme/app", config: auths("registry-1.docker.io", "hub"), want: []string{"hub"}},
		"Hub: other key":     {repository: "nginx", config: auths("hub.example", "hub")},
		"Podman's file":      {repository: "quay.io/acme/app", podman: auths("quay.io", "podman"), want: []string{"podman"}},
		"Docker, Podman":     {repository: "quay.io/acme/app", config: auths("quay.io", "docker"), podman: auths("quay.io", "podman"), want: []string{"docker", "podman"}},
		"helper":             {repository: "quay.io/acme/app", config: `{"credHelpers":{"quay.io":"one"},"auths":{"quay.io":{"auth":"` + auth("file", "x") + `"}},"credsStore":"two"}`, want: []string{"one for quay.io", "file", "two for quay.io"}},
		"helper of another":  {repository: "quay.io/acme/app", config: `{"credHelpers":{"ghcr.io":"one"}}`},
		"store, Docker Hub":  {repository: "nginx", config: `{"credsStore":"two"}`, want: []string{"two for https://index.docker.io/v1/"}},
		"helper, Docker Hub": {repository: "nginx", config: `{"credHelpers":{"https://index.docker.io/v1/":"one"}}`, want: []string{"one for https://index.docker.io/v1/"}},
	} {
		t.Run(name, func(t *testing.T) {
			variables := with(map[string]string{}, "DOCKER_CONFIG", t.TempDir())
			for key, value := range test.env {
				variables[key] = value
			}
			if test.config != "" {
				variables["DOCKER_CONFIG"] = dockerConfigDir(t, test.config)
			}
			if test.podman != "" {
				variables["REGISTRY_AUTH_FILE"] = filepath.Join(dockerConfigDir(t, test.podman), "config.json")
			}
			c := newClient(t, Options{Env: env(variables)})
			c.keys.helper = func(_ context.Context, program, server string) (login, error) {
				return login{Username: program + " for " + server, Password: "x"}, nil
			}
			s := c.session(test.repository)
			s.candidates, s.absent = c.keys.lookup(s.host)
			var got []string
			for _, candidate := range s.usable(path(test.repository)) {
				value, err := candidate.get(context.Background())
				if err != nil {
					value.Username = "!" + err.Error()
				}
				got = append(got, value.Username)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if len(got) == 0 && len(s.absent) == 0 {
				t.Error("no credential, and no source is said to have none")
			}
		})
	}
}

func auths(key, user string) string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, key, auth(user, "x"))
}

func vars(pairs ...string) map[string]string { return with(map[string]string{}, pairs...) }

func with(variables map[string]string, pairs ...string) map[string]string {
	for i := 0; i < len(pairs); i += 2 {
		variables[pairs[i]] = pairs[i+1]
	}
	return variables
}

// Without $DOCKER_CONFIG the file is in the home directory.
// onWindows is n there, and 0 elsewhere.
func onWindows(n int) int {
	if runtime.GOOS != "windows" {
		return 0
	}
	return n
}

func TestDockerConfigInHome(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".docker", "config.json")
	if err := os.WriteFile(file, []byte(auths("quay.io", "home")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  map[string]string
		dir  string
		want int
	}{
		"home":                     {env: vars("HOME", home), want: 1},
		"Windows":                  {env: vars("USERPROFILE", home), want: 1},
		"HOME of Git's bash":       {env: vars("USERPROFILE", home, "HOME", t.TempDir()), want: onWindows(1)},
		"a profile elsewhere":      {env: vars("USERPROFILE", t.TempDir(), "HOME", home), want: 1 - onWindows(1)},
		"another DOCKER_CONFIG":    {env: vars("HOME", home, "DOCKER_CONFIG", t.TempDir())},
		"ConfigDir wins":           {env: vars("DOCKER_CONFIG", filepath.Dir(file)), dir: t.TempDir()},
		"nothing is set":           {env: vars()},
		"a directory, not a file":  {env: vars("DOCKER_CONFIG", filepath.Dir(home), "REGISTRY_AUTH_FILE", home), want: 1},
		"Podman's runtime is none": {env: vars("XDG_RUNTIME_DIR", t.TempDir())},
	} {
		c := newClient(t, Options{Env: env(test.env), ConfigDir: test.dir})
		if found, _ := c.keys.lookup("quay.io"); len(found) != test.want {
			t.Errorf("%s: %d credentials, want %d", name, len(found), test.want)
		}
	}
}

func TestNamedCredentialsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  map[string]string
		says string // of the error
		want string // password
	}{
		"no host":        {env: vars("TAGBOAT_REGISTRY_PASSWORD", "secret-value"), says: "TAGBOAT_REGISTRY_HOST"},
		"user, no host":  {env: vars("TAGBOAT_REGISTRY_USER", "acme"), says: "TAGBOAT_REGISTRY_HOST"},
		"no password":    {env: vars("TAGBOAT_REGISTRY_HOST", "quay.io"), says: "TAGBOAT_REGISTRY_PASSWORD_FILE"},
		"second no host": {env: with(named1("quay.io"), "TAGBOAT_REGISTRY_2_PASSWORD", "secret-value"), says: "TAGBOAT_REGISTRY_2_HOST"},
		"file":           {env: vars("TAGBOAT_REGISTRY_HOST", "quay.io", "TAGBOAT_REGISTRY_PASSWORD_FILE", file), want: "from-a-file"},
		"file is absent": {env: vars("TAGBOAT_REGISTRY_HOST", "quay.io", "TAGBOAT_REGISTRY_PASSWORD_FILE", file+".absent"), says: "PASSWORD_FILE"},
	} {
		c, err := New(Options{Env: env(test.env)})
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret-value") {
				t.Errorf("%s: %v, want an error that names %s", name, err, test.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		found, _ := c.keys.lookup("quay.io")
		if value, err := found[0].get(context.Background()); err != nil || value.Password != test.want {
			t.Errorf("%s: %v, want its password", name, err)
		}
	}
}

// Real programs, as Docker runs them.
func TestHelperPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	bin := t.TempDir()
	for name, script := range map[string]string{
		"good":    `read -r server; [ "$1 $server" = "get quay.io" ] || exit 3; echo '{"ServerURL":"quay.io","Username":"acme","Secret":"s3cret"}'`,
		"token":   `echo '{"Username":"<token>","Secret":"refresh"}'`,
		"empty":   `echo "credentials not found in native keychain"; exit 1`,
		"nobody":  `echo '{"Username":"","Secret":""}'`,
		"failing": `echo "secret-in-output"; echo "secret-in-stderr" >&2; exit 1`,
		"junk":    `echo "not JSON"`,
	} {
		if err := os.WriteFile(filepath.Join(bin, "docker-credential-"+name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for program, test := range map[string]struct {
		want login
		err  string
	}{
		"good":      {want: login{Username: "acme", Password: "s3cret"}},
		"token":     {want: login{IdentityToken: "refresh"}},
		"empty":     {err: errNothing.Error()},
		"nobody":    {err: errNothing.Error()},
		"failing":   {err: "it failed"},
		"junk":      {err: "it failed"},
		"absent":    {err: "not installed"},
		"../good":   {err: "no name of a helper"},
		"good;ls":   {err: "no name of a helper"},
		"":          {err: "no name of a helper"},
		"-rf":       {err: "no name of a helper"},
		"good good": {err: "no name of a helper"},
	} {
		got, err := runHelper(context.Background(), program, "quay.io")
		if got != test.want || (err == nil) != (test.err == "") || (err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "secret"))) {
			t.Errorf("%q: user %q, %v; want %q, %q", program, got.Username, err, test.want.Username, test.err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := runHelper(ctx, "good", "quay.io"); err == nil {
		t.Error("with an ended context: no error")
	}
}

func TestCloudHosts(t *testing.T) {
	for host, want := range map[string]string{
		"gcr.io": "google", "eu.gcr.io": "google", "europe-docker.pkg.dev": "google", "gcr.io.evil.example": "", "evilgcr.io": "", "pkg.dev.example": "",
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com": "aws", "123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com": "aws",
		"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn": "aws", "public.ecr.aws": "aws", "123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.example": "", "ghcr.io": "",
	} {
		got := map[bool]string{isGoogle(host): "google", isECR(host): "aws"}[true]
		if got != want {
			t.Errorf("%s is %q, want %q", host, got, want)
		}
	}
}

// A cloud's credential comes last, is asked for once, and is of use.
func TestCloudCredential(t *testing.T) {
	const host = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
	c := newClient(t, Options{Env: env(vars("DOCKER_AUTH_CONFIG", auths(host, "inline")))})
	asked := 0
	for i := range c.keys.clouds {
		c.keys.clouds[i].get = func(_ context.Context, h string) (login, error) {
			asked++
			if h != host {
				return login{}, errors.New("another host")
			}
			return login{Username: "AWS", Password: "twelve-hours"}, nil
		}
	}
	found, _ := c.keys.lookup(host)
	if len(found) != 2 {
		t.Fatalf("%d candidates, want 2", len(found))
	}
	for range 3 {
		if value, err := found[1].get(context.Background()); err != nil || value.Username != "AWS" {
			t.Errorf("%v, %v", value.Username, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
