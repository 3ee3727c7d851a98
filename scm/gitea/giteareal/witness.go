package giteareal

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"

	"tagboat/scm"
	"tagboat/scm/scmtest"
)

var _ scmtest.Witness = (*Person)(nil)

// PostStatus implements scmtest.Witness, as the administrator.
func (p *Person) PostStatus(sha string, s scmtest.Status) (scmtest.Status, error) {
	in := map[string]any{"context": s.Context, "state": s.State, "description": s.Description, "target_url": s.URL}
	return s, p.call("", http.MethodPost, "/statuses/"+sha, in, nil)
}

// Clock implements scmtest.Witness: the server runs on this machine.
func (p *Person) Clock() time.Time { return time.Now() }

// PushTogether implements scmtest.Witness.
func (p *Person) PushTogether(branch, author string, made time.Time, commits ...map[string]string) (shas []string, err error) {
	_, err = p.work(p.server.Admin, branch, func(s *scmtest.Store) (string, error) {
		shas, err = s.PushTogether(branch, author, made, commits...)
		return "", err
	})
	return shas, err
}

// ForcePush sets a branch to a commit, whatever it was at.
func (p *Person) ForcePush(branch, sha string) error {
	remote, store, err := p.clone(p.server.Admin)
	if err != nil {
		return err
	}
	if err := store.ForcePush(branch, sha); err != nil {
		return err
	}
	ref := config.RefSpec("+refs/heads/" + branch + ":refs/heads/" + branch)
	if err := remote.PushContext(p.ctx, &git.PushOptions{RefSpecs: []config.RefSpec{ref}, Auth: p.auth(p.server.Admin)}); err != nil {
		return fmt.Errorf("push %s by force: %w", branch, err)
	}
	return nil
}

// Grant implements scmtest.Witness. The repository is public: all can read it.
func (p *Person) Grant(login string, granted scm.Permission) error {
	if granted == scm.PermissionNone {
		return fmt.Errorf("a public repository can be read by all: %w", errors.ErrUnsupported)
	}
	if err := p.server.AddUser(p.ctx, login); err != nil {
		return err
	}
	return p.call("", http.MethodPut, "/collaborators/"+login, map[string]any{"permission": string(granted)}, nil)
}

// AddTeam implements scmtest.Witness, in an organisation for each repository.
func (p *Person) AddTeam(name, member string) (string, error) {
	org := "org-" + p.name
	if _, err := p.server.Call(p.ctx, "", http.MethodPost, "/orgs", map[string]any{"username": org}, nil); err != nil {
		return "", err
	}
	var made struct{ ID int }
	in := map[string]any{"name": name, "permission": "write", "units": []string{"repo.code"}}
	if _, err := p.server.Call(p.ctx, "", http.MethodPost, "/orgs/"+org+"/teams", in, &made); err != nil {
		return "", err
	}
	_, err := p.server.Call(p.ctx, "", http.MethodPut, fmt.Sprintf("/teams/%d/members/%s", made.ID, member), nil, nil)
	return org + "/" + name, err
}

// protectAgain is Protect where there is a rule of that name already.
func (p *Person) protectAgain(in map[string]any) error {
	rule := strings.ReplaceAll(fmt.Sprint(in["rule_name"]), "/", "%2F")
	return p.call("", http.MethodPatch, "/branch_protections/"+rule, map[string]any{"enable_push": in["enable_push"]}, nil)
}
