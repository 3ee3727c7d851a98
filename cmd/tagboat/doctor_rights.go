package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tagboat/scm"
)

// endsSoon is how long before its end a token is worth a warning.
const endsSoon = 14 * 24 * time.Hour

// grant tells what the forge tells of the credential itself: its rights, what of them
// no command needs, and when it ends.
func (e *examination) grant(ctx context.Context, repo scm.Repository) scm.Grant {
	teller, ok := repo.(scm.Grants)
	if !ok {
		return scm.Grant{}
	}
	g, err := teller.Grant(ctx)
	if err != nil {
		e.note(warning, "token", "what it may do could not be asked: "+err.Error(), "")
		return scm.Grant{}
	}
	if g.Told {
		e.note(fine, "token", "it may "+listOr(g.Rights, "nothing"), "")
	}
	if more := unneeded(repo.About().Forge, g.Rights); len(more) > 0 {
		e.note(warning, "token", "no command needs "+strings.Join(more, ", "), "make one without: docs/permissions.md")
	}
	e.expiry(g.Expires)
	return g
}

func (e *examination) expiry(at time.Time) {
	const another = "make another one, and put it where this one is"
	left := time.Until(at)
	switch day := at.UTC().Format(time.DateOnly); {
	case at.IsZero():
	case left <= 0:
		e.note(wrong, "token", "it ended on "+day, another)
	case left < endsSoon:
		e.note(warning, "token", fmt.Sprintf("it ends on %s, in %s", day, counted(int(left.Hours()/24), "day")), another)
	default:
		e.note(fine, "token", "it ends on "+day, "")
	}
}

// unneeded are the rights that are enough for no right of any command's.
func unneeded(forge string, has []string) (more []string) {
	for _, one := range has {
		used := slices.ContainsFunc(needs(forge), func(n need) bool {
			return slices.ContainsFunc(n.rights, func(right string) bool { return covered(right, []string{one}) })
		})
		if !used && one != "metadata:read" && one != "public-only" {
			more = append(more, one)
		}
	}
	return more
}

// role asks whose the credential is and what that one may do in the repository; ""
// where the forge does not tell.
func (e *examination) role(ctx context.Context, repo scm.Repository) scm.Permission {
	people, ok := repo.(scm.Rights)
	if !ok {
		e.note(fine, "rights", "plain git knows no people: a push will tell", "")
		return ""
	}
	self, err := people.Self(ctx)
	if err != nil {
		e.note(warning, "rights", "the forge does not say whose the credential is: "+err.Error(), "")
		return ""
	}
	may, err := people.Permission(ctx, self)
	switch {
	case err != nil && (e.app || strings.HasSuffix(self, "[bot]")):
		e.note(fine, "rights", self+": a bot, which has no role but the permissions of its token", "")
		return ""
	case err != nil:
		e.note(warning, "rights", fmt.Sprintf("%s: the forge does not say what it may do: %v", self, err), "")
		return ""
	case may.Allows(scm.PermissionWrite):
		e.note(fine, "rights", fmt.Sprintf("%s: %s", self, may), "")
	default:
		e.note(wrong, "rights", fmt.Sprintf("%s: %s; commits, %ss and statuses need write", self, may, repo.About().PullRequestWord), "give it write access: docs/permissions.md")
	}
	return may
}

// commands tells which commands the credential is good for, as far as its rights and
// its user's role are told, and what the others lack.
func (e *examination) commands(at scm.About, g scm.Grant, role scm.Permission) {
	if len(needs(at.Forge)) == 0 {
		return
	}
	var good []string
	lacking := map[string][]string{}
	for _, n := range needs(at.Forge) {
		missing := n.lacks(g)
		if role != "" && !role.Allows(n.role) {
			missing = append(missing, "the role "+string(n.role))
		}
		if what := strings.Join(missing, ", "); what != "" {
			lacking[what] = append(lacking[what], n.commands...)
			continue
		}
		names := strings.Join(n.commands, ", ")
		if n.also != "" {
			names += " (if its user is " + n.also + ")"
		}
		good = append(good, names)
	}
	told := ""
	switch {
	case !g.Told && role == "":
		e.note(fine, "commands", "what the credential may do is not told by "+at.Host+": docs/permissions.md has what each command needs, and names where it is given", "")
		return
	case !g.Told:
		told = ", as far as its user's role goes: its own scopes are not told"
	}
	if len(good) > 0 {
		e.note(fine, "commands", "good for "+strings.Join(good, ", ")+told, "")
	}
	for _, what := range slices.Sorted(maps.Keys(lacking)) {
		l := warning
		if len(good) == 0 {
			l = wrong
		}
		e.note(l, "commands", "not good for "+strings.Join(lacking[what], ", ")+": it lacks "+what, "docs/permissions.md says where that is given")
	}
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

// counted is a number with its word: 1 app, 2 apps.
func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
