package scm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
)

// witness notes when each request came, and how many were there at once.
type witness struct {
	mu       sync.Mutex
	start    time.Time
	now      map[bool]int // by write
	most     map[bool]int
	writes   []string
	at       []time.Duration // of the writes
	answer   func(n int) *http.Response
	duration time.Duration
}

func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	write := req.Method != http.MethodGet
	w.mu.Lock()
	if write {
		w.writes, w.at = append(w.writes, req.URL.Path), append(w.at, time.Since(w.start))
	}
	n := len(w.writes)
	w.now[write]++
	w.most[write] = max(w.most[write], w.now[write])
	w.mu.Unlock()
	time.Sleep(w.duration)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[write]--
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}
	if write && w.answer != nil {
		if a := w.answer(n); a != nil {
			resp = a
			resp.Request = req
		}
	}
	return resp, nil
}

func (w *witness) transport(t *testing.T, pace *scm.Pace, interval time.Duration) *scm.Transport {
	t.Helper()
	tr, err := scm.NewTransport(scm.TransportOptions{
		Host: "https://git.example/api", Base: w, Pace: pace, WriteInterval: interval, Rand: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// forty sends four writes and a read from each of forty repositories, one
// repository's writes after each other.
func forty(t *testing.T, w *witness, pace func() *scm.Pace, interval time.Duration) (errs []error) {
	t.Helper()
	w.start, w.now, w.most = time.Now(), map[bool]int{}, map[bool]int{}
	var g sync.WaitGroup
	var mu sync.Mutex
	for i := range 40 {
		tr := w.transport(t, pace(), interval)
		g.Go(func() {
			_, _, err := send(context.Background(), tr, "GET", "https://git.example/api/read", "")
			for n := range 4 {
				_, _, failed := send(context.Background(), tr, "POST", fmt.Sprintf("https://git.example/api/%02d/%d", i, n), "x")
				err = errors.Join(err, failed)
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	g.Wait()
	return errs
}

func TestPaceOfFortyRepositories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pace := &witness{duration: 100 * time.Millisecond}, scm.NewPace(0)
		if err := errors.Join(forty(t, w, func() *scm.Pace { return pace }, time.Second)...); err != nil {
			t.Fatal(err)
		}
		if len(w.writes) != 160 || w.most[true] != 1 || w.most[false] != 16 {
			t.Errorf("%d writes, at once %d writes and %d reads; want 160, 1 and 16", len(w.writes), w.most[true], w.most[false])
		}
		for i := 1; i < len(w.at); i++ {
			gap := w.at[i] - w.at[i-1]
			if i < 10 && gap >= time.Second || i >= 10 && gap < time.Second {
				t.Errorf("write %d came %s after the one before", i+1, gap)
			}
		}
		for i := range 40 { // each repository's own stay in order
			want := []string{}
			for n := range 4 {
				want = append(want, fmt.Sprintf("/api/%02d/%d", i, n))
			}
			var got []string
			for _, path := range w.writes {
				if strings.HasPrefix(path, fmt.Sprintf("/api/%02d/", i)) {
					got = append(got, path)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("writes of %d (-want +got):\n%s", i, d)
			}
		}
	})
}

// A test that cannot fail proves nothing: without a shared Pace they are at once.
func TestPaceThatIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{duration: 100 * time.Millisecond}
		forty(t, w, func() *scm.Pace { return nil }, time.Second)
		if w.most[true] < 30 {
			t.Errorf("%d writes at once, want those of forty repositories", w.most[true])
		}
	})
}

// One repository's secondary limit stops the writes and reads of all.
func TestPaceSharesALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, pace := &witness{duration: 100 * time.Millisecond}, scm.NewPace(0)
		limited := []int{5, 30}
		w.answer = func(n int) *http.Response {
			if len(limited) == 0 || n != limited[0] {
				return nil
			}
			limited = limited[1:]
			return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Retry-After": {"60"}},
				Body: io.NopCloser(strings.NewReader(`{"message": "You have exceeded a secondary rate limit"}`))}
		}
		if err := errors.Join(forty(t, w, func() *scm.Pace { return pace }, time.Second)...); err != nil {
			t.Fatal(err)
		}
		if len(w.writes) != 162 || w.most[true] != 1 {
			t.Errorf("%d writes, %d at once; want 160 and the two that were sent again, one at once", len(w.writes), w.most[true])
		}
		for i := 1; i < len(w.at); i++ {
			gap := w.at[i] - w.at[i-1]
			if after := i == 5 || i == 30; after != (gap >= 60*time.Second) {
				t.Errorf("write %d came %s after the one before", i+1, gap)
			}
		}
	})
}

func TestPaceOfASinglePromotion(t *testing.T) {
	for name, interval := range map[string]time.Duration{"github": time.Second, "no interval": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &witness{now: map[bool]int{}, most: map[bool]int{}, start: time.Now()}
				tr := w.transport(t, nil, interval)
				many := 10
				if interval == 0 {
					many = 100
				}
				for range many {
					if _, _, err := send(t.Context(), tr, "PUT", "https://git.example/api/x", "x"); err != nil {
						t.Fatal(err)
					}
				}
				if waited := time.Since(w.start); waited != 0 {
					t.Errorf("%d writes waited %s", many, waited)
				}
				if interval == 0 {
					return
				}
				time.Sleep(time.Minute) // then ten more are free
				before := time.Now()
				for range 10 {
					if _, _, err := send(t.Context(), tr, "PUT", "https://git.example/api/x", "x"); err != nil {
						t.Fatal(err)
					}
				}
				if waited := time.Since(before); waited != 0 {
					t.Errorf("ten writes a minute later waited %s", waited)
				}
			})
		})
	}
}

func TestPaceGivesWayToTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{now: map[bool]int{}, most: map[bool]int{}, start: time.Now()}
		tr := w.transport(t, nil, time.Hour)
		for range 10 {
			if _, _, err := send(t.Context(), tr, "PUT", "https://git.example/api/x", "x"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute/2)
		defer cancel()
		if _, _, err := send(ctx, tr, "PUT", "https://git.example/api/x", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline's", err)
		}
		if len(w.writes) != 10 {
			t.Errorf("%d writes were sent, want ten", len(w.writes))
		}
	})
}
