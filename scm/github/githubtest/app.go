package githubtest

import (
	"crypto/rsa"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// FakeApp is a GitHub App that is installed on the fake's repository.
type FakeApp struct {
	ID             string
	Key            *rsa.PublicKey
	InstallationID int64
	NotInstalled   bool
	Lacks          []string // permissions that the organisation has not granted it
	// Grants are what it has granted, each read or write: no others. nil: all but what
	// Lacks names.
	Grants map[string]string
	Now    func() time.Time // GitHub's clock; nil is time.Now

	minted int
}

func (a *FakeApp) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

// Revoke makes every token that was minted so far invalid.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tokens, func(token, _ string) bool { return token != s.opts.Token })
}

// authorizeApp checks a JWT as GitHub does: signature, issuer, and both times by
// its own clock, with ten minutes at most.
func (s *Server) authorizeApp(r *request) *Answer {
	bad := func(text string) *Answer { return &Answer{Status: http.StatusUnauthorized, Message: text} }
	app := s.opts.App
	raw, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if app == nil || !ok {
		return bad("A JSON web token could not be decoded")
	}
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(raw, &claims, func(*jwt.Token) (any, error) { return app.Key, nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	switch {
	case err != nil:
		return bad("A JSON web token could not be decoded")
	case claims.Issuer != app.ID:
		return bad("Integration not found")
	case claims.ExpiresAt == nil || claims.IssuedAt == nil:
		return bad("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case claims.ExpiresAt.After(app.now().Add(10 * time.Minute)):
		return bad("'Expiration time' claim ('exp') is too far in the future")
	case claims.ExpiresAt.Before(app.now()):
		return bad("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case claims.IssuedAt.After(app.now()):
		return bad("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	return nil
}

func getInstallation(s *Server, _ http.ResponseWriter, _ *request) (int, any) {
	if s.opts.App.NotInstalled {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, s.object("installation", map[string]any{
		"id": s.opts.App.InstallationID, "account": s.user(s.opts.Owner), "permissions": s.opts.App.granted(), "repository_selection": "selected",
	})
}

// granted are the permissions of the installation.
func (a *FakeApp) granted() map[string]string {
	if a.Grants != nil {
		return a.Grants
	}
	all := map[string]string{
		"contents": "write", "pull_requests": "write", "statuses": "write", "checks": "read", "members": "read", "issues": "write", "actions": "write",
		"metadata": "read",
	}
	maps.DeleteFunc(all, func(p, _ string) bool { return slices.Contains(a.Lacks, p) })
	return all
}

// grants are the sets of permissions that a token may be limited to: each for some
// calls, and none of them wider than those need.
func grants() []map[string]string {
	return []map[string]string{
		{"contents": "write", "pull_requests": "write"},
		{"contents": "read", "pull_requests": "read"},
		{"statuses": "read", "checks": "read"},
		{"statuses": "write"},
		{"members": "read"},
		{"issues": "write", "pull_requests": "read"},
		{"actions": "write"},
		{"actions": "read"},
	}
}

// createInstallationToken demands that the token is limited to the repository and
// to the rights that some calls need. What the App was not granted is refused.
func createInstallationToken(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	app := s.opts.App
	var in struct {
		Repositories []string
		Permissions  map[string]string
	}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if r.params["installation_id"] != strconv.FormatInt(app.InstallationID, 10) {
		return refuse(http.StatusNotFound, "Not Found")
	}
	known := slices.ContainsFunc(grants(), func(want map[string]string) bool { return maps.Equal(in.Permissions, want) })
	if !slices.Equal(in.Repositories, []string{s.opts.Name}) || !known {
		s.t.Errorf("fake GitHub: the App's token is for %v with %v, not for %s with what some call needs", in.Repositories, in.Permissions, s.opts.Name)
	}
	granted := app.granted()
	for permission, level := range in.Permissions {
		if granted[permission] == level || granted[permission] == "write" {
			continue
		}
		return refuse(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
	}
	s.mu.Lock()
	app.minted++
	token := fmt.Sprintf("ghs_%s_%d.not-a-real-token", app.ID, app.minted)
	s.tokens[token], s.rights[token] = s.opts.Login, in.Permissions
	s.mu.Unlock()
	return http.StatusCreated, s.object("installation-token", map[string]any{
		"token": token, "expires_at": stamp(app.now().Add(time.Hour)), "permissions": in.Permissions, "repository_selection": "selected",
	})
}
