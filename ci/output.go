package ci

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// GitHub takes a step's summary up to this size, and drops a larger one whole.
const maxSummary = 1 << 20

// GitLab's default limits of a dotenv report: bytes of the file, and variables
// (instance limits; an installation may allow more).
const (
	maxDotenv          = 5 << 10
	maxDotenvVariables = 20
)

var dotenvName = regexp.MustCompile(`[^A-Z0-9_]`)

// Output is one named result of the job, for the jobs and steps after it.
type Output struct {
	Name  string // lower case with hyphens, as in action.yml: pull-request-url
	Value string
}

// WriteOutputs hands the values to later steps: appended to GITHUB_OUTPUT in
// Actions; in GitLab CI put into the dotenv report as TAGBOAT_PULL_REQUEST_URL
// and so on, where a value given before is replaced. It returns the names that
// the dotenv report cannot hold: values of several lines, or more than
// GitLab's limits allow. Elsewhere it does nothing.
func (j Job) WriteOutputs(outputs []Output) (left []string, err error) {
	switch {
	case j.isActions() && j.outputPath != "":
		text, err := actionsOutput(outputs, rand.Text())
		if err != nil {
			return nil, err
		}
		return nil, appendFile(j.outputPath, text)
	case j.Kind == GitLab:
		return writeDotenv(j.dotenvPath, outputs)
	}
	return nil, nil
}

// actionsOutput writes every value as a heredoc: the delimiter is random, so
// that no value can end its own text and set another output.
func actionsOutput(outputs []Output, delimiter string) (string, error) {
	var b strings.Builder
	for _, o := range outputs {
		if strings.ContainsAny(o.Name, "=<\r\n") || o.Name == "" {
			return "", fmt.Errorf("write output %q: not a name", o.Name)
		}
		if strings.Contains(o.Value, delimiter) {
			return "", fmt.Errorf("write output %s: the value holds the delimiter", o.Name)
		}
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.Name, delimiter, o.Value, delimiter)
	}
	return b.String(), nil
}

func writeDotenv(path string, outputs []Output) (left []string, err error) {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read dotenv report: %w", err)
	}
	text, left := mergeDotenv(string(old), outputs)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("write dotenv report: %w", err)
	}
	return left, nil
}

func mergeDotenv(old string, outputs []Output) (text string, left []string) {
	lines := strings.FieldsFunc(old, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, o := range outputs {
		name := "TAGBOAT_" + dotenvName.ReplaceAllString(strings.ToUpper(o.Name), "_")
		kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			return strings.HasPrefix(line, name+"=")
		})
		lines = kept // an older value must not pass for this one, even where the new one does not fit
		grown := append(slices.Clone(kept), name+"="+o.Value)
		if strings.ContainsAny(o.Value, "\r\n") || len(grown) > maxDotenvVariables || dotenvSize(grown) > maxDotenv {
			left = append(left, o.Name)
			continue
		}
		lines = grown
	}
	if len(lines) == 0 {
		return "", left
	}
	return strings.Join(lines, "\n") + "\n", left
}

func dotenvSize(lines []string) int {
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	return size
}

// AppendSummary adds Markdown to the job summary in Actions. GitHub drops a
// summary over 1 MiB whole, so what does not fit any more is cut at a
// character, and the cut is said. Elsewhere it does nothing.
func (j Job) AppendSummary(markdown string) error {
	if !j.isActions() || j.summaryPath == "" {
		return nil
	}
	used := 0
	if info, err := os.Stat(j.summaryPath); err == nil {
		used = int(info.Size())
	}
	return appendFile(j.summaryPath, cut(markdown+"\n", maxSummary-used))
}

func cut(text string, room int) string {
	const note = "\n\n(cut: the job summary is full)\n"
	if len(text) <= room {
		return text
	}
	if room < len(note) {
		return ""
	}
	end := room - len(note)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + note
}

// appendFile adds to a file that belongs to the step as a whole: another
// command of it may have written there before.
func appendFile(path, text string) (err error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("append to the runner's file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.WriteString(text)
	return err
}
