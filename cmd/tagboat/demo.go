package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/promote"
	"tagboat/registry"
	"tagboat/registry/registrytest"
	"tagboat/scm"
	"tagboat/scm/plaingit"
	"tagboat/scm/scmtest"
)

func (t *tool) demoCommand() *cli.Command {
	return &cli.Command{
		Name:        "demo",
		Usage:       "run the main job on embedded parts",
		UsageText:   "tagboat demo",
		Description: "Starts a registry and a config repository, both of this process, and promotes an image to\nstaging as a CI job would. It is the real flow; nothing outside a temporary directory is touched.\n\nExample:\n  tagboat demo",
		Action: func(c *cli.Context) error {
			dir, err := os.MkdirTemp("", "tagboat-demo-")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(dir) }()
			return t.demo(c.Context, dir)
		},
	}
}

// stage is what the demo plays on.
type stage struct {
	*tool
	images *registrytest.Registry
	config *scmtest.Bare
	repo   string // of the image
}

func (t *tool) demo(ctx context.Context, dir string) error {
	s := &stage{tool: t, images: registrytest.New()}
	defer s.images.Close()
	s.repo = s.images.Host() + "/acme/todo-api"
	if err := s.build(dir); err != nil {
		return err
	}
	promoter, err := s.promoter()
	if err != nil {
		return err
	}
	res, err := s.propose(ctx, promoter)
	if err != nil {
		return err
	}
	return s.review(ctx, promoter, res)
}

// build has CI push two versions of an image, the first of which runs in staging.
func (s *stage) build(dir string) error {
	digests := map[string]string{}
	for n, tag := range []string{"v1.4.1", "v1.4.2"} {
		digest, err := s.images.PushImage("acme/todo-api:"+tag, registrytest.ImageSpec{
			Platforms: []string{"linux/amd64", "linux/arm64"}, Attested: true, Content: tag,
			Created: time.Now().Add(time.Duration(n-2) * time.Hour).UTC().Truncate(time.Second),
			Labels:  map[string]string{"org.opencontainers.image.revision": strings.Repeat(fmt.Sprint(n+1), 40)},
		})
		if err != nil {
			return err
		}
		digests[tag] = digest
	}
	var err error
	s.config, err = scmtest.NewBare(filepath.Join(dir, "config.git"), demoFiles(s.repo, digests["v1.4.1"]))
	if err != nil {
		return err
	}
	s.step("CI has pushed an image")
	s.tell("%s:v1.4.2\n%s (linux/amd64, linux/arm64)", s.repo, digests["v1.4.2"])
	return nil
}

func demoFiles(repo, digest string) map[string]string {
	return map[string]string{
		"base/kustomization.yaml": "resources:\n- deployment.yaml\n",
		"base/deployment.yaml":    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: todo-api\nspec:\n  template:\n    spec:\n      containers:\n      - name: api\n        image: todo-api\n",
		"overlays/staging/kustomization.yaml": "# staging is owned by the todo team\nresources:\n  - ../../base\n\nimages:\n  - name: todo-api # CI sets this\n    newName: " +
			repo + "\n    newTag: v1.4.1\n    digest: " + digest + "\n",
	}
}

func (s *stage) promoter() (*promote.Promoter, error) {
	client, err := registry.New(registry.Options{Env: s.env, UserAgent: s.userAgent(), Warn: s.warn})
	if err != nil {
		return nil, err
	}
	return &promote.Promoter{
		Registry: client,
		Open: func(context.Context, string, string) (scm.Repository, error) {
			return plaingit.New(plaingit.Options{URL: s.config.URL})
		},
		Progress: func(line string) { s.tell("%s", line) },
	}, nil
}

func (s *stage) request() promote.Request {
	return promote.Request{
		Repository: s.config.URL, Base: "main", Path: "overlays/staging", Prove: overlay.ProveRequired,
		Platforms: []string{"linux/amd64", "linux/arm64"},
		Images:    []image.Reference{{Repository: s.repo, Tag: "v1.4.2"}},
		Job:       promote.Job{Actor: "the demo"},
	}
}

func (s *stage) propose(ctx context.Context, p *promote.Promoter) (promote.Result, error) {
	s.step("The job promotes it to staging")
	s.tell("$ tagboat promote --repo %s --base main --path overlays/staging --prove required %s:v1.4.2", s.config.URL, s.repo)
	res, err := p.Run(ctx, s.request())
	if err != nil {
		return res, err
	}
	s.tell("%s", sentence(res))
	s.step("What the reviewer sees: the diff")
	s.tell("%s", res.Diff)
	s.step("What the reviewer sees: the text (Markdown; this is a pull request's body on a forge)")
	s.tell("%s\n\n%s", res.Title, res.Body)
	return res, nil
}

func (s *stage) review(ctx context.Context, p *promote.Promoter, res promote.Result) error {
	s.step("The job runs again")
	if err := s.again(ctx, p); err != nil {
		return err
	}
	s.step("The reviewer merges; the repository's log")
	tip, err := s.config.Merge(res.HeadBranch)
	if err != nil {
		return err
	}
	log, err := s.config.Log(tip, "")
	if err != nil {
		return err
	}
	for _, c := range log {
		s.tell("%s  %s", c.SHA[:7], strings.SplitN(c.Message, "\n", 2)[0])
	}
	s.step("The job runs once more")
	if err := s.again(ctx, p); err != nil {
		return err
	}
	s.step("Try next")
	s.tell("tagboat promote --dry-run --repo OWNER/NAME --path overlays/staging IMAGE:TAG   on your own config repository, writes nothing\n" +
		"tagboat set --path overlays/staging IMAGE:TAG                                   the same edit on a working tree")
	return nil
}

func (s *stage) again(ctx context.Context, p *promote.Promoter) error {
	res, err := p.Run(ctx, s.request())
	if err != nil {
		return err
	}
	s.tell("%s", sentence(res))
	return nil
}

func (s *stage) step(title string) { fmt.Fprintf(s.stdout, "\n== %s ==\n\n", title) }

func (s *stage) tell(format string, args ...any) { fmt.Fprintf(s.stdout, format+"\n", args...) }
