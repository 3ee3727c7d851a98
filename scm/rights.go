package scm

import (
	"context"
	"time"
)

// Rights is what a forge says about people. Plain git has no people: a user
// asserts a Repository for Rights. Every answer is the forge's own; an
// environment variable, a name in a commit or an event's text is no identity.
type Rights interface {
	// Permission is what a login may do in the repository, through teams, groups
	// and their parents too. A login that the forge does not know is ErrNotFound. A
	// credential that may not ask is ErrDenied: that is no "none".
	Permission(ctx context.Context, user string) (Permission, error)

	// Member tells whether a login is in a team, or in one below it where the
	// forge nests them. A team is "slug" or "organisation/slug" on GitHub and
	// Gitea, the full path of a group on GitLab; a leading @ is left away. A team
	// that is not there, or that the credential cannot see, is ErrNotFound, never
	// false. An invitation that is not accepted yet is false.
	Member(ctx context.Context, team, user string) (bool, error)

	// Self is the login that the credential acts as: a person, a bot user of
	// GitLab, or SLUG[bot] for a GitHub App.
	Self(ctx context.Context) (login string, err error)
}

// Permission is what somebody may do in a repository.
type Permission string

// The permissions, each with all before it. GitHub's triage is read, its maintain
// is write, and a custom role is the role that it was made from. On GitLab,
// Reporter reads, Developer writes, Maintainer administrates; guests and the
// readers of a public project, who have no role in it, have none.
const (
	PermissionNone  Permission = "none"
	PermissionRead  Permission = "read"
	PermissionWrite Permission = "write"
	PermissionAdmin Permission = "admin"
)

// Allows tells whether p is at least want. A permission that is none of the four
// allows nothing.
func (p Permission) Allows(want Permission) bool {
	have, known := p.rank()
	need, lawful := want.rank()
	return known && lawful && have >= need
}

func (p Permission) rank() (int, bool) {
	for i, q := range []Permission{PermissionNone, PermissionRead, PermissionWrite, PermissionAdmin} {
		if p == q {
			return i, true
		}
	}
	return 0, false
}

// Grants is what a forge tells of the credential itself. A user asserts a
// Repository for Grants; plain git tells nothing.
type Grants interface {
	// Grant asks the forge and writes nothing. That a forge tells nothing of a
	// credential is an empty Grant, no error.
	Grant(ctx context.Context) (Grant, error)
}

// Grant is what a credential may do, as far as the forge tells.
type Grant struct {
	// Rights are named as the forge names them: contents:write (a permission of a
	// GitHub App), repo (a scope of GitHub's classic tokens), api (GitLab's),
	// write:repository (Gitea's). Told is false where the forge does not tell all of
	// them.
	Rights []string
	Told   bool
	// Expires is when the credential ends, at the earliest; zero: never, or not told.
	Expires time.Time
}
