package gitlabtest

import (
	"hash/fnv"
	"maps"
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

// getMember knows members only: who can read since the project is public is none.
func (s *Server) getMember(q *request) answer {
	login := s.loginOf(q.args[0])
	level, ok := s.Store.Permission(login)
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
	if !ok {
		return say(404, "404 Group Not Found")
	}
	return answer{status: 200, body: map[string]any{"id": id, "name": q.args[0], "path": q.args[0], "full_path": q.args[0], "visibility": "private"}}
}

// getGroupMember counts the members of the groups above.
func (s *Server) getGroupMember(q *request) answer {
	name := group(q.args[0])
	if _, _, ok := s.Store.Team(name); !ok {
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
