package scm_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"tagboat/scm"
)

var _ scm.Clock = (*scm.Transport)(nil)

// TestClock: the forge's time counts, however wrong the machine's is.
func TestClock(t *testing.T) {
	start := time.Date(2026, 3, 6, 18, 0, 0, 0, time.UTC)
	at := func(d time.Duration) map[string]string {
		return map[string]string{"Date": start.Add(d).Format(http.TimeFormat)}
	}
	with := func(h map[string]string, name, value string) map[string]string {
		h[name] = value
		return h
	}
	cases := []struct {
		name    string
		answers []answer
		url     string
		want    time.Duration // after forge's start; the last answer was 90 s ago
		none    bool
	}{
		{name: "before any answer", none: true},
		{name: "one answer", answers: []answer{{status: 200, header: at(0)}}, want: 90 * time.Second},
		{name: "a refusal tells the time too", answers: []answer{{status: 404, header: at(0)}}, want: 90 * time.Second},
		{name: "the last of two counts", answers: []answer{{status: 200, header: at(0)}, {status: 200, header: at(time.Hour)}}, want: time.Hour + 90*time.Second},
		{name: "a tried answer counts", answers: []answer{{status: 502, header: at(0)}, {status: 200}}, want: 90*time.Second + time.Second/4},
		{name: "no Date", answers: []answer{{status: 200}}, none: true},
		{name: "a Date that is none", answers: []answer{{status: 200, header: map[string]string{"Date": "yesterday"}}}, none: true},
		{name: "a Date that is none leaves the last", answers: []answer{{status: 200, header: at(0)}, {status: 200, header: map[string]string{"Date": "0"}}}, want: 90 * time.Second},
		{name: "a cached answer", answers: []answer{{status: 200, header: with(at(-10*time.Minute), "Age", "600")}}, want: 90 * time.Second},
		{name: "an Age that is none", answers: []answer{{status: 200, header: with(at(-10*time.Minute), "Age", "old")}}, none: true},
		{name: "another host", answers: []answer{{status: 200, header: at(0)}}, url: "https://elsewhere.example/x", none: true},
		{name: "another port", answers: []answer{{status: 200, header: at(0)}}, url: "https://git.example:8443/x", none: true},
	}
	for skew, off := range map[string]time.Duration{"on time": 0, "two hours late": -2 * time.Hour, "two hours early": 2 * time.Hour} {
		for _, c := range cases {
			t.Run(skew+"/"+c.name, func(t *testing.T) {
				now := start.Add(off)
				f := &forge{answers: c.answers}
				tr, err := scm.NewTransport(scm.TransportOptions{
					Host: "https://git.example/api", Base: f, Now: func() time.Time { return now },
					Rand: func() float64 { return 0 },
					Sleep: func(_ context.Context, d time.Duration) error {
						now = now.Add(d)
						return nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				url := c.url
				if url == "" {
					url = "https://git.example/api/x"
				}
				for len(f.seen) < len(c.answers) {
					if _, _, err := send(t.Context(), tr, "GET", url, ""); err != nil {
						t.Fatal(err)
					}
				}
				now = now.Add(90 * time.Second)
				got, ok := tr.Now()
				if ok == c.none || !c.none && !got.Equal(start.Add(c.want)) {
					t.Errorf("Now() = %v, %v, want %v, %v", got, ok, start.Add(c.want), !c.none)
				}
			})
		}
	}
}
