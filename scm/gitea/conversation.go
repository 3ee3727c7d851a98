package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"tagboat/scm"
)

var _ scm.Conversation = (*Repository)(nil)

// commentLimit is how many characters an answer may have: see About.
const commentLimit = 65000

// comment is Gitea's (modules/structs/issue_comment.go). One that was imported has
// the importer as its user, and its author's name beside.
type comment struct {
	ID       int64  `json:"id"`
	HTMLURL  string `json:"html_url"`
	PullURL  string `json:"pull_request_url"`
	IssueURL string `json:"issue_url"`
	User     *struct {
		ID    int64
		Login string
	}
	Original string    `json:"original_author"`
	Body     string    `json:"body"`
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
}

// Comment reads the comment, then the pull request if it stands on one: only that
// tells a fork. What is no comment of a person (a label that was set) is a 204.
func (r *Repository) Comment(ctx context.Context, ref scm.CommentRef) (scm.Comment, error) {
	c, err := r.readComment(ctx, ref)
	return c, r.describe(err, "read comment %d on #%d", ref.ID, ref.Number)
}

func (r *Repository) readComment(ctx context.Context, ref scm.CommentRef) (scm.Comment, error) {
	var raw comment
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: commentPath(ref.ID), out: &raw})
	if err != nil {
		return scm.Comment{}, err
	}
	c := commentOf(raw)
	switch {
	case c.ID != ref.ID:
		return scm.Comment{}, fmt.Errorf("%w: it is no comment", scm.ErrNotFound)
	case c.Number != ref.Number:
		return scm.Comment{}, fmt.Errorf("%w: it stands on #%d", scm.ErrNotFound, c.Number)
	case !c.PullRequest:
		return c, nil
	}
	var p sdk.PullRequest
	if _, err := r.repoCall(ctx, request{method: http.MethodGet, path: pullPath(c.Number), out: &p}); err != nil {
		return scm.Comment{}, err
	}
	c.Fork = fromFork(&p)
	return c, nil
}

func commentPath(id int64) string { return "/issues/comments/" + strconv.FormatInt(id, 10) }

func commentOf(raw comment) scm.Comment {
	c := scm.Comment{
		CommentRef: scm.CommentRef{ID: raw.ID, PullRequest: raw.PullURL != ""},
		Body:       raw.Body, Created: raw.Created, Updated: raw.Updated, Edited: raw.Updated.After(raw.Created), URL: raw.HTMLURL,
	}
	at := raw.IssueURL
	if c.PullRequest {
		at = raw.PullURL
	}
	c.Number, _ = strconv.Atoi(path.Base(at))
	// A ghost has the id -1, and all programs of Gitea's own are below it. Others'
	// accounts do not tell whether they are a program's.
	if raw.User != nil && raw.User.ID != -1 && raw.Original == "" {
		c.Author = raw.User.Login
		if raw.User.ID < 0 {
			c.Kind = scm.AuthorBot
		}
	}
	return c
}

// Reply edits or makes the answer. The issue is read first: Gitea answers 500 to
// the comments of one that is not there.
func (r *Repository) Reply(ctx context.Context, to scm.Comment, body string) (scm.Comment, error) {
	calls := scm.Replies{
		Limit: commentLimit,
		Self:  r.Self,
		Lost:  ambiguous,
		Since: r.commentsSince,
		Create: func(ctx context.Context, to scm.CommentRef, body string) (scm.Comment, error) {
			return r.sendComment(ctx, http.MethodPost, issuePath(to.Number)+"/comments", body)
		},
		Edit: func(ctx context.Context, reply scm.CommentRef, body string) (scm.Comment, error) {
			return r.sendComment(ctx, http.MethodPatch, commentPath(reply.ID), body)
		},
	}
	c, err := calls.Reply(ctx, to, body)
	if err != nil {
		return scm.Comment{}, r.describe(locked(err), "answer comment %d on #%d", to.ID, to.Number)
	}
	return c, nil
}

func issuePath(number int) string { return "/issues/" + strconv.Itoa(number) }

// commentsSince lists all comments since, which have no pages.
func (r *Repository) commentsSince(ctx context.Context, to scm.Comment) ([]scm.Comment, error) {
	if _, err := r.repoCall(ctx, request{method: http.MethodGet, path: issuePath(to.Number)}); err != nil {
		return nil, err
	}
	query := url.Values{}
	if !to.Created.IsZero() {
		query.Set("since", to.Created.UTC().Format(time.RFC3339))
	}
	var all []comment
	_, err := r.repoCall(ctx, request{method: http.MethodGet, path: issuePath(to.Number) + "/comments", query: query, out: &all})
	var list []scm.Comment
	for _, raw := range all {
		list = append(list, commentOf(raw))
	}
	return list, err
}

func (r *Repository) sendComment(ctx context.Context, method, at, body string) (scm.Comment, error) {
	var raw comment
	_, err := r.repoCall(ctx, request{method: method, path: at, in: map[string]any{"body": body}, out: &raw})
	if err == nil && raw.ID == 0 {
		err = fmt.Errorf("%w: the answer names no comment", scm.ErrUnavailable)
	}
	return commentOf(raw), err
}

// locked makes the refusals of a conversation that is locked to the token's user
// one of a rule, and says so where Gitea does not.
func locked(err error) error {
	if says(err, http.StatusForbidden, "locked") || says(err, http.StatusForbidden, "no permission to change reaction") {
		return fmt.Errorf("%w: %s; the conversation is locked, only those who may write can speak", scm.ErrRefused, refused(err).Error())
	}
	return err
}

// React puts a reaction; Gitea answers 200 to one that is there already, and 403
// to one that its administrator has not allowed.
func (r *Repository) React(ctx context.Context, to scm.CommentRef, reaction scm.Reaction) error {
	word, ok := map[scm.Reaction]string{scm.ReactionEyes: "eyes", scm.ReactionRocket: "rocket", scm.ReactionThumbsDown: "-1"}[reaction]
	err := fmt.Errorf("%w: no such reaction", scm.ErrUnsupported)
	if ok {
		_, err = r.repoCall(ctx, request{method: http.MethodPost, path: commentPath(to.ID) + "/reactions", in: map[string]any{"content": word}})
	}
	return r.describe(locked(err), "react to comment %d with %s", to.ID, reaction)
}
