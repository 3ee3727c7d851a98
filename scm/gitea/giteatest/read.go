package giteatest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tagboat/scm/scmtest"
)

type object = map[string]any

func (c *call) repoObject() object {
	return object{
		"id": 1, "name": c.o.Name, "full_name": c.o.Owner + "/" + c.o.Name, "default_branch": c.o.Store.DefaultBranch(),
		"empty": false, "archived": c.o.Archived, "default_merge_style": "squash", "permissions": c.ownRights(),
	}
}

// ownRights are those of the token's user.
func (c *call) ownRights() object {
	word, known := c.o.Store.Permission(c.o.User)
	admin := word == "admin" || word == "owner" || !known && !c.o.NotRepoAdmin
	return object{"admin": admin, "push": c.mayWrite(), "pull": word != "none"}
}

func (c *call) repo() { c.json(http.StatusOK, c.repoObject()) }

func (c *call) getBranch() {
	name := c.args[0]
	sha, ok := c.o.Store.Branch(name)
	switch {
	case !ok && !c.newer(24):
		c.notFound("", "branch does not exist [name: "+name+"]")
		return
	case !ok:
		c.notFound("")
		return
	}
	i, _ := c.o.Store.Commit(sha)
	c.json(http.StatusOK, object{
		"name": name, "protected": c.o.Store.Protected(name),
		"commit": object{
			"id": sha, "message": i.Message, "url": c.web("commit/" + sha), "timestamp": stamp(i.Time),
			"author": object{"name": i.Author, "email": i.AuthorEmail}, "committer": object{"name": i.Author, "email": i.AuthorEmail},
		},
	})
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (c *call) web(path string) string {
	return "http://gitea.example/" + c.o.Owner + "/" + c.o.Name + "/" + path
}

// commitAt resolves a ref parameter, which is a full SHA here: a branch's name
// would not be the commit that was read.
func (c *call) commitAt(sha string) (scmtest.CommitInfo, bool) {
	if len(sha) != 40 {
		c.o.Report("giteatest: %s %s: %q is no full SHA", c.r.Method, c.r.URL.RequestURI(), sha)
	}
	return c.o.Store.Commit(sha)
}

func (c *call) getContents() {
	path, ref := c.args[0], c.query.Get("ref")
	i, ok := c.commitAt(ref)
	if !ok {
		message := ""
		if !c.newer(24) {
			message = "GetContentsOrList"
		}
		c.notFound(message, fmt.Sprintf("object does not exist [id: %s, rel_path: ]", ref))
		return
	}
	if slices.Contains(strings.Split(path, "/"), ".git") {
		c.broken("path contains a malformed path component [path: " + path + "]")
		return
	}
	e, err := c.o.Store.Entry(i.SHA, path)
	if err != nil {
		c.notFound("GetContentsOrList", fmt.Sprintf("object does not exist [id: , rel_path: %s]", path))
		return
	}
	if e.Type != "tree" {
		c.json(http.StatusOK, c.contents(path, e))
		return
	}
	entries, err := c.o.Store.Tree(i.SHA, path)
	if err != nil {
		c.broken(err.Error())
		return
	}
	list := []object{}
	for _, e := range entries {
		o := c.contents(path+"/"+e.Name, e)
		o["encoding"], o["content"] = nil, nil
		list = append(list, o)
	}
	c.json(http.StatusOK, list)
}

// contents is one entry. Its type does not tell an executable file.
func (c *call) contents(path string, e scmtest.TreeEntry) object {
	o := object{"name": e.Name, "path": path, "sha": e.SHA, "size": e.Size, "encoding": nil, "content": nil, "target": nil}
	switch e.Type {
	case "tree":
		o["type"] = "dir"
	case "commit":
		o["type"] = "submodule"
	default:
		b, err := c.o.Store.Blob(e.SHA)
		if err != nil {
			panic(err)
		}
		o["type"] = "file"
		if e.Mode == "120000" {
			o["type"], o["target"] = "symlink", string(b)
		} else if len(b) <= c.o.MaxBlob {
			o["encoding"], o["content"] = "base64", base64.StdEncoding.EncodeToString(b)
		}
	}
	return o
}

// getTree takes what git rev-parse takes, as far as it is known to be asked.
func (c *call) getTree() {
	sha, dir, path := strings.Cut(c.args[0], ":")
	entries, err := c.o.Store.Tree(sha, dir)
	if err != nil || path && c.o.NoTreePath {
		c.fail(http.StatusBadRequest, "sha not found [%s]", c.args[0])
		return
	}
	id := sha
	if path {
		e, err := c.o.Store.Entry(sha, dir)
		if err != nil {
			panic(err)
		}
		id = e.SHA
	} else if i, ok := c.o.Store.Commit(sha); ok {
		id = i.Tree
	}
	per, _ := strconv.Atoi(c.query.Get("per_page"))
	if per <= 0 || per > c.o.TreePage {
		per = c.o.TreePage
	}
	n, _ := strconv.Atoi(c.query.Get("page"))
	n = max(n, 1)
	from := min((n-1)*per, len(entries))
	to := min(from+per, len(entries))
	list := []object{}
	for _, e := range entries[from:to] {
		list = append(list, object{"path": e.Name, "mode": e.Mode, "type": e.Type, "size": e.Size, "sha": e.SHA})
	}
	truncated := to < len(entries)
	if !c.newer(25) {
		truncated = len(entries) > per // also on the last page
	}
	c.json(http.StatusOK, object{"sha": id, "tree": list, "page": n, "total_count": len(entries), "truncated": truncated})
}

func (c *call) commitObject(i scmtest.CommitInfo) object {
	who := object{"name": i.Author, "email": i.AuthorEmail, "date": stamp(i.Time)}
	parents := []object{}
	for _, p := range i.Parents {
		parents = append(parents, object{"sha": p, "created": "0001-01-01T00:00:00Z"})
	}
	return object{
		"sha": i.SHA, "created": stamp(i.Time), "html_url": c.web("commit/" + i.SHA), "parents": parents,
		"commit": object{"message": i.Message, "author": who, "committer": who, "tree": object{"sha": i.SHA}},
		"author": nil, "committer": nil, "files": nil,
	}
}

func (c *call) getCommit() {
	c.lean()
	sha, isBranch := strings.CutPrefix(c.args[0], "refs/heads/")
	if isBranch {
		if sha, isBranch = c.o.Store.Branch(sha); !isBranch {
			c.noCommit()
			return
		}
	}
	i, ok := c.commitAt(sha)
	if !ok {
		c.noCommit()
		return
	}
	c.json(http.StatusOK, c.commitObject(i))
}

func (c *call) noCommit() {
	if c.newer(24) {
		c.notFound("commit doesn't exist: " + c.args[0])
		return
	}
	c.notFound(c.args[0])
}

// lean demands that nothing is asked for that costs the server a process for each
// commit.
func (c *call) lean() {
	for _, k := range []string{"stat", "verification", "files"} {
		if c.query.Get(k) != "false" {
			c.o.Report("giteatest: %s: %s is not switched off", c.r.URL.RequestURI(), k)
		}
	}
}

func (c *call) listCommits() {
	c.lean()
	sha, path, not := c.query.Get("sha"), c.query.Get("path"), c.query.Get("not")
	_, ok := c.commitAt(sha)
	if !ok && path == "" {
		c.json(http.StatusNotFound, nil)
		return
	}
	if _, known := c.o.Store.Commit(not); !ok || not != "" && !known {
		c.broken("exit status 128 - fatal: bad object")
		return
	}
	var list []scmtest.CommitInfo
	var err error
	if not != "" {
		list, err = c.o.Store.Between(not, sha)
	} else {
		list, err = c.o.Store.Log(sha, path)
	}
	switch {
	case err != nil:
		c.broken(err.Error())
	case len(list) == 0 && path != "" && c.newer(27):
		c.notFound("")
	case len(list) == 0 && path != "":
		c.notFound("FileCommitsCount")
	default:
		objects := []object{}
		for _, i := range page(c, list) {
			objects = append(objects, c.commitObject(i))
		}
		c.json(http.StatusOK, objects)
	}
}

// getDiff writes the headers of the commit's diff against its first parent.
func (c *call) getDiff() {
	i, ok := c.commitAt(c.args[0])
	if !ok {
		c.noCommit()
		return
	}
	before := ""
	if len(i.Parents) > 0 {
		before = i.Parents[0]
	}
	paths, err := c.o.Store.ChangedPaths(before, i.SHA)
	if err != nil {
		c.broken(err.Error())
		return
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.WriteHeader(http.StatusOK)
	for _, p := range paths {
		_, _ = fmt.Fprintf(c.w, "diff --git %s %s\nindex 1111111..2222222 100644\n--- x\n+++ x\n@@ -1 +1 @@\n-diff --git a/fake b/fake\n+x\n", quote("a/"+p), quote("b/"+p))
	}
}

// quote is git's core.quotePath.
func quote(name string) string {
	var b strings.Builder
	special := false
	for _, x := range []byte(name) {
		switch {
		case x == '"' || x == '\\':
			special = true
			b.WriteByte('\\')
			b.WriteByte(x)
		case x < 0x20 || x >= 0x7f:
			special = true
			fmt.Fprintf(&b, `\%03o`, x)
		default:
			b.WriteByte(x)
		}
	}
	if !special {
		return name
	}
	return `"` + b.String() + `"`
}

// getRef answers a list of all whose names begin so, also for one (measured on
// 1.26.0, against its documentation).
func (c *call) getRef() {
	name := "refs/" + c.args[0]
	type ref struct{ name, sha string }
	var all []ref
	for _, b := range c.o.Store.Branches() {
		sha, _ := c.o.Store.Branch(b)
		all = append(all, ref{"refs/heads/" + b, sha})
	}
	for _, p := range c.o.Store.Pulls(nil) {
		all = append(all, ref{fmt.Sprintf("refs/pull/%d/head", p.Number), p.HeadSHA})
	}
	var list []object
	for _, r := range all {
		if strings.HasPrefix(r.name, name) {
			list = append(list, object{"ref": r.name, "object": object{"type": "commit", "sha": r.sha}})
		}
	}
	if len(list) == 0 {
		c.notFound("")
		return
	}
	c.json(http.StatusOK, list)
}
