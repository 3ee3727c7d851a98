package overlay

import (
	"context"
	"fmt"
	"path"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// buildTime bounds one build. The largest overlays of public repositories take a
// second or two.
const buildTime = 60 * time.Second

// building serialises builds: kustomize keeps its OpenAPI schema, and what it has
// learned from it, in variables of the process (kustomize#4824).
var building = make(chan struct{}, 1) //nolint:gochecknoglobals // what it guards is the process's

// build runs kustomize over a tree: root-only loading, no plugins (krusty's
// defaults), panics recovered. An error is a broken (kustomize refuses the tree),
// a skip, or the context's. What kustomize has to say of deprecated fields it
// writes to the process's standard error itself.
func build(ctx context.Context, t *buildTree) (resmap.ResMap, error) {
	return buildWithin(ctx, t, buildTime)
}

// buildWithin does not stop a build that outlasts the context or the limit, as
// nothing can: it is left behind, and the next one waits for it.
func buildWithin(ctx context.Context, t *buildTree, limit time.Duration) (resmap.ResMap, error) {
	if t.err != nil {
		return nil, t.err
	}
	select {
	case building <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to build: %w", context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, skip{fmt.Sprintf("kustomize takes more than %s to build it", limit)})
	defer cancel()
	type result struct {
		built resmap.ResMap
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-building }()
		built, err := run(t)
		done <- result{built, err}
	}()
	select {
	case r := <-done:
		return r.built, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("build: %w", context.Cause(ctx))
	}
}

func run(t *buildTree) (built resmap.ResMap, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case notFollowed:
			err = skip{r.Error()}
		default:
			err = broken{fmt.Errorf("kustomize panics: %v", r)}
		}
	}()
	if t.openAPI {
		openapi.ResetOpenAPI()
		defer openapi.ResetOpenAPI()
	}
	built, err = krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(closedFS{t}, path.Join("/", t.dir))
	if err != nil {
		return nil, broken{err}
	}
	return built, nil
}
