package gitlabtest

import (
	"errors"
	"fmt"

	"tagboat/scm/scmtest"
)

// pipeline is the status of a merge request's pipeline, "" while there is none.
func (s *Server) pipeline(number int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.PipelineLooks < 0 || s.looks[number] < s.PipelineLooks {
		return ""
	}
	if s.state[number] == "" {
		return "running"
	}
	return s.state[number]
}

// FinishPipeline ends a merge request's pipeline (success or failed), and merges
// if auto-merge waits for it.
func (s *Server) FinishPipeline(number int, status string) error {
	s.mu.Lock()
	s.state[number] = status
	s.mu.Unlock()
	p, err := s.Store.Pull(number)
	if err != nil || !p.AutoMerge || status != "success" {
		return err
	}
	_, err = s.Store.MergePullRequest(number, "merge")
	return err
}

// mergeStatus is detailed_merge_status (docs, merge requests API, "Merge status").
func (s *Server) mergeStatus(p scmtest.Pull) string {
	s.mu.Lock()
	checking := s.looks[p.Number] < s.CheckingLooks
	s.mu.Unlock()
	pipe := s.pipeline(p.Number)
	mergeable, err := s.Store.Mergeable(p.Number)
	switch {
	case p.State != "open":
		return "not_open"
	case checking:
		return "checking"
	case p.Draft:
		return "draft_status"
	case errors.Is(err, scmtest.ErrBranchMissing):
		return "commits_status"
	case !mergeable:
		return "conflict"
	case s.RequireApproval:
		return "not_approved"
	case s.RequirePipeline && pipe == "running":
		return "ci_still_running"
	case s.RequirePipeline && pipe != "success":
		return "ci_must_pass"
	}
	return "mergeable"
}

// acceptMergeRequest follows lib/api/merge_requests.rb: immediately if everything
// is met, by auto-merge while a pipeline runs, else 405.
func (s *Server) acceptMergeRequest(q *request) answer {
	p, missing := s.find(q)
	if missing != nil {
		return *missing
	}
	if !s.CanMerge {
		return say(401, "401 Unauthorized")
	}
	auto := q.body["auto_merge"] == true || q.body["merge_when_pipeline_succeeds"] == true
	pipe, status := s.pipeline(p.Number), s.mergeStatus(p)
	later := auto && pipe == "running" && (status == "mergeable" || status == "ci_still_running" || status == "not_approved")
	now := status == "mergeable" && (!auto || pipe == "success")
	if !later && !now {
		return say(405, "405 Method Not Allowed")
	}
	if sha, given := q.body["sha"].(string); !given {
		s.fault("merge of !%d without sha", p.Number)
	} else if sha != p.HeadSHA {
		return say(409, "SHA does not match HEAD of source branch: "+p.HeadSHA)
	}
	if now {
		if _, err := s.Store.MergePullRequest(p.Number, "merge"); err != nil {
			return say(422, "Branch cannot be merged")
		}
	} else if _, err := s.Store.EditPull(p.Number, func(p *scmtest.Pull) error {
		p.AutoMerge, p.AutoMergeBy = true, s.login(q)
		return nil
	}); err != nil {
		return say(500, err.Error())
	}
	p, err := s.Store.Pull(p.Number)
	if err != nil {
		return say(500, fmt.Sprint(err))
	}
	return answer{status: 200, body: s.single(p)}
}

func (s *Server) cancelAutoMerge(q *request) answer {
	p, missing := s.find(q)
	switch {
	case missing != nil:
		return *missing
	case !p.AutoMerge:
		return say(406, "406 Not Acceptable")
	}
	p, err := s.Store.EditPull(p.Number, func(p *scmtest.Pull) error { p.AutoMerge = false; return nil })
	if err != nil {
		return say(500, err.Error())
	}
	return answer{status: 201, body: s.single(p)}
}
