package overlay

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
)

// references lists what a kustomization refers to. Inline objects and patches
// refer to nothing but through the plugins that they configure.
func references(file, dir string, k *types.Kustomization) ([]reference, error) {
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return nil, skip{fmt.Sprintf("%s: helmCharts: kustomize would run helm", file)}
	}
	l := refList{from: file, root: dir, base: dir}
	l.add("resources", roleResource, k.Resources...)
	l.add("components", roleComponent, k.Components...)
	l.add("crds", roleData, k.Crds...)
	l.add("configurations", roleData, k.Configurations...)
	if at, ok := k.OpenAPI["path"]; ok {
		l.add("openapi.path", roleData, at)
	}
	for _, p := range patches(k) {
		l.path(p.field, p.path)
	}
	for _, r := range k.Replacements {
		l.path("replacements.path", r.Path)
	}
	for _, g := range k.ConfigMapGenerator {
		l.keyValues("configMapGenerator", g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		l.keyValues("secretGenerator", g.KvPairSources)
	}
	return l.refs, errors.Join(
		l.plugins("generators", k.Generators),
		l.plugins("transformers", k.Transformers),
		l.plugins("validators", k.Validators))
}

// refList collects the references of one file.
type refList struct {
	from, root string
	base       string // of the plugin configurations that it names
	refs       []reference
}

func (l *refList) add(field string, as role, values ...string) {
	for _, v := range values {
		l.refs = append(l.refs, reference{from: l.from, field: field, root: l.root, value: v, role: as, base: l.base})
	}
}

// path adds a path that may be left out.
func (l *refList) path(field, value string) {
	if value != "" {
		l.add(field, roleData, value)
	}
}

// patch is one patch of a kustomization: a path, or its text.
type patch struct{ field, path, text string }

// patches lists the patches of every kind, the deprecated ones too.
func patches(k *types.Kustomization) []patch {
	var out []patch
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated, and in use
		out = append(out, pathOrText("patchesStrategicMerge", string(p)))
	}
	for _, p := range k.PatchesJson6902 { //nolint:staticcheck // deprecated, and in use
		out = append(out, patch{"patchesJson6902.path", p.Path, p.Patch})
	}
	for _, p := range k.Patches {
		out = append(out, patch{"patches.path", p.Path, p.Patch})
	}
	return out
}

// pathOrText takes for a path what kustomize does: what does not parse as objects.
// What looks remote is one whatever it parses as.
func pathOrText(field, value string) patch {
	if _, err := objects([]byte(value)); err != nil || remote(value) {
		return patch{field: field, path: value}
	}
	return patch{field: field, text: value}
}

func (l *refList) keyValues(field string, s types.KvPairSources) {
	for _, f := range s.FileSources {
		if i := strings.LastIndex(f, "="); i >= 0 {
			if remote(f) { // a URL with a query has a "=" too
				l.add(field+".files", roleData, f)
			}
			f = f[i+1:]
		}
		l.path(field+".files", f)
	}
	for _, f := range s.EnvSources {
		l.path(field+".envs", f)
	}
	l.path(field+".env", s.EnvSource)
}

// plugins adds generators, transformers or validators, each of which is a path or
// the plugin's configuration itself.
func (l *refList) plugins(field string, values []string) error {
	for _, v := range values {
		if p := pathOrText(field, v); p.path != "" {
			l.add(field, rolePlugin, p.path)
			continue
		}
		refs, err := pluginReferences(l.from, l.root, []byte(v))
		if err != nil {
			return err
		}
		l.refs = append(l.refs, refs...)
	}
	return nil
}

// objects parses YAML to objects as kustomize does.
func objects(content []byte) ([]*resource.Resource, error) {
	return provider.NewDefaultDepProvider().GetResourceFactory().SliceFromBytes(content)
}
