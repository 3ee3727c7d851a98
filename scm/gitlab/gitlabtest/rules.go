package gitlabtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// rule is one endpoint: its route and what a request may and must hold. A
// parameter is name:type, with ! if it is required; types are string, int, bool,
// ints, object, labels (a string with commas) and actions. A parameter with | names its
// allowed values.
type rule struct {
	op, method, path string
	query, body      []string
	oneOf            bool // at least one field of the body
	serve            func(*Server, *request) answer
}

// rules describe the endpoints as lib/api of GitLab's source declares them.
func rules() []rule {
	const repo, mrs = "projects/:id/repository/", "projects/:id/merge_requests"
	paging := []string{"page:int", "per_page:int"}
	list := []rule{
		{op: "getProject", method: "GET", path: "projects/:id", serve: (*Server).getProject},
		{op: "getBranch", method: "GET", path: repo + "branches/:branch", serve: (*Server).getBranch},
		{op: "listBranches", method: "GET", path: repo + "branches", serve: (*Server).listBranches, query: append([]string{"search:string", "regex:string"}, paging...)},
		{op: "deleteBranch", method: "DELETE", path: repo + "branches/:branch", serve: (*Server).deleteBranch},
		{op: "listTree", method: "GET", path: repo + "tree", serve: (*Server).listTree,
			query: append([]string{"ref:string", "path:string", "recursive:bool", "pagination:legacy"}, paging...)},
		{op: "getFile", method: "GET", path: repo + "files/:path", serve: (*Server).getFile, query: []string{"ref:string!"}},
		{op: "listCommits", method: "GET", path: repo + "commits", serve: (*Server).listCommits,
			query: append([]string{"ref_name:string", "path:string", "since:string", "until:string", "all:bool", "first_parent:bool"}, paging...)},
		{op: "createCommit", method: "POST", path: repo + "commits", serve: (*Server).createCommit,
			body: []string{"branch:string!", "commit_message:string!", "actions:actions!", "start_branch:string", "start_sha:string",
				"start_project:string", "author_email:string", "author_name:string", "stats:bool", "force:bool"}},
		{op: "compare", method: "GET", path: repo + "compare", serve: (*Server).compare,
			query: []string{"from:string!", "to:string!", "straight:bool", "unidiff:bool", "from_project_id:int"}},
		{op: "mergeBase", method: "GET", path: repo + "merge_base", serve: (*Server).mergeBase, query: []string{"refs[]:string!"}},
		{op: "listMergeRequests", method: "GET", path: mrs, serve: (*Server).listMergeRequests,
			query: append([]string{"state:opened|closed|locked|merged|all", "source_branch:string", "target_branch:string",
				"order_by:created_at|updated_at|title|merged_at", "sort:asc|desc"}, paging...)},
		{op: "createMergeRequest", method: "POST", path: mrs, serve: (*Server).createMergeRequest,
			body: append([]string{"title:string!", "source_branch:string!", "target_branch:string!"}, mergeRequestFields()...)},
		{op: "getMergeRequest", method: "GET", path: mrs + "/:iid", serve: (*Server).getMergeRequest},
		{op: "updateMergeRequest", method: "PUT", path: mrs + "/:iid", serve: (*Server).updateMergeRequest, oneOf: true,
			body: append([]string{"title:string", "target_branch:string", "state_event:close|reopen", "add_labels:labels",
				"remove_labels:labels", "discussion_locked:bool"}, mergeRequestFields()...)},
		{op: "acceptMergeRequest", method: "PUT", path: mrs + "/:iid/merge", serve: (*Server).acceptMergeRequest,
			body: []string{"merge_commit_message:string", "squash_commit_message:string", "should_remove_source_branch:bool",
				"merge_when_pipeline_succeeds:bool", "auto_merge:bool", "sha:string", "squash:bool"}},
		{op: "cancelAutoMerge", method: "POST", path: mrs + "/:iid/cancel_merge_when_pipeline_succeeds", serve: (*Server).cancelAutoMerge},
		{op: "resetApprovals", method: "PUT", path: mrs + "/:iid/reset_approvals", serve: (*Server).resetApprovals},
		{op: "listStatuses", method: "GET", path: repo + "commits/:sha/statuses", serve: (*Server).listStatuses,
			query: append([]string{"ref:string", "stage:string", "name:string", "all:bool", "pipeline_id:int", "order_by:id|pipeline_id", "sort:asc|desc"}, paging...)},
		{op: "commitMergeRequests", method: "GET", path: repo + "commits/:sha/merge_requests", serve: (*Server).commitMergeRequests, query: paging},
		{op: "setStatus", method: "POST", path: "projects/:id/statuses/:sha", serve: (*Server).setStatus,
			body: []string{"state:pending|running|success|failed|canceled|skipped!", "ref:string", "target_url:string", "description:string",
				"name:string", "context:string", "coverage:int", "pipeline_id:int"}},
		{op: "listEvents", method: "GET", path: "projects/:id/events", serve: (*Server).listEvents,
			query: append([]string{"action:pushed|created|updated|closed|reopened|commented|merged", "target_type:string", "before:string", "after:string", "sort:asc|desc"}, paging...)},
		{op: "getApprovals", method: "GET", path: mrs + "/:iid/approvals", serve: (*Server).getApprovals},
		{op: "listVersions", method: "GET", path: mrs + "/:iid/versions", serve: (*Server).listVersions, query: paging},
		{op: "getMember", method: "GET", path: "projects/:id/members/all/:user", serve: (*Server).getMember},
		{op: "getGroup", method: "GET", path: "groups/:group", serve: (*Server).getGroup, query: []string{"with_custom_attributes:bool", "with_projects:bool"}},
		{op: "getGroupMember", method: "GET", path: "groups/:group/members/all/:user", serve: (*Server).getGroupMember},
		{op: "getUser", method: "GET", path: "user", serve: (*Server).getUser},
		{op: "getTokenSelf", method: "GET", path: "personal_access_tokens/self", serve: (*Server).getTokenSelf},
		{op: "listUsers", method: "GET", path: "users", serve: (*Server).listUsers,
			query: append([]string{"username:string", "search:string", "active:bool"}, paging...)},
	}
	return slices.Concat(list, noteRules(), runRules())
}

func mergeRequestFields() []string {
	return []string{"description:string", "assignee_id:int", "assignee_ids:ints", "reviewer_ids:ints", "labels:labels", "milestone_id:int",
		"remove_source_branch:bool", "squash:bool", "allow_collaboration:bool", "target_project_id:int"}
}

func actionFields() []string {
	return []string{"action:create|delete|move|update|chmod!", "file_path:string!", "previous_path:string", "content:string",
		"encoding:text|base64", "last_commit_id:string", "execute_filemode:bool"}
}

// lint reports what GitLab ignores or does not describe to the test, and answers
// what GitLab refuses.
func (s *Server) lint(rt *rule, q *request, r *http.Request) *answer {
	var wrong []string
	values := map[string]any{}
	for k, v := range q.query {
		values[k] = v[0]
	}
	wrong = append(wrong, check(rt.query, values, true)...)
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		wrong = append(wrong, "body: "+err.Error())
	}
	if len(raw) > 0 && string(raw) != "null" {
		if r.Header.Get("Content-Type") != "application/json" {
			wrong = append(wrong, "Content-Type is "+r.Header.Get("Content-Type"))
		}
		if err := json.Unmarshal(raw, &q.body); err != nil {
			wrong = append(wrong, "body: "+err.Error())
		}
	}
	wrong = append(wrong, check(rt.body, q.body, false)...)
	if rt.oneOf && len(q.body) == 0 {
		wrong = append(wrong, "no field given")
	}
	if actions, ok := q.body["actions"].([]any); ok {
		for i, a := range actions {
			fields, _ := a.(map[string]any)
			for _, w := range check(actionFields(), fields, false) {
				wrong = append(wrong, fmt.Sprintf("actions[%d][%s", i, w))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	s.fault("%s %s: %s", q.method, r.URL.Path, strings.Join(wrong, "; "))
	return &answer{status: 400, body: map[string]any{"error": strings.Join(wrong, ", ")}}
}

// check compares values with the parameters that an endpoint has.
func check(params []string, values map[string]any, query bool) (wrong []string) {
	known := map[string]bool{}
	for _, p := range params {
		name, kind, _ := strings.Cut(p, ":")
		kind, required := strings.CutSuffix(kind, "!")
		known[name] = true
		v, given := values[name]
		switch {
		case required && (!given || v == ""):
			wrong = append(wrong, name+" is missing")
		case given && v == nil:
			wrong = append(wrong, name+" is null")
		case given && !fits(kind, v, query):
			wrong = append(wrong, fmt.Sprintf("%s is invalid: %v", name, v))
		}
	}
	for name := range values {
		if !known[name] {
			wrong = append(wrong, name+" is no parameter")
		}
	}
	slices.Sort(wrong)
	return wrong
}

func fits(kind string, v any, query bool) bool {
	text, isText := v.(string)
	switch kind {
	case "string", "labels":
		return isText
	case "int":
		_, isNumber := v.(float64)
		return isNumber || query && isText && text != "" && strings.Trim(text, "0123456789") == ""
	case "bool":
		_, isBool := v.(bool)
		return isBool || query && (text == "true" || text == "false")
	case "ints":
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(x any) bool { _, n := x.(float64); return !n })
	case "actions":
		list, ok := v.([]any)
		return ok && len(list) > 0
	case "object":
		_, ok := v.(map[string]any)
		return ok
	}
	return isText && slices.Contains(strings.Split(kind, "|"), text)
}
