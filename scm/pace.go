package scm

import (
	"sync"
	"time"
)

// Pace is what the Transports of one host and one credential share, for a forge
// limits the credential, not the repository: how many requests are under way, that
// writes go one by one in the order in which they were asked for, the wait that the
// forge asked for, and how close writes follow each other. NewPace makes one; it is
// safe for concurrent use.
//
// An Authorize that sends requests itself must not share its Transport's Pace: it is
// called by a request that holds a place.
type Pace struct {
	reads  chan struct{}
	writes chan struct{}

	mu    sync.Mutex
	open  time.Time   // no request before it: the forge asked to wait
	wrote []time.Time // when the writes of the last minute were sent, oldest first
	last  time.Time   // when the last write was sent
}

// writeBurst is how many writes of a minute may follow each other at once: those of
// one or two promotions.
const writeBurst = 10

// NewPace makes a Pace with that many reads in flight at most; 0 is 16.
func NewPace(reads int) *Pace {
	if reads <= 0 {
		reads = 16
	}
	return &Pace{reads: make(chan struct{}, reads), writes: make(chan struct{}, 1)}
}

// slots are the places of reads or writes.
func (p *Pace) slots(write bool) chan struct{} {
	if write {
		return p.writes
	}
	return p.reads
}

// shut keeps every request back until a time.
func (p *Pace) shut(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.open) {
		p.open = until
	}
}

// shutFor is how long every request is kept back.
func (p *Pace) shutFor(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open.Sub(now)
}

// write takes the next write's turn, and tells how long it has to wait for it: no
// time for the first ten of a minute, then interval from one to the next, and so
// from the first one in the minute after a wait that the forge asked for.
func (p *Pace) write(now time.Time, interval time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.wrote) > 0 && now.Sub(p.wrote[0]) >= time.Minute {
		p.wrote = p.wrote[1:]
	}
	turn := now
	if next := p.last.Add(interval); next.After(now) && (len(p.wrote) >= writeBurst || now.Before(p.open.Add(time.Minute))) {
		turn = next
	}
	p.wrote, p.last = append(p.wrote, turn), turn
	return turn.Sub(now)
}
