package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// parse reads the window's cron expression in its time zone.
func (w Window) parse() (cron.Schedule, error) {
	if strings.ContainsAny(w.Cron, "@=") {
		return nil, fmt.Errorf("%q is no cron expression here: write minute, hour, day of the month, month and day of the week, as in \"0 18 * * FRI\"; the time zone is a key of its own", w.Cron)
	}
	zone, err := w.location()
	if err != nil {
		return nil, err
	}
	fields := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	schedule, err := fields.Parse(w.Cron)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", w.Cron, err)
	}
	if spec, ok := schedule.(*cron.SpecSchedule); ok {
		spec.Location = zone
	}
	return schedule, nil
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

var (
	errNeverBegins = errors.New("never begins")
	errNeverEnds   = errors.New("never ends")
)

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
	schedule, err := w.parse()
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
	first := s.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) // nothing depends on the day but the test's repeatability
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

// stepLimit bounds the search; a freeze of so many windows without a gap is one
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
