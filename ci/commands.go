package ci

import (
	"crypto/rand"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Level says how loud an annotation is.
type Level string

// The levels that GitHub shows; it shows about ten of each for one step.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Notice  Level = "notice"
)

// Annotation is a message that the run's page shows beside the log.
type Annotation struct {
	Level   Level
	Title   string
	File    string // path in the repository whose CI this is; may be empty
	Line    int    // 1-based; 0 is none
	Message string
}

// Commands speaks the workflow commands of Actions, which a runner reads from
// what a job prints. Outside Actions each method does nothing. It is safe for
// concurrent use.
//
// Print text of others (labels of an image, a file's lines) only after Guard:
// a line of it that looks like a command would be obeyed.
type Commands struct {
	w  io.Writer
	on bool

	mu    sync.Mutex
	token string // not empty while the runner ignores commands
}

// Commands returns the writer of commands to w, which is standard error:
// runners read both streams, and standard output is for the result alone.
func (j Job) Commands(w io.Writer) *Commands {
	return &Commands{w: w, on: j.isActions()}
}

// Mask tells the runner to hide the secrets in everything that is printed from
// now on, each line of a key by itself. It comes before the first use of a
// secret. It must write past the Redactor, which would hide the secret from
// the runner too.
func (c *Commands) Mask(secrets ...string) error {
	var lines []string
	for _, secret := range secrets {
		for _, part := range parts(secret) {
			lines = append(lines, command("add-mask", part))
		}
	}
	return c.send(lines...)
}

// Annotate shows a message on the run's page.
func (c *Commands) Annotate(a Annotation) error {
	name := string(a.Level)
	var properties []string
	if a.File != "" {
		properties = append(properties, "file="+escapeProperty(a.File))
	}
	if a.File != "" && a.Line > 0 {
		properties = append(properties, "line="+strconv.Itoa(a.Line))
	}
	if a.Title != "" {
		properties = append(properties, "title="+escapeProperty(a.Title))
	}
	if len(properties) > 0 {
		name += " " + strings.Join(properties, ",")
	}
	return c.send(command(name, a.Message))
}

// Guard makes the runner ignore commands until Release, but for those that
// come from here. Calling it twice is calling it once.
func (c *Commands) Guard() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" {
		return nil
	}
	token := rand.Text()
	if err := c.print(command("stop-commands", token)); err != nil {
		return err
	}
	c.token = token
	return nil
}

// Release lets the runner obey commands again.
func (c *Commands) Release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == "" {
		return nil
	}
	token := c.token
	c.token = ""
	return c.print(command(token, ""))
}

// send prints commands, through a gap in the guard where there is one. The gap
// gets a token of its own: the old one has been seen in the log.
func (c *Commands) send(lines ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == "" || len(lines) == 0 {
		return c.print(lines...)
	}
	next := rand.Text()
	lines = append([]string{command(c.token, "")}, lines...)
	lines = append(lines, command("stop-commands", next))
	c.token = next
	return c.print(lines...)
}

// print writes all lines at once, so that no other text comes between.
func (c *Commands) print(lines ...string) error {
	if !c.on || len(lines) == 0 {
		return nil
	}
	if _, err := io.WriteString(c.w, strings.Join(lines, "")); err != nil {
		return fmt.Errorf("write workflow command: %w", err)
	}
	return nil
}

func command(name, data string) string { return "::" + name + "::" + escapeData(data) + "\n" }

// The escapes are those of GitHub's own toolkit (actions/toolkit, command.ts).
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
