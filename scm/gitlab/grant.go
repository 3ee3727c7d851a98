package gitlab

import (
	"context"
	"net/http"
	"time"

	"tagboat/scm"
)

var _ scm.Grants = (*Repository)(nil)

// Grant reads the token itself, which GitLab tells to any access token of its own,
// whatever its scopes (lib/api/personal_access_tokens/self_information.rb); of
// others, OAuth's say, nothing is told. It ends at the beginning of its last day.
func (r *Repository) Grant(ctx context.Context) (scm.Grant, error) {
	var token struct {
		Scopes  []string
		Expires string `json:"expires_at"`
	}
	_, e := r.send(ctx, http.MethodGet, "personal_access_tokens/self", nil, &token)
	switch {
	case e != nil && (e.status == http.StatusBadRequest || e.status == http.StatusNotFound):
		return scm.Grant{}, nil
	case e != nil:
		return scm.Grant{}, r.fail("ask what the token may do", e)
	}
	g := scm.Grant{Rights: token.Scopes, Told: true}
	g.Expires, _ = time.Parse(time.DateOnly, token.Expires)
	return g, nil
}
