package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// screen is where standard output and standard error go to: a terminal, or not.
type screen struct{ out, err io.Writer }

// colour is one of the few that every terminal has.
type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// paint colours text for a stream that is a terminal, unless the user has said no
// (no-color.org) or the terminal has no colours. A pipe and a CI's log get none.
func (t *tool) paint(stream io.Writer, c colour, text string) string {
	file, ok := stream.(*os.File)
	if !ok || t.env("NO_COLOR") != "" || t.env("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) || !coloured(file) {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// narrow is the fewest columns that text is wrapped for.
const narrow = 20

// columns is how wide a terminal is: what it says itself, else COLUMNS; 0 for a
// stream that is none, whose text is not wrapped.
func (t *tool) columns(stream io.Writer) int {
	file, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 {
		width, _ = strconv.Atoi(t.env("COLUMNS"))
	}
	if width == 0 {
		return 0
	}
	return max(width, narrow)
}
