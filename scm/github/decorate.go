package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

// decoration is one best-effort call; what it cannot do is a warning.
type decoration struct {
	what string
	do   func(context.Context) error
}

// decorate does all that is asked for, in parallel. Only auto-merge that was
// asked for fails; on tells whether auto-merge is set afterwards.
func (r *Repository) decorate(ctx context.Context, pr *github.PullRequest, p scm.Proposal, fresh bool) (warnings []string, on bool, err error) {
	var mu sync.Mutex
	warn := func(w string) { mu.Lock(); warnings = append(warnings, w); mu.Unlock() }
	var wg sync.WaitGroup
	wg.Go(func() { runAll(ctx, r.decorations(pr, p, fresh, warn), warn) })
	wg.Go(func() { on, err = r.settleAutoMerge(ctx, pr, p, warn) })
	wg.Wait()
	slices.Sort(warnings)
	return warnings, on, err
}

// runAll does all of them at once; what fails is a warning.
func runAll(ctx context.Context, all []decoration, warn func(string)) {
	var wg sync.WaitGroup
	for _, d := range all {
		wg.Go(func() {
			if err := d.do(ctx); err != nil {
				warn(fmt.Sprintf("%s: %v", d.what, err))
			}
		})
	}
	wg.Wait()
}

func (r *Repository) decorations(pr *github.PullRequest, p scm.Proposal, fresh bool, warn func(string)) []decoration {
	number := pr.GetNumber()
	var out []decoration
	if labels := missing(p.Labels, labelNames(pr)); len(labels) > 0 {
		out = append(out, decoration{"add labels " + strings.Join(labels, ", "), func(ctx context.Context) error {
			return r.label(ctx, number, labels)
		}})
	}
	if who := missing(p.Assignees, logins(pr.Assignees)); len(who) > 0 {
		out = append(out, decoration{"assign " + strings.Join(who, ", "), func(ctx context.Context) error {
			return r.assign(ctx, number, who)
		}})
	}
	if fresh {
		return append(out, r.reviewRequests(pr, p, nil, warn)...)
	}
	if p.Renewed || len(p.Reviewers)+len(p.TeamReviewers) > 0 {
		out = append(out, decoration{"ask for reviews", func(ctx context.Context) error {
			return r.renewReviews(ctx, pr, p, warn)
		}})
	}
	return out
}

// label adds labels. GitHub's issue side may not know a fresh pull request yet:
// only those refusals are tried again, and only what is still missing is sent, so
// that no label is set twice (create-pull-request#4321, #4370).
func (r *Repository) label(ctx context.Context, number int, labels []string) error {
	return r.settled(ctx, func(again bool) error {
		if again {
			got, _, err := r.api().Issues.ListLabelsByIssue(ctx, r.owner, r.name, number, &github.ListOptions{PerPage: pageSize})
			if err == nil {
				var names []string
				for _, l := range got {
					names = append(names, l.GetName())
				}
				if labels = missing(labels, names); len(labels) == 0 {
					return nil
				}
			}
		}
		return r.addLabels(ctx, number, labels)
	})
}

// addLabels sends an object: go-github sends a bare list, which GitHub's
// description does not know any more.
func (r *Repository) addLabels(ctx context.Context, number int, labels []string) error {
	c := r.api()
	at := fmt.Sprintf("repos/%s/%s/issues/%d/labels", r.owner, r.name, number)
	req, err := c.NewRequest(http.MethodPost, at, map[string][]string{"labels": labels})
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, req, nil)
	return err
}

// assign assigns; GitHub drops those who cannot be assigned without a word, so
// the answer is compared.
func (r *Repository) assign(ctx context.Context, number int, who []string) error {
	return r.settled(ctx, func(bool) error {
		issue, _, err := r.api().Issues.AddAssignees(ctx, r.owner, r.name, number, who)
		if err != nil {
			return err
		}
		if lost := missing(who, logins(issue.Assignees)); len(lost) > 0 {
			return fmt.Errorf("GitHub did not take %s: only those who can write to or read the repository can be assigned", strings.Join(lost, ", "))
		}
		return nil
	})
}

// settled runs do again after the refusals of a server that does not know the
// pull request yet, and after no others.
func (r *Repository) settled(ctx context.Context, do func(again bool) error) error {
	for attempt := 0; ; attempt++ {
		err := do(attempt > 0)
		if err == nil {
			return nil
		}
		a, answered := answerOf(err)
		lag := a.has(http.StatusUnprocessableEntity, "Could not resolve to a node", "Issue not found") || a.status == http.StatusNotFound
		if !lag || attempt == lagAttempts {
			if !answered {
				return err
			}
			return fmt.Errorf("%d %s", a.status, a.text)
		}
		if err := r.sleep(ctx, lagPause<<attempt); err != nil {
			return err
		}
	}
}

func labelNames(pr *github.PullRequest) []string {
	var out []string
	for _, l := range pr.Labels {
		out = append(out, l.GetName())
	}
	return out
}

func logins(users []*github.User) []string {
	var out []string
	for _, u := range users {
		out = append(out, u.GetLogin())
	}
	return out
}

// missing is what of want is not in have; GitHub compares both without case.
func missing(want, have []string) []string {
	var out []string
	for _, w := range want {
		same := func(s string) bool { return strings.EqualFold(s, w) }
		if w != "" && !slices.ContainsFunc(have, same) && !slices.ContainsFunc(out, same) {
			out = append(out, w)
		}
	}
	return out
}
