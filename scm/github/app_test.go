package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tagboat/scm"
	"tagboat/scm/github"
	"tagboat/scm/github/githubtest"
)

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pkcs1(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func pkcs8(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

type appCase struct {
	server  *githubtest.Server
	clock   *clock
	app     github.App
	secrets []string
	mu      sync.Mutex
}

func newAppCase(t *testing.T, key *rsa.PrivateKey, change func(*githubtest.FakeApp)) *appCase {
	t.Helper()
	c := &appCase{clock: newClock(), app: github.App{ID: "12345", PrivateKey: pkcs1(key)}}
	fake := &githubtest.FakeApp{ID: "12345", Key: &key.PublicKey, InstallationID: 77, Now: c.clock.Now}
	if change != nil {
		change(fake)
	}
	c.server = githubtest.New(t, store(t), githubtest.Options{Enterprise: true, App: fake})
	return c
}

func (c *appCase) open(t *testing.T) *github.Repository {
	t.Helper()
	r, err := github.New(github.Options{
		BaseURL: c.server.URL(), Owner: "acme", Name: "config", App: &c.app,
		Transport: scm.TransportOptions{Sleep: c.clock.Sleep, Now: c.clock.Now},
		OnSecret:  func(s string) { c.mu.Lock(); c.secrets = append(c.secrets, s); c.mu.Unlock() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const mint = "POST app/installations/{installation_id}/access_tokens"

// The key in each of its forms, the installation given or asked for.
func TestAppMintsOneToken(t *testing.T) {
	key := newKey(t)
	for name, c := range map[string]struct {
		key string
		id  int64
		ops []string
	}{
		"PKCS#1":              {pkcs1(key), 0, []string{"GET installation", mint}},
		"PKCS#8":              {pkcs8(t, key), 77, []string{mint}},
		`line ends as \n`:     {strings.ReplaceAll(pkcs1(key), "\n", `\n`), 77, []string{mint}},
		"blanks at both ends": {"\n  " + pkcs1(key) + "\n\n", 77, []string{mint}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAppCase(t, key, nil)
			a.app.PrivateKey, a.app.InstallationID = c.key, c.id
			r := a.open(t)
			promote(t, r, v2)
			if got := a.server.Ops(); !slices.Equal(got[:len(c.ops)], c.ops) || count(got, mint) != 1 {
				t.Errorf("calls %v, want %v first and one token", got, c.ops)
			}
			if len(a.secrets) != 3 || !slices.ContainsFunc(a.secrets, func(s string) bool { return strings.HasPrefix(s, "ghs_12345_") }) {
				t.Errorf("%d secrets were told, want key, JWT and token", len(a.secrets))
			}
		})
	}
}

func TestAppRenewsItsToken(t *testing.T) {
	a := newAppCase(t, newKey(t), nil)
	r := a.open(t)
	tip := func() {
		t.Helper()
		if _, err := r.Tip(t.Context(), "main"); err != nil {
			t.Fatal(err)
		}
	}
	tip()
	_ = a.clock.Sleep(t.Context(), 58*time.Minute)
	tip()
	if n := count(a.server.Ops(), mint); n != 1 {
		t.Errorf("%d tokens within the hour", n)
	}
	_ = a.clock.Sleep(t.Context(), 90*time.Second)
	tip()
	if n := count(a.server.Ops(), mint); n != 2 {
		t.Errorf("%d tokens, want a second one a minute before the first ends", n)
	}
	// GitHub takes tokens back when the App's permissions change.
	a.server.Revoke()
	tip()
	if n := count(a.server.Ops(), mint); n != 3 {
		t.Errorf("%d tokens, want a third one after a 401", n)
	}
	a.server.Revoke()
	if pr := promote(t, r, v2); pr.Number != 1 {
		t.Errorf("pull request %+v", pr)
	}
}

// A runner's clock that is ahead of GitHub's: the JWT is made again by GitHub's.
func TestAppWhoseClockIsAhead(t *testing.T) {
	var a *appCase
	a = newAppCase(t, newKey(t), func(f *githubtest.FakeApp) {
		f.Now = func() time.Time { return a.clock.Now().Add(-3 * time.Minute) }
	})
	if _, err := a.open(t).Tip(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	if n := count(a.server.Ops(), "GET installation"); n != 2 {
		t.Errorf("asked %d times, want twice: %v", n, a.server.Ops())
	}
}

func TestAppThatIsRefused(t *testing.T) {
	key := newKey(t)
	for name, c := range map[string]struct {
		change func(*githubtest.FakeApp)
		fail   *githubtest.Answer
		kind   error
		words  string
	}{
		"another key":   {func(f *githubtest.FakeApp) { f.Key = &newKey(t).PublicKey }, nil, scm.ErrDenied, "do not belong together"},
		"not installed": {func(f *githubtest.FakeApp) { f.NotInstalled = true }, nil, scm.ErrDenied, "install the App on the repository"},
		"lacks a right": {nil, &githubtest.Answer{Status: 422, Message: "The permissions requested are not granted to this installation."}, scm.ErrDenied, "contents:write and pull_requests:write"},
		"server":        {nil, &githubtest.Answer{Status: 503, Message: "Service Unavailable"}, scm.ErrUnavailable, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAppCase(t, key, c.change)
			if c.fail != nil {
				a.server.Fail(mint, -1, *c.fail)
			}
			_, err := a.open(t).Tip(t.Context(), "main")
			wantError(t, err, c.kind, c.words, "GitHub App 12345", "acme/config")
			for _, secret := range a.secrets {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error holds a secret: %v", err)
				}
			}
		})
	}
}

func TestAppKeysThatAreNone(t *testing.T) {
	key := newKey(t)
	for name, app := range map[string]github.App{
		"no id":  {PrivateKey: pkcs1(key)},
		"no PEM": {ID: "1", PrivateKey: "hunter2-hunter2"},
		"public": {ID: "1", PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)}))},
		"cut":    {ID: "1", PrivateKey: pkcs1(key)[:400]},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := github.New(github.Options{Owner: "acme", Name: "config", App: &app})
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v", err)
			}
		})
	}
}
