package giteatest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"tagboat/scm/scmtest"
)

// listFeed is the repository's feed, newest first by whole seconds and oldest first
// within one (measured on 1.26.0 with SQLite, the query has no other order): every
// move of a branch, the merge of a pull request once more, and before a new
// branch's push an entry without content.
func (c *call) listFeed() {
	type entry struct {
		scmtest.Move
		id int
		op string
	}
	var all []entry
	add := func(m scmtest.Move, op string, n int) { all = append(all, entry{m, 2*m.ID + n, op}) }
	for _, m := range c.o.Store.Moves() {
		switch m.Kind {
		case "pr_merge":
			add(m, "merge_pull_request", 2)
			add(m, "commit_repo", 1)
		case "branch_deletion":
			add(m, "delete_branch", 1)
		case "branch_creation":
			add(m, "commit_repo", 2)
			add(m, "commit_repo", 1)
		default:
			add(m, "commit_repo", 1)
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.Time.Unix(), a.Time.Unix()), cmp.Compare(a.id, b.id))
	})
	list := []object{}
	for _, e := range page(c, all) {
		list = append(list, c.feedObject(e.Move, e.id, e.op))
	}
	c.w.Header().Del("X-HasMore")
	c.json(http.StatusOK, list)
}

func (c *call) feedObject(m scmtest.Move, id int, op string) object {
	ref, content := "refs/heads/"+m.Branch, ""
	switch op {
	case "commit_repo":
		if m.Kind != "branch_creation" || id%2 == 0 {
			content = c.pushContent(m)
		}
	case "merge_pull_request":
		ref, content = "", "7|Promote todo-api"
	}
	return object{
		"id": id, "user_id": 1, "op_type": op, "act_user_id": 1, "act_user": object{"login": c.o.User}, "repo_id": 1, "repo": c.repoObject(),
		"comment_id": 0, "comment": nil, "ref_name": ref, "is_private": false, "content": content, "created": stamp(m.Time),
	}
}

// pushContent is what modules/repository.PushCommits is as JSON: five commits at
// most, and a comparison with the commit that the branch was at. That of a new
// branch is the one before the ten newest.
func (c *call) pushContent(m scmtest.Move) string {
	before, news := m.Before, []scmtest.CommitInfo(nil)
	var err error
	if before != "" {
		news, err = c.o.Store.Between(before, m.After)
	} else if news, err = c.o.Store.Log(m.After, ""); len(news) > 10 {
		news, before = news[:10], news[10].SHA
	}
	if err != nil {
		panic(err)
	}
	commits := []object{}
	for _, i := range news[:min(len(news), 5)] {
		commits = append(commits, object{"Sha1": i.SHA, "Message": i.Message, "AuthorName": i.Author})
	}
	content := object{"Commits": commits, "HeadCommit": object{"Sha1": m.After}, "CompareURL": "", "Len": len(news)}
	if before != "" {
		content["CompareURL"] = fmt.Sprintf("%s/%s/compare/%s...%s", c.o.Owner, c.o.Name, before, m.After)
	}
	b, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return string(b)
}
