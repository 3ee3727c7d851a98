package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"tagboat/config"
	"tagboat/image"
	"tagboat/inventory"
	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
)

func (t *tool) statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show what runs where, and which promotions are open",
		UsageText: "tagboat status [--repo OWNER/NAME] [--environment NAME] [--app NAME] [options]",
		Description: `Prints one line for each image of an app in an environment or ring of tagboat.yaml.
A place that does not run one pinned digest is shown with what is wrong, and makes
the exit code 1; what was told of the others stands all the same.

Examples:
  tagboat status --repo acme/config
  tagboat status --repo acme/config --environment production --app todo-api --since`,
		Flags: slices.Concat(placeRepositoryFlags(), []cli.Flag{
			&cli.StringFlag{Name: "environment", Usage: "show this environment alone, by its `NAME`"},
			&cli.StringFlag{Name: "ring", Usage: "show this `RING` of the environment alone"},
			&cli.StringFlag{Name: "app", Usage: "show this app alone, by its `NAME`"},
			&cli.BoolFlag{Name: "since", Usage: "also since when, by the forge's clock (some more calls for each place)"},
			outputFlag(),
		}),
		Action: t.status,
	}
}

// placeRepositoryFlags name the config repository of a command that only reads.
func placeRepositoryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "repo", Usage: "config `REPOSITORY` with the tagboat.yaml (default: the CI's own)"},
		&cli.StringFlag{Name: "forge", Usage: "`github|gitlab|gitea|git`, where the host does not tell"},
		&cli.StringSliceFlag{Name: "ca-file", Usage: "trust the certificates in `FILE` too; may be repeated"},
	}
}

// survey opens the config repository and reads its tagboat.yaml.
func (t *tool) survey(c *cli.Context) (*inventory.Survey, error) {
	if err := checkOutput(c); err != nil {
		return nil, err
	}
	if c.Args().Present() {
		return nil, misused("%s: %s takes no arguments, name places with --environment and --app", c.Args().First(), c.Command.Name)
	}
	name := cmp.Or(strings.TrimSpace(c.String("repo")), t.job.Repository)
	if name == "" {
		return nil, misused("no config repository: name it with --repo OWNER/NAME or a URL")
	}
	open := t.opener(c)
	repo, err := open(c.Context, name, "")
	if err != nil {
		return nil, err
	}
	s, err := inventory.NewSurvey(c.Context, repo, open)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, misused("%s has no %s on its default branch, which would say what is where", repo.About().Name, config.FileName)
	}
	return s, err
}

func (t *tool) status(c *cli.Context) error {
	s, err := t.survey(c)
	if err != nil {
		return err
	}
	places, err := s.Places(strings.TrimSpace(c.String("environment")), strings.TrimSpace(c.String("ring")), strings.TrimSpace(c.String("app")))
	if err != nil {
		return misused("%v", err)
	}
	holds, unheld := t.holdsAt(c, s)
	found := s.Look(c.Context, places, c.Bool("since"))
	shown := placesOf(found, holds)
	if c.String("output") == "json" {
		report := statusReport{SchemaVersion: 1, Places: shown}
		if unheld != nil {
			report.Error = &failed{Code: failureOf(unheld).code, Message: unheld.Error()}
		}
		err = t.printJSON(report)
	} else {
		err = t.printStatus(found, shown, c.Bool("since"))
	}
	if err != nil {
		return err
	}
	return t.complainOf(found, unheld, pinning(c, s.Config))
}

// pinning gives the command that pins what a place runs by its tag, as the user
// would go on from here; "" for a place that takes what another runs.
func pinning(c *cli.Context, conf *config.Config) func(inventory.Found, image.Reference) string {
	words := "tagboat promote"
	for _, name := range []string{"repo", "forge"} {
		if value := strings.TrimSpace(c.String(name)); value != "" {
			words += " --" + name + " " + value
		}
	}
	return func(f inventory.Found, ref image.Reference) string {
		if environment, err := conf.Environment(f.At.Environment); err != nil || environment.From != nil {
			return ""
		}
		return words + " --to " + f.At.Environment + " " + plain(ref.String())
	}
}

// holdsAt reads what is held, and gives the holds on a place. Their order is that
// of the hold branch.
func (t *tool) holdsAt(c *cli.Context, s *inventory.Survey) (func(inventory.Found) []record.Hold, error) {
	p := &promote.Promoter{Open: t.opener(c)}
	holds, err := p.Holds(c.Context, s.Repo)
	now, _ := p.TimeOf(s.Repo)
	return func(f inventory.Found) []record.Hold { return holds.On(f.At.Environment, f.App, now, nil) }, err
}

// complainOf tells what could not be told; then the exit code is 1.
func (t *tool) complainOf(found []inventory.Found, unheld error, pin func(inventory.Found, image.Reference) string) error {
	failed := unheld != nil
	if failed {
		t.complain(unheld)
	}
	for _, f := range found {
		for _, err := range f.Errs {
			failed = true
			err = fmt.Errorf("%s in %s: %w", f.App, f.At, err)
			if unpinned := new(inventory.UnpinnedError); errors.As(err, &unpinned) {
				if command := pin(f, unpinned.Image); command != "" {
					err = fmt.Errorf("%w: pin it with: %s", err, command)
				}
			}
			t.complain(err)
		}
	}
	if failed {
		return exitError{1}
	}
	return nil
}

// statusReport is the machine-readable answer of status.
type statusReport struct {
	SchemaVersion int     `json:"schemaVersion"`
	Places        []place `json:"places"`
	Error         *failed `json:"error,omitempty"` // why the holds are not told
}

type place struct {
	App          string        `json:"app"`
	Environment  string        `json:"environment"`
	Ring         string        `json:"ring,omitempty"`
	Repository   string        `json:"repository,omitempty"`
	Branch       string        `json:"branch,omitempty"`
	Commit       string        `json:"commit,omitempty"`
	Images       []runs        `json:"images"`
	Arrival      *arrival      `json:"arrival,omitempty"`
	PullRequests []pullRequest `json:"pullRequests"`
	Holds        []*held       `json:"holds"`
	Errors       []failed      `json:"errors"`
}

// runs is one image that runs.
type runs struct {
	Repository string `json:"repository"`
	Tag        string `json:"tag,omitempty"`
	Digest     string `json:"digest"`
}

// arrival is since when images run, and what brought them. Since is by the forge's
// clock, and left out where it cannot tell.
type arrival struct {
	Since       string       `json:"since,omitempty"`
	Earlier     bool         `json:"earlier,omitempty"` // it may run since longer: further back was not looked
	Commit      string       `json:"commit"`
	PullRequest *pullRequest `json:"pullRequest,omitempty"`
}

func placesOf(found []inventory.Found, holds func(inventory.Found) []record.Hold) []place {
	out := []place{}
	for _, f := range found {
		p := place{
			App: f.App, Environment: f.At.Environment, Ring: f.At.Ring, Repository: f.Repository, Branch: f.Branch, Commit: f.Commit,
			Images: runsOf(f.Images), PullRequests: []pullRequest{}, Holds: []*held{}, Errors: []failed{},
		}
		if a := f.Since; a != nil {
			p.Arrival = arrivalOf(*a)
		}
		for _, pr := range f.Open {
			p.PullRequests = append(p.PullRequests, *pullRequestOf(pr))
		}
		for _, h := range holds(f) {
			p.Holds = append(p.Holds, heldOf(h))
		}
		for _, err := range f.Errs {
			p.Errors = append(p.Errors, failed{Code: failureOf(err).code, Message: err.Error()})
		}
		out = append(out, p)
	}
	return out
}

func runsOf(images []image.Reference) []runs {
	out := []runs{}
	for _, ref := range images {
		out = append(out, runs{Repository: ref.Repository, Tag: ref.Tag, Digest: ref.Digest})
	}
	return out
}

func arrivalOf(a inventory.Arrival) *arrival {
	out := &arrival{Since: stamp(a.At), Earlier: a.Earlier, Commit: a.Commit.SHA}
	if a.PullRequest != nil {
		out.PullRequest = pullRequestOf(*a.PullRequest)
	}
	return out
}

func pullRequestOf(pr scm.PullRequest) *pullRequest {
	return &pullRequest{Number: pr.Number, URL: pr.URL, HeadBranch: pr.Head, BaseBranch: pr.Base, State: pr.State}
}

// stamp is a time for machines and records; "" for none.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// printStatus prints the table: a line for each image of a place.
func (t *tool) printStatus(found []inventory.Found, shown []place, since bool) error {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	last := "NOTE"
	if since {
		last = "SINCE\tNOTE"
	}
	fmt.Fprintln(w, "APP\tPLACE\tTAG\tDIGEST\t"+last)
	for n, f := range found {
		images := f.Images
		if unpinned := new(inventory.UnpinnedError); len(images) == 0 && errors.As(f.Err(), &unpinned) {
			images = []image.Reference{unpinned.Image}
		}
		if len(images) == 0 {
			images = []image.Reference{{}}
		}
		for i, ref := range images {
			cells := []string{f.App, f.At.String(), orDash(ref.Tag), orDash(shortDigest(ref.Digest))}
			if since {
				cells = append(cells, sinceOf(f.Since))
			}
			note := ""
			if i == 0 {
				note = strings.Join(notes(f, shown[n].Holds), ", ")
			}
			fmt.Fprintln(w, strings.Join(append(cells, note), "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(t.stdout, strings.TrimRight(line, " \n"))
	}
	return nil
}

func sinceOf(a *inventory.Arrival) string {
	switch {
	case a == nil || a.At.IsZero():
		return "-"
	case a.Earlier:
		return "before " + stamp(a.At)
	}
	return stamp(a.At)
}

// notes are what a person should see of a place at once.
func notes(f inventory.Found, holds []*held) []string {
	var notes []string
	for _, err := range f.Errs {
		notes = append(notes, problem(err))
	}
	for _, pr := range f.Open {
		if pr.Number == 0 {
			notes = append(notes, "proposed on "+pr.Head)
		} else {
			notes = append(notes, fmt.Sprintf("#%d open", pr.Number))
		}
	}
	for _, h := range holds {
		notes = append(notes, plain("held by "+cmp.Or(h.By, "a file that does not read")))
	}
	return notes
}

// problem is an error in a word or two, for a table; the whole of it goes to
// standard error.
func problem(err error) string {
	switch {
	case errors.Is(err, inventory.ErrUnpinned):
		return "not pinned"
	case errors.Is(err, inventory.ErrDisagree):
		return "digests disagree"
	case errors.Is(err, inventory.ErrUntold):
		return "time unknown"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return failureOf(err).code
}

// shortDigest is enough of a digest for people to compare.
func shortDigest(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return hex[:min(len(hex), 12)]
}

func orDash(s string) string {
	return cmp.Or(plain(s), "-")
}

// plain leaves out what would steer a terminal: the text is other people's.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
