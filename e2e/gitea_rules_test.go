//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const policy = "tagboat/policy"

// protect lets nobody but mei push to main, and merges there only what li or
// another has approved and tagboat/policy calls good. Administrators are no exception.
func (r *repository) protect(t *testing.T) {
	t.Helper()
	r.must(t, "POST", "/branch_protections", map[string]any{
		"rule_name": "main", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"mei"},
		"enable_status_check": true, "status_check_contexts": []string{policy}, "required_approvals": 1, "block_admin_merge_override": true,
	}, nil)
}

// team makes a team of acme that administers all its repositories.
func (g *gitea) team(t *testing.T, name string, members ...string) {
	t.Helper()
	var made struct{ ID int }
	g.must(t, "mei", "POST", "/orgs/acme/teams", map[string]any{
		"name": name, "permission": "admin", "includes_all_repositories": true, "units": []string{"repo.code", "repo.pulls"},
	}, &made)
	for _, login := range members {
		g.must(t, "mei", "PUT", fmt.Sprintf("/teams/%d/members/%s", made.ID, login), nil, nil)
	}
}

// status posts what a cluster says of main's newest commit.
func (r *repository) status(t *testing.T, context, state, description string) {
	t.Helper()
	in := map[string]any{"context": context, "state": state, "description": description}
	r.must(t, "POST", "/statuses/"+r.branchHead(t, "main"), in, nil)
}

// policyAt is the newest tagboat/policy of a commit; "" where there is none.
func (r *repository) policyAt(t *testing.T, commit string) string {
	t.Helper()
	var list []struct{ Context, Status, Description string }
	r.must(t, "GET", "/commits/"+commit+"/statuses?limit=50&sort=recentupdate", nil, &list)
	for _, s := range list {
		if s.Context == policy {
			return s.Status + ": " + s.Description
		}
	}
	return ""
}

// approve is a person's review of a pull request as it is now.
func (r *repository) approve(t *testing.T, user string, number int) {
	t.Helper()
	r.gitea.must(t, user, "POST", fmt.Sprintf("/repos/%s/pulls/%d/reviews", r.name, number), map[string]any{"event": "APPROVED"}, nil)
}

// refusesMerge demands that mei, who owns the repository, cannot merge, and why. Until
// Gitea has looked for conflicts it says something else.
func (r *repository) refusesMerge(t *testing.T, number int, why string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("an answer about the merge of %d", number), 2*time.Minute, func() bool {
		status, err := r.gitea.Call(t.Context(), "mei", "POST", fmt.Sprintf("/repos/%s/pulls/%d/merge", r.name, number), map[string]any{"Do": "merge"}, nil)
		switch {
		case err == nil:
			t.Fatalf("%d was merged, want a refusal: %s", number, why)
		case status != http.StatusMethodNotAllowed:
			t.Fatal(err)
		case strings.Contains(err.Error(), "try again later"):
			return false
		case !strings.Contains(err.Error(), why):
			t.Fatalf("the merge of %d: %v, want: %s", number, err, why)
		}
		return true
	})
}

func (r *repository) waitMerged(t *testing.T, number int) pull {
	t.Helper()
	var p pull
	waitFor(t, fmt.Sprintf("Gitea's own merge of %d", number), 2*time.Minute, func() bool {
		r.must(t, "GET", fmt.Sprintf("/pulls/%d", number), nil, &p)
		return p.Merged
	})
	return p
}

// updateBranch presses the button that merges main into a pull request.
func (r *repository) updateBranch(t *testing.T, number int) {
	t.Helper()
	r.must(t, "POST", fmt.Sprintf("/pulls/%d/update?style=merge", number), nil, nil)
}

// message is that of Tagboat's newest commit on a branch.
func (r *repository) message(t *testing.T, branch string) string {
	t.Helper()
	var answer []struct{ Commit struct{ Message string } }
	r.must(t, "GET", "/commits?stat=false&files=false&verification=false&limit=10&sha="+branch, nil, &answer)
	for _, c := range answer {
		if strings.Contains(c.Commit.Message, "\nTagboat-") {
			return c.Commit.Message
		}
	}
	t.Fatalf("no commit of Tagboat's on %s", branch)
	return ""
}

// verified is what tagboat verify found of one pull request.
type verified struct {
	PullRequest    int
	State, Summary string
	Posted         bool
	Gates          []gate
	Error          *struct{ Code, Message string }
}

// verify runs tagboat verify over all open pull requests.
func (f forge) verify(t *testing.T, args ...string) []verified {
	t.Helper()
	var answer struct{ PullRequests []verified }
	out := f.must(t, append([]string{"verify", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	return answer.PullRequests
}
