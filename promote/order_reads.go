package promote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"tagboat/config"
	"tagboat/inventory"
	"tagboat/scm"
)

// order reads tagboat.yaml at the tip of the default branch.
func (p *Promoter) order(ctx context.Context, q Request) (*order, error) {
	repo, err := p.Open(ctx, q.Repository, "")
	if err != nil {
		return nil, err
	}
	o := &order{Promoter: p, repo: repo, q: q}
	tip, err := o.tip(ctx, repo, "")
	if err != nil {
		return nil, err
	}
	o.config, err = config.Load(repo.Files(ctx, tip.Commit.SHA))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has %w on %s, which names environments and apps: tagboat init proposes one", ErrMisused, repo.About().Name, errNoConfig, tip.Branch)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, branch %s: %w", repo.About().Name, tip.Branch, err)
	}
	if q.Base != "" {
		return nil, fmt.Errorf("%w: --base %s: %s says on which branch an environment is", ErrMisused, q.Base, config.FileName)
	}
	return o, nil
}

// errNoConfig is told where the repository has no tagboat.yaml.
var errNoConfig = errors.New("no " + config.FileName)

// order is a request under a configuration.
type order struct {
	*Promoter
	config *config.Config
	repo   scm.Repository // the one with tagboat.yaml
	q      Request
	e      Environments

	mu     sync.Mutex
	opened map[remote]scm.Repository
	tips   map[tipKey]func() (scm.Tip, error)
	lines  map[lineKey]*inventory.Line
	trees  map[lineKey]fs.FS
}

// remote names a repository.
type remote struct{ name, forge string }

type tipKey struct{ host, repository, branch string }
type lineKey struct{ host, repository, commit string }

// historyOf is the first-parent line of a tip, shared by all promotions of a request.
func (o *order) historyOf(repo scm.Repository, commit string) *inventory.Line {
	about := repo.About()
	key := lineKey{about.Host, about.Name, commit}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines == nil {
		o.lines = map[lineKey]*inventory.Line{}
	}
	if o.lines[key] == nil {
		o.lines[key] = inventory.NewLine(repo, commit)
	}
	return o.lines[key]
}

// files is the tree at a commit, read once for all promotions of a request. It is
// bound to the context of the first.
func (o *order) files(ctx context.Context, repo scm.Repository, commit string) fs.FS {
	about := repo.About()
	key := lineKey{about.Host, about.Name, commit}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.trees == nil {
		o.trees = map[lineKey]fs.FS{}
	}
	if o.trees[key] == nil {
		o.trees[key] = repo.Files(ctx, commit)
	}
	return o.trees[key]
}

// repository opens where an environment's files are, once.
func (o *order) repository(ctx context.Context, e config.Environment) (scm.Repository, error) {
	if e.Repository == "" {
		return o.repo, nil
	}
	at := remote{e.Repository, e.Forge}
	o.mu.Lock()
	defer o.mu.Unlock()
	if repo, ok := o.opened[at]; ok {
		return repo, nil
	}
	repo, err := o.Open(ctx, at.name, at.forge)
	if err != nil {
		return nil, err
	}
	if o.opened == nil {
		o.opened = map[remote]scm.Repository{}
	}
	o.opened[at] = repo
	return repo, nil
}

// tip reads a branch's newest commit once, so that all promotions of a request
// see one state of it.
func (o *order) tip(ctx context.Context, repo scm.Repository, branch string) (scm.Tip, error) {
	about := repo.About()
	key := tipKey{about.Host, about.Name, branch}
	o.mu.Lock()
	read, ok := o.tips[key]
	if !ok {
		read = sync.OnceValues(func() (scm.Tip, error) { return repo.Tip(ctx, branch) })
		if o.tips == nil {
			o.tips = map[tipKey]func() (scm.Tip, error){}
		}
		o.tips[key] = read
	}
	o.mu.Unlock()
	return read()
}

// forget makes the next look at branches a fresh one.
func (o *order) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tips = nil
	for _, line := range o.lines {
		line.Forget()
	}
}
