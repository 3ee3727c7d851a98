package gitlabtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tagboat/scm/scmtest"
)

const noteLimit = 1_048_576

// noteRules are the endpoints of lib/api/notes.rb and award_emoji.rb, of a user,
// and GraphQL.
func noteRules() (list []rule) {
	paging := []string{"page:int", "per_page:int"}
	for _, side := range []string{"projects/:id/merge_requests/:iid/notes", "projects/:id/issues/:iid/notes"} {
		list = append(list,
			rule{op: "createNote", method: "POST", path: side, serve: (*Server).createNote,
				body: []string{"body:string!", "created_at:string", "internal:bool"}},
			rule{op: "listNotes", method: "GET", path: side, serve: (*Server).listNotes,
				query: append([]string{"order_by:created_at|updated_at", "sort:asc|desc", "activity_filter:all_notes|only_comments|only_activity"}, paging...)},
			rule{op: "getNote", method: "GET", path: side + "/:note", serve: (*Server).getNote},
			rule{op: "updateNote", method: "PUT", path: side + "/:note", serve: (*Server).updateNote, body: []string{"body:string!"}},
			rule{op: "awardNote", method: "POST", path: side + "/:note/award_emoji", serve: (*Server).awardNote, body: []string{"name:string!"}},
		)
	}
	return append(list,
		rule{op: "getUserByID", method: "GET", path: "users/:user", serve: (*Server).getUserByID},
		rule{op: "graphql", method: "POST", path: "graphql", serve: (*Server).graphQL, body: []string{"query:string!", "variables:object"}})
}

// place finds what a note is on. Numbers of issues are none of merge requests'
// here, as they seldom are.
func (s *Server) place(q *request) (number int, onMergeRequest bool, missing *answer) {
	onMergeRequest = strings.HasSuffix(q.path, "merge_requests/:iid/notes") || strings.Contains(q.path, "merge_requests/:iid/notes/")
	word := map[bool]string{true: "404 Merge Request Not Found", false: "404 Issue Not Found"}[onMergeRequest]
	number, err := strconv.Atoi(q.args[0])
	if err != nil {
		return 0, false, ref(say(404, word))
	}
	_, isPull, err := s.Store.Thread(number)
	if err != nil || isPull != onMergeRequest {
		return 0, false, ref(say(404, word))
	}
	return number, onMergeRequest, nil
}

func (s *Server) noteShape(number int, onMergeRequest bool, c scmtest.Comment) map[string]any {
	kind := map[bool]string{true: "MergeRequest", false: "Issue"}[onMergeRequest]
	updated := c.Created
	if !c.Updated.IsZero() {
		updated = c.Updated
	}
	if n := len(c.Reactions); n > 0 { // a reaction moves it too
		updated = updated.Add(time.Duration(n) * time.Second)
	}
	return map[string]any{
		"id": c.ID, "type": nil, "body": c.Body, "attachment": nil, "author": s.userShape(c.Author), "created_at": stamp(c.Created), "updated_at": stamp(updated),
		"system": false, "noteable_id": 100_000 + number, "noteable_type": kind, "noteable_iid": number, "resolvable": false, //nolint:misspell // GitLab's word
		"confidential": s.Internal[c.ID], "internal": s.Internal[c.ID], "project_id": ProjectID, "commands_changes": map[string]any{},
	}
}

func (s *Server) note(q *request) (c scmtest.Comment, number int, onMergeRequest bool, missing *answer) {
	number, onMergeRequest, missing = s.place(q)
	if missing != nil {
		return c, 0, false, missing
	}
	id, err := strconv.Atoi(q.args[1])
	if err == nil {
		var at int
		if at, c, err = s.Store.FindComment(id); err == nil && at == number {
			return c, number, onMergeRequest, nil
		}
	}
	return c, 0, false, ref(say(404, "404 Not found"))
}

func (s *Server) getNote(q *request) answer {
	c, number, on, missing := s.note(q)
	if missing != nil {
		return *missing
	}
	return answer{status: 200, body: s.noteShape(number, on, c)}
}

// lawfulNote refuses what GitLab does, and reports a line that it would run as a
// quick action.
func (s *Server) lawfulNote(q *request, number int) *answer {
	body, _ := q.body["body"].(string)
	for line := range strings.Lines(body) {
		if strings.HasPrefix(strings.TrimSpace(line), "/") {
			s.fault("%s: GitLab runs %q as a quick action", q.op, line)
		}
	}
	switch {
	case strings.TrimSpace(body) == "":
		return ref(answer{status: 400, body: map[string]any{"error": "body is empty"}})
	case utf8.RuneCountInString(body) > noteLimit:
		return ref(say(400, "Note {:note=>[\"is too long (maximum is 1000000 characters)\"]}"))
	case s.Store.Locked(number):
		return ref(say(403, "403 Forbidden"))
	}
	return nil
}

func (s *Server) createNote(q *request) answer {
	number, on, missing := s.place(q)
	if missing == nil {
		missing = s.lawfulNote(q, number)
	}
	if missing != nil {
		return *missing
	}
	c, err := s.Store.Say(number, s.login(q), q.body["body"].(string))
	if err != nil {
		return say(500, err.Error())
	}
	if q.body["internal"] == true {
		s.Internal[c.ID] = true
	}
	return answer{status: 201, body: s.noteShape(number, on, c)}
}

// updateNote is for the author, and for Maintainers.
func (s *Server) updateNote(q *request) answer {
	c, number, on, missing := s.note(q)
	if missing == nil {
		missing = s.lawfulNote(q, number)
	}
	switch {
	case missing != nil:
		return *missing
	case c.Author != s.login(q):
		return say(403, "403 Forbidden")
	}
	c, err := s.Store.EditComment(c.ID, q.body["body"].(string))
	if err != nil {
		return say(500, err.Error())
	}
	return answer{status: 200, body: s.noteShape(number, on, c)}
}

// listNotes has the notes that GitLab writes itself beside those of people.
func (s *Server) listNotes(q *request) answer {
	number, on, missing := s.place(q)
	if missing != nil {
		return *missing
	}
	comments, _, err := s.Store.Thread(number)
	if err != nil {
		return say(500, err.Error())
	}
	all := []map[string]any{}
	for _, c := range comments {
		all = append(all, s.noteShape(number, on, c))
	}
	if p, err := s.Store.Pull(number); err == nil && q.query.Get("activity_filter") != "only_comments" {
		for _, r := range p.Reviews {
			if r.State != "approved" || s.NoApprovalNotes {
				continue
			}
			n := s.noteShape(number, on, scmtest.Comment{ID: r.ID, Author: r.Author, Body: "approved this merge request", Created: r.Time})
			n["system"] = true
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(b["created_at"]), fmt.Sprint(a["created_at"]))
	})
	if q.query.Get("sort") == "asc" {
		slices.Reverse(all)
	}
	part, h := page(q, all)
	return answer{status: 200, body: part, header: h}
}

// awardNote answers 404 to a name that is no emoji and to one that was awarded
// already, with the words of not_found!.
func (s *Server) awardNote(q *request) answer {
	c, number, _, missing := s.note(q)
	name, _ := q.body["name"].(string)
	switch {
	case missing != nil:
		return *missing
	case s.Store.Locked(number):
		return say(404, "404 Award Emoji Not Found")
	case !slices.Contains([]string{"eyes", "rocket", "thumbsdown", "thumbsup"}, name):
		return say(404, "404 Award Emoji Name is not a valid emoji name Not Found")
	}
	fresh, err := s.Store.React(c.ID, s.login(q), name)
	switch {
	case err != nil:
		return say(500, err.Error())
	case !fresh:
		return say(404, "404 Award Emoji Name has already been taken Not Found")
	}
	return answer{status: 201, body: map[string]any{"id": 1, "name": name, "user": s.userShape(s.login(q)), "awardable_id": c.ID, "awardable_type": "Note", "url": nil}}
}

func isBot(login string) bool {
	return strings.HasPrefix(login, "project_") || strings.HasPrefix(login, "group_") || strings.HasPrefix(login, "service_account_")
}

// getUserByID tells bots, which no other shape of a user does.
func (s *Server) getUserByID(q *request) answer {
	login := s.loginOf(q.args[0])
	if login == "" {
		return say(404, "404 User Not Found")
	}
	shape := s.userShape(login)
	shape["bot"] = isBot(login)
	return answer{status: 200, body: shape}
}

// graphQL knows one query, of the note's last edit.
func (s *Server) graphQL(q *request) answer {
	if s.NoGraphQLNotes {
		return answer{status: 200, body: map[string]any{"errors": []any{map[string]any{"message": "Field 'note' doesn't exist on type 'Query'"}}}}
	}
	query, _ := q.body["query"].(string)
	vars, _ := q.body["variables"].(map[string]any)
	if !strings.Contains(query, "note(id: $id) { lastEditedAt }") || !strings.Contains(query, "($id: NoteID!)") {
		s.fault("graphql: unknown query %s", query)
	}
	text, found := strings.CutPrefix(fmt.Sprint(vars["id"]), "gid://gitlab/Note/")
	id, err := strconv.Atoi(text)
	if err != nil || !found {
		return answer{status: 200, body: map[string]any{"errors": []any{map[string]any{"message": "invalid value for id"}}}}
	}
	_, c, err := s.Store.FindComment(id)
	if errors.Is(err, scmtest.ErrNoComment) {
		return answer{status: 200, body: map[string]any{"data": map[string]any{"note": nil}}}
	}
	var edited any
	if !c.Updated.IsZero() {
		edited = stamp(c.Updated)
	}
	return answer{status: 200, body: map[string]any{"data": map[string]any{"note": map[string]any{"lastEditedAt": edited}}}}
}
