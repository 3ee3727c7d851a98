package gitlabtest

import (
	"encoding/base64"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"tagboat/scm/scmtest"
)

func (s *Server) getProject(*request) answer {
	return answer{status: 200, body: s.projectShape()}
}

func (s *Server) getBranch(q *request) answer {
	if _, ok := s.Store.Branch(q.args[0]); !ok {
		return say(404, "404 Branch Not Found")
	}
	return answer{status: 200, body: s.branchShape(q.args[0])}
}

// listBranches knows of search what is asked of it: ^start.
func (s *Server) listBranches(q *request) answer {
	start, anchored := strings.CutPrefix(q.query.Get("search"), "^")
	list := []map[string]any{}
	for _, name := range s.Store.Branches() {
		if strings.HasPrefix(name, start) || !anchored && strings.Contains(name, start) {
			list = append(list, s.branchShape(name))
		}
	}
	part, h := page(q, list)
	return answer{status: 200, body: part, header: h}
}

func (s *Server) deleteBranch(q *request) answer {
	switch err := s.Store.DeleteBranch(q.args[0], ""); {
	case errors.Is(err, scmtest.ErrBranchMissing):
		return say(404, "404 Branch Not Found")
	case errors.Is(err, scmtest.ErrProtected):
		return say(403, "403 Forbidden")
	case err != nil:
		return say(400, err.Error())
	}
	return answer{status: 204}
}

// resolve finds the commit of a SHA, a branch or HEAD; "" is the default branch.
func (s *Server) resolve(name string) (scmtest.CommitInfo, bool) {
	if name == "" || name == "HEAD" {
		name = s.Store.DefaultBranch()
	}
	if sha, ok := s.Store.Branch(name); ok {
		name = sha
	}
	return s.Store.Commit(name)
}

func (s *Server) listTree(q *request) answer {
	c, ok := s.resolve(q.query.Get("ref"))
	if !ok {
		return say(404, "404 Tree Not Found")
	}
	dir := q.query.Get("path")
	entries, err := s.Store.Tree(c.SHA, dir)
	if err != nil {
		return say(404, "404 invalid revision or path Not Found")
	}
	// GitLab lists directories first.
	slices.SortStableFunc(entries, func(a, b scmtest.TreeEntry) int { return isTree(b) - isTree(a) })
	var all []map[string]any
	for _, e := range entries {
		all = append(all, map[string]any{"id": e.SHA, "name": e.Name, "type": e.Type, "path": path.Join(dir, e.Name), "mode": e.Mode})
	}
	list, h := page(q, all)
	return answer{status: 200, body: orEmpty(list), header: h}
}

func isTree(e scmtest.TreeEntry) int {
	if e.Type == "tree" {
		return 1
	}
	return 0
}

func orEmpty[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}

func (s *Server) getFile(q *request) answer {
	c, ok := s.resolve(q.query.Get("ref"))
	if !ok {
		return say(404, "404 Commit Not Found")
	}
	e, err := s.Store.Entry(c.SHA, q.args[0])
	if err != nil || e.Type != "blob" {
		return say(404, "404 File Not Found")
	}
	content, err := s.Store.Blob(e.SHA)
	if err != nil {
		return say(500, "500 Internal Server Error")
	}
	return answer{status: 200, body: map[string]any{
		"file_name": path.Base(q.args[0]), "file_path": q.args[0], "size": len(content), "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(content), "content_sha256": sha256Hex(content), "ref": q.query.Get("ref"),
		"blob_id": e.SHA, "commit_id": c.SHA, "last_commit_id": s.lastCommit(c.SHA, q.args[0]), "execute_filemode": e.Mode == "100755",
	}}
}

// lastCommit is the newest commit that leads to sha and changed the path.
func (s *Server) lastCommit(sha, file string) string {
	log, err := s.Store.Log(sha, file)
	if err != nil || len(log) == 0 {
		return ""
	}
	return log[0].SHA
}

func (s *Server) listCommits(q *request) answer {
	c, ok := s.resolve(q.query.Get("ref_name"))
	if !ok {
		return say(404, "404 Commit Not Found")
	}
	log, err := s.Store.Log(c.SHA, q.query.Get("path"))
	if err != nil {
		return say(500, err.Error())
	}
	part, h := page(q, log)
	list := []map[string]any{}
	for _, c := range part {
		list = append(list, s.commitShape(c))
	}
	return answer{status: 200, body: list, header: h}
}

func (s *Server) compare(q *request) answer {
	from, ok := s.resolve(q.query.Get("from"))
	to, also := s.resolve(q.query.Get("to"))
	if !ok || !also {
		return say(404, "404 Ref Not Found")
	}
	start := from.SHA
	if q.query.Get("straight") != "true" {
		if start, ok = s.Store.MergeBase(from.SHA, to.SHA); !ok {
			return say(404, "404 Ref Not Found")
		}
	}
	changed, err := s.Store.ChangedPaths(start, to.SHA)
	if err != nil {
		return say(500, err.Error())
	}
	between, err := s.Store.Between(from.SHA, to.SHA)
	if err != nil {
		return say(500, err.Error())
	}
	diffs, commits := s.diffs(start, to.SHA, changed[:min(len(changed), s.DiffLimit)]), []map[string]any{}
	for _, c := range slices.Backward(between) { // oldest first
		commits = append(commits, s.commitShape(c))
	}
	var last any
	if len(commits) > 0 {
		last = commits[len(commits)-1]
	}
	return answer{status: 200, body: map[string]any{
		"commit": last, "commits": commits, "diffs": diffs, "compare_timeout": len(changed) > s.DiffLimit,
		"compare_same_ref": from.SHA == to.SHA, "web_url": s.web() + "/-/compare",
	}}
}

// diffs are the changes of paths; a deleted and a new file of the same content
// are one rename.
func (s *Server) diffs(from, to string, paths []string) []map[string]any {
	gone := map[string]string{} // blob to path
	for _, p := range paths {
		if a, b := s.entry(from, p), s.entry(to, p); a.Mode != "0" && b.Mode == "0" {
			gone[a.SHA] = p
		}
	}
	list, renamed := []map[string]any{}, map[string]bool{}
	for _, p := range paths {
		a, b, old := s.entry(from, p), s.entry(to, p), p
		if was, ok := gone[b.SHA]; ok && a.Mode == "0" {
			a, old = s.entry(from, was), was
			renamed[was] = true
		}
		list = append(list, map[string]any{"old_path": old, "new_path": p, "a_mode": a.Mode, "b_mode": b.Mode, "diff": "",
			"new_file": a.Mode == "0", "renamed_file": old != p, "deleted_file": b.Mode == "0"})
	}
	return slices.DeleteFunc(list, func(d map[string]any) bool { return d["deleted_file"] == true && renamed[d["new_path"].(string)] })
}

// entry is a file at a commit; what is not there has mode 0.
func (s *Server) entry(sha, path string) scmtest.TreeEntry {
	e, err := s.Store.Entry(sha, path)
	if err != nil {
		return scmtest.TreeEntry{Mode: "0"}
	}
	return e
}

func (s *Server) mergeBase(q *request) answer {
	refs := q.query["refs[]"]
	if len(refs) < 2 {
		return say(400, "Provide at least 2 refs")
	}
	a, ok := s.resolve(refs[0])
	b, also := s.resolve(refs[1])
	if !ok || !also {
		return say(400, "Could not find ref: "+strings.Join(refs, ", "))
	}
	sha, ok := s.Store.MergeBase(a.SHA, b.SHA)
	if !ok {
		return say(404, "404 Merge Base Not Found")
	}
	c, _ := s.Store.Commit(sha)
	return answer{status: 200, body: s.commitShape(c)}
}

func (s *Server) listUsers(q *request) answer {
	list := []map[string]any{}
	for _, login := range s.logins() {
		if strings.EqualFold(login, q.query.Get("username")) {
			list = append(list, s.userShape(login))
		}
	}
	return answer{status: 200, body: list}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
