package giteatest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tagboat/scm/scmtest"
)

// needsScope names the scope that a token needs for the route, as the groups of
// routers/api/v1/api.go have it.
func (c *call) needsScope() string {
	level := "write:"
	if c.r.Method == http.MethodGet {
		level = "read:"
	}
	switch {
	case c.route == "/version":
		return ""
	case c.route == "/user":
		return level + "user"
	case c.route == "/notifications/new":
		return level + "notification"
	case strings.HasPrefix(c.route, "/orgs/"), strings.HasPrefix(c.route, "/teams/"):
		return level + "organization"
	case strings.HasPrefix(c.route, "/issues/"), c.route == "/labels":
		return level + "issue"
	}
	return level + "repository"
}

// hasScope: who may write may read.
func (c *call) hasScope(needed string) bool {
	return c.o.Scopes == nil || needed == "" || slices.Contains(c.o.Scopes, needed) ||
		slices.Contains(c.o.Scopes, strings.Replace(needed, "read:", "write:", 1))
}

// lackScope is the refusal, in which servers since 1.23 tell what the token has.
func (c *call) lackScope(needed string) {
	const text = "token does not have at least one of required scope(s)"
	if !c.newer(23) {
		c.fail(http.StatusForbidden, text+": [%s]", needed)
		return
	}
	c.fail(http.StatusForbidden, text+", required=[%s], token scope=%s", needed, strings.Join(c.o.Scopes, ","))
}

// hidden tells that the token's user may not even read the repository.
func (c *call) hidden() bool {
	word, _ := c.o.Store.Permission(c.o.User)
	elsewhere := slices.ContainsFunc([]string{"/version", "/user", "/notifications/", "/orgs/", "/teams/"}, func(p string) bool { return strings.HasPrefix(c.route, p) })
	return word == "none" && !elsewhere
}

// lacksRole is the refusal of the token's user who may not write, or "".
func (c *call) lacksRole() string {
	if c.r.Method == http.MethodGet || c.mayWrite() {
		return ""
	}
	switch {
	case c.route == "/contents":
		return "user should have a permission to write to the target branch"
	case strings.HasPrefix(c.route, "/branches"), strings.HasPrefix(c.route, "/statuses"):
		return "user should have a permission to write to a repo"
	}
	return ""
}

func (c *call) newNotifications() { c.json(http.StatusOK, object{"new": 0}) }

func statusObject(s scmtest.Status) object {
	return object{
		"id": s.ID, "status": s.State, "context": s.Context, "description": s.Description, "target_url": s.URL,
		"url": "http://gitea.example/api/v1/x", "creator": object{"login": s.Creator}, "created_at": stamp(s.Time), "updated_at": stamp(s.Time),
	}
}

// combinedStatus is the latest of each context, highest id first. Its total is
// that of the page, and X-Total-Count that of one context (both from the source of
// 1.26.0: ToCombinedStatus, CountLatestCommitStatus). A page without any has null for its statuses.
func (c *call) combinedStatus() {
	i, ok := c.commitAt(c.args[0])
	switch {
	case !ok && !c.newer(24):
		c.json(http.StatusOK, object{})
		return
	case !ok:
		c.notFound("", "object does not exist [id: "+c.args[0]+", rel_path: ]")
		return
	}
	seen := map[string]bool{}
	var latest []scmtest.Status
	for _, s := range slices.Backward(c.o.Store.Statuses(i.SHA)) {
		if !seen[s.Context] {
			seen[s.Context] = true
			latest = append(latest, s)
		}
	}
	var objects []object
	for _, s := range page(c, latest) {
		objects = append(objects, statusObject(s))
	}
	if len(objects) == 0 && !c.newer(26) {
		c.json(http.StatusOK, object{"state": "", "sha": "", "total_count": 0, "statuses": nil})
		return
	}
	c.w.Header().Set("X-Total-Count", strconv.Itoa(min(len(latest), 1)))
	c.w.Header().Del("X-HasMore")
	c.json(http.StatusOK, object{"sha": i.SHA, "state": "pending", "total_count": len(objects), "statuses": objects})
}

// createStatus answers 500 for a commit that is not there.
func (c *call) createStatus() {
	var in struct {
		Context     string `json:"context"`
		State       string `json:"state"`
		URL         string `json:"target_url"`
		Description string `json:"description"`
	}
	if !c.decode(&in) {
		return
	}
	if !slices.Contains([]string{"pending", "success", "error", "failure", "warning"}, in.State) || in.Context == "" {
		c.o.Report("giteatest: status %s", c.body) // Gitea takes any
	}
	s, err := c.o.Store.PostStatus(c.args[0], scmtest.Status{Context: in.Context, State: in.State, URL: in.URL, Description: in.Description, Creator: c.o.User})
	if err != nil {
		c.broken("GetCommit[" + c.args[0] + "]: object does not exist [id: " + c.args[0] + ", rel_path: ]")
		return
	}
	c.json(http.StatusCreated, statusObject(s))
}

// pullOfCommit knows the commit that a merge made, and no other.
func (c *call) pullOfCommit() {
	list := c.o.Store.Pulls(func(p scmtest.Pull) bool { return p.State == "merged" && p.MergeSHA == c.args[0] })
	if len(list) == 0 {
		c.notFound("pull request does not exist [id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: 1, head_branch: , base_branch: ]")
		return
	}
	c.json(http.StatusOK, c.pullObject(list[0]))
}

func (c *call) getPermission() {
	login := c.args[0]
	word, ok := c.o.Store.Permission(login)
	switch {
	case c.o.NotRepoAdmin && (!strings.EqualFold(login, c.o.User) || !c.newer(24)):
		c.fail(http.StatusForbidden, "Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own")
	case !ok:
		c.notFound("user does not exist [uid: 0, name: " + login + "]")
	default:
		c.json(http.StatusOK, object{"permission": word, "role_name": word, "user": object{"login": login}})
	}
}

// listTeams are the Store's; a person has none.
func (c *call) listTeams() {
	switch {
	case c.o.Teams == nil:
		c.notFound("GetOrgByName", "org does not exist")
		return
	case c.o.NoOrgMember:
		c.fail(http.StatusForbidden, "Must be an organization member")
		return
	}
	objects := []object{}
	for _, name := range c.o.Store.Teams() {
		if c.newer(27) && c.o.NoTeamMember {
			break
		}
		id, _, _ := c.o.Store.Team(name)
		objects = append(objects, object{"id": id, "name": name, "permission": "write"})
	}
	c.json(http.StatusOK, page(c, objects))
}

func (c *call) getTeamMember() {
	for _, name := range c.o.Store.Teams() {
		id, _, _ := c.o.Store.Team(name)
		switch {
		case strconv.Itoa(id) != c.args[0]:
		case c.o.NoTeamMember:
			c.fail(http.StatusForbidden, "Must be a team member")
			return
		case c.o.Store.Membership(name, c.args[1], false) == "active":
			c.json(http.StatusOK, object{"login": c.args[1]})
			return
		}
	}
	c.notFound("")
}

func (c *call) getUser() { c.json(http.StatusOK, object{"id": 1, "login": c.o.User}) }
