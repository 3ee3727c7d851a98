package overlay

import (
	"encoding/base64"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// imageLine matches an image: line of YAML or JSON.
var imageLine = regexp.MustCompile(`(?m)\bimage"?:[ \t]*["']?([^\s"'#,}]+)`)

// byteList matches a list of bytes as Go prints it.
var byteList = regexp.MustCompile(`\[(\d{1,3} ){3,}\d{1,3}\]`)

// redact is kustomize's error on one line of bearable length, without what the
// tree's Secrets and secret generators hold: kustomize quotes the configuration
// that it stumbles over.
func (b *proveBuild) redact(err error) string {
	const head, tail = 120, 400
	text := byteList.ReplaceAllString(err.Error(), "[…]")
	for _, s := range append(b.old.secrets(), b.new.secrets()...) {
		text = strings.ReplaceAll(text, s, "***")
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > head+tail {
		text = string(r[:head]) + " … " + string(r[len(r)-tail:])
	}
	return text
}

// secrets lists the secret strings of a tree, longest first.
func (t *buildTree) secrets() []string {
	found := map[string]bool{}
	add := func(value string) {
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			addSecret(found, string(decoded))
		}
		addSecret(found, value)
	}
	for dir, k := range t.dirs {
		for _, g := range k.content.SecretGenerator {
			for _, literal := range g.LiteralSources {
				addSecret(found, literal)
				_, value, _ := strings.Cut(literal, "=")
				add(value)
			}
			for _, f := range slices.Concat(g.FileSources, g.EnvSources) {
				_, f = cutLast(f, "=")
				for line := range strings.Lines(string(t.files[pathIn(dir, f)])) {
					add(strings.TrimSpace(line))
					_, value, _ := strings.Cut(line, "=")
					add(value)
				}
			}
		}
	}
	for _, content := range t.files {
		secretScalars(string(content), add)
	}
	out := sortedKeys(found)
	slices.SortStableFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// addSecret adds a value, its lines, and the beginning that a YAML error shows.
func addSecret(found map[string]bool, value string) {
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) < 4 {
			continue
		}
		found[line] = true
		if len(line) > 10 {
			found[line[:7]+"..."] = true
		}
	}
}

// secretScalars hands on the secret values of a text, and of texts within it, in
// which Secrets or patches of them may be: what stands in data, in literals, or is
// a patch's value; or after the colon in any line of what is no YAML.
func secretScalars(text string, add func(string)) {
	if !secretText.MatchString(text) {
		return
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			secretLines(text, add)
			return
		}
		scalars(&doc, "", func(field, value string) {
			if secretField.MatchString(field) {
				_, literal, _ := strings.Cut(value, "=")
				add(literal)
				add(value)
			}
			if len(value) < len(text) {
				secretScalars(value, add)
			}
		})
	}
}

func secretLines(text string, add func(string)) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && !plainKey.MatchString(key) {
			add(strings.Trim(strings.TrimSpace(value), `"'{}[],`))
		}
	}
}

var (
	secretText  = regexp.MustCompile(`Secret|stringData|/data/`)
	secretField = regexp.MustCompile(`(?i)(^|\.)(data|stringData|literals)(\.|\[)|(^|[.\]])value$`)
	plainKey    = regexp.MustCompile(`^[\s-]*(apiVersion|kind|name|namespace|type|image)$`)
)

func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return "", s
}
