package gitlabtest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"tagboat/scm/scmtest"
)

var fullSHA = regexp.MustCompile(`^[0-9a-f]{40}$`)

// createCommit follows app/services/commits/create_service.rb, then
// files/multi_service.rb, then Gitaly.
func (s *Server) createCommit(q *request) answer {
	branch := q.body["branch"].(string)
	if s.Store.Protected(branch) {
		if s.OldPushText {
			return say(400, "You are not allowed to push into this branch")
		}
		return say(403, "403 Forbidden")
	}
	start, refused := s.start(q)
	if refused != "" {
		return say(400, refused)
	}
	if refused := s.checkActions(q, start); refused != "" {
		return say(400, refused)
	}
	if refused := s.pushRules(q); refused != "" {
		return say(400, refused)
	}
	changes, refused := s.changes(q, start.sha)
	if refused != "" {
		return say(400, refused)
	}
	tree, err := s.Store.WriteTree(start.sha, changes)
	if err != nil {
		return say(400, err.Error())
	}
	sha, err := s.Store.WriteCommit(tree, []string{start.sha}, q.body["commit_message"].(string), s.login(q), time.Time{})
	if err != nil {
		return say(500, err.Error())
	}
	force, _ := q.body["force"].(bool)
	if err := s.Store.SetBranch(branch, start.head, sha, force); err != nil {
		return say(400, fmt.Sprintf("Could not update refs/heads/%s. Please refresh and try again.", branch))
	}
	c, _ := s.Store.Commit(sha)
	shape := s.commitShape(c)
	shape["status"], shape["project_id"], shape["last_pipeline"] = nil, ProjectID, nil
	if q.body["stats"] != false {
		shape["stats"] = map[string]any{"additions": 1, "deletions": 1, "total": 2}
	}
	return answer{status: 201, body: shape}
}

// start is what a commit starts from: a commit, the branch's head ("" if it is
// new), and the ref that last_commit_id is compared with.
type start struct{ sha, head, ref string }

func (s *Server) start(q *request) (start, string) {
	branch := q.body["branch"].(string)
	from, _ := q.body["start_branch"].(string)
	sha, bySHA := q.body["start_sha"].(string)
	force, _ := q.body["force"].(bool)
	head, exists := s.Store.Branch(branch)
	switch {
	case bySHA && from != "":
		return start{}, "You can't pass both start_branch and start_sha"
	case bySHA && !fullSHA.MatchString(sha):
		return start{}, fmt.Sprintf("Invalid start_sha '%s'", sha)
	case bySHA:
		if _, ok := s.Store.Commit(sha); !ok {
			return start{}, fmt.Sprintf("Cannot find start_sha '%s'", sha)
		}
	}
	if from == "" && !bySHA {
		from = branch
	}
	at := sha
	if !bySHA {
		var ok bool
		if at, ok = s.Store.Branch(from); !ok {
			return start{}, "You can only create or edit files when you are on a branch"
		}
	}
	other := bySHA || from != branch
	if other && exists && !force {
		return start{}, fmt.Sprintf("A branch called '%s' already exists. Switch to that branch in order to make changes", branch)
	}
	if err := s.Store.CheckName(branch); other && errors.Is(err, scmtest.ErrBranchName) {
		return start{}, fmt.Sprintf("Something went wrong when we tried to create '%s' for you: Branch name is invalid", branch)
	}
	// With start_sha the service's start_branch is nil, and Gitaly takes the
	// default branch for it (files/base_service.rb, file_has_changed?).
	ref := from
	if bySHA {
		ref = s.Store.DefaultBranch()
	}
	return start{sha: at, head: head, ref: ref}, ""
}

// checkActions compares last_commit_id, as MultiService does before Gitaly.
func (s *Server) checkActions(q *request, st start) string {
	tip, ok := s.Store.Branch(st.ref)
	for _, a := range actions(q) {
		id, given := a["last_commit_id"].(string)
		if !given || a["action"] == "create" || !ok {
			continue
		}
		path := a["file_path"].(string)
		now, known := s.lastCommit(tip, path), s.lastCommit(id, path)
		if now != "" && known != "" && now != known {
			return "The file has changed since you started editing it: " + path
		}
	}
	return ""
}

func actions(q *request) (all []map[string]any) {
	for _, a := range q.body["actions"].([]any) {
		all = append(all, a.(map[string]any))
	}
	return all
}

func (s *Server) pushRules(q *request) string {
	branch, message := q.body["branch"].(string), q.body["commit_message"].(string)
	switch {
	case s.BranchRule != "" && !strings.Contains(branch, s.BranchRule):
		return fmt.Sprintf("Branch name '%s' does not follow the pattern '%s'", branch, s.BranchRule)
	case s.MessageRule != "" && !strings.Contains(message, s.MessageRule):
		return fmt.Sprintf("Commit message does not follow the pattern '%s'", s.MessageRule)
	case s.HookSays != "":
		return s.HookSays
	case q.body["author_email"] != nil:
		return fmt.Sprintf("Author '%s' is not a member of team", q.body["author_email"])
	}
	return ""
}

// changes are the actions as Gitaly applies them to a tree.
func (s *Server) changes(q *request, sha string) (changes []scmtest.TreeChange, refused string) {
	for _, a := range actions(q) {
		path := a["file_path"].(string)
		content, _ := a["content"].(string)
		raw := []byte(content)
		if a["encoding"] == "base64" {
			var err error
			if raw, err = base64.StdEncoding.DecodeString(content); err != nil {
				return nil, "invalid base64"
			}
		}
		if s.AutoCRLF {
			raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
		}
		e, err := s.Store.Entry(sha, path)
		missing := errors.Is(err, fs.ErrNotExist)
		c := scmtest.TreeChange{Path: path, Content: raw}
		switch a["action"] {
		case "create":
			if !missing {
				return nil, "A file with this name already exists"
			}
		case "update", "delete":
			if missing || e.Type != "blob" {
				return nil, "A file with this name doesn't exist"
			}
			c.Delete = a["action"] == "delete"
		default:
			s.fault("commit action %v is not played", a["action"])
		}
		changes = append(changes, c)
	}
	return changes, ""
}

func (s *Server) login(q *request) string {
	if q.token == UserToken {
		return "tomas"
	}
	return BotLogin
}
