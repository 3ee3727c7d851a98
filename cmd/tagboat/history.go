package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tagboat/inventory"
	"tagboat/scm"
)

func (t *tool) historyCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "show what ran in a place, since when, and who asked and approved",
		UsageText: "tagboat history --environment NAME --app NAME [--ring NAME] [--repo OWNER/NAME] [options]",
		Description: `Prints what the app ran there, newest first, from the first-parent history of the
environment's branch: when by the forge's clock, by which commit and pull request.

Examples:
  tagboat history --repo acme/config --environment production --ring canary --app todo-api
  tagboat history --repo acme/config --environment staging --app todo-api --limit 100 --output json`,
		Flags: slices.Concat(placeRepositoryFlags(), []cli.Flag{
			&cli.StringFlag{Name: "environment", Usage: "`NAME` of the environment"},
			&cli.StringFlag{Name: "ring", Usage: "`RING` of the environment, where it has rings"},
			&cli.StringFlag{Name: "app", Usage: "`NAME` of the app"},
			&cli.IntFlag{Name: "limit", Value: 20, Usage: "show at most `N` changes"},
			outputFlag(),
		}),
		Action: t.history,
	}
}

func (t *tool) history(c *cli.Context) error {
	environment, app, limit := strings.TrimSpace(c.String("environment")), strings.TrimSpace(c.String("app")), c.Int("limit")
	switch {
	case environment == "" || app == "":
		return misused("which history? Name the place with --environment and --app")
	case limit < 1:
		return misused("--limit %d: it is 1 or more", limit)
	}
	s, err := t.survey(c)
	if err != nil {
		return err
	}
	places, err := s.Places(environment, strings.TrimSpace(c.String("ring")), app)
	if err != nil {
		return misused("%v", err)
	}
	if len(places) > 1 {
		return misused("%s has rings, each with its own history: name one with --ring, of %s", environment, ringsOf(places))
	}
	target, tip, err := s.Target(c.Context, places[0])
	if err != nil {
		return err
	}
	stays, err := readHistory(c.Context, target, tip.Commit.SHA, limit)
	if printed := t.printHistory(c, places[0], target, stays, err); printed != nil {
		return printed
	}
	if err == nil {
		return nil
	}
	t.complain(err)
	return exitError{failureOf(err).exit}
}

func ringsOf(places []inventory.Place) string {
	var names []string
	for _, p := range places {
		names = append(names, p.At.Ring)
	}
	return strings.Join(names, ", ")
}

// stay is an arrival with who approved it.
type stay struct {
	inventory.Arrival
	approvals []scm.Approval
}

// readHistory reads up to limit stays. What was read before an error is given too.
func readHistory(ctx context.Context, target inventory.Target, tip string, limit int) ([]stay, error) {
	var stays []stay
	evidence, _ := target.Repo.(scm.Evidence)
	for a, err := range inventory.History(ctx, target, tip) {
		if err != nil {
			return stays, err
		}
		s := stay{Arrival: a}
		if evidence != nil && a.PullRequest != nil {
			if s.approvals, err = evidence.Approvals(ctx, *a.PullRequest); err != nil {
				return append(stays, s), err
			}
		}
		if stays = append(stays, s); len(stays) == limit {
			break
		}
	}
	return stays, nil
}

// historyReport is the machine-readable answer of history.
type historyReport struct {
	SchemaVersion int     `json:"schemaVersion"`
	App           string  `json:"app"`
	Environment   string  `json:"environment"`
	Ring          string  `json:"ring,omitempty"`
	Repository    string  `json:"repository"`
	Branch        string  `json:"branch"`
	Changes       []event `json:"changes"` // newest first
	Error         *failed `json:"error,omitempty"`
}

// event is what ran from a commit on. Since is by the forge's clock, and left out
// where it cannot tell; problem says why no images are told.
type event struct {
	arrival
	Images       []runs     `json:"images"`
	Problem      *failed    `json:"problem,omitempty"`
	Author       string     `json:"author,omitempty"`
	Requester    string     `json:"requester,omitempty"`
	Approvals    []approval `json:"approvals"`
	Revision     string     `json:"revision,omitempty"`
	Undoes       string     `json:"undoes,omitempty"`
	Reason       string     `json:"reason,omitempty"`
	Override     string     `json:"override,omitempty"`
	OverriddenBy string     `json:"overriddenBy,omitempty"`
}

// approval is one reviewer's last word for it.
type approval struct {
	By        string `json:"by"`
	At        string `json:"at,omitempty"`
	Commit    string `json:"commit,omitempty"`
	Stale     bool   `json:"stale,omitempty"`     // of another state of the pull request than the merged one
	Dismissed bool   `json:"dismissed,omitempty"` // taken back
}

func eventOf(s stay) event {
	e := event{
		arrival: *arrivalOf(s.Arrival), Images: runsOf(s.Images), Author: s.Commit.Author, Requester: s.Trailers.Requester,
		Approvals: []approval{}, Revision: s.Trailers.Revision, Undoes: s.Trailers.Undoes, Reason: s.Trailers.Reason,
		Override: s.Trailers.Override, OverriddenBy: s.Trailers.OverriddenBy,
	}
	if s.Problem != nil {
		e.Problem = &failed{Code: failureOf(s.Problem).code, Message: s.Problem.Error()}
	}
	for _, a := range s.approvals {
		e.Approvals = append(e.Approvals, approval{By: a.User, At: stamp(a.Time), Commit: a.Commit, Stale: a.Stale, Dismissed: a.Dismissed})
	}
	return e
}

func (t *tool) printHistory(c *cli.Context, p inventory.Place, target inventory.Target, stays []stay, err error) error {
	if c.String("output") != "json" {
		for i, s := range stays {
			if i > 0 {
				fmt.Fprintln(t.stdout)
			}
			t.printStay(s)
		}
		return nil
	}
	out := historyReport{
		SchemaVersion: 1, App: p.App, Environment: p.At.Environment, Ring: p.At.Ring,
		Repository: target.Repo.About().Name, Branch: target.Branch, Changes: []event{},
	}
	for _, s := range stays {
		out.Changes = append(out.Changes, eventOf(s))
	}
	if err != nil {
		out.Error = &failed{Code: failureOf(err).code, Message: err.Error()}
	}
	return t.printJSON(out)
}

// printStay prints one record: the time, then a line for each thing that is known.
func (t *tool) printStay(s stay) {
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(t.stdout, "  %-10s %s\n", what, plain(text))
		}
	}
	when := stamp(s.At)
	if when == "" {
		when = "time unknown"
		if written := stamp(s.Commit.Time); written != "" {
			when += " (its committer wrote " + written + ")"
		}
	}
	fmt.Fprintln(t.stdout, when)
	for _, ref := range s.Images {
		line("ran", ref.Repository+" "+ref.Tag)
		line("", ref.Digest)
	}
	if s.Problem != nil {
		line("problem", s.Problem.Error())
	}
	line("commit", s.Commit.SHA+" by "+s.Commit.Author)
	if pr := s.PullRequest; pr != nil {
		line("by", fmt.Sprintf("%s of %s", pr.URL, pr.Author))
	}
	line("asked by", s.Trailers.Requester)
	line("approved", strings.Join(approvers(s.approvals), ", "))
	line("revision", s.Trailers.Revision)
	line("undoes", s.Trailers.Undoes)
	line("reason", s.Trailers.Reason)
	if s.Trailers.Override != "" {
		line("override", s.Trailers.Override+" ("+s.Trailers.OverriddenBy+")")
	}
}

func approvers(list []scm.Approval) []string {
	var names []string
	for _, a := range list {
		switch {
		case a.Dismissed:
			names = append(names, a.User+" (taken back)")
		case a.Stale:
			names = append(names, a.User+" (of another state)")
		default:
			names = append(names, a.User)
		}
	}
	return names
}
