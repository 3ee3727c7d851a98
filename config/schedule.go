package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a freeze means the same on a machine without time zones

	"github.com/robfig/cron/v3"
)

// schedule reads when the window begins.
func (w Window) schedule() (cron.Schedule, error) {
	if strings.ContainsAny(w.Cron, "@=") {
		return nil, fmt.Errorf("%q is no cron expression here: write minute, hour, day of the month, month and day of the week, as in \"0 18 * * FRI\"; the time zone is a key of its own", w.Cron)
	}
	zone, err := w.location()
	if err != nil {
		return nil, err
	}
	fields := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	parsed, err := fields.Parse(w.Cron)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", w.Cron, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron %q names no times of day", w.Cron)
	}
	return zoned(*spec, zone), nil
}

func (w Window) location() (*time.Location, error) {
	if w.Timezone == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(w.Timezone)
	if err != nil || w.Timezone == "Local" {
		return nil, fmt.Errorf("%q is no time zone of the IANA list, as in Europe/Zurich", w.Timezone)
	}
	return zone, nil
}

func zoned(spec cron.SpecSchedule, zone *time.Location) cron.Schedule {
	if zone == time.UTC {
		spec.Location = zone
		return &spec
	}
	local, wall := spec, spec
	local.Location, wall.Location = zone, time.UTC
	return inZone{local: &local, wall: &wall, zone: zone}
}

// inZone is a schedule by the clock of a time zone. In the hour that a clock leaves
// out in spring, cron begins nothing: a freeze that is to begin then would be left
// out as well. There it begins as if the clock had not jumped yet, which is the
// rule of RFC 5545, section 3.3.5.
type inZone struct {
	local, wall cron.Schedule
	zone        *time.Location
}

// leap is more than a clock jumps anywhere.
const leap = 3 * time.Hour

// Next is the first beginning after t.
func (z inZone) Next(t time.Time) time.Time {
	next := z.local.Next(t)
	at := t.In(z.zone)
	shown := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	if z.jumps(t) {
		shown = shown.Add(-leap)
	}
	for n := 0; n < stepLimit; n++ {
		if shown = z.wall.Next(shown); shown.IsZero() {
			return next
		}
		if moment := z.moment(shown); moment.After(t) {
			return earlier(next, moment)
		}
	}
	return next
}

// moment is when the zone's clock shows a time, or would show it without a jump.
func (z inZone) moment(shown time.Time) time.Time {
	t := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), 0, 0, z.zone)
	if t.Hour() == shown.Hour() && t.Minute() == shown.Minute() {
		return t
	}
	_, before := t.Add(-leap).Zone()
	return shown.Add(-time.Duration(before) * time.Second).In(z.zone)
}

// jumps says whether the zone's clock jumps near t.
func (z inZone) jumps(t time.Time) bool {
	_, before := t.Add(-leap).In(z.zone).Zone()
	_, after := t.Add(leap).In(z.zone).Zone()
	return before != after
}

var (
	errNeverBegins = errors.New("never begins")
	errNeverEnds   = errors.New("never ends")
)

// windowLimit bounds the windows of one list.
const windowLimit = 100

// checkWindows checks the freezes and exceptions of a policy, each by itself.
func checkWindows(at string, p Policy, r *report) {
	for _, list := range []struct {
		key     string
		windows []Window
	}{{"freeze", p.Freeze}, {"freeze-exceptions", p.FreezeExceptions}} {
		if len(list.windows) > windowLimit {
			r.wrong(at+"."+list.key, "%d windows are more than anybody keeps in mind: at most %d are read", len(list.windows), windowLimit)
			continue
		}
		for i, w := range list.windows {
			checkWindow(fmt.Sprintf("%s.%s[%d]", at, list.key, i), w, r)
		}
	}
}

// checkGap reports freezes that leave no gap together. Where a window is wrong by
// itself, that says enough.
func checkGap(at string, p Policy, r *report) {
	if len(r.problems) > 0 {
		return
	}
	freezes, err := calendar(p.Freeze)
	if err != nil {
		return // such a window could not be read: it was reported where it stands
	}
	exceptions, err := calendar(p.FreezeExceptions)
	if err != nil {
		return
	}
	if first := freezes.next(someDay()); !first.IsZero() && endless(freezes, exceptions, first) {
		r.wrong(at+".freeze", "the freezes together never end: each begins before another is over, for a whole year")
	}
}

// someDay is where a search through schedules begins: any day does, and a fixed one
// gives one answer.
func someDay() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }

// checkWindow checks one window of a freeze or of its exceptions.
func checkWindow(at string, w Window, r *report) {
	if w.Duration <= 0 {
		r.wrong(at+".duration", "a window lasts longer than nothing")
		return
	}
	if _, err := w.location(); err != nil {
		r.wrong(at+".timezone", "%v", err)
		return
	}
	schedule, err := w.schedule()
	if err != nil {
		r.wrong(at+".cron", "%v", err)
		return
	}
	switch err := ends(schedule, time.Duration(w.Duration)); {
	case errors.Is(err, errNeverBegins):
		r.wrong(at+".cron", "%q %v: there is no such day", w.Cron, err)
	case errors.Is(err, errNeverEnds):
		r.wrong(at+".duration", "the window %v: it begins again (%s) before its %v are over", err, w.Cron, w.Duration)
	}
}

// ends says whether windows that begin by a schedule leave a gap. From one window
// it steps to the latest that it can find quickly among those that begin before
// the end of what is covered, until there is none, or until that was so for a year.
func ends(s cron.Schedule, d time.Duration) error {
	first := s.Next(someDay())
	if first.IsZero() {
		return errNeverBegins
	}
	for start, n := first, 0; n < stepLimit && start.Sub(first) < longest+d; n++ {
		next := latest(s, start, d)
		if next.IsZero() {
			return nil
		}
		start = next
	}
	return errNeverEnds
}

// stepLimit bounds every search; a freeze of so many windows without a gap is one
// that nobody has thought through.
const stepLimit = 10000

// latest gives a beginning after start that is not later than its window's end,
// as late as bisecting finds one, or zero.
func latest(s cron.Schedule, start time.Time, d time.Duration) time.Time {
	for offset := d / 2; ; offset /= 2 {
		next := s.Next(start.Add(offset))
		if !next.IsZero() && !next.After(start.Add(d)) {
			return next
		}
		if offset < time.Second {
			return time.Time{}
		}
	}
}
