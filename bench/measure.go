//go:build bench

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tagboat/scm/gitea/giteareal"
)

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
	took, serving, cpu time.Duration // cpu is of all its processes
	memory             int64         // bytes, of its largest process
	traffic
}

// figures are what was measured on a repository of one size.
type figures struct {
	files   int
	samples map[string][][]sample // way's name: stage, round
	changed map[string]change     // way's name: what its pull request changes
}

type change struct {
	Additions, Deletions int
	diff                 string
}

// measure lets the ways take turns.
func (s *stand) measure(ctx context.Context, dir string, files, rounds int) (figures, error) {
	f := figures{files: files, samples: map[string][][]sample{}, changed: map[string]change{}}
	repo := fmt.Sprintf("config-%d", files)
	pins, began := map[string]string{}, time.Now().Add(-time.Hour)
	for _, w := range ways() {
		digest, err := s.push(ctx, "acme/"+w.name, "v0", began)
		if err != nil {
			return f, err
		}
		if !w.tagOnly {
			pins["acme/"+w.name] = digest
		} else {
			pins["acme/"+w.name] = ""
		}
		f.samples[w.name] = make([][]sample, len(stages()))
	}
	if err := s.addConfig(ctx, dir, repo, files, pins); err != nil {
		return f, err
	}
	for round := range rounds {
		for i := range ways() {
			w := ways()[(i+round)%len(ways())]
			fmt.Fprintf(os.Stderr, "%d files, round %d of %d: %s\n", files, round+1, rounds, w.label)
			tag := fmt.Sprintf("v%d-%d", files, round+1)
			digest, err := s.push(ctx, "acme/"+w.name, tag, began.Add(time.Duration(round+1)*time.Minute))
			if err != nil {
				return f, err
			}
			t := turn{stand: s, way: w, repo: s.gitea.Admin + "/" + repo, tag: tag, digest: digest}
			samples, changed, err := t.promote(ctx)
			if err != nil {
				return f, fmt.Errorf("%s: %w", w.label, err)
			}
			f.changed[w.name] = changed
			for stage, sample := range samples {
				f.samples[w.name][stage] = append(f.samples[w.name][stage], sample)
			}
		}
	}
	return f, nil
}

// turn is one image promoted in one way.
type turn struct {
	*stand
	way               way
	repo, tag, digest string
}

// promote runs the stages and looks, past the proxy, whether the work was done.
func (t turn) promote(ctx context.Context) ([]sample, change, error) {
	first, err := t.run(ctx, "staging", t.tag)
	if err != nil {
		return nil, change{}, err
	}
	got, err := t.onlyPull(ctx)
	if err != nil {
		return nil, change{}, err
	}
	again, err := t.run(ctx, "staging", t.tag)
	if err != nil {
		return nil, change{}, err
	}
	still, err := t.onlyPull(ctx)
	if err == nil && still.Number != got.Number {
		err = fmt.Errorf("run again: pull request %d took the place of %d", still.Number, got.Number)
	}
	if err != nil {
		return nil, change{}, err
	}
	if err := t.remove(ctx, got); err != nil {
		return nil, got.change, err
	}
	done, err := t.run(ctx, "production", "v0")
	if err != nil {
		return nil, got.change, err
	}
	open, err := t.pulls(ctx)
	if err == nil && len(open) > 0 {
		err = fmt.Errorf("there was nothing to do, and %d pull requests are open", len(open))
	}
	return []sample{first, again, done}, got.change, err
}

func (t turn) command(ctx context.Context, environment, tag string) *exec.Cmd {
	forge, image, path := "http://"+t.forge.address, t.registry.address+"/acme/"+t.way.name, "apps/"+t.way.name+"/overlays/"+environment
	command := exec.CommandContext(ctx, os.Args[1])
	command.Env = append([]string{"TOKEN=" + t.token, "FORGE=" + forge, "REPO=" + t.repo, "OVERLAY=" + path, "IMAGE=" + image, "TAG=" + tag}, t.way.env...)
	if t.way.prove != "" {
		command = exec.CommandContext(ctx, os.Getenv("TAGBOAT_BIN"), "promote", "--forge", "gitea", "--repo", forge+"/"+t.repo,
			"--path", path, "--base", "main", "--plain-http", t.registry.address, "--prove", t.way.prove, image+":"+tag)
		command.Env = []string{"GITEA_TOKEN=" + t.token}
	}
	home := os.TempDir()
	tools := filepath.Dir(os.Getenv("TAGBOAT_KUSTOMIZE"))
	command.Env = append(command.Env, "PATH="+tools+":"+os.Getenv("PATH"), "HOME="+home, "TMPDIR="+home, "GIT_CONFIG_NOSYSTEM=1")
	return command
}

func (t turn) run(ctx context.Context, environment, tag string) (sample, error) {
	command := t.command(ctx, environment, tag)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	t.meter.take()
	start := time.Now()
	err := command.Run()
	took := time.Since(start)
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, out.String())
	}
	got := sample{
		took: took, cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime(),
		memory: command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10,
	}
	got.traffic, got.serving = t.meter.take()
	if got.unread > 0 || got.requests == 0 {
		return got, fmt.Errorf("count its requests: %d, and %d connections that are no HTTP/1", got.requests, got.unread)
	}
	return got, nil
}

type pull struct {
	Number int
	Head   struct{ Ref string }
	change
}

func (t turn) pulls(ctx context.Context) (open []pull, err error) {
	_, err = t.gitea.Call(ctx, "", http.MethodGet, "/repos/"+t.repo+"/pulls?state=open", nil, &open)
	return open, err
}

// onlyPull returns the one open pull request, which must bring the image.
func (t turn) onlyPull(ctx context.Context) (pull, error) {
	open, err := t.pulls(ctx)
	if err == nil && len(open) != 1 {
		err = fmt.Errorf("%d pull requests are open, want one", len(open))
	}
	if err != nil {
		return pull{}, err
	}
	at := fmt.Sprintf("/repos/%s/pulls/%d", t.repo, open[0].Number)
	got := open[0]
	if _, err := t.gitea.Call(ctx, "", http.MethodGet, at, nil, &got); err != nil {
		return pull{}, err
	}
	if got.diff, err = t.text(ctx, at+".diff"); err != nil {
		return pull{}, err
	}
	if !strings.Contains(got.diff, t.tag) || !t.way.tagOnly && !strings.Contains(got.diff, t.digest) {
		return pull{}, fmt.Errorf("pull request %d has not %s@%s:\n%s", got.Number, t.tag, t.digest, got.diff)
	}
	return got, nil
}

func (t turn) text(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.gitea.URL+"/api/v1"+path, nil)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(t.gitea.Admin, giteareal.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	return text.String(), err
}

// remove takes the pull request away as if it had never been.
func (t turn) remove(ctx context.Context, p pull) error {
	_, err := t.gitea.Call(ctx, "", http.MethodDelete, fmt.Sprintf("/repos/%s/issues/%d", t.repo, p.Number), nil, nil)
	if err != nil {
		return err
	}
	_, err = t.gitea.Call(ctx, "", http.MethodDelete, "/repos/"+t.repo+"/branches/"+strings.ReplaceAll(p.Head.Ref, "/", "%2F"), nil, nil)
	return err
}
