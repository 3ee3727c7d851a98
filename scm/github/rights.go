package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tagboat/scm"
)

var _ scm.Rights = (*Repository)(nil)

// Permission asks for a login's role. The field permission folds triage and
// maintain away, and role_name may be a custom role, which permission then judges
// (docs.github.com/rest/collaborators/collaborators).
func (r *Repository) Permission(ctx context.Context, user string) (scm.Permission, error) {
	doing := "ask what " + user + " may do"
	if err := checkLogin(user); err != nil {
		return scm.PermissionNone, fmt.Errorf("%s: %s: %w", r.fullName(), doing, err)
	}
	var out struct {
		Permission string `json:"permission"`
		RoleName   string `json:"role_name"`
	}
	if _, err := r.get(ctx, "collaborators/"+url.PathEscape(user)+"/permission", nil, &out); err != nil {
		return scm.PermissionNone, r.evidenceFault(doing, err, "metadata:read, and push access to the repository")
	}
	switch out.RoleName {
	case "admin":
		return scm.PermissionAdmin, nil
	case "maintain", "write":
		return scm.PermissionWrite, nil
	case "triage", "read":
		return scm.PermissionRead, nil
	}
	switch p := scm.Permission(out.Permission); p {
	case scm.PermissionAdmin, scm.PermissionWrite, scm.PermissionRead, scm.PermissionNone:
		return p, nil
	}
	return scm.PermissionNone, r.broken(doing, errEmptyAnswer)
}

// checkLogin refuses what would make another URL; a bot's login ends in [bot].
func checkLogin(user string) error {
	if !slug.MatchString(strings.TrimSuffix(user, "[bot]")) {
		return fmt.Errorf("%q is no login: %w", user, scm.ErrNotFound)
	}
	return nil
}

// Member asks for a membership, which GitHub also gives of teams below. A 404 is
// both "not a member" and "no such team, or none that you may see": then the team
// itself is asked for.
func (r *Repository) Member(ctx context.Context, team, user string) (bool, error) {
	doing := fmt.Sprintf("ask whether %s is in team %s", user, team)
	org, name, err := r.teamOf(team)
	if err == nil {
		err = checkLogin(user)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %s: %w", r.fullName(), doing, err)
	}
	ctx = needing(ctx, rightsToAsk)
	at := "orgs/" + org + "/teams/" + name
	var m struct{ State string }
	err = r.getFrom(ctx, at+"/memberships/"+url.PathEscape(user), &m)
	if err == nil {
		return m.State == "active", nil
	}
	if a, ok := answerOf(err); !ok || a.status != http.StatusNotFound {
		return false, r.evidenceFault(doing, err, teamNeeds)
	}
	err = r.getFrom(ctx, at, &struct{}{})
	if a, ok := answerOf(err); ok && a.status == http.StatusNotFound {
		return false, fmt.Errorf("%w; this call needs %s", r.fault(doing, err), teamNeeds)
	}
	if err != nil {
		return false, r.evidenceFault(doing, err, teamNeeds)
	}
	return false, nil
}

const teamNeeds = "members:read of the organisation (a classic token: read:org)"

// teamOf splits ORG/SLUG; a bare slug is of the repository's owner.
func (r *Repository) teamOf(team string) (org, name string, err error) {
	org, name, found := strings.Cut(strings.TrimPrefix(team, "@"), "/")
	if !found {
		org, name = r.owner, org
	}
	if !slug.MatchString(org) || !slug.MatchString(name) {
		return "", "", fmt.Errorf("%q is no team: %w; want SLUG or ORGANISATION/SLUG", team, scm.ErrNotFound)
	}
	return org, name, nil
}

// getFrom reads path below the API.
func (r *Repository) getFrom(ctx context.Context, path string, out any) error {
	c := r.api()
	req, err := c.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, req, out)
	return err
}

// Self asks GraphQL, which also tells an installation token who it is; GET /user
// refuses those. A server without GraphQL is asked for the user.
func (r *Repository) Self(ctx context.Context) (string, error) {
	const doing = "ask whose credential it is"
	var out struct{ Viewer struct{ Login string } }
	err := r.graph(scm.AsRead(ctx), viewer, map[string]any{}, &out)
	if errors.Is(err, errNoGraphQL) {
		err = r.getFrom(ctx, "user", &out.Viewer)
	}
	var refused *graphError
	switch {
	case errors.As(err, &refused):
		return "", fmt.Errorf("%s: %s: %w: %w", r.fullName(), doing, refused.kind(), refused)
	case err != nil:
		return "", r.fault(doing, err)
	case out.Viewer.Login == "":
		return "", r.broken(doing, errEmptyAnswer)
	}
	return out.Viewer.Login, nil
}
