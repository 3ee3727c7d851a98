package giteatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

func (c *call) checkQuery(known []string) {
	for k := range c.query {
		if !slices.Contains(known, k) {
			c.o.Report("giteatest: %s %s: Gitea ignores the parameter %q", c.r.Method, c.route, k)
		}
	}
}

// allowed checks the token.
func (c *call) allowed() bool {
	auth := c.r.Header.Get("Authorization")
	write := c.r.Method != http.MethodGet
	switch {
	case c.route == "/version" && c.o.HideVersion:
		c.fail(http.StatusForbidden, "Only signed in user is allowed to call APIs.")
	case auth == "" && write:
		c.fail(http.StatusUnauthorized, "token is required")
	case auth != "" && auth != "token "+c.o.Token:
		c.fail(http.StatusUnauthorized, "invalid username, password or token")
	case auth != "" && !c.hasScope(c.needsScope()):
		c.lackScope(c.needsScope())
	case c.hidden():
		c.notFound("")
	case c.lacksRole() != "":
		c.fail(http.StatusForbidden, "%s", c.lacksRole())
	case write && c.o.Archived:
		c.fail(http.StatusLocked, "Repo is archived.")
	default:
		return true
	}
	return false
}

func (c *call) json(status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	c.w.Header().Set("Content-Type", "application/json;charset=utf-8")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(b, '\n'))
}

func (c *call) fail(status int, format string, args ...any) {
	c.json(status, map[string]any{"message": fmt.Sprintf(format, args...), "url": "http://gitea.example/api/swagger"})
}

// broken is a 500; only administrators are told why.
func (c *call) broken(why string) {
	if !c.o.Admin {
		why = ""
	}
	c.fail(http.StatusInternalServerError, "%s", why)
}

func (c *call) notFound(message string, errs ...string) {
	if message == "" {
		message = "not found"
		if !c.newer(25) {
			message = "The target couldn't be found."
		}
	}
	answer := map[string]any{"message": message, "url": "http://gitea.example/api/swagger", "errors": errs}
	if c.newer(27) {
		delete(answer, "errors")
	}
	c.json(http.StatusNotFound, answer)
}

// decode reads the body strictly; required names the fields that must be there.
func (c *call) decode(into any) bool {
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		c.o.Report("giteatest: %s %s: body %s: %v", c.r.Method, c.route, c.body, err)
		c.fail(http.StatusUnprocessableEntity, "%v", err)
		return false
	}
	return true
}

// page cuts a list as Gitea's page and limit say, and sets its headers.
func page[T any](c *call, list []T) []T {
	limit, _ := strconv.Atoi(c.query.Get("limit"))
	if limit <= 0 {
		limit = 30
	}
	limit = min(limit, c.o.MaxItems)
	n, _ := strconv.Atoi(c.query.Get("page"))
	n = max(n, 1)
	c.w.Header().Set("X-Total-Count", strconv.Itoa(len(list)))
	c.w.Header().Set("X-HasMore", strconv.FormatBool(n*limit < len(list)))
	from := min((n-1)*limit, len(list))
	return append([]T{}, list[from:min(from+limit, len(list))]...)
}

func (c *call) version() { c.json(http.StatusOK, map[string]string{"version": c.o.Version}) }
