package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/google/go-github/v60/github"

	"tagboat/scm"
)

var _ scm.Conversation = (*Repository)(nil)

const talkNeeds = "issues:write (pull_requests:read for those of a pull request)"

// issueComment is a comment with the App in whose name go-github does not see it
// was written.
type issueComment struct {
	github.IssueComment
	App *github.App `json:"performed_via_github_app"`
}

// Comment reads the comment, then the pull request if it stands on one: only that
// tells a fork. GitHub's own address of the comment tells which number it is on.
func (r *Repository) Comment(ctx context.Context, ref scm.CommentRef) (scm.Comment, error) {
	ctx = needing(ctx, rightsToTalk)
	doing := fmt.Sprintf("read comment %d on #%d", ref.ID, ref.Number)
	var raw issueComment
	if _, err := r.get(ctx, "issues/comments/"+strconv.FormatInt(ref.ID, 10), nil, &raw); err != nil {
		return scm.Comment{}, r.evidenceFault(doing, err, "issues:read")
	}
	c := commentOf(raw)
	if c.ID != ref.ID {
		return scm.Comment{}, r.broken(doing, errEmptyAnswer)
	}
	if c.Number != ref.Number {
		return scm.Comment{}, fmt.Errorf("%s: %s: %w: it stands on #%d", r.fullName(), doing, scm.ErrNotFound, c.Number)
	}
	if !c.PullRequest {
		return c, nil
	}
	pr, _, err := r.api().PullRequests.Get(ctx, r.owner, r.name, c.Number)
	if err != nil {
		return scm.Comment{}, r.evidenceFault(doing, err, "pull_requests:read")
	}
	c.Fork = !strings.EqualFold(pr.GetHead().GetRepo().GetFullName(), r.fullName())
	return c, nil
}

func commentOf(raw issueComment) scm.Comment {
	at, _ := url.Parse(raw.GetHTMLURL())
	number, _ := strconv.Atoi(path.Base(raw.GetIssueURL()))
	c := scm.Comment{
		CommentRef: scm.CommentRef{ID: raw.GetID(), Number: number, PullRequest: at != nil && path.Base(path.Dir(at.Path)) == "pull"},
		Author:     raw.GetUser().GetLogin(), Kind: kindOf(raw.GetUser()), Body: raw.GetBody(),
		Created: raw.GetCreatedAt().Time, Updated: raw.GetUpdatedAt().Time, URL: raw.GetHTMLURL(),
	}
	c.Edited = c.Updated.After(c.Created)
	if raw.App != nil && c.Kind == scm.AuthorPerson {
		c.Kind = scm.AuthorApp
	}
	return c
}

// kindOf reads a user's type: User, Bot, or Mannequin and Organization, which
// nobody can be.
func kindOf(u *github.User) scm.AuthorKind {
	switch {
	case u.GetType() == "Bot", strings.HasSuffix(u.GetLogin(), "[bot]"):
		return scm.AuthorBot
	case u.GetType() == "User" && u.GetLogin() != "":
		return scm.AuthorPerson
	}
	return scm.AuthorUnknown
}

// Reply edits or makes the answer. Comments since the one that is answered are
// asked for by time, so that a long conversation costs no more.
func (r *Repository) Reply(ctx context.Context, to scm.Comment, body string) (scm.Comment, error) {
	ctx = needing(ctx, rightsToTalk)
	doing := fmt.Sprintf("answer comment %d on #%d", to.ID, to.Number)
	calls := scm.Replies{
		Limit: bodyLimit,
		Self:  r.Self,
		Lost:  ambiguous,
		Since: func(ctx context.Context, to scm.Comment) ([]scm.Comment, error) { return r.commentsSince(ctx, to) },
		Create: func(ctx context.Context, to scm.CommentRef, body string) (scm.Comment, error) {
			return r.sendComment(ctx, http.MethodPost, fmt.Sprintf("issues/%d/comments", to.Number), body)
		},
		Edit: func(ctx context.Context, reply scm.CommentRef, body string) (scm.Comment, error) {
			return r.sendComment(ctx, http.MethodPatch, fmt.Sprintf("issues/comments/%d", reply.ID), body)
		},
	}
	c, err := calls.Reply(ctx, to, body)
	if err != nil {
		return scm.Comment{}, r.talkFault(doing, err)
	}
	return c, nil
}

func (r *Repository) commentsSince(ctx context.Context, to scm.Comment) ([]scm.Comment, error) {
	all, err := pages(func(o github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
		opts := &github.IssueListCommentsOptions{ListOptions: o}
		if !to.Created.IsZero() {
			opts.Since = &to.Created
		}
		return r.api().Issues.ListComments(ctx, r.owner, r.name, to.Number, opts)
	})
	var list []scm.Comment
	for _, raw := range all {
		list = append(list, commentOf(issueComment{IssueComment: *raw}))
	}
	return list, err
}

func (r *Repository) sendComment(ctx context.Context, method, at, body string) (scm.Comment, error) {
	var raw issueComment
	err := r.send(ctx, method, at, map[string]string{"body": body}, &raw)
	if err == nil && raw.GetID() == 0 {
		err = errEmptyAnswer
	}
	return commentOf(raw), err
}

// send writes to path below the repository.
func (r *Repository) send(ctx context.Context, method, at string, in, out any) error {
	c := r.api()
	req, err := c.NewRequest(method, "repos/"+r.owner+"/"+r.name+"/"+at, in)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, req, out)
	return err
}

// React puts a reaction; GitHub answers 200 to one that is there already.
func (r *Repository) React(ctx context.Context, to scm.CommentRef, reaction scm.Reaction) error {
	doing := fmt.Sprintf("react to comment %d with %s", to.ID, reaction)
	word, ok := map[scm.Reaction]string{scm.ReactionEyes: "eyes", scm.ReactionRocket: "rocket", scm.ReactionThumbsDown: "-1"}[reaction]
	if !ok {
		return fmt.Errorf("%s: %s: %w", r.fullName(), doing, scm.ErrUnsupported)
	}
	at := fmt.Sprintf("issues/comments/%d/reactions", to.ID)
	err := r.send(needing(ctx, rightsToTalk), http.MethodPost, at, map[string]string{"content": word}, nil)
	return r.talkFault(doing, err)
}

// talkFault is evidenceFault that knows a conversation that is locked.
func (r *Repository) talkFault(doing string, err error) error {
	if err == nil {
		return nil
	}
	a, ok := answerOf(err)
	switch {
	case !ok && isOurs(err): // what Self says
		return err
	case ok && a.has(http.StatusForbidden, "is locked"):
		return r.refusal(doing, a, scm.ErrRefused)
	}
	return r.evidenceFault(doing, err, talkNeeds)
}
