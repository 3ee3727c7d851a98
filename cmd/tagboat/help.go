package main

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// helpTexts makes the library show options as optionText does, and wrap help for a
// terminal's width. The library has one printer a process; where there is no
// terminal it is left alone.
func (t *tool) helpTexts() {
	cli.FlagStringer = func(flag cli.Flag) string {
		name, usage := optionText(flag)
		return name + "\t" + usage
	}
	width := t.columns(t.screen.out)
	if width == 0 {
		return
	}
	cli.HelpPrinter = func(w io.Writer, template string, data any) {
		cli.HelpPrinterCustom(w, template, data, map[string]any{
			"wrap": func(text string, column int) string { return wrapHelp(text, column, width) },
		})
	}
}

// optionText is an option's names with what it takes, and what it is for.
func optionText(flag cli.Flag) (name, usage string) {
	doc, ok := flag.(cli.DocGenerationFlag)
	if !ok {
		return "", ""
	}
	var names []string
	for _, n := range flag.Names() {
		names = append(names, strings.Repeat("-", min(len(n), 2))+n)
	}
	name, usage = strings.Join(names, ", "), doc.GetUsage()
	if doc.TakesValue() {
		before, rest, _ := strings.Cut(usage, "`")
		value, after, _ := strings.Cut(rest, "`")
		name, usage = name+" "+value, before+value+after
	}
	text := strings.Trim(doc.GetDefaultText(), `"`)
	if !strings.Contains(usage, "default") && text != "" && text != "false" && text != "0" && text != "0s" {
		usage += " (default: " + text + ")"
	}
	return name, usage
}

// wrapHelp fills the paragraphs of a text that begins in that column. A line that is
// indented, or shows a command, stays a line of its own and goes on further in.
func wrapHelp(text string, column, width int) string {
	if name, usage, isOption := strings.Cut(text, "\t"); isOption {
		return wrapOption(name, usage, width)
	}
	margin := strings.Repeat(" ", column)
	var out []string
	for _, line := range paragraphs(text) {
		words := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(words)]
		next := "\n" + margin + indent
		if own(line) {
			next += "    "
		}
		if column+utf8.RuneCountInString(line) > width {
			line = indent + strings.Join(fill(words, width-len(next)), next)
		}
		out = append(out, line)
	}
	return strings.ReplaceAll(strings.Join(out, "\n"+margin), "\n"+margin+"\n", "\n\n")
}

// own says whether a line of a description is not a part of a paragraph.
func own(line string) bool {
	return line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "tagboat ")
}

// paragraphs joins the lines of each paragraph.
func paragraphs(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		last := len(out) - 1
		if last >= 0 && !own(line) && !own(out[last]) {
			out[last] += " " + line
			continue
		}
		out = append(out, line)
	}
	return out
}

// wrapOption has the usage in a column beside the name, or below a name that is long.
func wrapOption(name, usage string, width int) string {
	const begins = 3 // where the library's template puts the name
	column := 28
	if width < 72 {
		column = 7
	}
	gap := "\n" + strings.Repeat(" ", column)
	text := strings.Join(fill(usage, width-column), gap)
	if room := column - begins - utf8.RuneCountInString(name); room >= 2 {
		return name + strings.Repeat(" ", room) + text
	}
	return name + gap + text
}

// fill puts words on lines of at most that many characters; a longer word has its own.
func fill(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
