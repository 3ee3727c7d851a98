package chatops

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"tagboat/config"
	"tagboat/scm"
)

// ErrUnmapped is returned for a chat user whom tagboat.yaml does not name.
var ErrUnmapped = errors.New("the chat user is not in tagboat.yaml")

// Forge is what a desk needs of the config repository.
type Forge interface {
	scm.Repository
	scm.Rights
	scm.Dispatcher
}

// Desk takes commands and has the config repository's own CI do them. It keeps no
// state and does no work: once the forge has accepted the dispatch, nothing of the
// command is left here.
type Desk struct {
	Repository Forge
	Workflow   string // the file's name; GitLab does not use it
	Branch     string // whose workflow runs; "" is the default branch
}

// Accepted is what the forge has taken.
type Accepted struct {
	Command Command
	Login   string // whose rights were asked
	Run     scm.Run
}

// Comment has a job answer a comment that a webhook told of. The job fetches the
// comment again and asks the rights again; here they keep strangers from starting
// jobs.
func (d *Desk) Comment(ctx context.Context, e Event) (Accepted, error) {
	c, err := Parse(e.Line)
	if errors.Is(err, ErrNotCommand) {
		return Accepted{}, err
	}
	// A command with a fault is answered by the job, in the conversation.
	if may := May(ctx, d.Repository, nil, Command{Verb: Help}, e.Author); may != nil {
		return Accepted{Command: c, Login: e.Author}, may
	}
	return d.dispatch(ctx, Accepted{Command: c, Login: e.Author}, d.Branch, Ask{Comment: e.CommentAt, LineHash: LineHash(e.Line)})
}

// ChatLine is a command as a chat sent it, with its signature checked.
type ChatLine struct {
	Team, User string // the chat's ids
	Line       string
	Reply      string // where the chat takes the answer
}

// Slack has a job do a command of a Slack user. The person learns at once what is
// wrong with it.
func (d *Desk) Slack(ctx context.Context, l ChatLine) (Accepted, error) {
	c, err := Parse(l.Line)
	if err != nil {
		return Accepted{}, err
	}
	names, branch, err := loadConfig(ctx, d.Repository)
	if err != nil {
		return Accepted{}, err
	}
	login, err := ChatLogin(names, l.Team, l.User)
	if err != nil {
		return Accepted{}, err
	}
	a := Accepted{Command: c, Login: login}
	if a.Command, err = c.Resolve(names); err != nil {
		return a, err
	}
	if err := May(ctx, d.Repository, names, a.Command, login); err != nil || c.Verb == Help {
		return a, err
	}
	text := a.Command.String()
	if len(text) > LineLimit { // with what the configuration adds, which the job adds, too
		text = c.String()
	}
	return d.dispatch(ctx, a, cmp.Or(d.Branch, branch), Ask{Command: text, User: "slack:" + l.Team + "/" + l.User, Reply: l.Reply})
}

func (d *Desk) dispatch(ctx context.Context, a Accepted, branch string, ask Ask) (Accepted, error) {
	var err error
	if a.Run, err = d.Repository.Dispatch(ctx, scm.Dispatch{Workflow: d.Workflow, Branch: branch, Inputs: ask.Inputs()}); err != nil {
		return a, fmt.Errorf("start the job: %w", err)
	}
	return a, nil
}

// loadConfig reads tagboat.yaml at the tip of the default branch, and tells which
// that is.
func loadConfig(ctx context.Context, repo scm.Repository) (names *config.Config, branch string, err error) {
	tip, err := repo.Tip(ctx, "")
	if err != nil {
		return nil, "", err
	}
	names, err = config.Load(repo.Files(ctx, tip.Commit.SHA))
	if err != nil {
		return nil, "", fmt.Errorf("%s, branch %s: %w", repo.About().Name, tip.Branch, err)
	}
	return names, tip.Branch, nil
}

// ChatLogin is the login on the forge of a Slack user, whom tagboat.yaml names as
// TEAM/USER or, where the app is in one workspace, as USER alone.
func ChatLogin(names *config.Config, team, user string) (string, error) {
	for _, key := range []string{team + "/" + user, user} {
		if login, ok := names.Chat.Slack[key]; ok {
			return login, nil
		}
	}
	return "", fmt.Errorf("%w: add %s/%s: LOGIN below chat.slack", ErrUnmapped, team, user)
}
