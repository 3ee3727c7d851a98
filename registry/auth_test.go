package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/registry/registrytest"
)

const password = "correct-horse-battery"

func TestReadChallenge(t *testing.T) {
	for name, test := range map[string]struct {
		headers []string
		want    challenge
	}{
		"none":             {nil, challenge{scheme: "basic"}},
		"basic":            {[]string{`Basic realm="x"`}, challenge{scheme: "basic"}},
		"bearer":           {[]string{`Bearer realm="https://a.example/token",service="a.example",scope="repository:x:pull"`}, challenge{"bearer", "https://a.example/token", "a.example", "repository:x:pull"}},
		"spaces":           {[]string{`bearer realm="https://a.example/token", service="a, b"`}, challenge{"bearer", "https://a.example/token", "a, b", ""}},
		"unquoted":         {[]string{`Bearer realm=https://a.example/token,service=a`}, challenge{"bearer", "https://a.example/token", "a", ""}},
		"escaped":          {[]string{`Bearer realm="https://a.example/t\"x"`}, challenge{scheme: "bearer", realm: `https://a.example/t"x`}},
		"basic, bearer":    {[]string{`Basic realm="x", Bearer realm="https://a.example/token"`}, challenge{scheme: "bearer", realm: "https://a.example/token"}},
		"two headers":      {[]string{`Negotiate`, `Bearer realm="https://a.example/token"`}, challenge{scheme: "bearer", realm: "https://a.example/token"}},
		"bearer, no realm": {[]string{`Bearer service="a"`}, challenge{scheme: "basic"}},
		"junk":             {[]string{`,,= ="`}, challenge{scheme: "basic"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := readChallenge(http.Header{"Www-Authenticate": test.headers})
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(challenge{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSameSite(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"index.docker.io", "auth.docker.io", true}, {"registry.gitlab.com", "gitlab.com", true}, {"registry.acme.example", "GitLab.acme.example:8443", true},
		{"127.0.0.1:5000", "127.0.0.1:5001", true}, {"[::1]:5000", "[::1]:5001", true}, {"localhost:5000", "localhost:1", true},
		{"ghcr.io", "evil.io", false}, {"acme.co.uk", "evil.co.uk", false}, {"127.0.0.1", "127.0.0.2", false}, {"10.1.2.3", "1.2.3", false},
		{"a.github.io", "b.github.io", false}, {"reg.localhost", "x.localhost", false},
	} {
		if got := sameSite(test.a, test.b); got != test.want {
			t.Errorf("sameSite(%s, %s) = %v", test.a, test.b, got)
		}
	}
}

// named are the variables that give user acme's password for a host.
func named1(host string) map[string]string {
	return map[string]string{"TAGBOAT_REGISTRY_HOST": host, "TAGBOAT_REGISTRY_USER": "acme", "TAGBOAT_REGISTRY_PASSWORD": password}
}

func TestHandshakes(t *testing.T) {
	basicHeader := "Basic " + base64.StdEncoding.EncodeToString([]byte("acme:"+password))
	for name, test := range map[string]struct {
		options  []registrytest.Option
		env      func(host string) map[string]string
		requests []string // method and beginning of the path
	}{
		"open":             {nil, nil, []string{"GET /v2/", "GET /v2/acme/app/manifests/v1"}},
		"basic":            {[]registrytest.Option{registrytest.WithBasic("acme", password)}, named1, []string{"GET /v2/", "GET /v2/acme/app/manifests/v1"}},
		"bearer":           {[]registrytest.Option{registrytest.WithToken("acme", password)}, named1, []string{"GET /v2/", "GET /token?", "GET /v2/acme/app/manifests/v1"}},
		"bearer, nobody":   {[]registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithAnonymousPull()}, nil, []string{"GET /v2/", "GET /token?", "GET /v2/acme/app/manifests/v1"}},
		"basic, nobody":    {[]registrytest.Option{registrytest.WithBasic("acme", password), registrytest.WithAnonymousPull()}, nil, []string{"GET /v2/", "GET /v2/acme/app/manifests/v1"}},
		"identity token":   {[]registrytest.Option{registrytest.WithToken("", password)}, identity, []string{"GET /v2/", "POST /token", "GET /v2/acme/app/manifests/v1"}},
		"user without set": {[]registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithAnonymousPull()}, func(string) map[string]string { return named1("other.example") }, []string{"GET /v2/", "GET /token?", "GET /v2/acme/app/manifests/v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := start(t, test.options...)
			digest := push(t, r, "acme/app:v1", registrytest.ImageSpec{})
			variables := map[string]string{}
			if test.env != nil {
				variables = test.env(r.Host())
			}
			c := newClient(t, Options{Env: env(variables), UserAgent: "tagboat/test"})
			got, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")})
			if err != nil || got.Reference.Digest != digest {
				t.Fatalf("%+v, %v", got, err)
			}
			var requests []string
			for _, q := range r.Requests() {
				requests = append(requests, q.Method+" "+q.Path)
				if q.UserAgent != "tagboat/test" {
					t.Errorf("user agent %q", q.UserAgent)
				}
				if q.Path == "/v2/" && q.Authorization != "" {
					t.Error("the ping carries a credential")
				}
				if strings.HasPrefix(q.Authorization, "Basic ") && q.Authorization != basicHeader {
					t.Errorf("%s has an unknown credential", q)
				}
			}
			if !slices.EqualFunc(requests, test.requests, strings.HasPrefix) {
				t.Errorf("requests %q, want %q", requests, test.requests)
			}
		})
	}
}

func identity(host string) map[string]string {
	return map[string]string{"DOCKER_AUTH_CONFIG": fmt.Sprintf(`{"auths":{%q:{"auth":"MDAwMDo=","identitytoken":%q}}}`, host, password)}
}

// A stale credential does not stop a public image; it is said, once.
func TestStaleCredential(t *testing.T) {
	for name, options := range map[string][]registrytest.Option{
		"bearer": {registrytest.WithToken("acme", password), registrytest.WithAnonymousPull()},
		"basic":  {registrytest.WithBasic("acme", password), registrytest.WithAnonymousPull()},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := start(t, options...)
			var qs []Query
			for i := range 20 {
				ref := fmt.Sprintf("acme/app-%d:v1", i)
				push(t, r, ref, registrytest.ImageSpec{})
				qs = append(qs, Query{Reference: reference(t, r.Host()+"/"+ref)})
			}
			variables := named1(r.Host())
			variables["TAGBOAT_REGISTRY_PASSWORD"] = "stale-and-secret"
			var warned []string
			c := newClient(t, Options{Env: env(variables), Warn: func(text string) { warned = append(warned, text) }})
			_, errs := c.ResolveAll(context.Background(), qs)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if len(warned) != 1 || !strings.Contains(warned[0], "TAGBOAT_REGISTRY_PASSWORD") || !strings.Contains(warned[0], "401") || strings.Contains(warned[0], "stale-and-secret") {
				t.Errorf("warnings %q", warned)
			}
			refused := 0
			for _, q := range r.Requests() {
				if q.Status == http.StatusUnauthorized && q.Authorization != "" {
					refused++
				}
			}
			if refused != 1 {
				t.Errorf("the stale credential was sent %d times, want once", refused)
			}
		})
	}
}

// Where a credential is there but will not do, the next one is taken.
func TestNextCredential(t *testing.T) {
	r, _ := start(t, registrytest.WithToken("acme", password))
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	dir := dockerConfigDir(t, fmt.Sprintf(`{"auths":{%q:{"username":"acme","password":%q}}}`, r.Host(), password))
	variables := map[string]string{"CI_REGISTRY": r.Host(), "CI_REGISTRY_USER": "gitlab-ci-token", "CI_REGISTRY_PASSWORD": "expired-job-token", "CI_JOB_TOKEN": "expired-job-token",
		"DOCKER_AUTH_CONFIG": fmt.Sprintf(`{"auths":{%q:{"auth":"`+base64.StdEncoding.EncodeToString([]byte("old:older"))+`"}}}`, r.Host())}
	var warned []string
	c := newClient(t, Options{Env: env(variables), ConfigDir: dir, Warn: func(text string) { warned = append(warned, text) }})
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")}); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "CI_REGISTRY_PASSWORD") || !strings.Contains(warned[0], "DOCKER_AUTH_CONFIG") || !strings.Contains(warned[0], "with "+filepath.Join(dir, "config.json")) {
		t.Errorf("warnings %q", warned)
	}
}

// An error names the registry, the status, each source and one fix, and no secret.
func TestDenied(t *testing.T) {
	for name, test := range map[string]struct {
		host   string
		env    map[string]string
		config string
		turn   func(*registrytest.Registry)
		says   []string
	}{
		"no credential": {host: "registry.example", says: []string{"registry.example", "401 UNAUTHORIZED", "TAGBOAT_REGISTRY_HOST", "GITHUB_TOKEN", "CI_REGISTRY", "config.json (not there)", "docker login registry.example"}},
		"refused": {host: "registry.example", env: map[string]string{"TAGBOAT_REGISTRY_HOST": "registry.example", "TAGBOAT_REGISTRY_USER": "acme", "TAGBOAT_REGISTRY_PASSWORD": "wrong-password"},
			says: []string{"TAGBOAT_REGISTRY_PASSWORD: refused with 401 UNAUTHORIZED"}},
		"ghcr.io": {host: "ghcr.io", env: map[string]string{"GITHUB_TOKEN": "ghs_wrong-password"},
			says: []string{"GITHUB_TOKEN: refused with 401", "packages: read", "Manage Actions access", "GitHub App"}},
		"ghcr.io at the registry": {host: "ghcr.io", env: map[string]string{"GITHUB_TOKEN": password, "GITHUB_ACTOR": "acme"}, turn: func(r *registrytest.Registry) { r.Fail(registrytest.Match{Path: "/manifests/"}, 403, "DENIED") },
			says: []string{"GITHUB_TOKEN: refused with 403 DENIED", "packages: read"}},
		"GitLab": {host: "registry.acme.example", env: map[string]string{"CI_REGISTRY": "registry.acme.example", "CI_JOB_TOKEN": "glcbt-wrong-password"},
			says: []string{"CI_JOB_TOKEN: refused with 401", "allowlist"}},
		"robot":          {host: "harbor.example", env: map[string]string{"TAGBOAT_REGISTRY_HOST": "harbor.example", "TAGBOAT_REGISTRY_USER": "robot", "TAGBOAT_REGISTRY_PASSWORD": "wrong-password"}, says: []string{"robot$name", "escape the $"}},
		"helper missing": {host: "registry.example", config: `{"credsStore":"nowhere-to-be-found"}`, says: []string{"docker-credential-nowhere-to-be-found", "not installed"}},
		"config broken":  {host: "registry.example", config: `{"auths":{"registry.example":{"auth":"d3Jvbmct`, says: []string{"config.json", "not valid JSON"}},
		"entry broken":   {host: "registry.example", config: `{"auths":{"registry.example":{"auth":"wrong-password!"}}}`, says: []string{"auths, registry.example", "not base64"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(registrytest.WithToken("acme", password), registrytest.WithRealm("https://"+test.host+"/token"))
			defer r.Close()
			push(t, r, "acme/app:v1", registrytest.ImageSpec{})
			if test.turn != nil {
				test.turn(r)
			}
			dir := t.TempDir()
			if test.config != "" {
				dir = dockerConfigDir(t, test.config)
			}
			c := newClient(t, Options{Env: env(test.env), ConfigDir: dir, base: elsewhere{test.host: r.URL()}})
			_, err := c.Resolve(context.Background(), Query{Reference: reference(t, test.host+"/acme/app:v1")})
			if !errors.Is(err, ErrDenied) {
				t.Fatalf("%v, want ErrDenied", err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			for _, secret := range append(c.Secrets(), "wrong-password", password) {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("a secret is in: %v", err)
				}
			}
		})
	}
}

// Cloud registries have their own fixes; their credentials come from fakes here.
func TestDeniedByClouds(t *testing.T) {
	for host, says := range map[string]string{
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com": "ecr:BatchGetImage",
		"europe-docker.pkg.dev":                        "roles/artifactregistry.reader",
		"acme.azurecr.io":                              "az acr login",
	} {
		r := registrytest.New(registrytest.WithBasic("acme", password))
		c := newClient(t, Options{base: elsewhere{host: r.URL()}})
		for i := range c.keys.clouds {
			c.keys.clouds[i].get = noCloud
		}
		_, err := c.Resolve(context.Background(), Query{Reference: reference(t, host+"/acme/app:v1")})
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want ErrDenied that says %q", host, err, says)
		}
		r.Close()
	}
}

// What the registry says is quoted, cut, and never holds what we sent.
func TestRegistryEchoesTheSecret(t *testing.T) {
	r, _ := start(t, registrytest.WithToken("acme", password))
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED\u001b[31m","message":"bad %s %s\n::error::x %s"}]}`, password, req.Header.Get("Authorization"), strings.Repeat("x", 5000))
	}))
	defer front.Close()
	host := strings.TrimPrefix(front.URL, "http://")
	c := newClient(t, Options{Env: env(named1(host))})
	_, err := c.Resolve(context.Background(), Query{Reference: reference(t, host+"/acme/app:v1")})
	if !errors.Is(err, ErrDenied) {
		t.Fatal(err)
	}
	text := err.Error()
	if strings.Contains(text, password) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("acme:"+password))) {
		t.Errorf("a secret is in: %s", text)
	}
	if strings.ContainsAny(text, "\x1b\n") || len(text) > 2000 {
		t.Errorf("not fit for a line: %q", text)
	}
}

func TestTokenExpires(t *testing.T) {
	r, _ := start(t, registrytest.WithToken("acme", password))
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	c := newClient(t, Options{Env: env(named1(r.Host()))})
	for range 3 {
		if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")}); err != nil {
			t.Fatal(err)
		}
		r.ExpireTokens()
	}
	if n := r.Count("GET", "/token"); n != 3 {
		t.Errorf("%d tokens, want 3: a new one for each that expired", n)
	}
}

// A helper's first credential is refused: it is asked once more, not per image.
func TestHelperIsAskedAgain(t *testing.T) {
	r, _ := start(t, registrytest.WithToken("acme", password))
	var qs []Query
	for i := range 10 {
		ref := fmt.Sprintf("acme/app-%d:v1", i)
		push(t, r, ref, registrytest.ImageSpec{})
		qs = append(qs, Query{Reference: reference(t, r.Host()+"/"+ref)})
	}
	c := newClient(t, Options{ConfigDir: dockerConfigDir(t, fmt.Sprintf(`{"credHelpers":{%q:"cached"}}`, r.Host()))})
	var mu sync.Mutex
	asked := 0
	c.keys.helper = func(_ context.Context, program, server string) (login, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if program != "cached" || server != r.Host() {
			t.Errorf("asked %s for %s", program, server)
		}
		if asked == 1 {
			return login{Username: "acme", Password: "twelve-hours-old"}, nil
		}
		return login{Username: "acme", Password: password}, nil
	}
	_, errs := c.ResolveAll(context.Background(), qs)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if asked != 2 {
		t.Errorf("the helper was asked %d times, want 2", asked)
	}
}

// A credential goes to the registry and to token servers of its own domain.
func TestCredentialStaysAtHome(t *testing.T) {
	var mu sync.Mutex
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		stolen = append(stolen, req.Header.Get("Authorization")+req.URL.Query().Get("password"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer thief.Close()
	const host = "registry.example"
	for name, test := range map[string]struct {
		options []registrytest.Option
		hosts   []string
		turn    func(*registrytest.Registry)
		want    error
		says    string
		sent    bool
	}{
		"realm elsewhere":           {options: []registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithRealm("https://thief.test/token")}, want: ErrDenied, says: "TAGBOAT_REGISTRY_TOKEN_HOSTS=thief.test"},
		"realm elsewhere, named":    {options: []registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithRealm("https://thief.test/token")}, hosts: []string{"thief.test"}, want: ErrDenied, sent: true},
		"realm inside this network": {options: []registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithRealm("https://169.254.169.254/token")}, want: ErrUnavailable, says: "inside this network"},
		"realm without TLS":         {options: []registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithRealm("http://registry.example/token")}, want: ErrUnavailable, says: "without TLS"},
		"realm is no URL":           {options: []registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithRealm("token")}, want: ErrUnavailable, says: "no URL"},
		"token server redirects": {options: []registrytest.Option{registrytest.WithToken("acme", password), registrytest.WithRealm("https://registry.example/token")},
			turn: func(r *registrytest.Registry) {
				r.Redirect(registrytest.Match{Path: "/token"}, "https://thief.test/token")
			}, want: ErrUnavailable, says: "307"},
		"manifest redirects": {options: []registrytest.Option{registrytest.WithBasic("acme", password)},
			turn: func(r *registrytest.Registry) {
				r.Redirect(registrytest.Match{Path: "/manifests/"}, "https://thief.test/x")
			}, want: ErrUnavailable, says: "thief.test"},
		"to a subdomain": {options: []registrytest.Option{registrytest.WithBasic("acme", password)},
			turn: func(r *registrytest.Registry) {
				r.Redirect(registrytest.Match{Path: "/manifests/"}, "https://sub.registry.example/x")
			}, want: ErrUnavailable, says: "sub.registry.example"},
		"out of TLS": {options: []registrytest.Option{registrytest.WithBasic("acme", password)},
			turn: func(r *registrytest.Registry) {
				r.Redirect(registrytest.Match{Path: "/manifests/"}, "http://registry.example/x")
			}, want: ErrUnavailable, says: "leaves TLS"},
		"into this network": {options: []registrytest.Option{registrytest.WithBasic("acme", password)},
			turn: func(r *registrytest.Registry) {
				r.Redirect(registrytest.Match{Path: "/manifests/"}, "https://10.0.0.8/x")
			}, want: ErrUnavailable, says: "inside this network"},
		"in circles": {options: []registrytest.Option{registrytest.WithBasic("acme", password)},
			turn: func(r *registrytest.Registry) {
				r.Redirect(registrytest.Match{Path: "/manifests/"}, "https://registry.example/v2/acme/app/manifests/v1")
			}, want: ErrUnavailable, says: "fifth in a row"},
		"ping to a login page": {options: []registrytest.Option{registrytest.WithBasic("acme", password)},
			turn: func(r *registrytest.Registry) {
				r.Answer(registrytest.Match{Path: "/v2/"}, "text/html", []byte("<html>"))
			}, want: ErrUnavailable, says: "web page"},
	} {
		t.Run(name, func(t *testing.T) {
			stolen = nil
			r, _ := start(t, test.options...)
			push(t, r, "acme/app:v1", registrytest.ImageSpec{})
			if test.turn != nil {
				test.turn(r)
			}
			c := newClient(t, Options{Env: env(named1(host)), TokenHosts: test.hosts, base: elsewhere{host: r.URL(), "thief.test": thief.URL, "sub.registry.example": thief.URL}})
			_, err := c.Resolve(context.Background(), Query{Reference: reference(t, host+"/acme/app:v1")})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %v that says %q", err, test.want, test.says)
			}
			if got := strings.Join(stolen, "") != ""; got != test.sent {
				t.Errorf("the credential was sent elsewhere: %v, want %v", got, test.sent)
			}
		})
	}
}

// registry.k8s.io is a door to other registries, which want a token of their own.
func TestRedirectToAnotherRegistry(t *testing.T) {
	real := registrytest.New(registrytest.WithToken("acme", "another-password"), registrytest.WithAnonymousPull(), registrytest.WithRealm("https://real.test/token"))
	defer real.Close()
	digest := push(t, real, "images/app:v1", registrytest.ImageSpec{})
	door := registrytest.New()
	defer door.Close()
	door.Redirect(registrytest.Match{Path: "/app/manifests/v1"}, "https://real.test/v2/images/app/manifests/v1")
	door.Redirect(registrytest.Match{Path: "/v2/"}, "https://real.test/v2/")
	c := newClient(t, Options{Env: env(named1("door.test")), base: elsewhere{"door.test": door.URL(), "real.test": real.URL()}})
	got, err := c.Resolve(context.Background(), Query{Reference: reference(t, "door.test/app:v1")})
	if err != nil || got.Reference.Digest != digest {
		t.Errorf("%+v, %v", got, err)
	}
	for _, q := range real.Requests() {
		if strings.HasPrefix(q.Authorization, "Basic ") {
			t.Errorf("the door's credential went to the registry behind it: %s", q)
		}
	}
}

// Some registries let anyone ping and want a credential for a repository.
func TestChallengeOnlyAtTheManifest(t *testing.T) {
	r, _ := start(t, registrytest.WithToken("acme", password))
	digest := push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/v2/" {
			return
		}
		to, _ := url.Parse(r.URL())
		req.URL.Scheme, req.URL.Host, req.RequestURI = to.Scheme, to.Host, ""
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer drain(resp)
		for key, values := range resp.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(resp.StatusCode)
		a, err := readAnswer(resp, maxManifest)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = w.Write(a.body)
	}))
	defer front.Close()
	host := strings.TrimPrefix(front.URL, "http://")
	c := newClient(t, Options{Env: env(named1(host))})
	got, err := c.Resolve(context.Background(), Query{Reference: reference(t, host+"/acme/app:v1")})
	if err != nil || got.Reference.Digest != digest {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each secret is told before it is used.
func TestSecretsAreTold(t *testing.T) {
	r, _ := start(t, registrytest.WithToken("acme", password))
	push(t, r, "acme/app:v1", registrytest.ImageSpec{})
	var told []string
	c := newClient(t, Options{Env: env(named1(r.Host())), Secret: func(secret string) { told = append(told, secret) }})
	if _, err := c.Resolve(context.Background(), Query{Reference: reference(t, r.Host()+"/acme/app:v1")}); err != nil {
		t.Fatal(err)
	}
	for _, q := range r.Requests() {
		_, secret, found := strings.Cut(q.Authorization, " ")
		if found && !slices.Contains(told, secret) {
			t.Errorf("%s was sent with a secret that was not told", q)
		}
	}
	slices.Sort(told)
	if diff := cmp.Diff(c.Secrets(), told); diff != "" || !slices.Contains(told, password) {
		t.Errorf("told %d secrets: %s", len(told), diff)
	}
}

func dockerConfigDir(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func noCloud(context.Context, string) (login, error) { return login{}, errNothing }
