package gitlabtest

import (
	"strings"

	"tagboat/scm/scmtest"
)

// listEvents knows the pushes of all branches, newest first.
func (s *Server) listEvents(q *request) answer {
	if q.query.Get("action") != "pushed" || q.query.Get("sort") != "desc" {
		s.fault("events with action %q and sort %q are not played", q.query.Get("action"), q.query.Get("sort"))
	}
	part, h := page(q, s.Store.Moves())
	list := []map[string]any{}
	for _, m := range part {
		list = append(list, s.eventShape(m))
	}
	return answer{status: 200, body: list, header: h}
}

// eventShape is a push event (app/models/push_event_payload.rb): from is null for a
// new branch, to for a deleted one.
func (s *Server) eventShape(m scmtest.Move) map[string]any {
	names := map[string]string{"branch_creation": "pushed new", "branch_deletion": "deleted"}
	actions := map[string]string{"branch_creation": "created", "branch_deletion": "removed"}
	name, action, from, to, title := names[m.Kind], actions[m.Kind], any(m.Before), any(m.After), any(nil)
	if action == "" {
		name, action = "pushed to", "pushed"
	}
	if m.Before == "" {
		from = nil
	}
	if m.After == "" {
		to = nil
	}
	if c, ok := s.Store.Commit(m.After); ok {
		title, _, _ = strings.Cut(c.Message, "\n")
	}
	return map[string]any{
		"id": m.ID, "project_id": ProjectID, "action_name": name, "target_id": nil, "target_iid": nil, "target_type": nil, "target_title": nil,
		"author_id": s.userID(BotLogin), "author": s.userShape(BotLogin), "author_username": BotLogin, "created_at": stamp(m.Time), "imported": false,
		"push_data": map[string]any{
			"commit_count": 1, "action": action, "ref_type": "branch", "ref": m.Branch, "ref_count": nil,
			"commit_from": from, "commit_to": to, "commit_title": title,
		},
	}
}
