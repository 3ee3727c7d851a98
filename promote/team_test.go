package promote_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tagboat/image"
	"tagboat/promote"
	"tagboat/scm/scmtest"
)

// newTeam is a world under a tagboat.yaml: staging takes what builds push, and
// production what staging runs, under rules (lines of an environment). Both run v1.
func newTeam(t *testing.T, forge forgeFor, rules ...string) *world {
	t.Helper()
	w := newWorld(t, forge)
	w.govern("- {name: staging, path: overlays/staging, prove: off}\n- name: production\n  from: [staging]\n  path: overlays/production\n  prove: off\n" + indented(rules))
	w.must(w.store.Push("main", "mei", "Production", map[string]string{productionFile: w.at("main")}))
	return w
}

const productionFile = "overlays/production/kustomization.yaml"

func indented(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// govern puts a tagboat.yaml with these environments onto the default branch.
func (w *world) govern(environments string) {
	w.Helper()
	w.must(w.store.Push("main", "mei", "Rules", map[string]string{"tagboat.yaml": "version: 1\napps:\n  todo-api:\n    images: [{repository: " + w.ref("todo-api") + "}]\nenvironments:\n" + environments}))
}

// ask makes the promotions of a request.
func (w *world) ask(e promote.Environments, images string, options ...option) ([]promote.Result, []error) {
	w.Helper()
	q := promote.Request{Repository: "acme/config"}
	for name := range strings.FieldsSeq(images) {
		ref, err := image.Parse(w.ref(name))
		if err != nil {
			w.Fatal(err)
		}
		q.Images = append(q.Images, ref)
	}
	for _, o := range options {
		o(&q)
	}
	results, errs, err := w.promoter.RunEnvironments(context.Background(), q, e)
	if err != nil {
		return []promote.Result{{Outcome: promote.Failed}}, []error{err}
	}
	return results, errs
}

// stage brings an image to staging as people merge: merge, squash, rebase, or push,
// which goes around pull requests. Merged is the number of the pull request.
func (w *world) stage(images, how string, options ...option) (merged int) {
	w.Helper()
	if how == "push" {
		_, tag, _ := strings.Cut(images, ":")
		w.setTo(file, tag)
		return 0
	}
	results, errs := w.ask(promote.Environments{To: []string{"staging"}}, images, options...)
	if errs[0] != nil || results[0].PullRequest == nil {
		w.Fatalf("stage %s: %s (%s), %v", images, results[0].Outcome, results[0].Reason, errs[0])
	}
	merged = results[0].PullRequest.Number
	if how != "" {
		w.must(w.store.MergePullRequest(merged, how))
	}
	return merged
}

// v pushes todo-api:v<day>, as often as it is asked, and gives its digest.
func (w *world) v(day int) (digest string) {
	w.Helper()
	return w.push(fmt.Sprintf("todo-api:v%d", day), day)
}

// setTo makes a person's commit to main that has todo-api's entry of a file run v<day>.
func (w *world) setTo(path, tag string) {
	w.Helper()
	var day int
	if _, err := fmt.Sscanf(tag, "v%d", &day); err != nil {
		w.Fatal(err)
	}
	digest := w.v(day)
	before := w.fileAt("main", path)
	old := before[strings.Index(before, "newTag:"):]
	old = old[:strings.Index(old, "digest: ")+len("digest: sha256:")+64]
	w.replace("main", path, old, "newTag: "+tag+"\n  digest: "+digest)
}

func (w *world) fileAt(branch, path string) string {
	w.Helper()
	sha, _ := w.store.Branch(branch)
	b, _, err := w.store.ReadFile(sha, path)
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

// onward promotes what staging runs to production.
func (w *world) onward(options ...option) (promote.Result, error) {
	w.Helper()
	results, errs := w.ask(promote.Environments{From: "staging", To: []string{"production"}, Apps: []string{"todo-api"}}, "", options...)
	return results[0], errs[0]
}

// wantOnward promotes from staging to production and demands the outcome, and
// the one gate whose name begins so: "soak pending" or "" for any.
func (w *world) wantOnward(outcome promote.Outcome, gate string, options ...option) promote.Result {
	w.Helper()
	res, err := w.onward(options...)
	if err != nil || res.Outcome != outcome {
		w.Fatalf("%s (%s), %v; want %s\n%s", res.Outcome, res.Reason, err, outcome, gatesSay(res.Gates))
	}
	if gate != "" && !strings.Contains(gatesSay(res.Gates), gate) {
		w.Fatalf("no %q in\n%s", gate, gatesSay(res.Gates))
	}
	return res
}

// gatesSay lists gates, one a line: "soak pending: in staging since …".
func gatesSay(gates []promote.Gate) string {
	var b strings.Builder
	for _, g := range gates {
		fmt.Fprintf(&b, "%s %s: %s\n", g.Name, g.Status, g.Evidence)
	}
	return b.String()
}

// wantLeft demands that a run changes no branch and no pull request.
func (w *world) wantLeft(run func()) {
	w.Helper()
	before := w.all()
	run()
	if after := w.all(); after != before {
		w.Fatalf("not left alone:\n%s\nthen\n%s", before, after)
	}
}

func (w *world) all() string {
	var b strings.Builder
	for _, name := range w.store.Branches() {
		sha, _ := w.store.Branch(name)
		fmt.Fprintln(&b, name, sha)
	}
	for _, p := range w.store.Pulls(func(scmtest.Pull) bool { return true }) {
		fmt.Fprintln(&b, p.Number, p.State, p.HeadSHA, p.Title, p.AutoMerge, len(p.Comments), p.Body)
	}
	return b.String()
}

// as asks in the name of a login that the forge has vouched for.
func as(login string) option { return func(q *promote.Request) { q.Actor = login } }

func override(reason string) option { return func(q *promote.Request) { q.Override = reason } }

// write is what a forge calls the right to push.
func write(forge string) string {
	if forge == "gitlab" {
		return "30"
	}
	return "write"
}

func read(forge string) string {
	if forge == "gitlab" {
		return "20"
	}
	return "read"
}
