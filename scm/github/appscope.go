package github

import (
	"context"

	"github.com/google/go-github/v60/github"
)

// rights is a set of an App's permissions that some calls need. It travels in the
// context, for the credential is added where a request leaves.
type rights string

const (
	rightsToPromote rights = "contents:write and pull_requests:write on this repository"
	rightsToLook    rights = "contents:read and pull_requests:read on this repository"
	rightsToCompare rights = "contents:read on this repository"
	rightsToRead    rights = "statuses:read and checks:read on this repository"
	rightsToPost    rights = "statuses:write on this repository"
	rightsToAsk     rights = "members:read of the organisation"
	rightsToTalk    rights = "issues:write and pull_requests:read on this repository"
	rightsToRun     rights = "actions:write on this repository"
	rightsToFollow  rights = "actions:read on this repository"
)

func (s rights) permissions() *github.InstallationPermissions {
	read, write := "read", "write"
	switch s {
	case rightsToLook:
		return &github.InstallationPermissions{Contents: &read, PullRequests: &read}
	case rightsToCompare:
		return &github.InstallationPermissions{Contents: &read}
	case rightsToRead:
		return &github.InstallationPermissions{Statuses: &read, Checks: &read}
	case rightsToPost:
		return &github.InstallationPermissions{Statuses: &write}
	case rightsToAsk:
		return &github.InstallationPermissions{Members: &read}
	case rightsToTalk:
		return &github.InstallationPermissions{Issues: &write, PullRequests: &read}
	case rightsToRun:
		return &github.InstallationPermissions{Actions: &write}
	case rightsToFollow:
		return &github.InstallationPermissions{Actions: &read}
	}
	return &github.InstallationPermissions{Contents: &write, PullRequests: &write}
}

type neededRights struct{}

// needing marks a context's calls as needing other rights than those of a
// promotion. Only an App's credential looks at it.
func needing(ctx context.Context, s rights) context.Context {
	return context.WithValue(ctx, neededRights{}, s)
}

func rightsOf(ctx context.Context) rights {
	if s, ok := ctx.Value(neededRights{}).(rights); ok {
		return s
	}
	return rightsToPromote
}
