package main

import (
	"regexp"
	"strings"

	"tagboat/layout"
	"tagboat/scm"
)

// step is what the step of a CI says.
type step struct {
	repo, forge string // forge is --forge where the host does not tell
	environment string
	ring        string
	image       string // its repository
}

var plainRepo = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./:-]*$`)

// stepOf fills in what is known of the repository: the environment that takes
// what builds push, and the first image.
func stepOf(at scm.Location, l layout.Layout) step {
	s := step{repo: "OWNER/NAME", environment: "ENVIRONMENT", image: "REGISTRY/IMAGE"}
	if repo := at.Name; at.Forge != scm.Git && repo != "" && plainRepo.MatchString(repo) {
		s.repo = repo
		if scm.SureForge(at.Host) == "" && plainRepo.MatchString(at.BaseURL) {
			s.repo, s.forge = at.BaseURL+"/"+repo, at.Forge
		}
	}
	for _, a := range l.Apps {
		if a.Off == "" && len(a.Images) > 0 {
			s.image = a.Images[0].Repository
			for _, e := range l.Environments {
				if len(e.From) == 0 && (a.Environments == nil || a.Environments[0] == e.Name) {
					s.environment = e.Name
					if len(e.Rings) > 0 {
						s.ring = e.Rings[0]
					}
					return s
				}
			}
		}
	}
	s.environment = l.Environments[0].Name
	return s
}

// options is the command line without the image.
func (s step) options() string {
	var b strings.Builder
	b.WriteString("--repo " + s.repo)
	if s.forge != "" {
		b.WriteString(" --forge " + s.forge)
	}
	b.WriteString(" --to " + s.environment)
	if s.ring != "" {
		b.WriteString(" --ring " + s.ring)
	}
	return b.String()
}

// inputs is the same in the words of the Action.
func (s step) inputs(indent string) string {
	lines := []string{"repo: " + s.repo}
	if s.forge != "" {
		lines = append(lines, "forge: "+s.forge)
	}
	lines = append(lines, "to: "+s.environment)
	if s.ring != "" {
		lines = append(lines, "ring: "+s.ring)
	}
	return indent + strings.Join(lines, "\n"+indent)
}

// steps are the texts for each of the kinds, one after the other.
func steps(kinds []string, s step) string {
	var out []string
	for _, kind := range kinds {
		switch kind {
		case "github":
			out = append(out, githubStep(s))
		case "gitlab":
			out = append(out, gitlabStep(s))
		case "gitea":
			out = append(out, giteaStep(s))
		}
	}
	if len(out) == 0 {
		out = append(out, "# After the image was pushed, with a token of the config repository in TAGBOAT_TOKEN:\n"+
			"tagboat promote "+s.options()+" \""+s.image+":$TAG\"\n")
	}
	return strings.Join(out, "\n")
}

func githubStep(s step) string {
	return `# GitHub Actions: after the step that pushes the image, in the repository that builds it
- uses: OWNER/tagboat@COMMIT
  with:
` + s.inputs("    ") + `
    image: ` + s.image + `:${{ github.sha }}
    token: ${{ steps.app.outputs.token }} # of a GitHub App: docs/permissions.md
`
}

func gitlabStep(s step) string {
	return `# .gitlab-ci.yml of the project that builds the image; GITLAB_TOKEN is a masked variable: docs/permissions.md
promote:
  stage: deploy
  image: REGISTRY/tools:TAG # your own, with a shell and tagboat
  script:
    - tagboat promote ` + s.options() + ` "` + s.image + `:$CI_COMMIT_SHA"
  resource_group: promote-` + s.environment + `
`
}

func giteaStep(s step) string {
	return `# Gitea or Forgejo Actions: after the step that pushes the image, in the repository that builds it
- run: tagboat promote ` + s.options() + ` "` + s.image + `:${GITHUB_SHA}"
  env:
    GITEA_TOKEN: ${{ secrets.TAGBOAT_TOKEN }} # docs/permissions.md
`
}
