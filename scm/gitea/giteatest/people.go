package giteatest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tagboat/scm/scmtest"
)

type label struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

func (s *Server) addLabel(name string) label {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := label{len(s.labels) + 101, name}
	s.labels = append(s.labels, l)
	return l
}

func (s *Server) allLabels() []label {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.labels)
}

func (c *call) labelObjects(names []string) []label {
	list := []label{}
	for _, l := range c.allLabels() {
		if slices.Contains(names, l.Name) {
			list = append(list, l)
		}
	}
	return list
}

func (c *call) listLabels() { c.json(http.StatusOK, page(c, c.allLabels())) }

func (c *call) orgLabels() {
	if c.o.Teams == nil {
		c.notFound("")
		return
	}
	c.json(http.StatusOK, page(c, []label{}))
}

func (c *call) createLabel() {
	var in struct{ Name, Color string }
	if !c.decode(&in) {
		return
	}
	if in.Name == "" || len(in.Color) != 7 {
		c.fail(http.StatusUnprocessableEntity, "bad color code: %s", in.Color)
		return
	}
	c.json(http.StatusCreated, c.addLabel(in.Name))
}

// addLabels takes ids; an unknown one is left out without a word.
func (c *call) addLabels() {
	p, ok := c.pull()
	if !ok {
		return
	}
	var in struct {
		Labels []int `json:"labels"`
	}
	if !c.decode(&in) {
		return
	}
	var names []string
	for _, l := range c.allLabels() {
		if slices.Contains(in.Labels, l.ID) {
			names = append(names, l.Name)
		}
	}
	_, err := c.o.Store.EditPull(p.Number, func(p *scmtest.Pull) error {
		for _, n := range names {
			if !slices.Contains(p.Labels, n) {
				p.Labels = append(p.Labels, n)
			}
		}
		return nil
	})
	if err != nil {
		c.broken(err.Error())
		return
	}
	c.json(http.StatusOK, c.labelObjects(names))
}

func (c *call) listReviews() {
	p, ok := c.pull()
	if !ok {
		return
	}
	states := map[string]string{"approved": "APPROVED", "changes_requested": "REQUEST_CHANGES", "commented": "COMMENT", "dismissed": "APPROVED"}
	objects := []object{}
	for _, r := range page(c, p.Reviews) {
		objects = append(objects, object{
			"id": r.ID, "user": object{"login": r.Author}, "state": states[r.State], "commit_id": r.SHA, "dismissed": r.State == "dismissed",
			"stale": r.SHA != p.HeadSHA, "official": true, "submitted_at": stamp(r.Time),
		})
	}
	c.json(http.StatusOK, objects)
}

func (c *call) dismissReview() {
	p, ok := c.pull()
	var in struct {
		Message string `json:"message"`
	}
	if !ok || !c.decode(&in) {
		return
	}
	if !c.o.Admin {
		c.fail(http.StatusForbidden, "Must be repo admin")
		return
	}
	id, _ := strconv.Atoi(c.args[1])
	found := false
	_, err := c.o.Store.EditPull(p.Number, func(p *scmtest.Pull) error {
		for i := range p.Reviews {
			if p.Reviews[i].ID == id {
				found = true
				p.Reviews[i].State, p.Reviews[i].Why = "dismissed", in.Message
			}
		}
		return nil
	})
	switch {
	case err != nil:
		c.broken(err.Error())
	case !found:
		c.notFound("")
	default:
		c.json(http.StatusOK, object{"id": id})
	}
}

// requestReview refuses all for one wrong name, and leaves teams out without a
// word where no organisation owns the repository.
func (c *call) requestReview() {
	p, ok := c.pull()
	var in struct {
		Reviewers []string `json:"reviewers"`
		Teams     []string `json:"team_reviewers"`
	}
	if !ok || !c.decode(&in) {
		return
	}
	for _, name := range in.Reviewers {
		if strings.EqualFold(name, p.Author) {
			c.fail(http.StatusUnprocessableEntity, "poster of pr can't be reviewer [user_id: 1, repo_id: 1]")
			return
		}
		if !c.isUser(name) {
			c.notFound("User '" + name + "' not exist")
			return
		}
	}
	made := people(in.Reviewers)
	if c.o.Teams == nil {
		in.Teams = nil
	}
	for _, name := range in.Teams {
		if !slices.Contains(c.o.Teams, name) {
			c.notFound("Team '" + name + "' not exist")
			return
		}
		made = append(made, object{"id": 1, "state": "REQUEST_REVIEW", "team": object{"name": name}, "submitted_at": stamp(p.Updated)})
	}
	for i := range in.Reviewers {
		made[i] = object{"id": 1, "state": "REQUEST_REVIEW", "user": made[i], "submitted_at": stamp(p.Updated)}
	}
	_, err := c.o.Store.EditPull(p.Number, func(p *scmtest.Pull) error {
		p.Reviewers = append(p.Reviewers, in.Reviewers...)
		p.TeamReviewers = append(p.TeamReviewers, in.Teams...)
		return nil
	})
	if err != nil {
		c.broken(err.Error())
		return
	}
	c.json(http.StatusCreated, made)
}
