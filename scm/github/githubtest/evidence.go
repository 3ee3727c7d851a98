package githubtest

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tagboat/scm/scmtest"
)

// needs are the permissions of an App or fine-grained token that an operation
// takes, as GitHub's documentation of each says. The rest takes contents and
// pull_requests, or metadata, which every token has.
func needs() map[string][2]string {
	return map[string][2]string{
		"GET commits/{ref}/statuses":                              {"statuses", "read"},
		"GET commits/{ref}/check-runs":                            {"checks", "read"},
		"POST statuses/{sha}":                                     {"statuses", "write"},
		"GET orgs/{org}/teams/{team_slug}":                        {"members", "read"},
		"GET orgs/{org}/teams/{team_slug}/memberships/{username}": {"members", "read"},
		"GET collaborators/{username}/permission":                 {"metadata", "read"},
		"GraphQL viewer":                                          {"metadata", "read"},
		"GraphQL updateRefs":                                      {"contents", "write"},
		"GraphQL enablePullRequestAutoMerge":                      {"pull_requests", "write"},
		"GraphQL disablePullRequestAutoMerge":                     {"pull_requests", "write"},
		"GET commits/{commit_sha}/pulls":                          {"pull_requests", "read"},
		"PUT pulls/{pull_number}/merge":                           {"contents", "write"},
	}
}

// lacking refuses what the token has no permission for, and names it in the
// header as GitHub does.
func (s *Server) lacking(r *request, token string) *Answer {
	need, listed := needs()[r.op]
	for _, more := range []map[string][2]string{talkNeeds(), runNeeds()} {
		if n, ok := more[r.op]; ok {
			need, listed = n, true
		}
	}
	if !listed {
		need = [2]string{"contents", "read"}
		if _, path, _ := strings.Cut(r.op, " "); strings.HasPrefix(path, "pulls") || strings.HasPrefix(path, "issues/") { // labels, assignees
			need[0] = "pull_requests"
		}
		if r.Method != http.MethodGet {
			need[1] = "write"
		}
	}
	if need[0] == "metadata" || s.has(token, need[0], need[1]) {
		return nil
	}
	return inaccessible(token, need[0]+"="+need[1])
}

// commitOf resolves the SHA of a path; nothing else may be asked for, for a
// branch moves.
func (s *Server) commitOf(r *request, param string) (scmtest.CommitInfo, *Answer) {
	sha := r.params[param]
	if len(sha) != 40 {
		s.t.Errorf("fake GitHub: %s: %q is no full SHA", r.op, sha)
	}
	c, ok := s.Store.Commit(sha)
	if !ok {
		return c, &Answer{Status: http.StatusUnprocessableEntity, Message: "No commit found for SHA: " + sha}
	}
	return c, nil
}

func (s *Server) status(st scmtest.Status) map[string]any {
	return s.object("status", map[string]any{
		"id": st.ID, "node_id": "SC_x", "url": s.rest("statuses/x"), "avatar_url": nil, "state": st.State, "description": st.Description,
		"target_url": orNil(st.URL), "context": st.Context, "created_at": stamp(st.Time), "updated_at": stamp(st.Time), "creator": s.user(st.Creator),
	})
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// listStatuses gives all that was ever posted, newest first.
func listStatuses(s *Server, w http.ResponseWriter, r *request) (int, any) {
	c, missing := s.commitOf(r, "ref")
	if missing != nil {
		return missing.Status, *missing
	}
	all := slices.DeleteFunc(s.Store.Statuses(c.SHA), func(st scmtest.Status) bool { return st.CheckRun })
	slices.Reverse(all)
	out := []any{}
	for _, st := range page(w, r, all, 30) {
		out = append(out, s.status(st))
	}
	return http.StatusOK, out
}

// listCheckRuns gives the latest of each app and name, unless all are asked for.
// Of a State the part behind a slash is the conclusion: completed/success.
func listCheckRuns(s *Server, w http.ResponseWriter, r *request) (int, any) {
	c, missing := s.commitOf(r, "ref")
	if missing != nil {
		return missing.Status, *missing
	}
	seen := map[string]bool{}
	var all []scmtest.Status
	for _, st := range slices.Backward(s.Store.Statuses(c.SHA)) {
		key := st.Creator + "\x00" + st.Context
		if !st.CheckRun || seen[key] && r.q("filter") != "all" {
			continue
		}
		seen[key] = true
		all = append(all, st)
	}
	out := []any{}
	for _, st := range page(w, r, all, 30) {
		out = append(out, s.checkRun(c.SHA, st))
	}
	return http.StatusOK, map[string]any{"total_count": len(all), "check_runs": out}
}

func (s *Server) checkRun(sha string, st scmtest.Status) map[string]any {
	state, conclusion, done := strings.Cut(st.State, "/")
	run := map[string]any{
		"id": st.ID, "head_sha": sha, "name": st.Context, "status": state, "conclusion": nil, "details_url": orNil(st.URL),
		"started_at": stamp(st.Time), "completed_at": nil, "html_url": s.web("runs/" + strconv.Itoa(st.ID)),
		"app":    s.object("nullable-integration", map[string]any{"id": len(st.Creator), "slug": st.Creator, "name": st.Creator, "owner": s.user(s.opts.Owner), "permissions": map[string]any{}, "events": []any{}}),
		"output": map[string]any{"title": orNil(st.Description), "summary": nil, "text": nil, "annotations_count": 0, "annotations_url": s.rest("x")},
	}
	if done {
		run["conclusion"], run["completed_at"] = conclusion, stamp(st.Time)
	}
	return s.object("check-run", run)
}

// listPullsOfCommit gives open ones too.
func listPullsOfCommit(s *Server, w http.ResponseWriter, r *request) (int, any) {
	c, missing := s.commitOf(r, "commit_sha")
	if missing != nil {
		return missing.Status, *missing
	}
	all, err := s.Store.PullsOf(c.SHA)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	out := []any{}
	for _, p := range page(w, r, all, 30) {
		out = append(out, s.pull(p, false))
	}
	return http.StatusOK, out
}

// statusesPerContext is how many statuses GitHub takes for one commit and context.
const statusesPerContext = 1000

func createStatus(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	c, missing := s.commitOf(r, "sha")
	if missing != nil {
		return missing.Status, *missing
	}
	in := struct {
		State, Context, Description string
		TargetURL                   string `json:"target_url"`
	}{Context: "default"}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	const bad = http.StatusUnprocessableEntity
	same := 0
	for _, st := range s.Store.Statuses(c.SHA) {
		if st.Context == in.Context && !st.CheckRun {
			same++
		}
	}
	switch {
	case !slices.Contains([]string{"error", "failure", "pending", "success"}, in.State):
		return refuse(bad, "Validation Failed", "State is not included in the list")
	case utf8.RuneCountInString(in.Description) > 140:
		return refuse(bad, "Validation Failed", "Description is too long (maximum is 140 characters)")
	case same >= statusesPerContext:
		return refuse(bad, "Validation Failed", "This SHA and context has reached the maximum number of statuses.")
	}
	st, err := s.Store.PostStatus(c.SHA, scmtest.Status{Context: in.Context, State: in.State, Description: in.Description, URL: in.TargetURL, Creator: r.login})
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	return http.StatusCreated, s.status(st)
}

func getPull(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	p, missing := s.find(r, "pull_number")
	if missing != nil {
		return missing.Status, *missing
	}
	return http.StatusOK, s.pull(p, true)
}

// mergePull merges at once, if the head is the one that was named.
func mergePull(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	p, missing := s.find(r, "pull_number")
	if missing != nil {
		return missing.Status, *missing
	}
	var in struct {
		SHA    string
		Method string `json:"merge_method"`
	}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	switch {
	case in.SHA == "":
		s.t.Errorf("fake GitHub: the merge of #%d is not bound to a head commit", p.Number)
	case p.State != "open" || p.Draft:
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case s.opts.MergeBlocked != "":
		return refuse(http.StatusMethodNotAllowed, s.opts.MergeBlocked)
	case in.SHA != p.HeadSHA:
		return refuse(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	case s.opts.SquashOnly && in.Method != "squash":
		return refuse(http.StatusMethodNotAllowed, "Merge commits are not allowed on this repository.")
	}
	sha, err := s.Store.MergePullRequest(p.Number, in.Method)
	switch {
	case errors.Is(err, scmtest.ErrConflict):
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case err != nil:
		return refuse(http.StatusInternalServerError, err.Error())
	}
	return http.StatusOK, map[string]any{"sha": sha, "merged": true, "message": "Pull Request successfully merged"}
}
