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
	"tagboat/image"
	"tagboat/overlay"
	"tagboat/promote"
	"tagboat/scm"
)

// report is the machine-readable result. schemaVersion changes when a field
// changes its meaning or goes; new fields may come.
type report struct {
	SchemaVersion int         `json:"schemaVersion"`
	Promotions    []promotion `json:"promotions"`
}

type promotion struct {
	Outcome     promote.Outcome `json:"outcome"`
	Reason      string          `json:"reason,omitempty"`
	Environment string          `json:"environment,omitempty"`
	Ring        string          `json:"ring,omitempty"`
	App         string          `json:"app,omitempty"`
	Changes     []change        `json:"changes"`
	Source      []source        `json:"source,omitempty"`
	Proof       *proof          `json:"proof,omitempty"`
	Gates       []gate          `json:"gates"`
	Override    *override       `json:"override,omitempty"`
	PullRequest *pullRequest    `json:"pullRequest,omitempty"`
	Commit      string          `json:"commit,omitempty"`
	Warnings    []string        `json:"warnings"`
	Plan        *plan           `json:"plan,omitempty"`
	Error       *failed         `json:"error,omitempty"`
}

type change struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Entry      string `json:"entry"`
	Repository string `json:"repository"`
	Added      bool   `json:"added,omitempty"`
	From       pin    `json:"from"`
	To         pin    `json:"to"`
}

type pin struct {
	Tag    string `json:"tag,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// source is what lies between what runs and what is proposed. Commits are those that
// come, without merges, newest first; of a step back (behind) those that go.
type source struct {
	Repository string           `json:"repository"`
	URL        string           `json:"url,omitempty"`
	From       string           `json:"from"`
	To         string           `json:"to"`
	Relation   promote.Relation `json:"relation"`
	Reason     string           `json:"reason,omitempty"`
	Ahead      int              `json:"ahead"`
	Behind     int              `json:"behind"`
	AtLeast    bool             `json:"atLeast,omitempty"`
	Commits    []sourceCommit   `json:"commits"`
	More       int              `json:"more"`
}

type sourceCommit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"`
	Author  string `json:"author"`
	URL     string `json:"url,omitempty"`
}

type gate struct {
	Name     string             `json:"name"`
	Status   promote.GateStatus `json:"status"`
	Evidence string             `json:"evidence"`
	URL      string             `json:"url,omitempty"`
}

type override struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

type proof struct {
	Status  overlay.Status `json:"status"`
	Reason  string         `json:"reason,omitempty"`
	Changed []rendered     `json:"changed"`
}

type rendered struct {
	Path      string `json:"path"`
	Object    string `json:"object"`
	Field     string `json:"field"`
	Container string `json:"container,omitempty"`
	From      string `json:"from"`
	To        string `json:"to"`
}

type pullRequest struct {
	Number     int       `json:"number,omitempty"`
	URL        string    `json:"url,omitempty"`
	HeadBranch string    `json:"headBranch"`
	BaseBranch string    `json:"baseBranch"`
	State      scm.State `json:"state"`
}

type plan struct {
	Diff  string `json:"diff"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

type failed struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func promotionOf(r promote.Result, err error) promotion {
	p := promotion{
		Outcome: r.Outcome, Reason: r.Reason, Environment: r.Environment, Ring: r.Ring, App: r.App,
		Changes: changesOf(r.Changes), Source: sourcesOf(r.Commits), Gates: gatesOf(r.Gates), Warnings: append([]string{}, r.Warnings...), Proof: proofOf(r.Proof),
	}
	if r.Commit != nil {
		p.Commit = r.Commit.SHA
	}
	if pr := r.PullRequest; pr != nil {
		p.PullRequest = &pullRequest{Number: pr.Number, URL: pr.URL, HeadBranch: r.HeadBranch, BaseBranch: r.BaseBranch, State: pr.State}
	}
	if r.OverriddenBy != "" {
		p.Override = &override{By: r.OverriddenBy, Reason: r.Override}
	}
	if r.Planned {
		p.Plan = &plan{Diff: r.Diff, Title: r.Title, Body: r.Body}
	}
	if err != nil {
		p.Outcome = promote.Failed
		p.Error = &failed{Code: failureOf(err).code, Message: err.Error()}
	}
	return p
}

func changesOf(changes []overlay.Change) []change {
	out := []change{}
	for _, c := range changes {
		out = append(out, change{
			File: c.File, Line: c.Line, Entry: c.Entry, Repository: c.To.Repository, Added: c.Added, From: pinOf(c.From), To: pinOf(c.To),
		})
	}
	return out
}

func sourcesOf(all []promote.Commits) []source {
	var out []source
	for _, c := range all {
		span := c.Come
		if c.Relation == promote.Behind {
			span = c.Gone
		}
		list, merges, more := promote.Listed(span, scm.ComparedCommits)
		s := source{
			Repository: c.Repository, URL: c.URL, From: c.From, To: c.To, Relation: c.Relation, Reason: c.Reason,
			Ahead: c.Come.Count, Behind: c.Gone.Count, AtLeast: c.Come.AtLeast || c.Gone.AtLeast, Commits: []sourceCommit{}, More: more + merges,
		}
		for _, commit := range list {
			s.Commits = append(s.Commits, sourceCommit{SHA: commit.SHA, Subject: promote.Subject(commit), Author: commit.Author, URL: commit.URL})
		}
		out = append(out, s)
	}
	return out
}

func gatesOf(gates []promote.Gate) []gate {
	out := []gate{}
	for _, g := range gates {
		out = append(out, gate{Name: g.Name, Status: g.Status, Evidence: g.Evidence, URL: g.Link})
	}
	return out
}

func pinOf(ref image.Reference) pin { return pin{Tag: ref.Tag, Digest: ref.Digest} }

func proofOf(p overlay.Proof) *proof {
	if p.Status == "" {
		return nil
	}
	out := &proof{Status: p.Status, Reason: p.Reason, Changed: []rendered{}}
	for _, c := range p.Changed {
		out.Changed = append(out.Changed, rendered{Path: c.Dir, Object: c.Object, Field: c.Field, Container: c.Container, From: c.From, To: c.To})
	}
	return out
}

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
