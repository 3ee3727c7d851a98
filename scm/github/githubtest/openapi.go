package githubtest

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

//go:embed testdata/openapi.json.gz
var openapiGzip []byte

// spec is GitHub's own description of the operations that the driver may call.
type spec struct {
	doc    *openapi3.T
	routes []route
}

// route is one operation; op names it in knobs and counts: "POST git/refs", the
// path as in the description, without its /repos/{owner}/{repo}/.
type route struct {
	op       string
	method   string
	template string
	segments []string
	multi    bool // the last parameter takes the rest of the path (x-multi-segment)
	route    *routers.Route
}

// loadSpec reads the description once for all servers of a test binary.
//
//nolint:gochecknoglobals // the embedded file, parsed once for all tests
var loadSpec = sync.OnceValues(func() (*spec, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(openapiGzip))
	if err != nil {
		return nil, fmt.Errorf("read GitHub's description: %w", err)
	}
	data, err := io.ReadAll(unzip)
	if err != nil {
		return nil, fmt.Errorf("read GitHub's description: %w", err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, fmt.Errorf("load GitHub's description: %w", err)
	}
	s := &spec{doc: doc}
	for template, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			s.routes = append(s.routes, newRoute(doc, template, method, item, op))
			if op.RequestBody != nil {
				closeBody(op.RequestBody.Value)
			}
		}
	}
	// Longer fixed parts first: git/refs before git/{anything}, and what takes the
	// rest of a path last.
	slices.SortFunc(s.routes, func(a, b route) int { return strings.Compare(b.op, a.op) })
	slices.SortStableFunc(s.routes, func(a, b route) int { return btoi(a.multi) - btoi(b.multi) })
	return s, nil
})

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

const repoPrefix = "/repos/{owner}/{repo}"

func newRoute(doc *openapi3.T, template, method string, item *openapi3.PathItem, op *openapi3.Operation) route {
	name := strings.TrimPrefix(strings.TrimPrefix(template, repoPrefix), "/")
	r := route{
		op: strings.TrimSpace(method + " " + name), method: method, template: template,
		segments: strings.Split(strings.TrimPrefix(template, "/"), "/"),
		route:    &routers.Route{Spec: doc, Path: template, PathItem: item, Method: method, Operation: op},
	}
	for _, p := range op.Parameters {
		if p.Value.In == openapi3.ParameterInPath && p.Value.Extensions["x-multi-segment"] == true &&
			r.segments[len(r.segments)-1] == "{"+p.Value.Name+"}" {
			r.multi = true
		}
	}
	return r
}

// closeBody makes unknown fields of a request body an error: GitHub ignores them,
// and a field that is ignored is a fault of ours.
func closeBody(body *openapi3.RequestBody) {
	no := false
	var walk func(*openapi3.SchemaRef)
	walk = func(ref *openapi3.SchemaRef) {
		if ref == nil || ref.Value == nil {
			return
		}
		s := ref.Value
		if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil &&
			len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) == 0 {
			s.AdditionalProperties.Has = &no
		}
		for _, p := range s.Properties {
			walk(p)
		}
		walk(s.Items)
		for _, list := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf} {
			for _, p := range list {
				walk(p)
			}
		}
	}
	for _, media := range body.Content {
		walk(media.Schema)
	}
}

// find routes by the raw path, so that %2F stays one segment.
func (s *spec) find(method, rawPath string) (*route, map[string]string, bool) {
	parts := strings.Split(strings.TrimPrefix(rawPath, "/"), "/")
	for i := range s.routes {
		r := &s.routes[i]
		if r.method != method {
			continue
		}
		if params, ok := r.match(parts); ok {
			return r, params, true
		}
	}
	return nil, nil, false
}

func (r *route) match(parts []string) (map[string]string, bool) {
	n := len(r.segments)
	if len(parts) < n || (len(parts) > n && !r.multi) {
		return nil, false
	}
	params := map[string]string{}
	for i, want := range r.segments {
		got := parts[i]
		if r.multi && i == n-1 {
			got = strings.Join(parts[i:], "/")
		}
		if !strings.HasPrefix(want, "{") {
			if got != want {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(got)
		if err != nil || value == "" {
			return nil, false
		}
		params[strings.Trim(want, "{}")] = value
	}
	return params, true
}

func (s *spec) input(r *route, req *http.Request, params map[string]string) *openapi3filter.RequestValidationInput {
	return &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: r.route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true,
			RejectWhenRequestBodyNotSpecified: true, IncludeResponseStatus: true,
		},
	}
}

// checkRequest validates a request; body is put back.
func (s *spec) checkRequest(r *route, req *http.Request, params map[string]string, body []byte) error {
	req.Body = io.NopCloser(bytes.NewReader(body))
	for name := range req.URL.Query() {
		if !slices.ContainsFunc(r.route.Operation.Parameters, func(p *openapi3.ParameterRef) bool {
			return p.Value.In == openapi3.ParameterInQuery && p.Value.Name == name
		}) {
			return fmt.Errorf("query parameter %q is not in GitHub's description", name)
		}
	}
	err := openapi3filter.ValidateRequest(context.Background(), s.input(r, req, params))
	req.Body = io.NopCloser(bytes.NewReader(body))
	return err
}

// undeclared are statuses that any operation may answer though its description
// does not list them; their body is the basic error.
func undeclared(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

func (s *spec) checkResponse(r *route, req *http.Request, params map[string]string, status int, header http.Header, body []byte) error {
	if r.route.Operation.Responses.Status(status) == nil && undeclared(status) {
		return s.checkBasicError(body)
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: s.input(r, req, params), Status: status, Header: header,
		Options: s.input(r, req, params).Options,
	}
	err := openapi3filter.ValidateResponse(context.Background(), in.SetBodyBytes(body))
	if err != nil && status == http.StatusUnprocessableEntity {
		// The nested errors are objects or plain strings; the description of most
		// operations knows one of them only.
		return s.checkSimpleError(body)
	}
	return err
}

func (s *spec) checkSimpleError(body []byte) error {
	var v map[string]any
	if err := decode(body, &v); err != nil {
		return err
	}
	return s.doc.Components.Schemas["validation-error-simple"].Value.VisitJSON(v)
}

func (s *spec) checkBasicError(body []byte) error {
	var v map[string]any
	if err := decode(body, &v); err != nil {
		return nil // a proxy's page is no GitHub answer, and may be anything
	}
	return s.doc.Components.Schemas["basic-error"].Value.VisitJSON(v)
}
