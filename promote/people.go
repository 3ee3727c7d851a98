package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/inventory"
	"tagboat/scm"
)

// rights is what the config repository's forge says of people.
func (o *order) rights(rule string) (scm.Rights, error) {
	rights, ok := o.repo.(scm.Rights)
	if !ok {
		return nil, fmt.Errorf("%w: %s has %s, and a %s repository tells nothing about people", ErrCannotAsk, config.FileName, rule, o.repo.About().Forge)
	}
	return rights, nil
}

// who asks for the promotion: a login that the forge vouches for.
func (o *order) who(ctx context.Context, rule string) (string, error) {
	rights, err := o.rights(rule)
	if err != nil || o.q.Actor != "" {
		return o.q.Actor, err
	}
	login, err := rights.Self(ctx)
	if err != nil {
		return "", fmt.Errorf("ask %s who the token acts as, for %s: %w", o.repo.About().Host, rule, err)
	}
	return login, nil
}

// among says whether a login is one of user:LOGIN and team:SLUG.
func (o *order) among(ctx context.Context, login string, names []string, rule string) (bool, error) {
	if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, "user:"+login) }) {
		return true, nil
	}
	rights, err := o.rights(rule)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		team, isTeam := strings.CutPrefix(name, "team:")
		if !isTeam {
			continue
		}
		in, err := rights.Member(ctx, team, login)
		if err != nil {
			return false, fmt.Errorf("%s of %s: %w", rule, config.FileName, err)
		}
		if in {
			return true, nil
		}
	}
	return false, nil
}

// askers are who stands behind the promotion, as the forge vouches.
func (r *rules) askers(ctx context.Context, rule string) ([]string, error) {
	if r.asking != nil {
		return r.asking, nil
	}
	login, err := r.who(ctx, rule)
	return []string{login}, err
}

// anyAmong finds the first who is one of user:LOGIN and team:SLUG; "" for none.
func (r *rules) anyAmong(ctx context.Context, logins, names []string, rule string) (string, error) {
	for _, login := range logins {
		if is, err := r.among(ctx, login, names, rule); err != nil || is {
			return login, err
		}
	}
	return "", nil
}

// promoter demands that who asks may promote.
func (r *rules) promoter(ctx context.Context) (Gate, error) {
	g := Gate{Name: "promoters", Status: GateFailed}
	logins, err := r.askers(ctx, "promoters")
	if err != nil {
		return g, err
	}
	by, err := r.anyAmong(ctx, logins, r.policy.Promoters, "promoters")
	if err != nil {
		return g, err
	}
	if by != "" {
		g.Status, g.Evidence = GatePassed, by+" may promote to "+r.at.Environment
		return g, nil
	}
	g.Evidence = fmt.Sprintf("%s is not among %s", strings.Join(logins, ", "), strings.Join(r.policy.Promoters, ", "))
	return g, nil
}

// override opens the gates that are shut, where who asks may do that. It gives the
// login, or a reason why nothing was overridden.
func (r *rules) override(ctx context.Context, gates []Gate) (by, refused string, err error) {
	if len(r.policy.Overriders) == 0 {
		return "", fmt.Sprintf("%s names no overriders of %s", config.FileName, r.at.Environment), nil
	}
	logins, err := r.askers(ctx, "overriders")
	if err != nil {
		return "", "", err
	}
	if by, err = r.anyAmong(ctx, logins, r.policy.Overriders, "overriders"); err != nil {
		return "", "", err
	}
	if by == "" {
		return "", fmt.Sprintf("%s is not among the overriders of %s: %s", strings.Join(logins, ", "), r.at.Environment, strings.Join(r.policy.Overriders, ", ")), nil
	}
	for i := range gates {
		if !gates[i].opens() {
			gates[i].Status = GateOverridden
		}
	}
	return by, "", nil
}

// approved counts the people who approved what brought the digests to the source:
// not its author, not who asked for either promotion, and only who may write.
func (r *rules) approved(ctx context.Context, s *source, arrival inventory.Arrival) (Gate, error) {
	g := Gate{Name: r.name("approvals", s), Status: GatePending, Link: linkOf(arrival)}
	pr := arrival.PullRequest
	if pr == nil {
		g.Status, g.Evidence = GateFailed, fmt.Sprintf("commit %s brought it to %s without a pull request", short(arrival.Commit.SHA), s.at)
		return g, nil
	}
	evidence, ok := s.repo.(scm.Evidence)
	rights, vouches := s.repo.(scm.Rights)
	if !ok || !vouches {
		return g, fmt.Errorf("%w: a %s repository has no approvals", ErrCannotAsk, s.repo.About().Forge)
	}
	list, err := evidence.Approvals(ctx, *pr)
	if err != nil {
		return g, err
	}
	askers, err := r.askers(ctx, "gates.approvals")
	if err != nil {
		return g, err
	}
	not := slices.Concat([]string{pr.Author, askers[0], arrival.Trailers.Requester}, r.told)
	if len(arrival.Commit.Parents) < 2 { // a merge commit's author is who merged
		not = append(not, arrival.Commit.Author)
	}
	authors, err := changedBy(ctx, s.repo, arrival)
	if err != nil {
		return g, err
	}
	not = append(not, authors...)
	var by []string
	for _, a := range list {
		if !a.Counts() || slices.ContainsFunc(not, func(n string) bool { return strings.EqualFold(n, a.User) }) {
			continue
		}
		may, err := rights.Permission(ctx, a.User)
		if err != nil && !errors.Is(err, scm.ErrNotFound) {
			return g, err
		}
		if may.Allows(scm.PermissionWrite) {
			by = append(by, a.User)
		}
	}
	about := s.repo.About()
	g.Evidence = fmt.Sprintf("%d of %d approvals of %s %s%d", len(by), r.policy.Gates.Approvals, about.PullRequestWord, about.PullRequestMark, pr.Number)
	if len(by) > 0 {
		g.Evidence += ": " + strings.Join(by, ", ")
	}
	if len(by) >= r.policy.Gates.Approvals {
		g.Status = GatePassed
	}
	return g, nil
}

// changedBy are the authors of a pull request's commits, as git has them. That is
// no identity: it may take an approval away, and gives none.
func changedBy(ctx context.Context, repo scm.Repository, arrival inventory.Arrival) ([]string, error) {
	if arrival.PullRequest.HeadCommit == "" || len(arrival.Commit.Parents) == 0 {
		return nil, nil
	}
	changes, err := repo.Changes(ctx, arrival.Commit.Parents[0], arrival.PullRequest.HeadCommit)
	if notThere(err) {
		return nil, nil // its branch is gone, and the forge keeps no commit of it
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range changes.Commits {
		if len(c.Parents) < 2 {
			names = append(names, c.Author)
		}
	}
	return names, nil
}
