package promote

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"tagboat/config"
	"tagboat/image"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/registry"
	"tagboat/scm"
)

//go:embed body.md.tmpl
var templates embed.FS

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
// a body that would be too long for the forge tells fewer rows.
// What people have written around the text of an open pull request stays.
func (r *run) text(s *state, changes []overlay.Change, done []record.Edit, renewed bool, pr *scm.PullRequest, res *Result) (text, error) {
	t := text{title: r.line(r.policy().PullRequest.Title, changes)}
	limit := r.repo.About().BodyLimit
	for rows := len(changes); ; rows /= 2 {
		body, err := r.body(s, changes, rows, done, renewed, res)
		if t.body = body; pr != nil {
			t.body = record.Within(pr.Body, body)
		}
		switch {
		case err != nil || limit == 0 || utf8.RuneCountInString(t.body) <= limit:
			return t, err
		case rows == 0:
			t.body = body // no room for their words beside it
			return t, nil
		}
	}
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

// view is what the body's template sees. Everything that comes from outside is
// already made safe: see Code.
type view struct {
	App, Environment, Base string
	Rows                   []row
	More                   int // rows that had no room
	Checks                 []check
	Claims                 []claim
	Warnings               []string
	Renewed, Several       bool
	Undoes, Reason         string
	Word, Undo, Files, By  string
	Owners, Start, Marker  string
}

type row struct{ Entry, Repository, From, To, FromDigest, ToDigest string }
type check struct{ Name, Evidence string }
type claim struct{ Image, Says string }

func (r *run) body(s *state, changes []overlay.Change, rows int, done []record.Edit, renewed bool, res *Result) (string, error) {
	owned := s.owned(paths(changes))
	res.Warnings = both(res.Warnings, words(owned.Warning(r.id.place())))
	v := view{
		App: Code(r.id.App), Environment: Code(r.id.place()), Base: Code(s.base.Branch),
		More: len(changes) - rows, Several: len(changes) > 1, Renewed: renewed, Word: r.repo.About().PullRequestWord,
		Checks: r.checks(res), Undo: r.undo(changes), By: r.requester(), Files: lines(changes),
		Owners: owned.Evidence(), Start: record.BodyStart,
		Marker: record.Marker{App: r.id.App, Environment: r.id.Environment, Ring: r.id.Ring, Content: record.Content(done)}.String(),
	}
	if b := r.q.back(); b != nil {
		v.Undoes, v.Reason = r.undoes(b), Code(b.reason)
	}
	for _, c := range changes[:rows] {
		v.Rows = append(v.Rows, rowOf(c))
	}
	for _, img := range res.Images[:min(len(res.Images), 5)] {
		if says := claims(img.Facts); says != "" {
			v.Claims = append(v.Claims, claim{Code(lastElement(img.Reference.Repository)), says})
		}
	}
	for _, w := range res.Warnings[:min(len(res.Warnings), 20)] {
		if !strings.HasPrefix(w, unproven) { // the checks say it already
			v.Warnings = append(v.Warnings, Code(w))
		}
	}
	t, err := template.New("body.md.tmpl").ParseFS(templates, "body.md.tmpl")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, v); err != nil {
		return "", err
	}
	return b.String(), nil
}

func rowOf(c overlay.Change) row {
	w := row{
		Entry: Code(c.Entry), Repository: Code(c.To.Repository),
		To: tagOrDigest(c.To), ToDigest: Code(c.To.Digest), From: "(new entry)",
	}
	if !c.Added {
		w.From = tagOrDigest(c.From)
		w.FromDigest = "not pinned"
		if c.From.Digest != "" {
			w.FromDigest = Code(c.From.Digest)
		}
	}
	return w
}

// tagOrDigest is what a person reads first: the tag with the digest's beginning.
func tagOrDigest(ref image.Reference) string {
	var words []string
	if ref.Tag != "" {
		words = append(words, "**"+Code(ref.Tag)+"**")
	}
	if ref.Digest != "" {
		words = append(words, Code(shortDigest(ref.Digest)))
	}
	if len(words) == 0 {
		return "(no tag)"
	}
	return strings.Join(words, " ")
}

func (r *run) checks(res *Result) []check {
	var out []check
	switch p := res.Proof; p.Status {
	case overlay.Proven:
		out = append(out, check{"Proof", "✅ built before and after with kustomize: " + changedPlaces(p.Changed) + ", nothing else"})
	case overlay.Skipped:
		out = append(out, check{"Proof", "⚠️ not built: " + Code(p.Reason)})
	default:
		out = append(out, check{"Proof", "⚠️ switched off"})
	}
	for _, g := range res.Gates {
		if g.Name != "platforms" || platforms(res.Images) == "" { // told below, with those that are there
			out = append(out, gateRow(g))
		}
	}
	if res.OverriddenBy != "" {
		out = append(out, check{"Override", fmt.Sprintf("⚠️ by %s: %s", Code(res.OverriddenBy), Code(r.q.Override))})
	}
	out = append(out, check{"Registry", fmt.Sprintf("✅ %s", existence(res.Images))})
	if names := platforms(res.Images); names != "" {
		out = append(out, check{"Platforms", names})
	}
	return out
}

// gateRow is a gate for the reviewer.
func gateRow(g Gate) check {
	sign := map[GateStatus]string{GatePassed: "✅", GatePending: "⏳", GateFailed: "❌", GateOverridden: "⚠️ overridden:"}[g.Status]
	evidence := sign + " " + Code(g.Evidence)
	if link := webURL(g.Link); link != "" {
		evidence += " ([link](" + link + "))"
	}
	return check{Code("gate " + g.Name), evidence}
}

func changedPlaces(changed []overlay.Rendered) string {
	var names []string
	for _, c := range changed[:min(len(changed), 5)] {
		name := c.Object
		if c.Container != "" {
			name += " container " + c.Container
		}
		names = append(names, Code(name))
	}
	if more := len(changed) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(changed) == 1 {
		return "the image of " + names[0] + " changes"
	}
	return fmt.Sprintf("%d image references change (%s)", len(changed), strings.Join(names, ", "))
}

func existence(images []Resolved) string {
	if len(images) == 1 {
		return Code(images[0].Reference.Repository) + " holds the digest"
	}
	return fmt.Sprintf("all %d digests are in their registries", len(images))
}

// platforms tells the platforms of the images; those that were asked for were seen
// to be pullable.
func platforms(images []Resolved) string {
	var all, checked []string
	for _, img := range images {
		all = append(all, img.Platforms...)
		checked = append(checked, img.Checked...)
	}
	slices.Sort(all)
	slices.Sort(checked)
	all, checked = slices.Compact(all), slices.Compact(checked)
	if len(all) == 0 {
		return ""
	}
	s := Code(strings.Join(all, ", "))
	if len(checked) > 0 {
		s += " (required and there: " + Code(strings.Join(checked, ", ")) + ")"
	}
	return s
}

// claims is what the image says of itself, as its author's claim.
func claims(f registry.Facts) string {
	var words []string
	if f.Revision != "" {
		words = append(words, "commit "+Code(cut(f.Revision, 64)))
	}
	if f.Source != "" {
		words = append(words, "from "+Code(cut(f.Source, 200)))
	}
	if f.Version != "" {
		words = append(words, "version "+Code(cut(f.Version, 64)))
	}
	if !f.Created.IsZero() {
		words = append(words, "created "+f.Created.UTC().Format(time.RFC3339))
	}
	return strings.Join(words, ", ")
}

func (r *run) requester() string {
	by := "a run outside CI"
	if r.q.Job.Actor != "" {
		by = Code(r.q.Job.Actor)
	}
	if link := webURL(r.q.Job.RunURL); link != "" {
		by += " in [this run](" + link + ")"
	}
	return by
}

// undoes says which promotion a rollback takes back.
func (r *run) undoes(b *back) string {
	name := "commit " + Code(short(b.was.Commit.SHA))
	if pr := b.was.PullRequest; pr != nil {
		about := r.repo.About()
		name = fmt.Sprintf("%s %s%d", about.PullRequestWord, about.PullRequestMark, pr.Number)
	}
	if link := webURL(linkOf(b.was)); link != "" {
		name = "[" + name + "](" + link + ")"
	}
	if !b.was.At.IsZero() {
		name += " of " + stamp(b.was.At)
	}
	return name
}

// undo is the command that proposes what ran before.
func (r *run) undo(changes []overlay.Change) string {
	if r.q.rules != nil {
		return r.rollbackCommand()
	}
	var refs []string
	for _, c := range changes {
		if image.CheckDigest(c.From.Digest) != nil || image.CheckRepository(c.From.Repository) != nil || c.From.Tag != "" && image.CheckTag(c.From.Tag) != nil {
			return "" // what is not a reference is no word of a command
		}
		refs = append(refs, shellWord(c.From.String()))
	}
	if len(refs) > 3 || len(r.id.Paths) > 1 {
		return ""
	}
	repo := "--repo " + shellWord(r.repo.About().URL)
	if about := r.repo.About(); about.Host != "" && scm.SureForge(about.Host) == "" {
		repo += " --forge " + about.Forge
	}
	return fmt.Sprintf("tagboat promote %s --path %s --to %s --app %s --allow-older --again %s",
		repo, shellWord(r.id.Paths[0]), r.id.Environment, r.id.App, strings.Join(refs, " "))
}

func (r *run) rollbackCommand() string {
	if len(r.q.rules.apps) > 1 {
		return ""
	}
	about := r.q.rules.repo.About()
	words := []string{"tagboat rollback --repo", shellWord(about.URL)}
	if about.Host != "" && scm.SureForge(about.Host) == "" {
		words = append(words, "--forge", about.Forge)
	}
	words = append(words, "--environment", r.id.Environment, "--app", r.id.App)
	if r.id.Ring != "" {
		words = append(words, "--ring", r.id.Ring)
	}
	if b := r.q.back(); b != nil {
		if len(b.was.Images) == 0 {
			return "" // what was not pinned does not come back
		}
		words = append(words, "--to", b.was.Images[0].Digest)
	}
	return strings.Join(words, " ")
}

func lines(changes []overlay.Change) string {
	var names []string
	for _, c := range changes[:min(len(changes), 5)] {
		names = append(names, Code(fmt.Sprintf("%s:%d", c.File, c.Line)))
	}
	if more := len(changes) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func lastElement(repository string) string { return repository[strings.LastIndex(repository, "/")+1:] }

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

// paths are the files that changes are in.
func paths(changes []overlay.Change) []string {
	var out []string
	for _, c := range changes {
		out = both(out, []string{c.File})
	}
	return out
}

// words is a list of one sentence, or of none.
func words(sentence string) []string {
	if sentence == "" {
		return nil
	}
	return []string{sentence}
}
