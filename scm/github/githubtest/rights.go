package githubtest

import (
	"net/http"
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
	for _, l := range s.opts.Lacks {
		if l == permission {
			return true
		}
	}
	return false
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
