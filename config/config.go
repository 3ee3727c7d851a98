// Package config is tagboat.yaml: what a team's apps and environments are, in
// which order a promotion goes through them and under which rules. It reads the
// file strictly, says what is wrong with it by file and line, and answers what
// the flow asks: where an app's image is set, what may be promoted to where, and
// which policy holds there. It decides nothing and makes no call but through the
// fs.FS that it is given.
//
// The comments of the types here are the reference that users read: the JSON
// Schema and docs/configuration.md are made from them.
package config

import (
	"fmt"
	"maps"
	"slices"

	"tagboat/image"
)

// FileName is the configuration's file at the top of the config repository.
const FileName = "tagboat.yaml"

// Config is the configuration of a config repository: `tagboat.yaml` at its top,
// on its default branch.
type Config struct {
	// The version of this format. There is one: 1.
	Version int `yaml:"version" jsonschema:"required"`
	// Files of teams, as paths or globs from the top of the repository, for
	// example `teams/*/tagboat.yaml`. Each defines apps whose overlays lie below its
	// own directory, and may make the rules stricter for them, never looser.
	Include []string `yaml:"include,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Rules of every environment, each key until the environment says it itself. A
	// list that an environment says replaces the list said here.
	Defaults Policy `yaml:"defaults,omitempty"`
	// The apps by name: a-z, 0-9, `-`, `.` and `_`.
	Apps map[string]App `yaml:"apps,omitempty"`
	// The environments in the order of promotion.
	Environments []Environment `yaml:"environments" jsonschema:"required,minItems=1"`

	// Who the people of a chat are on the forge.
	Chat Chat `yaml:"chat,omitempty"`

	// tightened is the policy of apps that a team's file makes stricter, by the
	// file's directory and the environment's name.
	tightened map[string]map[string]Policy
	owners    map[string]owner // by image repository, as image.Canonical spells it
}

// Chat maps the people of a chat to those of the forge, whose rights are asked.
type Chat struct {
	// Logins on the forge of Slack users, by `TEAM/USER`, for example `T0123/U0456: mei`,
	// or by `USER` alone where the app is in one workspace. Slack shows both ids;
	// display names and e-mail addresses are no identity.
	Slack map[string]string `yaml:"slack,omitempty"`
}

// App is what is promoted as one: one image, or several that only go together.
type App struct {
	// The images that are promoted together.
	Images []Image `yaml:"images" jsonschema:"required,minItems=1"`
	// Where the source code is, for the list of commits in the pull request: a URL,
	// `github.com/acme/todo`, or `acme/todo` on the host of the config repository. A
	// server whose name does not tell its forge is taken to have the config
	// repository's. Without the key, what both images say of their source counts, on
	// that host alone.
	Source string `yaml:"source,omitempty"`
	// Apps of one group share one pull request where many are promoted at once. They
	// are in one file, and the name of a group is not the name of an app.
	Group string `yaml:"group,omitempty"`
	// The environments in which the app is; without the key, all of them.
	Environments []string `yaml:"environments,omitempty" jsonschema:"minItems=1,uniqueItems=true"`

	// Dir is the directory of the file that defines the app, "." for the root's.
	// The environments' paths are taken from there.
	Dir string `yaml:"-"`
	// File and Line tell where the app is defined.
	File string `yaml:"-"`
	Line int    `yaml:"-"`
}

// Image is an image that a build pushes.
type Image struct {
	// Where the build pushes the image, without tag or digest. An image repository
	// belongs to one app.
	Repository string `yaml:"repository" jsonschema:"required"`
	// The `name` of the entry in the kustomization's `images` list, where it is not
	// found by the repository.
	Name string `yaml:"name,omitempty"`
}

// AppNames lists the apps in the order of their names.
func (c *Config) AppNames() []string { return slices.Sorted(maps.Keys(c.Apps)) }

// App gives an app by its name; the error for an unknown one suggests the nearest.
func (c *Config) App(name string) (App, error) {
	app, ok := c.Apps[name]
	if !ok {
		return App{}, unknown("app", name, c.AppNames())
	}
	return app, nil
}

// AppOf names the app that carries an image repository, however its registry is
// spelled (nginx is docker.io/library/nginx); the error for one that no app has
// suggests the nearest.
func (c *Config) AppOf(repository string) (string, error) {
	if o, ok := c.owners[image.Canonical(repository)]; ok {
		return o.app, nil
	}
	var known []string
	for _, name := range c.AppNames() {
		for _, i := range c.Apps[name].Images {
			known = append(known, i.Repository)
		}
	}
	return "", fmt.Errorf("%w: no app in %s has the image %s%s", ErrUnknown, FileName, repository, Nearest(repository, known))
}

// In says whether the app is in an environment.
func (a App) In(environment string) bool {
	return a.Environments == nil || slices.Contains(a.Environments, environment)
}

// GroupOrName is the name under which the app is promoted together with others.
func (a App) GroupOrName(name string) string {
	if a.Group != "" {
		return a.Group
	}
	return name
}

// EnvironmentNames lists the environments in their order.
func (c *Config) EnvironmentNames() []string {
	names := make([]string, len(c.Environments))
	for i, e := range c.Environments {
		names[i] = e.Name
	}
	return names
}

// Environment gives an environment by its name; the error for an unknown one
// suggests the nearest.
func (c *Config) Environment(name string) (Environment, error) {
	for _, e := range c.Environments {
		if e.Name == name {
			return e, nil
		}
	}
	return Environment{}, unknown("environment", name, c.EnvironmentNames())
}

// unknown is the error for a name that the configuration does not have.
func unknown(what, name string, known []string) error {
	return fmt.Errorf("%w: no %s %q in %s%s", ErrUnknown, what, name, FileName, Nearest(name, known))
}
