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
	checkChat(c.Chat, r)
}

func checkChat(chat Chat, r *report) {
	for _, id := range sortedKeys(chat.Slack) {
		at, login := join("chat.slack", id), chat.Slack[id]
		switch {
		case !slackGrammar.MatchString(id):
			r.wrong(at, "%q is no Slack user's id: write TEAM/USER, as in T0123/U0456, or U0456", id)
		case !loginGrammar.MatchString(login):
			r.wrong(at, "%q is nobody: write the login on the forge", login)
		}
	}
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
		checkWhere(c, at, app, r)
		checkSource(app.Source, at+".source", r)
		checkImages(c, at, name, r)
	}
}

// checkWhere holds an app's environments to the order: where its image is
// promoted from, it must be. A team's app must be in all of these, for otherwise
// the team could leave out the environment that has the stricter rules.
func checkWhere(c *Config, at string, app App, r *report) {
	for i, name := range app.Environments {
		here := fmt.Sprintf("%s.environments[%d]", at, i)
		e, err := c.Environment(name)
		if err != nil {
			r.wrong(here, "no environment %q%s", name, Nearest(name, c.EnvironmentNames()))
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(e.From), app.In)
		if len(missing) > 0 && (app.Dir != "." || len(missing) == len(e.From)) {
			r.wrong(here, "%s is promoted from %s, where the app is not: add it", name, strings.Join(missing, ", "))
		}
	}
}

// owner is the app that an image belongs to.
type owner struct {
	app string
	App
}

// checkSource holds where source code is to what repositories can be named.
func checkSource(source, at string, r *report) {
	if source == "" {
		return
	}
	if err := checkRepository(source); err != nil {
		r.wrong(at, "%v", err)
	}
}

// checkImages also notes which app owns a repository.
func checkImages(c *Config, at, app string, r *report) {
	entries := map[Image]bool{}
	for i, im := range c.Apps[app].Images {
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
		if o, ok := c.owners[canonical]; ok && (o.app != app || o.File != r.file) {
			r.wrong(here+".repository", "%s belongs to the app %s already (%s:%d): an image belongs to one app", im.Repository, o.app, o.File, o.Line)
			continue
		}
		c.owners[canonical] = owner{app, c.Apps[app]}
		entry := Image{Repository: canonical, Name: im.Name}
		if entries[entry] {
			r.wrong(here, "the image is in the list already")
		}
		entries[entry] = true
	}
}

// checkGroups keeps the names of groups and apps apart, for both name head
// branches, and a group in one file.
func checkGroups(c *Config, r *report) {
	files := map[string]string{}
	names := sortedKeys(c.Apps)
	for _, name := range names {
		if app := c.Apps[name]; app.Group != "" && app.File != r.file {
			files[app.Group] = app.File
		}
	}
	for _, name := range names {
		app := c.Apps[name]
		if app.Group == "" {
			continue
		}
		other, taken := c.Apps[app.Group]
		switch {
		case taken && app.File == r.file:
			r.wrong(join("apps", name)+".group", "%s is the name of an app (%s:%d): choose another", app.Group, other.File, other.Line)
		case taken && other.File == r.file:
			r.wrong(join("apps", app.Group), "%s is the name of a group (app %s, %s:%d): choose another", app.Group, name, app.File, app.Line)
		case app.File == r.file && files[app.Group] != "":
			r.wrong(join("apps", name)+".group", "the group %s is in %s: a group is of one file", app.Group, files[app.Group])
		}
	}
}
