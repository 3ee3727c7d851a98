package chatops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tagboat/config"
	"tagboat/promote"
	"tagboat/scm"
)

// Comment answers a new comment: 👀, one reply that a repetition edits in place,
// then 🚀 or 👎. What is no command, a bot's, or gone is ErrIgnored, and nobody is
// told. The answer carries what went wrong; the error is that it could not be told.
func (b *Bot) Comment(ctx context.Context, forum scm.Conversation, e Event, teller Teller) (Answer, error) {
	return b.comment(ctx, forum, e.CommentAt, LineHash(e.Line), e.Author, teller)
}

// comment knows of the comment only where it stands, what its first line was, and
// who wrote it, if told.
func (b *Bot) comment(ctx context.Context, forum scm.Conversation, at CommentAt, hash, author string, teller Teller) (Answer, error) {
	comment, err := forum.Comment(ctx, at.CommentRef)
	switch {
	case errors.Is(err, scm.ErrNotFound):
		return Answer{}, fmt.Errorf("%w: it is gone: %w", ErrIgnored, err)
	case err != nil:
		return Answer{}, err
	case comment.Kind == scm.AuthorBot, comment.Kind == scm.AuthorApp:
		return Answer{}, fmt.Errorf("%w: a program wrote it", ErrIgnored)
	case comment.Author == "":
		return Answer{}, fmt.Errorf("%w: its author is gone", ErrIgnored)
	}
	command, parsed := Parse(comment.Body)
	same := LineHash(FirstLine(comment.Body)) == hash && (author == "" || strings.EqualFold(author, comment.Author))
	if errors.Is(parsed, ErrNotCommand) && same {
		return Answer{}, ErrNotCommand
	}
	if err := greet(ctx, forum, at.CommentRef); err != nil {
		return Answer{}, err
	}
	a := Answer{Command: command, Login: comment.Author}
	a, err = b.decide(ctx, a, func() error {
		switch age := ageOf(forum, comment); {
		case !same || comment.Edited:
			return fmt.Errorf("%w since it was made", ErrEdited)
		case age > commentLife:
			return fmt.Errorf("%w: the comment was made %v ago, and nothing older than %v is obeyed", ErrStale, age.Round(time.Minute), commentLife)
		}
		return parsed
	}, Order{Command: command, Login: comment.Author, Since: comment.Created})
	if err != nil {
		a.Err = err
	}
	return a, b.tell(ctx, forum, comment, a, teller)
}

// greet gives a sign that the comment is seen, as far as the forge takes it. Its error
// is that the credential has no right to answer: then nothing should be done either.
func greet(ctx context.Context, forum scm.Conversation, at scm.CommentRef) error {
	err := forum.React(ctx, at, scm.ReactionEyes)
	if people, ok := forum.(scm.Rights); ok && !errors.Is(err, scm.ErrDenied) { // its own answer is found by its login
		_, err = people.Self(ctx)
	}
	if errors.Is(err, scm.ErrDenied) {
		return fmt.Errorf("nothing was done, for no answer could be given: %w", err)
	}
	return nil
}

// commentLife is how long a comment is obeyed. Without an end, whoever may start a
// job could have an old /release done once more.
const commentLife = time.Hour

// ageOf is how old a comment is by the forge's clock, as far as it tells.
func ageOf(forum scm.Conversation, comment scm.Comment) time.Duration {
	clock, ok := forum.(scm.Clock)
	if !ok || comment.Created.IsZero() {
		return 0
	}
	now, known := clock.Now()
	if !known {
		return 0
	}
	return now.Sub(comment.Created)
}

// decide asks for the right, then whether the command stands, and does it.
func (b *Bot) decide(ctx context.Context, a Answer, stands func() error, o Order) (Answer, error) {
	repo, err := b.Promoter.Open(ctx, b.Request.Repository, "")
	if err != nil {
		return a, err
	}
	rights, ok := repo.(scm.Rights)
	if !ok {
		return a, fmt.Errorf("%w: a %s repository tells nothing about people", scm.ErrUnsupported, repo.About().Forge)
	}
	if err := May(ctx, rights, nil, Command{Verb: Help}, o.Login); err != nil {
		return a, err
	}
	if err := stands(); err != nil {
		return a, err
	}
	names, _, err := loadConfig(ctx, repo)
	if err != nil {
		return a, err
	}
	if o.Command, err = o.Command.Resolve(names); err != nil {
		return a, err
	}
	a.Command = o.Command
	if err := promoters(ctx, rights, names, o.Command, o.Login); err != nil {
		return a, err
	}
	return b.Do(ctx, o), nil
}

// tell replies and reacts.
func (b *Bot) tell(ctx context.Context, forum scm.Conversation, comment scm.Comment, a Answer, teller Teller) error {
	ctx = context.WithoutCancel(ctx) // a job that is stopped still says so
	teller.Markdown = true
	sign := scm.ReactionRocket
	if !a.Good() {
		sign = scm.ReactionThumbsDown
	}
	if _, err := forum.Reply(ctx, comment, teller.Text(a)); err != nil {
		return fmt.Errorf("answer the comment (outcome: %s): %w", a.Word(), err)
	}
	_ = forum.React(ctx, comment.CommentRef, sign) // the reply says it
	return nil
}

// Word is the outcome in one word, for logs.
func (a Answer) Word() string {
	switch {
	case a.refused():
		return "refused"
	case a.Err != nil:
		return "failed"
	case len(a.Results) > 0:
		return string(outcomeOf(a.Results[0], a.Errors[0]))
	case a.Hold != nil:
		return string(a.Hold.Outcome)
	}
	return "help"
}

// refused tells that the fault is the asker's: nothing is broken, and nothing was
// written.
func (a Answer) refused() bool {
	return slices.ContainsFunc([]error{
		ErrNoRight, ErrUnmapped, ErrSyntax, ErrEdited, ErrStale, ErrChanged, config.ErrUnknown, config.ErrNotAllowed, promote.ErrHeld,
	}, func(cause error) bool { return errors.Is(a.Err, cause) })
}

// Accept is what the receiving workflow takes by its inputs.
type Accept struct {
	// Speakers are the logins whose dispatches may speak for chat users, and tell of
	// comments: the account of tagboat serve. Whoever else says what a comment was
	// when it was made may have edited it.
	Speakers []string
	// Requesters are the logins that may ask for images without a right to write: the
	// accounts of applications' pipelines, each with its apps.
	Requesters map[string][]string
}

// Job is what a job that was dispatched can ask for.
type Job struct {
	// Starter asks the forge who started it.
	Starter func(context.Context) (scm.Starter, error)
	// Forum opens the repository in which a comment stands.
	Forum  func(ctx context.Context, repository string) (scm.Conversation, error)
	Accept Accept
	Teller Teller
}

// Ask does what a job's inputs ask.
func (b *Bot) Ask(ctx context.Context, ask Ask, job Job) (Answer, error) {
	starter, err := job.Starter(ctx)
	if err != nil {
		return Answer{}, err
	}
	if ask.Comment.ID != 0 {
		if !job.Accept.speaks(starter.Login) {
			return Answer{}, fmt.Errorf("%w: %s may not tell of comments: the workflow names who may with --speaker", ErrNoRight, starter.Login)
		}
		forum, err := job.Forum(ctx, ask.Comment.Repository)
		if err != nil {
			return Answer{}, err
		}
		return b.comment(ctx, forum, ask.Comment, ask.LineHash, "", job.Teller)
	}
	if ask.Image.Repository != "" {
		return b.image(ctx, ask, starter.Login, job.Accept), nil
	}
	return b.line(ctx, ask, starter, job.Accept), nil
}

// Line does a command that a person gave to the job itself: in GitLab's ChatOps. Of
// starter, Login and Since are used. The verb may stand without its slash, for the person has named the job.
func (b *Bot) Line(ctx context.Context, line string, starter scm.Starter) Answer {
	if line = strings.TrimSpace(FirstLine(line)); !strings.HasPrefix(line, "/") {
		line = "/" + line
	}
	return b.line(ctx, Ask{Command: line}, scm.Starter{Login: starter.Login, Event: "chat", Since: starter.Since}, Accept{})
}

func (b *Bot) line(ctx context.Context, ask Ask, starter scm.Starter, accept Accept) Answer {
	login := starter.Login
	command, parsed := Parse(ask.Command)
	if errors.Is(parsed, ErrNotCommand) {
		parsed = &SyntaxError{Verb: Help, Problem: "it is none of the commands, which " + Help.Usage() + " lists"}
	}
	a := Answer{Command: command, Login: login}
	if ask.User != "" {
		speaks, err := b.speaks(ctx, ask.User, login, accept)
		if err != nil {
			a.Err = err
			return a
		}
		login, a.Login = speaks, speaks
	} else if a.Err = accept.person(starter); a.Err != nil {
		return a
	}
	a, err := b.decide(ctx, a, func() error { return parsed }, Order{Command: command, Login: login, Since: starter.Since})
	if err != nil {
		a.Err = err
	}
	return a
}

// speaks is the login of a chat user for whom a starter speaks.
func (b *Bot) speaks(ctx context.Context, user, starter string, accept Accept) (string, error) {
	if !accept.speaks(starter) {
		return "", fmt.Errorf("%w: %s may not speak for chat users: the workflow names who may with --speaker", ErrNoRight, starter)
	}
	repo, err := b.Promoter.Open(ctx, b.Request.Repository, "")
	if err != nil {
		return "", err
	}
	names, _, err := loadConfig(ctx, repo)
	if err != nil {
		return "", err
	}
	team, id, _ := strings.Cut(strings.TrimPrefix(user, "slack:"), "/")
	return ChatLogin(names, team, id)
}

func (a Accept) speaks(login string) bool {
	return slices.ContainsFunc(a.Speakers, func(who string) bool { return strings.EqualFold(who, login) })
}

// person says why no person stands behind a command that a starter gives for
// itself. A pipeline's account may have a right to write, for without one Gitea and
// GitLab start nothing; a trigger or another project's job starts in the name of
// somebody who knows nothing of it.
func (a Accept) person(s scm.Starter) error {
	_, requester := a.apps(s.Login)
	byHand := slices.Contains([]string{"workflow_dispatch", "chat", "api", "web"}, s.Event)
	if s.Kind != scm.AuthorBot && byHand && !requester && !a.speaks(s.Login) {
		return nil
	}
	return fmt.Errorf("%w: commands are for people: %s (%s) may ask for images with tagboat request", ErrNoRight, s.Login, s.Event)
}

// image promotes what a build has pushed, for a requester that the workflow takes.
func (b *Bot) image(ctx context.Context, ask Ask, login string, accept Accept) Answer {
	a := Answer{Command: Command{Verb: Promote, Environment: ask.To, Digest: ask.Image.Digest}, Login: login}
	repo, err := b.Promoter.Open(ctx, b.Request.Repository, "")
	if err != nil {
		a.Err = err
		return a
	}
	names, _, err := loadConfig(ctx, repo)
	if err != nil {
		a.Err = err
		return a
	}
	if a.Command.App, a.Err = names.AppOf(ask.Image.Repository); a.Err != nil {
		return a
	}
	environment, err := names.Environment(ask.To)
	if err != nil {
		a.Err = err
		return a
	}
	if a.Err = accept.image(login, a.Command.App); a.Err != nil {
		return a
	}
	if environment.From != nil {
		a.Err = fmt.Errorf("%w: a pipeline may ask for environments that take what builds push: %s is promoted from %s", ErrNoRight, ask.To, strings.Join(environment.From, " and "))
		return a
	}
	return b.Do(ctx, Order{Command: a.Command, Login: login, Image: ask.Image})
}

// apps are those that a login may ask for, if the workflow takes any of it.
func (a Accept) apps(login string) (apps []string, known bool) {
	for who, list := range a.Requesters {
		if strings.EqualFold(who, login) {
			apps, known = append(apps, list...), true
		}
	}
	return apps, known
}

// image says why a login may not ask for an app, or nothing.
func (a Accept) image(login, app string) error {
	apps, known := a.apps(login)
	switch {
	case !known:
		return fmt.Errorf("%w: the workflow takes nothing from %s: it names who may ask with --accept %s=%s", ErrNoRight, login, login, app)
	case !slices.Contains(apps, app):
		return fmt.Errorf("%w: %s may ask for %s, not for %s", ErrNoRight, login, strings.Join(apps, ", "), app)
	}
	return nil
}
