package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
	"tagboat/overlay"
	"tagboat/promote"
)

// report tells how promotions ended: the result to standard output, the words to
// standard error, outputs and summary to the CI.
func (t *tool) report(c *cli.Context, results []promote.Result, errs []error) error {
	all := make([]promotion, len(results))
	for i, r := range results {
		all[i] = promotionOf(r, errs[i])
		for _, w := range r.Warnings {
			t.warn(w)
		}
		if errs[i] != nil {
			t.complain(errs[i])
		} else {
			t.say("%s", sentence(r))
		}
	}
	if err := t.tellCI(all, results); err != nil {
		t.warn(err.Error())
	}
	if c.String("output") == "json" {
		if err := t.printJSON(report{SchemaVersion: 1, Promotions: all}); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			if err := t.printText(r); err != nil {
				return err
			}
		}
	}
	return exitOf(results, errs)
}

// exitOf is the exit code of several promotions: one that failed (1) beats one that
// was misused (2), and both beat one that is blocked (3).
func exitOf(results []promote.Result, errs []error) error {
	code := 0
	for i, err := range errs {
		exit := 0
		switch {
		case err != nil:
			exit = failureOf(err).exit
		case results[i].Outcome == promote.Blocked:
			exit = 3
		}
		if exit != 0 && (code == 0 || exit < code) {
			code = exit
		}
	}
	if code == 0 {
		return nil
	}
	return exitError{code}
}

// redacted hides secrets in the strings of a result before it is encoded: encoding
// would give them another form.
func (t *tool) redacted(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	found := false
	t.walk(tree, &found)
	if !found {
		return v, nil // in the order of its fields
	}
	return tree, nil
}

// walk redacts the strings of a decoded document in place.
func (t *tool) walk(tree any, found *bool) any {
	switch node := tree.(type) {
	case string:
		hidden := t.redactor.Redact(node)
		*found = *found || hidden != node
		return hidden
	case []any:
		for i := range node {
			node[i] = t.walk(node[i], found)
		}
	case map[string]any:
		for key := range node {
			node[key] = t.walk(node[key], found)
		}
	}
	return tree
}

func (t *tool) printJSON(v any) error {
	v, err := t.redacted(v)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(t.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printText prints the result alone: the pull request's URL (on plain git the head
// branch), the commit that went to the base branch, or of a dry run the diff and the text.
func (t *tool) printText(r promote.Result) error {
	if r.Planned {
		_, err := fmt.Fprintf(t.stdout, "%s\n%s\n\n%s", r.Diff, r.Title, r.Body)
		return err
	}
	if r.Outcome == promote.Committed {
		_, err := fmt.Fprintln(t.stdout, cmp.Or(r.Commit.URL, r.Commit.SHA))
		return err
	}
	pr := r.PullRequest
	if pr == nil {
		return nil
	}
	where := pr.URL
	if pr.Number == 0 {
		where = r.HeadBranch
	}
	_, err := fmt.Fprintln(t.stdout, where)
	return err
}

// sentence is the outcome in one line for people.
func sentence(r promote.Result) string {
	var moves []string
	for _, c := range r.Changes[:min(len(r.Changes), 5)] {
		moves = append(moves, fmt.Sprintf("%s %s", c.Entry, arrow(c)))
	}
	s := fmt.Sprintf("%s: %s to %s", r.Outcome, r.App, strings.TrimSuffix(r.Environment+"."+r.Ring, "."))
	if len(moves) > 0 && r.Outcome != promote.UpToDate {
		s += " (" + strings.Join(moves, ", ") + ")"
	}
	if r.Reason != "" {
		s += ": " + r.Reason
	}
	return s
}

func arrow(c overlay.Change) string {
	to := c.To.Tag
	if to == "" || to == c.From.Tag {
		to = strings.TrimLeft(to+"@"+c.To.Digest[:min(len(c.To.Digest), 19)], "@")
	}
	switch {
	case c.Added:
		return "added at " + to
	case c.From.Tag != "":
		return c.From.Tag + " → " + to
	}
	return "→ " + to
}

func (t *tool) warn(text string) {
	t.say("%s %s", t.paint(t.screen.err, yellow, "warning:"), text)
	_ = t.commands.Annotate(ci.Annotation{Level: ci.Warning, Title: "tagboat", Message: t.redactor.Redact(text)})
}

// tellCI hands on the outputs, and the pull request's table as the job's summary.
func (t *tool) tellCI(all []promotion, results []promote.Result) error {
	if t.job.Kind == ci.None || len(all) == 0 {
		return nil
	}
	r := results[0] // single outputs tell the first promotion, "result" all of them
	shown, err := t.redacted(report{SchemaVersion: 1, Promotions: all})
	if err != nil {
		return err
	}
	result, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	outputs := []ci.Output{
		{Name: "outcome", Value: string(all[0].Outcome)},
		{Name: "changed", Value: fmt.Sprint(slices.ContainsFunc(results, func(r promote.Result) bool {
			return r.Outcome == promote.Opened || r.Outcome == promote.Updated || r.Outcome == promote.Committed
		}))},
	}
	if pr := all[0].PullRequest; pr != nil && pr.Number > 0 {
		outputs = append(outputs, ci.Output{Name: "pull-request-url", Value: pr.URL}, ci.Output{Name: "pull-request-number", Value: fmt.Sprint(pr.Number)})
	}
	if len(r.Images) > 0 {
		outputs = append(outputs, ci.Output{Name: "digest", Value: r.Images[0].Reference.Digest})
	}
	outputs = append(outputs, ci.Output{Name: "result", Value: t.redactor.Redact(string(result))})
	left, err := t.job.WriteOutputs(outputs)
	for _, name := range left {
		if name != "result" { // too large for a dotenv report more often than not
			t.say("warning: output %s does not fit into the dotenv report", name)
		}
	}
	for i := range all {
		err = errors.Join(err, t.job.AppendSummary(t.redactor.Redact(summary(all[i], results[i]))))
	}
	return err
}

func summary(p promotion, r promote.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Tagboat: %s\n\n", promote.Code(sentence(r)))
	if p.PullRequest != nil && p.PullRequest.URL != "" {
		fmt.Fprintf(&b, "%s\n\n", p.PullRequest.URL)
	}
	if p.Error != nil {
		fmt.Fprintf(&b, "%s: %s\n", promote.Code(p.Error.Code), promote.Code(p.Error.Message))
	}
	if r.Body != "" {
		b.WriteString(r.Body)
	}
	return b.String() + "\n"
}
