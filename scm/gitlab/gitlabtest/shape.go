package gitlabtest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"tagboat/scm/scmtest"
)

// web is where people see the project.
func (s *Server) web() string { return "https://gitlab.example" + s.BasePath + "/" + Project }

func sha256Hex(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func (s *Server) projectShape() map[string]any {
	return map[string]any{
		"id": ProjectID, "description": "", "default_branch": s.Store.DefaultBranch(), "name": "config",
		"name_with_namespace": "acme / platform / config", "path": "config", "path_with_namespace": Project,
		"web_url": s.web(), "archived": false, "visibility": "private", "merge_requests_enabled": true, "empty_repo": false,
		"only_allow_merge_if_pipeline_succeeds": s.RequirePipeline, "merge_method": "merge",
		"ssh_url_to_repo": "git@gitlab.example:" + Project + ".git", "http_url_to_repo": s.web() + ".git",
		"created_at": "2026-01-01T00:00:00.000Z", "last_activity_at": "2026-01-01T00:00:00.000Z",
	}
}

func (s *Server) branchShape(name string) map[string]any {
	sha, _ := s.Store.Branch(name)
	c, _ := s.Store.Commit(sha)
	protected := s.Store.Protected(name)
	return map[string]any{
		"name": name, "commit": s.commitShape(c), "merged": false, "protected": protected,
		"developers_can_push": false, "developers_can_merge": false, "can_push": !protected,
		"default": name == s.Store.DefaultBranch(), "web_url": s.web() + "/-/tree/" + name,
	}
}

func (s *Server) commitShape(c scmtest.CommitInfo) map[string]any {
	title, _, _ := strings.Cut(c.Message, "\n")
	parents := c.Parents
	if parents == nil {
		parents = []string{}
	}
	return map[string]any{
		"id": c.SHA, "short_id": c.SHA[:8], "created_at": stamp(c.Time), "parent_ids": parents, "title": title, "message": c.Message,
		"author_name": c.Author, "author_email": c.AuthorEmail, "authored_date": stamp(c.Time),
		"committer_name": c.Author, "committer_email": c.AuthorEmail, "committed_date": stamp(c.Time),
		"trailers": map[string]any{}, "extended_trailers": map[string]any{}, "web_url": s.web() + "/-/commit/" + c.SHA,
	}
}

func (s *Server) userShape(login string) map[string]any {
	return map[string]any{
		"id": s.userID(login), "username": login, "name": login, "state": "active", "locked": false,
		"avatar_url": "https://gitlab.example/avatar.png", "web_url": "https://gitlab.example/" + login,
	}
}

// mergeRequestShape is the entity of a list; what only a single one has is added
// by single.
func (s *Server) mergeRequestShape(p scmtest.Pull) map[string]any {
	state := map[string]string{"open": "opened"}[p.State]
	if state == "" {
		state = p.State
	}
	source := ProjectID
	if p.HeadRepo != "" {
		source = ProjectID + 1
	}
	var merged any
	if p.State == "merged" {
		merged = p.MergeSHA
	}
	mr := map[string]any{
		"id": 100_000 + p.Number, "iid": p.Number, "project_id": ProjectID, "title": p.Title, "description": p.Body, "state": state,
		"created_at": stamp(p.Created), "updated_at": stamp(p.Updated), "merged_by": nil, "merged_at": nil, "closed_by": nil, "closed_at": nil,
		"target_branch": p.Base, "source_branch": p.Head, "user_notes_count": len(p.Comments), "upvotes": 0, "downvotes": 0,
		"author": s.userShape(p.Author), "assignees": s.userShapes(p.Assignees), "assignee": nil, "reviewers": s.userShapes(p.Reviewers),
		"source_project_id": source, "target_project_id": ProjectID, "labels": orEmpty(p.Labels),
		"draft": p.Draft, "work_in_progress": p.Draft, "milestone": nil, "merge_when_pipeline_succeeds": p.AutoMerge,
		"merge_status": "can_be_merged", "detailed_merge_status": s.mergeStatus(p), "sha": p.HeadSHA, "merge_commit_sha": merged,
		"squash_commit_sha": nil, "discussion_locked": nil, "should_remove_source_branch": nil, "force_remove_source_branch": true,
		"reference": "!0", "references": map[string]any{}, "web_url": s.mergeRequestURL(p.Number), "squash": false,
		"time_stats":             map[string]any{"time_estimate": 0, "total_time_spent": 0, "human_time_estimate": nil, "human_total_time_spent": nil},
		"approvals_before_merge": nil, "has_conflicts": false, "blocking_discussions_resolved": true, "task_completion_status": map[string]any{"count": 0, "completed_count": 0},
	}
	if s.Before15 {
		delete(mr, "draft")
		delete(mr, "detailed_merge_status")
		mr["merge_status"] = map[string]string{"checking": "checking", "mergeable": "can_be_merged"}[s.mergeStatus(p)]
	}
	if p.State == "merged" {
		mr["merged_at"], mr["merged_by"] = stamp(p.Closed), s.userShape(p.MergedBy)
	}
	if p.ClosedBy != "" {
		mr["closed_by"] = s.userShape(p.ClosedBy)
	}
	return mr
}

func (s *Server) userShapes(logins []string) []map[string]any {
	all := []map[string]any{}
	for _, l := range logins {
		all = append(all, s.userShape(l))
	}
	return all
}
