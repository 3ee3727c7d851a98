package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
	"tagboat/promote"
	"tagboat/scm"
)

func (t *tool) verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check open pull requests against tagboat.yaml, as a commit status to require",
		UsageText: "tagboat verify --repo OWNER/NAME [--pull-request NUMBER] [options]",
		Description: `Days pass between a promotion's pull request and its merge. This runs in the config repository on
every pull request and on a schedule, with the tagboat.yaml of the default branch: gates, freezes,
holds, order, promoters, approvals of what is proposed now, and that the change is exactly what the
commit says. The answer is the commit status tagboat/policy: make it required on the base branch.
Without that, the rules of tagboat.yaml are advice.

Examples:
  tagboat verify --repo acme/config
  tagboat verify --repo acme/config --pull-request 12 --dry-run`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "repo", Usage: "config `REPOSITORY`: owner/name, group/sub/name, or a URL (in CI: the job's own)"},
			&cli.StringFlag{Name: "forge", Usage: "`github|gitlab|gitea`, where the host does not tell"},
			&cli.IntFlag{Name: "pull-request", Usage: "verify this one alone, by its `NUMBER` (in a pull request's job: its own)"},
			&cli.BoolFlag{Name: "all", Usage: "verify all open ones, in a pull request's job too"},
			&cli.StringSliceFlag{Name: "ca-file", Usage: "trust the certificates in `FILE` too; may be repeated"},
			&cli.StringSliceFlag{Name: "plain-http", Usage: "ask this registry `HOST` without TLS (loopback needs no option); may be repeated"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be posted; exit 3 where it is no success"},
			outputFlag(),
		}),
		Action: t.verify,
	}
}

func (t *tool) verify(c *cli.Context) error {
	if err := checkOutput(c); err != nil {
		return err
	}
	repo := cmp.Or(strings.TrimSpace(c.String("repo")), t.job.Repository)
	switch {
	case c.Args().Present():
		return misused("%s: verify takes no argument; a pull request goes to --pull-request", c.Args().First())
	case repo == "":
		return misused("no config repository: name it with --repo OWNER/NAME or a URL")
	case c.Int("pull-request") < 0 || c.IsSet("pull-request") && c.Int("pull-request") == 0:
		return misused("--pull-request %d: it is a number from 1 on", c.Int("pull-request"))
	}
	v := promote.Verify{Number: c.Int("pull-request")}
	if v.Number == 0 && !c.Bool("all") {
		v.Number, v.Commit = t.job.PullRequest, t.job.Queued
	}
	p, err := t.promoter(c)
	if err != nil {
		return err
	}
	q := promote.Request{Repository: repo, DryRun: c.Bool("dry-run"), Job: promote.Job{RunURL: t.job.RunURL}}
	found, errs, err := p.Verify(c.Context, q, v)
	if err != nil {
		return err
	}
	if v.Number != 0 && len(found) == 0 {
		t.say("pull request %d is not open into a branch of tagboat.yaml: nothing to verify", v.Number)
	}
	return t.reportVerified(c, found, errs)
}

type verified struct {
	PullRequest int             `json:"pullRequest"`
	URL         string          `json:"url,omitempty"`
	Environment string          `json:"environment,omitempty"`
	Ring        string          `json:"ring,omitempty"`
	App         string          `json:"app,omitempty"`
	State       scm.StatusState `json:"state,omitempty"`
	Summary     string          `json:"summary,omitempty"`
	Posted      bool            `json:"posted"`
	Gates       []gate          `json:"gates"`
	Error       *failed         `json:"error,omitempty"`
}

func (t *tool) reportVerified(c *cli.Context, found []promote.Verified, errs []error) error {
	all := []verified{}
	var exits []promote.Result
	for i, v := range found {
		one := verified{
			PullRequest: v.PullRequest.Number, URL: v.PullRequest.URL, Environment: v.Environment, Ring: v.Ring, App: v.App,
			State: v.State, Summary: v.Summary, Posted: v.Posted, Gates: gatesOf(v.Gates),
		}
		exit := promote.Result{}
		if errs[i] != nil {
			one.Error = &failed{Code: failureOf(errs[i]).code, Message: errs[i].Error()}
			t.complain(errs[i])
		} else if c.Bool("dry-run") && v.State != scm.StatusSuccess {
			exit.Outcome = promote.Blocked
		}
		all, exits = append(all, one), append(exits, exit)
		if err := t.job.AppendSummary(t.redactor.Redact(verifiedSummary(one))); err != nil && t.job.Kind != ci.None {
			t.warn(err.Error())
		}
	}
	if err := t.printVerified(c, all); err != nil {
		return err
	}
	return exitOf(exits, errs)
}

func (t *tool) printVerified(c *cli.Context, all []verified) error {
	if c.String("output") == "json" {
		return t.printJSON(struct {
			SchemaVersion int        `json:"schemaVersion"`
			PullRequests  []verified `json:"pullRequests"`
		}{1, all})
	}
	for _, v := range all {
		if v.Error != nil {
			continue
		}
		if _, err := fmt.Fprintf(t.stdout, "%s %s: %s\n", v.State, cmp.Or(v.URL, fmt.Sprint(v.PullRequest)), v.Summary); err != nil {
			return err
		}
	}
	return nil
}

// verifiedSummary is the job's page: each gate with its evidence.
func verifiedSummary(v verified) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s %s\n\n", promote.PolicyContext, v.State, v.URL)
	if v.Error != nil {
		fmt.Fprintf(&b, "%s: %s\n", promote.Code(v.Error.Code), promote.Code(v.Error.Message))
	}
	if len(v.Gates) > 0 {
		b.WriteString("| Gate | | Evidence |\n| --- | --- | --- |\n")
		for _, g := range v.Gates {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", promote.Code(g.Name), g.Status, promote.Code(g.Evidence))
		}
	}
	return b.String() + "\n"
}
