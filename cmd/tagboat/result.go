package main

import (
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
