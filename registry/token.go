package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxBody bounds answers that are no manifests: tokens, errors, pings.
const maxBody = 64 << 10

// realmRefused is a token server that gets no credential.
type realmRefused struct{ text string }

func (e *realmRefused) Error() string { return e.text }

// token asks the token server that the registry names, as the distribution
// project's token specification says: GET with the password, or POST with an
// identity token. A refusal (4xx) is returned as the answer.
func (s *session) token(ctx context.Context, wants challenge, scope string, credential login) (*grant, *answer, error) {
	realm, err := url.Parse(wants.realm)
	if err != nil || realm.Host == "" {
		return nil, nil, &problem{kind: ErrUnavailable, text: fmt.Sprintf("%s names a token server that is no URL", s.host)}
	}
	realm.User = nil
	if err := s.checkRealm(realm, credential); err != nil {
		return nil, nil, err
	}
	req, err := tokenRequest(ctx, realm, wants.service, scope, credential)
	if err != nil {
		return nil, nil, err
	}
	// A token server's redirect is not followed: it would take the credential along.
	client := &http.Client{Transport: s.client.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, s.unreachable(err)
	}
	defer drain(resp)
	a, err := readAnswer(resp, maxBody)
	switch {
	case err != nil:
		return nil, nil, s.unreachable(err)
	case a.status >= 400 && a.status < 500:
		return nil, a, nil
	case a.status != http.StatusOK:
		return nil, nil, &problem{kind: ErrUnavailable, text: fmt.Sprintf("the token server %s of %s answered %s", realm.Host, s.host, s.redact(a))}
	}
	g, err := s.readToken(a, realm.Host)
	return g, nil, err
}

// checkRealm lets a credential go only to the registry's own site or a host that
// the user named, and nobody into this network.
func (s *session) checkRealm(realm *url.URL, credential login) error {
	named := slices.ContainsFunc(s.client.options.TokenHosts, func(h string) bool { return strings.EqualFold(h, realm.Host) })
	switch {
	case realm.Scheme != "https" && (realm.Scheme != "http" || s.scheme != "http"):
		return &problem{kind: ErrUnavailable, text: fmt.Sprintf("%s names a token server without TLS (%s)", s.host, realm.Host)}
	case realm.Scheme == "http" && !isLoopback(realm.Host) && !s.client.plainHTTP(realm.Host):
		return &problem{kind: ErrUnavailable, text: fmt.Sprintf("%s names a token server without TLS (%s)", s.host, realm.Host), fix: "allow that with --plain-http " + realm.Host}
	case !named && !s.mayVisit(realm):
		return &problem{kind: ErrUnavailable, text: fmt.Sprintf("%s names %s as its token server, an address inside this network", s.host, realm.Host), fix: "if that is right, set TAGBOAT_REGISTRY_TOKEN_HOSTS=" + realm.Host}
	case credential != (login{}) && !named && !sameSite(s.host, realm.Host):
		return &realmRefused{fmt.Sprintf("not sent, as the token server %s is not of the registry's domain (TAGBOAT_REGISTRY_TOKEN_HOSTS=%s allows it)", realm.Host, realm.Host)}
	}
	return nil
}

func tokenRequest(ctx context.Context, realm *url.URL, service, scope string, credential login) (*http.Request, error) {
	query := realm.Query()
	if credential.IdentityToken != "" {
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {credential.IdentityToken}, "client_id": {"tagboat"}, "scope": {scope}, "service": {service}}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(form.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	}
	if service != "" {
		query.Set("service", service)
	}
	query.Set("scope", scope)
	target := *realm
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err == nil && (credential.Username != "" || credential.Password != "") {
		req.Header.Set("Authorization", basic(credential))
	}
	return req, err
}

// readToken reads the token, under either of its two names.
func (s *session) readToken(a *answer, server string) (*grant, error) {
	var body struct {
		Token     string `json:"token"`
		Access    string `json:"access_token"`
		ExpiresIn int    `json:"expires_in"`
	}
	err := json.Unmarshal(a.body, &body)
	token := body.Token
	if token == "" {
		token = body.Access
	}
	if err != nil || token == "" || strings.ContainsAny(token, "\r\n") {
		return nil, &problem{kind: ErrUnavailable, text: fmt.Sprintf("the token server %s of %s answered 200 without a token", server, s.host)}
	}
	s.client.secrets.add(token)
	g := &grant{header: "Bearer " + token}
	if body.ExpiresIn > 20 {
		g.expires = s.client.options.Now().Add(time.Duration(min(body.ExpiresIn, 1<<30))*time.Second - 10*time.Second)
	}
	return g, nil
}

func basic(credential login) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credential.Username+":"+credential.Password))
}
