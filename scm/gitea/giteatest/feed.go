package giteatest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"tagboat/scm/scmtest"
)

// listFeed is the repository's feed, newest first: every move of a branch, the
// merge of a pull request once more, and all that has nothing to do with either.
func (c *call) listFeed() {
	type entry struct {
		scmtest.Move
		op string
	}
	var all []entry
	for _, m := range c.o.Store.Moves() {
		switch m.Kind {
		case "pr_merge":
			all = append(all, entry{m, "merge_pull_request"}, entry{m, "commit_repo"})
		case "branch_deletion":
			all = append(all, entry{m, "delete_branch"})
		default:
			all = append(all, entry{m, "commit_repo"})
		}
	}
	list := []object{}
	for _, e := range page(c, all) {
		list = append(list, c.feedObject(e.Move, e.op))
	}
	c.w.Header().Del("X-HasMore")
	c.json(http.StatusOK, list)
}

func (c *call) feedObject(m scmtest.Move, op string) object {
	ref, content := "refs/heads/"+m.Branch, ""
	switch op {
	case "commit_repo":
		content = c.pushContent(m)
	case "merge_pull_request":
		ref, content = "", "7|Promote todo-api"
	}
	return object{
		"id": m.ID, "user_id": 1, "op_type": op, "act_user_id": 1, "act_user": object{"login": c.o.User}, "repo_id": 1, "repo": c.repoObject(),
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
