package chatops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tagboat/config"
	"tagboat/scm"
)

// ErrNoRight is returned for a person who may not ask for that: the forge said so,
// or does not know the person. That the forge could not be asked is another error.
var ErrNoRight = errors.New("no right")

// May asks the forge whether a login may ask for a command: who may write to the
// config repository and, of a promotion or rollback into an environment that names
// promoters, is one of them. It is asked at every command; nothing is kept.
func May(ctx context.Context, rights scm.Rights, names *config.Config, c Command, login string) error {
	if login == "" {
		return fmt.Errorf("%w: it is not known who asks", ErrNoRight)
	}
	permission, err := rights.Permission(ctx, login)
	if errors.Is(err, scm.ErrNotFound) {
		return fmt.Errorf("%w: the forge does not know %s", ErrNoRight, login)
	}
	if err != nil {
		return fmt.Errorf("ask what %s may do: %w", login, err)
	}
	if !permission.Allows(scm.PermissionWrite) {
		return fmt.Errorf("%w: %s may not write to the config repository", ErrNoRight, login)
	}
	return promoters(ctx, rights, names, c, login)
}

// promoters asks whether a login may promote to the command's environment.
func promoters(ctx context.Context, rights scm.Rights, names *config.Config, c Command, login string) error {
	if c.Verb != Promote && c.Verb != Rollback {
		return nil
	}
	policy, err := names.Policy(c.App, c.Environment)
	if err != nil || policy.Promoters == nil {
		return err
	}
	return promoter(ctx, rights, policy.Promoters, c.Environment, login)
}

// promoter asks whether a login is one of the promoters: user:LOGIN or team:SLUG.
func promoter(ctx context.Context, rights scm.Rights, promoters []string, environment, login string) error {
	for _, who := range promoters {
		if user, ok := strings.CutPrefix(who, "user:"); ok {
			if strings.EqualFold(user, login) {
				return nil
			}
			continue
		}
		team := strings.TrimPrefix(who, "team:")
		member, err := rights.Member(ctx, team, login)
		if err != nil {
			return fmt.Errorf("ask whether %s is in the team %s: %w", login, team, err)
		}
		if member {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is none of the promoters of %s", ErrNoRight, login, environment)
}
