package layout

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/overlay"
)

// plan makes environments and apps of what a scan has read.
type plan struct {
	*scan
	targets      []*target
	environments []Environment
	apps         []App
}

// target is a directory or file in which an environment's images are set, or
// would be.
type target struct {
	path        string
	environment string
	ring        string
	app         string // the element of the path that names it; "" where none does
	pattern     string // path with {app} and {ring}
	entries     []overlay.Entry
	bare        []string // images that run there without an entry
	how         string   // where those are set
}

func (p *plan) make(ctx context.Context, branch func(context.Context, string) (bool, error)) error {
	if err := p.collect(); err != nil {
		return err
	}
	if len(p.targets) == 0 {
		return nil
	}
	p.locate()
	if !slices.ContainsFunc(p.targets, func(t *target) bool { return t.environment != "" }) {
		if err := p.alone(ctx, branch); err != nil {
			return err
		}
	} else {
		p.drop()
		p.list()
	}
	p.order()
	p.name()
	p.unpinned()
	p.give()
	return nil
}

// collect makes targets of what sets images, and of directories that run some.
func (p *plan) collect() error {
	built := map[string]bool{} // by an object that sets its images
	for _, o := range p.objects {
		if len(o.entries) > 0 {
			built[o.path] = true
			p.targets = append(p.targets, &target{path: o.target(), entries: o.entries})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(p.kustomizations)) {
		k := p.kustomizations[dir]
		if len(k.entries) == 0 && built[dir] {
			continue
		}
		if k.component && len(k.entries) > 0 {
			p.remarks.add("%s is a Component: say in prove-with which overlay proves it", dir)
		}
		t := &target{path: dir, entries: k.entries}
		if len(k.entries) == 0 {
			if k.component || len(k.usedBy) > 0 {
				continue
			}
			if err := p.runs(t, k); err != nil {
				return err
			}
		}
		p.targets = append(p.targets, t)
	}
	return nil
}

// runs finds the images of a directory without entries: in its own files and
// patches, else in what it builds.
func (p *plan) runs(t *target, k *kustomization) error {
	own, err := p.imagesIn(k)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		t.bare, t.how = own, "in its own files or patches"
		return nil
	}
	seen := map[string]bool{k.dir: true}
	for next := slices.Clone(k.dirs); len(next) > 0; {
		dir := next[0]
		next = next[1:]
		base := p.kustomizations[dir]
		if base == nil || seen[dir] || len(seen) > depthLimit*4 {
			continue
		}
		seen[dir] = true
		if len(base.entries) > 0 {
			for _, e := range base.entries {
				t.bare = append(t.bare, e.Runs().Repository)
			}
			t.how = "by the images of " + dir
			continue
		}
		next = append(next, base.dirs...)
		found, err := p.imagesIn(base)
		if err != nil {
			return err
		}
		if len(found) > 0 && t.how == "" {
			t.how = "by " + dir
		}
		t.bare = append(t.bare, found...)
	}
	return nil
}

// imagesIn lists what the files of a kustomization run.
func (p *plan) imagesIn(k *kustomization) ([]string, error) {
	found := slices.Clone(k.patched)
	for _, f := range k.files {
		content, err := p.content(f)
		if err != nil {
			return nil, err
		}
		for _, doc := range documents(content) {
			found = append(found, containerImages(doc)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// locate says which environment each target is of: by its path, else by the
// Flux or Argo CD object that leads to it.
func (p *plan) locate() {
	var paths []string
	for _, t := range p.targets {
		paths = append(paths, t.path)
	}
	for _, o := range p.objects {
		paths = append(paths, o.file)
	}
	families := familiesOf(paths)
	led := p.ledTo(families)
	for _, t := range p.targets {
		at, found := placeOf(t.path, families)
		if !found {
			switch names := led[t.path]; len(names) {
			case 0:
			case 1:
				t.environment = names[0]
				p.remarks.add("%s is taken for %s, since an object of that environment leads to it", t.path, names[0])
			default:
				p.remarks.add("%s serves %s at once: a promotion to one is a promotion to all", t.path, strings.Join(names, " and "))
			}
			at = place{index: -1}
		} else {
			t.environment, t.ring = at.environment, at.ring
		}
		t.app, t.pattern = appOf(t.path, at)
		if t.ring != "" {
			t.pattern = strings.Replace(t.pattern, t.ring, "{ring}", 1)
		}
	}
}

// ledTo tells of directories which environments' objects build them.
func (p *plan) ledTo(families map[string][]string) map[string][]string {
	led := map[string][]string{}
	for _, o := range p.objects {
		if at, found := placeOf(o.file, families); found && !slices.Contains(led[o.path], at.environment) {
			led[o.path] = append(led[o.path], at.environment)
		}
	}
	return led
}

// appOf finds the element that names the app: the nearest before the environment
// that is not generic, else the first after it.
func appOf(target string, at place) (app, pattern string) {
	elements := strings.Split(target, "/")
	put := func(i int, name string) (string, string) {
		if config.CheckApp(name) != nil {
			return "", target
		}
		elements[i] = strings.Replace(elements[i], name, "{app}", 1)
		return name, strings.Join(elements, "/")
	}
	if at.restIsApp && at.index >= 0 {
		return put(at.index, at.rest)
	}
	last := len(elements)
	if stem(target) != target {
		last-- // a file's name: its stem is looked at last
	}
	for i := min(at.index, last) - 1; i >= 0; i-- {
		if !generic(elements[i]) {
			return put(i, elements[i])
		}
	}
	for i := at.index + 1; i < last; i++ {
		if !generic(elements[i]) && !region.MatchString(strings.ToLower(elements[i])) {
			return put(i, elements[i])
		}
	}
	if last < len(elements) && at.index < last {
		if name := path.Base(stem(target)); !generic(name) {
			return put(last, name)
		}
	}
	return "", target
}

// drop leaves out what is of no environment, what has no lawful name, and the
// directories without an entry where the environment's app has one elsewhere.
func (p *plan) drop() {
	full := map[[2]string]bool{}
	for _, t := range p.targets {
		if len(t.entries) > 0 {
			full[[2]string{t.environment, t.app}] = true
		}
	}
	runs := slices.ContainsFunc(p.targets, func(t *target) bool { return t.environment != "" && len(t.entries)+len(t.bare) > 0 })
	var left, odd []string
	p.targets = slices.DeleteFunc(p.targets, func(t *target) bool {
		switch {
		case t.environment == "" && len(t.entries) > 0:
			left = append(left, t.path)
			return true
		case t.environment == "", runs && len(t.entries)+len(t.bare) == 0:
			return true
		case config.CheckName(t.environment) != nil:
			odd = append(odd, t.environment)
			return true
		}
		return len(t.entries) == 0 && full[[2]string{t.environment, t.app}]
	})
	if len(left) > 0 {
		p.remarks.add("images are also set outside of every environment, which is left out: %s", some(left))
	}
	if len(odd) > 0 {
		p.remarks.add("left out, since no environment can have such a name: %s", show(some(odd)))
	}
}

// list makes the environments of the targets.
func (p *plan) list() {
	for _, t := range p.targets {
		i := slices.IndexFunc(p.environments, func(e Environment) bool { return e.Name == t.environment })
		if i < 0 {
			p.environments = append(p.environments, Environment{Name: t.environment, rank: rankOf(t.environment)})
			i = len(p.environments) - 1
		}
		e := &p.environments[i]
		if t.ring != "" && !slices.Contains(e.Rings, t.ring) {
			e.Rings = append(e.Rings, t.ring)
			slices.SortFunc(e.Rings, func(a, b string) int {
				if len(a) != len(b) {
					return len(a) - len(b)
				}
				return strings.Compare(a, b)
			})
		}
	}
}
