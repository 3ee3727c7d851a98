package layout

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// YAML is the layout as a commented tagboat.yaml. The remarks stand at its top;
// more are lines for the top, such as who made it. It ends in a line end.
func (l Layout) YAML(more []string) []byte {
	var b strings.Builder
	for _, line := range more {
		comment(&b, "", line)
	}
	if len(l.Remarks) > 0 && len(more) > 0 {
		b.WriteString("#\n")
	}
	if len(l.Remarks) > 0 {
		b.WriteString("# Look at these, then delete them:\n")
		for _, r := range l.Remarks {
			comment(&b, "", "- "+r)
		}
	}
	b.WriteString("version: 1\n\n")
	l.writeApps(&b)
	b.WriteString("environments: # in the order of promotion\n")
	for _, e := range l.Environments {
		e.write(&b)
	}
	return []byte(b.String())
}

func (l Layout) writeApps(b *strings.Builder) {
	open := false
	off := func(a App) bool { return a.Off != "" }
	on := slices.DeleteFunc(slices.Clone(l.Apps), off)
	for _, a := range slices.Concat(on, slices.DeleteFunc(slices.Clone(l.Apps), func(a App) bool { return !off(a) })) {
		lines := a.lines()
		if a.Off != "" {
			comment(b, "  ", "Left out: "+a.Off+".")
			for i := range lines {
				lines[i] = "# " + lines[i]
			}
		} else if !open {
			b.WriteString("apps:\n")
			open = true
		}
		for _, note := range a.Notes {
			comment(b, "  ", note)
		}
		for _, line := range lines {
			b.WriteString("  " + line + "\n")
		}
	}
	if !open {
		comment(b, "", "apps: none was recognised. An app is written like this:")
		b.WriteString("#   todo-api:\n#     images:\n#       - repository: registry.example/acme/todo-api # where the build pushes\n")
	}
	b.WriteString("\n")
}

func (a App) lines() []string {
	lines := []string{scalar(a.Name) + ":", "  images:"}
	for _, im := range a.Images {
		lines = append(lines, "    - repository: "+scalar(im.Repository))
		if im.Name != "" {
			lines = append(lines, "      name: "+scalar(im.Name)+" # the images entry")
		}
	}
	if a.Environments != nil {
		lines = append(lines, "  environments: "+list(a.Environments))
	}
	return lines
}

func (e Environment) write(b *strings.Builder) {
	for _, note := range e.Notes {
		comment(b, "  ", note)
	}
	fmt.Fprintf(b, "  - name: %s\n", scalar(e.Name))
	if e.Branch != "" {
		fmt.Fprintf(b, "    branch: %s\n", scalar(e.Branch))
	}
	if len(e.From) > 0 {
		fmt.Fprintf(b, "    from: %s # a guess by the names\n", list(e.From))
	}
	if len(e.Paths) == 1 {
		fmt.Fprintf(b, "    path: %s\n", scalar(e.Paths[0]))
	} else {
		b.WriteString("    paths: # all of them are one promotion; rings: would make them go one after the other\n")
		for _, p := range e.Paths {
			fmt.Fprintf(b, "      - %s\n", scalar(p))
		}
	}
	if len(e.Rings) > 0 {
		b.WriteString("    rings:\n")
		for _, r := range e.Rings {
			fmt.Fprintf(b, "      - name: %s\n", scalar(r))
		}
	}
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = scalar(n)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// sure matches texts that every YAML reads as a text without quotes, but for the
// words of word.
var (
	sure = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/{}*\[\]-]*$`)
	word = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// scalar writes a text as YAML. JSON's quotes are YAML's too.
func scalar(s string) string {
	if sure.MatchString(s) && !word.MatchString(s) {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return `""`
	}
	return string(quoted)
}

// width is where comments are wrapped.
const width = 110

// comment writes text as lines of a comment.
func comment(b *strings.Builder, indent, text string) {
	line := indent + "#"
	for field := range strings.FieldsSeq(oneLine(text)) {
		if len(line)+1+len(field) > width && len(line) > len(indent)+1 {
			b.WriteString(line + "\n")
			line = indent + "#"
			if strings.HasPrefix(text, "- ") {
				line += "  "
			}
		}
		line += " " + field
	}
	b.WriteString(line + "\n")
}
