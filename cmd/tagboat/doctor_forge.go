package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tagboat/config"
	"tagboat/scm"
)

// forge checks the config repository: where it is, with which credential, what
// that may do, and what stands in the way.
func (e *examination) forge() {
	name := strings.TrimSpace(e.String("repo"))
	if name == "" {
		name = e.job.Repository
	}
	if name == "" {
		e.note(warning, "repository", "none is named: forge, token and rights are not checked", "name it with --repo OWNER/NAME")
		return
	}
	at, err := scm.Locate(name, scm.LocateOptions{Forge: e.String("forge"), CI: e.server()})
	if err != nil {
		e.note(wrong, "repository", err.Error(), "")
		return
	}
	if at.Forge == "" {
		e.note(wrong, "forge", "the host "+at.Host+" does not tell which forge it is", "say --forge github, gitlab, gitea or git")
		return
	}
	how := "by its host"
	if e.String("forge") != "" {
		how = "as --forge says"
	}
	e.note(fine, "forge", fmt.Sprintf("%s, %s: %s", at.Forge, how, oneLine(at.Name+" on "+hostOf(at))), "")
	e.credential(at)
	e.readOnly = true
	repo, err := e.open(at, e.caFiles)
	if err != nil {
		e.failed("token", err)
		return
	}
	e.ask(repo)
}

func hostOf(at scm.Location) string {
	if at.Host == "" {
		return "this machine"
	}
	return at.Host
}

// credential tells which variable gives the credential, and which are set for
// nothing. It looks in the order of open.
func (e *examination) credential(at scm.Location) {
	var used string
	own := map[string][]string{
		scm.GitHub: {"TAGBOAT_APP_ID", "TAGBOAT_APP_KEY", "TAGBOAT_TOKEN", "GITHUB_TOKEN"},
		scm.GitLab: {"TAGBOAT_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN"},
		scm.Gitea:  {"TAGBOAT_TOKEN", "GITEA_TOKEN", "GITHUB_TOKEN"},
		scm.Git:    {"TAGBOAT_TOKEN", "TAGBOAT_SSH_KEY_FILE"},
	}[at.Forge]
	set := e.setOf(own...)
	for _, name := range set {
		switch {
		case used != "":
		case name == "GITHUB_TOKEN" || name == "GITLAB_TOKEN" || name == "GITEA_TOKEN":
			if e.isFor(name, at) {
				used = name
			}
		case name == "CI_JOB_TOKEN":
			if e.ownHost(at.Host) {
				used = name
			}
		default:
			used = name
		}
	}
	switch {
	case used == "" && at.Forge == scm.Git:
		e.note(fine, "token", "none is set: what needs no credential, and the SSH agent, still work", "")
		return
	case used == "":
		text := "there is none for " + at.Host
		if len(set) > 0 {
			text += "; " + strings.Join(set, ", ") + " is set, but for another host"
		}
		e.note(wrong, "token", text, "set TAGBOAT_TOKEN (docs/permissions.md says what it needs)")
		return
	case strings.HasPrefix(used, "TAGBOAT_APP") && len(e.setOf("TAGBOAT_APP_ID", "TAGBOAT_APP_KEY")) < 2:
		e.note(wrong, "token", "one of TAGBOAT_APP_ID and TAGBOAT_APP_KEY is not set", "a GitHub App needs both")
		return
	case strings.HasPrefix(used, "TAGBOAT_APP"):
		used, e.app = "TAGBOAT_APP_ID and TAGBOAT_APP_KEY", true
	}
	e.note(fine, "token", "from "+used, "")
}

// ask asks the forge, as far as each answer makes the next worth asking.
func (e *examination) ask(repo scm.Repository) {
	ctx := e.Context.Context
	for _, w := range repo.About().Warnings {
		e.note(warning, "token", w, "")
	}
	tip, err := repo.Tip(ctx, strings.TrimSpace(e.String("base")))
	if err != nil {
		e.failed("branch", err)
		return
	}
	e.note(fine, "branch", fmt.Sprintf("%s can be read, at %s", tip.Branch, tip.Commit.SHA[:min(12, len(tip.Commit.SHA))]), "")
	e.protection(tip)
	e.clock(repo)
	e.api(ctx, repo)
	e.commands(repo.About(), e.grant(ctx, repo), e.role(ctx, repo))
	e.evidence(ctx, repo, tip)
	e.configuration(ctx, repo, tip)
}

func (e *examination) protection(tip scm.Tip) {
	if tip.Protected {
		e.note(fine, "rules", tip.Branch+" is protected: promotions come as pull requests, and merge: direct would be refused unless the rules let the credential push", "")
		return
	}
	e.note(fine, "rules", tip.Branch+" is not protected, as far as the forge tells: whoever may write may push to it", "")
}

// skewLimit is how far two clocks may be apart: GitHub takes an App's signature
// for a minute around its own time.
const skewLimit = 45 * time.Second

func (e *examination) clock(repo scm.Repository) {
	clock, ok := repo.(scm.Clock)
	if !ok {
		return
	}
	theirs, ok := clock.Now()
	if !ok {
		e.note(warning, "clock", "the forge's answers tell no time: soak times and freezes cannot be judged", "look for a proxy that takes the Date header away")
		return
	}
	skew := time.Since(theirs).Round(time.Second)
	if skew.Abs() > skewLimit {
		e.note(warning, "clock", fmt.Sprintf("this machine's clock is %s off the forge's", skew), "set the clock: an App's signature is refused when it is off; gates and freezes go by the forge's clock")
		return
	}
	e.note(fine, "clock", fmt.Sprintf("within %s of the forge's", skewLimit), "")
}

// versioned is a forge that tells its version.
type versioned interface {
	Version(ctx context.Context) (string, error)
}

var upTo = regexp.MustCompile(`^(\d+)\.(\d+)`)

// api tells a forge's version where what it can do depends on it.
func (e *examination) api(ctx context.Context, repo scm.Repository) {
	v, ok := repo.(versioned)
	if !ok {
		return
	}
	text, err := v.Version(ctx)
	if err != nil {
		e.note(warning, "api", "the forge does not tell its version: "+err.Error(), "")
		return
	}
	// Forgejo says which Gitea it answers like: 11.0.1+gitea-1.22.0.
	compared := text
	if _, base, forgejo := strings.Cut(text, "+gitea-"); forgejo {
		compared = base
	}
	if text == "" {
		text = "(hidden)"
	}
	m := upTo.FindStringSubmatch(compared)
	if m == nil {
		e.note(warning, "api", repo.About().Forge+" "+text+": whether it moves a branch by compare and swap is not known", "")
		return
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if major == 1 && minor < 26 {
		e.note(warning, "api", repo.About().Forge+" "+text+": before 1.26 a branch is not moved by compare and swap; commits are appended", "docs/forges.md says what that means")
		return
	}
	e.note(fine, "api", repo.About().Forge+" "+text+": branches move by compare and swap", "")
}

// evidence reads the statuses of the newest commit, as gates do.
func (e *examination) evidence(ctx context.Context, repo scm.Repository, tip scm.Tip) {
	forge, ok := repo.(scm.Evidence)
	if !ok {
		e.note(fine, "evidence", "plain git has no statuses and no approvals: gates that ask for them cannot be met", "")
		return
	}
	statuses, err := forge.Statuses(ctx, tip.Commit.SHA)
	if err != nil {
		e.note(warning, "evidence", "statuses and checks cannot be read, which gates.checks and verify need: "+err.Error(), "docs/permissions.md")
		return
	}
	e.note(fine, "evidence", fmt.Sprintf("statuses and checks can be read: %d on the newest commit", len(statuses)), "")
}

// configuration reads tagboat.yaml, and looks at the branches that it names.
func (e *examination) configuration(ctx context.Context, repo scm.Repository, tip scm.Tip) {
	if e.String("base") != "" {
		var err error
		if tip, err = repo.Tip(ctx, ""); err != nil {
			e.failed("configuration", err)
			return
		}
	}
	c, err := config.Load(repo.Files(ctx, tip.Commit.SHA))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.note(warning, "configuration", "there is no "+config.FileName+" on "+tip.Branch+": promote works with --path alone", "tagboat init proposes one")
		return
	case err != nil:
		e.failed("configuration", err)
		return
	}
	e.note(fine, "configuration", fmt.Sprintf("%s: %s, environments %s", config.FileName, counted(len(c.Apps), "app"), strings.Join(c.EnvironmentNames(), ", ")), "")
	var seen []string
	for _, environment := range c.Environments {
		if environment.Branch == "" || environment.Repository != "" || slices.Contains(seen, environment.Branch) {
			continue
		}
		seen = append(seen, environment.Branch)
		other, err := repo.Tip(ctx, environment.Branch)
		if err != nil {
			e.failed("branch", fmt.Errorf("environment %s: %w", environment.Name, err))
			continue
		}
		e.protection(other)
	}
}
