package layout

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"tagboat/image"
)

// containerImages lists the images of containers in a document, wherever they
// stand in it.
func containerImages(n *yaml.Node) []string {
	var found []string
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && (n.Content[i-1].Value == "containers" || n.Content[i-1].Value == "initContainers") {
			for _, c := range items(child) {
				if img := text(c, "image"); img != "" {
					found = append(found, img)
				}
			}
		}
		found = append(found, containerImages(child)...)
	}
	return found
}

// repositoryOf is the repository of an image string, and whether it can stand in
// tagboat.yaml.
func repositoryOf(img string) (string, bool) {
	ref, err := image.Parse(img)
	return ref.Repository, err == nil
}

// documents decodes a file as far as it is YAML, without following aliases.
func documents(content []byte) []*yaml.Node {
	var docs []*yaml.Node
	for d := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			if !errors.Is(err, io.EOF) && len(docs) == 0 {
				return nil
			}
			return docs
		}
		if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
			docs = append(docs, doc.Content[0])
		}
	}
}

func firstDocument(content []byte) *yaml.Node {
	docs := documents(content)
	if len(docs) == 0 || docs[0].Kind != yaml.MappingNode {
		return nil
	}
	return docs[0]
}

// value is what a key of a mapping has; nil where there is none.
func value(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func text(n *yaml.Node, key string) string {
	if v := value(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func texts(n *yaml.Node) []string {
	var out []string
	for _, item := range items(n) {
		if item.Kind == yaml.ScalarNode {
			out = append(out, item.Value)
		}
	}
	return out
}

// oneLine makes others' text fit for a comment.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if runes := []rune(s); len(runes) > 300 {
		s = string(runes[:300]) + "…"
	}
	return strings.Join(strings.Fields(s), " ")
}
