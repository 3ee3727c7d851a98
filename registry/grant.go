package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// grant is what one request for a repository is sent with.
type grant struct {
	header    string     // Authorization, or "" for none
	candidate *candidate // whose credential; nil for anonymous
	expires   time.Time  // zero where unknown
	after     []string   // the credentials that were refused before
	used      atomic.Bool
}

// who is whose credential a grant is, for a registry that hides what it denies.
func (g *grant) who() string {
	if g.candidate == nil {
		return "those who come without a credential"
	}
	return "the credential of " + g.candidate.source
}

// repositoryGrant is the grant of one repository: the current one, and which
// credential is next if it is refused.
type repositoryGrant struct {
	turn    chan struct{} // held while a grant is made
	current *grant
	next    int
	scope   string   // asked for by a challenge, beyond pull
	refused []string // credentials that were there and did not do
	nothing []string // sources that turned out to have none
}

// authorize returns the repository's grant, or makes one: with the first
// credential that the registry takes, else anonymously.
func (s *session) authorize(ctx context.Context, repository string) (*grant, error) {
	r := s.grantOf(repository)
	if err := take(ctx, r.turn); err != nil {
		return nil, err
	}
	defer release(r.turn)
	if g := r.current; g != nil && (g.expires.IsZero() || s.client.options.Now().Before(g.expires)) {
		return g, nil
	}
	usable := s.usable(repository)
	for ; r.next < len(usable); r.next++ {
		g, err := s.try(ctx, repository, r, usable[r.next])
		if g != nil || err != nil {
			return r.set(g), err
		}
	}
	g, err := s.anonymous(ctx, repository, r)
	return r.set(g), err
}

func (r *repositoryGrant) set(g *grant) *grant {
	if r.current = g; g != nil {
		g.after = slices.Clone(r.refused)
	}
	return g
}

func take(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func release(turn chan struct{}) { <-turn }

func (s *session) grantOf(repository string) *repositoryGrant {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.grants[repository]
	if r == nil {
		r = &repositoryGrant{turn: make(chan struct{}, 1)}
		s.grants[repository] = r
	}
	return r
}

func (s *session) isProven() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven || s.challenge.scheme == ""
}

func (s *session) wants() challenge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.challenge
}

// usable are the credentials that count for a repository, in the order of their
// sources, the longest matching path first within one source.
func (s *session) usable(repository string) []*candidate {
	var usable []*candidate
	for _, c := range s.candidates {
		if c.covers(repository) {
			usable = append(usable, c)
		}
	}
	return usable
}

// try asks for a grant with one credential. Neither grant nor error means that
// this credential will not do, and why is noted. A credential that a helper made
// is asked for once more: it may have expired in the helper's cache.
func (s *session) try(ctx context.Context, repository string, r *repositoryGrant, c *candidate) (*grant, error) {
	for {
		credential, err := c.get(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if errors.Is(err, errNothing) {
				r.nothing = append(r.nothing, c.source)
			} else {
				r.refused = append(r.refused, c.source+": "+err.Error())
			}
			return nil, nil
		}
		g, a, err := s.exchange(ctx, repository, r, credential)
		if err != nil {
			var blocked *realmRefused
			if !errors.As(err, &blocked) {
				return nil, err
			}
			r.refused = append(r.refused, c.source+": "+err.Error())
			return nil, nil
		}
		if g != nil {
			g.candidate = c
			return g, nil
		}
		if a.status == http.StatusUnauthorized && c.renew(ctx, credential) {
			continue
		}
		s.note(r, c, a)
		return nil, nil
	}
}

// note keeps that a credential was refused. A 401 is about the credential itself,
// unless it was good elsewhere, so that no other repository need try it.
func (s *session) note(r *repositoryGrant, c *candidate, a *answer) {
	text := fmt.Sprintf("%s: refused with %s", c.source, s.redact(a))
	if a.status == http.StatusUnauthorized && !c.good.Load() {
		c.kill(fmt.Errorf("refused with %s", s.redact(a)))
	}
	r.refused = append(r.refused, text)
}

// anonymous is the last resort: public images need no credential.
func (s *session) anonymous(ctx context.Context, repository string, r *repositoryGrant) (*grant, error) {
	g, a, err := s.exchange(ctx, repository, r, login{})
	if err != nil || g != nil {
		return g, err
	}
	return nil, s.giveUp(r, a)
}

// giveUp is the error when nothing is left to try; the next request begins anew.
func (s *session) giveUp(r *repositoryGrant, a *answer) error {
	err := s.deniedFor(r, a)
	r.current, r.next, r.refused, r.nothing = nil, 0, nil, nil
	return err
}

// exchange turns a credential into a grant by the registry's challenge. Where the
// token server refuses, its answer is returned instead.
func (s *session) exchange(ctx context.Context, repository string, r *repositoryGrant, credential login) (*grant, *answer, error) {
	wants := s.wants()
	switch {
	case wants.scheme == "":
		return &grant{}, nil, nil
	case credential.RegistryToken != "":
		return &grant{header: "Bearer " + credential.RegistryToken}, nil, nil
	case wants.scheme == "bearer":
		return s.token(ctx, wants, scopeOf(r.scope, repository), credential)
	case credential.Username == "" && credential.Password == "":
		return &grant{}, nil, nil
	}
	return &grant{header: basic(credential)}, nil, nil
}

func scopeOf(asked, repository string) string {
	if asked != "" {
		return asked
	}
	return "repository:" + repository + ":pull"
}

// accepted notes that a grant was good, and warns of the credentials that were
// refused before it: they are stale, or miss a right.
func (s *session) accepted(g *grant) {
	if g.used.Swap(true) {
		return
	}
	s.mu.Lock()
	s.proven = true
	s.mu.Unlock()
	if g.candidate != nil {
		g.candidate.good.Store(true)
	}
	if len(g.after) > 0 {
		used := "anonymously"
		if g.candidate != nil {
			used = "with " + g.candidate.source
		}
		s.client.warn(fmt.Sprintf("%s was asked %s, after %s", s.host, used, strings.Join(g.after, "; ")))
	}
}

// rejected handles a 401 or 403 from the registry itself, and says whether to
// ask again. A token that worked before has expired: it is made anew once.
func (s *session) rejected(ctx context.Context, repository string, g *grant, a *answer) (bool, error) {
	r := s.grantOf(repository)
	if err := take(ctx, r.turn); err != nil {
		return false, err
	}
	defer release(r.turn)
	if r.current != g {
		return true, nil // another worker has a newer one
	}
	asked := readChallenge(a.header)
	named := a.header.Get("WWW-Authenticate") != ""
	switch {
	case s.adopt(asked, named && a.status == http.StatusUnauthorized):
		r.current = nil
		return true, nil
	case g.used.Load() && a.status == http.StatusUnauthorized:
		r.current = nil
		return true, nil
	case asked.scheme == "bearer" && asked.scope != "" && asked.scope != scopeOf(r.scope, repository) && r.scope == "":
		r.current, r.scope = nil, asked.scope
		return true, nil
	case g.candidate == nil:
		return false, s.giveUp(r, a)
	}
	if a.status == http.StatusUnauthorized && strings.HasPrefix(g.header, "Basic ") {
		if credential, err := g.candidate.get(ctx); err == nil && g.candidate.renew(ctx, credential) {
			r.current = nil
			return true, nil
		}
		s.note(r, g.candidate, a)
	} else {
		r.refused = append(r.refused, fmt.Sprintf("%s: refused with %s", g.candidate.source, s.redact(a)))
	}
	r.current = nil
	r.next++
	return true, nil
}

// adopt takes up a challenge that only a repository's 401 brought: some
// registries let anyone ping.
func (s *session) adopt(asked challenge, named bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !named || s.challenge.scheme != "" {
		return false
	}
	s.challenge = asked
	return true
}
