package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

var _ scm.Rights = (*Repository)(nil)

// The access levels from which on a member reads, writes and administrates
// (docs.gitlab.com/user/permissions, access_level).
const (
	reporterLevel   = 20
	developerLevel  = 30
	maintainerLevel = 40
)

// Permission looks the login up, then its membership, inherited ones and those
// through an invited group too.
func (r *Repository) Permission(ctx context.Context, user string) (scm.Permission, error) {
	what := fmt.Sprintf("ask what %s may do", user)
	id, e := r.userID(ctx, user)
	if e != nil {
		return scm.PermissionNone, r.fail(what, e)
	}
	return r.permission(ctx, what, id)
}

// ownPermission is what the token's user may do.
func (r *Repository) ownPermission(ctx context.Context) (scm.Permission, error) {
	u, resp, err := r.api.Users.CurrentUser(gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return scm.PermissionNone, r.fail("ask whose token it is", e)
	}
	return r.permission(ctx, "ask what the token's user may do", u.ID)
}

func (r *Repository) permission(ctx context.Context, what string, id int) (scm.Permission, error) {
	m, resp, err := r.api.ProjectMembers.GetInheritedProjectMember(r.project, id, gl.WithContext(ctx))
	e := r.explain(resp, err)
	switch {
	case e != nil && e.status == http.StatusNotFound && !projectMissing(e):
		return scm.PermissionNone, nil
	case e != nil:
		return scm.PermissionNone, r.fail(what, e)
	case m.State != "active":
		return scm.PermissionNone, nil
	}
	switch level := int(m.AccessLevel); {
	case level >= maintainerLevel:
		return scm.PermissionAdmin, nil
	case level >= developerLevel:
		return scm.PermissionWrite, nil
	case level >= reporterLevel:
		return scm.PermissionRead, nil
	}
	return scm.PermissionNone, nil
}

// projectMissing tells the 404 of a project from the one of a member.
func projectMissing(e *refusal) bool { return strings.Contains(e.text, "Project Not Found") }

// userID is the number of a login, which member routes want.
func (r *Repository) userID(ctx context.Context, login string) (int, *refusal) {
	login = strings.TrimPrefix(login, "@")
	all, resp, err := r.api.Users.ListUsers(&gl.ListUsersOptions{Username: &login}, gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return 0, e
	}
	for _, u := range all {
		if strings.EqualFold(u.Username, login) {
			return u.ID, nil
		}
	}
	return 0, &refusal{kind: scm.ErrNotFound, text: fmt.Sprintf("GitLab knows no user %q", login)}
}

// Member asks for a membership in a group, or in one above it, as GitLab counts
// it. A 404 is both "not a member" and "no such group, or none that you may see":
// then the group itself is asked for.
func (r *Repository) Member(ctx context.Context, team, user string) (bool, error) {
	team = strings.Trim(strings.TrimPrefix(team, "@"), "/")
	what := fmt.Sprintf("ask whether %s is in group %s", user, team)
	if team == "" {
		return false, r.fail(what, &refusal{kind: scm.ErrNotFound, text: "want the full path of a group"})
	}
	id, e := r.userID(ctx, user)
	if e != nil {
		return false, r.fail(what, e)
	}
	m, resp, err := r.api.GroupMembers.GetInheritedGroupMember(team, id, gl.WithContext(ctx))
	if e = r.explain(resp, err); e == nil {
		return m.State == "active" && m.AccessLevel >= gl.GuestPermissions, nil
	}
	if e.status != http.StatusNotFound {
		return false, r.fail(what, e)
	}
	_, resp, err = r.api.Groups.GetGroup(team, &gl.GetGroupOptions{WithProjects: ref(false)}, gl.WithContext(ctx))
	if e = r.explain(resp, err); e != nil {
		if e.status == http.StatusNotFound {
			e.hint = "the group is not there, or the token's user cannot see it: make that user a member of the group"
		}
		return false, r.fail(what, e)
	}
	return false, nil
}

// Self is the user of the token; a project or group access token has a bot user.
func (r *Repository) Self(ctx context.Context) (string, error) {
	u, resp, err := r.api.Users.CurrentUser(gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return "", r.fail("ask whose token it is", e)
	}
	return u.Username, nil
}
