package gitlab

import (
	"context"
	"fmt"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// commitTexts are GitLab's refusals of a commit, all of them HTTP 400 with a text
// (app/services/commits/create_service.rb, app/services/files, Gitaly). They
// differ a little between versions, so a part of each is looked for.
func commitTexts() []commitText {
	return []commitText{
		{"not allowed to push into this branch", "the branch matches a protected branch pattern, or the token's role is below Developer", scm.ErrRefused},
		{"switch to that branch in order to make changes", "the branch was made meanwhile", scm.ErrMoved},
		{"you can only create or edit files when you are on a branch", "the branch is gone", scm.ErrMoved},
		{"since you started editing it", "somebody changed the file meanwhile", scm.ErrMoved},
		{"cannot find start_sha", "the base branch was rewritten, or the commit is of another project", scm.ErrMoved},
		{"please refresh and try again", "somebody pushed at the same moment", scm.ErrMoved},
		{"a file with this name already exists", "", scm.ErrMoved},
		{"a file with the name", "", scm.ErrMoved},
		{"a file with this name doesn't exist", "", scm.ErrMoved},
		{"does not exist", "", scm.ErrMoved},
		{"something went wrong when we tried to create", "the branch's name is refused", scm.ErrRefused},
		{"is not a member of team", "a push rule wants the committer's e-mail to be a member's: give the token's user such an address", scm.ErrRefused},
		{"does not follow the pattern", "a push rule restricts branch names or commit messages", scm.ErrRefused},
	}
}

type commitText struct {
	part, hint string
	kind       error
}

func (r *Repository) commitRefusal(ctx context.Context, d scm.Draft, e *refusal) *refusal {
	if e.status == 403 && !scopeLacks(e) {
		e.kind = scm.ErrRefused
		e.hint = "the branch matches a protected branch pattern, or the token's role is below Developer"
		if may, err := r.ownPermission(ctx); err == nil && !may.Allows(scm.PermissionWrite) {
			e.kind, e.hint = scm.ErrDenied, "the token's role in the project is below Developer"+tokenPage
		}
	}
	if e.status != 400 {
		return e
	}
	text := strings.ToLower(e.text)
	e.kind, e.hint = scm.ErrRefused, "a push rule or a server hook may say so"
	for _, t := range commitTexts() {
		if strings.Contains(text, t.part) {
			e.kind, e.hint = t.kind, t.hint
			break
		}
	}
	if d.Expect == "" && strings.Contains(text, "could not update refs/heads/") {
		if other := r.obstacle(ctx, d.Branch); other != "" {
			e.kind, e.hint = scm.ErrRefused, fmt.Sprintf("branch %s stands in its way: git cannot hold both a and a/b", other)
		}
	}
	return e
}

// obstacle names a branch beside which git cannot hold another one, "" if there
// is none or GitLab does not tell. GitLab's refusal reads like a lost race.
func (r *Repository) obstacle(ctx context.Context, branch string) string {
	parts := strings.Split(branch, "/")
	for i := 1; i < len(parts); i++ {
		name := strings.Join(parts[:i], "/")
		if _, e := r.branch(ctx, name); e == nil {
			return name
		}
	}
	below, _, err := r.api.Branches.ListBranches(r.project, &gl.ListBranchesOptions{Search: ref("^" + branch + "/")}, gl.WithContext(ctx))
	if err != nil || len(below) == 0 {
		return ""
	}
	return below[0].Name
}
