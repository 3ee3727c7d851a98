package gitea

import "context"

// Version is what the server says of itself: "1.26.0", of Forgejo
// "11.0.1+gitea-1.22.0"; "" where it does not tell. After a Tip it makes no call.
func (r *Repository) Version(ctx context.Context) (string, error) {
	if _, err := r.features(ctx); err != nil {
		return "", r.describe(err, "ask for the server's version")
	}
	return r.knownVersion(), nil
}
