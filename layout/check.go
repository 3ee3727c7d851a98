package layout

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing/fstest"

	"tagboat/config"
	"tagboat/overlay"
)

// check reads what would be written as promote reads it, and says which images
// of which app have no entry where the paths lead.
func (l Layout) check(fsys fs.FS) []string {
	c, err := config.Load(fstest.MapFS{config.FileName: {Data: l.YAML(nil)}})
	if err != nil {
		return []string{"what was recognised cannot be written: " + oneLine(err.Error())}
	}
	var said remarks
	for _, e := range l.Environments {
		if e.Branch != "" {
			continue // other files
		}
		for _, a := range l.Apps {
			if a.Off == "" && (a.Environments == nil || slices.Contains(a.Environments, e.Name)) {
				checkApp(c, fsys, e.Name, a, &said)
			}
		}
	}
	return said.list()
}

func checkApp(c *config.Config, fsys fs.FS, environment string, a App, said *remarks) {
	targets, err := c.Targets(fsys, a.Name, environment, "")
	if err != nil {
		said.add("%s in %s: %s", a.Name, environment, oneLine(err.Error()))
		return
	}
	for _, t := range targets {
		entries, err := overlay.Entries(fsys, t)
		if err != nil {
			said.add("%s in %s: %s", a.Name, environment, oneLine(err.Error()))
			continue
		}
		var missing []string
		for _, im := range a.Images {
			if _, err := overlay.Pick(entries, overlay.Want{Dir: t, Repository: im.Repository, Name: im.Name}); err != nil {
				missing = append(missing, im.Repository)
			}
		}
		if len(missing) > 0 && len(entries) > 0 { // without any, it was said already
			said.once(fmt.Sprintf("%s has no images entry for %s: a promotion of it to %s needs --add there", t, strings.Join(missing, ", "), environment))
		}
	}
}
