package giteatest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tagboat/scm/scmtest"
)

// draft tells a work in progress, as Gitea does by default.
func draft(title string) bool {
	upper := strings.ToUpper(title)
	return strings.HasPrefix(upper, "WIP:") || strings.HasPrefix(upper, "[WIP]")
}

// pullObject is a pull request. Of a closed one whose branch is still there the
// head is where the branch is now; of one whose branch is gone, the reference is
// refs/pull/N/head.
func (c *call) pullObject(p scmtest.Pull) object {
	head := object{"label": p.Head, "ref": p.Head, "sha": p.HeadSHA, "repo_id": 1}
	if p.HeadRepo != "" {
		head["repo_id"] = 2
	} else if sha, ok := c.o.Store.Branch(p.Head); ok {
		head["sha"] = sha
	} else {
		head["ref"] = fmt.Sprintf("refs/pull/%d/head", p.Number)
	}
	base, _ := c.o.Store.Branch(p.Base)
	state := p.State
	if state == "merged" {
		state = "closed"
	}
	o := object{
		"id": 1000 + p.Number, "number": p.Number, "html_url": c.web(fmt.Sprintf("pulls/%d", p.Number)), "title": p.Title, "body": p.Body,
		"user": object{"login": p.Author}, "state": state, "draft": draft(p.Title), "merged": p.State == "merged", "merge_commit_sha": nil,
		"head": head, "base": object{"label": p.Base, "ref": p.Base, "sha": base, "repo_id": 1, "repo": c.repoObject()},
		"created_at": stamp(p.Created), "updated_at": stamp(p.Updated), "labels": c.labelObjects(p.Labels), "assignees": people(p.Assignees),
		"requested_reviewers": people(p.Reviewers), "requested_reviewers_teams": teams(p.TeamReviewers),
	}
	if p.State == "merged" {
		o["merged_at"], o["closed_at"] = stamp(p.Closed), stamp(p.Closed)
	}
	if p.MergeSHA != "" {
		o["merge_commit_sha"] = p.MergeSHA
	}
	return o
}

func people(logins []string) []object {
	list := []object{}
	for _, l := range logins {
		list = append(list, object{"login": l})
	}
	return list
}

func teams(names []string) []object {
	list := []object{}
	for _, n := range names {
		list = append(list, object{"name": n})
	}
	return list
}

func (c *call) listPulls() {
	state, base := c.query.Get("state"), c.query.Get("base_branch")
	if !c.newer(24) {
		base = "" // ignored
	}
	list := c.o.Store.Pulls(func(p scmtest.Pull) bool {
		return (state == "all" || (p.State == "open") == (state != "closed")) && (base == "" || p.Base == base)
	})
	if c.query.Get("sort") == "recentupdate" {
		slices.SortStableFunc(list, func(a, b scmtest.Pull) int { return b.Updated.Compare(a.Updated) })
	}
	objects := []object{}
	for _, p := range page(c, list) {
		objects = append(objects, c.pullObject(p))
	}
	c.json(http.StatusOK, objects)
}

// pullByBranches answers the oldest, also while a newer one is open (measured on
// 1.26.0: the query has no order).
func (c *call) pullByBranches() {
	base, head := c.args[0], c.args[1]
	list := c.o.Store.Pulls(func(p scmtest.Pull) bool { return p.Base == base && p.Head == head && p.HeadRepo == "" })
	if len(list) == 0 {
		c.notFound("")
		return
	}
	c.json(http.StatusOK, c.pullObject(list[len(list)-1]))
}

// pull finds the pull request of the path.
func (c *call) pull() (scmtest.Pull, bool) {
	n, err := strconv.Atoi(c.args[0])
	if err != nil {
		c.noRoute()
		return scmtest.Pull{}, false
	}
	p, err := c.o.Store.Pull(n)
	if err != nil {
		c.notFound("")
		return p, false
	}
	return p, true
}

func (c *call) getPull() {
	if p, ok := c.pull(); ok {
		c.json(http.StatusOK, c.pullObject(p))
	}
}

func (c *call) openPull() {
	var in struct {
		Head      string   `json:"head"`
		Base      string   `json:"base"`
		Title     string   `json:"title"`
		Body      string   `json:"body"`
		Assignee  string   `json:"assignee"`
		Assignees []string `json:"assignees"`
		Reviewers []string `json:"reviewers"`
		Teams     []string `json:"team_reviewers"`
		Milestone int      `json:"milestone"`
		Labels    []int    `json:"labels"`
		Deadline  *string  `json:"due_date"`
	}
	if !c.decode(&in) {
		return
	}
	if in.Assignee != "" || in.Assignees != nil || in.Reviewers != nil || in.Teams != nil || in.Labels != nil {
		c.o.Report("giteatest: one wrong name in %s would refuse the whole pull request", c.body)
	}
	switch {
	case in.Title == "":
		c.fail(http.StatusUnprocessableEntity, "[Title]: Required")
		return
	case in.Head == in.Base:
		c.fail(http.StatusUnprocessableEntity, "Invalid PullRequest: There are no changes between the head and the base")
		return
	}
	p, err := c.o.Store.OpenPull(scmtest.NewPull{Head: in.Head, Base: in.Base, Title: in.Title, Body: in.Body, Author: c.o.User, Draft: draft(in.Title)})
	switch {
	case errors.Is(err, scmtest.ErrBranchMissing):
		c.notFound("")
	case errors.Is(err, scmtest.ErrPullExists):
		c.fail(http.StatusConflict, "pull request already exists for these targets [id: %d, issue_id: %d, head_repo_id: 1, base_repo_id: 1, head_branch: %s, base_branch: %s]",
			1000+p.Number, p.Number, in.Head, in.Base)
	case err != nil:
		c.broken(err.Error())
	default:
		c.json(http.StatusCreated, c.pullObject(p))
	}
}

func (c *call) editPull() {
	p, ok := c.pull()
	if !ok {
		return
	}
	var in struct {
		Title     *string   `json:"title"`
		Body      *string   `json:"body"`
		State     *string   `json:"state"`
		Assignees *[]string `json:"assignees"`
	}
	if !c.decode(&in) {
		return
	}
	if in.State != nil && p.State == "merged" {
		c.fail(http.StatusPreconditionFailed, "cannot change state of this pull request, it was already merged")
		return
	}
	if in.Assignees != nil {
		for _, name := range *in.Assignees {
			if !c.isUser(name) {
				c.fail(http.StatusUnprocessableEntity, "Assignee does not exist: [name: user does not exist [uid: 0, name: %s]]", name)
				return
			}
		}
	}
	p, err := c.o.Store.EditPull(p.Number, func(p *scmtest.Pull) error {
		if in.Title != nil && *in.Title != "" {
			p.Title, p.Draft = *in.Title, draft(*in.Title)
		}
		if in.Body != nil {
			p.Body = *in.Body
		}
		if in.Assignees != nil {
			p.Assignees = *in.Assignees
		}
		return nil
	})
	if err == nil && in.State != nil && *in.State == "closed" && p.State == "open" {
		if err = c.o.Store.ClosePullRequest(p.Number, c.o.User); err == nil {
			p, err = c.o.Store.Pull(p.Number)
		}
	}
	if err != nil {
		c.broken(err.Error())
		return
	}
	c.json(http.StatusCreated, c.pullObject(p))
}

func (c *call) isUser(login string) bool {
	return strings.EqualFold(login, c.o.User) || slices.ContainsFunc(c.o.Users, func(u string) bool { return strings.EqualFold(u, login) })
}

// mergePull schedules. It is bound to no commit: head_commit_id counts only where
// the merge happens at once.
func (c *call) mergePull() {
	p, ok := c.pull()
	if !ok {
		return
	}
	var in struct {
		Do   string `json:"Do"`
		When bool   `json:"merge_when_checks_succeed"`
		Head string `json:"head_commit_id"`
	}
	if !c.decode(&in) {
		return
	}
	c.mu.Lock()
	checking := c.checking > 0
	if checking {
		c.checking--
	}
	c.mu.Unlock()
	mergeable, err := c.o.Store.Mergeable(p.Number)
	switch {
	case !slices.Contains([]string{"merge", "rebase", "rebase-merge", "squash", "fast-forward-only"}, in.Do):
		c.fail(http.StatusUnprocessableEntity, "[Do]: Required")
	case p.State == "closed":
		c.notFound("")
	case p.State == "merged" && !c.newer(25):
		c.fail(http.StatusMethodNotAllowed, "")
	case p.State == "merged":
		c.fail(http.StatusMethodNotAllowed, "The PR is already merged")
	case draft(p.Title):
		c.fail(http.StatusMethodNotAllowed, "Work in progress PRs cannot be merged")
	case checking || err != nil || !mergeable:
		c.fail(http.StatusMethodNotAllowed, "Please try again later")
	case in.When && p.AutoMerge:
		c.fail(http.StatusConflict, "pull request is already scheduled to auto merge when checks succeed [pull_id: %d]", 1000+p.Number)
	case in.When && !c.o.ChecksPass:
		c.setAutoMerge(p.Number, true)
		c.w.WriteHeader(http.StatusCreated)
	case in.Head != "" && in.Head != p.HeadSHA && !in.When:
		c.fail(http.StatusConflict, "head out of date")
	default:
		c.mergeNow(p.Number, in.Do)
	}
}

func (c *call) mergeNow(number int, how string) {
	if _, err := c.o.Store.MergePullRequest(number, how); err != nil {
		c.fail(http.StatusConflict, "%v", err)
		return
	}
	c.w.WriteHeader(http.StatusOK)
}

func (c *call) setAutoMerge(number int, on bool) {
	_, err := c.o.Store.EditPull(number, func(p *scmtest.Pull) error {
		p.AutoMerge, p.AutoMergeBy = on, c.o.User
		return nil
	})
	if err != nil {
		panic(err)
	}
}

func (c *call) cancelMerge() {
	p, ok := c.pull()
	switch {
	case !ok:
	case !p.AutoMerge:
		c.notFound("")
	case p.AutoMergeBy != c.o.User && !c.o.Admin && !c.newer(26):
		c.fail(http.StatusForbidden, "user has no permission to cancel the scheduled auto merge")
	default:
		c.setAutoMerge(p.Number, false)
		c.w.WriteHeader(http.StatusNoContent)
	}
}
