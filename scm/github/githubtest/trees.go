package githubtest

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"tagboat/scm/scmtest"
)

// getTree takes a tree, a commit, a branch, or COMMIT:PATH. A recursive listing
// is refused: the driver's cost must not grow with the repository.
func getTree(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	if r.q("recursive") != "" {
		s.t.Errorf("fake GitHub: %s lists a whole tree", r.URL)
	}
	at, dir, deep := strings.Cut(r.params["tree_sha"], ":")
	if deep && s.opts.NoTreePaths {
		return refuse(http.StatusNotFound, "Not Found")
	}
	sha := at
	if c, ok := s.resolve(at); ok {
		sha = c.Tree
	}
	entries, err := s.Store.Tree(sha, dir)
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	if dir != "" {
		e, err := s.Store.Entry(sha, dir)
		if err != nil {
			return refuse(http.StatusNotFound, "Not Found")
		}
		sha = e.SHA
	}
	truncated := s.opts.Truncate > 0 && len(entries) > s.opts.Truncate
	if truncated {
		entries = entries[:s.opts.Truncate]
	}
	list := []any{}
	for _, e := range entries {
		item := map[string]any{"path": e.Name, "mode": e.Mode, "type": e.Type, "sha": e.SHA}
		if e.Type == "blob" {
			item["size"] = e.Size
		}
		list = append(list, item)
	}
	return http.StatusOK, s.object("git-tree", map[string]any{"sha": sha, "tree": list, "truncated": truncated, "url": s.rest("git/trees/" + sha)})
}

func createTree(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	var in struct {
		BaseTree string `json:"base_tree"`
		Tree     []struct {
			Path, Mode, Type string
			SHA, Content     *string
		}
	}
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if _, isCommit := s.Store.Commit(in.BaseTree); isCommit {
		return refuse(http.StatusUnprocessableEntity, "base_tree is not a valid tree oid")
	}
	var changes []scmtest.TreeChange
	for _, e := range in.Tree {
		c := scmtest.TreeChange{Path: e.Path, Mode: e.Mode}
		switch {
		case e.Content != nil && e.SHA != nil:
			return refuse(http.StatusUnprocessableEntity, "Cannot specify both sha and content for a tree entry")
		case e.Mode == "":
			return refuse(http.StatusUnprocessableEntity, "Must supply a valid tree.mode")
		case e.Content != nil:
			c.Content = []byte(*e.Content)
		case e.SHA != nil:
			c.SHA = *e.SHA
		default:
			c.Delete = true
		}
		changes = append(changes, c)
	}
	tree, err := s.Store.WriteTree(in.BaseTree, changes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(http.StatusUnprocessableEntity, "GitRPC::BadObjectState")
	case errors.Is(err, scmtest.ErrPath):
		return refuse(http.StatusUnprocessableEntity, "tree.path contains a malformed path component")
	case err != nil:
		return refuse(http.StatusUnprocessableEntity, "Invalid tree info")
	}
	return http.StatusCreated, s.object("git-tree", map[string]any{"sha": tree, "tree": []any{}, "truncated": false, "url": s.rest("git/trees/" + tree)})
}

func getBlob(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	content, err := s.Store.Blob(r.params["file_sha"])
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, s.object("blob", map[string]any{
		"sha": r.params["file_sha"], "url": s.rest("git/blobs/x"), "size": len(content), "encoding": "base64", "content": wrapped64(content),
	})
}

// wrapped64 breaks lines after 60 characters, as GitHub does.
func wrapped64(content []byte) string {
	text := base64.StdEncoding.EncodeToString(content)
	var b strings.Builder
	for len(text) > 0 {
		n := min(60, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return b.String()
}

func createBlob(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	var in struct{ Content, Encoding string }
	if err := decode(r.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	content := []byte(in.Content)
	if in.Encoding == "base64" {
		var err error
		if content, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return refuse(http.StatusUnprocessableEntity, "content is not valid Base64")
		}
	}
	sha, err := s.Store.WriteBlob(content)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	return http.StatusCreated, s.object("short-blob", map[string]any{"sha": sha, "url": s.rest("git/blobs/" + sha)})
}

// getContents follows a symlink to a file and leaves out what is over 1 MB. It
// demands a SHA: a branch may move between two reads.
func getContents(s *Server, _ http.ResponseWriter, r *request) (int, any) {
	if !isSHA(r.q("ref")) {
		s.t.Errorf("fake GitHub: %s reads a file by something else than a commit's SHA", r.URL)
	}
	c, ok := s.Store.Commit(r.q("ref"))
	if !ok {
		return refuse(http.StatusNotFound, "No commit found for the ref "+r.q("ref"))
	}
	p := r.params["path"]
	e, err := s.Store.Entry(c.SHA, p)
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	content, _ := s.Store.Blob(e.SHA)
	switch {
	case e.Type == "tree":
		return s.directory(c.SHA, p)
	case e.Type == "commit":
		return http.StatusOK, s.content(p, e, map[string]any{"type": "submodule", "submodule_git_url": "https://git.example/x.git"})
	case e.Mode == "120000":
		target := path.Join(path.Dir(p), string(content))
		te, err := s.Store.Entry(c.SHA, target)
		if err != nil || te.Type != "blob" || te.Mode == "120000" {
			return http.StatusOK, s.content(p, e, map[string]any{"type": "symlink", "target": string(content)})
		}
		e.SHA, e.Size = te.SHA, te.Size
		content, _ = s.Store.Blob(te.SHA)
	}
	known := map[string]any{"type": "file", "encoding": "base64", "content": wrapped64(content)}
	if len(content) > 1<<20 {
		known["encoding"], known["content"] = "none", ""
	}
	return http.StatusOK, s.content(p, e, known)
}

func isSHA(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

func (s *Server) content(p string, e scmtest.TreeEntry, known map[string]any) map[string]any {
	out := map[string]any{
		"name": path.Base(p), "path": p, "sha": e.SHA, "size": e.Size, "url": s.rest("contents/x"), "git_url": s.rest("git/blobs/x"),
		"html_url": s.web("blob/x"), "download_url": s.web("raw/x"),
		"_links": map[string]any{"self": s.rest("contents/x"), "git": s.rest("git/blobs/x"), "html": s.web("blob/x")},
	}
	for k, v := range known {
		out[k] = v
	}
	return out
}

func (s *Server) directory(commit, p string) (int, any) {
	entries, err := s.Store.Tree(commit, p)
	if err != nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	out := []any{}
	for _, e := range entries[:min(len(entries), 1000)] {
		kind := map[string]string{"tree": "dir", "blob": "file", "commit": "file"}[e.Type]
		out = append(out, s.content(path.Join(p, e.Name), e, map[string]any{"type": kind}))
	}
	return http.StatusOK, out
}
