package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	k8s "sigs.k8s.io/yaml"
)

// sameObjects compares as Kubernetes reads objects: document by document, through
// JSON, YAML 1.1. What could not be read so before need not be after, but this is
// told.
func sameObjects(lists []*listEdit, afters []*document) ([]string, error) {
	file := lists[0].before.file
	was, errBefore := asKubernetes(lists[0].before.raw)
	is, errAfter := asKubernetes(afters[0].raw)
	switch {
	case errAfter != nil && errBefore == nil:
		return nil, fmt.Errorf("to Kubernetes the file could no longer be read: %w", errAfter)
	case errAfter != nil:
		return []string{fmt.Sprintf("%s: Kubernetes could not read the file before and cannot now: %v", file, errAfter)}, nil
	case errBefore != nil:
		return nil, nil
	case len(was) != len(is):
		return nil, errors.New("the edit would add or lose a document")
	}
	for i, l := range lists {
		from, to := l.before.place(was), afters[i].place(is)
		if from == nil || to == nil {
			return nil, errors.New("to Kubernetes the list of images is elsewhere")
		}
		want, err := l.wantedList(from["images"])
		if err != nil {
			return nil, err
		}
		if got, _ := to["images"].([]any); !reflect.DeepEqual(want, got) {
			return nil, fmt.Errorf("to Kubernetes the images would be %v, not %v", got, want)
		}
		delete(from, "images")
		delete(to, "images")
	}
	if !reflect.DeepEqual(was, is) {
		return nil, errors.New("to Kubernetes the edit would change more than the image")
	}
	return nil, nil
}

// asKubernetes decodes the documents of a file one by one.
func asKubernetes(raw []byte) ([]any, error) {
	var docs []any
	for _, text := range splitDocuments(raw) {
		var doc any
		if err := k8s.Unmarshal(text, &doc); err != nil {
			return nil, err
		}
		if doc != nil {
			docs = append(docs, doc)
		}
	}
	return docs, nil
}

// place finds in decoded documents the mapping that has the images.
func (d *document) place(docs []any) map[string]any {
	at := 0
	for _, before := range d.docs[:d.at[0]] {
		if len(before.Content) > 0 && !isNull(before.Content[0]) {
			at++
		}
	}
	steps, ok := wayTo(d.docs[d.at[0]].Content[0], d.root)
	if !ok || at >= len(docs) {
		return nil
	}
	place := docs[at]
	for _, step := range steps {
		switch p := place.(type) {
		case map[string]any:
			place = p[step.key]
		case []any:
			place = p[step.index]
		}
	}
	found, _ := place.(map[string]any)
	return found
}

// wayStep is a key of a mapping, or the index of an item.
type wayStep struct {
	key   string
	index int
}

// wayTo lists the steps from a node down to another.
func wayTo(from, to *yaml.Node) ([]wayStep, bool) {
	if from == to {
		return nil, true
	}
	for i, c := range from.Content {
		s := wayStep{index: i}
		if from.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			s.key = from.Content[i-1].Value
		}
		if rest, ok := wayTo(c, to); ok {
			return append([]wayStep{s}, rest...), true
		}
	}
	return nil, false
}

// wantedList is a decoded list with the plans' writes in it.
func (l *listEdit) wantedList(old any) ([]any, error) {
	list, _ := old.([]any)
	for _, p := range l.plans {
		if p.added {
			list = append(list, map[string]any{})
		}
		if p.index >= len(list) {
			return nil, errors.New("to Kubernetes there are fewer entries")
		}
		entry, _ := list[p.index].(map[string]any)
		for _, w := range p.writes {
			switch {
			case w.field == fieldString:
				list[p.index] = w.value
			case entry == nil:
				return nil, errors.New("to Kubernetes an entry is no mapping")
			case w.value == "":
				delete(entry, w.key())
			default:
				entry[w.key()] = w.value
			}
		}
	}
	return list, nil
}

// splitDocuments cuts a file before each line that begins with ---. In a document
// no line can: it would end it (YAML 1.2 §9.1.2).
func splitDocuments(raw []byte) [][]byte {
	var parts [][]byte
	start, at := 0, 0
	raw = bytes.TrimPrefix(raw, []byte(bom))
	for line := range bytes.Lines(raw) {
		if bytes.HasPrefix(line, []byte("---")) && (len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0) {
			parts = append(parts, raw[start:at])
			start = at
		}
		at += len(line)
	}
	return append(parts, raw[start:])
}
