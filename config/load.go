package config

import (
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
)

// includeLimit bounds the files of teams.
const includeLimit = 500

// Load reads tagboat.yaml at the top of fsys and the files that it includes, fills
// in the defaults and checks all of it. What is wrong is one error, an *Invalid
// that lists it by file and line. Without the file the error is fs.ErrNotExist; an
// error of fsys itself passes through.
func Load(fsys fs.FS) (*Config, error) {
	content, err := read(fsys, FileName)
	if err != nil {
		return nil, err
	}
	r := newReport(FileName)
	c := parse(content, r)
	if err := invalid(r); err != nil {
		return nil, err
	}
	reports, err := c.include(fsys, r)
	if err != nil {
		return nil, err
	}
	if err := invalid(append([]*report{r}, reports...)...); err != nil {
		return nil, err
	}
	return c, nil
}

// parse decodes and checks the root's file.
func parse(content []byte, r *report) *Config {
	c := &Config{Defaults: builtIn(), owners: map[string]owner{}, tightened: map[string]map[string]Policy{}}
	root := document(content, r)
	if root == nil {
		return c
	}
	d := &decoder{report: r, prefill: func(at string, v reflect.Value, _ *yaml.Node) {
		if e, ok := v.Addr().Interface().(*Environment); ok {
			e.Policy = c.Defaults.clone()
		}
	}}
	defaultsFirst(root)
	d.decode("", root, reflect.ValueOf(c).Elem(), field{})
	c.place(".", r)
	check(c, r)
	return c
}

// defaultsFirst moves the key defaults to the front, for the environments start
// from it. Lines stay with their nodes.
func defaultsFirst(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "defaults" {
			key, value := root.Content[i], root.Content[i+1]
			root.Content = slices.Insert(slices.Delete(root.Content, i, i+2), 0, key, value)
			return
		}
	}
}

// place notes where apps are defined.
func (c *Config) place(dir string, r *report) {
	for name, app := range c.Apps {
		app.Dir, app.File, app.Line = dir, r.file, r.lines[join("apps", name)]
		c.Apps[name] = app
	}
}

// include reads the files of teams: side by side, for each may be a call, and
// then in order.
func (c *Config) include(fsys fs.FS, root *report) ([]*report, error) {
	files, err := c.included(fsys, root)
	if err != nil {
		return nil, err
	}
	contents := make([][]byte, len(files))
	var reads errgroup.Group
	reads.SetLimit(readsAtOnce)
	for i, name := range files {
		reads.Go(func() (err error) {
			contents[i], err = readPlain(fsys, name)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	var reports []*report
	for i, name := range files {
		r := newReport(name)
		reports = append(reports, r)
		if contents[i] == nil {
			r.add(0, "the file is no plain file: a symlink would lead out of its directory")
			continue
		}
		c.join(contents[i], r)
	}
	return reports, nil
}

const readsAtOnce = 8

// readPlain reads a file; nil for what is none.
func readPlain(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil
	}
	return read(fsys, name)
}

// included lists the files that the patterns name, each once and in order.
func (c *Config) included(fsys fs.FS, r *report) ([]string, error) {
	var files []string
	for i, pattern := range c.Include {
		matches, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: include %s: %w", FileName, pattern, err)
		}
		if len(matches) == 0 {
			r.wrong(fmt.Sprintf("include[%d]", i), "no file matches %s", pattern)
		}
		files = append(files, matches...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if len(files) > includeLimit {
		r.wrong("include", "%d files match, at most %d are read", len(files), includeLimit)
		return nil, nil
	}
	apart(files, r)
	return files, nil
}

// apart reports files whose directories are not their own.
func apart(files []string, r *report) {
	for i, file := range files {
		dir := path.Dir(file)
		if strings.ContainsAny(dir, `*?[]{}\`) {
			r.wrong("include", "%s: the directory's name has a character of patterns: rename it", file)
		}
		for _, other := range files[:i] {
			if within(dir, path.Dir(other)) || within(path.Dir(other), dir) {
				r.wrong("include", "%s and %s are not apart: each file needs a directory of its own, neither in the other", other, file)
			}
		}
	}
}

// within says whether a path is a directory or below it.
func within(p, dir string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}

// join adds a team's file to the root's configuration.
func (c *Config) join(content []byte, r *report) {
	dir := path.Dir(r.file)
	var team Included
	root := document(content, r)
	if root == nil {
		return
	}
	d := &decoder{report: r, prefill: func(_ string, v reflect.Value, n *yaml.Node) {
		if t, ok := v.Addr().Interface().(*Tightened); ok {
			*t = c.untightened(n)
		}
	}}
	d.decode("", root, reflect.ValueOf(&team).Elem(), field{})
	own := &Config{Version: team.Version, Apps: team.Apps, Environments: c.Environments, owners: c.owners}
	own.place(dir, r)
	checkVersion(team.Version, r)
	checkApps(own, r)
	c.tighten(dir, team.Environments, r)
	c.adopt(own.Apps, r)
}

// adopt takes over a team's apps; their names must be new.
func (c *Config) adopt(apps map[string]App, r *report) {
	if c.Apps == nil {
		c.Apps = map[string]App{}
	}
	for _, name := range sortedKeys(apps) {
		at := join("apps", name)
		if other, ok := c.Apps[name]; ok {
			r.wrong(at, "the app is there already, in %s:%d", other.File, other.Line)
			continue
		}
		c.Apps[name] = apps[name]
	}
	checkGroups(c, r)
}
