package chatops_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tagboat/chatops"
	"tagboat/config"
)

const tagboatYAML = `
version: 1
apps:
  todo-api: {images: [{repository: ghcr.io/acme/todo-api}]}
  todo-web: {images: [{repository: ghcr.io/acme/todo-web}], environments: [dev, staging]}
environments:
  - {name: dev, path: "{app}/dev"}
  - {name: qa, path: "{app}/qa"}
  - {name: staging, path: "{app}/staging", from: [dev]}
  - {name: production, from: [staging], rings: [{name: canary, paths: ["{app}/production/eu"]}, {name: rest, paths: ["{app}/production/*"]}]}
  - {name: archive, path: "{app}/archive", from: [staging, qa]}
`

func names(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Load(fstest.MapFS{"tagboat.yaml": &fstest.MapFile{Data: []byte(tagboatYAML)}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestResolve(t *testing.T) {
	tests := []struct{ line, want string }{
		{"/promote todo-api to production", "/promote todo-api from staging to production"},
		{"/promote todo-api to production ring canary", "/promote todo-api from staging to production ring canary"},
		{"/promote todo-api from qa to archive", "/promote todo-api from qa to archive"},
		{"/promote todo-api to archive", "/promote todo-api from staging to archive"},
		{"/promote todo-api@" + digest + " to dev", "/promote todo-api@" + digest + " to dev"},
		{"/rollback todo-api in production", "/rollback todo-api in production"},
		{"/hold production todo-api migrates", `/hold production todo-api "migrates"`},
		{"/hold production todo-apis migrate", `/hold production "todo-apis migrate"`},
		{`/hold production "todo-api migrates"`, `/hold production "todo-api migrates"`},
		{"/hold production todo-api until 2h todo-web migrates", `/hold production todo-api until 2h "todo-web migrates"`},
		{"/release dev todo-web", "/release dev todo-web"},
		{"/help", "/help"},
	}
	for _, tt := range tests {
		c, err := chatops.Parse(tt.line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Resolve(names(t))
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestResolveRefused(t *testing.T) {
	tests := []struct {
		line  string
		cause error
		want  string
	}{
		{"/promote todo-ap to production", config.ErrUnknown, "did you mean todo-api?"},
		{"/promote todo-api to productio", config.ErrUnknown, "did you mean production?"},
		{"/promote todo-api from stagin to production", config.ErrUnknown, "did you mean staging?"},
		{"/promote todo-api to production ring canery", config.ErrUnknown, "did you mean canary?"},
		{"/promote todo-api to staging ring canary", config.ErrUnknown, `no ring "canary" in staging`},
		{"/promote todo-api from dev to production", config.ErrNotAllowed, "production"},
		{"/promote todo-web to production", config.ErrNotAllowed, "todo-web is not in production"},
		{"/promote todo-api to dev", chatops.ErrSyntax, "say which digest"},
		{"/rollback todo-web in production", config.ErrNotAllowed, "not in production"},
		{"/hold productio x", config.ErrUnknown, "did you mean production?"},
		{"/hold production todo-api", chatops.ErrSyntax, `behind "todo-api"`},
		{`/hold production todoapi "x"`, config.ErrUnknown, "did you mean todo-api?"},
		{"/release production todo-ap", config.ErrUnknown, "did you mean todo-api?"},
	}
	for _, tt := range tests {
		c, err := chatops.Parse(tt.line)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Resolve(names(t)); !errors.Is(err, tt.cause) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v; want %v, %q", tt.line, got, err, tt.cause, tt.want)
		}
	}
}
