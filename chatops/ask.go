package chatops

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tagboat/image"
	"tagboat/scm"
)

// Ask is what a job of the config repository's CI is asked to do by its inputs: by
// the server of a chat, for a comment that a webhook told of, by an application's
// pipeline, or by a person who starts the workflow by hand.
type Ask struct {
	// Mark is told again in the run's name and in its result, so that the asker finds
	// both. It decides nothing.
	Mark string
	// Command is a line of the grammar.
	Command string
	// Image and To ask for a promotion of what a build pushed: an image with its
	// digest, and an environment.
	Image image.Reference
	To    string
	// User is who asks in a chat: slack:T123/U123. Only a starter that may speak for
	// chat users is believed; tagboat.yaml says who that is on the forge.
	User  string
	Reply string // where the chat takes the answer
	// Comment is where the command stands instead, and LineHash what LineHash told of
	// its first line when it was made.
	Comment  CommentAt
	LineHash string
}

// LineHash tells whether two first lines are the same.
func LineHash(line string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(line))) }

// The inputs of the workflow, in the order of docs/chatops.md.
const (
	inputMark    = "request"
	inputCommand = "command"
	inputImage   = "image"
	inputTo      = "to"
	inputUser    = "user"
	inputReply   = "reply"
	inputComment = "comment"
)

// InputNames are the inputs that the receiving workflow declares.
func InputNames() []string {
	return []string{inputMark, inputCommand, inputImage, inputTo, inputUser, inputReply, inputComment}
}

// Variable is the environment variable in which a GitLab job finds an input.
func Variable(input string) string { return "TAGBOAT_" + strings.ToUpper(input) }

var (
	repositoryGrammar = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$`)
	markGrammar       = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	userGrammar       = regexp.MustCompile(`^slack:T[A-Z0-9]{1,30}/[UW][A-Z0-9]{1,30}$`)
	commentGrammar    = regexp.MustCompile(`^([0-9]{1,18}) (issue|pull) ([0-9]{1,9}) (\S{1,255}) ([0-9a-f]{64})$`)
	nameGrammar       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$`)
)

// Inputs writes an ask for a dispatch; those that are empty are left out.
func (a Ask) Inputs() map[string]any {
	inputs := map[string]any{}
	add := func(name, value string) {
		if value != "" {
			inputs[name] = value
		}
	}
	add(inputMark, a.Mark)
	add(inputCommand, a.Command)
	if a.Image.Repository != "" {
		add(inputImage, a.Image.String())
	}
	add(inputTo, a.To)
	add(inputUser, a.User)
	add(inputReply, a.Reply)
	if a.Comment.ID != 0 {
		on := "issue"
		if a.Comment.PullRequest {
			on = "pull"
		}
		add(inputComment, fmt.Sprintf("%d %s %d %s %s", a.Comment.ID, on, a.Comment.Number, a.Comment.Repository, a.LineHash))
	}
	return inputs
}

// ParseAsk reads the inputs of a job. Whoever may start it wrote them: what does
// not read, or cannot be meant together, is an error.
func ParseAsk(inputs map[string]string) (Ask, error) {
	for name, value := range inputs {
		if len(value) > 2*LineLimit {
			return Ask{}, fmt.Errorf("input %s: it has %d bytes", cutText(name, 40), len(value))
		}
	}
	a := Ask{Mark: inputs[inputMark], Command: inputs[inputCommand], To: inputs[inputTo], User: inputs[inputUser], Reply: inputs[inputReply]}
	if err := errors.Join(a.readImage(inputs[inputImage]), a.readComment(inputs[inputComment])); err != nil {
		return Ask{}, err
	}
	for _, input := range []struct {
		name, value string
		grammar     *regexp.Regexp
	}{{inputMark, a.Mark, markGrammar}, {inputTo, a.To, nameGrammar}, {inputUser, a.User, userGrammar}} {
		if input.value != "" && !input.grammar.MatchString(input.value) {
			return Ask{}, fmt.Errorf("input %s: %q is not lawful", input.name, cutText(input.value, 80))
		}
	}
	if strings.ContainsAny(a.Command, "\r\n") {
		return Ask{}, errors.New("input command: it is more than one line")
	}
	return a, a.check()
}

func (a *Ask) readImage(value string) (err error) {
	if value == "" {
		return nil
	}
	if a.Image, err = image.Parse(value); err != nil {
		return fmt.Errorf("input image: %w", err)
	}
	return nil
}

func (a *Ask) readComment(value string) error {
	if value == "" {
		return nil
	}
	m := commentGrammar.FindStringSubmatch(value)
	if m == nil {
		return fmt.Errorf("input comment: %q is not ID issue|pull NUMBER REPOSITORY HASH", cutText(value, 80))
	}
	id, _ := strconv.ParseInt(m[1], 10, 64) // the grammar's digits fit
	number, _ := strconv.Atoi(m[3])
	a.Comment = CommentAt{m[4], scm.CommentRef{ID: id, Number: number, PullRequest: m[2] == "pull"}}
	a.LineHash = m[5]
	if err := a.Comment.check(); err != nil {
		return fmt.Errorf("input comment: %w", err)
	}
	return nil
}

// check demands that exactly one thing is asked.
func (a Ask) check() error {
	asked := 0
	for _, given := range []bool{a.Image.Repository != "", a.Command != "", a.Comment.ID != 0} {
		if given {
			asked++
		}
	}
	switch {
	case asked != 1:
		return errors.New("inputs: one of command, image and comment says what is asked")
	case (a.Image.Repository != "") != (a.To != ""):
		return errors.New("inputs: image and to belong together")
	case a.Image.Repository != "" && a.Image.Digest == "":
		return fmt.Errorf("input image: %s has no digest: a tag may be another image when the job runs", a.Image)
	case a.User != "" && a.Command == "":
		return errors.New("inputs: user belongs to a command")
	case a.Reply != "" && a.User == "":
		return errors.New("inputs: reply belongs to a chat user")
	}
	return nil
}

// CheckReply says why an address is none where a chat takes answers. It comes from
// a job's input: without the list, whoever may start a job could have it call any
// address. Loopback may be without TLS.
func CheckReply(address string, hosts []string) error {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Fragment != "" {
		return errors.New("the address for the answer is no lawful URL")
	}
	plain := u.Scheme == "http" && slices.Contains([]string{"127.0.0.1", "::1"}, u.Hostname())
	if u.Scheme != "https" && !plain {
		return errors.New("the address for the answer is not https")
	}
	if !slices.Contains(hosts, u.Host) {
		return fmt.Errorf("the address for the answer is on %s, where no answers go: only on %s", cutText(u.Host, 80), strings.Join(hosts, ", "))
	}
	return nil
}
