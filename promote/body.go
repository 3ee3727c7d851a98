package promote

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/record"
	"tagboat/registry"
	"tagboat/scm"
)

//go:embed body.md.tmpl
var templates embed.FS

// view is what the body's template sees. Everything that comes from outside is
// already made safe: see Code.
type view struct {
	App, Environment, Base string
	Rows                   []row
	Sources                []sourceView
	More                   int // rows that had no room
	Checks                 []check
	Claims                 []claim
	Warnings               []string
	Renewed, Several       bool
	Undoes, Reason         string
	Release                string // the command that takes a rollback's hold away
	Word, Undo, Files, By  string
	Owners, Start, Marker  string
}

// room is how much of a list a body has room for.
type room struct{ rows, commits int }

type row struct{ Entry, Repository, From, To, FromDigest, ToDigest string }
type check struct{ Name, Evidence string }
type claim struct{ Image, Says string }

func (r *run) body(s *state, changes []overlay.Change, room room, done []record.Edit, renewed bool, res *Result) (string, error) {
	rows := room.rows
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
		if b.holds {
			v.Release = Code(releaseOf(r.q.rules.repo.About(), r.id.Environment, r.id.App))
		}
	}
	v.Sources = sourceViews(res.Commits, room.commits)
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
	return fmt.Sprintf("tagboat promote %s --path %s --to %s --app %s --allow-older --again %s",
		repoWords(r.repo.About()), shellWord(r.id.Paths[0]), r.id.Environment, r.id.App, strings.Join(refs, " "))
}

// repoWords name a config repository on a command line, from wherever it is run.
func repoWords(about scm.About) string {
	words := "--repo " + shellWord(about.URL)
	if about.Host != "" && scm.SureForge(about.Host) == "" {
		words += " --forge " + about.Forge
	}
	return words
}

func (r *run) rollbackCommand() string {
	if len(r.q.rules.apps) > 1 {
		return ""
	}
	words := []string{"tagboat rollback", repoWords(r.q.rules.repo.About())}
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
