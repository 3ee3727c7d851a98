package promote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tagboat/image"
	"tagboat/overlay"
	"tagboat/registry"
	"tagboat/scm"
)

// Relation says how the commit of a proposed image stands to that of what runs.
type Relation string

// The relations. RelationUnknown has its reason beside it.
const (
	Ahead           Relation = "ahead"    // it comes after
	Behind          Relation = "behind"   // it comes before: a step back
	Diverged        Relation = "diverged" // each has what the other has not
	SameCommit      Relation = "same"     // the same commit, built again
	RelationUnknown Relation = "unknown"
)

// Commits is what lies between what runs and what is proposed, in one source
// repository. Which commits these are is what the images say of themselves.
type Commits struct {
	Repository string // owner/name, or as tagboat.yaml names it
	URL        string // of the page that compares the two; "" where there is none
	From, To   string // commits: of what runs, and of what is proposed
	Relation   Relation
	Come, Gone scm.Span // what is in To alone, and in From alone
	Reason     string   // why nothing is known
}

const (
	// commitsWait bounds how long a source repository may take to answer.
	commitsWait = 5 * time.Second
	// commitsPairs bounds for how many pairs of commits a promotion asks.
	commitsPairs = 20
)

// commitsOf asks in the background what lies between what runs and what is
// proposed, and gives what to call for the answer: one for each source and pair of
// commits. An entry that is new, or was not pinned, has nothing to compare with. It
// never fails: what is not known is told where tagboat.yaml names the source.
func (r *run) commitsOf(ctx context.Context, changes []overlay.Change, resolved []Resolved) func() []Commits {
	found := make([]Commits, len(changes))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(ctx, 2*commitsWait) // the registry is asked, too
		defer cancel()
		var group errgroup.Group
		group.SetLimit(sideBySide)
		for i, c := range changes {
			group.Go(func() error {
				found[i] = r.commitsOfChange(ctx, c, resolved)
				return nil
			})
		}
		_ = group.Wait() // no function of the group fails
	}()
	return func() []Commits {
		<-done
		var all []Commits
		for _, c := range found {
			if c.Relation != "" && !slices.ContainsFunc(all, c.same) {
				all = append(all, c)
			}
		}
		return all
	}
}

func (c Commits) same(o Commits) bool {
	return c.Repository == o.Repository && c.From == o.From && c.To == o.To && c.Reason == o.Reason
}

func (r *run) commitsOfChange(ctx context.Context, c overlay.Change, resolved []Resolved) Commits {
	if c.From.Digest == "" || c.From.Digest == c.To.Digest || image.CheckRepository(c.From.Repository) != nil {
		return Commits{}
	}
	to := factsOf(resolved, c.To.Digest)
	if !slices.ContainsFunc(resolved, func(img Resolved) bool { return img.Reference.Digest == c.To.Digest }) {
		to, _ = r.factsAt(ctx, c.To) // of an entry that an earlier run proposed
	}
	named := r.sourceOf(c.To)
	if named == "" && !r.claimable(to.Source) {
		return Commits{}
	}
	from, err := r.factsAt(ctx, c.From)
	p, why := r.pairOf(named, to, from)
	switch {
	case err != nil && named != "":
		return Commits{Repository: named, Relation: RelationUnknown, Reason: fmt.Sprintf("the registry does not tell of what commit %s was built", c.From)}
	case why != "":
		return Commits{Repository: named, Relation: RelationUnknown, Reason: why}
	case p == pair{}:
		return Commits{}
	}
	return r.commitsBetween(ctx, p)
}

// pair are two commits of a source repository; named says that tagboat.yaml names it.
type pair struct {
	source   string
	named    bool
	from, to string
}

// pairOf says which commits to compare, and where: in the source that tagboat.yaml
// names, else in the one that both images claim, where that is on the config
// repository's own host: what an image's author claims is asked nowhere else. The
// zero pair is none; where a source is named, the reason is beside it.
func (r *run) pairOf(named string, to, from registry.Facts) (pair, string) {
	p := pair{source: named, named: named != "", from: from.Revision, to: to.Revision}
	if named == "" {
		if to.Source != from.Source || !r.claimable(to.Source) {
			return pair{}, ""
		}
		p.source = to.Source
	}
	for _, side := range []struct{ what, revision string }{{"what is proposed", p.to}, {"what runs now", p.from}} {
		switch {
		case commitID.MatchString(side.revision):
			continue // a branch's name would decide by what moves
		case named == "":
			return pair{}, ""
		case side.revision == "":
			return pair{}, fmt.Sprintf("the image of %s does not say of which commit it was built (label org.opencontainers.image.revision)", side.what)
		}
		return pair{}, fmt.Sprintf("the image of %s says that it was built of %s, which is no full commit id", side.what, cut(oneLine(side.revision), 64))
	}
	return p, ""
}

// claimable says whether an image's claim of a source may be followed.
func (r *run) claimable(source string) bool {
	u, err := url.Parse(source)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Host == "" || u.Host != r.repo.About().Host {
		return false
	}
	base, err := url.Parse(r.repo.About().URL)
	return err == nil && base.Scheme == u.Scheme
}

// sourceOf is the source that tagboat.yaml names for an image's app, or "".
func (r *run) sourceOf(ref image.Reference) string {
	if source, ok := r.q.sources[image.Canonical(ref.Repository)]; ok {
		return source
	}
	return r.q.source
}

// commitsBetween asks the source repository once in a run for a pair.
func (r *run) commitsBetween(ctx context.Context, p pair) Commits {
	r.learnt.mu.Lock()
	answer, ok := r.learnt.commits[p]
	if !ok && len(r.learnt.commits) >= commitsPairs {
		r.learnt.mu.Unlock()
		return Commits{}
	}
	if !ok {
		answer = sync.OnceValue(func() Commits { return r.askCommits(ctx, p) })
		if r.learnt.commits == nil {
			r.learnt.commits = map[pair]func() Commits{}
		}
		r.learnt.commits[p] = answer
	}
	r.learnt.mu.Unlock()
	return answer()
}

// askCommits gives no Commits at all where an image's own claim leads nowhere.
func (r *run) askCommits(ctx context.Context, p pair) Commits {
	c := Commits{Repository: p.source, From: p.from, To: p.to, Relation: SameCommit}
	repo, err := r.sourceRepository(ctx, p.source)
	if err == nil {
		about := repo.About()
		if c.Repository = about.Name; p.from == p.to {
			return c
		}
		if about.CompareURL != "" {
			c.URL = about.CompareURL + p.from + "..." + p.to
		}
		ctx, cancel := context.WithTimeout(ctx, commitsWait)
		defer cancel()
		var found scm.Comparison
		if found, err = repo.Compare(ctx, p.from, p.to); err == nil {
			c.Come, c.Gone = found.Ahead, found.Behind
		}
	}
	switch {
	case err == nil && c.Come.Count > 0 && c.Gone.Count > 0:
		c.Relation = Diverged
	case err == nil && c.Come.Count > 0:
		c.Relation = Ahead
	case err == nil && c.Gone.Count > 0:
		c.Relation = Behind
		if c.URL != "" {
			c.URL = strings.TrimSuffix(c.URL, p.from+"..."+p.to) + p.to + "..." + p.from // the page of what goes
		}
	case !p.named:
		return Commits{}
	default:
		c.Relation, c.Reason = RelationUnknown, whyUnknown(err, p)
	}
	return c
}

// whyUnknown says in one line why a source repository does not tell, and what to do.
func whyUnknown(err error, p pair) string {
	place := p.source
	if _, after, found := strings.Cut(place, "://"); found {
		place = after
	}
	switch {
	case err == nil:
		return "its forge tells no difference of the two commits"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, scm.ErrUnavailable), errors.Is(err, scm.ErrRateLimited):
		return fmt.Sprintf("it did not answer within %s", commitsWait)
	case errors.Is(err, scm.ErrNotFound), errors.Is(err, scm.ErrDenied):
		return fmt.Sprintf("commits %s and %s cannot be seen there: if it is private, give a token that may read it, as a line %q of TAGBOAT_TOKENS", short(p.from), short(p.to), place+" TOKEN")
	}
	return cut(oneLine(err.Error()), 300)
}

// errNoForge is told of a source that is on no forge.
var errNoForge = errors.New("it is on no forge, and is not fetched for this")

// sourceRepository opens a source; the config repository itself is open already.
func (r *run) sourceRepository(ctx context.Context, source string) (scm.Repository, error) {
	if r.OpenSource == nil {
		return nil, errNoForge
	}
	about := r.repo.About()
	at, forge := sourceAddress(source, about)
	repo, err := r.OpenSource(ctx, at, forge)
	if err != nil {
		return nil, err
	}
	is := repo.About()
	if is.Host == about.Host && strings.EqualFold(is.Name, about.Name) {
		return r.repo, nil
	}
	if is.Forge == scm.Git {
		return nil, errNoForge
	}
	return repo, nil
}

// sourceAddress reads what `source` says: a URL, host/owner/name, or owner/name on
// the config repository's host. A forge whose host does not tell it is taken to be
// the config repository's.
func sourceAddress(source string, config scm.About) (address, forge string) {
	host, rest, _ := strings.Cut(source, "/")
	switch {
	case strings.Contains(source, "://"):
		if u, err := url.Parse(source); err == nil {
			host = u.Hostname()
		}
	case strings.EqualFold(host, config.Host):
		scheme, _, _ := strings.Cut(config.URL, "://")
		source = scheme + "://" + source
	case strings.ContainsAny(host, ".:") && strings.Contains(rest, "/"):
		source = "https://" + source
	default:
		base := strings.TrimSuffix(config.URL, config.Name)
		if !strings.Contains(config.Name, "/") { // a project of GitLab's by its number
			base = strings.TrimSuffix(base, "projects/")
		}
		source, host = base+source, ""
	}
	if forge = scm.SureForge(host); forge == "" {
		forge = config.Forge
	}
	return source, forge
}

// learnt remembers what a run has asked of images and source repositories.
type learnt struct {
	mu      sync.Mutex
	facts   map[image.Reference]func() (registry.Facts, error)
	commits map[pair]func() Commits
}
