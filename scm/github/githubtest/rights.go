package githubtest

import (
	"net/http"
	"slices"
	"strings"
)

// roles are what GitHub knows of them: the permission that folds them, and those
// below. A role that is none of them is a custom one, written NAME/permission.
func foldedRole(role string) (name, permission string) {
	if custom, base, ok := strings.Cut(role, "/"); ok {
		return custom, base
	}
	switch role {
	case "maintain":
		return role, "write"
	case "triage":
		return role, "read"
	}
	return role, role
}

// getPermission tells of a person without any right "none".
func getPermission(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	login := r.params["username"]
	role, ok := s.Store.Permission(login)
	switch {
	case s.lacks("administration"):
		return refuse(http.StatusForbidden, "Must have push access to view collaborator permission.")
	case !ok:
		return refuse(http.StatusNotFound, login+" is not a user")
	}
	name, permission := foldedRole(role)
	return http.StatusOK, map[string]any{
		"permission": permission, "role_name": name,
		"user": s.object("nullable-collaborator", map[string]any{"login": login, "id": len(login), "type": "User", "role_name": name}),
	}
}

func (s *Server) lacks(permission string) bool {
	return slices.Contains(s.opts.Lacks, permission)
}

// has tells whether a token has a permission at least at a level, read or write.
func (s *Server) has(token, permission, level string) bool {
	s.mu.Lock()
	grants, isMinted := s.rights[token]
	s.mu.Unlock()
	if !isMinted {
		grants = s.opts.Grants
	}
	switch {
	case s.lacks(permission):
		return false
	case grants == nil:
		return true
	}
	return grants[permission] == level || grants[permission] == "write"
}

// inaccessible is the refusal of a token without a permission, which the header
// names.
func inaccessible(token, accepted string) *Answer {
	whom := "integration"
	if strings.HasPrefix(token, "github_pat_") {
		whom = "personal access token"
	}
	return &Answer{
		Status: http.StatusForbidden, Message: "Resource not accessible by " + whom,
		Header: map[string]string{"X-Accepted-GitHub-Permissions": accepted},
	}
}

// tellToken sets the headers in which every answer tells of a token.
func (s *Server) tellToken(w http.ResponseWriter) {
	if s.opts.Scopes != nil {
		w.Header().Set("X-OAuth-Scopes", strings.Join(s.opts.Scopes, ", "))
	}
	if !s.opts.Expires.IsZero() {
		w.Header().Set("GitHub-Authentication-Token-Expiration", s.opts.Expires.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
}

func getTeam(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	slug := r.params["team_slug"]
	id, _, ok := s.Store.Team(slug)
	if !ok {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, s.object("team-full", map[string]any{
		"id": id, "slug": slug, "name": slug, "type": "organization", "permission": "push",
		"organization": s.object("team-organization", map[string]any{"login": s.opts.Owner, "type": "Organization"}),
	})
}

// getMembership says 404 of somebody who is no member, and of a team that is not
// there or cannot be seen.
func getMembership(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	slug, login := r.params["team_slug"], r.params["username"]
	state := s.Store.Membership(slug, login, true)
	if state == "" {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, map[string]any{"url": s.URL() + "/orgs/" + s.opts.Owner + "/teams/" + slug + "/memberships/" + login, "role": "member", "state": state}
}

// getUser refuses the token of an App.
func getUser(_ *Server, _ http.ResponseWriter, r *request) (int, any) {
	if strings.HasSuffix(r.login, "[bot]") {
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	}
	return http.StatusOK, r.s.object("public-user", map[string]any{"login": r.login, "id": len(r.login), "type": "User", "user_view_type": "public"})
}
