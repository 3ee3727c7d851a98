package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tagboat/promote"
	"tagboat/record"
	"tagboat/scm"
)

func holdRepositoryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "repo", Usage: "config `REPOSITORY`: owner/name, group/sub/name, a URL, or file:///… (in CI: the job's own)"},
		&cli.StringFlag{Name: "forge", Usage: "`github|gitlab|gitea|git`, where the host does not tell"},
		&cli.StringSliceFlag{Name: "ca-file", Usage: "trust the certificates in `FILE` too; may be repeated"},
	}
}

func (t *tool) holdCommand() *cli.Command {
	return &cli.Command{
		Name:      "hold",
		Usage:     "stop promotions to an environment, or of one app to it",
		UsageText: "tagboat hold ENVIRONMENT [--app NAME] --reason TEXT [--until TIME|DURATION] [options]",
		Description: `Commits a small file to the branch tagboat-holds of the config repository. Until it is
released, or its time has passed, promotions to the environment are blocked and say who holds it,
since when and why.

Examples:
  tagboat hold --repo acme/config production --reason "incident 12"
  tagboat hold --repo acme/config production --app todo-api --until 2h --reason "migration is running"`,
		Flags: slices.Concat(holdRepositoryFlags(), []cli.Flag{
			&cli.StringFlag{Name: "app", Usage: "hold this app alone, by its `NAME` in tagboat.yaml"},
			&cli.StringFlag{Name: "reason", Usage: "why, in one line of `TEXT`, for those whom it stops"},
			&cli.StringFlag{Name: "until", Usage: "release it at this `TIME`: a duration (2h, 3d), a UTC date (2026-12-24: when that day begins), or RFC 3339"},
			&cli.BoolFlag{Name: "replace", Usage: "put it in the place of a hold that stands there"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the file, write nothing"},
			outputFlag(),
		}),
		Action: t.hold,
	}
}

func (t *tool) releaseCommand() *cli.Command {
	return &cli.Command{
		Name:      "release",
		Usage:     "take a hold away",
		UsageText: "tagboat release ENVIRONMENT [--app NAME] [--reason TEXT] [options]",
		Description: `Deletes the hold's file from the branch tagboat-holds of the config repository; the branch's
history keeps who did what. Nothing to release is no error.

Example:
  tagboat release --repo acme/config production --reason "incident 12 is over"`,
		Flags: slices.Concat(holdRepositoryFlags(), []cli.Flag{
			&cli.StringFlag{Name: "app", Usage: "release the hold of this app, by its `NAME`"},
			&cli.StringFlag{Name: "reason", Usage: "why, in one line of `TEXT`, for the history"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be released, write nothing"},
			outputFlag(),
		}),
		Action: t.release,
	}
}

func (t *tool) holdsCommand() *cli.Command {
	return &cli.Command{
		Name:      "holds",
		Usage:     "list what is held, by whom, since when and why",
		UsageText: "tagboat holds [options]",
		Description: `Prints one hold a line. A file that does not read holds too, and is listed with what is wrong.

Example:
  tagboat holds --repo acme/config`,
		Flags:  slices.Concat(holdRepositoryFlags(), []cli.Flag{outputFlag()}),
		Action: t.holds,
	}
}

// holding is what hold, release and holds work with.
type holding struct {
	promoter *promote.Promoter
	repo     scm.Repository
	hold     record.Hold
	options  promote.HoldOptions
}

// holding reads what the three commands share from the command line.
func (t *tool) holding(c *cli.Context, args int) (*holding, error) {
	if err := checkOutput(c); err != nil {
		return nil, err
	}
	names := words(c.Args().Slice())
	switch {
	case len(names) < args:
		return nil, misused("no environment: name it as the argument")
	case len(names) > args:
		return nil, misused("%s: too many arguments (an app goes to --app)", strings.Join(names[args:], " "))
	}
	name := cmp.Or(strings.TrimSpace(c.String("repo")), t.job.Repository)
	if name == "" {
		return nil, misused("no config repository: name it with --repo OWNER/NAME or a URL")
	}
	h := &holding{promoter: &promote.Promoter{Open: t.opener(c), Progress: func(line string) { t.say("%s", line) }}}
	var err error
	if h.repo, err = h.promoter.Open(c.Context, name, ""); err != nil {
		return nil, err
	}
	h.hold = record.Hold{
		Environment: strings.Join(names, ""), App: strings.TrimSpace(c.String("app")),
		Reason: t.redactor.Redact(strings.TrimSpace(c.String("reason"))), // it leaves the process for good
	}
	h.options = promote.HoldOptions{
		// outside CI the machine's user is as good a word as git's own user.name
		Job:     promote.Job{Actor: cmp.Or(t.job.Actor, t.env("USER"), t.env("USERNAME"))},
		Replace: c.Bool("replace"), DryRun: c.Bool("dry-run"),
	}
	return h, nil
}

func (t *tool) hold(c *cli.Context) error {
	h, err := t.holding(c, 1)
	if err == nil {
		h.hold.Until, h.options.For, err = promote.ParseUntil(c.String("until"))
	}
	if err == nil && h.hold.Reason == "" {
		err = misused("no reason: say why with --reason, for those whom the hold stops")
	}
	if err == nil {
		err = h.promoter.CheckHeld(c.Context, h.repo, h.hold.Environment, h.hold.App)
	}
	if err != nil {
		return t.reportHold(c, promote.HoldResult{Outcome: promote.HoldFailed}, err)
	}
	result, err := h.promoter.Hold(c.Context, h.repo, h.hold, h.options)
	return t.reportHold(c, result, err)
}

func (t *tool) release(c *cli.Context) error {
	h, err := t.holding(c, 1)
	if err != nil {
		return t.reportHold(c, promote.HoldResult{Outcome: promote.HoldFailed}, err)
	}
	result, err := h.promoter.Release(c.Context, h.repo, h.hold, h.options)
	if err == nil && result.Outcome == promote.HoldNone {
		err = h.known(c.Context) // a name that is not known is worth more words than "not held"
	}
	return t.reportHold(c, result, err)
}

func (h *holding) known(ctx context.Context) error {
	return h.promoter.CheckHeld(ctx, h.repo, h.hold.Environment, h.hold.App)
}

// holdReport is the machine-readable result of hold and release.
type holdReport struct {
	SchemaVersion int                 `json:"schemaVersion"`
	Outcome       promote.HoldOutcome `json:"outcome"`
	Hold          *held               `json:"hold,omitempty"`
	Replaced      *held               `json:"replaced,omitempty"`
	Commit        string              `json:"commit,omitempty"`
	Warnings      []string            `json:"warnings"`
	Error         *failed             `json:"error,omitempty"`
}

// holdsReport is the machine-readable list of holds.
type holdsReport struct {
	SchemaVersion int     `json:"schemaVersion"`
	Holds         []*held `json:"holds"`
	Error         *failed `json:"error,omitempty"`
}

// held is one hold for machines. Path is its file on the hold branch.
type held struct {
	Environment string   `json:"environment,omitempty"` // none: every environment
	App         string   `json:"app,omitempty"`
	By          string   `json:"by,omitempty"`
	Note        string   `json:"note,omitempty"`
	Reason      string   `json:"reason"`
	Since       string   `json:"since,omitempty"`
	Until       string   `json:"until,omitempty"`
	Allow       []string `json:"allow,omitempty"`
	Path        string   `json:"path"`
	Passed      bool     `json:"passed"`
	Unreadable  bool     `json:"unreadable"`

	sentence string // for people
}

func heldOf(h record.Hold) *held {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	return &held{
		Environment: h.Environment, App: h.App, By: h.By, Note: h.Note, Reason: h.Reason, Allow: h.Allow,
		Since: at(h.Since), Until: at(h.Until), Path: h.Path(), sentence: h.String(),
	}
}

// reportHold tells how holding or releasing ended: the commit to standard output,
// the words to standard error.
func (t *tool) reportHold(c *cli.Context, r promote.HoldResult, err error) error {
	for _, w := range r.Warnings {
		t.warn(w)
	}
	out := holdReport{SchemaVersion: 1, Outcome: r.Outcome, Warnings: append([]string{}, r.Warnings...)}
	if r.Hold.Environment != "" {
		out.Hold = heldOf(r.Hold)
	}
	if r.Was != nil {
		out.Replaced = heldOf(*r.Was)
	}
	if r.Commit != nil {
		out.Commit = r.Commit.SHA
	}
	if err != nil {
		t.complain(err)
		out.Outcome, out.Error = promote.HoldFailed, &failed{Code: failureOf(err).code, Message: err.Error()}
	} else {
		t.say("%s", holdSentence(c.Command.Name, r))
	}
	if c.String("output") == "json" {
		if err := t.printJSON(out); err != nil {
			return err
		}
	} else if err := t.printHold(c.Command.Name, r); err != nil {
		return err
	}
	if err != nil {
		return exitError{failureOf(err).exit}
	}
	return nil
}

// printHold prints the result alone: the commit, or of a dry run the file.
func (t *tool) printHold(command string, r promote.HoldResult) error {
	var err error
	switch {
	case r.Outcome == promote.HoldPlanned && command == "hold":
		_, err = fmt.Fprintf(t.stdout, "%s\n%s", r.Hold.Path(), r.Hold.Bytes())
	case r.Commit != nil:
		_, err = fmt.Fprintln(t.stdout, cmp.Or(r.Commit.URL, r.Commit.SHA))
	}
	return err
}

// holdSentence is the outcome in one line for people.
func holdSentence(command string, r promote.HoldResult) string {
	switch r.Outcome {
	case promote.HoldPlanned:
		return fmt.Sprintf("%s: would %s: %s", r.Outcome, command, r.Hold)
	case promote.HoldNone:
		return fmt.Sprintf("%s: %s is not held", r.Outcome, r.Hold.Target())
	case promote.HoldReleased:
		return fmt.Sprintf("%s: %s", r.Outcome, strings.Replace(r.Hold.String(), " is held", " was held", 1))
	case promote.HoldReplaced:
		return fmt.Sprintf("%s: %s (before: %s)", r.Outcome, r.Hold, r.Was)
	}
	return fmt.Sprintf("%s: %s", r.Outcome, r.Hold)
}

func (t *tool) holds(c *cli.Context) error {
	list, err := t.listHolds(c)
	if err != nil {
		t.complain(err)
	}
	switch {
	case c.String("output") == "json":
		out := holdsReport{SchemaVersion: 1, Holds: list}
		if err != nil {
			out.Error = &failed{Code: failureOf(err).code, Message: err.Error()}
		}
		if err := t.printJSON(out); err != nil {
			return err
		}
	case err == nil && len(list) == 0:
		t.say("nothing is held")
	default:
		for _, h := range list {
			fmt.Fprintln(t.stdout, h.sentence)
		}
	}
	if err != nil {
		return exitError{failureOf(err).exit}
	}
	return nil
}

// listHolds reads what is held, those that read first.
func (t *tool) listHolds(c *cli.Context) ([]*held, error) {
	list := []*held{}
	h, err := t.holding(c, 0)
	if err != nil {
		return list, err
	}
	all, err := h.promoter.Holds(c.Context, h.repo)
	if err == nil && len(all.All)+len(all.Unread) == 0 {
		_, err = h.repo.Tip(c.Context, "") // a repository that is not there has no holds either
	}
	now, _ := h.promoter.TimeOf(h.repo)
	for _, hold := range all.All {
		one := heldOf(hold)
		if one.Passed = hold.Passed(now); one.Passed {
			one.sentence += " (its time has passed)"
		}
		list = append(list, one)
	}
	for _, u := range all.Unread {
		one := heldOf(u.Hold())
		one.Path, one.Unreadable = u.Path, true
		list = append(list, one)
	}
	return list, err
}
