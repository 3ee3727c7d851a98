package gitlabtest

import (
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// logins are the users whom GitLab knows: Users, and those of whom the Store
// knows a permission. Of these it is an access level, "none", or with a state
// before it: blocked/30.
func (s *Server) logins() []string {
	list := slices.Collect(maps.Keys(s.Users))
	for _, l := range s.Store.Logins() {
		if !slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, l) }) {
			list = append(list, l)
		}
	}
	slices.Sort(list)
	return list
}

func (s *Server) userID(login string) int {
	if id, ok := s.Users[login]; ok {
		return id
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(login)))
	return 1000 + int(h.Sum32()%1_000_000)
}

func (s *Server) loginOf(id string) string {
	for _, l := range s.logins() {
		if strconv.Itoa(s.userID(l)) == id {
			return l
		}
	}
	return ""
}

func (s *Server) memberShape(login, level string) map[string]any {
	state, number, found := strings.Cut(level, "/")
	if !found {
		state, number = "active", level
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		s.fault("%q is no access level", level)
	}
	shape := s.userShape(login)
	shape["state"], shape["access_level"], shape["expires_at"], shape["membership_state"] = state, n, nil, "active"
	return shape
}

// Access levels below Maintainer (lib/gitlab/access.rb).
const (
	guest     = 10
	reporter  = 20
	developer = 30
)

// scopes are those of a request's token, and role is its user's.
func (s *Server) scopes(q *request) []string {
	switch {
	case q.token == ReadToken:
		return []string{"read_api"}
	case q.token == Token && s.Scopes != nil:
		return s.Scopes
	}
	return []string{"api"}
}

func (s *Server) role(q *request) int {
	switch {
	case q.token == ReadToken:
		return reporter
	case q.token == Token && s.Role != 0:
		return s.Role
	}
	return developer
}

// admitScope demands api to write and read_api to read (lib/api/api_guard.rb); a
// token may look at itself with any.
func (s *Server) admitScope(q *request, writes bool) (answer, bool) {
	enough, named := []string{"api", "read_api"}, "api read_api"
	if writes {
		enough, named = []string{"api"}, "api"
	}
	if q.op == "getTokenSelf" || slices.ContainsFunc(s.scopes(q), func(has string) bool { return slices.Contains(enough, has) }) {
		return answer{}, true
	}
	return answer{status: 403, body: map[string]any{"error": "insufficient_scope",
		"error_description": "The request requires higher privileges than provided by the access token.", "scope": named}}, false
}

// needsRole is the access level from which on GitLab lets somebody do a call in a
// private project (docs.gitlab.com/user/permissions).
func needsRole(op, method string) int {
	switch op {
	case "getProject", "getMember", "getNote", "listNotes", "createNote", "updateNote", "awardNote":
		return guest
	}
	if method == http.MethodGet {
		return reporter
	}
	return developer
}

// lacksRole is the refusal of a role. A merge is refused with 401, a push with more
// words (lib/api/merge_requests.rb, commits.rb).
func lacksRole(op string) answer {
	switch op {
	case "acceptMergeRequest":
		return say(401, "401 Unauthorized")
	case "createCommit":
		return say(403, "403 Forbidden - You are not allowed to push into this branch")
	}
	return say(403, "403 Forbidden")
}

// getTokenSelf tells of the token itself, where it is a personal, project or group
// access token (lib/api/personal_access_tokens/self_information.rb).
func (s *Server) getTokenSelf(q *request) answer {
	if s.NoTokenInfo {
		return say(400, "400 Bad request - This endpoint requires token type to be a personal access token")
	}
	return answer{status: 200, body: map[string]any{
		"id": 5, "name": "tagboat", "description": nil, "revoked": false, "active": true, "created_at": stamp(s.Store.Clock()), "last_used_at": nil,
		"user_id": s.userID(s.login(q)), "scopes": s.scopes(q), "expires_at": orNil(s.Expires),
	}}
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// getMember knows members only: who can read since the project is public is none.
func (s *Server) getMember(q *request) answer {
	login := s.loginOf(q.args[0])
	level, ok := s.Store.Permission(login)
	if !ok && login == s.login(q) {
		level, ok = strconv.Itoa(s.role(q)), true
	}
	if !ok || level == "none" {
		return say(404, "404 Not found")
	}
	return answer{status: 200, body: s.memberShape(login, level)}
}

// group is a group's name without that of the top one, which the Store does not
// know.
func group(path string) string { return strings.TrimPrefix(path, "acme/") }

func (s *Server) getGroup(q *request) answer {
	id, _, ok := s.Store.Team(group(q.args[0]))
	if !ok || s.HiddenGroups {
		return say(404, "404 Group Not Found")
	}
	return answer{status: 200, body: map[string]any{"id": id, "name": q.args[0], "path": q.args[0], "full_path": q.args[0], "visibility": "private"}}
}

// getGroupMember counts the members of the groups above.
func (s *Server) getGroupMember(q *request) answer {
	name := group(q.args[0])
	if _, _, ok := s.Store.Team(name); !ok || s.HiddenGroups {
		return say(404, "404 Group Not Found")
	}
	login := s.loginOf(q.args[1])
	for name != "" {
		if s.Store.Membership(name, login, false) == "active" {
			return answer{status: 200, body: s.memberShape(login, "30")}
		}
		_, name, _ = s.Store.Team(name)
	}
	return say(404, "404 Not found")
}

func (s *Server) getUser(q *request) answer {
	return answer{status: 200, body: s.userShape(s.login(q))}
}
