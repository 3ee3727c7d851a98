package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"tagboat/promote"
	"tagboat/scm"
)

func (t *tool) rollbackCommand() *cli.Command {
	return &cli.Command{
		Name:      "rollback",
		Usage:     "bring back what an app ran in an environment before",
		UsageText: "tagboat rollback --environment ENVIRONMENT --app NAME [--to DIGEST|TAG|COMMIT] [--reason TEXT] [options]",
		Description: `Reads the history of the overlay's own lines, proposes the digest that ran before, as a pull
request that says what it undoes, and holds the app in the environment first, so that the next
build does not undo the rollback. With rings, each of them goes back.

Gates, freezes and holds stop what is new; they do not stop a rollback.

Examples:
  tagboat rollback --repo acme/config --environment production --app todo-api --reason "errors since v2"
  tagboat rollback --repo acme/config --environment production --app todo-api --to v1.4.1`,
		Flags: slices.Concat(repositoryFlags(), []cli.Flag{
			&cli.StringFlag{Name: "environment", Aliases: []string{"env"}, Usage: "`ENVIRONMENT` of tagboat.yaml"},
			&cli.StringFlag{Name: "app", Usage: "`NAME` of the app in tagboat.yaml"},
			&cli.StringFlag{Name: "ring", Usage: "`RING` of the environment (default: each of them)"},
			&cli.StringFlag{Name: "to", Usage: "a `DIGEST`, tag or commit of the history (default: what ran right before)"},
			&cli.StringFlag{Name: "reason", Usage: "why, in one line of `TEXT`, for the reviewer and the history"},
			&cli.BoolFlag{Name: "no-hold", Usage: "place no hold: the next promotion may undo it"},
			&cli.StringFlag{Name: "prove", Usage: "build before and after: `required|auto|off` (default: auto, or what tagboat.yaml says)"},
		}, registryFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "give up someone's commits on the head branch"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the diff and the pull request's text, write nothing"},
			outputFlag(),
		}),
		Action: t.rollback,
	}
}

func (t *tool) rollback(c *cli.Context) error {
	b := promote.Rollback{
		Environment: strings.TrimSpace(c.String("environment")), App: strings.TrimSpace(c.String("app")), Ring: strings.TrimSpace(c.String("ring")),
		To: strings.TrimSpace(c.String("to")), Reason: strings.TrimSpace(c.String("reason")), NoHold: c.Bool("no-hold"),
	}
	switch {
	case c.Args().Present():
		return misused("%s: a rollback takes the images from the history; name one of it with --to", c.Args().First())
	case b.Environment == "":
		return misused("no environment: name it with --environment")
	case b.App == "":
		return misused("no app: name it with --app")
	}
	if err := checkOutput(c); err != nil {
		return err
	}
	q, err := t.request(c)
	if err != nil {
		return err
	}
	q.Environment, q.App = "", ""
	p, err := t.promoter(c)
	if err != nil {
		return err
	}
	results, errs, err := p.RollBack(c.Context, q, b)
	if err != nil {
		return t.report(c, []promote.Result{{App: b.App, Environment: b.Environment, Outcome: promote.Failed}}, []error{err})
	}
	return t.report(c, results, errs)
}

// promoter is what promotions run with.
func (t *tool) promoter(c *cli.Context) (*promote.Promoter, error) {
	registry, err := t.registry(c)
	if err != nil {
		return nil, err
	}
	return &promote.Promoter{Registry: registry, Open: t.forewarned(t.opener(c)), OpenSource: t.sourceOpener(c), Progress: func(line string) { t.say("%s", line) }}, nil
}

type opener = func(ctx context.Context, repository, forge string) (scm.Repository, error)

// forewarned says what the credential cannot do when a repository is opened, before
// anything is written; a promotion's result has it among the warnings.
func (t *tool) forewarned(open opener) opener {
	var said sync.Map
	return func(ctx context.Context, repository, forge string) (scm.Repository, error) {
		repo, err := open(ctx, repository, forge)
		if err != nil {
			return nil, err
		}
		for _, w := range repo.About().Warnings {
			if _, again := said.LoadOrStore(w, true); !again {
				t.say("note: %s", w)
			}
		}
		return repo, nil
	}
}
