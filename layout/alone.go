package layout

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// alone is for a repository whose paths name no environment: one branch each, or
// one environment alone.
func (p *plan) alone(ctx context.Context, branch func(context.Context, string) (bool, error)) error {
	p.roots()
	var found []string
	for _, name := range usualBranches() {
		if branch == nil {
			break
		}
		there, err := branch(ctx, name)
		if err != nil {
			return fmt.Errorf("look for branch %s: %w", name, err)
		}
		if there {
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		p.remarks.add("no directory names an environment, and there are the branches %s: each is taken for an environment of that name", strings.Join(found, ", "))
		for _, name := range found {
			p.environments = append(p.environments, Environment{
				Name: name, Branch: name, rank: rankOf(name), Notes: []string{"Unsure: one branch an environment, with the same directories in each."},
			})
		}
		return nil
	}
	p.remarks.add("nothing tells of environments: one is assumed, named default; rename it")
	p.environments = []Environment{{Name: "default", Notes: []string{"Unsure: no path and no branch names an environment. Give it its name."}}}
	return nil
}

// roots keeps the targets that nobody else builds; where none of these sets or
// runs an image, those that others build.
func (p *plan) roots() {
	top := slices.DeleteFunc(slices.Clone(p.targets), func(t *target) bool {
		k := p.kustomizations[t.path]
		return k != nil && len(k.usedBy) > 0 || len(t.entries)+len(t.bare) == 0
	})
	set := slices.DeleteFunc(slices.Clone(p.targets), func(t *target) bool { return len(t.entries) == 0 })
	switch {
	case slices.ContainsFunc(top, func(t *target) bool { return len(t.entries) > 0 }):
		p.targets = slices.DeleteFunc(top, func(t *target) bool { return len(t.entries) == 0 })
	case len(set) > 0:
		p.targets = set
		p.remarks.add("images are set only in directories that others build on (%s), and a promotion there, which would reach all of these, may be refused as shared: set them in an overlay", some(pathsOf(set)))
	default:
		p.targets = top
	}
}

func pathsOf(targets []*target) []string {
	var out []string
	for _, t := range targets {
		out = append(out, t.path)
	}
	return out
}

// some names the first few.
func some(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + fmt.Sprintf(" and %d more", len(names)-4)
	}
	return strings.Join(names, ", ")
}
