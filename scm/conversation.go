package scm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Conversation is what a forge keeps of people's words on issues and pull
// requests. Plain git has none: a user asserts a Repository for Conversation. One
// value speaks of one repository, which is where the comment stands: it may be
// another one than the promotions'.
type Conversation interface {
	// Comment fetches a comment again, as it is now: an event's text is no identity,
	// and may be edited since. Of ref all is used; on GitHub and Gitea a comment that
	// stands on another number than ref says is ErrNotFound, and PullRequest is
	// theirs, not ref's. A comment that is not there, or was deleted, is ErrNotFound.
	Comment(ctx context.Context, ref CommentRef) (Comment, error)

	// Reply makes the one answer to a comment say body: the credential's own comment
	// that begins with ReplyMarker(to.ID) is edited in place, else one is made. A
	// comment of somebody else is never edited, whatever its text. A body that is
	// longer than the forge takes is cut at a character. Of to, the CommentRef,
	// Created and Internal are used.
	//
	// A conversation that is locked for the credential is ErrRefused. Two calls for
	// one comment at the same moment may leave two answers; the next call edits the
	// older one.
	Reply(ctx context.Context, to Comment, body string) (Comment, error)

	// React puts a reaction to a comment. One that is there already is no error.
	React(ctx context.Context, to CommentRef, r Reaction) error
}

// CommentRef says which comment.
type CommentRef struct {
	ID          int64 // of the comment (on GitLab of the note)
	Number      int   // of the issue or pull request that it stands on
	PullRequest bool  // GitLab counts issues and merge requests apart
}

// Comment is a comment as the forge tells it.
type Comment struct {
	CommentRef
	// Fork: it stands on a pull request whose head is in another repository, or in
	// one that is gone.
	Fork bool
	// Author is the login of who wrote it; "" where that account is gone.
	Author           string
	Kind             AuthorKind
	Body             string
	Created, Updated time.Time // the forge's clock
	// Edited: its text was changed since it was made, as far as the forge tells:
	// GitHub and Gitea tell it by Updated alone. Compare Body too with what an event
	// said.
	Edited bool
	// Internal: only some may see it (GitLab's internal notes); so is its answer.
	Internal bool
	URL      string
}

// AuthorKind is what sort of account wrote a comment.
type AuthorKind string

// The kinds of author.
const (
	AuthorPerson AuthorKind = "person"
	// AuthorBot is an account that is a program's own: a GitHub App, GITHUB_TOKEN, a
	// bot user or service account.
	AuthorBot AuthorKind = "bot"
	// AuthorApp is a person's account, in whose name a program wrote (GitHub's
	// performed_via_github_app).
	AuthorApp AuthorKind = "app"
	// AuthorUnknown: the forge does not tell (Gitea), or the account is gone.
	AuthorUnknown AuthorKind = ""
)

// Reaction is a sign on a comment.
type Reaction string

// The reactions, the same on every forge.
const (
	ReactionEyes       Reaction = "eyes"        // seen, at work
	ReactionRocket     Reaction = "rocket"      // done
	ReactionThumbsDown Reaction = "thumbs-down" // refused or failed
)

// ReplyMarker is the hidden text that the answer to a comment begins with.
func ReplyMarker(comment int64) string {
	return fmt.Sprintf("<!-- tagboat reply to %d -->", comment)
}

// IsReply tells whether a comment's text is the answer to a comment.
func IsReply(body string, comment int64) bool {
	return strings.HasPrefix(strings.TrimSpace(body), ReplyMarker(comment))
}

// Replies are the calls of a forge that Reply is made of. It is for
// implementations of Conversation.
type Replies struct {
	Limit int // characters that a comment may have
	Self  func(context.Context) (login string, err error)
	// Since lists the comments beside one that were made after it, oldest first; ID,
	// Author and Body are used.
	Since  func(ctx context.Context, to Comment) ([]Comment, error)
	Create func(ctx context.Context, to CommentRef, body string) (Comment, error)
	Edit   func(ctx context.Context, reply CommentRef, body string) (Comment, error)
	// Lost tells that a call that failed may have been done all the same.
	Lost func(error) bool
}

// Reply is Conversation's: it edits the oldest answer that is there, and makes one
// where there is none. What is there already as wanted is not written again.
func (r Replies) Reply(ctx context.Context, to Comment, body string) (Comment, error) {
	if strings.TrimSpace(body) == "" {
		return Comment{}, errors.New("the answer is empty")
	}
	marker := ReplyMarker(to.ID) + "\n"
	body = marker + CutText(body, r.Limit-len(marker))
	old, err := r.find(ctx, to)
	if err == nil && old.ID == 0 {
		made, err := r.Create(ctx, to.CommentRef, body)
		if err == nil || !r.Lost(err) {
			return made, err
		}
		var unread error
		if old, unread = r.find(ctx, to); unread != nil || old.ID == 0 {
			return Comment{}, err
		}
	}
	if err != nil || strings.TrimSpace(old.Body) == strings.TrimSpace(body) {
		return old, err
	}
	return r.Edit(ctx, old.CommentRef, body)
}

// find is the oldest answer of the credential's own; ID 0 is none.
func (r Replies) find(ctx context.Context, to Comment) (Comment, error) {
	self, err := r.Self(ctx)
	if err != nil {
		return Comment{}, err
	}
	list, err := r.Since(ctx, to)
	if err != nil {
		return Comment{}, err
	}
	for _, c := range list {
		if self != "" && strings.EqualFold(c.Author, self) && IsReply(c.Body, to.ID) {
			c.CommentRef = CommentRef{ID: c.ID, Number: to.Number, PullRequest: to.PullRequest}
			return c, nil
		}
	}
	return Comment{}, nil
}
