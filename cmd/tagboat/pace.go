package main

import (
	"strings"
	"sync"

	"tagboat/scm"
)

// paces are shared by all repositories that a run opens on one host with one
// credential, for that is what a forge limits. nil shares nothing.
type paces struct {
	mu sync.Mutex
	by map[[2]string]*scm.Pace
}

// of is the pace of a host and a credential.
func (p *paces) of(host, credential string) *scm.Pace {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{strings.ToLower(host), credential}
	if p.by == nil {
		p.by = map[[2]string]*scm.Pace{}
	}
	if p.by[key] == nil {
		p.by[key] = scm.NewPace(0)
	}
	return p.by[key]
}
