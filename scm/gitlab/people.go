package gitlab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// people are users that GitLab knows.
type people []*gl.User

func (p people) ids() *[]int {
	if len(p) == 0 {
		return nil
	}
	var ids []int
	for _, u := range p {
		ids = append(ids, u.ID)
	}
	return &ids
}

// people looks logins up, all at once. Who is not found is a warning.
func (r *Repository) people(ctx context.Context, p scm.Proposal) (reviewers, assignees people, warnings []string) {
	logins := slices.Concat(p.Reviewers, p.Assignees)
	found := make([]*gl.User, len(logins))
	said := make([]string, len(logins))
	var g sync.WaitGroup
	for i, login := range logins {
		g.Go(func() { found[i], said[i] = r.user(ctx, strings.TrimPrefix(login, "@")) })
	}
	g.Wait()
	for i, u := range found {
		switch {
		case u == nil:
			warnings = append(warnings, said[i])
		case i < len(p.Reviewers):
			reviewers = append(reviewers, u)
		default:
			assignees = append(assignees, u)
		}
	}
	if len(p.TeamReviewers) > 0 {
		warnings = append(warnings, fmt.Sprintf("GitLab has no groups as reviewers: %s not asked; name them in an approval rule or CODEOWNERS",
			strings.Join(p.TeamReviewers, ", ")))
	}
	return reviewers, assignees, warnings
}

func (r *Repository) user(ctx context.Context, login string) (*gl.User, string) {
	all, resp, err := r.api.Users.ListUsers(&gl.ListUsersOptions{Username: &login}, gl.WithContext(ctx))
	if e := r.explain(resp, err); e != nil {
		return nil, fmt.Sprintf("user %s could not be looked up: %v", login, e)
	}
	for _, u := range all {
		if strings.EqualFold(u.Username, login) {
			return u, ""
		}
	}
	return nil, fmt.Sprintf("GitLab knows no user %s", login)
}

// missing tells what was asked for and is not on the merge request.
func missing(m *gl.MergeRequest, p scm.Proposal, reviewers, assignees people) (warnings []string) {
	if m == nil {
		return nil
	}
	for _, l := range p.Labels {
		if !slices.ContainsFunc(m.Labels, func(have string) bool { return strings.EqualFold(have, l) }) {
			warnings = append(warnings, fmt.Sprintf("label %s was not set: the token's role may not set labels", l))
		}
	}
	for _, u := range reviewers {
		if !has(m.Reviewers, u) {
			warnings = append(warnings, fmt.Sprintf("%s was not made a reviewer: no member of the project, or this GitLab's plan allows only one", u.Username))
		}
	}
	for _, u := range assignees {
		if !has(m.Assignees, u) {
			warnings = append(warnings, fmt.Sprintf("%s was not assigned: no member of the project, or this GitLab's plan allows only one", u.Username))
		}
	}
	return warnings
}

func has(all []*gl.BasicUser, u *gl.User) bool {
	return slices.ContainsFunc(all, func(b *gl.BasicUser) bool { return b.ID == u.ID })
}
