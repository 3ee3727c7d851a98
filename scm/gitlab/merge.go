package gitlab

import (
	"context"
	"fmt"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

var _ scm.Merger = (*Repository)(nil)

// Merge merges at once, in the project's way. It waits, as autoMerge does, until
// GitLab has judged a fresh push.
func (r *Repository) Merge(ctx context.Context, pr scm.PullRequest, headCommit string) (string, error) {
	what := fmt.Sprintf("merge !%d", pr.Number)
	if headCommit == "" {
		return "", r.fail(what, &refusal{text: "no head commit given to bind it to"})
	}
	var last *refusal
	for n := range looks {
		if err := r.wait(ctx, n); err != nil {
			return "", r.fail(what, r.unanswered(err))
		}
		m, e := r.get(ctx, pr.Number)
		if e != nil {
			return "", r.fail(what, e)
		}
		switch {
		case state(m) == scm.Merged && m.SHA == headCommit:
			return mergeCommit(m), nil
		case state(m) == scm.Closed:
			return "", r.fail(what, &refusal{kind: scm.ErrRefused, text: "it is closed"})
		case m.SHA != headCommit && n == looks-1, state(m) == scm.Merged:
			return "", r.fail(what, &refusal{kind: scm.ErrMoved, text: fmt.Sprintf("its head is %s, not %s", short(m.SHA), short(headCommit))})
		case n < looks-1 && (judging(m) || m.SHA != headCommit):
			continue
		}
		done, e := r.put(ctx, m, mergeOptions{SHA: headCommit})
		if e == nil {
			return mergeCommit(done), nil
		}
		if last = e; e.ambiguous() {
			continue // the next look tells
		}
		break
	}
	return "", r.fail(what, r.whyNot(ctx, pr.Number, last))
}

// judging: GitLab has not made up its mind yet.
func judging(m *gl.MergeRequest) bool {
	switch m.DetailedMergeStatus {
	case "preparing", "unchecked", "checking", "approvals_syncing":
		return true
	case "": // before 15.6
		return m.MergeStatus == "checking" || m.MergeStatus == "unchecked" //nolint:staticcheck // all that it had
	}
	return false
}
