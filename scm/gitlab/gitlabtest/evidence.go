package gitlabtest

import (
	"slices"
	"time"
	"unicode/utf8"

	"tagboat/scm/scmtest"
)

// commit resolves the SHA of a path; nothing else may be asked for, for a branch
// moves.
func (s *Server) commit(q *request) (scmtest.CommitInfo, *answer) {
	if !fullSHA.MatchString(q.args[0]) {
		s.fault("%s of %q, which is no full SHA", q.op, q.args[0])
	}
	c, ok := s.Store.Commit(q.args[0])
	if !ok {
		return c, ref(say(404, "404 Commit Not Found"))
	}
	return c, nil
}

// word is a status in GitLab's words.
func word(state string) string {
	if state == "failure" {
		return "failed"
	}
	return state
}

func (s *Server) statusShape(sha string, st scmtest.Status) map[string]any {
	var started, finished any
	if w := word(st.State); w == "success" || w == "failed" || w == "canceled" {
		started, finished = stamp(st.Time), stamp(st.Time)
	}
	text := func(v string) any {
		if v == "" {
			return nil
		}
		return v
	}
	return map[string]any{
		"id": st.ID, "sha": sha, "ref": s.Store.DefaultBranch(), "status": word(st.State), "name": st.Context, "description": text(st.Description),
		"target_url": text(st.URL), "created_at": stamp(st.Time), "started_at": started, "finished_at": finished, "allow_failure": false,
		"coverage": nil, "pipeline_id": 1, "author": s.userShape(st.Creator),
	}
}

// listStatuses shows all that was posted, as GitLab does where each is in a
// pipeline of its own: lowest id first.
func (s *Server) listStatuses(q *request) answer {
	c, missing := s.commit(q)
	if missing != nil {
		return *missing
	}
	part, h := page(q, s.Store.Statuses(c.SHA))
	list := []map[string]any{}
	for _, st := range part {
		list = append(list, s.statusShape(c.SHA, st))
	}
	return answer{status: 200, body: list, header: h}
}

// setStatus follows app/services/ci/create_commit_status_service.rb: one that is
// pending cannot be enqueued again.
func (s *Server) setStatus(q *request) answer {
	c, missing := s.commit(q)
	if missing != nil {
		return *missing
	}
	text := func(name string) string { v, _ := q.body[name].(string); return v }
	if utf8.RuneCountInString(text("description")) > 255 {
		return say(400, map[string]any{"description": []string{"is too long (maximum is 255 characters)"}})
	}
	st := scmtest.Status{Context: text("name"), State: text("state"), Description: text("description"), URL: text("target_url"), Creator: s.login(q)}
	for _, before := range slices.Backward(s.Store.Statuses(c.SHA)) {
		if before.Context != st.Context {
			continue
		}
		if before.State == "pending" && st.State == "pending" {
			return say(400, `Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")`)
		}
		break
	}
	st, err := s.Store.PostStatus(c.SHA, st)
	if err != nil {
		return say(500, err.Error())
	}
	return answer{status: 201, body: s.statusShape(c.SHA, st)}
}

// commitMergeRequests shows open ones too.
func (s *Server) commitMergeRequests(q *request) answer {
	c, missing := s.commit(q)
	if missing != nil {
		return *missing
	}
	all, err := s.Store.PullsOf(c.SHA)
	if err != nil {
		return say(500, err.Error())
	}
	part, h := page(q, all)
	list := []map[string]any{}
	for _, p := range part {
		list = append(list, s.mergeRequestShape(p))
	}
	return answer{status: 200, body: list, header: h}
}

// approvers are those who approve now, with the time at which they did: asking for
// changes takes it back.
func approvers(p scmtest.Pull) (logins []string, at map[string]time.Time) {
	at = map[string]time.Time{}
	for _, r := range p.Reviews {
		switch r.State {
		case "approved":
			at[r.Author] = r.Time
			if !slices.Contains(logins, r.Author) {
				logins = append(logins, r.Author)
			}
		case "changes_requested":
			logins = slices.DeleteFunc(logins, func(l string) bool { return l == r.Author })
		}
	}
	return logins, at
}

func (s *Server) getApprovals(q *request) answer {
	p, missing := s.find(q)
	if missing != nil {
		return *missing
	}
	logins, at := approvers(p)
	by := []map[string]any{}
	for _, l := range logins {
		a := map[string]any{"user": s.userShape(l)}
		if !s.NoApprovalTimes {
			a["approved_at"] = stamp(at[l])
		}
		by = append(by, a)
	}
	return answer{status: 200, body: map[string]any{
		"id": 100_000 + p.Number, "iid": p.Number, "project_id": ProjectID, "title": p.Title, "approvals_required": 0, "approvals_left": 0,
		"approved": len(by) > 0, "approved_by": by, "user_has_approved": false, "user_can_approve": false,
	}}
}

// listVersions are newest first.
func (s *Server) listVersions(q *request) answer {
	p, missing := s.find(q)
	if missing != nil {
		return *missing
	}
	all := []map[string]any{}
	for i, v := range slices.Backward(p.Versions) {
		all = append(all, map[string]any{
			"id": 100*p.Number + i, "head_commit_sha": v.SHA, "base_commit_sha": p.BaseSHA, "start_commit_sha": p.BaseSHA,
			"created_at": stamp(v.Time), "merge_request_id": 100_000 + p.Number, "state": "collected", "real_size": "1",
		})
	}
	part, h := page(q, all)
	return answer{status: 200, body: part, header: h}
}
