package main

import (
	"slices"
	"strings"

	"tagboat/scm"
)

// need is what some commands take of a credential: a row of docs/permissions.md,
// which a test holds to be enough and no more than that.
type need struct {
	commands []string
	rights   []string       // as scm.Grant names them
	role     scm.Permission // of the token's user in the repository
	also     string         // what no forge tells: what the token's user must be
}

// The commands that are no commands of their own, but promote with a rule.
const (
	withChecks  = "gates.checks"
	withTeams   = "team promoters"
	afterAsking = "dispatched chatops"
)

// needs are the rows of a forge, the ones that most people want first.
func needs(forge string) []need {
	writing, reading := []string{"promote", "rollback", "hold", "release"}, []string{"promote --dry-run", "holds", "status", "history"}
	const write, read, admin = scm.PermissionWrite, scm.PermissionRead, scm.PermissionAdmin
	switch forge {
	case scm.GitHub:
		return []need{
			{writing, []string{"contents:write", "pull_requests:write"}, write, ""},
			{reading, []string{"contents:read", "pull_requests:read"}, read, ""},
			{[]string{withChecks}, []string{"contents:write", "pull_requests:write", "statuses:read", "checks:read"}, write, ""},
			{[]string{withTeams}, []string{"contents:write", "pull_requests:write", "members:read"}, write, ""},
			{[]string{"verify"}, []string{"contents:read", "pull_requests:read", "statuses:write", "checks:read"}, write, ""},
			{[]string{"chatops"}, []string{"contents:write", "pull_requests:write", "issues:write"}, write, ""},
			{[]string{afterAsking}, []string{"contents:write", "pull_requests:write", "actions:read"}, write, ""},
			{[]string{"request"}, []string{"actions:write"}, write, ""},
			{[]string{"serve"}, []string{"contents:read", "pull_requests:read", "actions:write"}, write, ""},
		}
	case scm.GitLab:
		return []need{
			{writing, []string{"api"}, write, ""},
			{reading, []string{"read_api"}, read, ""},
			{[]string{withChecks}, []string{"api"}, write, ""},
			{[]string{withTeams}, []string{"api"}, write, "a member of the group"},
			{[]string{"verify", "chatops", afterAsking, "request", "serve"}, []string{"api"}, write, ""},
		}
	case scm.Gitea:
		return []need{
			{writing, []string{"write:repository"}, write, ""},
			{reading, []string{"read:repository"}, read, ""},
			{[]string{withChecks}, []string{"write:repository"}, write, ""},
			{[]string{withTeams}, []string{"write:repository", "read:user", "read:organization"}, write, "in the team, or an owner of its organisation"},
			{[]string{"verify"}, []string{"write:repository"}, write, ""},
			{[]string{"chatops"}, []string{"write:repository", "write:issue", "read:user"}, admin, ""},
			{[]string{afterAsking}, []string{"write:repository"}, admin, ""},
			{[]string{"request"}, []string{"write:repository"}, write, ""},
			{[]string{"serve"}, []string{"write:repository"}, admin, ""},
		}
	}
	return nil
}

// lacks are the rights of a need that a credential does not have, where the forge
// tells them.
func (n need) lacks(g scm.Grant) []string {
	if !g.Told {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.rights), func(right string) bool { return covered(right, g.Rights) })
}

// covered tells whether some of the rights that a credential has is right, or more.
func covered(right string, has []string) bool {
	wider := []string{right, "all"}
	name, level, _ := strings.Cut(right, ":")
	switch {
	case right == "read_api":
		wider = append(wider, "api")
	case name == "members": // with the scopes of a classic token
		wider = append(wider, "members:write", "read:org", "write:org", "admin:org")
	case level == "read" || level == "write":
		wider = append(wider, name+":write", "repo", "public_repo")
	case name == "read": // Gitea's are the other way round
		wider = append(wider, "write:"+level)
	}
	return slices.ContainsFunc(wider, func(w string) bool { return slices.Contains(has, w) })
}
