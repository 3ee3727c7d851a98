package inventory

import (
	"context"
	"errors"

	"tagboat/record"
	"tagboat/scm"
)

// trailers are those that speak of a digest that arrived: of the commit, of what it
// merged, or (a forge's squash may drop them) of the head of the pull request where
// that is Tagboat's.
func (w *walker) trailers(ctx context.Context, a Arrival) (record.Trailers, error) {
	messages := []string{a.Commit.Message}
	for _, p := range a.Commit.Parents[min(1, len(a.Commit.Parents)):] {
		if side, ok := w.line.seen(p); ok {
			messages = append(messages, side.Message)
		}
	}
	for _, m := range messages {
		if t, ok := speaksOf(m, a); ok {
			return t, nil
		}
	}
	if a.PullRequest == nil || a.PullRequest.HeadCommit == "" {
		return record.Trailers{}, nil
	}
	if _, ours := record.ParseMarker(a.PullRequest.Body); !ours {
		return record.Trailers{}, nil
	}
	n := 0
	for c, err := range w.Repo.Log(ctx, a.PullRequest.HeadCommit, "") {
		if n++; errors.Is(err, scm.ErrNotFound) || n > headCommits {
			break
		}
		if err != nil {
			return record.Trailers{}, err
		}
		if t, ok := speaksOf(c.Message, a); ok {
			return t, nil
		}
	}
	return record.Trailers{}, nil
}

// headCommits is how many commits of a pull request's head are looked at: people
// may have put their own on top.
const headCommits = 20

// speaksOf reads trailers that name a digest of an arrival.
func speaksOf(message string, a Arrival) (record.Trailers, bool) {
	t, ok := record.ParseTrailers(message)
	if !ok {
		return t, false
	}
	for _, e := range t.Edits {
		for _, ref := range a.Images {
			if e.Image.Digest == ref.Digest {
				return t, true
			}
		}
	}
	return t, false
}
