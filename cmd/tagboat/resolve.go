package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"tagboat/registry"
)

func (t *tool) resolveCommand() *cli.Command {
	return &cli.Command{
		Name:      "resolve",
		Usage:     "print the digest that a tag points at, one a line",
		UsageText: "tagboat resolve [options] IMAGE[:TAG][@DIGEST]...",
		Description: `Prints the digest of exactly what the tag names: the index of a multi-platform image.

Example:
  tagboat resolve --platform linux/arm64 ghcr.io/acme/todo-api:v1.4.2`,
		Flags:  slices.Concat(registryFlags(), []cli.Flag{outputFlag()}),
		Action: t.resolve,
	}
}

type resolvedImage struct {
	Image     string   `json:"image"`
	Digest    string   `json:"digest,omitempty"`
	MediaType string   `json:"mediaType,omitempty"`
	Platforms []string `json:"platforms,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Error     *failed  `json:"error,omitempty"`
}

func (t *tool) resolve(c *cli.Context) error {
	if err := checkOutput(c); err != nil {
		return err
	}
	refs, err := parseImages(c.Args().Slice())
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		return misused("no image: give REPOSITORY:TAG as the argument")
	}
	required, err := platforms(c)
	if err != nil {
		return err
	}
	client, err := t.registry(c)
	if err != nil {
		return err
	}
	var queries []registry.Query
	for _, ref := range refs {
		if ref.Tag == "" && ref.Digest == "" {
			return misused("image %s has neither tag nor digest: write %s:TAG", ref, ref)
		}
		queries = append(queries, registry.Query{
			Reference: ref, Platforms: required, Wait: c.Duration("wait"), AllowMoved: c.Bool("allow-moved-tag"),
		})
	}
	images, errs := client.ResolveAll(c.Context, queries)
	return t.printResolved(c, queries, images, errs)
}

func (t *tool) printResolved(c *cli.Context, queries []registry.Query, images []registry.Image, errs []error) error {
	var out []resolvedImage
	for i, img := range images {
		r := resolvedImage{Image: queries[i].Reference.String()}
		if errs[i] != nil {
			t.complain(errs[i])
			r.Error = &failed{Code: failureOf(errs[i]).code, Message: errs[i].Error()}
		} else {
			r.Digest, r.MediaType, r.Platforms, r.Warnings = img.Reference.Digest, img.MediaType, img.Platforms, img.Warnings
		}
		for _, w := range img.Warnings {
			t.warn(w)
		}
		out = append(out, r)
	}
	if c.String("output") == "json" {
		if err := t.printJSON(map[string]any{"schemaVersion": 1, "images": out}); err != nil {
			return err
		}
	} else {
		for _, r := range out {
			if r.Error == nil {
				fmt.Fprintln(t.stdout, r.Digest)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return exitError{failureOf(err).exit}
	}
	return nil
}
