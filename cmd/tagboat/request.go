package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tagboat/chatops"
	"tagboat/promote"
	"tagboat/scm"
)

// workflowFile is what the receiving workflow is called unless it is named.
const workflowFile = "tagboat-chatops.yml"

func workflowFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "workflow", Value: workflowFile, Usage: "`FILE` of the receiving workflow; GitLab has none"},
		&cli.StringFlag{Name: "branch", Usage: "`BRANCH` whose workflow runs (default: the default branch)"},
		&cli.StringSliceFlag{Name: "ca-file", Usage: "trust the certificates in `FILE` too; may be repeated"},
	}
}

func (t *tool) requestCommand() *cli.Command {
	return &cli.Command{
		Name:      "request",
		Usage:     "ask the config repository's own CI to promote an image",
		UsageText: "tagboat request --repo OWNER/NAME --to ENVIRONMENT [--wait LONG] IMAGE[:TAG]@DIGEST",
		Description: `Starts the workflow of the config repository that runs tagboat chatops, and prints the run's URL.
The token needs the right to start it (GitHub actions:write, Gitea write:repository, GitLab Developer),
not to write contents. With --wait it waits for the run and gives its result.

Example:
  tagboat request --repo acme/config --to staging --wait 15m ghcr.io/acme/todo-api:v1.4.2@sha256:…`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "repo", Usage: "config `REPOSITORY`: owner/name, group/sub/name or a URL"},
			&cli.StringFlag{Name: "forge", Usage: "`github|gitlab|gitea`, where the host does not tell"},
			&cli.StringFlag{Name: "to", Usage: "`ENVIRONMENT` of tagboat.yaml that takes what builds push"},
			&cli.DurationFlag{Name: "wait", Usage: "wait this `LONG` for the run's result, e.g. 15m"},
		}, workflowFlags(), []cli.Flag{outputFlag()}),
		Action: t.ask,
	}
}

func (t *tool) ask(c *cli.Context) error {
	if err := checkOutput(c); err != nil {
		return err
	}
	ask, err := askOf(c)
	if err != nil {
		return err
	}
	dispatcher, err := t.dispatcher(c)
	if err != nil {
		return err
	}
	run, err := dispatcher.Dispatch(c.Context, scm.Dispatch{
		Workflow: c.String("workflow"), Branch: strings.TrimSpace(c.String("branch")), Inputs: ask.Inputs(), Mark: ask.Mark,
	})
	if err != nil {
		return err
	}
	t.say("asked for %s in %s: %s", ask.Image, ask.To, run.URL)
	if c.Duration("wait") <= 0 {
		return t.tellRun(c, run)
	}
	if run.ID == 0 {
		return fmt.Errorf("%w: the forge does not tell which run it is: look at %s (run-name in the workflow must show inputs.request)", scm.ErrUnsupported, run.URL)
	}
	run, err = t.await(c.Context, dispatcher, run, c.Duration("wait"))
	if err != nil {
		return err
	}
	return t.relay(c, dispatcher, run, ask.Mark)
}

func askOf(c *cli.Context) (chatops.Ask, error) {
	images, err := parseImages(c.Args().Slice())
	if err != nil {
		return chatops.Ask{}, err
	}
	if len(images) != 1 {
		return chatops.Ask{}, misused("one image is asked for at a time: give REPOSITORY:TAG@DIGEST as the argument")
	}
	ask := chatops.Ask{Mark: strings.ToLower(rand.Text()), Image: images[0], To: strings.TrimSpace(c.String("to"))}
	inputs := map[string]string{}
	for name, value := range ask.Inputs() {
		inputs[name] = fmt.Sprint(value)
	}
	if _, err := chatops.ParseAsk(inputs); err != nil { // what the job would refuse
		return chatops.Ask{}, misused("%v", err)
	}
	return ask, nil
}

// dispatcher opens the config repository to start its CI.
func (t *tool) dispatcher(c *cli.Context) (scm.Dispatcher, error) {
	name := strings.TrimSpace(c.String("repo"))
	if name == "" {
		return nil, misused("no config repository: name it with --repo OWNER/NAME or a URL")
	}
	repo, err := t.opener(c)(c.Context, name, "")
	if err != nil {
		return nil, err
	}
	dispatcher, ok := repo.(scm.Dispatcher)
	if !ok {
		return nil, fmt.Errorf("%w: a %s repository has no CI to ask", scm.ErrUnsupported, repo.About().Forge)
	}
	return dispatcher, nil
}

// asked is the machine-readable form of a run that was asked for.
type asked struct {
	SchemaVersion int    `json:"schemaVersion"`
	Run           string `json:"run"`
	State         string `json:"state"`
}

func (t *tool) tellRun(c *cli.Context, run scm.Run) error {
	if c.String("output") == "json" {
		return t.printJSON(asked{1, run.URL, string(run.State)})
	}
	_, err := fmt.Fprintln(t.stdout, run.URL)
	return err
}

// await asks for the run until it has ended.
func (t *tool) await(ctx context.Context, d scm.Dispatcher, run scm.Run, long time.Duration) (scm.Run, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, long, errNotEnded)
	defer cancel()
	for pause := time.Second; ; pause = min(2*pause, 15*time.Second) {
		now, err := d.Run(ctx, run.ID)
		switch {
		case err != nil && ctx.Err() == nil:
			return run, err
		case err == nil && now.State.Ended():
			return now, nil
		case err == nil:
			run = now
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return run, fmt.Errorf("wait for %s (%s): %w", run.URL, cmp.Or(run.Word, string(run.State)), context.Cause(ctx))
		case <-timer.C:
		}
	}
}

var errNotEnded = errors.New("it has not ended within --wait: it goes on, and its result is on its page")

// relay gives the result that the run has printed.
func (t *tool) relay(c *cli.Context, d scm.Dispatcher, run scm.Run, mark string) error {
	log, err := d.Output(c.Context, run.ID)
	if err != nil {
		return fmt.Errorf("the run %s ended: %s (%s), but its result cannot be read: %w", run.URL, run.State, run.Word, err)
	}
	said, found := resultOf(log, mark)
	if !found {
		return fmt.Errorf("the run %s ended: %s (%s), without a result: its log tells why", run.URL, run.State, run.Word)
	}
	code := 0
	for _, p := range said.Promotions {
		exit := p.exit()
		if exit != 0 && (code == 0 || exit < code) {
			code = exit
		}
		t.say("%s: %s to %s%s", p.Outcome, p.App, p.Environment, reasonOf(p))
	}
	if c.String("output") == "json" {
		err = t.printJSON(said)
	} else {
		for _, p := range said.Promotions {
			if p.PullRequest != nil && err == nil {
				_, err = fmt.Fprintln(t.stdout, p.PullRequest.URL)
			}
		}
	}
	if err != nil || code == 0 {
		return err
	}
	return exitError{code}
}

func reasonOf(p promotion) string {
	switch {
	case p.Error != nil:
		return ": " + p.Error.Message
	case p.Reason != "":
		return ": " + p.Reason
	}
	return ""
}

// exit is the code with which the promotion's own command would have ended.
func (p promotion) exit() int {
	switch {
	case p.Error != nil:
		for _, f := range failures() {
			if f.code == p.Error.Code {
				return f.exit
			}
		}
		return 1
	case p.Outcome == promote.Blocked:
		return 3
	case p.Outcome == promote.Failed:
		return 1
	}
	return 0
}

// resultPrefix begins the line in which a job tells its result to who asked. Behind
// it come the request's mark, which nobody else knows before, and the report.
const resultPrefix = "tagboat-result "

// result prints the line.
func (t *talk) result(mark string, a chatops.Answer) error {
	said := report{SchemaVersion: 1, Promotions: []promotion{}}
	for i, r := range a.Results {
		said.Promotions = append(said.Promotions, promotionOf(r, a.Errors[i]))
	}
	if a.Err != nil {
		none := promote.Result{Outcome: promote.Failed, App: a.Command.App, Environment: a.Command.Environment}
		p := promotionOf(none, a.Err)
		said.Promotions = append(said.Promotions, p)
	}
	shown, err := t.redacted(said)
	if err != nil {
		return err
	}
	line, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.stdout, "%s%s %s\n", resultPrefix, mark, line)
	return err
}

// resultOf finds the result of a request in a log whose lines may begin with a time
// stamp. The last one counts; a line that does not read is none.
func resultOf(log, mark string) (report, bool) {
	var said report
	found := false
	for line := range strings.Lines(log) {
		_, text, ours := strings.Cut(line, resultPrefix+mark+" ")
		var r report
		if ours && json.Unmarshal([]byte(text), &r) == nil && r.SchemaVersion == 1 {
			said, found = r, true
		}
	}
	return said, found
}
