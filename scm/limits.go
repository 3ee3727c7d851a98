package scm

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type verdict int

const (
	final   verdict = iota // return it
	again                  // a read that may work the next time
	limited                // the forge asks to wait
)

// verdict tells what to do after a try, and how long to wait before the next.
func (c *call) verdict(resp *http.Response, err error) (time.Duration, verdict) {
	var auth *authError
	switch {
	case c.req.Context().Err() != nil, errors.As(err, &auth):
		return 0, final
	case err != nil:
		if c.write || hopeless(err) {
			return 0, final
		}
		return c.backoff(resp)
	case c.isLimit(resp):
		c.limits++
		return c.limitWait(resp), limited
	case resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented && !c.write:
		return c.backoff(resp)
	}
	return 0, final
}

// backoff doubles from half a second, with jitter between half and the whole of
// it, until the tries are spent.
func (c *call) backoff(resp *http.Response) (time.Duration, verdict) {
	if c.tries >= c.t.o.Tries {
		return 0, final
	}
	d := time.Second / 2 << (c.tries - 1)
	d = d/2 + time.Duration(c.t.o.Rand()*float64(d/2))
	if resp != nil {
		if asked, ok := c.retryAfter(resp); ok {
			d = max(d, asked)
		}
	}
	if c.waited+d > c.t.o.Budget {
		return 0, final
	}
	return d, again
}

// isLimit tells a request to wait: 429, and a 403 with a header or a text of
// GitHub's primary or secondary limit. The secondary one may come without any
// header (github.com/hub4j/github-api issue 2009).
func (c *call) isLimit(resp *http.Response) bool {
	if resp.StatusCode == http.StatusTooManyRequests {
		return true
	}
	if resp.StatusCode != http.StatusForbidden {
		return false
	}
	if resp.Header.Get("Retry-After") != "" || header(resp, "X-Ratelimit-Remaining", "Ratelimit-Remaining") == "0" {
		return true
	}
	text := strings.ToLower(string(peek(resp)))
	for _, words := range []string{"secondary rate limit", "api rate limit exceeded", "abuse detection", "was submitted too quickly"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// limitWait follows GitHub's order: Retry-After, else the reset time when nothing
// remains, else a minute that doubles. A second of jitter keeps many runs apart.
func (c *call) limitWait(resp *http.Response) time.Duration {
	jitter := time.Duration(c.t.o.Rand() * float64(time.Second))
	if d, ok := c.retryAfter(resp); ok {
		return max(d, time.Second) + jitter
	}
	reset, err := strconv.ParseInt(header(resp, "X-Ratelimit-Reset", "Ratelimit-Reset"), 10, 64)
	if err == nil && header(resp, "X-Ratelimit-Remaining", "Ratelimit-Remaining") == "0" {
		return max(time.Unix(reset, 0).Sub(c.serverTime(resp)), time.Second) + jitter
	}
	if resp.StatusCode == http.StatusForbidden {
		return time.Minute<<min(c.limits-1, 10) + jitter
	}
	return time.Second<<min(c.limits-1, 16) + jitter
}

// retryAfter reads RFC 9110's Retry-After: seconds or a date.
func (c *call) retryAfter(resp *http.Response) (time.Duration, bool) {
	v := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseInt(v, 10, 64); err == nil && seconds >= 0 && seconds < 1<<31 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(c.serverTime(resp)), 0), true
	}
	return 0, false
}

// serverTime is the forge's clock where it tells it: ours may be wrong.
func (c *call) serverTime(resp *http.Response) time.Time {
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		return at
	}
	return c.t.o.Now()
}

func header(resp *http.Response, names ...string) string {
	for _, name := range names {
		if v := resp.Header.Get(name); v != "" {
			return v
		}
	}
	return ""
}

const peekLimit = 64 << 10

// peek reads the start of a body and puts it back.
func peek(resp *http.Response) []byte {
	start, err := io.ReadAll(io.LimitReader(resp.Body, peekLimit))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), resp.Body}
	return start
}

type failing struct{ err error }

// Read fails as the body before it did.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// discard ends a response so that its connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, peekLimit)
	_ = resp.Body.Close()
}
