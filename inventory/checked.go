package inventory

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

const (
	// checkedCommits is on how many commits the checks are looked for. Argo CD posts
	// where it synced, which in a busy repository is hundreds of commits ago.
	checkedCommits = 300
	// checkedAtOnce is of how many commits the statuses are asked for at first; then
	// of twice as many each time, but never of more than checkedAtMost.
	checkedAtOnce, checkedAtMost = 5, 20
)

// Missing is the Word of a Check whose context no commit carries.
const Missing = "missing"

// Check is what one context says to one pattern.
type Check struct {
	Pattern     string
	Context     string // "" where it is missing
	State       scm.StatusState
	Word        string // the forge's own, or Missing
	Description string
	URL         string
	Commit      string // that carries it; "" where it is missing
	Time        time.Time
}

// Checked tells what commit statuses and check runs say of what runs at tip since
// it arrived. For each pattern (path.Match on the context, where * does not match
// a '/') it takes what the newest commit that carries it says to each matching context,
// of the commits of the first-parent line from tip down to arrival or to the newest
// that changed the target's directories, whichever is later, at most 300. All that
// matches is told, and all of it must be a success for the pattern to hold. Where no
// commit has any, there is one Check that is pending and Missing. A pattern that can
// match one context alone costs the commits down to that one, another costs all.
// Targets with one Line ask for the statuses of a commit once.
//
// A forge without statuses is ErrUntold.
func Checked(ctx context.Context, t Target, tip string, arrival Arrival, patterns []string) ([]Check, error) {
	checks, err := t.checked(ctx, tip, arrival, patterns)
	if err != nil {
		return nil, fmt.Errorf("read the checks of what %s runs: %w", t.Branch, err)
	}
	return checks, nil
}

func (t Target) checked(ctx context.Context, tip string, arrival Arrival, patterns []string) ([]Check, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	e, ok := t.Repo.(scm.Evidence)
	if !ok {
		return nil, fmt.Errorf("%w: %s is plain git, which has no statuses", ErrUntold, t.Repo.About().Name)
	}
	w, err := t.walker(tip)
	if err != nil {
		return nil, err
	}
	found := make([][]Check, len(patterns))
	unchanged := w.unchanged(ctx, arrival)
	looked, batch := 0, checkedAtOnce
	for missing := true; missing && looked < checkedCommits; batch = min(2*batch, checkedAtMost) {
		commits, err := unchanged(min(batch, checkedCommits-looked))
		if err != nil {
			return nil, err
		}
		if len(commits) == 0 {
			break
		}
		looked += len(commits)
		if missing, err = w.line.look(ctx, e, commits, patterns, found); err != nil {
			return nil, err
		}
	}
	return inOrder(patterns, found, looked), nil
}

// unchanged hands out the commits of the line, from the tip on, that have the
// target as it is at the tip, and not below the arrival.
func (w *walker) unchanged(ctx context.Context, arrival Arrival) func(n int) ([]string, error) {
	i, end := 0, false
	return func(n int) (commits []string, err error) {
		for len(commits) < n && !end {
			c, ok, err := w.line.at(ctx, i)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			commits = append(commits, c.SHA)
			if end = c.SHA == arrival.Commit.SHA && !arrival.Earlier; !end {
				end, err = w.changed(ctx, i)
			}
			if err != nil {
				return nil, err
			}
			i++
		}
		return commits, nil
	}
}

// wild are the signs that let a pattern match more than one context.
const wild = `*?[`

// look asks for the statuses of commits (newest first) side by side and enters
// what matches a pattern, of each context what its newest commit says. It tells
// whether an older commit may have more.
func (l *Line) look(ctx context.Context, e scm.Evidence, commits, patterns []string, found [][]Check) (missing bool, err error) {
	said := make([][]scm.Status, len(commits))
	group, ctx := errgroup.WithContext(ctx)
	for i, sha := range commits {
		group.Go(func() (err error) {
			said[i], err = l.statuses(ctx, e, sha)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	for i, pattern := range patterns {
		several := strings.ContainsAny(pattern, wild)
		for k := 0; k < len(commits) && (several || len(found[i]) == 0); k++ {
			found[i] = append(found[i], matching(pattern, commits[k], said[k], found[i])...)
		}
		missing = missing || several || len(found[i]) == 0
	}
	return missing, nil
}

// statuses are those of a commit of the line, asked for once until Forget.
func (l *Line) statuses(ctx context.Context, e scm.Evidence, sha string) ([]scm.Status, error) {
	l.mu.Lock()
	known, ok := l.said[sha]
	l.mu.Unlock()
	if ok {
		return known, nil
	}
	said, err := e.Statuses(ctx, sha)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said[sha] = said
	return said, nil
}

// Forget drops what may be another the next time it is asked for: the statuses.
func (l *Line) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.said)
}

// matching is what a commit says to a pattern, of contexts of which no newer commit
// has said anything.
func matching(pattern, commit string, statuses []scm.Status, newer []Check) (checks []Check) {
	for _, s := range statuses {
		said := slices.ContainsFunc(newer, func(c Check) bool { return c.Context == s.Context })
		if ok, err := path.Match(pattern, s.Context); ok && err == nil && !said {
			checks = append(checks, Check{Pattern: pattern, Context: s.Context, State: s.State, Word: s.Word,
				Description: s.Description, URL: s.URL, Commit: commit, Time: s.Time})
		}
	}
	return checks
}

// inOrder are the checks by pattern. Of a missing one it tells on how many commits
// it was looked for.
func inOrder(patterns []string, found [][]Check, looked int) (all []Check) {
	for i, pattern := range patterns {
		if len(found[i]) == 0 {
			where := "no status of that name since the digest is there"
			if looked > 1 {
				where += fmt.Sprintf(", in %d commits", looked)
			}
			if looked >= checkedCommits {
				where = fmt.Sprintf("no status of that name in the newest %d commits; older ones are not looked at", looked)
			}
			found[i] = []Check{{Pattern: pattern, State: scm.StatusPending, Word: Missing, Description: where}}
		}
		all = append(all, found[i]...)
	}
	return all
}
