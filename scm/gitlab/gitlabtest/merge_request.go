package gitlabtest

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tagboat/scm/scmtest"
)

func (s *Server) mergeRequestURL(number int) string {
	return fmt.Sprintf("%s/-/merge_requests/%d", s.web(), number)
}

func (s *Server) listMergeRequests(q *request) answer {
	want := q.query.Get("state")
	all := s.Store.Pulls(func(p scmtest.Pull) bool {
		state := p.State
		if state == "open" {
			state = "opened"
		}
		return (want == "" || want == "all" || want == state) &&
			(q.query.Get("source_branch") == "" || q.query.Get("source_branch") == p.Head) &&
			(q.query.Get("target_branch") == "" || q.query.Get("target_branch") == p.Base)
	})
	if q.query.Get("order_by") == "updated_at" {
		slices.SortStableFunc(all, func(a, b scmtest.Pull) int { return b.Updated.Compare(a.Updated) })
	}
	if q.query.Get("sort") == "asc" {
		slices.Reverse(all)
	}
	part, h := page(q, all)
	list := []map[string]any{}
	for _, p := range part {
		list = append(list, s.mergeRequestShape(p))
	}
	return answer{status: 200, body: list, header: h}
}

func (s *Server) createMergeRequest(q *request) answer {
	if a := s.lawful(q); a != nil {
		return *a
	}
	text := func(name string) string { v, _ := q.body[name].(string); return v }
	n := scmtest.NewPull{Head: text("source_branch"), Base: text("target_branch"), Title: text("title"), Body: text("description"), Author: s.login(q)}
	n.Draft = draft.MatchString(n.Title)
	p, err := s.Store.OpenPull(n)
	switch {
	case errors.Is(err, scmtest.ErrPullExists):
		return say(409, []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", p.Number)})
	case errors.Is(err, scmtest.ErrBranchMissing):
		which := "Source"
		if _, ok := s.Store.Branch(n.Head); ok {
			which = "Target"
		}
		return say(422, []string{fmt.Sprintf("%s branch does not exist", which)})
	case errors.Is(err, scmtest.ErrNoCommits):
		s.fault("a merge request without a commit: %v", err) // GitLab opens it
		return say(422, err.Error())
	case err != nil:
		return say(400, err.Error())
	}
	return s.edit(q, p.Number, 201)
}

var draft = regexp.MustCompile(`(?i)^(\[draft\]|\(draft\)|draft:|\[wip\]|wip:)`)

// lawful checks title and description.
func (s *Server) lawful(q *request) *answer {
	if title, given := q.body["title"].(string); given {
		if strings.TrimSpace(title) == "" {
			return ref(say(400, map[string]any{"title": []string{"can't be blank"}}))
		}
		if utf8.RuneCountInString(title) > 255 {
			return ref(say(400, map[string]any{"title": []string{"is too long (maximum is 255 characters)"}}))
		}
	}
	if body, _ := q.body["description"].(string); utf8.RuneCountInString(body) > 1_048_576 {
		return ref(say(400, map[string]any{"description": []string{"is too long (1.2 MiB). The maximum size is 1 MiB."}}))
	}
	return nil
}

// edit sets what the body names and answers the single merge request.
func (s *Server) edit(q *request, number, status int) answer {
	p, err := s.Store.EditPull(number, func(p *scmtest.Pull) error {
		if v, ok := q.body["title"].(string); ok {
			p.Title, p.Draft = v, draft.MatchString(v)
		}
		if v, ok := q.body["description"].(string); ok {
			p.Body = v
		}
		if v, ok := q.body["labels"].(string); ok {
			p.Labels = split(v)
		}
		if v, ok := q.body["add_labels"].(string); ok {
			p.Labels = append(p.Labels, split(v)...)
		}
		slices.Sort(p.Labels)
		p.Labels = slices.Compact(p.Labels)
		if v, ok := q.body["reviewer_ids"].([]any); ok {
			p.Reviewers = s.members(v)
		}
		if v, ok := q.body["assignee_ids"].([]any); ok {
			p.Assignees = s.members(v)
		}
		return nil
	})
	if err != nil {
		return say(404, "404 Merge Request Not Found")
	}
	return answer{status: status, body: s.single(p)}
}

func split(labels string) (all []string) {
	for _, l := range strings.Split(labels, ",") {
		if l = strings.TrimSpace(l); l != "" {
			all = append(all, l)
		}
	}
	return all
}

// members drops who is none, without a word; the free plan keeps one.
func (s *Server) members(ids []any) (logins []string) {
	for _, id := range ids {
		for login, known := range s.Users {
			if float64(known) == id && !strings.HasPrefix(login, "outsider") {
				logins = append(logins, login)
			}
		}
	}
	if s.Free && len(logins) > 1 {
		logins = logins[:1]
	}
	return logins
}

// find is the merge request of a request's path.
func (s *Server) find(q *request) (scmtest.Pull, *answer) {
	n, err := strconv.Atoi(q.args[0])
	if err == nil {
		var p scmtest.Pull
		if p, err = s.Store.Pull(n); err == nil {
			return p, nil
		}
	}
	return scmtest.Pull{}, ref(say(404, "404 Merge Request Not Found"))
}

// single is a merge request as GET, POST and PUT answer it.
func (s *Server) single(p scmtest.Pull) map[string]any {
	mr := s.mergeRequestShape(p)
	mr["subscribed"], mr["changes_count"], mr["user"] = false, "1", map[string]any{"can_merge": s.CanMerge}
	mr["diff_refs"] = map[string]any{"base_sha": p.BaseSHA, "start_sha": p.BaseSHA, "head_sha": p.HeadSHA}
	mr["merge_error"], mr["first_contribution"], mr["latest_build_started_at"], mr["latest_build_finished_at"] = nil, false, nil, nil
	mr["head_pipeline"], mr["pipeline"] = nil, nil
	if status := s.pipeline(p.Number); status != "" {
		pipe := map[string]any{"id": 1, "iid": 1, "project_id": ProjectID, "sha": p.HeadSHA, "ref": p.Head, "status": status, "source": "merge_request_event", "web_url": s.web() + "/-/pipelines/1"}
		mr["head_pipeline"], mr["pipeline"] = pipe, pipe
	}
	return mr
}

func (s *Server) getMergeRequest(q *request) answer {
	p, missing := s.find(q)
	if missing != nil {
		return *missing
	}
	s.mu.Lock()
	s.looks[p.Number]++
	s.mu.Unlock()
	return answer{status: 200, body: s.single(p)}
}

func (s *Server) updateMergeRequest(q *request) answer {
	p, missing := s.find(q)
	if missing != nil {
		return *missing
	}
	if a := s.lawful(q); a != nil {
		return *a
	}
	switch q.body["state_event"] {
	case "close":
		if p.State == "open" {
			if err := s.Store.ClosePullRequest(p.Number, s.login(q)); err != nil {
				return say(500, err.Error())
			}
		}
	case "reopen":
		if err := s.Store.ReopenPull(p.Number); err != nil {
			return say(400, err.Error())
		}
	}
	return s.edit(q, p.Number, 200)
}

// resetApprovals is for bot users of Premium only (docs, merge request approvals).
func (s *Server) resetApprovals(q *request) answer {
	p, missing := s.find(q)
	switch {
	case s.Free:
		return answer{status: 404, body: map[string]any{"error": "404 Not Found"}}
	case missing != nil:
		return *missing
	case q.token != Token:
		return say(401, "401 Unauthorized")
	}
	s.mu.Lock()
	s.reset[p.Number]++
	s.mu.Unlock()
	_, err := s.Store.EditPull(p.Number, func(p *scmtest.Pull) error { p.Reviews = nil; return nil })
	if err != nil {
		return say(500, err.Error())
	}
	return answer{status: http.StatusAccepted, body: map[string]any{"message": "202 Accepted"}}
}

// Resets is how often a merge request's approvals were reset.
func (s *Server) Resets(number int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reset[number]
}
