package github

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

// reviewRequests asks users one by one and teams one by one: GitHub refuses a
// whole call for one bad name. seen are those who need not be asked again.
func (r *Repository) reviewRequests(pr *github.PullRequest, p scm.Proposal, seen []string, warn func(string)) []decoration {
	var out []decoration
	ask := func(what string, req github.ReviewersRequest) {
		out = append(out, decoration{"ask " + what + " for a review", func(ctx context.Context) error {
			return r.settled(ctx, func(bool) error {
				_, _, err := r.api().PullRequests.RequestReviewers(ctx, r.owner, r.name, pr.GetNumber(), req)
				return err
			})
		}})
	}
	for _, user := range missing(p.Reviewers, append(logins(pr.RequestedReviewers), seen...)) {
		if strings.EqualFold(user, pr.GetUser().GetLogin()) {
			warn(fmt.Sprintf("ask %s for a review: the author of a pull request cannot review it", user))
			continue
		}
		ask(user, github.ReviewersRequest{Reviewers: []string{user}})
	}
	for _, team := range missing(teamSlugs(p.TeamReviewers), requestedTeams(pr)) {
		ask("team "+team, github.ReviewersRequest{TeamReviewers: []string{team}})
	}
	return out
}

// teamSlugs drops the organisation: the API takes the bare slug.
func teamSlugs(teams []string) []string {
	out := make([]string, 0, len(teams))
	for _, t := range teams {
		out = append(out, t[strings.LastIndex(t, "/")+1:])
	}
	return out
}

func requestedTeams(pr *github.PullRequest) []string {
	var out []string
	for _, t := range pr.RequestedTeams {
		out = append(out, t.GetSlug())
	}
	return out
}

// renewReviews dismisses the approvals of another digest, where p says that it is
// another, and asks those for a review who have not given one that still counts.
func (r *Repository) renewReviews(ctx context.Context, pr *github.PullRequest, p scm.Proposal, warn func(string)) error {
	reviews, err := r.reviews(ctx, pr.GetNumber())
	if err != nil {
		warn("read the reviews: " + err.Error() + "; earlier approvals may be for another digest")
		reviews = nil
	}
	var seen []string
	var todo []decoration
	for _, review := range reviews {
		switch {
		case review.GetState() == "DISMISSED" || review.GetState() == "PENDING":
		case p.Renewed && review.GetState() == "APPROVED":
			todo = append(todo, r.dismissal(pr.GetNumber(), review))
		case !p.Renewed:
			seen = append(seen, review.GetUser().GetLogin())
		}
	}
	runAll(ctx, append(todo, r.reviewRequests(pr, p, seen, warn)...), warn)
	return nil
}

func (r *Repository) dismissal(number int, review *github.PullRequestReview) decoration {
	who := review.GetUser().GetLogin()
	return decoration{"dismiss the approval of " + who + ", which was for another digest", func(ctx context.Context) error {
		why := "This approval was for another digest."
		_, _, err := r.api().PullRequests.DismissReview(ctx, r.owner, r.name, number, review.GetID(), &github.PullRequestReviewDismissalRequest{Message: &why})
		if a, ok := answerOf(err); ok {
			return fmt.Errorf("%d %s; ask for a new review", a.status, a.text)
		}
		return err
	}}
}

func (r *Repository) reviews(ctx context.Context, number int) ([]*github.PullRequestReview, error) {
	var out []*github.PullRequestReview
	opts := &github.ListOptions{PerPage: pageSize}
	for {
		page, resp, err := r.api().PullRequests.ListReviews(ctx, r.owner, r.name, number, opts)
		if err != nil {
			return nil, r.fault(fmt.Sprintf("read the reviews of #%d", number), err)
		}
		out = append(out, page...)
		if resp.NextPage == 0 {
			return out, nil
		}
		opts.Page = resp.NextPage
	}
}
