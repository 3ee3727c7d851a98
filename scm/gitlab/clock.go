package gitlab

import (
	"time"

	"tagboat/scm"
)

var _ scm.Clock = (*Repository)(nil)

// Now implements scm.Clock.
func (r *Repository) Now() (time.Time, bool) { return r.transport.Now() }
