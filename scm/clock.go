package scm

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Clock is a forge's clock. A user asserts a Repository for Clock; plain git has
// none.
type Clock interface {
	// Now is the forge's time, from the Date header of its last answer and the time
	// that passed since. It makes no call; ok is false before the first answer that
	// tells a time. It may be late by what the answer was under way and by a second,
	// for the header has whole seconds, so that a span is never too long.
	Now() (t time.Time, ok bool)
}

// reading is a forge's time and ours at the same moment. Ours has time.Now's
// monotonic reading: that this machine's clock is wrong, or is set meanwhile, does
// not matter.
type reading struct {
	mu            sync.Mutex
	theirs, local time.Time
}

// take keeps the time that an answer tells. One that a cache held for a while says
// its Age (RFC 9111, section 5.1).
func (r *reading) take(h http.Header, now time.Time) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	if age := strings.TrimSpace(h.Get("Age")); age != "" {
		seconds, err := strconv.ParseInt(age, 10, 32)
		if err != nil || seconds < 0 {
			return
		}
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.theirs, r.local = at, now
}

func (r *reading) now(local time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.theirs.IsZero() {
		return time.Time{}, false
	}
	return r.theirs.Add(local.Sub(r.local)), true
}

// Now implements Clock, by the answers of Host: what another host says after a
// redirect does not count.
func (t *Transport) Now() (time.Time, bool) { return t.clock.now(t.o.Now()) }
