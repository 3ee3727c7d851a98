package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time as people write it: weeks, days, hours, minutes
// and seconds, greatest first, whole numbers. A day is 24 hours.
type Duration time.Duration

// longest is what a duration may be: nothing that a person waits for is longer.
const longest = 366 * 24 * time.Hour

var durationGrammar = regexp.MustCompile(`^([0-9]{1,6}w)?([0-9]{1,6}d)?([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,9}s)?$`)

// ParseDuration reads a duration: 90m, 24h, 1d12h, 2w.
func ParseDuration(s string) (Duration, error) {
	if strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("duration %s is negative", s)
	}
	parts := durationGrammar.FindStringSubmatch(s)
	if parts == nil || s == "" {
		return 0, fmt.Errorf("%q is not a duration: write whole weeks, days, hours, minutes and seconds, as in 90m, 24h, 1d12h or 2w", s)
	}
	var total time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(parts[i+1][:len(parts[i+1])-1])
		if err != nil {
			return 0, err
		}
		if time.Duration(n) > longest/unit {
			return 0, fmt.Errorf("duration %s is longer than a year", s)
		}
		total += time.Duration(n) * unit
	}
	if total > longest {
		return 0, fmt.Errorf("duration %s is longer than a year", s)
	}
	return Duration(total), nil
}

// String writes the duration so that ParseDuration reads it: hours, minutes and
// seconds.
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	rest := time.Duration(d)
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := rest / u.unit; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			rest %= u.unit
		}
	}
	return b.String()
}

// MarshalYAML writes the duration as text.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }
