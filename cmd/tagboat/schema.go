package main

import (
	"github.com/urfave/cli/v2"

	"tagboat/config"
)

func (t *tool) schemaCommand() *cli.Command {
	return &cli.Command{
		Name:      "schema",
		Usage:     "print the JSON Schema of tagboat.yaml",
		UsageText: "tagboat schema [--included]",
		Description: "Editors and validators of other makers read it. Tagboat checks more: names that no\n" +
			"environment has, paths, time zones, the order of promotion.\n\nExample:\n  tagboat schema > tagboat.schema.json",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "included", Usage: "that of a team's file, which the root's include names"}},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return misused("schema takes no argument, got %q", c.Args().First())
			}
			schema := config.Schema()
			if c.Bool("included") {
				schema = config.IncludedSchema()
			}
			_, err := t.stdout.Write(schema)
			return err
		},
	}
}
