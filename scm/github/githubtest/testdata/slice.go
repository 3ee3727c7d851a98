//go:build ignore

// Command slice cuts GitHub's descriptions of its APIs down to what the driver
// calls. Run it in this directory, on the unpacked npm packages
// @octokit/openapi@23.0.2 and @octokit/graphql-schema@15.26.1:
//
//	go run slice.go OPENAPI/package/generated/api.github.com.json GRAPHQL/package/schema.graphql
//
// It writes openapi.json.gz and schema.graphql. Examples and prose are left away:
// GitHub's own examples do not satisfy its schemas.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: go run slice.go api.github.com.json schema.graphql")
	}
	if err := sliceREST(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	if err := sliceGraphQL(os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

const repo = "/repos/{owner}/{repo}"

func operations() map[string][]string {
	return map[string][]string{
		repo:                                                         {"get"},
		repo + "/activity":                                           {"get"},
		repo + "/branches":                                           {"get"},
		repo + "/branches/{branch}":                                  {"get"},
		repo + "/commits":                                            {"get"},
		repo + "/commits/{ref}":                                      {"get"},
		repo + "/commits/{ref}/statuses":                             {"get"},
		repo + "/commits/{ref}/check-runs":                           {"get"},
		repo + "/commits/{commit_sha}/pulls":                         {"get"},
		repo + "/statuses/{sha}":                                     {"post"},
		repo + "/collaborators/{username}/permission":                {"get"},
		repo + "/compare/{basehead}":                                 {"get"},
		repo + "/contents/{path}":                                    {"get"},
		repo + "/git/ref/{ref}":                                      {"get"},
		repo + "/git/matching-refs/{ref}":                            {"get"},
		repo + "/git/refs":                                           {"post"},
		repo + "/git/refs/{ref}":                                     {"patch"},
		repo + "/git/trees":                                          {"post"},
		repo + "/git/trees/{tree_sha}":                               {"get"},
		repo + "/git/commits":                                        {"post"},
		repo + "/git/commits/{commit_sha}":                           {"get"},
		repo + "/git/blobs":                                          {"post"},
		repo + "/git/blobs/{file_sha}":                               {"get"},
		repo + "/pulls":                                              {"get", "post"},
		repo + "/pulls/{pull_number}":                                {"get", "patch"},
		repo + "/pulls/{pull_number}/merge":                          {"put"},
		repo + "/pulls/{pull_number}/requested_reviewers":            {"post"},
		repo + "/pulls/{pull_number}/reviews":                        {"get"},
		repo + "/pulls/{pull_number}/reviews/{review_id}/dismissals": {"put"},
		repo + "/issues/{issue_number}/labels":                       {"get", "post"},
		repo + "/issues/{issue_number}/assignees":                    {"post"},
		repo + "/issues/{issue_number}/comments":                     {"get", "post"},
		repo + "/issues/comments/{comment_id}":                       {"get", "patch"},
		repo + "/issues/comments/{comment_id}/reactions":             {"post"},
		repo + "/actions/workflows/{workflow_id}/dispatches":         {"post"},
		repo + "/actions/workflows/{workflow_id}/runs":               {"get"},
		repo + "/actions/runs/{run_id}":                              {"get"},
		repo + "/actions/runs/{run_id}/jobs":                         {"get"},
		repo + "/actions/jobs/{job_id}/logs":                         {"get"},
		repo + "/installation":                                       {"get"},
		"/app/installations/{installation_id}/access_tokens":         {"post"},
		"/orgs/{org}/teams/{team_slug}":                              {"get"},
		"/orgs/{org}/teams/{team_slug}/memberships/{username}":       {"get"},
		"/user": {"get"},
	}
}

func sliceREST(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	paths, components := map[string]any{}, map[string]any{}
	for path, methods := range operations() {
		item, ok := doc["paths"].(map[string]any)[path].(map[string]any)
		if !ok {
			return fmt.Errorf("no path %s", path)
		}
		kept := map[string]any{}
		for _, m := range methods {
			if kept[m] = item[m]; kept[m] == nil {
				return fmt.Errorf("no operation %s %s", m, path)
			}
		}
		paths[path] = kept
	}
	collect(paths, doc["components"].(map[string]any), components)
	delete(components, "examples")
	out := map[string]any{"openapi": doc["openapi"], "info": doc["info"], "servers": doc["servers"], "paths": paths, "components": components}
	strip(out)
	return writeGzip("openapi.json.gz", out)
}

// collect copies what node refers to, and what that refers to.
func collect(node any, from, into map[string]any) {
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			collect(v, from, into)
		}
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			parts := strings.Split(ref, "/")
			kind, name := parts[2], parts[3]
			section, _ := into[kind].(map[string]any)
			if section == nil {
				section = map[string]any{}
				into[kind] = section
			}
			if section[name] == nil && kind != "examples" {
				section[name] = from[kind].(map[string]any)[name]
				collect(section[name], from, into)
			}
		}
		for _, v := range node {
			collect(v, from, into)
		}
	}
}

// strip leaves away examples and prose. A property may itself be called example
// or description: then its value is a schema, and no text.
func strip(node any) {
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			strip(v)
		}
	case map[string]any:
		_, typed := node["type"].(string)
		if typed || node["content"] != nil || node["schema"] != nil || node["oneOf"] != nil || node["anyOf"] != nil || node["operationId"] != nil {
			delete(node, "example")
			delete(node, "examples")
			delete(node, "externalDocs")
			delete(node, "x-github")
			delete(node, "summary")
		}
		delete(node, "examples")
		// responses demand a description, which may be empty.
		if _, ok := node["description"].(string); ok {
			node["description"] = ""
		}
		for _, v := range node {
			strip(v)
		}
	}
}

func writeGzip(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes, %d gzipped\n", file, len(data), buf.Len())
	return os.WriteFile(file, buf.Bytes(), 0o644)
}

// fields are those of output types that the documents select; input types are
// kept whole.
func fields() map[string][]string {
	return map[string][]string{
		"Query":                              {"rateLimit", "viewer"},
		"User":                               {"login"},
		"RateLimit":                          {"cost"},
		"Mutation":                           {"updateRefs", "enablePullRequestAutoMerge", "disablePullRequestAutoMerge"},
		"UpdateRefsPayload":                  {"clientMutationId"},
		"EnablePullRequestAutoMergePayload":  {"clientMutationId", "pullRequest"},
		"DisablePullRequestAutoMergePayload": {"clientMutationId", "pullRequest"},
		"PullRequest":                        {"number", "autoMergeRequest"},
		"AutoMergeRequest":                   {"enabledAt"},
	}
}

func sliceGraphQL(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc, err := parser.ParseSchema(&ast.Source{Name: file, Input: string(data)})
	if err != nil {
		return err
	}
	kept := map[string]*ast.Definition{}
	var keep func(name string)
	keep = func(name string) {
		def := doc.Definitions.ForName(name)
		if def == nil || kept[name] != nil {
			return
		}
		kept[name] = def
		def.Interfaces, def.Directives = nil, nil
		if def.Kind == ast.Object {
			wanted := fields()[name]
			def.Fields = slices.DeleteFunc(def.Fields, func(f *ast.FieldDefinition) bool { return !slices.Contains(wanted, f.Name) })
		}
		for _, f := range def.Fields {
			f.Directives = nil
			keep(f.Type.Name())
			for _, a := range f.Arguments {
				a.Directives = nil
				keep(a.Type.Name())
			}
		}
	}
	keep("Query")
	keep("Mutation")
	out := &ast.SchemaDocument{}
	for _, def := range doc.Definitions {
		if kept[def.Name] != nil {
			out.Definitions = append(out.Definitions, def)
		}
	}
	var buf bytes.Buffer
	buf.WriteString("# A part of GitHub's GraphQL schema, from @octokit/graphql-schema 15.26.1 (MIT, see LICENSE.octokit).\n")
	formatter.NewFormatter(&buf, formatter.WithoutDescription()).FormatSchemaDocument(out)
	fmt.Printf("schema.graphql: %d bytes, %d types\n", buf.Len(), len(out.Definitions))
	return os.WriteFile("schema.graphql", buf.Bytes(), 0o644)
}
