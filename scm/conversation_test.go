package scm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tagboat/scm"
)

func TestIsReply(t *testing.T) {
	for body, want := range map[string]bool{
		"<!-- tagboat reply to 42 -->\nDone.":       true,
		"\r\n<!-- tagboat reply to 42 -->":          true,
		"<!-- tagboat reply to 421 -->\nDone.":      false,
		"> <!-- tagboat reply to 42 -->\nSee above": false,
		"Done. <!-- tagboat reply to 42 -->":        false,
		"":                                          false,
	} {
		if scm.IsReply(body, 42) != want {
			t.Errorf("%q: %v, want %v", body, !want, want)
		}
	}
}

func TestInputText(t *testing.T) {
	got, err := scm.InputText(map[string]any{"a": "x", "b": true, "c": 3, "d": int64(-4)})
	if d := cmp.Diff(map[string]string{"a": "x", "b": "true", "c": "3", "d": "-4"}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for _, odd := range []any{nil, 1.5, []string{"x"}, map[string]any{}} {
		if _, err := scm.InputText(map[string]any{"app": odd}); err == nil || !strings.Contains(err.Error(), "input app") {
			t.Errorf("%v: error %v", odd, err)
		}
	}
}

// reader gives its text in small parts, then an error.
type reader struct {
	text string
	err  error
}

func (r *reader) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 1000)], r.text)
	r.text = r.text[n:]
	if n == 0 {
		return 0, r.err
	}
	return n, nil
}

func TestTail(t *testing.T) {
	long := strings.Repeat("x", 3*scm.OutputLimit) + "the end"
	for text, want := range map[string]string{"": "", "short": "short", long: long[len(long)-scm.OutputLimit:]} {
		if got, err := scm.Tail(strings.NewReader(text)); err != nil || got != want {
			t.Errorf("%d bytes of %d, %v; want %d", len(got), len(text), err, len(want))
		}
	}
	broken := errors.New("connection reset")
	if _, err := scm.Tail(&reader{"half", broken}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestRunStateEnded(t *testing.T) {
	for s, want := range map[scm.RunState]bool{scm.RunQueued: false, scm.RunRunning: false, scm.RunSuccess: true, scm.RunFailure: true, "": false} {
		if s.Ended() != want {
			t.Errorf("%s ended: %v", s, s.Ended())
		}
	}
}
