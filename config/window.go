package config

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Freeze is a freeze that is on.
type Freeze struct {
	Window Window
	Since  time.Time // when its window began
	Until  time.Time // when promotions go on, as far as freezes are concerned
}

// FreezeAt tells which freeze is on at a time, or nil. A window is on from the
// minute that its cron expression names until its duration has passed, by the
// clock that does not jump; an exception that is on beats every freeze.
func (p Policy) FreezeAt(t time.Time) (*Freeze, error) {
	freezes, err := calendar(p.Freeze)
	if err != nil {
		return nil, err
	}
	exceptions, err := calendar(p.FreezeExceptions)
	if err != nil {
		return nil, err
	}
	if s, _ := exceptions.on(t); s != nil {
		return nil, nil
	}
	s, since := freezes.on(t)
	if s == nil {
		return nil, nil
	}
	return &Freeze{Window: s.window, Since: since, Until: until(freezes, exceptions, t)}, nil
}

// until finds when a freeze that is on at t is over: where the last of its windows
// ends that follow one another without a gap, or where an exception begins.
func until(freezes, exceptions windows, t time.Time) time.Time {
	for range stepLimit {
		s, since := freezes.on(t)
		if s == nil {
			return t
		}
		end := since.Add(s.duration)
		if next := exceptions.next(t); !next.IsZero() && next.Before(end) {
			return next
		}
		t = end
	}
	return t
}

// windows are the spans of a policy's list.
type windows []*span

// span is a window that was read.
type span struct {
	window   Window
	begins   cron.Schedule
	duration time.Duration
}

func calendar(list []Window) (windows, error) {
	var all windows
	for _, w := range list {
		begins, err := w.schedule()
		if err != nil {
			return nil, err
		}
		all = append(all, &span{w, begins, time.Duration(w.Duration)})
	}
	return all, nil
}

// on gives the window that is on at t and ends last, with its beginning; nil for none.
func (all windows) on(t time.Time) (*span, time.Time) {
	var found *span
	var since time.Time
	for _, s := range all {
		start := s.start(t)
		if start.IsZero() || found != nil && !start.Add(s.duration).After(since.Add(found.duration)) {
			continue
		}
		found, since = s, start
	}
	return found, since
}

// start is the last beginning from which the window is on at t, or zero. Between
// one that is known and t it bisects, for a window may begin every minute.
func (s *span) start(t time.Time) time.Time {
	last := s.begins.Next(t.Add(-s.duration))
	if last.IsZero() || last.After(t) {
		return time.Time{}
	}
	for end := t; end.Sub(last) >= time.Minute; {
		middle := last.Add(end.Sub(last) / 2)
		if next := s.begins.Next(middle); next.IsZero() || next.After(t) {
			end = middle
		} else {
			last = next
		}
	}
	return last
}

// endless says whether freezes that are on at t leave no gap for a year, or for
// more windows than anybody has thought through.
func endless(freezes, exceptions windows, t time.Time) bool {
	first := t
	for range stepLimit {
		s, since := freezes.on(t)
		if s == nil {
			return false
		}
		end := since.Add(s.duration)
		if next := exceptions.next(t); !next.IsZero() && next.Before(end) {
			return false
		}
		if t = end; t.Sub(first) > longest {
			return true
		}
	}
	return true
}

// next is when the next of the windows begins, or zero.
func (all windows) next(t time.Time) time.Time {
	var first time.Time
	for _, s := range all {
		first = earlier(first, s.begins.Next(t))
	}
	return first
}

// earlier is the earlier of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
