package github

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

var _ scm.Grants = (*Repository)(nil)

// Grant tells an App's permissions on the repository, the scopes of a classic
// token, and when a personal token ends. GitHub tells nothing else of a
// fine-grained token or a workflow's GITHUB_TOKEN
// (docs.github.com/rest/authentication/permissions-required-for-fine-grained-personal-access-tokens).
func (r *Repository) Grant(ctx context.Context) (scm.Grant, error) {
	const doing = "ask what the credential may do"
	if r.app != nil {
		rights, err := r.app.granted(ctx)
		if err != nil {
			return scm.Grant{}, r.fault(doing, err)
		}
		return scm.Grant{Rights: rights, Told: true}, nil
	}
	resp, err := r.get(ctx, "", nil, &github.Repository{})
	if err != nil {
		return scm.Grant{}, r.fault(doing, err)
	}
	g := scm.Grant{Expires: resp.TokenExpiration.Time}
	if scopes := resp.Header.Values("X-OAuth-Scopes"); len(scopes) > 0 {
		g.Told = true
		g.Rights = strings.FieldsFunc(scopes[0], func(c rune) bool { return c == ',' || c == ' ' })
	}
	return g, nil
}

// granted are the permissions of the App's installation on the repository, as
// name:level.
func (c *appCredential) granted(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.askGranted(ctx)
}

// askGranted is granted for who holds the lock.
func (c *appCredential) askGranted(ctx context.Context) ([]string, error) {
	client, err := c.client(c.now())
	if err != nil {
		return nil, err
	}
	found, _, err := client.Apps.FindRepositoryInstallation(ctx, c.owner, c.name)
	if err != nil {
		return nil, err
	}
	return listed(found.GetPermissions())
}

// lacking are those of some rights that an installation does not have; all of them
// where it is not told.
func (c *appCredential) lacking(ctx context.Context, needed rights) string {
	wanted, err := listed(needed.permissions())
	has, unasked := c.askGranted(ctx)
	if err != nil || unasked != nil {
		return string(needed)
	}
	wanted = slices.DeleteFunc(wanted, func(w string) bool {
		return slices.Contains(has, w) || slices.Contains(has, strings.Replace(w, ":read", ":write", 1))
	})
	if len(wanted) == 0 {
		return string(needed)
	}
	return strings.Join(wanted, " and ")
}

// listed are permissions as name:level, in the order of their names.
func listed(p *github.InstallationPermissions) ([]string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	levels := map[string]string{}
	if err := json.Unmarshal(text, &levels); err != nil {
		return nil, err
	}
	var list []string
	for name, level := range levels {
		list = append(list, name+":"+level)
	}
	slices.Sort(list)
	return list, nil
}
