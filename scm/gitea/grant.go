package gitea

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"tagboat/scm"
)

var _ scm.Grants = (*Repository)(nil)

// scopesTold finds what a token has in the refusal of what it has not.
var scopesTold = regexp.MustCompile(`token scope=([a-z:,-]*)`)

// Grant asks how many notifications the token's user has, which Tagboat's token has
// no scope for: since 1.23 Gitea's refusal tells the scopes that the token has, and
// no other call does. Of a token that may ask that only so much is known; an older
// Gitea and Forgejo tell nothing.
func (r *Repository) Grant(ctx context.Context) (scm.Grant, error) {
	_, err := r.call(ctx, request{method: http.MethodGet, path: "/notifications/new"})
	if err == nil {
		return scm.Grant{Rights: []string{"read:notification"}}, nil
	}
	if !says(err, http.StatusForbidden, "required scope") {
		return scm.Grant{}, r.describe(err, "ask what the token may do")
	}
	m := scopesTold.FindStringSubmatch(strings.Join(refused(err).Messages, " "))
	if m == nil {
		return scm.Grant{}, nil
	}
	return scm.Grant{Rights: strings.FieldsFunc(m[1], func(c rune) bool { return c == ',' }), Told: true}, nil
}
