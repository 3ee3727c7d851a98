package githubtest

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tagboat/scm/scmtest"
)

//go:embed testdata/schema.graphql
var schemaText string

//nolint:gochecknoglobals // the embedded file, parsed once for all tests
var loadSchema = sync.OnceValues(func() (*ast.Schema, error) {
	return gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: schemaText})
})

// CheckDocument checks a GraphQL document, and variables for it, against GitHub's
// schema, and gives the name of its one field.
func CheckDocument(document string, variables map[string]any) (field string, err error) {
	schema, err := loadSchema()
	if err != nil {
		return "", fmt.Errorf("load GitHub's schema: %w", err)
	}
	doc, errs := gqlparser.LoadQueryWithRules(schema, document, rules.NewDefaultRules())
	if len(errs) > 0 {
		return "", errs
	}
	if len(doc.Operations) != 1 || len(doc.Operations[0].SelectionSet) != 1 {
		return "", errors.New("one operation with one field is wanted")
	}
	op := doc.Operations[0]
	if _, err := validator.VariableValues(schema, op, variables); err != nil {
		return "", err
	}
	selected, ok := op.SelectionSet[0].(*ast.Field)
	if !ok {
		return "", errors.New("a field is wanted")
	}
	return selected.Name, nil
}

// graphRefusal is an entry of GraphQL's errors.
type graphRefusal struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (s *Server) serveGraphQL(w *httptest.ResponseRecorder, req *http.Request, body []byte) string {
	var in struct {
		Query     string
		Variables map[string]any
	}
	if s.opts.NoGraphQL {
		write(w, Answer{Status: http.StatusNotFound, Message: "Not Found"})
		return "GraphQL"
	}
	if err := decode(body, &in); err != nil || req.Method != http.MethodPost {
		s.t.Errorf("fake GitHub: GraphQL request is no JSON: %v", err)
	}
	field, err := CheckDocument(in.Query, in.Variables)
	if err != nil {
		s.t.Errorf("fake GitHub: GraphQL document does not fit GitHub's schema: %v\n%s", err, body)
		write(w, Answer{Status: http.StatusBadRequest, Message: "Problems parsing JSON"})
		return "GraphQL"
	}
	op := "GraphQL " + field
	r := &request{Request: req, s: s, op: op, body: body, params: map[string]string{"owner": s.opts.Owner, "repo": s.opts.Name}}
	f, ok := s.nextFault(op)
	if ok && f.before != nil {
		f.before()
	}
	if ok && f.answer != nil && !f.lose {
		s.answerGraph(w, field, *f.answer)
		return op
	}
	refusal := s.authorize(w, r)
	if refusal != nil && strings.HasPrefix(refusal.Message, "Resource not accessible") {
		s.answerGraph(w, field, Answer{Status: http.StatusOK, Errors: []any{graphRefusal{"FORBIDDEN", refusal.Message}}})
		return op
	}
	if refusal != nil {
		write(w, *refusal)
		return op
	}
	input, _ := in.Variables["input"].(map[string]any)
	refused := s.runGraph(field, input, r)
	if ok && f.lose {
		s.answerGraph(w, field, *f.answer)
		return op
	}
	out := map[string]any{"data": map[string]any{field: map[string]any{"clientMutationId": nil}}}
	if field == "viewer" {
		out = map[string]any{"data": map[string]any{field: map[string]any{"login": r.login}}}
	}
	if refused != nil {
		out = map[string]any{"data": map[string]any{field: nil}, "errors": []any{refused}}
	}
	_ = json.NewEncoder(w).Encode(out)
	return op
}

// answerGraph says a knob's answer: with status 200 as a GraphQL error.
func (s *Server) answerGraph(w *httptest.ResponseRecorder, field string, a Answer) {
	if a.Status != http.StatusOK || a.Body != "" {
		write(w, a)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{field: nil}, "errors": a.Errors})
}

func (s *Server) runGraph(field string, input map[string]any, r *request) *graphRefusal {
	switch field {
	case "updateRefs":
		return s.updateRefs(input)
	case "viewer":
		return nil
	case "enablePullRequestAutoMerge":
		return s.enableAutoMerge(input, r.login)
	case "disablePullRequestAutoMerge":
		return s.disableAutoMerge(input)
	}
	s.t.Errorf("fake GitHub: GraphQL %s is not served", field)
	return &graphRefusal{"NOT_FOUND", "not served"}
}

const zeroOID = "0000000000000000000000000000000000000000"

// updateRefs moves one branch by compare and swap. What GitHub says of a stale
// ref is not documented: the driver must not depend on the words used here.
func (s *Server) updateRefs(input map[string]any) *graphRefusal {
	if input["repositoryId"] != nodeID {
		return &graphRefusal{"NOT_FOUND", fmt.Sprintf("Could not resolve to a node with the global id of '%v'", input["repositoryId"])}
	}
	updates, _ := input["refUpdates"].([]any)
	if len(updates) != 1 {
		return &graphRefusal{"UNPROCESSABLE", "the fake moves one ref at a time"}
	}
	u, _ := updates[0].(map[string]any)
	name, _ := u["name"].(string)
	before, _ := u["beforeOid"].(string)
	after, _ := u["afterOid"].(string)
	force, _ := u["force"].(bool)
	branch, ok := strings.CutPrefix(name, "refs/heads/")
	switch {
	case !ok:
		return &graphRefusal{"UNPROCESSABLE", name + " is not a valid ref name"}
	case before == "":
		s.t.Error("fake GitHub: updateRefs without beforeOid compares nothing")
	case before == zeroOID:
		before = ""
	}
	err := s.Store.SetBranch(branch, before, after, force)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, scmtest.ErrStale), errors.Is(err, scmtest.ErrBranchMissing):
		return &graphRefusal{"UNPROCESSABLE", "Ref cannot be updated: something is not as it was"}
	case errors.Is(err, scmtest.ErrProtected):
		return &graphRefusal{"UNPROCESSABLE", "Repository rule violations found\n\nCannot update this protected ref."}
	}
	return &graphRefusal{"UNPROCESSABLE", err.Error()}
}

func (s *Server) pullByNode(input map[string]any) (scmtest.Pull, *graphRefusal) {
	var number int
	id, _ := input["pullRequestId"].(string)
	if _, err := fmt.Sscanf(id, "PR_%d", &number); err == nil {
		if p, err := s.Store.Pull(number); err == nil {
			return p, nil
		}
	}
	return scmtest.Pull{}, &graphRefusal{"NOT_FOUND", "Could not resolve to a node with the global id of '" + id + "'"}
}

func (s *Server) enableAutoMerge(input map[string]any, login string) *graphRefusal {
	p, refused := s.pullByNode(input)
	switch {
	case refused != nil:
		return refused
	case s.opts.NoAutoMerge:
		return &graphRefusal{"UNPROCESSABLE", "Auto merge is not allowed for this repository"}
	case input["expectedHeadOid"] == nil:
		s.t.Error("fake GitHub: auto-merge is not bound to a head commit")
	case input["expectedHeadOid"] != p.HeadSHA:
		return &graphRefusal{"UNPROCESSABLE", "Head sha of the pull request does not match the expected head oid"}
	case p.Draft:
		return &graphRefusal{"UNPROCESSABLE", "Pull request is in draft status"}
	case s.opts.SquashOnly && input["mergeMethod"] != "SQUASH":
		return &graphRefusal{"UNPROCESSABLE", "Merge method merge commits are not allowed on this repository"}
	case s.opts.Clean:
		return &graphRefusal{"UNPROCESSABLE", "Pull request Pull request is in clean status"}
	}
	s.edit(p.Number, func(p *scmtest.Pull) { p.AutoMerge, p.AutoMergeBy = true, login })
	return nil
}

func (s *Server) disableAutoMerge(input map[string]any) *graphRefusal {
	p, refused := s.pullByNode(input)
	if refused != nil {
		return refused
	}
	if !p.AutoMerge {
		return &graphRefusal{"UNPROCESSABLE", "Can't disable auto-merge for this pull request."}
	}
	s.edit(p.Number, func(p *scmtest.Pull) { p.AutoMerge, p.AutoMergeBy = false, "" })
	return nil
}
