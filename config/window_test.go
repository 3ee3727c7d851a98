package config

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestFreezeAt(t *testing.T) {
	hours := func(n int) Duration { return Duration(time.Duration(n) * time.Hour) }
	weekend := Window{Cron: "0 18 * * FRI", Duration: hours(60), Timezone: "Asia/Taipei", Reason: "weekend"}
	night := Window{Cron: "30 2 * * *", Duration: hours(1), Timezone: "America/New_York"}
	slot := Window{Cron: "0 9 * * SAT", Duration: hours(1), Timezone: "Asia/Taipei"}
	for name, c := range map[string]struct {
		policy       Policy
		at           string
		since, until string // "" is no freeze
	}{
		"a minute before":       {Policy{Freeze: []Window{weekend}}, "2026-03-06T17:59:59+08:00", "", ""},
		"its first moment":      {Policy{Freeze: []Window{weekend}}, "2026-03-06T18:00:00+08:00", "2026-03-06T18:00:00+08:00", "2026-03-09T06:00:00+08:00"},
		"its last moment":       {Policy{Freeze: []Window{weekend}}, "2026-03-08T21:59:59Z", "2026-03-06T18:00:00+08:00", "2026-03-09T06:00:00+08:00"},
		"its end":               {Policy{Freeze: []Window{weekend}}, "2026-03-09T06:00:00+08:00", "", ""},
		"before an exception":   {Policy{Freeze: []Window{weekend}, FreezeExceptions: []Window{slot}}, "2026-03-07T08:00:00+08:00", "2026-03-06T18:00:00+08:00", "2026-03-07T09:00:00+08:00"},
		"an exception":          {Policy{Freeze: []Window{weekend}, FreezeExceptions: []Window{slot}}, "2026-03-07T09:00:00+08:00", "", ""},
		"after the exception":   {Policy{Freeze: []Window{weekend}, FreezeExceptions: []Window{slot}}, "2026-03-07T10:00:00+08:00", "2026-03-06T18:00:00+08:00", "2026-03-09T06:00:00+08:00"},
		"two that follow":       {Policy{Freeze: []Window{{Cron: "0 0 1 5 *", Duration: hours(24)}, {Cron: "0 0 2 5 *", Duration: hours(5)}}}, "2026-05-01T03:00:00Z", "2026-05-01T00:00:00Z", "2026-05-02T05:00:00Z"},
		"one in another":        {Policy{Freeze: []Window{{Cron: "0 0 1 5 *", Duration: hours(24)}, {Cron: "0 2 1 5 *", Duration: hours(2)}}}, "2026-05-01T03:00:00Z", "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"},
		"ordinary night":        {Policy{Freeze: []Window{night}}, "2026-03-07T02:30:00-05:00", "2026-03-07T02:30:00-05:00", "2026-03-07T03:30:00-05:00"},
		"clock leaves it out":   {Policy{Freeze: []Window{night}}, "2026-03-08T03:45:00-04:00", "2026-03-08T03:30:00-04:00", "2026-03-08T04:30:00-04:00"},
		"hour comes twice":      {Policy{Freeze: []Window{{Cron: "30 1 * * *", Duration: Duration(10 * time.Minute), Timezone: "America/New_York"}}}, "2026-11-01T01:35:00-05:00", "2026-11-01T01:30:00-05:00", "2026-11-01T01:40:00-05:00"},
		"weekend that is short": {Policy{Freeze: []Window{{Cron: "0 18 * * FRI", Duration: hours(60), Timezone: "Europe/Zurich"}}}, "2026-03-27T18:00:00+01:00", "2026-03-27T18:00:00+01:00", "2026-03-30T07:00:00+02:00"},
		"no freeze":             {Policy{}, "2026-03-06T18:00:00Z", "", ""},
		"an exception alone":    {Policy{FreezeExceptions: []Window{slot}}, "2026-03-07T09:00:00+08:00", "", ""},
	} {
		got, err := c.policy.FreezeAt(at(t, c.at))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		switch {
		case got == nil && c.since == "":
		case got == nil || c.since == "":
			t.Errorf("%s: got %+v", name, got)
		case !got.Since.Equal(at(t, c.since)) || !got.Until.Equal(at(t, c.until)):
			t.Errorf("%s: since %v until %v, want %s and %s", name, got.Since, got.Until, c.since, c.until)
		}
	}
}

func TestFreezeAtRefuses(t *testing.T) {
	for _, w := range []Window{{Cron: "x", Duration: 1}, {Cron: "0 0 * * *", Timezone: "Mars/Olympus", Duration: 1}} {
		if got, err := (Policy{Freeze: []Window{w}}).FreezeAt(time.Unix(0, 0)); err == nil {
			t.Errorf("%v: %v", w, got)
		}
		if got, err := (Policy{FreezeExceptions: []Window{w}}).FreezeAt(time.Unix(0, 0)); err == nil {
			t.Errorf("%v: %v", w, got)
		}
	}
}

// drawn is a window that is simple enough to be counted out by hand.
type drawn struct {
	minute, hour int
	weekday      int // -1 is every day
	duration     time.Duration
	zone         *time.Location
}

func draw(r *rand.Rand, t *testing.T) drawn {
	t.Helper()
	zones := []string{"UTC", "Asia/Taipei", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"}
	zone, err := time.LoadLocation(zones[r.IntN(len(zones))])
	if err != nil {
		t.Fatal(err)
	}
	return drawn{
		minute: r.IntN(60), hour: r.IntN(24), weekday: r.IntN(8) - 1, zone: zone,
		duration: time.Duration(1+r.IntN(20*60)) * time.Minute,
	}
}

func (d drawn) window() Window {
	day := "*"
	if d.weekday >= 0 {
		day = fmt.Sprint(d.weekday)
	}
	return Window{Cron: fmt.Sprintf("%d %d * * %s", d.minute, d.hour, day), Duration: Duration(d.duration), Timezone: d.zone.String()}
}

// on counts out whether a window is on: on one of the days before, its wall clock's
// beginning is at most its duration ago.
func (d drawn) on(t time.Time) bool {
	local := t.In(d.zone)
	for back := range 3 {
		start := begins(time.Date(local.Year(), local.Month(), local.Day()-back, d.hour, d.minute, 0, 0, time.UTC), d.zone)
		named := time.Date(local.Year(), local.Month(), local.Day()-back, 12, 0, 0, 0, time.UTC).Weekday()
		if d.weekday >= 0 && int(named) != d.weekday {
			continue
		}
		if !start.After(t) && t.Before(start.Add(d.duration)) {
			return true
		}
	}
	return false
}

// begins tries the offsets that a zone has around a day for one that shows a time,
// that before a jump first; where none does, it is that before the jump.
func begins(shown time.Time, zone *time.Location) time.Time {
	var first time.Time
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := shown.Add(around).In(zone).Zone()
		t := shown.Add(-time.Duration(offset) * time.Second)
		if t.In(zone).Format(time.DateTime) == shown.Format(time.DateTime) {
			return t
		}
		if first.IsZero() {
			first = t
		}
	}
	return first
}

// TestFreezeAtCountedOut compares with counting at random moments of a year, those
// around the jumps of clocks among them. In the hour that comes twice a freeze may
// be on twice: there alone more is allowed.
func TestFreezeAtCountedOut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	year := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	on := 0
	for range 3000 {
		d := draw(r, t)
		moment := year.Add(time.Duration(r.IntN(365*24*60)) * time.Minute)
		if r.IntN(3) == 0 { // near a jump, of whichever zone
			jumps := []string{"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z", "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"}
			moment = at(t, jumps[r.IntN(len(jumps))]).Add(time.Duration(r.IntN(48*60)-12*60) * time.Minute)
		}
		got, err := (Policy{Freeze: []Window{d.window()}}).FreezeAt(moment)
		if err != nil {
			t.Fatal(err)
		}
		want := d.on(moment)
		if want {
			on++
		}
		if (got != nil) == want || !want && twice(got.Since.In(d.zone)) {
			continue
		}
		t.Errorf("%+v at %v: got %+v, want %t", d.window(), moment.In(d.zone), got, want)
	}
	if on < 100 {
		t.Errorf("only %d of the moments were in a window", on)
	}
}

// twice says whether the clock shows a time twice around a moment.
func twice(t time.Time) bool {
	_, before := t.Add(-leap).Zone()
	_, after := t.Add(leap).Zone()
	return after < before
}

// TestFreezeIsOver: whatever the windows, at Until no freeze is on, and the moment
// before one is.
func TestFreezeIsOver(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	year := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	frozen := 0
	for range 500 {
		p := Policy{Freeze: []Window{draw(r, t).window(), draw(r, t).window()}, FreezeExceptions: []Window{draw(r, t).window()}}
		moment := year.Add(time.Duration(r.IntN(365*24*3600)) * time.Second)
		f, err := p.FreezeAt(moment)
		if err != nil {
			t.Fatal(err)
		}
		if f == nil {
			continue
		}
		frozen++
		if f.Since.After(moment) || !f.Until.After(moment) {
			t.Errorf("%+v at %v: %+v", p, moment, f)
		}
		if then, err := p.FreezeAt(f.Until); err != nil || then != nil {
			t.Errorf("%+v is on until %v, and still then: %+v, %v", p, f.Until, then, err)
		}
		if just, err := p.FreezeAt(f.Until.Add(-time.Second)); err != nil || just == nil {
			t.Errorf("%+v is on until %v, but not right before: %v", p, f.Until, err)
		}
	}
	if frozen < 50 {
		t.Errorf("only %d moments were frozen", frozen)
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		cron, duration string
		ends           bool
	}{
		{"0 18 * * FRI", "60h", true},
		{"0 18 * * FRI", "7d", false},
		{"0 18 * * FRI", "8d", false},
		{"0 18 * * FRI", "167h", true},
		{"0 0 * * *", "24h", false},
		{"0 0 * * *", "23h59m", true},
		{"0 0 * * MON-FRI", "24h", true},
		{"* * * * *", "1m", false},
		{"* 9-17 * * *", "1m", true},
		{"* * * * *", "30s", true},
		{"0 0 1 * *", "30d", true}, // months of 31 days
		{"0 0 1 * *", "31d", false},
		{"0 0 1,15 * *", "16d", true},
		{"0 0 1,15 * *", "17d", false},
		{"0 0 24 12 *", "14d", true},
		{"0 0 24 12 *", "365d", false},
		{"0 0 29 2 *", "366d", true},
		{"*/5 0-3 * * *", "20h", true},
		{"*/5 0-3 * * *", "20h5m", false},
	} {
		duration, err := ParseDuration(c.duration)
		if err != nil {
			t.Fatal(err)
		}
		for _, zone := range []string{"", "Asia/Taipei"} {
			s, err := Window{Cron: c.cron, Timezone: zone}.schedule()
			if err != nil {
				t.Fatal(err)
			}
			if got := ends(s, time.Duration(duration)); (got == nil) != c.ends {
				t.Errorf("%s for %s in %q: %v", c.cron, c.duration, zone, got)
			}
		}
	}
}
