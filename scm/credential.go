package scm

import (
	"net/http"
	"net/url"
	"strings"
)

type authError struct{ error }

// Unwrap gives what Authorize answered.
func (e *authError) Unwrap() error { return e.error }

// credentialHeaders are the headers in which a forge takes a credential. net/http
// keeps all but the first on a redirect to another host.
func credentialHeaders() []string {
	return []string{"Authorization", "Private-Token", "Job-Token", "Cookie", "X-Gitea-Otp"}
}

func (t *Transport) authorize(req *http.Request) error {
	if !sameHost(req.URL, t.host) {
		for _, h := range credentialHeaders() {
			req.Header.Del(h)
		}
		return nil
	}
	if t.o.Authorize != nil {
		if err := t.o.Authorize(req); err != nil {
			return err
		}
	}
	t.remember(req)
	return nil
}

// remember keeps the credentials that were sent, for Redact.
func (t *Transport) remember(req *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range credentialHeaders() {
		for _, v := range req.Header.Values(h) {
			words := strings.Fields(v)
			if len(words) > 0 && len(words[len(words)-1]) >= 4 {
				t.secrets[words[len(words)-1]] = true
			}
		}
	}
}

// Redact replaces every credential that was ever sent with ***.
func (t *Transport) Redact(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for secret := range t.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

func sameHost(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
