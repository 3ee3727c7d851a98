//go:build bench

// Package bench measures a promotion by Tagboat beside the script that a team would
// write, on real parts and at a distance. bench/run builds what it needs.
package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBench prints a report. It fails where something did not work, however slow.
func TestBench(t *testing.T) {
	rtt, err := time.ParseDuration(cmp.Or(os.Getenv("BENCH_RTT"), "40ms"))
	must(t, err)
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("BENCH_ROUNDS"), "5"))
	must(t, err)
	r := report{rtt: rtt, rounds: max(rounds, 1)}
	s := start(t, rtt)
	for _, word := range strings.Fields(cmp.Or(os.Getenv("BENCH_FILES"), "50 5000 50000")) {
		files, err := strconv.Atoi(word)
		must(t, err)
		r.sizes = append(r.sizes, s.measure(t, files, r.rounds))
	}
	to, err := os.Create(os.Getenv("BENCH_REPORT"))
	must(t, err)
	defer to.Close()
	r.print(to)
}

// way is one way of promoting. Each has an app and an image of its own, of its name.
type way struct {
	name, label string
	env         []string // of by-hand.sh
	prove       string   // of tagboat; "" is by-hand.sh
	tagOnly     bool
}

// The first is what the others are compared with.
func ways() []way {
	return []way{
		{name: "shallow", label: "script, `clone --depth 1`", env: []string{"CLONE=--depth 1", "PIN=digest"}},
		{name: "full", label: "script, full clone", env: []string{"CLONE=", "PIN=digest"}},
		{name: "tag", label: "script, tag without digest", env: []string{"CLONE=--depth 1", "PIN=tag"}, tagOnly: true},
		{name: "unproven", label: "tagboat, `--prove off`", prove: "off"},
		{name: "proven", label: "tagboat, `--prove required`", prove: "required"},
	}
}

// stages are what is asked for, one after the other.
func stages() []string {
	return []string{"first run", "again, pull request open", "the base has it"}
}

// sample is one run of a command.
type sample struct {
	took, cpu time.Duration // cpu is of all its processes
	memory    int64         // bytes, of its largest process; never less than the test has itself, which it starts as
	traffic
}

// figures are what was measured on a repository of one size.
type figures struct {
	files   int
	samples map[string][][]sample // way's name: stage, round
	pulls   map[string]pull       // way's name: the last one
}

// measure lets the ways take turns.
func (s *stand) measure(t *testing.T, files, rounds int) figures {
	t.Helper()
	f := figures{files: files, samples: map[string][][]sample{}, pulls: map[string]pull{}}
	repo := fmt.Sprintf("config-%d", files)
	pins, began := map[string]string{}, time.Now().Add(-time.Hour)
	for _, w := range ways() {
		image := "acme/" + w.name
		pins[image] = s.push(t, image, "v0", began)
		if w.tagOnly {
			pins[image] = ""
		}
		f.samples[w.name] = make([][]sample, len(stages()))
	}
	s.addConfig(t, repo, files, pins)
	for round := range rounds {
		for i := range ways() {
			w := ways()[(i+round)%len(ways())]
			fmt.Fprintf(os.Stderr, "%d files, round %d of %d: %s\n", files, round+1, rounds, w.label)
			one := turn{stand: s, way: w, repo: s.gitea.Admin + "/" + repo, tag: fmt.Sprintf("v%d-%d", files, round+1)}
			one.digest = s.push(t, "acme/"+w.name, one.tag, began.Add(time.Duration(round+1)*time.Minute))
			samples, pull := one.promote(t)
			f.pulls[w.name] = pull
			for stage, sample := range samples {
				f.samples[w.name][stage] = append(f.samples[w.name][stage], sample)
			}
		}
	}
	return f
}

// turn is one image promoted in one way.
type turn struct {
	*stand
	way               way
	repo, tag, digest string
}

// promote runs the stages and looks, past the proxy, whether the work was done. It
// leaves the repository as it was.
func (o turn) promote(t *testing.T) ([]sample, pull) {
	t.Helper()
	first := o.run(t, "staging", o.tag)
	made := o.onlyPull(t)
	again := o.run(t, "staging", o.tag)
	if still := o.onlyPull(t); still.Number != made.Number {
		t.Fatalf("%s again: pull request %d took the place of %d", o.way.label, still.Number, made.Number)
	}
	o.call(t, http.MethodDelete, fmt.Sprintf("/issues/%d", made.Number), nil)
	o.call(t, http.MethodDelete, "/branches/"+strings.ReplaceAll(made.Head.Ref, "/", "%2F"), nil)
	done := o.run(t, "production", "v0")
	if open := o.open(t); len(open) > 0 {
		t.Fatalf("%s has nothing to do, and opened %v", o.way.label, open)
	}
	return []sample{first, again, done}, made
}

func (o turn) command(t *testing.T, home, environment, tag string) *exec.Cmd {
	t.Helper()
	forge, image, path := "http://"+o.forge.address, o.registry.address+"/acme/"+o.way.name, "apps/"+o.way.name+"/overlays/"+environment
	command := exec.CommandContext(t.Context(), "./by-hand.sh")
	command.Env = append([]string{"TOKEN=" + o.token, "FORGE=" + forge, "REPO=" + o.repo, "OVERLAY=" + path, "IMAGE=" + image, "TAG=" + tag}, o.way.env...)
	if o.way.prove != "" {
		command = exec.CommandContext(t.Context(), os.Getenv("TAGBOAT_BIN"), "promote", "--forge", "gitea", "--repo", forge+"/"+o.repo,
			"--path", path, "--base", "main", "--plain-http", o.registry.address, "--prove", o.way.prove, image+":"+tag)
		command.Env = []string{"GITEA_TOKEN=" + o.token}
	}
	tools := filepath.Dir(os.Getenv("TAGBOAT_KUSTOMIZE"))
	command.Env = append(command.Env, "PATH="+tools+":"+os.Getenv("PATH"), "HOME="+home, "TMPDIR="+home, "GIT_CONFIG_NOSYSTEM=1")
	return command
}

func (o turn) run(t *testing.T, environment, tag string) sample {
	t.Helper()
	home, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // gone after the run: many clones would fill a disk
	must(t, err)
	defer os.RemoveAll(home) //nolint:errcheck // the test's own is removed at its end
	command := o.command(t, home, environment, tag)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	o.meter.take()
	start := time.Now()
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v: %s", o.way.label, err, out.String())
	}
	ended := command.ProcessState
	return sample{
		took: time.Since(start), cpu: ended.UserTime() + ended.SystemTime(),
		memory: ended.SysUsage().(*syscall.Rusage).Maxrss << 10, traffic: o.meter.take(),
	}
}

type pull struct {
	Number               int
	Head                 struct{ Ref string }
	Additions, Deletions int
	file                 string // of the head branch
}

func (o turn) call(t *testing.T, method, path string, out any) {
	t.Helper()
	_, err := o.gitea.Call(t.Context(), "", method, "/repos/"+o.repo+path, nil, out)
	must(t, err)
}

func (o turn) open(t *testing.T) (open []pull) {
	t.Helper()
	o.call(t, http.MethodGet, "/pulls?state=open", &open)
	return open
}

// onlyPull returns the one open pull request, which must bring the image.
func (o turn) onlyPull(t *testing.T) (p pull) {
	t.Helper()
	open := o.open(t)
	if len(open) != 1 {
		t.Fatalf("%s: pull requests are open: %v", o.way.label, open)
	}
	o.call(t, http.MethodGet, fmt.Sprintf("/pulls/%d", open[0].Number), &p)
	var file struct{ Content []byte }
	o.call(t, http.MethodGet, "/contents/apps/"+o.way.name+"/overlays/staging/kustomization.yaml?ref="+p.Head.Ref, &file)
	p.file = string(file.Content)
	if !strings.Contains(p.file, o.tag) || !o.way.tagOnly && !strings.Contains(p.file, o.digest) {
		t.Fatalf("%s: %s@%s is not in\n%s", o.way.label, o.tag, o.digest, p.file)
	}
	return p
}
