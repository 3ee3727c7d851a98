package giteatest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"tagboat/scm/scmtest"
)

// commentObject has whole seconds, as Gitea does.
func (c *call) commentObject(number int, isPull bool, x scmtest.Comment) object {
	updated := x.Created
	if !x.Updated.IsZero() {
		updated = x.Updated
	}
	side, key := "issues", "issue_url"
	if isPull {
		side, key = "pulls", "pull_request_url"
	}
	id := 1
	if x.Author == "gitea-actions" {
		id = -2
	}
	out := object{
		"id": x.ID, "body": x.Body, "user": object{"id": id, "login": x.Author}, "original_author": "", "created_at": stamp(x.Created), "updated_at": stamp(updated),
		"html_url": c.web(fmt.Sprintf("%s/%d#issuecomment-%d", side, number, x.ID)), "issue_url": "", "pull_request_url": "",
	}
	out[key] = c.web(fmt.Sprintf("%s/%d", side, number))
	if c.o.Imported[x.Author] {
		out["user"], out["original_author"] = object{"id": 1, "login": c.o.User}, x.Author
	}
	return out
}

func (c *call) findComment() (number int, x scmtest.Comment, ok bool) {
	id, err := strconv.Atoi(c.args[0])
	if err == nil {
		number, x, err = c.o.Store.FindComment(id)
	}
	if err != nil {
		c.notFound("", fmt.Sprintf("comment does not exist [id: %s, issue_id: 0]", c.args[0]))
	}
	return number, x, err == nil
}

func (c *call) isPull(number int) bool {
	_, err := c.o.Store.Pull(number)
	return err == nil
}

func (c *call) getComment() {
	if number, x, ok := c.findComment(); ok {
		c.json(http.StatusOK, c.commentObject(number, c.isPull(number), x))
	}
}

// thread finds an issue or pull request. Only GET issues/N says 404 where there is
// none; the calls below it say 500.
func (c *call) thread() (number int, list []scmtest.Comment, isPull, ok bool) {
	number, err := strconv.Atoi(c.args[0])
	if err == nil {
		list, isPull, err = c.o.Store.Thread(number)
	}
	if err != nil {
		if c.route == "/issues/{index}" {
			c.notFound("")
		} else {
			c.broken("issue does not exist [id: 0, repo_id: 1, index: " + c.args[0] + "]")
		}
	}
	return number, list, isPull, err == nil
}

func (c *call) getIssue() {
	number, list, isPull, ok := c.thread()
	if !ok {
		return
	}
	out := object{"id": 1, "number": number, "state": "open", "is_locked": c.o.Store.Locked(number), "comments": len(list)}
	if isPull {
		out["pull_request"] = object{"merged": false}
	}
	c.json(http.StatusOK, out)
}

// listComments has no pages; since looks at the last change.
func (c *call) listComments() {
	number, list, isPull, ok := c.thread()
	if !ok {
		return
	}
	since, err := time.Parse(time.RFC3339, c.query.Get("since"))
	if err != nil && c.query.Has("since") {
		c.fail(http.StatusUnprocessableEntity, "%v", err)
		return
	}
	objects := []object{}
	for _, x := range list {
		if !x.Created.Before(since) || !x.Updated.Before(since) {
			objects = append(objects, c.commentObject(number, isPull, x))
		}
	}
	c.json(http.StatusOK, objects)
}

func (c *call) commentBody() (string, bool) {
	var in struct {
		Body string `json:"body"`
	}
	if !c.decode(&in) {
		return "", false
	}
	if in.Body == "" {
		c.fail(http.StatusUnprocessableEntity, "[Body]: Required")
		return "", false
	}
	if utf8.RuneCountInString(in.Body) > 65535 {
		c.broken("Error 1406 (22001): Data too long for column 'content'")
		return "", false
	}
	return in.Body, true
}

// mayWrite tells whether the token's user may write: also where nothing was said.
func (c *call) mayWrite() bool {
	word, known := c.o.Store.Permission(c.o.User)
	return !known || slices.Contains([]string{"write", "admin", "owner"}, word)
}

func (c *call) addComment() {
	number, _, isPull, ok := c.thread()
	if !ok {
		return
	}
	body, ok := c.commentBody()
	if !ok {
		return
	}
	if c.o.Store.Locked(number) && !c.mayWrite() {
		c.fail(http.StatusForbidden, "You cannot comment on a locked issue.")
		return
	}
	x, err := c.o.Store.Say(number, c.o.User, body)
	if err != nil {
		c.broken(err.Error())
		return
	}
	c.json(http.StatusCreated, c.commentObject(number, isPull, x))
}

// editComment lets whoever may write edit anybody's comment; it refuses others
// without a body.
func (c *call) editComment() {
	number, x, ok := c.findComment()
	if !ok {
		return
	}
	body, ok := c.commentBody()
	if !ok {
		return
	}
	if x.Author != c.o.User && !c.mayWrite() {
		c.w.WriteHeader(http.StatusForbidden)
		return
	}
	x, err := c.o.Store.EditComment(x.ID, body)
	if err != nil {
		c.broken(err.Error())
		return
	}
	c.json(http.StatusOK, c.commentObject(number, c.isPull(number), x))
}

func (c *call) addReaction() {
	number, x, ok := c.findComment()
	if !ok {
		return
	}
	var in struct {
		Content string `json:"content"`
	}
	if !c.decode(&in) {
		return
	}
	switch {
	case c.o.Store.Locked(number) && !c.mayWrite():
		c.fail(http.StatusForbidden, "no permission to change reaction")
		return
	case !slices.Contains([]string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}, in.Content):
		c.fail(http.StatusForbidden, "'%s' is not an allowed reaction", in.Content)
		return
	}
	fresh, err := c.o.Store.React(x.ID, c.o.User, in.Content)
	if err != nil {
		c.broken(err.Error())
		return
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	c.json(status, object{"user": object{"login": c.o.User}, "content": in.Content, "created_at": stamp(x.Created)})
}
