package github

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

// App is a GitHub App that is installed on the repository.
type App struct {
	ID             string // App id or client id
	PrivateKey     string // PEM, PKCS#1 or PKCS#8; line ends may be written as \n
	InstallationID int64  // 0: asked from GitHub
	ReadOnly       bool   // nothing is committed or proposed: ask for reading these alone
}

// appCredential mints installation tokens for one repository, and renews them a
// minute before they end. A call gets a token with the rights that it needs and
// no others, so that an App without, say, statuses can still promote.
type appCredential struct {
	app         App
	key         *rsa.PrivateKey
	base        *url.URL
	owner, name string
	transport   *scm.Transport // carries jwt
	now         func() time.Time
	report      func(secret string)

	mu     sync.Mutex
	jwt    string
	minted map[rights]mintedToken
}

type mintedToken struct {
	token   string
	expires time.Time
}

const renewBefore = time.Minute

func newAppCredential(r *Repository, app App, opts scm.TransportOptions, report func(string)) (*appCredential, error) {
	if app.ID == "" {
		return nil, errors.New("github App: no id given")
	}
	report(app.PrivateKey)
	key, err := parseKey(app.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("github App %s: %w", app.ID, err)
	}
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	c := &appCredential{app: app, key: key, base: r.base, owner: r.owner, name: r.name, now: now, report: report, minted: map[rights]mintedToken{}}
	// A token is minted while a request holds its place.
	opts.Pace = nil
	// Called while mint runs, which holds the lock.
	opts.Authorize = func(req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+c.jwt)
		return nil
	}
	if c.transport, err = scm.NewTransport(opts); err != nil {
		return nil, err
	}
	return c, nil
}

// authorize is scm.TransportOptions' Authorize.
func (c *appCredential) authorize(req *http.Request) error {
	token, err := c.current(req.Context())
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

func (c *appCredential) current(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	needed := c.needed(ctx)
	if held := c.minted[needed]; held.token != "" && c.now().Before(held.expires.Add(-renewBefore)) {
		return held.token, nil
	}
	token, err := c.mint(ctx)
	if err != nil {
		return "", c.explain(ctx, needed, err)
	}
	c.report(token.GetToken())
	c.minted[needed] = mintedToken{token.GetToken(), token.GetExpiresAt().Time}
	return token.GetToken(), nil
}

// needed are the rights of a call; where nothing is written, those of a promotion
// shrink to reading.
func (c *appCredential) needed(ctx context.Context) rights {
	needed := rightsOf(ctx)
	if needed == rightsToPromote && c.app.ReadOnly {
		return rightsToLook
	}
	return needed
}

// drop forgets a token that was refused; it tells whether another can be minted.
func (c *appCredential) drop(token string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for needed, held := range c.minted {
		if held.token == token {
			delete(c.minted, needed)
		}
	}
	return token != ""
}

func (c *appCredential) held(ctx context.Context) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.minted[c.needed(ctx)].token
}

// renewing sends a request once more with a fresh token after a 401: GitHub
// revokes installation tokens when the App's permissions change.
type renewing struct {
	base       http.RoundTripper
	credential *appCredential
}

// RoundTrip implements http.RoundTripper.
func (t *renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	used := t.credential.held(req.Context())
	resp, err := t.base.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || (req.Body != nil && req.GetBody == nil) {
		return resp, err
	}
	if used == "" {
		used = t.credential.held(req.Context())
	}
	if !t.credential.drop(used) {
		return resp, nil
	}
	_ = resp.Body.Close()
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.base.RoundTrip(again)
}

// mint tries again once with a fresh JWT by GitHub's own clock: a runner whose
// clock is a second fast is refused with 401.
func (c *appCredential) mint(ctx context.Context) (*github.InstallationToken, error) {
	token, err := c.ask(ctx, c.now())
	resp := responseOf(err) //nolint:bodyclose // go-github has read and closed it
	if resp == nil || resp.StatusCode != http.StatusUnauthorized {
		return token, err
	}
	at := c.now()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		at = date
	}
	return c.ask(ctx, at)
}

func (c *appCredential) ask(ctx context.Context, at time.Time) (*github.InstallationToken, error) {
	client, err := c.client(at)
	if err != nil {
		return nil, err
	}
	id := c.app.InstallationID
	if id == 0 {
		found, _, err := client.Apps.FindRepositoryInstallation(ctx, c.owner, c.name)
		if err != nil {
			return nil, err
		}
		id = found.GetID()
	}
	token, _, err := client.Apps.CreateInstallationToken(ctx, id, &github.InstallationTokenOptions{
		Repositories: []string{c.name},
		Permissions:  c.needed(ctx).permissions(),
	})
	if err == nil && token.GetToken() == "" {
		err = errEmptyAnswer
	}
	return token, err
}

// client speaks as the App itself. 60 s back and 540 s ahead: GitHub's cap is
// 600 s, and clocks differ.
func (c *appCredential) client(at time.Time) (*github.Client, error) {
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: c.app.ID, IssuedAt: jwt.NewNumericDate(at.Add(-time.Minute)), ExpiresAt: jwt.NewNumericDate(at.Add(9 * time.Minute)),
	}).SignedString(c.key)
	if err != nil {
		return nil, fmt.Errorf("sign the App's JWT: %w", err)
	}
	c.report(signed)
	c.jwt = signed
	client := github.NewClient(c.transport.Client())
	client.BaseURL = c.base
	return client, nil
}

func (c *appCredential) explain(ctx context.Context, needed rights, err error) error {
	doing := fmt.Sprintf("get a token for %s/%s as GitHub App %s", c.owner, c.name, c.app.ID)
	a, ok := answerOf(err)
	if !ok {
		return fmt.Errorf("%s: %w", doing, err)
	}
	e := c.transport.StatusError(a.resp, a.messages...)
	e.Err = a.kind()
	hint := ""
	switch a.status {
	case http.StatusUnauthorized:
		hint = "; the App's id and private key do not belong together, or this machine's clock is wrong"
	case http.StatusNotFound:
		e.Err, hint = scm.ErrDenied, "; install the App on the repository, and check its id and the API address"
	case http.StatusUnprocessableEntity:
		e.Err = scm.ErrDenied
		hint = fmt.Sprintf("; the App lacks %s: add it in the App's settings (Permissions), then the owner of %s approves it", c.lacking(ctx, needed), c.owner)
	}
	return fmt.Errorf("%s: %w%s", doing, e, hint)
}

// parseKey reads a PEM private key, also one that travelled through an
// environment variable with \n for its line ends.
func parseKey(text string) (*rsa.PrivateKey, error) {
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	block, _ := pem.Decode([]byte(strings.TrimSpace(text)))
	if block == nil {
		return nil, errors.New("the App's private key is not PEM (-----BEGIN … PRIVATE KEY-----)")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the App's private key is neither PKCS#1 nor PKCS#8 RSA")
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the App's private key is not RSA")
	}
	return private, nil
}
