package gitea

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"tagboat/scm"
)

// activity is an entry of a repository's feed. Content is JSON in text where
// something was pushed, and the text of a title elsewhere.
type activity struct {
	ID      int64     `json:"id"`
	OpType  string    `json:"op_type"`
	RefName string    `json:"ref_name"`
	Content string    `json:"content"`
	Created time.Time `json:"created"`
}

// pushed is the content of a push (modules/repository/commits.go, PushCommits). Its
// list of commits is cut after five, and all of it may be missing where it was long.
type pushed struct {
	HeadCommit *struct{ Sha1 string }
	CompareURL string
}

// compared are the two commits of a CompareURL, owner/name/compare/OLD...NEW. A new
// branch's is compared with the commit before the ten newest, or with nothing.
var compared = regexp.MustCompile(`/([0-9a-f]{40,64})\.\.\.([0-9a-f]{40,64})$`)

// Pushed implements scm.Evidence. Commits through the API and merges are in the
// feed like pushes. It cannot be asked for by branch, and holds issues too: all of
// it counts as read.
func (r *Repository) Pushed(ctx context.Context, branch, commit string) (time.Time, error) {
	f := &feed{branch: "refs/heads/" + branch}
	page := func(n int) ([]scm.Push, bool, error) {
		list, total, err := r.feedPage(ctx, n)
		if err != nil {
			return nil, false, err
		}
		f.read += len(list)
		pushes, err := f.pushes(list)
		return pushes, len(list) > 0 && f.read < total, err
	}
	at, err := scm.FindPush(commit, page, func(tip string) iter.Seq2[scm.Commit, error] { return r.Log(ctx, tip, "") })
	return at, r.describe(err, "find when %s came to %s", short(commit), branch)
}

// feedPage is a page of what happened in the repository, newest first, and how much
// did in all.
func (r *Repository) feedPage(ctx context.Context, n int) (list []activity, total int, err error) {
	header, err := r.repoCall(ctx, request{method: http.MethodGet, path: "/activities/feeds", query: paged(url.Values{}, n), out: &list})
	if err != nil {
		return nil, 0, err
	}
	if total, err = strconv.Atoi(header.Get("X-Total-Count")); err != nil {
		return nil, 0, fmt.Errorf("GET activities: no X-Total-Count: a proxy may take it out: %w", err)
	}
	return list, total, nil
}

// feed turns a repository's feed, page by page, into the pushes of a branch.
type feed struct {
	branch string // as a reference
	read   int    // entries, of all branches and issues
	newer  string // After of the push that was seen last
}

// pushes are those of a page. A branch that was made has two entries, first one
// without content, and what it was made from is in neither: the older entry stands
// for the branch being new.
func (f *feed) pushes(list []activity) ([]scm.Push, error) {
	// Gitea sorts by whole seconds alone.
	slices.SortStableFunc(list, func(a, b activity) int { return cmp.Compare(b.ID, a.ID) })
	var pushes []scm.Push
	for _, a := range list {
		p := scm.Push{Time: a.Created}
		switch {
		case a.RefName != f.branch:
			continue
		case a.OpType == "commit_repo" && a.Content == "":
			p.After = f.newer
		case a.OpType == "commit_repo", a.OpType == "mirror_sync_push":
			var err error
			if p, err = pushOf(a); err != nil {
				return nil, err
			}
		case a.OpType != "delete_branch":
			continue
		}
		if f.newer = p.After; p.After != "" || a.OpType == "delete_branch" {
			pushes = append(pushes, p)
		}
	}
	return pushes, nil
}

func pushOf(a activity) (scm.Push, error) {
	var content pushed
	if err := json.Unmarshal([]byte(a.Content), &content); err != nil {
		return scm.Push{}, fmt.Errorf("the record of a push: %w", err)
	}
	p := scm.Push{Time: a.Created}
	if content.HeadCommit != nil {
		p.After = content.HeadCommit.Sha1
	}
	if m := compared.FindStringSubmatch(content.CompareURL); m != nil {
		p.Before = m[1]
	}
	return p, nil
}
