package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "code.gitea.io/sdk/gitea"

	"tagboat/scm"
)

// decorate adds labels, assignees and reviewers that are missing, and answers a
// warning for each that could not be added. What people have added stays.
func (r *Repository) decorate(ctx context.Context, p scm.Proposal, raw *sdk.PullRequest) []string {
	steps := []func() []string{
		func() []string { return r.addLabels(ctx, p.Labels, raw) },
		func() []string { return r.addAssignees(ctx, p.Assignees, raw) },
		func() []string { return r.addReviewers(ctx, p.Reviewers, raw) },
		func() []string { return r.addTeams(ctx, p.TeamReviewers, raw) },
	}
	warnings := make([][]string, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() { warnings[i] = step() })
	}
	wg.Wait()
	return slices.Concat(warnings...)
}

func (r *Repository) addLabels(ctx context.Context, wanted []string, raw *sdk.PullRequest) []string {
	wanted = missing(wanted, raw.Labels, func(l *sdk.Label) string { return l.Name })
	if len(wanted) == 0 {
		return nil
	}
	known, err := r.labelIDs(ctx)
	if err != nil {
		return []string{fmt.Sprintf("labels %s: %v", strings.Join(wanted, ", "), err)}
	}
	var warnings []string
	var ids []int64
	for _, name := range wanted {
		id, ok := known[name]
		if !ok {
			if id, err = r.createLabel(ctx, name); err != nil {
				warnings = append(warnings, fmt.Sprintf("label %s: it does not exist and cannot be made: %v", name, err))
				continue
			}
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return warnings
	}
	path := "/issues/" + strconv.FormatInt(raw.Index, 10) + "/labels"
	if _, err := r.repoCall(ctx, request{method: http.MethodPost, path: path, in: map[string]any{"labels": ids}}); err != nil {
		warnings = append(warnings, fmt.Sprintf("labels %s: %v", strings.Join(wanted, ", "), err))
	}
	return warnings
}

// labelIDs are the repository's labels and, where an organisation owns it, its.
func (r *Repository) labelIDs(ctx context.Context) (map[string]int64, error) {
	repo := "/repos/" + url.PathEscape(r.owner) + "/" + url.PathEscape(r.name) + "/labels"
	org := "/orgs/" + url.PathEscape(r.owner) + "/labels"
	var lists [2][]*sdk.Label
	var errs [2]error
	var wg sync.WaitGroup
	for i, path := range []string{org, repo} {
		wg.Go(func() { lists[i], errs[i] = r.labels(ctx, path) })
	}
	wg.Wait()
	if errs[1] != nil {
		return nil, errs[1]
	}
	ids := map[string]int64{} // an owner that is no organisation, or hides its labels, has none
	for _, l := range slices.Concat(lists[:]...) {
		ids[l.Name] = l.ID
	}
	return ids, nil
}

func (r *Repository) labels(ctx context.Context, path string) ([]*sdk.Label, error) {
	var all []*sdk.Label
	for page := 1; ; page++ {
		var list []*sdk.Label
		header, err := r.call(ctx, request{method: http.MethodGet, path: path, query: paged(url.Values{}, page), out: &list})
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if total, _ := strconv.Atoi(header.Get("X-Total-Count")); len(list) == 0 || len(all) >= total {
			return all, nil
		}
	}
}

// createLabel makes a label as GitHub and GitLab do by themselves.
func (r *Repository) createLabel(ctx context.Context, name string) (int64, error) {
	var l sdk.Label
	_, err := r.repoCall(ctx, request{method: http.MethodPost, path: "/labels", in: map[string]any{"name": name, "color": "#ededed"}, out: &l})
	return l.ID, err
}

func (r *Repository) addAssignees(ctx context.Context, wanted []string, raw *sdk.PullRequest) []string {
	wanted = missing(wanted, raw.Assignees, userName)
	if len(wanted) == 0 {
		return nil
	}
	all := make([]string, 0, len(raw.Assignees)+len(wanted))
	for _, u := range raw.Assignees {
		all = append(all, u.UserName)
	}
	if r.assign(ctx, raw.Index, append(slices.Clone(all), wanted...)) == nil {
		return nil
	}
	var warnings []string // one wrong name refuses all
	for _, name := range wanted {
		if err := r.assign(ctx, raw.Index, append(slices.Clone(all), name)); err != nil {
			warnings = append(warnings, fmt.Sprintf("assignee %s: %v", name, err))
			continue
		}
		all = append(all, name)
	}
	return warnings
}

func (r *Repository) assign(ctx context.Context, number int64, names []string) error {
	_, err := r.repoCall(ctx, request{method: http.MethodPatch, path: pullPath(int(number)), in: map[string]any{"assignees": names}})
	return err
}

func userName(u *sdk.User) string { return u.UserName }

func (r *Repository) addReviewers(ctx context.Context, wanted []string, raw *sdk.PullRequest) []string {
	var warnings []string
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
		author := raw.Poster != nil && strings.EqualFold(name, raw.Poster.UserName)
		if author {
			warnings = append(warnings, "reviewer "+name+": opened the pull request, and cannot review it")
		}
		return author
	})
	wanted = missing(wanted, raw.RequestedReviewers, userName)
	if len(wanted) == 0 || r.requestReview(ctx, raw.Index, map[string]any{"reviewers": wanted}, nil) == nil {
		return warnings
	}
	for _, name := range wanted { // one wrong name refuses all
		if err := r.requestReview(ctx, raw.Index, map[string]any{"reviewers": []string{name}}, nil); err != nil {
			warnings = append(warnings, fmt.Sprintf("reviewer %s: %v", name, err))
		}
	}
	return warnings
}

// addTeams asks teams one by one. Gitea leaves teams out without a word where no
// organisation owns the repository: then the answer lists no review.
func (r *Repository) addTeams(ctx context.Context, wanted []string, raw *sdk.PullRequest) []string {
	wanted = missing(wanted, raw.RequestedReviewersTeams, func(t *sdk.Team) string { return t.Name })
	var warnings []string
	for _, name := range wanted {
		var made []*sdk.PullReview
		err := r.requestReview(ctx, raw.Index, map[string]any{"team_reviewers": []string{name}}, &made)
		if err == nil && len(made) == 0 {
			err = errors.New("nobody was asked: does an organisation with that team own the repository?")
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("team %s: %v", name, err))
		}
	}
	return warnings
}

func (r *Repository) requestReview(ctx context.Context, number int64, in, out any) error {
	_, err := r.repoCall(ctx, request{method: http.MethodPost, path: pullPath(int(number)) + "/requested_reviewers", in: in, out: out})
	return err
}

// missing are the wanted names that are not there yet, each once.
func missing[T any](wanted []string, have []T, name func(T) string) []string {
	var list []string
	for _, w := range wanted {
		there := slices.ContainsFunc(have, func(h T) bool { return strings.EqualFold(name(h), w) })
		if !there && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}
