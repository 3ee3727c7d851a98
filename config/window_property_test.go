package config

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// counted is a window whose beginnings are found by looking at every minute.
type counted struct {
	minutes, hours, days, months, weekdays []int // nil is all
	duration                               time.Duration
	zone                                   *time.Location
}

// drawCounted makes any window that ends; lists, ranges and steps are written in
// its cron expression as they are drawn.
func drawCounted(r *rand.Rand, t *testing.T) (counted, Window) {
	t.Helper()
	zones := []string{"UTC", "Asia/Taipei", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"}
	for {
		name := zones[r.IntN(len(zones))]
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		c := counted{zone: zone, duration: time.Duration(1+r.IntN(40*60)) * time.Minute}
		var fields [5]string
		fields[0], c.minutes = drawField(r, 0, 59, 1)
		fields[1], c.hours = drawField(r, 0, 23, 2)
		fields[2], c.days = drawField(r, 1, 31, 6)
		fields[3], c.months = drawField(r, 1, 12, 8)
		fields[4], c.weekdays = drawField(r, 0, 6, 3)
		w := Window{Cron: strings.Join(fields[:], " "), Duration: Duration(c.duration), Timezone: name}
		schedule, err := w.schedule()
		if err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		if ends(schedule, c.duration) == nil {
			return c, w
		}
	}
}

// drawField makes a field of a cron expression; one in all of them is "*".
func drawField(r *rand.Rand, low, high, all int) (string, []int) {
	if r.IntN(all+1) > 0 && all > 1 {
		return "*", nil
	}
	switch width := high - low + 1; r.IntN(4) {
	case 0: // a range
		from := low + r.IntN(width)
		to := from + r.IntN(high-from+1)
		return fmt.Sprintf("%d-%d", from, to), numbers(from, to, 1)
	case 1: // a range with a step
		from := low + r.IntN(width)
		to := from + r.IntN(high-from+1)
		step := 1 + r.IntN(7)
		return fmt.Sprintf("%d-%d/%d", from, to, step), numbers(from, to, step)
	case 2: // a list
		a, b := low+r.IntN(width), low+r.IntN(width)
		return fmt.Sprintf("%d,%d", a, b), []int{a, b}
	}
	n := low + r.IntN(high-low+1)
	return fmt.Sprint(n), []int{n}
}

func numbers(from, to, step int) []int {
	var out []int
	for n := from; n <= to; n += step {
		out = append(out, n)
	}
	return out
}

func has(list []int, n int) bool { return list == nil || slices.Contains(list, n) }

// names says whether the expression names what a clock shows. As in every cron, day
// of the month and day of the week are alternatives where both are told.
func (c counted) names(shown time.Time) bool {
	day := has(c.days, shown.Day()) && has(c.weekdays, int(shown.Weekday()))
	if c.days != nil && c.weekdays != nil {
		day = has(c.days, shown.Day()) || has(c.weekdays, int(shown.Weekday()))
	}
	return has(c.minutes, shown.Minute()) && has(c.hours, shown.Hour()) && has(c.months, int(shown.Month())) && day
}

// begins lists the minutes from one to another in which the window begins, and those
// in which it need not, for the clock shows them for the second time.
func (c counted) begins(from, to time.Time) (must, may map[time.Time]bool) {
	must, may = map[time.Time]bool{}, map[time.Time]bool{}
	seen := map[time.Time]bool{}
	for t := from.Add(-3 * time.Hour); t.Before(to); t = t.Add(time.Minute) {
		shown := wall(t, c.zone)
		if c.names(shown) {
			if seen[shown] {
				may[t] = true
			} else {
				must[t] = true
			}
		}
		seen[shown] = true
		for left := wall(t.Add(-time.Minute), c.zone).Add(time.Minute); left.Before(shown); left = left.Add(time.Minute) {
			if c.names(left) { // the clock leaves it out: as if it had not jumped yet
				must[t.Add(left.Sub(wall(t.Add(-time.Minute), c.zone))-time.Minute)] = true
			}
		}
	}
	return must, may
}

// wall is what the clock of a zone shows.
func wall(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
}

// on marks the minutes from one to another in which a window is on: for sure, or
// maybe.
func (c counted) on(from, to time.Time) (sure, maybe []bool) {
	n := int(to.Sub(from) / time.Minute)
	sure, maybe = make([]bool, n), make([]bool, n)
	mark := func(out []bool, begins map[time.Time]bool) {
		for b := range begins {
			first := int(b.Sub(from) / time.Minute)
			for m := max(first, 0); m < min(first+int(c.duration/time.Minute), n); m++ {
				out[m] = true
			}
		}
	}
	must, may := c.begins(from.Add(-c.duration), to)
	mark(sure, must)
	mark(maybe, must)
	mark(maybe, may)
	return sure, maybe
}

// TestFreezesMinuteByMinute compares FreezeAt with an oracle that looks at every
// minute of some days, those of jumps among them: any cron expression, several
// freezes and exceptions, at their beginnings and ends and at some minutes between.
func TestFreezesMinuteByMinute(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	jumps := []string{"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z", "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z", "2026-02-15T02:00:00Z"}
	frozen, freed := 0, 0
	for range 30 {
		from := at(t, jumps[r.IntN(len(jumps))]).Add(-time.Duration(r.IntN(20*60)) * time.Minute)
		if r.IntN(3) == 0 {
			from = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(365*24*60)) * time.Minute)
		}
		to := from.Add(36 * time.Hour)
		var p Policy
		var freezes, exceptions []counted
		for range 1 + r.IntN(2) {
			c, w := drawCounted(r, t)
			freezes, p.Freeze = append(freezes, c), append(p.Freeze, w)
		}
		for range r.IntN(2) {
			c, w := drawCounted(r, t)
			exceptions, p.FreezeExceptions = append(exceptions, c), append(p.FreezeExceptions, w)
		}
		sure, maybe := together(freezes, from, to)
		free, maybeFree := together(exceptions, from, to)
		for m := range sure {
			edge := m > 0 && (sure[m] != sure[m-1] || maybe[m] != maybe[m-1] || free[m] != free[m-1])
			if !edge && r.IntN(12) > 0 {
				continue
			}
			moment := from.Add(time.Duration(m)*time.Minute + time.Duration(r.IntN(60))*time.Second)
			got, err := p.FreezeAt(moment)
			if err != nil {
				t.Fatal(err)
			}
			must, may := sure[m] && !maybeFree[m], maybe[m] && !free[m]
			if must && got == nil || !may && got != nil {
				t.Fatalf("%+v at %v: %+v; it must be on: %t, may be on: %t", p, moment, got, must, may)
			}
			if got != nil {
				frozen++
				if last := lastEnd(freezes, moment); got.Since.Add(time.Duration(got.Window.Duration)).Before(last) {
					t.Fatalf("%+v at %v: since %v, but one that began later ends at %v", p, moment, got.Since, last)
				}
				next := int(got.Until.Sub(from) / time.Minute)
				if next < len(sure) && sure[next] && !maybeFree[next] {
					t.Fatalf("%+v at %v: until %v, when it must be on", p, moment, got.Until)
				}
				for k := m; k < min(next, len(sure)); k++ {
					if !maybe[k] || free[k] {
						t.Fatalf("%+v at %v: until %v, but not on at %v", p, moment, got.Until, from.Add(time.Duration(k)*time.Minute))
					}
				}
			} else if sure[m] {
				freed++
			}
		}
	}
	if frozen < 700 || freed < 50 {
		t.Errorf("only %d minutes were frozen, and %d freed by exceptions", frozen, freed)
	}
}

// lastEnd is when the windows that have begun for sure are over.
func lastEnd(windows []counted, moment time.Time) time.Time {
	var last time.Time
	for _, w := range windows {
		must, _ := w.begins(moment.Truncate(time.Minute).Add(-2*time.Hour), moment.Add(time.Second))
		for b := range must {
			if end := b.Add(w.duration); end.After(last) && !b.After(moment) {
				last = end
			}
		}
	}
	return last
}

// together marks the minutes in which one of several windows is on.
func together(windows []counted, from, to time.Time) (sure, maybe []bool) {
	n := int(to.Sub(from) / time.Minute)
	sure, maybe = make([]bool, n), make([]bool, n)
	for _, w := range windows {
		s, m := w.on(from, to)
		for i := range s {
			sure[i], maybe[i] = sure[i] || s[i], maybe[i] || m[i]
		}
	}
	return sure, maybe
}
