package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"tagboat/scm"
)

// The documents that are sent; a test checks each against GitHub's schema.
const (
	updateRefs = `mutation MoveBranch($input: UpdateRefsInput!) {
  updateRefs(input: $input) { clientMutationId }
}`
	enableAutoMerge = `mutation EnableAutoMerge($input: EnablePullRequestAutoMergeInput!) {
  enablePullRequestAutoMerge(input: $input) { pullRequest { number autoMergeRequest { enabledAt } } }
}`
	disableAutoMerge = `mutation DisableAutoMerge($input: DisablePullRequestAutoMergeInput!) {
  disablePullRequestAutoMerge(input: $input) { pullRequest { number } }
}`
	viewer = `query Self { viewer { login } }`
)

// graphError is what GraphQL says with status 200.
type graphError struct {
	Errors []struct {
		Type       string `json:"type"`
		Message    string `json:"message"`
		Extensions struct {
			Code string `json:"code"`
		} `json:"extensions"`
	}
}

func (e *graphError) Error() string {
	var words []string
	for _, x := range e.Errors {
		words = append(words, strings.TrimSpace(x.Type+" "+x.Message))
	}
	return strings.Join(words, "; ")
}

func (e *graphError) has(texts ...string) bool {
	low := strings.ToLower(e.Error())
	for _, t := range texts {
		if strings.Contains(low, strings.ToLower(t)) {
			return true
		}
	}
	return false
}

// kind is the contract's word for a GraphQL refusal.
func (e *graphError) kind() error {
	switch {
	case e.has("RATE_LIMIT", "submitted too quickly", "rate limit"):
		return scm.ErrRateLimited
	case e.has("FORBIDDEN", "not accessible by", "INSUFFICIENT_SCOPES"):
		return scm.ErrDenied
	case e.has("NOT_FOUND", "Could not resolve to"):
		return scm.ErrNotFound
	}
	return scm.ErrRefused
}

// undefined tells that the server's schema lacks the field or its input.
func (e *graphError) undefined() bool {
	for _, x := range e.Errors {
		if x.Extensions.Code == "undefinedField" || x.Extensions.Code == "undefinedType" {
			return true
		}
	}
	return e.has("doesn't exist on type", "isn't a defined input type")
}

// mutate sends one mutation; see graph.
func (r *Repository) mutate(ctx context.Context, document string, input any) error {
	return r.graph(ctx, document, map[string]any{"input": input}, nil)
}

// graph sends one document, and decodes its data into what is given unless that is nil. The
// error is *graphError where GraphQL answered, errNoGraphQL where nothing of the
// kind is served, else go-github's.
func (r *Repository) graph(ctx context.Context, document string, variables map[string]any, into any) error {
	c := r.api()
	body := map[string]any{"query": document, "variables": variables}
	req, err := c.NewRequest(http.MethodPost, r.graphqlURL, body)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if _, err := c.Do(ctx, req, &raw); err != nil {
		if a, ok := answerOf(err); ok && (a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented) {
			return fmt.Errorf("%w: %s answers %d", errNoGraphQL, r.graphqlURL, a.status)
		}
		return err
	}
	var out struct {
		Data   json.RawMessage
		Errors json.RawMessage
	}
	err = json.Unmarshal(raw, &out)
	if none := out.Data == nil || string(out.Data) == "null"; err != nil || none && out.Errors == nil {
		return fmt.Errorf("%w: %s answers something else", errNoGraphQL, r.graphqlURL)
	}
	if len(out.Errors) == 0 || string(out.Errors) == "null" || string(out.Errors) == "[]" {
		if into == nil {
			return nil
		}
		return json.Unmarshal(out.Data, into)
	}
	refused := &graphError{}
	if err := json.Unmarshal(out.Errors, &refused.Errors); err != nil {
		return fmt.Errorf("read GraphQL's errors: %w", err)
	}
	return refused
}

// errNoGraphQL is returned where the server has no GraphQL at its usual address.
var errNoGraphQL = fmt.Errorf("%w: no GraphQL", scm.ErrUnsupported)
