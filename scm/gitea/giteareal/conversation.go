package giteareal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"tagboat/scm/scmtest"
)

var _ scmtest.Talker = (*Person)(nil)

// Hook is a webhook of a repository.
type Hook struct {
	URL    string   // where it posts to; the server posts to this machine only
	Secret string   // of the HMAC in X-Gitea-Signature
	Events []string // nil: issue_comment and pull_request_comment
}

// AddHook registers a webhook on the administrator's repository of that name. Gitea
// tells a comment on an issue as issue_comment, one on a pull request as
// pull_request_comment; both have the same shape and X-Gitea-Event issue_comment.
func (s *Server) AddHook(ctx context.Context, repository string, h Hook) error {
	if h.Events == nil {
		h.Events = []string{"issue_comment", "pull_request_comment"}
	}
	in := map[string]any{
		"type": "gitea", "active": true, "events": h.Events,
		"config": map[string]string{"url": h.URL, "content_type": "json", "secret": h.Secret},
	}
	_, err := s.Call(ctx, "", http.MethodPost, "/repos/"+s.Admin+"/"+repository+"/hooks", in, nil)
	return err
}

// OpenIssue implements scmtest.Talker.
func (p *Person) OpenIssue(title, author string) (int, error) {
	var made struct{ Number int }
	err := p.call(author, http.MethodPost, "/issues", map[string]any{"title": title}, &made)
	return made.Number, err
}

type apiComment struct {
	ID                     int
	Body                   string
	User                   user
	Created_At, Updated_At time.Time //nolint:revive // the JSON keys
}

func (a apiComment) comment() scmtest.Comment {
	return scmtest.Comment{ID: a.ID, Author: a.User.Login, Body: a.Body, Created: a.Created_At, Updated: a.Updated_At}
}

// Say implements scmtest.Talker.
func (p *Person) Say(number int, author, body string) (scmtest.Comment, error) {
	var made apiComment
	err := p.call(author, http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), map[string]any{"body": body}, &made)
	return made.comment(), err
}

// EditComment implements scmtest.Talker, as the administrator. Gitea's times are
// whole seconds: an edit within the one of the comment cannot be told.
func (p *Person) EditComment(id int, body string) (scmtest.Comment, error) {
	time.Sleep(1100 * time.Millisecond)
	var made apiComment
	err := p.call("", http.MethodPatch, fmt.Sprintf("/issues/comments/%d", id), map[string]any{"body": body}, &made)
	return made.comment(), err
}

// DeleteComment implements scmtest.Talker, as the administrator.
func (p *Person) DeleteComment(id int) error {
	return p.call("", http.MethodDelete, fmt.Sprintf("/issues/comments/%d", id), nil, nil)
}

// Thread implements scmtest.Talker.
func (p *Person) Thread(number int) (comments []scmtest.Comment, isPull bool, err error) {
	var issue struct {
		Pull_Request *struct{} //nolint:revive // the JSON key
	}
	var list []apiComment
	at := fmt.Sprintf("/issues/%d", number)
	if err := errors.Join(p.call("", http.MethodGet, at, nil, &issue), p.call("", http.MethodGet, at+"/comments", nil, &list)); err != nil {
		return nil, false, err
	}
	for _, a := range list {
		c := a.comment()
		var signs []struct {
			User    user
			Content string
		}
		if err := p.call("", http.MethodGet, fmt.Sprintf("/issues/comments/%d/reactions", c.ID), nil, &signs); err != nil {
			return nil, false, err
		}
		for _, s := range signs {
			c.Reactions = append(c.Reactions, scmtest.Reaction{User: s.User.Login, Name: s.Content})
		}
		comments = append(comments, c)
	}
	return slices.Clip(comments), issue.Pull_Request != nil, nil
}

// SetRun implements scmtest.Talker: there is no runner.
func (p *Person) SetRun(int64, string, string) error {
	return fmt.Errorf("end a run without a runner: %w", errors.ErrUnsupported)
}
