package layout

import (
	"maps"
	"path"
	"slices"
	"strings"

	"tagboat/config"
	"tagboat/image"
)

// seen is an image of an app as one target has it.
type seen struct {
	target     *target
	repository string
	entry      string // "" where there is no entry
	renamed    bool   // the entry has a newName
}

// name makes the apps: one of each element that names one, and one of each image
// where no element does.
func (p *plan) name() {
	found := map[string][]seen{}
	for _, t := range p.targets {
		for _, s := range p.seenIn(t) {
			name := t.app
			if name == "" {
				name = path.Base(s.repository)
			}
			if config.CheckApp(name) != nil {
				p.remarks.add("the image %s of %s is left out: %s can be no app's name", show(s.repository), t.path, show(name))
				continue
			}
			found[name] = append(found[name], s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p.apps = append(p.apps, p.app(name, found[name]))
	}
	p.apart()
	for i := range p.apps {
		p.where(&p.apps[i], found[p.apps[i].Name])
	}
	if len(p.apps) == 0 {
		p.remarks.add("no images entry and no image of a container was found: what is run is told elsewhere (values of a chart, another repository), which Tagboat does not edit")
	}
}

// seenIn lists the images of a target.
func (p *plan) seenIn(t *target) []seen {
	var out []seen
	for _, e := range t.entries {
		repository, ok := repositoryOf(e.Runs().Repository)
		if !ok {
			p.remarks.add("the entry %s in %s is left out: no registry has such an image", show(e.Name), show(e.File))
			continue
		}
		out = append(out, seen{target: t, repository: repository, entry: e.Name, renamed: e.NewName != ""})
	}
	for _, img := range t.bare {
		if repository, ok := repositoryOf(img); ok {
			out = append(out, seen{target: t, repository: repository})
		} else {
			p.remarks.add("the image %s that %s runs is left out: no registry has such an image", show(oneLine(img)), t.path)
		}
	}
	return out
}

// app makes one app. Where an entry of one name runs from several repositories (a
// mirror each), the first environment's is where the build pushes.
func (p *plan) app(name string, all []seen) App {
	slices.SortStableFunc(all, func(a, b seen) int { return p.position(a) - p.position(b) })
	a := App{Name: name}
	mirrors := map[string][]string{}
	for _, s := range all {
		if s.entry != "" && !slices.Contains(mirrors[s.entry], s.repository) {
			mirrors[s.entry] = append(mirrors[s.entry], s.repository)
		}
	}
	var without []string
	for _, s := range all {
		im := config.Image{Repository: s.repository}
		if many := mirrors[s.entry]; len(many) > 1 {
			im = config.Image{Repository: many[0], Name: s.entry}
		}
		if s.entry == "" && !slices.Contains(without, s.target.path) {
			without = append(without, s.target.path)
			a.Notes = append(a.Notes, s.target.path+" has no images entry: the image is set "+s.target.how+". Add one with --add.")
		}
		if !slices.ContainsFunc(a.Images, func(o config.Image) bool {
			return image.SameRepository(o.Repository, im.Repository) && o.Name == im.Name
		}) {
			a.Images = append(a.Images, im)
			a.Notes = append(a.Notes, notesOf(im, mirrors[s.entry])...)
		}
	}
	if len(without) > 0 {
		p.remarks.add("%s has no images entry in %s: the image is set %s; a promotion there needs --add", name, some(without), all[slices.IndexFunc(all, func(s seen) bool { return s.entry == "" })].target.how)
	}
	if len(a.Images) > 1 {
		a.Notes = append(a.Notes, "These images stand together: part them into apps where they are not released together, and leave out what no build of yours pushes.")
	}
	if len(a.Notes) > noteLimit {
		a.Notes = append(a.Notes[:noteLimit], "…")
	}
	return a
}

// noteLimit bounds the comments above one app.
const noteLimit = 8

// position is where an image's environment stands in the order.
func (p *plan) position(s seen) int {
	return slices.IndexFunc(p.environments, func(e Environment) bool { return e.Name == s.target.environment })
}

func notesOf(im config.Image, mirrors []string) []string {
	var notes []string
	if len(mirrors) > 1 {
		notes = append(notes, "The entry "+im.Name+" runs from "+strings.Join(mirrors, ", ")+": the first is taken for where the build pushes.")
	}
	if !strings.Contains(im.Repository, "/") {
		notes = append(notes, "Unsure: is "+im.Repository+" where the build pushes, or a placeholder?")
	}
	return notes
}

// apart gives an image that several apps have to the one that is named like it,
// else to the first, for an image belongs to one app.
func (p *plan) apart() {
	owner := map[string]string{}
	for _, a := range p.apps {
		for _, im := range a.Images {
			key := image.Canonical(im.Repository)
			if old, taken := owner[key]; !taken || old != a.Name && a.Name == path.Base(im.Repository) {
				owner[key] = a.Name
			}
		}
	}
	for i := range p.apps {
		a := &p.apps[i]
		a.Images = slices.DeleteFunc(a.Images, func(im config.Image) bool {
			mine := owner[image.Canonical(im.Repository)]
			if mine != a.Name {
				p.remarks.add("%s stands in the apps %s and %s, and an image belongs to one app: it is left out of %s", im.Repository, mine, a.Name, a.Name)
			}
			return mine != a.Name
		})
	}
	p.apps = slices.DeleteFunc(p.apps, func(a App) bool { return len(a.Images) == 0 })
}

// where says in which environments an app is. One that is only where images are
// promoted to, and not where from, cannot be written.
func (p *plan) where(a *App, all []seen) {
	in := map[string]bool{}
	for _, s := range all {
		in[s.target.environment] = true
	}
	if in[""] {
		return // one branch an environment: in all of them
	}
	for _, e := range p.environments {
		if in[e.Name] {
			a.Environments = append(a.Environments, e.Name)
		}
	}
	if len(a.Environments) == len(p.environments) {
		a.Environments = nil
		return
	}
	for _, e := range p.environments {
		if in[e.Name] && len(e.From) > 0 && !slices.ContainsFunc(e.From, func(f string) bool { return in[f] }) {
			a.Off = "it is in " + e.Name + ", which is promoted from " + strings.Join(e.From, " and ") + ", where it is not"
			p.remarks.add("the app %s is written as a comment: %s", a.Name, a.Off)
			return
		}
	}
}
