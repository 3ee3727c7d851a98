package github

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tagboat/scm"
)

// activity is one move of a branch (docs.github.com/rest/repos/repos, "List
// repository activities"). A branch that was not there is at forty zeros.
type activity struct {
	Before    string    `json:"before"`
	After     string    `json:"after"`
	Ref       string    `json:"ref"`
	Timestamp time.Time `json:"timestamp"`
}

// Pushed asks for the branch's activities: pushes, merges, and what came through
// the API. Their pages have no numbers, but a cursor.
func (r *Repository) Pushed(ctx context.Context, branch, commit string) (time.Time, error) {
	doing := "find when " + short(commit) + " came to " + branch
	if err := checkBranch(branch); err != nil {
		return time.Time{}, err
	}
	ref := "refs/heads/" + branch
	query := url.Values{"ref": {ref}, "per_page": {strconv.Itoa(pageSize)}}
	page := func(int) ([]scm.Push, bool, error) {
		var list []activity
		resp, err := r.get(ctx, "activity", query, &list)
		if err != nil {
			return nil, false, err
		}
		query.Set("after", resp.After)
		var pushes []scm.Push
		for _, a := range list {
			if a.Ref == ref {
				pushes = append(pushes, scm.Push{Before: noZeros(a.Before), After: noZeros(a.After), Time: a.Timestamp})
			}
		}
		return pushes, resp.After != "", nil
	}
	at, err := scm.FindPush(commit, page, func(tip string) iter.Seq2[scm.Commit, error] { return r.Log(ctx, tip, "") })
	if err != nil {
		return time.Time{}, r.evidenceFault(doing, err, "contents:read")
	}
	return at, nil
}

// noZeros is a SHA, or nothing for git's null id.
func noZeros(sha string) string {
	if strings.Trim(sha, "0") == "" {
		return ""
	}
	return sha
}
