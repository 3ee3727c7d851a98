package promote

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"tagboat/config"
	"tagboat/image"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/scm"
)

// text is what a promotion says on the forge.
type text struct{ title, body string }

// titleLimit keeps titles within what forges take (GitLab: 255 characters).
const titleLimit = 200

// trailers are those of this run for a set of edits.
func (r *run) trailers(base string, edits []record.Edit) record.Trailers {
	return record.Trailers{
		App: r.id.App, Environment: r.id.Environment, Ring: r.id.Ring, Base: base, Paths: r.id.Paths, Edits: edits,
		Revision: oneLine(r.q.Job.Revision), Requester: oneLine(r.q.Job.Actor),
	}
}

// text writes it all from the change records. done is what the commit is made of;
// a body that would be too long for the forge tells fewer commits, then fewer rows.
// What people have written around the text of an open pull request stays.
func (r *run) text(s *state, changes []overlay.Change, done []record.Edit, renewed bool, pr *scm.PullRequest, res *Result) (text, error) {
	t := text{title: r.line(r.policy().PullRequest.Title, changes)}
	limit := r.repo.About().BodyLimit
	for room := (room{len(changes), listedCommits}); ; room = room.less() {
		body, err := r.body(s, changes, room, done, renewed, res)
		if t.body = body; pr != nil {
			t.body = record.Within(pr.Body, body)
		}
		switch {
		case err != nil || limit == 0 || utf8.RuneCountInString(t.body) <= limit:
			return t, err
		case room.rows == 0:
			t.body = body // no room for their words beside it
			return t, nil
		}
	}
}

func (r room) less() room {
	if r.commits > 0 {
		return room{r.rows, r.commits / 2}
	}
	return room{r.rows / 2, 0}
}

// title is "Promote todo-api to staging: v1 → v2".
func (r *run) title(changes []overlay.Change) string {
	title := fmt.Sprintf("Promote %s to %s: ", r.id.App, r.id.place())
	if r.q.back() != nil {
		title = fmt.Sprintf("Roll back %s in %s: ", r.id.App, r.id.place())
	}
	first := changes[0]
	same := !slices.ContainsFunc(changes, func(c overlay.Change) bool { return c.To.Tag != first.To.Tag || c.To.Digest != first.To.Digest })
	switch {
	case !same:
		title += fmt.Sprintf("%d images", len(changes))
	case first.From.Tag != "" && first.To.Tag != "" && first.From.Tag != first.To.Tag:
		title += first.From.Tag + " → " + first.To.Tag
	case first.To.Tag != "" && first.From.Tag != first.To.Tag:
		title += first.To.Tag
	default:
		title += strings.TrimPrefix(first.To.Tag+" "+shortDigest(first.To.Digest), " ")
	}
	return cut(oneLine(title), titleLimit)
}

// commitTitle is the first line of the commit's message.
func (r *run) commitTitle(changes []overlay.Change) string {
	return r.line(r.policy().CommitMessage, changes)
}

// line is a title: the template of tagboat.yaml, or Tagboat's own, with the word that
// CI skips where that is asked for.
func (r *run) line(template string, changes []overlay.Change) string {
	line := r.title(changes)
	if template != "" {
		line = oneLine(config.Fill(template, r.named(changes)))
	}
	if !r.policy().SkipCI {
		return cut(line, titleLimit)
	}
	return cut(line, titleLimit-len(config.SkipCI)-1) + " " + config.SkipCI
}

// policy is the environment's in tagboat.yaml, or that of nothing said.
func (r *run) policy() config.Policy {
	if r.q.rules == nil {
		return config.Policy{}
	}
	return r.q.rules.policy
}

// named is what the placeholders of texts stand for.
func (r *run) named(changes []overlay.Change) config.Names {
	n := config.Names{App: r.id.App, Environment: r.id.Environment, Ring: r.id.Ring}
	n.Tag, n.Digest = changes[0].To.Tag, shortDigest(changes[0].To.Digest)
	if slices.ContainsFunc(changes, func(c overlay.Change) bool { return c.To.Digest != changes[0].To.Digest }) {
		n.Tag, n.Digest = fmt.Sprintf("%d images", len(changes)), ""
	}
	return n
}

func (r *run) message(s *state, title string, changes []overlay.Change, done []record.Edit, res *Result) string {
	var b strings.Builder
	b.WriteString(title + "\n\n")
	for _, c := range changes {
		fmt.Fprintf(&b, "%s: %s -> %s\n", oneLine(c.Entry), pin(c.From), pin(c.To))
	}
	t := r.trailers(s.base.Branch, done)
	if b := r.q.back(); b != nil {
		t.Undoes, t.Reason = b.was.Commit.SHA, b.reason
	}
	if res.OverriddenBy != "" {
		t.Override, t.OverriddenBy = oneLine(r.q.Override), res.OverriddenBy
	}
	b.WriteString("\n" + t.String())
	return b.String()
}

func shortDigest(digest string) string {
	algorithm, hex, found := strings.Cut(digest, ":")
	if !found {
		return digest
	}
	return algorithm + ":" + hex[:min(len(hex), 12)]
}

func pin(ref image.Reference) string {
	switch {
	case ref.Tag == "" && ref.Digest == "":
		return "(none)"
	case ref.Digest == "":
		return oneLine(ref.Tag)
	}
	return oneLine(ref.Tag) + "@" + ref.Digest
}
