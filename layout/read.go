package layout

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"tagboat/overlay"
)

// kustomization is a directory that kustomize builds.
type kustomization struct {
	dir       string
	component bool
	dirs      []string // resources, components and bases that are directories here
	files     []string // resources and patches that are files here
	remote    bool     // something is fetched
	helm      bool     // a chart is inflated
	entries   []overlay.Entry
	patched   []string // images that inline patches set
	usedBy    []string // directories that build it
}

// object is a Flux Kustomization or an Argo CD Application or ApplicationSet.
type object struct {
	file, kind, name string
	several          bool // the file has more than one
	path             string
	entries          []overlay.Entry
}

// readAll reads the kustomizations, then the other YAML files as far as the
// bounds allow, those that look like a GitOps tool's first.
func (s *scan) readAll() error {
	dirs := slices.DeleteFunc(slices.Clone(s.dirs), func(dir string) bool {
		return kustomizationFile(s.files[dir]) == ""
	})
	found := make([]*kustomization, len(dirs))
	err := s.each(len(dirs), func(i int) (err error) {
		found[i], err = s.kustomization(dirs[i])
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range found {
		if k != nil {
			s.kustomizations[k.dir] = k
		}
	}
	for _, dir := range dirs {
		if k := s.kustomizations[dir]; k != nil {
			for _, used := range k.dirs {
				if base := s.kustomizations[used]; base != nil {
					base.usedBy = append(base.usedBy, dir)
				}
			}
		}
	}
	return s.readObjects()
}

func (s *scan) each(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// kustomizationFile is the file of a directory that kustomize reads; "" where
// there is none.
func kustomizationFile(files []string) string {
	for _, f := range files {
		switch path.Base(f) {
		case "kustomization.yaml", "kustomization.yml", "Kustomization":
			return f
		}
	}
	return ""
}

func (s *scan) kustomization(dir string) (*kustomization, error) {
	file := kustomizationFile(s.files[dir])
	content, err := s.content(file)
	if err != nil || content == nil {
		return nil, err
	}
	root := firstDocument(content)
	if root == nil {
		s.remarks.add("%s is left out: it is not YAML as a kustomization is written", show(file))
		return nil, nil
	}
	if strings.HasPrefix(text(root, "apiVersion"), "kustomize.toolkit.fluxcd.io/") {
		return nil, nil // a Flux object in a file of that name
	}
	k := &kustomization{dir: dir, component: text(root, "kind") == "Component", helm: value(root, "helmCharts") != nil || value(root, "helmChartInflationGenerator") != nil}
	for _, key := range []string{"resources", "components", "bases"} {
		for _, ref := range texts(value(root, key)) {
			s.refer(k, ref)
		}
	}
	for _, key := range []string{"patches", "patchesStrategicMerge"} {
		for _, p := range items(value(root, key)) {
			s.patch(k, p)
		}
	}
	k.entries, err = overlay.Entries(s.fsys, dir)
	if err != nil && (errors.Is(err, overlay.ErrUnsafe) || errors.Is(err, overlay.ErrNoKustomization)) {
		s.remarks.add("%s: Tagboat could not edit it: %s", show(dir), oneLine(err.Error()))
		err = nil
	}
	return k, err
}

// refer notes what a kustomization builds: a directory or a file here, or
// something that is fetched.
func (s *scan) refer(k *kustomization, ref string) {
	at := path.Join(k.dir, ref)
	switch {
	case path.IsAbs(ref), strings.HasPrefix(at, "../"), at == "..":
		k.remote = true
	case s.known(at):
		k.dirs = append(k.dirs, at)
	case slices.Contains(s.files[path.Dir(at)], at):
		k.files = append(k.files, at)
	default:
		k.remote = true
	}
}

func (s *scan) known(dir string) bool {
	return dir == "." || slices.Contains(s.below[path.Dir(dir)], dir)
}

// patch notes a patch in any of its forms: a file's name, or a mapping with path
// or with the patch itself.
func (s *scan) patch(k *kustomization, p *yaml.Node) {
	inline := text(p, "patch")
	if p.Kind == yaml.ScalarNode {
		inline = p.Value
	}
	if name := text(p, "path"); name != "" {
		inline = name
	}
	if strings.Contains(inline, "\n") {
		for _, doc := range documents([]byte(inline)) {
			k.patched = append(k.patched, containerImages(doc)...)
		}
		return
	}
	if at := path.Join(k.dir, inline); inline != "" && slices.Contains(s.files[path.Dir(at)], at) {
		k.files = append(k.files, at)
	}
}

// readObjects reads files that may hold objects of Flux or Argo CD.
func (s *scan) readObjects() error {
	var files []string
	for _, dir := range s.dirs {
		if strings.HasPrefix(dir, ".") && dir != "." {
			continue
		}
		for _, f := range s.files[dir] {
			if isYAML(f) && f != kustomizationFile(s.files[dir]) && plainPath(f) {
				files = append(files, f)
			}
		}
	}
	slices.SortStableFunc(files, func(a, b string) int { return likely(b) - likely(a) })
	found := make([][]object, len(files))
	err := s.each(len(files), func(i int) (err error) {
		found[i], err = s.objectsIn(files[i])
		return err
	})
	s.objects = slices.Concat(found...)
	return err
}

// likely is higher for a file of a directory in which such objects are kept.
func likely(file string) int {
	for _, word := range []string{"cluster", "argo", "flux", "gitops", "application"} {
		if strings.Contains(strings.ToLower(file), word) {
			return 1
		}
	}
	return 0
}

func (s *scan) objectsIn(file string) ([]object, error) {
	content, err := s.content(file)
	if err != nil || !bytes.Contains(content, []byte("argoproj.io/")) && !bytes.Contains(content, []byte("kustomize.toolkit.fluxcd.io/")) {
		return nil, err
	}
	var found []object
	for _, doc := range documents(content) {
		if o := objectOf(doc); o.kind != "" {
			o.file = file
			found = append(found, o)
		}
	}
	for i := range found {
		o := &found[i]
		o.several = len(found) > 1
		o.entries, err = overlay.Entries(s.fsys, o.target())
		switch {
		case errors.Is(err, overlay.ErrNoKustomization): // a chart, a plugin, a directory
		case errors.Is(err, overlay.ErrUnsafe):
			s.remarks.add("%s: Tagboat could not edit it: %s", show(o.target()), oneLine(err.Error()))
		case err != nil:
			return nil, err
		}
	}
	return found, nil
}

// target is how --path names the object.
func (o object) target() string {
	if o.several {
		return o.file + "#" + o.name
	}
	return o.file
}

func objectOf(doc *yaml.Node) object {
	group, _, _ := strings.Cut(text(doc, "apiVersion"), "/")
	o := object{kind: text(doc, "kind"), name: text(value(doc, "metadata"), "name")}
	if !plainPath(o.name) || strings.Contains(o.name, "/") {
		return object{}
	}
	spec := value(doc, "spec")
	switch {
	case group == "kustomize.toolkit.fluxcd.io" && o.kind == "Kustomization":
		o.path = text(spec, "path")
	case group == "argoproj.io" && o.kind == "Application":
		o.path = text(value(spec, "source"), "path")
	case group == "argoproj.io" && o.kind == "ApplicationSet":
		o.path = text(value(value(value(spec, "template"), "spec"), "source"), "path")
	default:
		return object{}
	}
	if o.path = path.Clean("/" + o.path)[1:]; o.path == "" || !fs.ValidPath(o.path) {
		o.path = "."
	}
	return o
}
