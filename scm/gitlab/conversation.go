package gitlab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"tagboat/scm"
)

var _ scm.Conversation = (*Repository)(nil)

// note is a comment (lib/api/entities/note.rb).
type note struct {
	ID     int64
	Body   string
	Author struct {
		ID       int
		Username string
	}
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	System    bool
	Internal  bool
}

// side is the path of an issue or merge request.
func (r *Repository) side(ref scm.CommentRef) string {
	kind := "issues"
	if ref.PullRequest {
		kind = "merge_requests"
	}
	return fmt.Sprintf("projects/%s/%s/%d", gl.PathEscape(r.project), kind, ref.Number)
}

func (r *Repository) place(ref scm.CommentRef) string {
	if ref.PullRequest {
		return fmt.Sprintf("!%d", ref.Number)
	}
	return fmt.Sprintf("#%d", ref.Number)
}

// send does one call below the API.
func (r *Repository) send(ctx context.Context, method, path string, in, out any) (*gl.Response, *refusal) {
	req, err := r.api.NewRequest(method, path, in, []gl.RequestOptionFunc{gl.WithContext(ctx)})
	if err != nil {
		return nil, r.unanswered(err)
	}
	resp, err := r.api.Do(req, out)
	return resp, r.explain(resp, err)
}

// Comment reads the note, then who wrote it, whether it was edited and, of a merge
// request, whether it is a fork's, at once. A note that GitLab wrote itself is
// nobody's and not found.
func (r *Repository) Comment(ctx context.Context, ref scm.CommentRef) (scm.Comment, error) {
	what := fmt.Sprintf("read comment %d on %s", ref.ID, r.place(ref))
	var n note
	if _, e := r.send(ctx, http.MethodGet, fmt.Sprintf("%s/notes/%d", r.side(ref), ref.ID), nil, &n); e != nil {
		return scm.Comment{}, r.talkFail(what, e)
	}
	if n.System || n.ID != ref.ID {
		return scm.Comment{}, r.fail(what, &refusal{kind: scm.ErrNotFound, text: "it is no comment of a person"})
	}
	c := r.comment(ref, n)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { c.Kind, err = r.kind(gctx, n.Author.ID); return err })
	g.Go(func() (err error) { c.Edited, err = r.edited(gctx, n); return err })
	if ref.PullRequest {
		g.Go(func() (err error) { c.Fork, err = r.fork(gctx, ref.Number); return err })
	}
	if err := g.Wait(); err != nil {
		return scm.Comment{}, err
	}
	return c, nil
}

func (r *Repository) comment(ref scm.CommentRef, n note) scm.Comment {
	kind := "issues"
	if ref.PullRequest {
		kind = "merge_requests"
	}
	ref.ID = n.ID
	return scm.Comment{
		CommentRef: ref, Author: n.Author.Username, Body: n.Body, Created: n.CreatedAt, Updated: n.UpdatedAt, Internal: n.Internal,
		URL: fmt.Sprintf("%s/-/%s/%d#note_%d", r.about.URL, kind, ref.Number, n.ID),
	}
}

// kind asks for the user, whose own entity alone tells a bot: tokens of projects
// and groups, and service accounts (app/models/user.rb, bot?).
func (r *Repository) kind(ctx context.Context, id int) (scm.AuthorKind, error) {
	var u struct {
		Username string
		Bot      *bool
	}
	_, e := r.send(ctx, http.MethodGet, fmt.Sprintf("users/%d", id), nil, &u)
	switch {
	case e != nil && e.status == http.StatusNotFound:
		return scm.AuthorUnknown, nil
	case e != nil:
		return scm.AuthorUnknown, r.fail(fmt.Sprintf("ask for user %d", id), e)
	case u.Bot == nil:
		return scm.AuthorUnknown, nil
	case *u.Bot:
		return scm.AuthorBot, nil
	}
	return scm.AuthorPerson, nil
}

// edited asks GraphQL, for a reaction moves updated_at too (app/models/award_emoji.rb,
// bump_updated_at). A GitLab before 15.9, or one whose GraphQL does not serve the
// field, is taken at its updated_at.
func (r *Repository) edited(ctx context.Context, n note) (bool, error) {
	if !n.UpdatedAt.After(n.CreatedAt) {
		return false, nil
	}
	body := map[string]any{
		"query":     "query Edited($id: NoteID!) { note(id: $id) { lastEditedAt } }",
		"variables": map[string]any{"id": fmt.Sprintf("gid://gitlab/Note/%d", n.ID)},
	}
	var out struct {
		Data struct {
			Note *struct{ LastEditedAt *time.Time }
		}
		Errors []json.RawMessage
	}
	e := r.graphQL(ctx, body, &out)
	switch {
	case e != nil && e.status != http.StatusNotFound && e.status != http.StatusBadRequest && e.status != http.StatusForbidden:
		return false, r.fail(fmt.Sprintf("ask whether comment %d was edited", n.ID), e)
	case e != nil, len(out.Errors) > 0, out.Data.Note == nil:
		return true, nil
	}
	return out.Data.Note.LastEditedAt != nil, nil
}

// graphQL does a query. GraphQL is beside the REST API, at /api/graphql.
func (r *Repository) graphQL(ctx context.Context, body, out any) *refusal {
	req, err := r.api.NewRequest(http.MethodPost, "graphql", body, []gl.RequestOptionFunc{gl.WithContext(scm.AsRead(ctx))})
	if err != nil {
		return r.unanswered(err)
	}
	req.URL.Path = strings.Replace(req.URL.Path, "/api/v4/graphql", "/api/graphql", 1)
	req.URL.RawPath = ""
	return r.explain(r.api.Do(req, out))
}

func (r *Repository) fork(ctx context.Context, number int) (bool, error) {
	var m struct {
		Source *int `json:"source_project_id"`
		Target int  `json:"target_project_id"`
	}
	_, e := r.send(ctx, http.MethodGet, r.side(scm.CommentRef{Number: number, PullRequest: true}), nil, &m)
	if e != nil {
		return false, r.fail(fmt.Sprintf("read merge request !%d", number), e)
	}
	return m.Source == nil || *m.Source != m.Target, nil
}

// Reply edits or makes the answer.
func (r *Repository) Reply(ctx context.Context, to scm.Comment, body string) (scm.Comment, error) {
	what := fmt.Sprintf("answer comment %d on %s", to.ID, r.place(to.CommentRef))
	calls := scm.Replies{
		Limit: bodyLimit,
		Self:  r.Self,
		Lost:  func(err error) bool { e, ok := err.(*refusal); return ok && e.ambiguous() }, //nolint:errorlint // our own, never wrapped
		Since: r.notesSince,
		Create: func(ctx context.Context, at scm.CommentRef, body string) (scm.Comment, error) {
			return r.sendNote(ctx, http.MethodPost, r.side(at)+"/notes", at, noteBody{body, to.Internal})
		},
		Edit: func(ctx context.Context, reply scm.CommentRef, body string) (scm.Comment, error) {
			return r.sendNote(ctx, http.MethodPut, fmt.Sprintf("%s/notes/%d", r.side(reply), reply.ID), reply, noteBody{Body: body})
		},
	}
	c, err := calls.Reply(ctx, to, plainLines(body))
	if e, ok := err.(*refusal); ok { //nolint:errorlint // our own, never wrapped
		return scm.Comment{}, r.talkFail(what, e)
	}
	return c, err
}

// plainLines keeps GitLab from running a line that begins with a slash as a quick
// action, /merge or /approve say, in the name of the token's user.
func plainLines(body string) string {
	lines := strings.Split(body, "\n")
	for i, l := range lines {
		if rest := strings.TrimLeft(l, " \t\r"); strings.HasPrefix(rest, "/") {
			lines[i] = l[:len(l)-len(rest)] + `\` + rest
		}
	}
	return strings.Join(lines, "\n")
}

// notesSince reads newest first, until what is older than the comment.
func (r *Repository) notesSince(ctx context.Context, to scm.Comment) ([]scm.Comment, error) {
	var list []scm.Comment
	query := struct {
		gl.ListOptions
		OrderBy  string `url:"order_by"`
		Sort     string `url:"sort"`
		Activity string `url:"activity_filter"`
	}{gl.ListOptions{Page: 1, PerPage: perPage}, "created_at", "desc", "only_comments"}
	for query.Page != 0 {
		var page []note
		resp, e := r.send(ctx, http.MethodGet, r.side(to.CommentRef)+"/notes", query, &page)
		if e != nil {
			return nil, e
		}
		for _, n := range page {
			if n.CreatedAt.Before(to.Created) {
				return list, nil
			}
			if !n.System {
				list = append([]scm.Comment{r.comment(to.CommentRef, n)}, list...)
			}
		}
		query.Page = resp.NextPage
	}
	return list, nil
}

// noteBody is what a note is made or edited with; whether it is internal cannot be
// changed later.
type noteBody struct {
	Body     string `json:"body"`
	Internal bool   `json:"internal,omitempty"`
}

func (r *Repository) sendNote(ctx context.Context, method, path string, at scm.CommentRef, body noteBody) (scm.Comment, error) {
	var n note
	_, e := r.send(ctx, method, path, body, &n)
	switch {
	case e != nil && e.status == http.StatusBadRequest:
		e.kind = scm.ErrRefused
		return scm.Comment{}, e
	case e != nil:
		return scm.Comment{}, e
	case n.ID == 0: // 202: all of it was quick actions
		return scm.Comment{}, &refusal{kind: scm.ErrRefused, text: "GitLab took the text for quick actions"}
	}
	return r.comment(at, n), nil
}

// React awards an emoji. GitLab answers one that is there already with a 404
// (lib/api/award_emoji.rb).
func (r *Repository) React(ctx context.Context, to scm.CommentRef, reaction scm.Reaction) error {
	what := fmt.Sprintf("react to comment %d with %s", to.ID, reaction)
	name, ok := map[scm.Reaction]string{scm.ReactionEyes: "eyes", scm.ReactionRocket: "rocket", scm.ReactionThumbsDown: "thumbsdown"}[reaction]
	if !ok {
		return r.fail(what, &refusal{kind: scm.ErrUnsupported, text: "no such reaction"})
	}
	_, e := r.send(ctx, http.MethodPost, fmt.Sprintf("%s/notes/%d/award_emoji", r.side(to), to.ID), map[string]string{"name": name}, nil)
	if e == nil || e.status == http.StatusNotFound && strings.Contains(e.text, "has already been taken") {
		return nil
	}
	return r.talkFail(what, e)
}

// talkFail is fail that knows a conversation that is locked: GitLab answers 403 to
// that, as to a role that may not comment.
func (r *Repository) talkFail(what string, e *refusal) error {
	switch e.status {
	case http.StatusForbidden:
		e.kind = scm.ErrRefused
		e.hint = "the conversation is locked to members, or the token's role may not comment (it needs the scope api and at least the role Reporter)"
		if scopeLacks(e) {
			e.kind, e.hint = scm.ErrDenied, "the token lacks the scope api"+tokenPage
		}
	case http.StatusNotFound:
		e.hint = "there is no such issue, merge request or comment, or the token's user cannot see it"
	}
	return r.fail(what, e)
}
