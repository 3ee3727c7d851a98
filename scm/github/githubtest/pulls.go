package githubtest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tagboat/scm/scmtest"
)

// listPulls ignores a head that is not OWNER:BRANCH, as GitHub does, and shows a
// fork's branch of the same owner and name too.
func listPulls(s *Server, w http.ResponseWriter, r *request) (int, any) {
	state := r.q("state")
	owner, branch, filtered := strings.Cut(r.q("head"), ":")
	all := s.Store.Pulls(func(p scmtest.Pull) bool {
		headOwner, _, _ := strings.Cut(p.HeadRepo, "/")
		if p.HeadRepo == "" {
			headOwner = s.opts.Owner
		}
		return (state == "all" || (p.State == "open") == (state != "closed")) &&
			(!filtered || (strings.EqualFold(owner, headOwner) && branch == p.Head)) && (r.q("base") == "" || r.q("base") == p.Base)
	})
	s.mu.Lock()
	if s.hidden > 0 && len(all) > 0 {
		s.hidden--
		all = all[1:]
	}
	s.mu.Unlock()
	if r.q("direction") == "asc" || (r.q("direction") == "" && r.q("sort") != "" && r.q("sort") != "created") {
		slices.Reverse(all)
	}
	out := []any{}
	for _, p := range page(w, r, all, 30) {
		out = append(out, s.pull(p, false))
	}
	return http.StatusOK, out
}

func createPull(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	const bad = http.StatusUnprocessableEntity
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	head := strings.TrimPrefix(in.Head, s.opts.Owner+":")
	switch {
	case s.opts.ActionsMayNotOpen:
		return refuse(http.StatusForbidden, "GitHub Actions is not permitted to create or approve pull requests.")
	case in.Draft && s.opts.NoDrafts:
		return refuse(bad, "Draft pull requests are not supported in this repository.")
	case in.Title == "":
		return refuse(bad, "Validation Failed", map[string]any{"resource": "PullRequest", "code": "missing_field", "field": "title"})
	case utf8.RuneCountInString(in.Body) > 65536:
		return refuse(bad, "Validation Failed", custom("PullRequest", "body is too long (maximum is 65536 characters)"))
	}
	p, err := s.Store.OpenPull(scmtest.NewPull{Head: head, Base: in.Base, Title: in.Title, Body: in.Body, Author: r.login, Draft: in.Draft})
	switch {
	case errors.Is(err, scmtest.ErrPullExists):
		return refuse(bad, "Validation Failed", custom("PullRequest", fmt.Sprintf("A pull request already exists for %s:%s.", s.opts.Owner, head)))
	case errors.Is(err, scmtest.ErrNoCommits):
		return refuse(bad, "Validation Failed", custom("PullRequest", fmt.Sprintf("No commits between %s and %s", in.Base, head)))
	case err != nil:
		return refuse(bad, "Validation Failed", map[string]any{"resource": "PullRequest", "field": "head", "code": "invalid"})
	}
	return http.StatusCreated, s.pull(p, true)
}

func (s *Server) find(r *request, param string) (scmtest.Pull, *Answer) {
	number, err := strconv.Atoi(r.params[param])
	if err != nil {
		return scmtest.Pull{}, &Answer{Status: http.StatusNotFound, Message: "Not Found"}
	}
	p, err := s.Store.Pull(number)
	if err != nil {
		return scmtest.Pull{}, &Answer{Status: http.StatusNotFound, Message: "Not Found"}
	}
	return p, nil
}

func updatePull(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	p, missing := s.find(r, "pull_number")
	if missing != nil {
		return missing.Status, *missing
	}
	var in struct{ Title, Body, State *string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if in.Body != nil && utf8.RuneCountInString(*in.Body) > 65536 {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", custom("PullRequest", "body is too long (maximum is 65536 characters)"))
	}
	if in.State != nil && *in.State == "open" && p.State == "closed" {
		if err := s.Store.ReopenPull(p.Number); err != nil {
			return refuse(http.StatusUnprocessableEntity, "Validation Failed", custom("PullRequest", "state cannot be changed. The "+p.Head+" branch was force-pushed or recreated."))
		}
	}
	if in.State != nil && *in.State == "closed" && p.State == "open" {
		if err := s.Store.ClosePullRequest(p.Number, r.login); err != nil {
			return refuse(http.StatusInternalServerError, err.Error())
		}
	}
	p, err := s.Store.EditPull(p.Number, func(p *scmtest.Pull) error {
		set(&p.Title, in.Title)
		set(&p.Body, in.Body)
		return nil
	})
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	return http.StatusOK, s.pull(p, true)
}

func set(into *string, value *string) {
	if value != nil {
		*into = *value
	}
}

// lagging is the refusal of a server that does not know the pull request yet.
func (s *Server) lagging(p scmtest.Pull) *Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lag == 0 {
		return nil
	}
	s.lag--
	return &Answer{Status: http.StatusUnprocessableEntity, Message: "Validation Failed", Errors: []any{
		fmt.Sprintf("Could not resolve to a node with the global id of 'PR_%d'.", p.Number)}}
}

// issue finds what is addressed through the issue side.
func (s *Server) issue(r *request, param string) (scmtest.Pull, *Answer) {
	p, missing := s.find(r, param)
	if missing != nil {
		return p, missing
	}
	return p, s.lagging(p)
}

func listLabels(s *Server, w http.ResponseWriter, r *request) (int, any) {
	p, missing := s.find(r, "issue_number")
	if missing != nil {
		return missing.Status, *missing
	}
	return http.StatusOK, page(w, r, s.labels(p.Labels), 30)
}

func addLabels(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	p, refusal := s.issue(r, "issue_number")
	if refusal != nil {
		return refusal.Status, *refusal
	}
	var in struct{ Labels []string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	p = s.edit(p.Number, func(p *scmtest.Pull) { p.Labels = union(p.Labels, in.Labels) })
	return http.StatusOK, s.labels(p.Labels)
}

func (s *Server) edit(number int, do func(*scmtest.Pull)) scmtest.Pull {
	p, err := s.Store.EditPull(number, func(p *scmtest.Pull) error { do(p); return nil })
	if err != nil {
		s.t.Errorf("fake GitHub: edit #%d: %v", number, err)
	}
	return p
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.ContainsFunc(out, func(y string) bool { return strings.EqualFold(x, y) }) {
			out = append(out, x)
		}
	}
	return out
}

func (s *Server) collaborator(login string) bool {
	if s.opts.Collaborators == nil {
		return login != "ghost"
	}
	return slices.ContainsFunc(s.opts.Collaborators, func(c string) bool { return strings.EqualFold(c, login) })
}

// addAssignees drops those who cannot be assigned without a word.
func addAssignees(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	p, refusal := s.issue(r, "issue_number")
	if refusal != nil {
		return refusal.Status, *refusal
	}
	var in struct{ Assignees []string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	who := slices.DeleteFunc(in.Assignees, func(l string) bool { return !s.collaborator(l) })
	p = s.edit(p.Number, func(p *scmtest.Pull) { p.Assignees = union(p.Assignees, who) })
	return http.StatusCreated, s.object("issue", map[string]any{
		"number": p.Number, "state": "open", "title": p.Title, "labels": s.labels(p.Labels), "assignees": s.users(p.Assignees), "user": s.user(p.Author),
	})
}

// requestReviewers refuses the whole call for one bad name.
func requestReviewers(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	p, refusal := s.issue(r, "pull_number")
	if refusal != nil {
		return refusal.Status, *refusal
	}
	var in struct {
		Reviewers     []string
		TeamReviewers []string `json:"team_reviewers"`
	}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	const bad = http.StatusUnprocessableEntity
	for _, l := range in.Reviewers {
		if strings.EqualFold(l, p.Author) {
			return refuse(bad, "Review cannot be requested from pull request author.")
		}
		if !s.collaborator(l) {
			return refuse(bad, "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the "+s.fullName()+" repository.")
		}
	}
	for _, slug := range in.TeamReviewers {
		if !slices.Contains(s.opts.Teams, slug) {
			return refuse(bad, "Validation Failed", "Could not resolve to a node with the global id of 'T_"+slug+"'.")
		}
	}
	p = s.edit(p.Number, func(p *scmtest.Pull) {
		p.Reviewers, p.TeamReviewers = union(p.Reviewers, in.Reviewers), union(p.TeamReviewers, in.TeamReviewers)
	})
	return http.StatusCreated, s.pull(p, false)
}

func (s *Server) review(p scmtest.Pull, v scmtest.Review) map[string]any {
	return s.object("pull-request-review", map[string]any{
		"id": v.ID, "user": s.user(v.Author), "state": strings.ToUpper(v.State), "commit_id": v.SHA, "body": v.Why, "submitted_at": stamp(v.Time),
		"html_url": s.web("pull/" + strconv.Itoa(p.Number)), "pull_request_url": s.rest("pulls/x"),
	})
}

func listReviews(s *Server, w http.ResponseWriter, r *request) (int, any) {
	p, missing := s.find(r, "pull_number")
	if missing != nil {
		return missing.Status, *missing
	}
	out := []any{}
	for _, v := range page(w, r, p.Reviews, 30) {
		out = append(out, s.review(p, v))
	}
	return http.StatusOK, out
}

func dismissReview(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	p, missing := s.find(r, "pull_number")
	if missing != nil {
		return missing.Status, *missing
	}
	id, _ := strconv.Atoi(r.params["review_id"])
	i := slices.IndexFunc(p.Reviews, func(v scmtest.Review) bool { return v.ID == id })
	switch {
	case i < 0:
		return refuse(http.StatusNotFound, "Not Found")
	case p.Reviews[i].State != "approved" && p.Reviews[i].State != "changes_requested":
		return refuse(http.StatusUnprocessableEntity, "Validation Failed", "Can not dismiss a commented pull request review")
	}
	var in struct{ Message string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	p = s.edit(p.Number, func(p *scmtest.Pull) { p.Reviews[i].State, p.Reviews[i].Why = "dismissed", in.Message })
	return http.StatusOK, s.review(p, p.Reviews[i])
}
