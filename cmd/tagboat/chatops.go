package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tagboat/chatops"
	"tagboat/ci"
	"tagboat/config"
	"tagboat/promote"
	"tagboat/scm"
)

func (t *tool) chatopsCommand() *cli.Command {
	return &cli.Command{
		Name:      "chatops",
		Usage:     "do what a comment, a chat or a pipeline asks, in a job of the config repository's CI",
		UsageText: "tagboat chatops [--repo OWNER/NAME] [options]",
		Description: `Reads the event that started the job. A new comment on an issue or pull request that begins with a
command is fetched again, its author's rights are asked from the forge, and what happened is answered
in one reply. A job that was dispatched (by tagboat serve, tagboat request or by hand) finds what is
asked in its inputs, a GitLab ChatOps job in CHAT_INPUT.

` + chatops.HelpText() + `

docs/chatops.md has the workflow files.

Examples:
  tagboat chatops                             in a job of the config repository, for the event that started it
  tagboat chatops --speaker tagboat-serve     where tagboat serve may speak for chat users`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "repo", Usage: "config `REPOSITORY` (default: the job's own)"},
			&cli.StringFlag{Name: "forge", Usage: "`github|gitlab|gitea`, where the host does not tell"},
			&cli.StringSliceFlag{Name: "speaker", Usage: "`LOGIN` of tagboat serve, which may speak for chat users; may be repeated"},
			&cli.StringSliceFlag{Name: "accept", Usage: "`LOGIN=APP,…`: the account of a pipeline may ask for images of these apps; may be repeated"},
			&cli.StringSliceFlag{Name: "reply-host", Usage: "`HOST` that takes answers to a chat beside Slack's own; may be repeated"},
		}, registryFlags(), []cli.Flag{outputFlag()}),
		Action: t.chatops,
	}
}

func (t *tool) chatops(c *cli.Context) error {
	if err := checkOutput(c); err != nil {
		return err
	}
	accept, err := acceptOf(c)
	if err != nil {
		return err
	}
	bot, err := t.bot(c)
	if err != nil {
		return err
	}
	talk := &talk{tool: t, c: c, bot: bot, accept: accept}
	talk.teller = chatops.Teller{Redact: t.redactor.Redact, RunURL: t.job.RunURL}
	switch t.job.Kind {
	case ci.GitHub, ci.Gitea:
		return talk.actions(c.Context)
	case ci.GitLab:
		return talk.gitlab(c.Context)
	}
	return misused("this is no job of GitHub Actions, Gitea Actions or GitLab CI: tagboat chatops reads the event that started one")
}

// bot makes what does the commands.
func (t *tool) bot(c *cli.Context) (*chatops.Bot, error) {
	repo := cmp.Or(strings.TrimSpace(c.String("repo")), t.job.Repository)
	if repo == "" {
		return nil, misused("no config repository: name it with --repo OWNER/NAME or a URL")
	}
	registry, err := t.registry(c)
	if err != nil {
		return nil, err
	}
	required, err := platforms(c)
	if err != nil {
		return nil, err
	}
	return &chatops.Bot{
		Promoter: &promote.Promoter{Registry: registry, Open: t.opener(c), OpenSource: t.sourceOpener(c), Progress: func(line string) { t.say("%s", line) }},
		Request: promote.Request{
			Repository: repo, Platforms: required, Wait: c.Duration("wait"), AllowMoved: c.Bool("allow-moved-tag"),
			Job: promote.Job{Actor: t.job.Actor, RunURL: t.job.RunURL},
		},
	}, nil
}

// acceptOf reads whom the workflow takes dispatches from.
func acceptOf(c *cli.Context) (chatops.Accept, error) {
	a := chatops.Accept{Speakers: words(c.StringSlice("speaker")), Requesters: map[string][]string{}}
	// The flag's parser splits at commas: what has no login goes on with the last one.
	login := ""
	for _, word := range words(c.StringSlice("accept")) {
		if who, app, found := strings.Cut(word, "="); found {
			login, word = strings.TrimSpace(who), strings.TrimSpace(app)
		}
		if login == "" || word == "" {
			return a, misused("--accept %s: write LOGIN=APP,APP", word)
		}
		a.Requesters[login] = append(a.Requesters[login], word)
	}
	return a, nil
}

// talk is one run of chatops.
type talk struct {
	*tool
	c      *cli.Context
	bot    *chatops.Bot
	accept chatops.Accept
	teller chatops.Teller
}

// actions reads the event file of GitHub's and Gitea's Actions.
func (t *talk) actions(ctx context.Context) error {
	if t.job.EventPath == "" {
		return misused("no event: GITHUB_EVENT_PATH is not set")
	}
	payload, err := os.ReadFile(t.job.EventPath)
	if err != nil {
		return fmt.Errorf("read the event: %w", err)
	}
	switch t.job.Event {
	case "issue_comment":
		return t.comment(ctx, payload)
	case "workflow_dispatch":
		inputs, err := dispatched(payload)
		if err != nil {
			return err
		}
		run, err := strconv.ParseInt(t.env("GITHUB_RUN_ID"), 10, 64)
		if err != nil {
			return misused("GITHUB_RUN_ID %q is no run", t.env("GITHUB_RUN_ID"))
		}
		return t.ask(ctx, inputs, func(ctx context.Context) (scm.Starter, error) { return t.starter(ctx, scm.JobRef{Run: run}) })
	}
	return misused("the event %q asks for nothing: run tagboat chatops on issue_comment (types: [created]) or workflow_dispatch", t.job.Event)
}

func (t *talk) comment(ctx context.Context, payload []byte) error {
	e, err := chatops.GitHubEvent(payload)
	if err == nil {
		if _, parsed := chatops.Parse(e.Line); errors.Is(parsed, chatops.ErrNotCommand) {
			err = parsed // before anybody is asked anything
		}
	}
	if errors.Is(err, chatops.ErrIgnored) || errors.Is(err, chatops.ErrNotCommand) {
		t.say("nothing to do: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if !strings.EqualFold(e.Repository, t.job.Repository) {
		return misused("the event is of %s, the job of %s", e.Repository, t.job.Repository)
	}
	forum, err := t.forum(ctx, e.Repository)
	if err != nil {
		return err
	}
	a, err := t.bot.Comment(ctx, forum, e, t.teller)
	return t.end(a, err, "")
}

// dispatched reads the inputs of workflow_dispatch; a boolean or number is text.
func dispatched(payload []byte) (map[string]string, error) {
	var event struct{ Inputs map[string]any }
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	inputs := map[string]string{}
	for name, value := range event.Inputs {
		if value != nil {
			inputs[name] = fmt.Sprint(value)
		}
	}
	return inputs, nil
}

// gitlab tells a ChatOps job from one that was triggered, by the forge's word.
func (t *talk) gitlab(ctx context.Context) error {
	ref := scm.JobRef{Token: t.env("CI_JOB_TOKEN")}
	starter, err := t.starter(ctx, ref)
	if err != nil {
		return err
	}
	if name := exposed(os.Environ(), t.env("CHAT_INPUT"), t.env(chatops.Variable("command"))); name != "" {
		return misused("the command holds the value of the variable %s: GitLab puts that where a line has a $", name)
	}
	if starter.Event == "chat" {
		return t.end(t.bot.Line(ctx, t.env("CHAT_INPUT"), starter), nil, "")
	}
	inputs := map[string]string{}
	for _, name := range chatops.InputNames() {
		inputs[name] = t.env(chatops.Variable(name))
	}
	return t.ask(ctx, inputs, func(context.Context) (scm.Starter, error) { return starter, nil })
}

// exposed names a variable of the environment whose value one of the texts holds.
// GitLab's predefined ones and what may be a name are not secret.
func exposed(environ []string, texts ...string) string {
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		secret := strings.Contains(name, "TOKEN") || strings.Contains(name, "PASSWORD") || strings.Contains(name, "JWT")
		predefined := strings.HasPrefix(name, "CI_") || strings.HasPrefix(name, "GITLAB_") || strings.HasPrefix(name, "CHAT_")
		if len(value) < 8 || predefined && !secret || name == chatops.Variable("command") || !secret && config.CheckApp(value) == nil {
			continue
		}
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, value) }) {
			return name
		}
	}
	return ""
}

// starter asks the forge of this job's repository who started it.
func (t *talk) starter(ctx context.Context, ref scm.JobRef) (scm.Starter, error) {
	repo, err := t.own(ctx)
	if err != nil {
		return scm.Starter{}, err
	}
	job, ok := repo.(scm.Job)
	if !ok {
		return scm.Starter{}, fmt.Errorf("%w: %s does not tell who started a job", scm.ErrUnsupported, repo.About().Forge)
	}
	starter, err := job.Starter(ctx, ref)
	if err != nil {
		return scm.Starter{}, err
	}
	t.say("the job was started by %s (%s)", starter.Login, starter.Event)
	return starter, nil
}

func (t *talk) ask(ctx context.Context, inputs map[string]string, starter func(context.Context) (scm.Starter, error)) error {
	ask, err := chatops.ParseAsk(inputs)
	if err != nil {
		return misused("%v", err)
	}
	hosts := slices.Concat(chatops.SlackHosts(), words(t.c.StringSlice("reply-host")))
	if ask.Reply != "" {
		t.hide(ask.Reply)
		if err := chatops.CheckReply(ask.Reply, hosts); err != nil {
			return misused("%v", err)
		}
	}
	a, err := t.bot.Ask(ctx, ask, chatops.Job{Starter: starter, Forum: t.forum, Accept: t.accept, Teller: t.teller})
	if err == nil && ask.Reply != "" {
		err = chatops.Post(ctx, ask.Reply, t.teller.Text(a), a.Good() && !a.Help)
	}
	return t.end(a, err, ask.Mark)
}

// own opens the job's own repository.
func (t *talk) own(ctx context.Context) (scm.Repository, error) {
	return t.ownTool().opener(t.c)(ctx, t.job.Repository, "")
}

// ownTool speaks with the token that the CI gave to this very job, where the
// workflow hands it on: it can do nothing beyond its own repository.
func (t *talk) ownTool() *tool {
	if t.job.Kind == ci.GitLab || t.env("GITHUB_TOKEN") == "" {
		return t.tool
	}
	own, env := *t.tool, t.env
	own.env = func(name string) string {
		if strings.HasPrefix(name, "TAGBOAT_TOKEN") || strings.HasPrefix(name, "TAGBOAT_APP") || strings.HasPrefix(name, "GITEA_TOKEN") {
			return ""
		}
		return env(name)
	}
	return &own
}

// forum opens the repository in which a comment stands.
func (t *talk) forum(ctx context.Context, repository string) (scm.Conversation, error) {
	open := t.opener(t.c)
	if strings.EqualFold(repository, t.job.Repository) {
		open = t.ownTool().opener(t.c)
	}
	repo, err := open(ctx, repository, "")
	if err != nil {
		return nil, err
	}
	forum, ok := repo.(scm.Conversation)
	if !ok {
		return nil, fmt.Errorf("%w: a %s repository has no comments", scm.ErrUnsupported, repo.About().Forge)
	}
	return forum, nil
}

// end tells the job's log, the CI and the asker how it went. What was refused is no
// fault of the job's: a stranger's comment makes no red run.
func (t *talk) end(a chatops.Answer, err error, mark string) error {
	if errors.Is(err, chatops.ErrIgnored) || errors.Is(err, chatops.ErrNotCommand) {
		t.say("nothing to do: %v", err)
		return nil
	}
	if t.job.Kind == ci.GitLab && err == nil {
		t.section(a)
	}
	if mark != "" && err == nil {
		if err := t.result(mark, a); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return err
	case a.Word() == "refused":
		t.say("refused: %v", a.Err)
		if mark != "" { // a pipeline waits for it
			return exitError{1}
		}
		return nil
	case a.Err != nil:
		return a.Err
	case len(a.Results) > 0:
		return t.report(t.c, a.Results, a.Errors)
	}
	t.say("%s: %s", a.Word(), a.Command)
	return nil
}

// section prints the answer where GitLab's ChatOps looks for it.
func (t *talk) section(a chatops.Answer) {
	now := time.Now().Unix()
	fmt.Fprintf(t.stdout, "section_start:%d:chat_reply\r\x1b[0K\n%s\nsection_end:%d:chat_reply\r\x1b[0K\n", now, t.teller.Text(a), now)
}
