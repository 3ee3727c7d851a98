package layout

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// give gives each environment the paths that name its apps' targets. Apps whose
// targets no paths can name together with the others' are left out.
func (p *plan) give() {
	for i := range p.environments {
		e := &p.environments[i]
		w := p.wanted(e)
		if len(w) == 0 {
			e.Paths = []string{p.anyPath(e)}
			continue
		}
		paths, met := w.paths(p.scan)
		if !met {
			for _, name := range w.minority() {
				p.leaveOut(name, w[name])
				delete(w, name)
			}
			paths, _ = w.paths(p.scan)
		}
		if e.Paths = paths; slices.ContainsFunc(paths, func(s string) bool { return strings.ContainsAny(s, "*[") }) {
			e.Notes = append(e.Notes, "A path with * or [ ] may be missing for an app; one without them must be there.")
		}
	}
}

// leaveOut makes an app a comment.
func (p *plan) leaveOut(name string, targets []*target) {
	i := slices.IndexFunc(p.apps, func(a App) bool { return a.Name == name })
	p.apps[i].Off = "its image is set elsewhere than the others': promote it with --path " + targets[0].path
	p.remarks.add("the app %s is written as a comment: %s", name, p.apps[i].Off)
}

// paths tries ways to write the targets' paths, and tells whether one gives every
// app its targets.
func (w want) paths(s *scan) ([]string, bool) {
	literal := w.literal()
	ways := [][]string{literal, stars(literal), brackets(literal)}
	if len(literal) > pathLimit {
		ways[0], ways[1] = ways[1], ways[0]
	}
	for _, way := range ways {
		if w.met(way, s) {
			return way, true
		}
	}
	return literal, false
}

// minority are the apps whose patterns fewer apps have than any other's.
func (w want) minority() []string {
	groups := map[string][]string{}
	for app, targets := range w {
		key := strings.Join(want{app: targets}.literal(), "\n")
		groups[key] = append(groups[key], app)
	}
	best := ""
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if best == "" || len(groups[key]) > len(groups[best]) {
			best = key
		}
	}
	var out []string
	for key, apps := range groups {
		if key != best {
			out = append(out, apps...)
		}
	}
	slices.Sort(out)
	return out
}

// pathLimit is how many paths an environment has before they are written with a *.
const pathLimit = 12

// anyPath is where an environment without any image is.
func (p *plan) anyPath(e *Environment) string {
	for _, t := range p.targets {
		if t.environment == e.Name {
			return t.pattern
		}
	}
	return "."
}

// want is what an environment's paths must give: of each app its targets.
type want map[string][]*target

func (p *plan) wanted(e *Environment) want {
	w := want{}
	for _, a := range p.apps {
		if a.Off != "" {
			continue
		}
		for _, t := range p.targets {
			if (t.environment == e.Name || t.environment == "") && (t.app == a.Name || t.app == "" && runsApp(t, a)) {
				w[a.Name] = append(w[a.Name], t)
			}
		}
	}
	return w
}

// runsApp says whether a target without an app's name has one of its images.
func runsApp(t *target, a App) bool {
	for _, im := range a.Images {
		if slices.ContainsFunc(t.repositories(), func(r string) bool { return r == im.Repository }) {
			return true
		}
	}
	return false
}

func (t *target) repositories() []string {
	var out []string
	for _, e := range t.entries {
		if r, ok := repositoryOf(e.Runs().Repository); ok {
			out = append(out, r)
		}
	}
	for _, img := range t.bare {
		if r, ok := repositoryOf(img); ok {
			out = append(out, r)
		}
	}
	return out
}

// literal lists the targets' patterns as they are.
func (w want) literal() []string {
	var out []string
	for _, targets := range w {
		for _, t := range targets {
			out = append(out, t.pattern)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// met says whether paths give every app its targets and nothing else.
func (w want) met(paths []string, s *scan) bool {
	for app, targets := range w {
		var got []string
		for _, pattern := range paths {
			got = append(got, s.expand(strings.ReplaceAll(pattern, "{app}", app))...)
		}
		var wanted []string
		for _, t := range targets {
			wanted = append(wanted, t.path)
		}
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(slices.Compact(got), slices.Compact(wanted)) {
			return false
		}
	}
	return true
}

// expand is what config.Targets makes of a path, on what was scanned.
func (s *scan) expand(pattern string) []string {
	pattern = strings.Replace(pattern, "{ring}", "*", 1)
	if !strings.ContainsAny(pattern, "*[") {
		return []string{pattern}
	}
	var found []string
	match := func(name string) {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			found = append(found, name)
		}
	}
	for _, dir := range s.dirs {
		if !isYAML(pattern) {
			match(dir)
			continue
		}
		for _, f := range s.files[dir] {
			match(f)
		}
	}
	return found
}

// stars joins paths that differ in one element alone by writing it as *.
func stars(paths []string) []string {
	out := slices.Clone(paths)
	for i := 0; i < len(out); i++ {
		for j := len(out) - 1; j > i; j-- {
			if joined, ok := star(out[i], out[j]); ok {
				out[i] = joined
				out = slices.Delete(out, j, j+1)
			}
		}
	}
	return slices.Compact(out)
}

func star(a, b string) (string, bool) {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	if len(x) != len(y) {
		return "", false
	}
	differ := -1
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		if differ >= 0 || strings.Contains(x[i]+y[i], "{") {
			return "", false
		}
		differ = i
	}
	if differ < 0 {
		return a, true
	}
	x[differ] = "*"
	if isYAML(a) {
		x[differ] += path.Ext(a)
	}
	return strings.Join(x, "/"), true
}

// brackets makes paths of which one may be missing, by writing one letter as a
// pattern: a pattern gives what is there.
func brackets(paths []string) []string {
	out := slices.Clone(paths)
	for i, p := range out {
		if k := letter(stem(p)); k >= 0 && !strings.ContainsAny(p, "*[#") {
			out[i] = p[:k] + "[" + p[k:k+1] + "]" + p[k+1:]
		}
	}
	return out
}

// letter is where the last element with one begins with a letter; -1 for none.
func letter(p string) int {
	found := -1
	for i := range len(p) {
		if c := p[i]; (i == 0 || p[i-1] == '/') && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			found = i
		}
	}
	return found
}
