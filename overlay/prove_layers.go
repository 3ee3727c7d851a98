package overlay

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// layers lists the parts of a kustomization that can set an image over another
// images entry.
func layers(k *kustDir) []patch {
	out := patches(&k.content)
	for _, t := range k.content.Transformers {
		out = append(out, pathOrText("transformers", t))
	}
	for _, r := range k.content.Replacements {
		text, _ := yaml.Marshal(r)
		out = append(out, patch{"replacements", r.Path, string(text)})
	}
	for _, i := range k.content.Images {
		out = append(out, patch{"images", "", i.Name + " " + i.NewName})
	}
	return out
}

// declaredImages lists the fields that the tree's configurations add to those
// that kustomize rewrites.
func (t *buildTree) declaredImages() []string {
	var out []string
	for dir, k := range t.dirs {
		for _, name := range k.content.Configurations {
			var config struct {
				Images []struct {
					Path string `yaml:"path"`
				} `yaml:"images"`
			}
			if yaml.Unmarshal(t.files[pathIn(dir, name)], &config) != nil {
				continue // kustomize has read it
			}
			for _, f := range config.Images {
				out = append(out, strings.ReplaceAll(f.Path, "[]", ""))
			}
		}
	}
	return out
}

func pathIn(dir, name string) string { return path.Join(dir, name) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// alsoMatched warns of names that kustomize's regular expression finds in more
// than one repository of the tree's own files.
func (b *proveBuild) alsoMatched(changes []Change) []string {
	var images []string
	for _, name := range sortedKeys(b.new.files) {
		for _, m := range imageLine.FindAllStringSubmatch(string(b.new.files[name]), -1) {
			images = append(images, m[1])
		}
	}
	var out []string
	for _, c := range changes {
		pattern := namePattern(c.Entry)
		if b.new.dirs[b.layer(c)] == nil || pattern == nil {
			continue
		}
		others := map[string]bool{}
		for _, i := range images {
			if r := repositoryOf(i); r != c.Entry && pattern.MatchString(i) {
				others[r] = true
			}
		}
		if len(others) > 0 {
			out = append(out, fmt.Sprintf("%s: kustomize reads the entry's name %q as a regular expression, and it matches %s too", b.dir, c.Entry, shorten(sortedKeys(others))))
		}
	}
	return out
}
