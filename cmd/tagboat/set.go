package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/promote"
	"tagboat/registry"
)

func (t *tool) setCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "make the same edit on a local working tree",
		UsageText: "tagboat set --path DIR [options] IMAGE[:TAG][@DIGEST]...",
		Description: `Edits the overlay in DIR in place, and prints the diff. Nothing is committed.

Example:
  tagboat set --path overlays/staging ghcr.io/acme/todo-api:v1.4.2`,
		Flags: slices.Concat([]cli.Flag{
			pathFlag(),
			&cli.BoolFlag{Name: "offline", Usage: "take the given digest as it is, ask no registry"},
		}, entryFlags(), registryFlags(), []cli.Flag{outputFlag()}),
		Action: t.set,
	}
}

func (t *tool) set(c *cli.Context) error {
	if err := checkOutput(c); err != nil {
		return err
	}
	images, err := parseImages(c.Args().Slice())
	if err != nil {
		return err
	}
	pin, prove, err := parseEntryFlags(c)
	if err != nil {
		return err
	}
	required, err := platforms(c)
	if err != nil {
		return err
	}
	dir := c.String("path")
	if dir == "" {
		return misused("no overlay: name its directory with --path")
	}
	top, path, err := workingTree(dir)
	if err != nil {
		return err
	}
	p := &promote.Promoter{Progress: func(line string) { t.say("%s", line) }}
	if c.Bool("offline") {
		if p.Registry, err = given(images); err != nil {
			return err
		}
	} else if p.Registry, err = t.registry(c); err != nil {
		return err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	q := promote.Request{
		Path: path, App: "set", Environment: "set", Entry: c.String("entry"), Add: c.Bool("add"), Rename: c.Bool("rename"),
		Pin: pin, Prove: prove, Images: images, Platforms: required, Wait: c.Duration("wait"), AllowMoved: c.Bool("allow-moved-tag"),
	}
	res, edited, err := p.Edit(c.Context, root.FS(), q)
	if err == nil {
		err = write(root, edited.Files)
	}
	return t.reportSet(c, res, err)
}

// workingTree finds the top of the repository that a directory is in, so that its
// bases can be built, and the directory's path from there. Outside of git the top
// is the working directory.
func workingTree(dir string) (top, path string, err error) {
	object := ""
	if file, name, ok := overlay.FileOf(filepath.ToSlash(dir)); ok && name != "" {
		dir, object = file, "#"+name
	}
	target, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	abs := target
	switch info, err := os.Stat(abs); {
	case err != nil:
		return "", "", misused("--path %s is neither a directory nor a file", dir)
	case !info.IsDir():
		abs = filepath.Dir(abs)
	}
	for top = abs; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		if top == filepath.Dir(top) {
			if top, err = os.Getwd(); err != nil {
				return "", "", err
			}
			break
		}
	}
	path, err = filepath.Rel(top, target)
	if err != nil || !filepath.IsLocal(path) {
		top = abs
		if path, err = filepath.Rel(top, target); err != nil {
			return "", "", err
		}
	}
	return top, filepath.ToSlash(path) + object, nil
}

// write puts edited files in place, each whole or not at all, and only over the
// bytes that were read.
func write(root *os.Root, files []overlay.File) error {
	for _, f := range files {
		if err := writeFile(root, f); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

func writeFile(root *os.Root, f overlay.File) error {
	name := filepath.FromSlash(f.Path)
	now, err := root.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.Before) {
		return errors.New("it was changed meanwhile: run again")
	}
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.%s.tmp", name, rand.Text())
	out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(f.After)
	err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return nil
}

func (t *tool) reportSet(c *cli.Context, res promote.Result, err error) error {
	for _, w := range res.Warnings {
		t.warn(w)
	}
	p := promotionOf(res, err)
	p.App, p.Environment = "", ""
	if p.Outcome == promote.Planned {
		p.Outcome, p.Plan = "edited", nil
	}
	var printErr error
	if c.String("output") == "json" {
		printErr = t.printJSON(report{SchemaVersion: 1, Promotions: []promotion{p}})
	} else if err == nil {
		_, printErr = fmt.Fprint(t.stdout, res.Diff)
	}
	switch {
	case err != nil:
		t.complain(err)
		return exitError{failureOf(err).exit}
	case p.Outcome == promote.UpToDate:
		t.say("up-to-date: nothing to change")
	}
	return printErr
}

// givenDigests stands in for registries where the user vouches for the digests.
type givenDigests struct{}

func given(images []image.Reference) (promote.Registry, error) {
	for _, ref := range images {
		if ref.Digest == "" {
			return nil, misused("--offline takes the digest as given: write %s@sha256:…", ref)
		}
	}
	return givenDigests{}, nil
}

func (givenDigests) ResolveAll(_ context.Context, queries []registry.Query) ([]registry.Image, []error) {
	images := make([]registry.Image, len(queries))
	for i, q := range queries {
		images[i].Reference = q.Reference
	}
	return images, make([]error, len(queries))
}

func (givenDigests) Facts(context.Context, image.Reference) (registry.Facts, error) {
	return registry.Facts{}, nil
}

func (givenDigests) Exists(context.Context, image.Reference) error { return nil }

func (givenDigests) Copy(_ context.Context, from, to image.Reference) (registry.Copied, error) {
	return registry.Copied{}, fmt.Errorf("copy %s to %s: --offline asks no registry", from, to.Repository)
}
