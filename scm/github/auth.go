package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tagboat/scm"
)

// tokenKind is what a token's prefix tells. Nothing else of a token is looked at:
// their length and alphabet change (since 2026-04 ghs_ tokens carry a JWT).
type tokenKind string

const (
	noToken           tokenKind = "no token"
	classicToken      tokenKind = "classic personal token"
	fineToken         tokenKind = "fine-grained personal token"
	installationToken tokenKind = "installation token"
	userToken         tokenKind = "user-to-server token"
	otherToken        tokenKind = "token"
)

func kindOfToken(token string) tokenKind {
	for prefix, kind := range map[string]tokenKind{
		"ghp_": classicToken, "github_pat_": fineToken, "ghs_": installationToken, "ghu_": userToken, "gho_": userToken,
	} {
		if strings.HasPrefix(token, prefix) {
			return kind
		}
	}
	if token == "" {
		return noToken
	}
	return otherToken
}

func (k tokenKind) word(app bool) string {
	if app {
		return "App's installation token"
	}
	return string(k)
}

// warnings is what is known of the credential's limits before any call.
func (r *Repository) warnings() []string {
	var out []string
	switch {
	case r.app != nil:
	case r.actions:
		out = append(out, "GITHUB_TOKEN: GitHub holds back the checks of its pull requests until a person with write access approves the runs, so required checks and auto-merge wait for that; it reaches its own repository only; and \"Allow GitHub Actions to create and approve pull requests\" must be on (Settings, Actions, General). An App's token has none of these limits")
	case r.token == classicToken, r.token == fineToken, r.token == userToken:
		out = append(out, "the pull request's author is the person whose "+string(r.token)+" this is: that person cannot approve it, and commits are not signed by GitHub. An App's token has neither limit")
	case r.token == noToken:
		out = append(out, "no token: only public repositories can be read, and nothing can be written")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noSwap {
		out = append(out, noSwapWarning)
	}
	return out
}

// connect builds the way to the server: go-github on scm's transport, which adds
// the credential to the API's own host only.
func (r *Repository) connect(o Options) error {
	r.token, r.actions = kindOfToken(o.Token), o.ActionsToken
	report := o.OnSecret
	if report == nil {
		report = func(string) {}
	}
	opts := o.Transport
	opts.Host = r.base.String()
	if opts.WriteInterval == 0 {
		opts.WriteInterval = writeInterval
	}
	if o.App == nil && o.Token != "" {
		report(o.Token)
		opts.Authorize = func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+o.Token)
			return nil
		}
	}
	if o.App != nil {
		var err error
		if r.app, err = newAppCredential(r, *o.App, opts, report); err != nil {
			return err
		}
		opts.Authorize = r.app.authorize
	}
	t, err := scm.NewTransport(opts)
	if err != nil {
		return fmt.Errorf("%s: %w", r.fullName(), err)
	}
	r.transport, r.http = t, t.Client()
	if r.app != nil {
		r.http.Transport = &renewing{base: t, credential: r.app}
	}
	if r.sleep = opts.Sleep; r.sleep == nil {
		r.sleep = sleep
	}
	return nil
}

// writeInterval is what GitHub asks for between the requests of one credential that
// write (docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api).
const writeInterval = time.Second

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// checkToken refuses what no HTTP header can carry, without showing it.
func checkToken(token string) error {
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("github token: %w: it holds a blank, a line end or another character that no token has; check how it was stored", scm.ErrDenied)
	}
	return nil
}
