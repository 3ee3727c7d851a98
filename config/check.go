package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"tagboat/image"
)

// check reports what a decoded document cannot mean. It also writes paths in
// their shortest form.
func check(c *Config, r *report) {
	checkVersion(c.Version, r)
	checkInclude(c.Include, r)
	checkPolicy("defaults", c.Defaults, r)
	checkEnvironments(c, r)
	checkApps(c, r)
	checkGroups(c, r)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func checkVersion(version int, r *report) {
	if version != 1 {
		r.wrong("version", "there is version 1 alone; a newer Tagboat may know %d", version)
	}
}

func checkInclude(include []string, r *report) {
	for i, pattern := range include {
		at := fmt.Sprintf("include[%d]", i)
		if err := checkPath(pattern); err != nil {
			r.wrong(at, "%v", err)
			continue
		}
		include[i] = path.Clean(pattern)
		switch {
		case strings.ContainsAny(pattern, "{}"):
			r.wrong(at, "%q has a brace: write each path, or '*'", pattern)
		case path.Dir(include[i]) == ".":
			r.wrong(at, "%q is at the top of the repository: a file of a team is in a directory of its own", pattern)
		case path.Ext(include[i]) != ".yaml" && path.Ext(include[i]) != ".yml":
			r.wrong(at, "%q does not end in .yaml", pattern)
		}
	}
}

func checkApps(c *Config, r *report) {
	owners := map[string]string{}
	for _, name := range sortedKeys(c.Apps) {
		app, at := c.Apps[name], join("apps", name)
		if err := CheckApp(name); err != nil {
			r.wrong(at, "%v", err)
		}
		if app.Group != "" {
			if err := CheckApp(app.Group); err != nil {
				r.wrong(at+".group", "%v", err)
			}
		}
		for i, e := range app.Environments {
			if _, err := c.Environment(e); err != nil {
				r.wrong(fmt.Sprintf("%s.environments[%d]", at, i), "no environment %q%s", e, hint(e, c.EnvironmentNames()))
			}
		}
		checkImages(at, name, app.Images, owners, r)
	}
}

// checkImages also notes which app owns a repository.
func checkImages(at, app string, images []Image, owners map[string]string, r *report) {
	entries := map[Image]bool{}
	for i, im := range images {
		here := fmt.Sprintf("%s.images[%d]", at, i)
		ref, err := image.Parse(im.Repository)
		switch {
		case err != nil:
			r.wrong(here+".repository", "%v", err)
			continue
		case ref.Tag != "" || ref.Digest != "":
			r.wrong(here+".repository", "%s has a tag or digest: write %s", im.Repository, ref.Repository)
			continue
		}
		canonical := image.Canonical(im.Repository)
		if owner, ok := owners[canonical]; ok && owner != app {
			r.wrong(here+".repository", "%s belongs to the app %s already: an image belongs to one app", im.Repository, owner)
			continue
		}
		owners[canonical] = app
		entry := Image{Repository: canonical, Name: im.Name}
		if entries[entry] {
			r.wrong(here, "the image is in the list already")
		}
		entries[entry] = true
	}
}

// checkGroups keeps the names of groups and apps apart: both name head branches.
func checkGroups(c *Config, r *report) {
	for _, name := range sortedKeys(c.Apps) {
		app := c.Apps[name]
		if other, ok := c.Apps[app.Group]; ok && app.File == r.file {
			r.wrong(join("apps", name)+".group", "%s is the name of an app (%s:%d): choose another", app.Group, other.File, other.Line)
		}
		if app.Group == "" || app.File == r.file {
			continue
		}
		if own, ok := c.Apps[app.Group]; ok && own.File == r.file {
			r.wrong(join("apps", app.Group), "%s is the name of a group (app %s, %s:%d): choose another", app.Group, name, app.File, app.Line)
		}
	}
}
