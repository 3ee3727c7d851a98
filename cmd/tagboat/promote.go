package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/promote"
)

// The options that several commands share mean the same in each.
func pathFlag() cli.Flag {
	return &cli.StringFlag{Name: "path", Usage: "overlay `DIR` with the environment's kustomization (or a Flux or Argo CD FILE)"}
}

func entryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "entry", Usage: "change the images entry of this `NAME`, whatever repository it runs"},
		&cli.BoolFlag{Name: "add", Usage: "add the entry where there is none"},
		&cli.BoolFlag{Name: "rename", Usage: "write newName where the entry runs from another repository"},
		&cli.StringFlag{Name: "pin", Usage: "`digest`: write the digest alone and remove newTag"},
		&cli.StringFlag{Name: "prove", Usage: "build before and after: `required|auto|off` (default: auto, or what tagboat.yaml says)"},
	}
}

func registryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "platform", Usage: "`OS/ARCH[/VARIANT]` that the image must have; may be repeated"},
		&cli.DurationFlag{Name: "wait", Usage: "wait this `LONG` for a tag that is not there yet, or a gate that is not open yet, e.g. 2m"},
		&cli.BoolFlag{Name: "allow-moved-tag", Usage: "take the given digest although the tag has moved on"},
		&cli.StringSliceFlag{Name: "ca-file", Usage: "trust the certificates in `FILE` too; may be repeated"},
		&cli.StringSliceFlag{Name: "plain-http", Usage: "ask this registry `HOST` without TLS (loopback needs no option); may be repeated"},
	}
}

func repositoryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "repo", Usage: "config `REPOSITORY`: owner/name, group/sub/name, a URL, or file:///…"},
		&cli.StringFlag{Name: "forge", Usage: "`github|gitlab|gitea|git`, where the host does not tell"},
		&cli.StringFlag{Name: "base", Usage: "base `BRANCH` (default: the repository's default branch; naming it saves a call)"},
	}
}

func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Value: "text", Usage: "`text|json`"}
}

func (t *tool) promoteCommand() *cli.Command {
	return &cli.Command{
		Name:  "promote",
		Usage: "pin an image in an environment, through one pull request",
		UsageText: "tagboat promote --repo OWNER/NAME --path DIR [options] IMAGE[:TAG][@DIGEST]...\n" +
			"tagboat promote --repo OWNER/NAME --to ENVIRONMENT[,…] [options] IMAGE[:TAG][@DIGEST]...\n" +
			"tagboat promote --repo OWNER/NAME --from ENVIRONMENT --to ENVIRONMENT [--app NAME,… | --all] [options]",
		Description: `Resolves the image to its digest, edits the images entry of the overlay, builds the
overlay before and after, and opens (or updates) one pull request on the config repository.

With --path the overlay is named. Without it, tagboat.yaml on the default branch says where an
environment's overlays are, and --from promotes what another environment runs: the same digest.

Examples:
  tagboat promote --repo acme/config --path apps/todo/overlays/staging ghcr.io/acme/todo-api:v1.4.2
  tagboat promote --repo acme/config --to staging ghcr.io/acme/todo-api:v1.4.2
  tagboat promote --repo acme/config --from staging --to production --app todo-api`,
		Flags: slices.Concat(repositoryFlags(), []cli.Flag{
			pathFlag(),
			&cli.StringFlag{Name: "to", Usage: "`ENVIRONMENT` (default: the last element of --path); with tagboat.yaml several, by commas"},
			&cli.StringFlag{Name: "from", Usage: "promote what this `ENVIRONMENT` of tagboat.yaml runs"},
			&cli.StringFlag{Name: "ring", Usage: "`RING` of the environment in tagboat.yaml (default: the next one)"},
			&cli.StringFlag{Name: "app", Usage: "`NAME` of the app (default: the last element of the image's repository); with --from several, by commas"},
			&cli.BoolFlag{Name: "all", Usage: "with --from: every app"},
		}, entryFlags(), registryFlags(), []cli.Flag{
			&cli.StringFlag{Name: "override", Usage: "pass gates, holds and freezes for this `REASON`, where tagboat.yaml lets you"},
			&cli.BoolFlag{Name: "copy", Usage: "copy the image where the entry runs it from, if it is not there (always by its digest)"},
			&cli.BoolFlag{Name: "again", Usage: "propose a digest that a person has declined"},
			&cli.BoolFlag{Name: "allow-older", Usage: "propose an image that is older than what is there"},
			&cli.BoolFlag{Name: "force", Usage: "give up someone's commits on the head branch"},
			&cli.StringSliceFlag{Name: "label", Usage: "`LABEL` of the pull request; may be repeated"},
			&cli.StringSliceFlag{Name: "reviewer", Usage: "`LOGIN` (or team:SLUG) to ask for a review; may be repeated"},
			&cli.StringSliceFlag{Name: "assignee", Usage: "`LOGIN` to assign; may be repeated"},
			&cli.BoolFlag{Name: "auto-merge", Usage: "merge when the forge's own requirements are met"},
			&cli.BoolFlag{Name: "draft", Usage: "open as a draft"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the diff and the pull request's text, write nothing"},
			outputFlag(),
		}),
		Action: t.promote,
	}
}

func (t *tool) promote(c *cli.Context) error {
	if err := checkOutput(c); err != nil {
		return err
	}
	q, err := t.request(c)
	if err != nil {
		return err
	}
	p, err := t.promoter(c)
	if err != nil {
		return err
	}
	if q.Path != "" {
		for _, name := range []string{"from", "ring", "all"} {
			if c.String(name) != "" && (name != "all" || c.Bool(name)) { // CI passes switches that are off
				return misused("--path and --%s exclude each other: --%s is of the environments of tagboat.yaml", name, name)
			}
		}
		result, err := p.Run(c.Context, q)
		return t.report(c, []promote.Result{result}, []error{err})
	}
	e, err := environments(c)
	if err != nil {
		return err
	}
	results, errs, err := p.RunEnvironments(c.Context, q, e)
	if err != nil {
		return t.report(c, []promote.Result{{Outcome: promote.Failed}}, []error{err})
	}
	return t.report(c, results, errs)
}

// environments reads what is asked for in the words of tagboat.yaml.
func environments(c *cli.Context) (promote.Environments, error) {
	e := promote.Environments{To: commas(c.String("to")), Ring: c.String("ring"), From: c.String("from"), Apps: commas(c.String("app"))}
	switch {
	case len(e.To) == 0:
		return e, misused("no overlay and no environment: name one with --path, or with --to where the repository has a tagboat.yaml")
	case e.From == "" && !c.Args().Present():
		return e, misused("no image: give REPOSITORY:TAG as the argument, or --from ENVIRONMENT")
	case e.From != "" && c.Args().Present():
		return e, misused("--from %s takes what that environment runs: leave the images out", e.From)
	case e.From != "" && len(e.Apps) == 0 && !c.Bool("all"):
		return e, misused("which apps? Name them with --app, or all of them with --all")
	case e.From != "" && len(e.Apps) > 0 && c.Bool("all"):
		return e, misused("--app and --all exclude each other")
	}
	return e, nil
}

func commas(s string) []string { return words(strings.Split(s, ",")) }

// request reads the command line into what promote understands.
func (t *tool) request(c *cli.Context) (promote.Request, error) {
	repo, err := t.repository(c)
	if err != nil {
		return promote.Request{}, err
	}
	images, err := parseImages(c.Args().Slice())
	if err != nil {
		return promote.Request{}, err
	}
	pin, prove, err := parseEntryFlags(c)
	if err != nil {
		return promote.Request{}, err
	}
	required, err := platforms(c)
	if err != nil {
		return promote.Request{}, err
	}
	users, teams := splitReviewers(c.StringSlice("reviewer"))
	return promote.Request{
		Repository: repo, Base: strings.TrimSpace(c.String("base")), Path: strings.TrimSpace(c.String("path")),
		Environment: strings.TrimSpace(c.String("to")), App: strings.TrimSpace(c.String("app")), Entry: c.String("entry"),
		Add: c.Bool("add"), Rename: c.Bool("rename"), Pin: pin, Prove: prove,
		Images: images, Platforms: required, Wait: c.Duration("wait"), AllowMoved: c.Bool("allow-moved-tag"),
		AllowOlder: c.Bool("allow-older"), Again: c.Bool("again"), Force: c.Bool("force"), DryRun: c.Bool("dry-run"),
		Labels: words(c.StringSlice("label")), Reviewers: users, TeamReviewers: teams, Assignees: words(c.StringSlice("assignee")),
		Draft: c.Bool("draft"), AutoMerge: c.Bool("auto-merge"), Override: strings.TrimSpace(c.String("override")), Copy: c.Bool("copy"),
		Job: promote.Job{Actor: t.job.Actor, RunURL: t.job.RunURL, Revision: t.job.Commit, Repository: t.job.Repository},
	}, nil
}

func parseImages(args []string) ([]image.Reference, error) {
	var out []image.Reference
	var errs []error
	for _, arg := range words(args) {
		ref, err := image.Parse(arg)
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, ref)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, misused("%v", err)
	}
	return out, nil
}

func parseEntryFlags(c *cli.Context) (overlay.Pin, overlay.Mode, error) {
	pin := overlay.Pin(c.String("pin"))
	if pin != overlay.PinTagAndDigest && pin != overlay.PinDigest {
		return "", "", misused("--pin %s: it is digest, or left out for tag and digest", pin)
	}
	prove := overlay.Mode(c.String("prove"))
	if prove != "" && !slices.Contains([]overlay.Mode{overlay.ProveAuto, overlay.ProveRequired, overlay.ProveOff}, prove) {
		return "", "", misused("--prove %s: it is required, auto or off", prove)
	}
	return pin, prove, nil
}

var platformGrammar = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9.]+)?$`)

func platforms(c *cli.Context) ([]string, error) {
	names := words(c.StringSlice("platform"))
	for _, name := range names {
		if !platformGrammar.MatchString(name) {
			return nil, misused("--platform %s: write OS/ARCH or OS/ARCH/VARIANT, e.g. linux/amd64", name)
		}
	}
	return names, nil
}

func checkOutput(c *cli.Context) error {
	if out := c.String("output"); out != "text" && out != "json" {
		return misused("--output %s: it is text or json", out)
	}
	return nil
}

// words trims and drops empty ones: a CI's unset input is an empty string.
func words(in []string) []string {
	var out []string
	for _, s := range in {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func splitReviewers(in []string) (users, teams []string) {
	for _, s := range words(in) {
		if team, isTeam := strings.CutPrefix(s, "team:"); isTeam {
			teams = append(teams, team)
		} else {
			users = append(users, s)
		}
	}
	return users, teams
}

// repository is --repo, or the CI's own repository where --path says that its
// files are meant.
func (t *tool) repository(c *cli.Context) (string, error) {
	if repo := strings.TrimSpace(c.String("repo")); repo != "" {
		return repo, nil
	}
	if t.job.Repository != "" && (c.String("path") != "" || c.String("to") != "") {
		return t.job.Repository, nil
	}
	return "", misused("no config repository: name it with --repo OWNER/NAME or a URL")
}

// fileOr gives the value of an environment variable, or the content of the file
// that NAME_FILE names.
func (t *tool) fileOr(name string) (string, error) {
	if value := strings.TrimSpace(t.env(name)); value != "" {
		return value, nil
	}
	path := t.env(name + "_FILE")
	if path == "" {
		return "", nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the file that %s_FILE names: %w", name, err)
	}
	return strings.TrimSpace(string(content)), nil
}
