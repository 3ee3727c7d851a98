package githubtest

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tagboat/scm/scmtest"
)

const commentLimit = 65536

// talkNeeds are the permissions of the calls about comments. GitHub takes
// pull_requests in place of issues on pull requests; the driver must not count on
// it.
func talkNeeds() map[string][2]string {
	return map[string][2]string{
		"GET issues/comments/{comment_id}":            {"issues", "read"},
		"PATCH issues/comments/{comment_id}":          {"issues", "write"},
		"POST issues/comments/{comment_id}/reactions": {"issues", "write"},
		"GET issues/{issue_number}/comments":          {"issues", "read"},
		"POST issues/{issue_number}/comments":         {"metadata", "read"}, // see mute
		"GET pulls/{pull_number}":                     {"pull_requests", "read"},
	}
}

// comment is an issue comment as REST tells it.
func (s *Server) comment(number int, isPull bool, c scmtest.Comment) map[string]any {
	side, n, id := "issues", strconv.Itoa(number), strconv.Itoa(c.ID)
	if isPull {
		side = "pull"
	}
	updated := c.Created
	if !c.Updated.IsZero() {
		updated = c.Updated
	}
	known := map[string]any{
		"id": c.ID, "node_id": "IC_" + id, "body": c.Body, "user": s.user(c.Author), "created_at": stamp(c.Created), "updated_at": stamp(updated),
		"url": s.rest("issues/comments/" + id), "issue_url": s.rest("issues/" + n), "html_url": s.web(side + "/" + n + "#issuecomment-" + id),
		"author_association": "NONE", "performed_via_github_app": nil,
	}
	if s.opts.ViaApp[c.Author] {
		known["performed_via_github_app"] = s.object("nullable-integration", map[string]any{"id": 7, "name": "deployer", "slug": "deployer", "owner": s.user(c.Author)})
	}
	return s.object("issue-comment", known)
}

func (s *Server) findComment(r *request) (int, scmtest.Comment, *Answer) {
	id, err := strconv.Atoi(r.params["comment_id"])
	if err != nil {
		return 0, scmtest.Comment{}, &Answer{Status: http.StatusNotFound, Message: "Not Found"}
	}
	number, c, err := s.Store.FindComment(id)
	if err != nil {
		return 0, c, &Answer{Status: http.StatusNotFound, Message: "Not Found"}
	}
	return number, c, nil
}

func (s *Server) isPull(number int) bool {
	_, err := s.Store.Pull(number)
	return err == nil
}

func getComment(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	number, c, missing := s.findComment(r)
	if missing != nil {
		return missing.Status, *missing
	}
	return http.StatusOK, s.comment(number, s.isPull(number), c)
}

// listComments is oldest first, and since looks at the last change.
func listComments(s *Server, w http.ResponseWriter, r *request) (int, any) {
	number, err := strconv.Atoi(r.params["issue_number"])
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	all, isPull, err := s.Store.Thread(number)
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	since, _ := time.Parse(time.RFC3339, r.q("since"))
	var list []scmtest.Comment
	for _, c := range all {
		if !c.Created.Before(since) || !c.Updated.Before(since) {
			list = append(list, c)
		}
	}
	out := []any{}
	for _, c := range page(w, r, list, 30) {
		out = append(out, s.comment(number, isPull, c))
	}
	return http.StatusOK, out
}

// lawfulBody refuses what GitHub does.
func lawfulBody(body string) *Answer {
	switch {
	case body == "":
		return &Answer{Status: http.StatusUnprocessableEntity, Message: "Validation Failed",
			Errors: []any{map[string]any{"resource": "IssueComment", "code": "missing_field", "field": "body"}}}
	case utf8.RuneCountInString(body) > commentLimit:
		return &Answer{Status: http.StatusUnprocessableEntity, Message: "Validation Failed",
			Errors: []any{custom("IssueComment", "body is too long (maximum is 65536 characters)")}}
	}
	return nil
}

// mayWrite tells whether a login has write access: an App's has, and a person's
// of whom nothing was said.
func (s *Server) mayWrite(login string) bool {
	role, known := s.Store.Permission(login)
	_, permission := foldedRole(role)
	return !known || permission == "write" || permission == "admin"
}

func (s *Server) shut(number int, login string) *Answer {
	if s.Store.Locked(number) && !s.mayWrite(login) {
		return &Answer{Status: http.StatusForbidden, Message: "Unable to create comment because issue is locked."}
	}
	return nil
}

// mute is the refusal of a token that may comment neither on issues nor, on one
// that is a pull request, on pull requests.
func (s *Server) mute(r *request, isPull bool) *Answer {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.has(token, "issues", "write") || isPull && s.has(token, "pull_requests", "write") {
		return nil
	}
	return inaccessible(token, "issues=write; pull_requests=write")
}

func addComment(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	number, err := strconv.Atoi(r.params["issue_number"])
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	_, isPull, err := s.Store.Thread(number)
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	if isPull {
		if _, refusal := s.issue(r, "issue_number"); refusal != nil {
			return refusal.Status, *refusal
		}
	}
	var in struct{ Body string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	for _, refusal := range []*Answer{s.mute(r, isPull), s.shut(number, r.login), lawfulBody(in.Body)} {
		if refusal != nil {
			return refusal.Status, *refusal
		}
	}
	c, err := s.Store.Say(number, r.login, in.Body)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	return http.StatusCreated, s.comment(number, isPull, c)
}

// editComment lets whoever may write edit anybody's comment, as GitHub does: that
// the driver edits its own alone is not GitHub's to see to.
func editComment(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	number, c, missing := s.findComment(r)
	if missing != nil {
		return missing.Status, *missing
	}
	var in struct{ Body string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if refusal := lawfulBody(in.Body); refusal != nil {
		return refusal.Status, *refusal
	}
	if c.Author != r.login && !s.mayWrite(r.login) {
		return refuse(http.StatusForbidden, "Must have admin rights to Repository.")
	}
	c, err := s.Store.EditComment(c.ID, in.Body)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	return http.StatusOK, s.comment(number, s.isPull(number), c)
}

// addReaction leaves it to the description which there are.
func addReaction(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	number, c, missing := s.findComment(r)
	if missing != nil {
		return missing.Status, *missing
	}
	if s.Store.Locked(number) && !s.mayWrite(r.login) {
		return refuse(http.StatusForbidden, "This conversation is locked.")
	}
	var in struct{ Content string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	fresh, err := s.Store.React(c.ID, r.login, in.Content)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	return status, s.object("reaction", map[string]any{"id": 1, "content": in.Content, "user": s.user(r.login)})
}
