package giteatest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"tagboat/scm/scmtest"
)

type fileChange struct{ Operation, Path, Content, SHA string }

type changes struct {
	Branch    string       `json:"branch"`
	NewBranch string       `json:"new_branch"`
	Message   string       `json:"message"`
	Files     []fileChange `json:"files"`
}

// refusal is a status with its text.
type refusal struct {
	status int
	text   string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

func (c *call) refuse(r *refusal) {
	if r.status == http.StatusInternalServerError {
		c.broken(r.text)
		return
	}
	c.fail(r.status, "%s", r.text)
}

// changeFiles is POST contents: one commit on the tip of a branch, which goes to
// that branch or to a new one.
func (c *call) changeFiles() {
	var in changes
	if !c.decode(&in) {
		return
	}
	base, target, r := c.checkBranches(&in)
	if r != nil {
		c.refuse(r)
		return
	}
	var edits []scmtest.TreeChange
	for _, f := range in.Files {
		edit, r := c.checkFile(base, f)
		if r != nil {
			c.refuse(r)
			return
		}
		edits = append(edits, edit)
	}
	made, r := c.commit(base, target, in, edits)
	if r != nil {
		c.refuse(r)
		return
	}
	c.json(http.StatusCreated, object{"files": []object{}, "commit": c.changeObject(made)})
}

func (c *call) checkBranches(in *changes) (base, target string, r *refusal) {
	base, ok := c.o.Store.Branch(in.Branch)
	_, exists := c.o.Store.Branch(in.NewBranch)
	switch {
	case len(in.Files) == 0 || in.Branch == "" || in.Message == "":
		c.o.Report("giteatest: POST contents without files, branch or message: %s", c.body)
		return "", "", refuse(http.StatusUnprocessableEntity, "[Files]: Required")
	case len(in.NewBranch) > 100:
		return "", "", refuse(http.StatusUnprocessableEntity, "[NewBranchName]: MaxSize")
	case in.NewBranch != "" && errors.Is(c.o.Store.CheckName(in.NewBranch), scmtest.ErrBranchName):
		return "", "", refuse(http.StatusUnprocessableEntity, "[NewBranchName]: GitRefName")
	case !ok:
		if !c.newer(24) {
			return "", "", refuse(http.StatusNotFound, "branch does not exist [name: %s]", in.Branch)
		}
		return "", "", refuse(http.StatusNotFound, "branch does not exist [repo_id: 1 name: %s]", in.Branch)
	case in.NewBranch == "" && c.o.Store.Protected(in.Branch):
		return "", "", refuse(http.StatusForbidden, "user cannot commit to repo [user: %s]", c.o.User)
	case in.NewBranch == "":
		return base, in.Branch, nil
	case exists:
		return "", "", refuse(http.StatusUnprocessableEntity, "branch already exists [name: %s]", in.NewBranch)
	}
	return base, in.NewBranch, nil
}

func (c *call) checkFile(base string, f fileChange) (scmtest.TreeChange, *refusal) {
	content, err := base64.StdEncoding.DecodeString(f.Content)
	none := scmtest.TreeChange{}
	switch {
	case err != nil:
		return none, refuse(http.StatusUnprocessableEntity, "%v", err)
	case len(f.Path) > 500:
		return none, refuse(http.StatusUnprocessableEntity, "[Path]: MaxSize")
	case path.Clean("/" + f.Path)[1:] != f.Path, slices.Contains(strings.Split(strings.ToLower(f.Path), "/"), ".git"):
		return none, refuse(http.StatusUnprocessableEntity, "path contains a malformed path component [path: %s]", f.Path)
	case !slices.Contains([]string{"create", "update", "delete"}, f.Operation):
		c.o.Report("giteatest: operation %q", f.Operation)
		return none, refuse(http.StatusInternalServerError, "invalid file operation")
	}
	e, err := c.o.Store.Entry(base, f.Path)
	if f.Operation != "create" {
		if err != nil {
			return none, c.noFile(f.Path)
		}
		if f.SHA == "" { // Gitea goes on without a guard
			c.o.Report("giteatest: %s %s without a blob id", f.Operation, f.Path)
			return none, refuse(http.StatusUnprocessableEntity, "a SHA or commit ID must be proved when updating a file")
		}
		if f.SHA != e.SHA {
			return none, refuse(http.StatusUnprocessableEntity, "sha does not match [given: %s, expected: %s]", f.SHA, e.SHA)
		}
	}
	if f.Operation == "delete" {
		return scmtest.TreeChange{Path: f.Path, Delete: true}, nil
	}
	if r := c.checkTarget(base, f, e, err == nil); r != nil {
		return none, r
	}
	return scmtest.TreeChange{Path: f.Path, Content: content}, nil
}

// noFile is a file that has gone: a 500 in old versions.
func (c *call) noFile(path string) *refusal {
	if !c.newer(25) {
		return refuse(http.StatusInternalServerError, "object does not exist [id: , rel_path: %s]", path)
	}
	return refuse(http.StatusNotFound, "object does not exist [id: , rel_path: %s]", path)
}

func (c *call) checkTarget(base string, f fileChange, e scmtest.TreeEntry, exists bool) *refusal {
	for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
		if above, err := c.o.Store.Entry(base, dir); err == nil && above.Type != "tree" {
			return refuse(http.StatusUnprocessableEntity, "a file exists where you’re trying to create a subdirectory [path: %s]", dir)
		}
	}
	switch {
	case exists && e.Mode == "120000":
		return refuse(http.StatusUnprocessableEntity, "a symbolic link exists where you’re trying to create a subdirectory [path: %s]", f.Path)
	case exists && e.Type == "tree":
		return refuse(http.StatusUnprocessableEntity, "a directory exists where you’re trying to create a file [path: %s]", f.Path)
	case exists && f.Operation == "create":
		return refuse(http.StatusUnprocessableEntity, "repository file already exists [path: %s]", f.Path)
	}
	return nil
}

func (c *call) commit(base, target string, in changes, edits []scmtest.TreeChange) (scmtest.CommitInfo, *refusal) {
	tree, err := c.o.Store.WriteTree(base, edits)
	if err != nil {
		return scmtest.CommitInfo{}, refuse(http.StatusInternalServerError, "%v", err)
	}
	message := strings.TrimSpace(in.Message) + "\n"
	sha, err := c.o.Store.WriteCommit(tree, []string{base}, message, c.o.User, c.o.Store.Now())
	if err != nil {
		return scmtest.CommitInfo{}, refuse(http.StatusInternalServerError, "%v", err)
	}
	c.once(&c.o.BeforeCommit)
	expect := base
	if in.NewBranch != "" {
		expect = ""
	}
	if err := c.o.Store.SetBranch(target, expect, sha, false); err != nil {
		return scmtest.CommitInfo{}, c.pushRefused(target, err)
	}
	made, _ := c.o.Store.Commit(sha)
	return made, nil
}

func (s *Server) once(f *func()) {
	s.mu.Lock()
	g := *f
	*f = nil
	s.mu.Unlock()
	if g != nil {
		g()
	}
}

// pushRefused is a push that git or a hook refused after all checks: 403 with its
// words since 1.26, 500 before, and 500 always for one that came too late.
func (c *call) pushRefused(branch string, err error) *refusal {
	var text string
	switch {
	case errors.Is(err, scmtest.ErrProtected):
		text = "Not allowed to push to protected branch " + branch
	case errors.Is(err, scmtest.ErrNameConflict):
		text = fmt.Sprintf("cannot lock ref 'refs/heads/%s': 'refs/heads/%s' exists; cannot create 'refs/heads/%[1]s'", branch, c.inTheWay(branch))
	default:
		return refuse(http.StatusInternalServerError, "PushOutOfDate Error: %v", err)
	}
	if !c.newer(26) {
		return refuse(http.StatusInternalServerError, "%s", text)
	}
	return refuse(http.StatusForbidden, "%s", text)
}

// inTheWay is the branch whose name is above or below another's.
func (c *call) inTheWay(branch string) string {
	all := c.o.Store.Branches()
	i := slices.IndexFunc(all, func(b string) bool {
		return strings.HasPrefix(branch, b+"/") || strings.HasPrefix(b, branch+"/")
	})
	return all[max(i, 0)]
}

func (c *call) changeObject(i scmtest.CommitInfo) object {
	o := c.commitObject(i)
	inner := o["commit"].(object)
	o["message"], o["author"], o["committer"], o["created"] = i.Message, inner["author"], inner["committer"], "0001-01-01T00:00:00Z"
	delete(o, "commit")
	return o
}

// putBranch moves a branch: old_commit_id is compared with the database, and once
// more by git push --force-with-lease.
func (c *call) putBranch() {
	if !c.newer(26) {
		c.w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var in struct {
		New   string `json:"new_commit_id"`
		Old   string `json:"old_commit_id"`
		Force bool   `json:"force"`
	}
	if !c.decode(&in) {
		return
	}
	if in.New == "" || in.Old == "" {
		c.o.Report("giteatest: PUT branches without both commits: %s", c.body)
	}
	branch := c.args[0]
	at, ok := c.o.Store.Branch(branch)
	_, known := c.o.Store.Commit(in.New)
	switch {
	case !ok:
		c.notFound("", fmt.Sprintf("branch does not exist [repo_id: 1 name: %s]", branch))
		return
	case at != in.Old:
		c.fail(http.StatusUnprocessableEntity, "branch commit does not match [expected: %s, given: %s]", in.Old, at)
		return
	case !known:
		c.broken("object does not exist [id: " + in.New + ", rel_path: ]")
		return
	case !in.Force && !c.o.Store.IsAncestor(at, in.New):
		c.fail(http.StatusUnprocessableEntity, "Force push %s need a confirm force parameter", branch)
		return
	}
	c.once(&c.o.BeforeSwapPush)
	err := c.o.Store.SetBranch(branch, in.Old, in.New, true)
	switch {
	case errors.Is(err, scmtest.ErrProtected):
		c.fail(http.StatusForbidden, "branch %s is protected from force push", branch)
	case err != nil:
		c.fail(http.StatusForbidden, "push is rejected")
	default:
		c.w.WriteHeader(http.StatusNoContent)
	}
}

func (c *call) deleteBranch() {
	branch := c.args[0]
	err := c.o.Store.DeleteBranch(branch, "")
	switch {
	case errors.Is(err, scmtest.ErrBranchMissing) && !c.newer(25):
		c.broken("branch does not exist [name: " + branch + "]")
	case errors.Is(err, scmtest.ErrBranchMissing):
		c.notFound("", fmt.Sprintf("branch does not exist [name: %s]", branch))
	case branch == c.o.Store.DefaultBranch() && !c.newer(26):
		c.fail(http.StatusForbidden, "can not delete default branch")
	case branch == c.o.Store.DefaultBranch():
		c.fail(http.StatusForbidden, "can not delete default or pull request target branch")
	case err != nil:
		c.fail(http.StatusForbidden, "branch protected")
	default:
		c.w.WriteHeader(http.StatusNoContent)
	}
}
