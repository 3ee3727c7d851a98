package githubtest

import (
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"tagboat/scm/scmtest"
)

// object is an object of GitHub's description: known, and every other field that
// the description demands with an empty value of its type.
func (s *Server) object(schema string, known map[string]any) map[string]any {
	return s.fill(s.spec.doc.Components.Schemas[schema].Value, known)
}

func (s *Server) fill(schema *openapi3.Schema, known map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range schema.Required {
		if p := schema.Properties[name]; p != nil {
			out[name] = s.empty(p.Value)
		}
	}
	for k, v := range known {
		out[k] = v
	}
	return out
}

func (s *Server) empty(p *openapi3.Schema) any {
	switch {
	case p.Nullable:
		return nil
	case len(p.Enum) > 0:
		return p.Enum[0]
	case p.Type == nil:
		return s.emptyOneOf(p)
	case p.Type.Is("object"):
		return s.fill(p, nil)
	case p.Type.Is("array"):
		return []any{}
	case p.Type.Is("integer"), p.Type.Is("number"):
		return 0
	case p.Type.Is("boolean"):
		return false
	case p.Format == "uri":
		return s.web("x")
	case p.Format == "date-time":
		return stamp(time.Unix(0, 0))
	}
	return ""
}

func (s *Server) emptyOneOf(p *openapi3.Schema) any {
	for _, list := range []openapi3.SchemaRefs{p.OneOf, p.AnyOf, p.AllOf} {
		if len(list) > 0 {
			return s.empty(list[0].Value)
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (s *Server) fullName() string { return s.opts.Owner + "/" + s.opts.Name }

func (s *Server) web(path string) string { return s.base + "/" + s.fullName() + "/" + path }

func (s *Server) rest(path string) string {
	return s.URL() + "/repos/" + s.fullName() + "/" + path
}

func (s *Server) user(login string) map[string]any {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return s.object("simple-user", map[string]any{"login": login, "id": len(login), "node_id": "U_" + login, "type": kind})
}

const nodeID = "R_kgDOfake"

func (s *Server) repository(schema, fullName string) map[string]any {
	owner, name, _ := strings.Cut(fullName, "/")
	node := nodeID
	if fullName != s.fullName() {
		node = "R_kgDOfork"
	}
	return s.object(schema, map[string]any{
		"id": 42, "node_id": node, "name": name, "full_name": fullName, "owner": s.user(owner),
		"default_branch": s.Store.DefaultBranch(), "html_url": s.base + "/" + fullName, "url": s.URL() + "/repos/" + fullName,
		"allow_merge_commit": !s.opts.SquashOnly, "allow_squash_merge": true, "allow_rebase_merge": true,
		"allow_auto_merge": !s.opts.NoAutoMerge,
	})
}

func person(name, mail string, at time.Time) map[string]any {
	return map[string]any{"name": name, "email": mail, "date": stamp(at)}
}

// commit is a commit as repos/commits tells it.
func (s *Server) commit(c scmtest.CommitInfo) map[string]any {
	parents := []any{}
	for _, p := range c.Parents {
		parents = append(parents, map[string]any{"sha": p, "url": s.rest("commits/" + p), "html_url": s.web("commit/" + p)})
	}
	return s.object("commit", map[string]any{
		"sha": c.SHA, "node_id": "C_" + c.SHA[:8], "url": s.rest("commits/" + c.SHA), "html_url": s.web("commit/" + c.SHA), "parents": parents,
		"author": s.user(c.Author), "committer": s.user("web-flow"),
		"commit": map[string]any{
			"url": s.rest("git/commits/" + c.SHA), "message": c.Message, "comment_count": 0,
			"author": person(c.Author, c.AuthorEmail, c.Time), "committer": person("GitHub", "noreply@github.example", c.Time),
			"tree": map[string]any{"sha": c.Tree, "url": s.rest("git/trees/" + c.Tree)},
		},
	})
}

// gitCommit is a commit as git/commits tells it.
func (s *Server) gitCommit(c scmtest.CommitInfo, verified bool) map[string]any {
	parents := []any{}
	for _, p := range c.Parents {
		parents = append(parents, map[string]any{"sha": p, "url": s.rest("git/commits/" + p), "html_url": s.web("commit/" + p)})
	}
	reason := "unsigned"
	if verified {
		reason = "valid"
	}
	return s.object("git-commit", map[string]any{
		"sha": c.SHA, "url": s.rest("git/commits/" + c.SHA), "html_url": s.web("commit/" + c.SHA), "message": c.Message, "parents": parents,
		"author": person(c.Author, c.AuthorEmail, c.Time), "committer": person("GitHub", "noreply@github.example", c.Time),
		"tree":         map[string]any{"sha": c.Tree, "url": s.rest("git/trees/" + c.Tree)},
		"verification": map[string]any{"verified": verified, "reason": reason, "signature": nil, "payload": nil, "verified_at": nil},
	})
}

func (s *Server) ref(branch, sha string) map[string]any {
	return s.object("git-ref", map[string]any{
		"ref": "refs/heads/" + branch, "node_id": "REF_x", "url": s.rest("git/refs/heads/" + branch),
		"object": map[string]any{"type": "commit", "sha": sha, "url": s.rest("git/commits/" + sha)},
	})
}

// pull is a pull request; the full one is what POST and PATCH answer.
func (s *Server) pull(p scmtest.Pull, full bool) map[string]any {
	schema := "pull-request-simple"
	if full {
		schema = "pull-request"
	}
	headRepo := p.HeadRepo
	if headRepo == "" {
		headRepo = s.fullName()
	}
	headOwner, _, _ := strings.Cut(headRepo, "/")
	state := p.State
	if state == "merged" {
		state = "closed"
	}
	number := strconv.Itoa(p.Number)
	known := map[string]any{
		"id": 1000 + p.Number, "node_id": "PR_" + number, "number": p.Number, "state": state, "title": p.Title, "body": p.Body,
		"url": s.rest("pulls/" + number), "html_url": s.web("pull/" + number), "draft": p.Draft, "user": s.user(p.Author),
		"created_at": stamp(p.Created), "updated_at": stamp(p.Updated), "closed_at": when(p.Closed), "merged_at": nil, "merge_commit_sha": nil,
		"head":       map[string]any{"label": headOwner + ":" + p.Head, "ref": p.Head, "sha": p.HeadSHA, "user": s.user(headOwner), "repo": s.repository("repository", headRepo)},
		"base":       map[string]any{"label": s.opts.Owner + ":" + p.Base, "ref": p.Base, "sha": p.BaseSHA, "user": s.user(s.opts.Owner), "repo": s.repository("repository", s.fullName())},
		"auto_merge": nil, "labels": s.labels(p.Labels), "assignees": s.users(p.Assignees), "requested_reviewers": s.users(p.Reviewers),
		"requested_teams": s.teams(p.TeamReviewers),
	}
	if p.State == "merged" {
		known["merged_at"], known["merge_commit_sha"] = stamp(p.Closed), p.MergeSHA
	}
	if p.AutoMerge {
		known["auto_merge"] = map[string]any{"enabled_by": s.user(p.AutoMergeBy), "merge_method": "merge", "commit_title": "", "commit_message": ""}
	}
	if full {
		known["merged"] = p.State == "merged"
	}
	return s.object(schema, known)
}

func when(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

func (s *Server) labels(names []string) []any {
	out := []any{}
	for i, n := range names {
		out = append(out, map[string]any{
			"id": i + 1, "node_id": "LA_x", "url": s.rest("labels/x"), "name": n, "description": "", "color": "ededed", "default": false,
		})
	}
	return out
}

func (s *Server) users(logins []string) []any {
	out := []any{}
	for _, l := range logins {
		out = append(out, s.user(l))
	}
	return out
}

func (s *Server) teams(slugs []string) []any {
	out := []any{}
	for _, t := range slugs {
		out = append(out, s.object("team", map[string]any{"slug": t, "name": t, "permission": "push", "type": "organization"}))
	}
	return out
}
