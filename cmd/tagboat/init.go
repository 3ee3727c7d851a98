package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
	"tagboat/config"
	"tagboat/layout"
	"tagboat/scm"
)

func (t *tool) initCommand() *cli.Command {
	return &cli.Command{
		Name:  "init",
		Usage: "propose a tagboat.yaml for a config repository",
		UsageText: "tagboat init [--write] [DIR]\n" +
			"tagboat init --repo OWNER/NAME [options]",
		Description: `Looks at a checkout (DIR, or the working directory) or at a repository on its forge, without a
clone; recognises where environments and apps set their images; and prints a tagboat.yaml whose
comments say what was guessed. The step for your CI comes after it, on standard error.

With --write the file is put at the top of the checkout, and the step for your CI is what is
printed. A tagboat.yaml that is there is never written over.

Examples:
  tagboat init                          look here, print what would be written
  tagboat init --write ~/src/config     write it
  tagboat init --repo acme/config > tagboat.yaml`,
		Flags:  append(shared("repo", "forge", "ca-file"), &cli.BoolFlag{Name: "write", Usage: "write tagboat.yaml into the checkout"}),
		Action: t.init,
	}
}

// shared are options that other commands have too, with the same meaning.
func shared(names ...string) []cli.Flag {
	return slices.DeleteFunc(slices.Concat(repositoryFlags(), registryFlags()), func(f cli.Flag) bool {
		return !slices.Contains(names, f.Names()[0])
	})
}

// The bounds of a look: on a forge each directory and each file is a request.
const (
	forgeDirs  = 300
	forgeFiles = 300
)

// sighted is a config repository, as init looks at it.
type sighted struct {
	files  fs.FS
	branch func(context.Context, string) (bool, error)
	at     scm.Location // of its forge; the zero value where nothing tells
	bounds layout.Options
}

func (t *tool) init(c *cli.Context) error {
	if c.Args().Len() > 1 || c.Args().Present() && c.String("repo") != "" {
		return misused("init looks at one repository: give a directory, or --repo")
	}
	if c.String("repo") != "" {
		if c.Bool("write") {
			return misused("--write is for a checkout: on a forge, print it (tagboat init --repo … > tagboat.yaml) and commit the file")
		}
		s, err := t.sightForge(c)
		if err != nil {
			return err
		}
		return t.propose(c.Context, s, nil)
	}
	top, err := topOf(c.Args().First())
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return fmt.Errorf("open %s: %w", top, err)
	}
	defer func() { _ = root.Close() }()
	s := sighted{files: root.FS(), branch: gitBranches(root), at: t.origin(root)}
	if c.Bool("write") {
		return t.propose(c.Context, s, root)
	}
	return t.propose(c.Context, s, nil)
}

// topOf is the top of the checkout that a directory is in; outside of git it is
// the directory itself.
func topOf(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", misused("%s is no directory", dir)
	}
	for top := abs; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return top, nil
		}
		if top == filepath.Dir(top) {
			return abs, nil
		}
	}
}

func (t *tool) sightForge(c *cli.Context) (sighted, error) {
	at, err := scm.Locate(c.String("repo"), scm.LocateOptions{Forge: c.String("forge"), CI: t.server()})
	if err != nil {
		return sighted{}, misused("%v", err)
	}
	repo, err := t.open(at, words(c.StringSlice("ca-file")))
	if err != nil {
		return sighted{}, err
	}
	tip, err := repo.Tip(c.Context, "")
	if err != nil {
		return sighted{}, err
	}
	branch := func(ctx context.Context, name string) (bool, error) {
		_, err := repo.Tip(ctx, name)
		if errors.Is(err, scm.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
	return sighted{
		files: repo.Files(c.Context, tip.Commit.SHA), branch: branch, at: at,
		bounds: layout.Options{Dirs: forgeDirs, Files: forgeFiles},
	}, nil
}

// propose looks, and prints or (with a root) writes what it has found.
func (t *tool) propose(ctx context.Context, s sighted, root *os.Root) error {
	there, err := fs.ReadFile(s.files, config.FileName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if root != nil {
			return misused("%s is there already and cannot be read: it is left as it is: %v", config.FileName, err)
		}
		return err
	}
	has := err == nil
	s.bounds.Branch = s.branch
	l, err := layout.Look(ctx, s.files, s.bounds)
	if errors.Is(err, layout.ErrNothing) {
		for _, remark := range l.Remarks {
			t.say("unsure: %s", remark)
		}
		return misused("%v: no kustomization, Flux Kustomization or Argo CD Application was found in %d directories. Is this the config repository? Without tagboat.yaml, promote works with --path", err, l.Dirs)
	}
	if err != nil {
		return err
	}
	text := l.YAML([]string{
		"What tagboat init has recognised. Read it: it goes by names, which may mislead.",
		"Reference: docs/configuration.md; tagboat schema prints the JSON Schema.",
	})
	for _, remark := range l.Remarks {
		t.say("unsure: %s", remark)
	}
	step := snippet(s, l, t.job.Kind)
	if root == nil {
		if has {
			t.say("there is a %s already: this is what init would write today", config.FileName)
		}
		if _, err := t.stdout.Write(text); err != nil {
			return err
		}
		t.say("\n%s", step)
		return nil
	}
	switch err := writeNew(root, text); {
	case has && bytes.Equal(bytes.ReplaceAll(there, []byte("\r\n"), []byte("\n")), text): // git may have changed the line ends
		t.say("%s is there already and says this: nothing to do", config.FileName)
	case errors.Is(err, fs.ErrExist):
		return misused("%s is there already and is left as it is: tagboat init without --write prints what it would say today", config.FileName)
	case err != nil:
		return fmt.Errorf("write %s: %w", config.FileName, err)
	default:
		t.say("written: %s; read it, then commit it to the default branch", filepath.Join(root.Name(), config.FileName))
	}
	_, err = fmt.Fprint(t.stdout, step)
	return err
}

// writeNew makes the file. One that is there, a link too, is left alone.
func writeNew(root *os.Root, text []byte) error {
	f, err := root.OpenFile(config.FileName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, root.Remove(config.FileName))
	}
	return nil
}

// snippet is the step that promotes, for the CI that was found there, else for
// the one of the forge, else for a terminal.
func snippet(s sighted, l layout.Layout, running ci.Kind) string {
	kinds := l.CI
	if len(kinds) == 0 {
		switch s.at.Forge {
		case scm.GitHub, scm.GitLab, scm.Gitea:
			kinds = []string{s.at.Forge}
		default:
			kinds = []string{string(running)}
		}
	}
	return steps(kinds, stepOf(s.at, l))
}
