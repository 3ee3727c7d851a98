package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"tagboat/scm"
)

var _ scm.Rights = (*Repository)(nil)

// Permission implements scm.Rights. Gitea tells others' permissions to
// administrators of the repository alone; up to 1.23 also one's own.
func (r *Repository) Permission(ctx context.Context, user string) (scm.Permission, error) {
	if !segment(user) {
		return scm.PermissionNone, r.describe(scm.ErrNotFound, "ask what %q may do", user)
	}
	var out struct {
		Permission string `json:"permission"`
	}
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/collaborators/" + url.PathEscape(user) + "/permission", out: &out})
	if says(err, http.StatusForbidden, "only admins can query") {
		if own, ok := r.ownPermission(ctx, user); ok {
			return own, nil
		}
		err = fmt.Errorf("%w; the token's user must be an administrator of the repository to ask that", err)
	}
	if err != nil {
		return scm.PermissionNone, r.describe(err, "ask what %s may do", user)
	}
	switch out.Permission {
	case "owner", "admin":
		return scm.PermissionAdmin, nil
	case "write", "read", "none":
		return scm.Permission(out.Permission), nil
	}
	err = fmt.Errorf("%w: the answer is %q", scm.ErrUnavailable, out.Permission)
	return scm.PermissionNone, r.describe(err, "ask what %s may do", user)
}

// ownPermission is what the repository tells the token's own user about themselves.
func (r *Repository) ownPermission(ctx context.Context, user string) (scm.Permission, bool) {
	self, err := r.Self(ctx)
	if err != nil || !strings.EqualFold(self, user) {
		return scm.PermissionNone, false
	}
	var repo sdk.Repository
	if _, err := r.repoCall(ctx, request{method: http.MethodGet, out: &repo}); err != nil || repo.Permissions == nil {
		return scm.PermissionNone, false
	}
	switch may := repo.Permissions; {
	case may.Admin:
		return scm.PermissionAdmin, true
	case may.Push:
		return scm.PermissionWrite, true
	case may.Pull:
		return scm.PermissionRead, true
	}
	return scm.PermissionNone, true
}

// Member implements scm.Rights. Gitea's teams do not nest. All teams of an
// organisation are shown to its members (from 1.27 on only to those in it and to whom
// its visibility lets), who is in one only to those in it, to the owners and to the
// server's administrators.
func (r *Repository) Member(ctx context.Context, team, user string) (bool, error) {
	in, err := r.member(ctx, team, user)
	return in, r.describe(err, "ask whether %s is in team %s", user, team)
}

func (r *Repository) member(ctx context.Context, team, user string) (bool, error) {
	org, name, found := strings.Cut(strings.TrimPrefix(team, "@"), "/")
	if !found {
		org, name = r.owner, org
	}
	if !segment(user) || !segment(org) || !segment(name) {
		return false, fmt.Errorf("%w: want a login, and TEAM or ORGANISATION/TEAM", scm.ErrNotFound)
	}
	id, err := r.teamID(ctx, org, name)
	if err != nil {
		return false, asked(err, "the token's user must be a member of organisation "+org+", and in that team or an owner")
	}
	path := "/teams/" + strconv.FormatInt(id, 10) + "/members/" + url.PathEscape(user)
	_, err = r.call(ctx, request{method: http.MethodGet, path: path})
	if errors.Is(err, scm.ErrNotFound) {
		return false, nil
	}
	return err == nil, asked(err, "the token's user must be in that team, or own organisation "+org)
}

// segment tells whether a name is a segment of a URL that no proxy takes away.
func segment(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
}

// asked says what a 403 about membership, or the 404 of an organisation that is
// hidden from those who are in no team of it, asks for.
func asked(err error, need string) error {
	if says(err, http.StatusForbidden, "must be a") || statusOf(err) == http.StatusNotFound {
		return fmt.Errorf("%w; %s", err, need)
	}
	return err
}

func (r *Repository) teamID(ctx context.Context, org, name string) (int64, error) {
	read := 0
	for page := 1; ; page++ {
		var list []*sdk.Team
		header, err := r.call(ctx, request{method: http.MethodGet, path: "/orgs/" + url.PathEscape(org) + "/teams", query: paged(url.Values{}, page), out: &list})
		if err != nil {
			return 0, err
		}
		for _, t := range list {
			if strings.EqualFold(t.Name, name) {
				return t.ID, nil
			}
		}
		read += len(list)
		if total, _ := strconv.Atoi(header.Get("X-Total-Count")); len(list) == 0 || read >= total {
			return 0, fmt.Errorf("%w: organisation %s has no team %s, or does not show it (Gitea 1.27 and newer): the token's user must be in that team, or own organisation %s",
				scm.ErrNotFound, org, name, org)
		}
	}
}

// Self implements scm.Rights.
func (r *Repository) Self(ctx context.Context) (string, error) {
	var u sdk.User
	_, err := r.call(ctx, request{method: http.MethodGet, path: "/user", out: &u})
	if err == nil && u.UserName == "" {
		err = fmt.Errorf("%w: the answer names no login", scm.ErrUnavailable)
	}
	return u.UserName, r.describe(err, "ask whose token it is")
}
