package main

import (
	"fmt"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// release is set by the linker where a release is built.
var release string //nolint:gochecknoglobals // the linker sets nothing else

func (t *tool) versionCommand() *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version",
		UsageText:   "tagboat version",
		Description: "Example:\n  tagboat version",
		Action: func(*cli.Context) error {
			_, err := fmt.Fprintln(t.stdout, "tagboat "+version())
			return err
		},
	}
}

func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
