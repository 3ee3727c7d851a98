package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

func checkEnvironments(c *Config, r *report) {
	places := map[string]string{}
	for i := range c.Environments {
		e, at := &c.Environments[i], fmt.Sprintf("environments[%d]", i)
		if err := CheckName(e.Name); err != nil {
			r.wrong(at+".name", "%v", err)
		}
		if slices.Contains(c.EnvironmentNames()[:i], e.Name) {
			r.wrong(at+".name", "the environment %s is there already", e.Name)
		}
		checkFrom(c, i, at, r)
		checkPlace(e, at, r)
		checkRings(e, at, r)
		checkApart(e, at, places, r)
		checkPolicy(at, e.Policy, r)
		checkSourced(e, at, r)
	}
	for i, e := range c.Environments {
		at := fmt.Sprintf("environments[%d]", i)
		checkAskable(at, e, c.sourcesOf(e), r)
		checkGap(at, e.Policy, r)
	}
}

// checkFrom holds an environment's sources to the order.
func checkFrom(c *Config, i int, at string, r *report) {
	names := c.EnvironmentNames()
	for j, from := range c.Environments[i].From {
		here := fmt.Sprintf("%s.from[%d]", at, j)
		switch k := slices.Index(names, from); {
		case k < 0:
			r.wrong(here, "no environment %q%s", from, Nearest(from, names[:i]))
		case k == i:
			r.wrong(here, "an environment is not promoted from itself")
		case k > i:
			r.wrong(here, "%s comes later than %s: environments stand in the order of promotion, so that it does not loop", from, names[i])
		}
	}
}

// checkPlace checks where an environment is.
func checkPlace(e *Environment, at string, r *report) {
	if e.Branch != "" {
		if err := checkBranch(e.Branch); err != nil {
			r.wrong(at+".branch", "%v", err)
		}
	}
	if e.Repository != "" {
		if err := checkRepository(e.Repository); err != nil {
			r.wrong(at+".repository", "%v", err)
		}
	} else if e.Forge != "" {
		r.wrong(at+".forge", "is of no use without repository")
	}
	if e.Path != "" && e.Paths != nil {
		r.wrong(at+".paths", "the environment has a path as well: write one of them")
	}
	known := []string{"app", "environment"}
	if e.Rings != nil {
		known = append(known, "ring")
	}
	if e.Path != "" {
		checkPattern(at+".path", &e.Path, known, r)
	}
	for i := range e.Paths {
		checkPattern(fmt.Sprintf("%s.paths[%d]", at, i), &e.Paths[i], known, r)
	}
}

// checkPattern checks a path with placeholders and writes it in its shortest form.
func checkPattern(at string, p *string, known []string, r *report) {
	if err := checkPath(*p); err != nil {
		r.wrong(at, "%v", err)
		return
	}
	if err := checkTemplate(*p, known...); err != nil {
		r.wrong(at, "%v", err)
		return
	}
	*p = path.Clean(*p)
}

// checkRings checks that every ring has paths, and one place for them.
func checkRings(e *Environment, at string, r *report) {
	if e.Rings == nil {
		if e.patterns() == nil {
			r.wrong(at, "the environment %s has no path: write path, paths or rings", e.Name)
		}
		return
	}
	own := 0
	for i := range e.Rings {
		ring, here := &e.Rings[i], fmt.Sprintf("%s.rings[%d]", at, i)
		if err := CheckName(ring.Name); err != nil {
			r.wrong(here+".name", "%v", err)
		}
		if slices.Contains(e.RingNames()[:i], ring.Name) {
			r.wrong(here+".name", "the ring %s is there already", ring.Name)
		}
		for j := range ring.Paths {
			checkPattern(fmt.Sprintf("%s.paths[%d]", here, j), &ring.Paths[j], []string{"app", "environment", "ring"}, r)
		}
		switch {
		case ring.Paths != nil:
			own++
		case e.patterns() == nil:
			r.wrong(here, "the ring %s has no paths", ring.Name)
		case !slices.ContainsFunc(e.patterns(), func(p string) bool { return strings.Contains(p, "{ring}") }):
			r.wrong(here, "the ring %s has no paths, and the environment's path has no {ring} to tell them", ring.Name)
		}
	}
	if own == len(e.Rings) && e.patterns() != nil {
		r.wrong(at, "the environment %s has a path that no ring uses: leave it out, or the rings' paths", e.Name)
	}
}

// checkApart reports two environments, or two rings of one, that are the same
// files: a promotion to one would be one to both.
func checkApart(e *Environment, at string, places map[string]string, r *report) {
	rings := e.RingNames()
	if rings == nil {
		rings = []string{""}
	}
	for _, ring := range rings {
		for _, p := range e.ringPatterns(ring) {
			place := strings.Join([]string{e.Repository, e.Branch, fill(p, Names{App: "{app}", Environment: e.Name, Ring: ring})}, "\n")
			mine := Place{e.Name, ring}.String()
			if other, taken := places[place]; taken && other != mine {
				r.wrong(at, "%s and %s have the same path %s", other, mine, p)
			}
			places[place] = mine
		}
	}
}

// sourced says whether a gate has something to look at: an earlier environment or
// an earlier ring.
func (e Environment) sourced() bool { return e.From != nil || len(e.Rings) > 1 }

// checkPolicy checks an environment's rules, each by itself.
func checkPolicy(at string, p Policy, r *report) {
	checkGates(at+".gates", p.Gates, r)
	checkWindows(at, p, r)
	actors := func(key string, list []string) {
		for i, who := range list {
			if !actorGrammar.MatchString(who) {
				r.wrong(fmt.Sprintf("%s.%s[%d]", at, key, i), "%q is nobody: write user:LOGIN or team:SLUG", who)
			}
		}
	}
	actors("promoters", p.Promoters)
	actors("overriders", p.Overriders)
	for i := range p.ProveWith {
		checkPattern(fmt.Sprintf("%s.prove-with[%d]", at, i), &p.ProveWith[i], []string{"app", "environment", "ring"}, r)
	}
	checkTexts(at, p, r)
	if p.PullRequest.Draft && p.Merge == Auto {
		r.wrong(at+".pull-request.draft", "a draft is never merged by itself, which merge: auto asks for")
	}
}

func checkTexts(at string, p Policy, r *report) {
	known := []string{"app", "environment", "ring", "tag", "digest"}
	if strings.HasPrefix(strings.ToLower(p.CommitMessage), "tagboat-") {
		r.wrong(at+".commit-message", "%q begins like a trailer of Tagboat's, which are read back from commits: begin with another word", p.CommitMessage)
	}
	if err := checkTemplate(p.CommitMessage, known...); err != nil {
		r.wrong(at+".commit-message", "%v", err)
	}
	at += ".pull-request"
	if err := checkTemplate(p.PullRequest.Title, known...); err != nil {
		r.wrong(at+".title", "%v", err)
	}
	people := func(key string, list []string) {
		for i, who := range list {
			if strings.HasPrefix(who, "@") || strings.ContainsAny(who, " ,") {
				r.wrong(fmt.Sprintf("%s.%s[%d]", at, key, i), "%q is no login or slug: write it without '@', one an item", who)
			}
		}
	}
	people("reviewers", p.PullRequest.Reviewers)
	people("team-reviewers", p.PullRequest.TeamReviewers)
	people("assignees", p.PullRequest.Assignees)
}

func checkGates(at string, g Gates, r *report) {
	for i, p := range g.Platforms {
		if !platformGrammar.MatchString(p) {
			r.wrong(fmt.Sprintf("%s.platforms[%d]", at, i), "%q is no platform: write os/arch or os/arch/variant, as in linux/arm64", p)
		}
	}
	for i, c := range g.Checks {
		if _, err := path.Match(c, ""); err != nil {
			r.wrong(fmt.Sprintf("%s.checks[%d]", at, i), "%q has a '[' that does not end", c)
		}
	}
}

// sourcesOf lists the environments that an environment's gates look at: those in
// from, and itself where a ring looks at the ring before.
func (c *Config) sourcesOf(e Environment) []Environment {
	var sources []Environment
	for _, from := range e.From {
		if source, err := c.Environment(from); err == nil {
			sources = append(sources, source)
		}
	}
	if len(e.Rings) > 1 {
		sources = append(sources, e)
	}
	return sources
}

// plainGit says whether an environment's repository is known to be on no forge.
func (e Environment) plainGit() bool {
	return e.Forge == "git" || strings.HasPrefix(e.Repository, "file://")
}

// checkAskable reports gates that nobody could answer: passing them over would
// look like passing them.
func checkAskable(at string, e Environment, sources []Environment, r *report) {
	report := func(key, format string, args ...any) {
		here, hint := at+".gates."+key, ""
		if _, said := r.lines[here]; !said { // defaults said it
			here, hint = at+".name", ", or write gates: {"+key+": "+map[string]string{"soak": "0s", "checks": "[]", "approvals": "0"}[key]+"}"
		}
		r.wrong(here, "%s", "gates."+key+" of "+e.Name+" cannot be met: "+fmt.Sprintf(format, args...)+hint)
	}
	for _, source := range sources {
		for _, gate := range []struct {
			key string
			set bool
		}{{"soak", e.Gates.Soak > 0}, {"checks", len(e.Gates.Checks) > 0}, {"approvals", e.Gates.Approvals > 0}} {
			if gate.set && source.plainGit() {
				report(gate.key, "%s is in a plain git repository, which has no times, statuses and approvals of a forge: leave the gate out", source.Name)
			}
		}
		if e.Gates.Approvals > 0 && source.Merge == Direct && !source.plainGit() {
			report("approvals", "promotions to %s are commits without a pull request (merge: direct), which nobody approves: leave the gate out, or use merge: auto there", source.Name)
		}
	}
}

// checkSourced reports gates that have nothing to look at. Those that defaults ask
// for hold where there is a source, and are taken away here where there is none.
func checkSourced(e *Environment, at string, r *report) {
	if e.sourced() {
		return
	}
	for _, key := range []string{"soak", "checks", "approvals"} {
		here := at + ".gates." + key
		if _, said := r.lines[here]; said {
			r.wrong(here, "the environment %s has no earlier environment or ring that the gate could look at: name one in from", e.Name)
		}
	}
	e.Gates = Gates{Platforms: e.Gates.Platforms}
}
