package scm

import "context"

// Merger merges a pull request at once, which forges have and plain git has not.
type Merger interface {
	// Merge merges an open pull request whose head is headCommit, in the way that
	// the repository allows (a merge commit first, then a squash, then a rebase; on
	// GitLab and Gitea the project's own default), and answers the commit that the
	// base branch got. ErrMoved: the head is another commit; nothing was merged.
	// ErrRefused: a required check, an approval, a conflict, a draft or a merge
	// queue stands in the way; the text says which as far as the forge does. One
	// that was merged with this head already is no error.
	Merge(ctx context.Context, pr PullRequest, headCommit string) (commit string, err error)
}
