package chatops

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tagboat/scm"
)

// ErrIgnored is returned for an event that is not a new comment of a person: an
// edited or deleted one, a bot's, a review. Say nothing.
var ErrIgnored = errors.New("not a new comment of a person")

// Event is a new comment as a forge's event tells it. None of it is believed: it
// says which comment to fetch, and what it said when it was made.
type Event struct {
	CommentAt
	Author string // login
	Line   string // the first line
}

// CommentAt says where a comment stands.
type CommentAt struct {
	Repository string // owner/name or group/sub/name
	scm.CommentRef
}

// GitHubEvent reads GitHub's and Gitea's issue_comment, as a webhook sends it and
// as a workflow finds it in GITHUB_EVENT_PATH. Neither author_association nor
// sender is looked at.
func GitHubEvent(payload []byte) (Event, error) {
	var e struct {
		Action string
		Issue  struct {
			Number      int
			PullRequest json.RawMessage `json:"pull_request"`
		}
		IsPull  bool `json:"is_pull"` // Gitea
		Comment struct {
			ID   int64
			Body string
			User struct{ Login, Type string }
			App  json.RawMessage `json:"performed_via_github_app"`
		}
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
	if err := decodeEvent(payload, &e); err != nil {
		return Event{}, err
	}
	event := Event{
		CommentAt: CommentAt{e.Repository.FullName, scm.CommentRef{
			ID: e.Comment.ID, Number: e.Issue.Number, PullRequest: e.IsPull || isSet(e.Issue.PullRequest),
		}},
		Author: e.Comment.User.Login, Line: FirstLine(e.Comment.Body),
	}
	if e.Action == "" && e.Comment.ID == 0 {
		return Event{}, errors.New("read the event: it is no issue_comment")
	}
	bot := e.Comment.User.Type == "Bot" || strings.HasSuffix(event.Author, "[bot]") || isSet(e.Comment.App)
	if e.Action != "created" || bot {
		return Event{}, ErrIgnored
	}
	return event, event.check()
}

// GitLabEvent reads GitLab's note hook. It is sent for comments that are made and
// for those that are edited, and for those on commits and snippets, where nobody
// promotes.
func GitLabEvent(payload []byte) (Event, error) {
	var e struct {
		Kind string `json:"object_kind"`
		User struct{ Username string }
		Note struct {
			ID     int64
			Action string
			On     string `json:"noteable_type"` //nolint:misspell // GitLab's spelling
			Text   string `json:"note"`
			System bool
		} `json:"object_attributes"`
		MergeRequest struct{ IID int } `json:"merge_request"`
		Issue        struct{ IID int } `json:"issue"`
		Project      struct {
			Path string `json:"path_with_namespace"`
		}
	}
	if err := decodeEvent(payload, &e); err != nil {
		return Event{}, err
	}
	if e.Kind != "note" {
		return Event{}, fmt.Errorf("read the event: it is a %q, not a note", cutText(e.Kind, 40))
	}
	event := Event{
		CommentAt: CommentAt{e.Project.Path, scm.CommentRef{ID: e.Note.ID, Number: e.Issue.IID}},
		Author:    e.User.Username, Line: FirstLine(e.Note.Text),
	}
	if e.Note.On == "MergeRequest" {
		event.Number, event.PullRequest = e.MergeRequest.IID, true
	}
	on := e.Note.On == "Issue" || e.Note.On == "MergeRequest"
	if e.Note.Action != "create" || e.Note.System || !on {
		return Event{}, ErrIgnored
	}
	return event, event.check()
}

func decodeEvent(payload []byte, into any) error {
	if err := json.Unmarshal(payload, into); err != nil {
		return fmt.Errorf("read the event: %w", err)
	}
	return nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// check demands what a comment cannot be fetched without.
func (e Event) check() error {
	if err := e.CommentAt.check(); err != nil {
		return fmt.Errorf("read the event: %w", err)
	}
	if e.Author == "" {
		return errors.New("read the event: the comment has no author")
	}
	return nil
}

func (c CommentAt) check() error {
	switch {
	case c.ID <= 0 || c.Number <= 0:
		return errors.New("the comment has no number")
	case !repositoryGrammar.MatchString(c.Repository):
		return fmt.Errorf("%q is no repository's name", cutText(c.Repository, 80))
	}
	return nil
}

func cutText(s string, limit int) string { return scm.CutText(strings.ToValidUTF8(s, "?"), limit) }
