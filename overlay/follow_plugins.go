package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
)

// pluginReferences lists what the plugin configurations in a file (or inline in a
// kustomization) refer to. The paths in them are relative to the directory of the
// kustomization that lists them.
func pluginReferences(file, root string, content []byte) ([]reference, error) {
	configs, err := objects(content)
	if err != nil {
		return nil, broken{fmt.Errorf("%s: %w", file, err)}
	}
	l := refList{from: file, root: root}
	for _, c := range configs {
		if err := l.plugin(c); err != nil {
			return nil, err
		}
	}
	return l.refs, nil
}

// plugin adds the references of one plugin's configuration: the union of the
// fields in which any built-in plugin names a file (api v0.21.2,
// internal/builtins), their keys compared as encoding/json does, without case.
func (l *refList) plugin(c *resource.Resource) error {
	if gvk := c.GetGvk(); gvk.Group != "" || gvk.Version != konfig.BuiltinPluginApiVersion {
		return skip{fmt.Sprintf("%s: %s %s is a plugin that is not built into kustomize, and none is run", l.from, c.GetApiVersion(), c.GetKind())}
	}
	if strings.HasPrefix(c.GetKind(), "Helm") {
		return skip{fmt.Sprintf("%s: %s: kustomize would run helm", l.from, c.GetKind())}
	}
	raw, err := c.MarshalJSON()
	if err != nil {
		return broken{fmt.Errorf("%s: %w", l.from, err)}
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return broken{fmt.Errorf("%s: %w", l.from, err)}
	}
	kind := c.GetKind()
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		field, value := kind+"."+key, fields[key]
		switch {
		case fold(key, "path", "targetFilePath", "env", "envs"):
			l.each(field, value, l.path)
		case fold(key, "paths"):
			l.each(field, value, func(_, v string) { l.path(field, pathOrText(field, v).path) })
		case fold(key, "files"):
			l.each(field, value, func(_, v string) {
				l.keyValues(kind, types.KvPairSources{FileSources: []string{v}})
			})
		case fold(key, "replacements"):
			l.replacements(field, value)
		}
	}
	return nil
}

func fold(key string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(key, n) })
}

// each hands on a string, or the strings of a list.
func (l *refList) each(field string, value any, add func(field, value string)) {
	switch v := value.(type) {
	case string:
		add(field, v)
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				add(field, s)
			}
		}
	}
}

func (l *refList) replacements(field string, value any) {
	items, _ := value.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		for key, v := range fields {
			if fold(key, "path") {
				l.each(field+"."+key, v, l.path)
			}
		}
	}
}

// pluginDirectory lists what a directory of plugin configurations refers to: its
// files, relative to the directory that lists it. kustomize builds the directory
// first, so that what its plugins will read is known only where it is a plain
// list of files; anything that could change or make a configuration is not
// followed.
func pluginDirectory(r reference, k *kustDir) ([]reference, error) {
	plain := types.Kustomization{TypeMeta: k.content.TypeMeta, MetaData: k.content.MetaData, Resources: k.content.Resources}
	if !reflect.DeepEqual(plain, k.content) {
		return nil, skip{fmt.Sprintf("%s: %s is more than a list of resources, and what its plugins read is known only to a build", r, k.file)}
	}
	l := refList{from: k.file, root: r.path, base: r.base}
	l.add("resources", rolePlugin, k.content.Resources...)
	return l.refs, nil
}
