package main

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"tagboat/ci"
	"tagboat/promote"
	"tagboat/scm"
	"tagboat/scm/gitea"
	"tagboat/scm/github"
	"tagboat/scm/gitlab"
)

// sourceOpener gives source repositories, which are only read. The token is the one
// that TAGBOAT_TOKENS has for it by name, the job's own where it is the job's own
// repository, else what opener would take; without any, what is public can be read.
func (t *tool) sourceOpener(c *cli.Context) opener {
	open, caFiles := t.opener(c), words(c.StringSlice("ca-file"))
	return func(ctx context.Context, repository, forge string) (scm.Repository, error) {
		at, err := scm.Locate(repository, scm.LocateOptions{Forge: forge, CI: t.server()})
		if err != nil {
			return nil, err
		}
		byName, err := t.tokenFor(at)
		if err != nil {
			return nil, err
		}
		if own := t.env("GITHUB_TOKEN"); byName == "" && own != "" && t.isOwn(at) {
			t.hide(own)
			return t.openToRead(at, own, caFiles)
		}
		repo, err := open(ctx, repository, forge)
		if errors.Is(err, scm.ErrDenied) || errors.Is(err, promote.ErrMisused) { // the job's token is for another repository
			return t.openToRead(at, "", caFiles)
		}
		return repo, err
	}
}

// isOwn says whether a repository is the one whose job this is.
func (t *tool) isOwn(at scm.Location) bool {
	kind := t.job.Kind == ci.GitHub && at.Forge == scm.GitHub || t.job.Kind == ci.Gitea && at.Forge == scm.Gitea
	return kind && t.ownHost(at.Host) && strings.EqualFold(at.Name, t.job.Repository)
}

// openToRead opens a repository with a token, or with none.
func (t *tool) openToRead(at scm.Location, token string, caFiles []string) (scm.Repository, error) {
	transport := scm.TransportOptions{UserAgent: t.userAgent(), CAFiles: caFiles, Pace: t.paces.of(at.Host, token)}
	owner, name, _ := strings.Cut(at.Name, "/")
	switch at.Forge {
	case scm.GitHub:
		o := github.Options{BaseURL: github.APIURL(at.Host), Owner: owner, Name: name, Token: token, Transport: transport}
		if api := t.env("GITHUB_API_URL"); api != "" && t.ownHost(at.Host) {
			o.BaseURL = api
		}
		return github.New(o)
	case scm.GitLab:
		return gitlab.New(gitlab.Options{BaseURL: at.BaseURL, Project: at.Name, Token: token, Transport: transport})
	case scm.Gitea:
		return gitea.New(gitea.Options{BaseURL: at.BaseURL, Owner: owner, Name: name, Token: token, HTTP: transport})
	}
	return nil, scm.ErrUnsupported
}
