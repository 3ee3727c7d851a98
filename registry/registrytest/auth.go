package registrytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// auth is what the registry wants before it answers.
type auth struct {
	user, password string
	bearer         bool
	anonymous      bool
	realm          string
	issued         map[string]string // token to scope
}

// ExpireTokens makes all tokens that were given out invalid.
func (r *Registry) ExpireTokens() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auth.issued = nil
}

// SetPassword changes the password; "" accepts none any more.
func (r *Registry) SetPassword(password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auth.password = password
}

// gatekeep answers token requests, and those that lack what is wanted.
func (r *Registry) gatekeep(w http.ResponseWriter, req *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.auth
	switch {
	case a == nil:
		return false
	case a.bearer && req.URL.Path == "/token":
		a.serveToken(w, req)
		return true
	case a.bearer:
		return a.checkToken(w, req, r.server.URL)
	}
	if a.anonymous && req.URL.Path != "/v2/" && req.Header.Get("Authorization") == "" {
		return false
	}
	if a.valid(req) {
		return false
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
	writeError(w, req, http.StatusUnauthorized, "UNAUTHORIZED")
	return true
}

func (a *auth) valid(req *http.Request) bool {
	user, password, ok := req.BasicAuth()
	return ok && a.password != "" && user == a.user && password == a.password
}

// serveToken gives a token for one scope, to those who name the password; with
// anonymous pull also to those who name nothing, but never to those who name a
// wrong one.
func (a *auth) serveToken(w http.ResponseWriter, req *http.Request) {
	scope := strings.Join(req.URL.Query()["scope"], " ")
	allowed := a.valid(req) || (a.anonymous && req.Header.Get("Authorization") == "")
	if req.Method == http.MethodPost {
		scope = req.FormValue("scope")
		allowed = req.FormValue("grant_type") == "refresh_token" && a.password != "" && req.FormValue("refresh_token") == a.password
	}
	if !allowed {
		writeError(w, req, http.StatusUnauthorized, "UNAUTHORIZED")
		return
	}
	if a.issued == nil {
		a.issued = map[string]string{}
	}
	token := fmt.Sprintf("token-%d-of-%s", len(a.issued)+1, strings.NewReplacer(":", "-", "/", "-").Replace(scope))
	a.issued[token] = scope
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_in": 300})
}

// checkToken wants a token whose scope covers what is to be done in the repository.
func (a *auth) checkToken(w http.ResponseWriter, req *http.Request, url string) bool {
	repository := repositoryOf(req.URL.Path)
	scope, known := a.issued[strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")]
	action := "pull"
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		action = "push"
	}
	if known && (repository == "" || covers(scope, repository, action)) {
		return false
	}
	realm := a.realm
	if realm == "" {
		realm = url + "/token"
	}
	challenge := fmt.Sprintf(`Bearer realm="%s",service="registrytest"`, realm)
	if repository != "" {
		challenge += fmt.Sprintf(`,scope="repository:%s:%s"`, repository, action)
	}
	w.Header().Set("WWW-Authenticate", challenge)
	writeError(w, req, http.StatusUnauthorized, "UNAUTHORIZED")
	return true
}

// covers says whether one of several scopes allows an action in a repository.
func covers(scopes, repository, action string) bool {
	for scope := range strings.FieldsSeq(scopes) {
		actions, ok := strings.CutPrefix(scope, "repository:"+repository+":")
		if ok && slices.Contains(strings.Split(actions, ","), action) {
			return true
		}
	}
	return false
}

// repositoryOf is the repository that a path is about, or "".
func repositoryOf(path string) string {
	path = strings.TrimPrefix(path, "/v2/")
	for _, part := range []string{"/manifests/", "/blobs/", "/tags/", "/referrers/"} {
		if i := strings.LastIndex(path, part); i > 0 {
			return path[:i]
		}
	}
	return ""
}
