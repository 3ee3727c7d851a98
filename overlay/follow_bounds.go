package overlay

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Bounds of what kustomize makes of a tree, which may be far more than the tree:
// a directory listed twice on each of twenty levels is built a million times, and
// so is a YAML alias to aliases.
const (
	maxVisits = 5000
	maxBuilt  = 32 << 20 // bytes, each file counted as often as it is built
	maxNodes  = 500_000  // YAML nodes of one file, aliases expanded
)

// bounded says why a tree would take too much time or memory to build.
func (t *buildTree) bounded() error {
	type sum struct{ visits, bytes int }
	sums := map[string]sum{}
	open := map[string]bool{}
	var visit func(dir string) (sum, error)
	visit = func(dir string) (sum, error) {
		k := t.dirs[dir]
		if k == nil {
			return sum{}, nil
		}
		if open[dir] {
			return sum{}, broken{fmt.Errorf("%s includes itself, through others or directly", dir)}
		}
		if s, ok := sums[dir]; ok {
			return s, nil
		}
		open[dir] = true
		defer delete(open, dir)
		s := sum{visits: 1, bytes: len(t.files[k.file])}
		for _, f := range k.files {
			s.bytes += len(t.files[f])
		}
		for _, child := range k.children {
			c, err := visit(child)
			if err != nil {
				return sum{}, err
			}
			s.visits = min(s.visits+c.visits, maxVisits+1)
			s.bytes = min(s.bytes+c.bytes, maxBuilt+1)
		}
		sums[dir] = s
		return s, nil
	}
	s, err := visit(t.dir)
	switch {
	case err != nil:
		return err
	case s.visits > maxVisits:
		return skip{fmt.Sprintf("%s builds more than %d directories, counted as often as each is listed", t.dir, maxVisits)}
	case s.bytes > maxBuilt:
		return skip{fmt.Sprintf("%s builds more than %d MB", t.dir, maxBuilt>>20)}
	}
	return nil
}

// aliasesBounded says why the YAML aliases in a file, or in a text within it (an
// inline patch, say), would expand to too much.
func aliasesBounded(name string, content []byte) error {
	if !hasAliases(string(content)) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for total := 0; total <= maxNodes; {
		var n yaml.Node
		if decoder.Decode(&n) != nil {
			return nil // the end, or no YAML: that is for kustomize to refuse
		}
		var err error
		scalars(&n, "", func(_, text string) {
			if err == nil && len(text) < len(content) {
				err = aliasesBounded(name, []byte(text))
			}
		})
		if err != nil {
			return err
		}
		total += expanded(&n, map[*yaml.Node]int{})
	}
	return skip{fmt.Sprintf("%s: its YAML aliases expand to more than %d nodes", name, maxNodes)}
}

func hasAliases(text string) bool {
	return strings.Contains(text, "&") && strings.Contains(text, "*")
}

// expanded counts the nodes below n with each alias replaced by what it names.
// An alias within its own anchor counts as too many.
func expanded(n *yaml.Node, known map[*yaml.Node]int) int {
	if count, ok := known[n]; ok {
		return count
	}
	known[n] = maxNodes + 1
	count := 1
	if n.Alias != nil {
		count = min(count+expanded(n.Alias, known), maxNodes+1)
	}
	for _, child := range n.Content {
		count = min(count+expanded(child, known), maxNodes+1)
	}
	known[n] = count
	return count
}
