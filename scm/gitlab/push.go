package gitlab

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"tagboat/scm"
)

// pushEvent is a push event of a project. CommitFrom is null where the branch was
// new, CommitTo where it was deleted, and both where more than three branches were
// pushed at once (app/services/push_event_payload_service.rb).
type pushEvent struct {
	CreatedAt time.Time `json:"created_at"`
	PushData  struct {
		RefType    string `json:"ref_type"`
		Ref        string `json:"ref"`
		RefCount   int    `json:"ref_count"`
		CommitFrom string `json:"commit_from"`
		CommitTo   string `json:"commit_to"`
	} `json:"push_data"`
}

// Pushed asks for the project's push events, which commits through the API and
// merges make too. They cannot be asked for by branch: those of all branches count
// as read.
func (r *Repository) Pushed(ctx context.Context, branch, commit string) (time.Time, error) {
	what := "find when " + short(commit) + " came to " + branch
	page := func(n int) ([]scm.Push, bool, error) {
		events, more, e := r.pushEvents(ctx, n)
		if e != nil {
			return nil, false, e
		}
		var pushes []scm.Push
		for _, v := range events {
			if p := v.PushData; p.RefType == "branch" && p.Ref == branch && p.RefCount == 0 {
				pushes = append(pushes, scm.Push{Before: p.CommitFrom, After: p.CommitTo, Time: v.CreatedAt})
			}
		}
		return pushes, more, nil
	}
	at, err := scm.FindPush(commit, page, func(tip string) iter.Seq2[scm.Commit, error] { return r.Log(ctx, tip, "") })
	if err != nil {
		return time.Time{}, r.fail(what, &refusal{cause: err})
	}
	return at, nil
}

// pushEvents is a page, newest first. go-gitlab's own type lacks ref_count.
func (r *Repository) pushEvents(ctx context.Context, n int) (events []pushEvent, more bool, e *refusal) {
	query := struct {
		gl.ListOptions
		Action string `url:"action"`
		Sort   string `url:"sort"`
	}{gl.ListOptions{Page: n, PerPage: perPage}, "pushed", "desc"}
	path := fmt.Sprintf("projects/%s/events", gl.PathEscape(r.project))
	req, err := r.api.NewRequest(http.MethodGet, path, query, []gl.RequestOptionFunc{gl.WithContext(ctx)})
	if err != nil {
		return nil, false, r.unanswered(err)
	}
	resp, err := r.api.Do(req, &events)
	if e := r.explain(resp, err); e != nil {
		return nil, false, e
	}
	return events, resp.NextPage != 0, nil
}
