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
}

// checkFrom holds an environment's sources to the order.
func checkFrom(c *Config, i int, at string, r *report) {
	names := c.EnvironmentNames()
	for j, from := range c.Environments[i].From {
		here := fmt.Sprintf("%s.from[%d]", at, j)
		switch k := slices.Index(names, from); {
		case k < 0:
			r.wrong(here, "no environment %q%s", from, hint(from, names[:i]))
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
	for i, w := range p.Freeze {
		checkWindow(fmt.Sprintf("%s.freeze[%d]", at, i), w, r)
	}
	for i, w := range p.FreezeExceptions {
		checkWindow(fmt.Sprintf("%s.freeze-exceptions[%d]", at, i), w, r)
	}
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
