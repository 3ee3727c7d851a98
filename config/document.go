package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// sizeLimit bounds a file: thousands of apps fit, a file that is no configuration
// does not.
const sizeLimit = 1 << 20

// read reads a file, or the part of it that shows it to be too large.
func read(fsys fs.FS, name string) ([]byte, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = file.Close() }() // it was read only
	content, err := io.ReadAll(io.LimitReader(file, sizeLimit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content, nil
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// document parses the one YAML document of a file; nil with a problem reported.
func document(content []byte, r *report) *yaml.Node {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	if problem := notText(content); problem != "" {
		r.unreadable("", 0, "%s", problem)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var root, second yaml.Node
	err := decoder.Decode(&root)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(root.Content) == 0:
		r.unreadable("", 0, "the file is empty: it begins with %q", "version: 1")
		return nil
	case err != nil:
		syntax(err, r)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		r.unreadable("", second.Line, "a second document begins here: the configuration is one document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		syntax(err, r)
		return nil
	}
	return root.Content[0]
}

// syntax reports a parser's error at the line that it names.
func syntax(err error, r *report) {
	line := 0
	if m := syntaxLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1]) // 0 where it names none
	}
	r.unreadable("", line, "no YAML: %s", syntaxLine.ReplaceAllString(err.Error(), ""))
}

// notText says why bytes are no text, or nothing.
func notText(content []byte) string {
	switch {
	case len(content) > sizeLimit:
		return fmt.Sprintf("the file is larger than %d kB: it is no configuration", sizeLimit>>10)
	case bytes.IndexByte(content, 0) >= 0, !utf8.Valid(content):
		return "the file is not text in UTF-8"
	}
	return ""
}

// textProblem says what is wrong with a value's text, or nothing. Every text of
// the configuration is one line that people can read.
func textProblem(s string) string {
	switch {
	case s == "":
		return "is empty: leave the key out, or give it a value"
	case utf8.RuneCountInString(s) > textLimit:
		return fmt.Sprintf("is longer than %d characters", textLimit)
	case strings.ContainsFunc(s, control):
		return "has a line break or a control character"
	}
	return ""
}

const textLimit = 1000

func control(c rune) bool { return c < ' ' || c == 0x7f }
